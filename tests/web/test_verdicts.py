"""Verdicts through the API, on SQLite and on PostgreSQL: recorded once, undone, in conflict, many at a time."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from mcode.web import tables as t
from mcode.web.queue_filling import count_anew
from web.conftest import QUEUE, Api


def tallies(project):
    with project.database.read() as connection:
        rows = connection.execute(select(t.tallies)).all()
    return {(r.status, r.kind, r.response): (r.number, round(r.expected, 9)) for r in rows if r.number}


def recounted(project):
    with project.database.write() as connection:
        count_anew(connection)
    return tallies(project)


def test_accepting_a_repair_corrects_the_row_and_goes_on(either, either_api):
    row = either_api.next()
    answer = either_api.judge(row, "accept", "key-accept", next={})
    assert answer["recorded"]["status"] == "corrected"
    assert answer["next"]["row"] != row["row"]
    assert answer["next"]["error_probability"] <= row["error_probability"]
    assert answer["progress"]["counts"]["corrected"] == 1
    assert answer["progress"]["reviewed"] == 1
    seen = either_api.get(f"/rows/{row['row']}")
    assert {c["place"]: c["code"] for c in row["repair"]} == {
        r["place"]: r["current"] for r in seen["responses"] if r["current"] != r["observed"]
    }
    entry = seen["record"][0]
    assert (entry["who"], entry["kind"], entry["standing"]) == ("anna", "accept", True)
    assert entry["id"] == row["id"]
    repair = {(c["name"], c["before"], c["after"]) for c in row["repair"]}
    assert {(c["name"], c["before"], c["after"]) for c in entry["changes"]} == repair
    assert either_api.get("/verdicts")[0]["changes"] == entry["changes"]
    either_api.post("/undo", {"key": "key-accept-undo"})
    undone = either_api.get("/verdicts")[0]
    assert {(c["name"], c["after"], c["before"]) for c in undone["changes"]} == repair  # back to the recorded values
    assert entry["at"].endswith("Z")
    assert tallies(either) == recounted(either)


def test_the_same_verdict_sent_twice_counts_once(either, either_api):
    row = either_api.next()
    first = either_api.judge(row, "keep", "key-twice")
    again = either_api.judge(row, "keep", "key-twice")
    assert again["recorded"] == {**first["recorded"], "repeated": True}
    assert len(either_api.get(f"/rows/{row['row']}")["record"]) == 1
    either_api.judge(row, "accept", "key-twice", status=409)


def test_the_same_verdict_sent_by_eight_at_once_counts_once(either, either_api):
    row = either_api.next()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: either_api.judge(row, "accept", "key-eight"), range(8)))
    assert len({answer["recorded"]["seq"] for answer in answers}) == 1
    with either.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(t.verdicts)).scalar() == 1
    assert tallies(either) == recounted(either)


def test_any_response_is_changed_by_hand(either_api):
    row = either_api.next()
    last = row["responses"][-1]
    values = [{"response": last["place"], "code": 1 - last["observed"]}]
    assert either_api.judge(row, "change", "key-change", values=values)["recorded"]["status"] == "corrected"
    seen = either_api.get(f"/rows/{row['row']}")
    changed = [r["place"] for r in seen["responses"] if r["current"] != r["observed"]]
    assert changed == [last["place"]]


def test_changing_nothing_is_keeping(either_api):
    row = either_api.next()
    values = [{"response": r["place"], "code": r["observed"]} for r in row["responses"]]
    assert either_api.judge(row, "change", "key-change-nothing", values=values)["recorded"]["status"] == "kept"


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "change"},
        {"kind": "change", "values": [{"response": 99, "code": 1}]},
        {"kind": "change", "values": [{"response": 0, "code": 7}]},
        {"kind": "undo"},
        {"kind": "keep", "key": "short"},
        {"kind": "keep", "extra": 1},
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(api, body):
    row = api.next()
    answer = api.post(f"/rows/{row['row']}/verdicts", {"key": "key-refused", **body}, status=422)
    assert answer["error"]
    assert api.get(f"/rows/{row['row']}")["record"] == []


def test_undo_goes_back_one_verdict_at_a_time(either, either_api):
    first, kinds = either_api.next(), ["accept", "keep", "skip"]
    row, judged = first, []
    for kind in kinds:
        judged.append(row["row"])
        row = either_api.judge(row, kind, f"key-undo-{kind}", next={})["next"]
    for number, expected in enumerate(reversed(judged)):
        answer = either_api.post("/undo", {"key": f"undo-key-{number}"})
        assert answer["row"]["row"] == expected
        assert answer["row"]["status"] == "open"
    assert either_api.post("/undo", {"key": "undo-key-more"})["undone"] == 0
    assert either_api.get("/progress")["counts"]["open"] == QUEUE
    assert either_api.next()["row"] == first["row"]
    assert len(either_api.get("/verdicts")) == 6  # nothing is ever taken out of the record
    assert tallies(either) == recounted(either)


def test_an_undo_sent_twice_undoes_one_verdict(either_api):
    row = either_api.judge(either_api.next(), "keep", "key-a-verdict", next={})["next"]
    either_api.judge(row, "keep", "key-b-verdict")
    one = either_api.post("/undo", {"key": "key-of-undo"})
    two = either_api.post("/undo", {"key": "key-of-undo"})
    assert one["row"]["row"] == two["row"]["row"] == row["row"]
    assert either_api.get("/progress")["reviewed"] == 1


def test_two_verdicts_on_one_row_are_a_conflict_until_somebody_decides(either, either_api):
    ben = Api(either_api.client, "ben")
    row = either_api.next()
    ben_sees = ben.get(f"/rows/{row['row']}")
    assert ben_sees["held_by"] == "anna"
    either_api.judge(row, "accept", "key-anna-accepts")
    assert ben.judge(ben_sees, "keep", "key-ben-keeps")["recorded"]["status"] == "conflict"
    seen = ben.get(f"/rows/{row['row']}")
    assert {entry["who"] for entry in seen["record"] if entry["standing"]} == {"anna", "ben"}
    assert ben.get("/rows?status=conflict")["count"] == 1
    decided = ben.judge(seen, "accept", "key-ben-decides")
    assert decided["recorded"]["status"] == "corrected"
    assert len(ben.get(f"/rows/{row['row']}")["record"]) == 3
    assert tallies(either) == recounted(either)


def test_a_bulk_verdict_does_what_its_preview_says_and_is_undone_at_once(either, either_api):
    kind = either_api.get("/rows")["rows"][0]["kind"]
    wanted = {"kind": kind, "at_least": 0.2, "text": "age sex"}
    shown = either_api.post("/bulk/preview", {"kind": "accept", "filter": wanted})
    assert shown["rows"] == either_api.get(f"/rows?kind={kind}&at_least=0.2&text=age%20sex")["count"] > 1
    assert sum(change["rows"] for change in shown["changes"]) >= shown["rows"]
    body = {"kind": "accept", "filter": wanted, "key": "key-of-bulk", "stamp": shown["stamp"]}
    done = either_api.post("/bulk", body)
    assert done["judged"] == shown["rows"] == done["progress"]["counts"]["corrected"]
    assert either_api.post("/bulk", body)["repeated"] is True
    with either.database.read() as connection:
        changed = connection.execute(select(t.corrections.c.response, func.count()).group_by(t.corrections.c.response))
        assert dict(changed.all()) == {change["place"]: change["rows"] for change in shown["changes"]}
    assert tallies(either) == recounted(either)
    undone = either_api.post("/undo", {"key": "undo-of-bulk"})
    assert undone["undone"] == shown["rows"]
    assert undone["progress"]["counts"]["open"] == QUEUE
    assert tallies(either) == recounted(either)


def test_a_bulk_verdict_on_rows_that_changed_since_is_refused(either_api):
    shown = either_api.post("/bulk/preview", {"kind": "keep", "filter": {"at_least": 0.1}})
    either_api.judge(either_api.next(), "accept", "key-in-between")
    body = {"kind": "keep", "filter": {"at_least": 0.1}, "key": "key-of-bulk", "stamp": shown["stamp"]}
    assert "changed since" in either_api.post("/bulk", body, status=409)["error"]
    assert either_api.get("/progress")["reviewed"] == 1


def test_a_bulk_verdict_leaves_rows_to_who_looks_at_them(either_api):
    held = Api(either_api.client, "ben").next()
    shown = either_api.post("/bulk/preview", {"kind": "keep"})
    assert (shown["rows"], shown["left_out"]) == (QUEUE - 1, 1)
    either_api.post("/bulk", {"kind": "keep", "key": "key-of-bulk", "stamp": shown["stamp"]})
    assert either_api.get(f"/rows/{held['row']}")["status"] == "open"


def test_a_verdict_on_a_row_that_is_no_finding_is_refused(api):
    api.post("/rows/999999/verdicts", {"key": "key-nowhere", "kind": "keep"}, status=404)


def test_the_record_is_listed_newest_first_and_in_pages(api):
    row = api.next()
    for number in range(5):
        row = api.judge(row, "keep", f"key-{number}-listed", next={})["next"]
    newest = api.get("/verdicts?limit=3")
    older = api.get(f"/verdicts?limit=3&before={newest[-1]['seq']}")
    assert [entry["seq"] for entry in newest + older] == [5, 4, 3, 2, 1]


def test_before_and_after_are_recorded(api, project):
    row = api.next()
    api.judge(row, "accept", "key-first-verdict")
    api.judge(api.get(f"/rows/{row['row']}"), "keep", "key-second-verdict")
    with project.database.read() as connection:
        entries = connection.execute(select(t.verdicts.c.before, t.verdicts.c.after).order_by(t.verdicts.c.seq)).all()
    repair = {str(change["place"]): change["code"] for change in row["repair"]}
    assert [(json.loads(e.before), json.loads(e.after)) for e in entries] == [({}, repair), (repair, {})]
