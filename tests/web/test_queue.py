"""The queue: its order, its filters, its pages, and rows that are held for their reviewer."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text

from mcode.web import tables as t
from mcode.web.filters import Filter
from mcode.web.queue import HOLD, next_row
from web.conftest import QUEUE, Api


def every_row(api, query=""):
    rows, after = [], ""
    while True:
        page = api.get(f"/rows?limit=50{query}{after}")
        rows += page["rows"]
        if page["after"] is None:
            return rows
        after = f"&after={page['after']}"


def test_the_most_suspicious_row_comes_first(either_api):
    rows = every_row(either_api)
    assert len(rows) == QUEUE == len({row["row"] for row in rows})
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert either_api.next()["row"] == rows[0]["row"]


def test_a_row_shows_all_a_reviewer_needs(api):
    row = api.next()
    assert [cell["column"] for cell in row["context"]] == ["age", "sex", "smoker", "systolic", "hba1c", "oxygen"]
    assert len(row["responses"]) == 6
    assert row["responses"][0]["evidence"]
    assert row["responses"][0]["sentence"] == row["sentence"]
    assert [r["suspicious"] for r in row["responses"]] == sorted(
        (r["suspicious"] for r in row["responses"]), reverse=True
    )
    assert row["repair"][0]["before"] != row["repair"][0]["after"]
    assert row["odds_before"]


def test_filters_agree_with_looking_at_every_row(either_api):
    rows = every_row(either_api)
    first = rows[0]
    for query, fits in [
        (f"&response={first['response']}", lambda row: row["response"] == first["response"]),
        (f"&kind={first['kind']}", lambda row: row["kind"] == first["kind"]),
        ("&at_least=0.5", lambda row: row["error_probability"] >= 0.5),
        (f"&text={first['id'][-3:]}", lambda row: first["id"][-3:] in row["id"]),
    ]:
        expected = [row["row"] for row in rows if fits(row)]
        assert expected
        found = every_row(either_api, query)
        if "text" not in query:
            assert [row["row"] for row in found] == expected
        else:
            assert set(expected) <= {row["row"] for row in found}
        assert either_api.get(f"/rows?limit=1{query}")["count"] == len(found)


def test_words_are_searched_in_the_context(either_api):
    found = every_row(either_api, "&text=SEX%20f")
    assert 0 < len(found) < QUEUE
    for row in found[:5]:
        context = {c["column"]: c["value"] for c in either_api.get(f"/rows/{row['row']}")["context"]}
        assert context["sex"] == "F" or "f" in str(context).lower()
    assert every_row(either_api, "&text=100%25") == []  # a % is a percent sign, not a pattern


def test_eight_reviewers_at_once_get_eight_rows(either_api):
    def ask(number):
        return Api(either_api.client, f"reviewer {number}").next()["row"]

    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(ask, range(8)))
    assert len(set(rows)) == 8


def test_a_held_row_comes_back_when_the_hold_is_over(either, either_api):
    row = either_api.next()
    ben = Api(either_api.client, "ben")
    assert ben.next()["row"] != row["row"]
    assert ben.post(f"/rows/{row['row']}/hold") == {"held": False, "held_by": "anna"}
    with either.database.write() as connection:
        connection.execute(t.findings.update().values(held_until=t.findings.c.held_until - HOLD - 1))
    assert ben.next()["row"] == row["row"]


def test_a_row_that_is_let_go_is_free(either_api):
    row = either_api.next()
    either_api.ask("DELETE", f"/rows/{row['row']}/hold")
    assert Api(either_api.client, "ben").next()["row"] == row["row"]
    either_api.post("/rows/999999/hold", status=404)


def test_the_next_row_after_a_place(either_api):
    first = either_api.next()
    second = either_api.next(after=first["cursor"])
    assert second["row"] != first["row"]
    assert either_api.next()["row"] == first["row"]


def test_nothing_is_left_at_the_end(either_api):
    shown = either_api.post("/bulk/preview", {"kind": "skip"})
    either_api.post("/bulk", {"kind": "skip", "key": "key-skip-all", "stamp": shown["stamp"]})
    assert either_api.next() is None
    assert either_api.next(filter={"status": "skipped"}) is not None


@pytest.mark.parametrize(
    "wanted",
    [Filter(), Filter(status="all"), Filter(response=1), Filter(kind="missing"), Filter(status="kept", response=1)],
)
def test_the_next_row_is_found_by_an_index_without_sorting(project, wanted):
    c = t.findings.c
    asked = wanted.rows(c.row).limit(1)
    with project.database.read() as connection:
        compiled = asked.compile(connection, compile_kwargs={"literal_binds": True})
        plan = " ".join(row[-1] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}")))
    assert "USING" in plan
    assert "INDEX" in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan


def test_views_are_kept_under_a_name(api):
    api.ask("PUT", "/views/young & odd", {"filter": {"kind": "missing", "at_least": 0.5}})
    api.ask("PUT", "/views/young & odd", {"filter": {"kind": "added"}})
    views = api.get("/project")["views"]
    assert [(v["name"], v["filter"]["kind"], v["who"]) for v in views] == [("young & odd", "added", "anna")]
    api.ask("DELETE", "/views/young & odd")
    assert api.get("/project")["views"] == []


def test_the_project_says_how_far_it_is(api):
    told = api.get("/project")
    assert told["source"] == "visits.csv"
    assert told["n_rows"] == 400
    assert sum(r["open"] for r in told["responses"]) == sum(k["open"] for k in told["kinds"]) == QUEUE
    left = told["progress"]["errors_left"]
    api.judge(api.next(), "accept", "key-one-less")
    assert api.get("/progress")["errors_left"] < left


def test_next_row_holds_nothing_where_nothing_fits(project):
    with project.database.write() as connection:
        assert next_row(connection, Filter(text="no such words anywhere"), "anna") is None
        assert connection.execute(select(t.findings.c.row).where(t.findings.c.held_by.is_not(None))).first() is None
