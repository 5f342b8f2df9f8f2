"""What comes out: the source but for the verdicts, the patch, the same from the command line; and what it learns."""

import csv
import io
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import select

import mcode
from cli.runner import run
from mcode.cli.auditing import run_audit
from mcode.cli.cut import CutRequest
from mcode.cli.model_file import load_model
from mcode.cli.reviewing import make_project
from mcode.data import read
from mcode.models import BinaryRelevance
from mcode.own_words import named_responses
from mcode.web import tables as t
from mcode.web.database import Database
from mcode.web.project import Project
from mcode.web.reranking import Judged, reranked
from mcode.web.scoring import Scorer
from web.conftest import LABELS, QUEUE, Api, client_of
from web.postgres import new_database


def judge_some(api):
    """Judge ten rows; return what they become: row -> response -> value."""
    row, expected = api.next(), {}
    for number, kind in enumerate(["accept", "keep", "skip", "accept", "change"] * 2):
        body = {}
        if kind == "accept" and not row["repair"]:
            kind = "keep"
        if kind == "accept":
            expected[row["row"]] = {c["name"]: c["after"] for c in row["repair"]}
        if kind == "change":
            last = row["responses"][-1]
            body["values"] = [{"response": last["place"], "code": 1 - last["observed"]}]
            expected[row["row"]] = {last["name"]: last["choices"][1 - last["observed"]]}
        row = api.judge(row, kind, f"key-judge-{number}", next={}, **body)["next"]
    return expected


def differences(before, after):
    """Return the cells of two CSV texts that differ: row -> column -> value."""
    old, new = list(csv.reader(io.StringIO(before))), list(csv.reader(io.StringIO(after)))
    assert len(old) == len(new)
    assert old[0] == new[0]
    out = {}
    for at, (left, right) in enumerate(zip(old[1:], new[1:], strict=True)):
        changed = {name: b for name, a, b in zip(old[0], left, right, strict=True) if a != b}
        if changed:
            out[at] = changed
    return out


def test_the_table_equals_its_source_but_for_the_verdicts(api, project, made):
    expected = judge_some(api)
    source = (made / "visits.csv").read_text()
    answer = api.get("/export/table")
    assert "visits-corrected.csv" in answer.headers["content-disposition"]
    assert differences(source, answer.text) == expected
    patch = list(csv.DictReader(io.StringIO(api.get("/export/patch").text)))
    assert {(int(p["row"]), p["response"], p["after"]) for p in patch} == {
        (row, name, value) for row, changes in expected.items() for name, value in changes.items()
    }
    assert {p["who"] for p in patch} == {"anna"}
    lines = source.splitlines()
    assert all(lines[int(p["row"]) + 1].startswith(p["id"] + ",") for p in patch)


def test_the_command_line_writes_the_same(api, project_file, tmp_path):
    judge_some(api)
    out, patch = tmp_path / "out.csv", tmp_path / "patch.csv"
    result = run("apply", project_file, "-o", out, "--patch", patch, "--json")
    assert result.exit_code == 0, result.stderr
    assert out.read_text() == api.get("/export/table").text
    assert patch.read_text() == api.get("/export/patch").text
    assert json.loads(result.stdout)["values"] == len(patch.read_text().splitlines()) - 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "out.parquet"], "written as its source is, csv"),
        ([], "a file for the corrected table"),
        (["--out", "no_such_folder/out.csv"], "does not exist"),
    ],
)
def test_what_cannot_be_written_is_said_in_one_sentence(project_file, arguments, sentence, monkeypatch):
    monkeypatch.chdir(project_file.parent)
    result = run("apply", project_file, *arguments)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())


def test_a_source_that_changed_is_refused(project_file, made, tmp_path):
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.copy(project_file, moved / "visits.review")
    project = Project(Database(moved / "visits.review"))
    with project.database.write() as connection:
        source = {**project.fact("source"), "path": str(moved / "visits.csv")}
        connection.execute(t.facts.update().where(t.facts.c.name == "source").values(value=json.dumps(source)))
    project.database.close()
    result = run("apply", moved / "visits.review", "-o", moved / "out.csv")
    assert result.exit_code == 2
    assert "not there" in result.stderr
    (moved / "visits.csv").write_text("a,b\n1,2\n")
    result = run("apply", moved / "visits.review", "-o", moved / "out.csv")
    assert "changed since" in " ".join(result.stderr.split())


@pytest.mark.parametrize("kind", ["parquet", "tags"])
def test_other_formats_come_out_as_they_went_in(made, tmp_path, kind):
    frame = pd.read_csv(made / "visits.csv")
    options = {"labels": ["dx_*", "rx_*"], "id": "visit_id"}
    if kind == "parquet":
        path = tmp_path / "visits.parquet"
        frame.to_parquet(path)
    else:
        path = tmp_path / "visits.csv"
        frame["tags"] = [";".join(n for n, v in zip(LABELS, row, strict=True) if v) for row in frame[LABELS].to_numpy()]
        frame.drop(columns=LABELS).to_csv(path, index=False)
        options = {"tags_column": "tags", "id": "visit_id"}
    data = read(path, **options)
    audited = run_audit(data, CutRequest.of(None, 10, None), model="br", score="noise")
    auditing = {"model": "br", "score": "noise"}
    project = make_project(audited, Database(tmp_path / "p.review"), path, reading={}, auditing=auditing, queue=30)
    expected = judge_some(Api(client_of(project)))
    project.database.close()
    out = tmp_path / f"out{path.suffix}"
    assert run("apply", tmp_path / "p.review", "-o", out).exit_code == 0
    again = read(out, **options)
    Y = data.Y.copy()
    for row, changes in expected.items():
        for name, value in changes.items():
            Y[row, data.label_names.index(name)] = data.label_values[data.label_names.index(name)].index(value)
    assert (again.Y == Y).all()
    assert again.context_columns == data.context_columns


def test_rerank_uses_the_verdicts_and_keeps_them(api, project):
    shown = api.post("/bulk/preview", {"kind": "accept", "filter": {"at_least": 0.5}})
    body = {"kind": "accept", "filter": {"at_least": 0.5}, "key": "key-of-bulk", "stamp": shown["stamp"]}
    judged = api.post("/bulk", body)["judged"]
    before = {row["row"] for row in api.get("/rows?status=corrected&limit=200")["rows"]}
    held = Api(api.client, "ben").next()
    review = api.client.app.state.review
    assert api.post("/rerank", status=202)["state"] == "running"
    review.job.join(120)
    state = api.get("/rerank")
    assert state == {
        "state": "done",
        "stage": "",
        "done": 0,
        "total": 0,
        "message": f"Re-ranked with {judged} verdicts.",
    }
    assert {row["row"] for row in api.get("/rows?status=corrected&limit=200")["rows"]} == before
    rows = api.get("/rows?limit=200")["rows"]
    assert not before & {row["row"] for row in rows}
    assert held["row"] in {row["row"] for row in rows}  # somebody is looking at it
    assert QUEUE - judged <= len(rows) <= QUEUE - judged + 1
    assert api.get("/project")["ranking"] == {"number": 2, "verdicts": judged}
    with project.database.read() as connection:
        assert connection.execute(select(t.verdicts)).all().__len__() == judged


def test_a_rerank_that_fails_says_why(api, project, monkeypatch):
    (project.database.place.parent / "visits.csv").unlink()
    source = {**project.fact("source"), "path": "/nowhere/visits.csv"}
    with project.database.write() as connection:
        connection.execute(t.facts.update().where(t.facts.c.name == "source").values(value=json.dumps(source)))
    api.post("/rerank", status=202)
    api.client.app.state.review.job.join(60)
    assert api.get("/rerank")["state"] == "failed"
    assert "not there" in api.get("/rerank")["message"]


def test_new_rows_are_scored_with_a_saved_model(project, model, made):
    saved = load_model(model)
    api = Api(client_of(project, scorer=Scorer(saved.detector, saved.schema)))
    frame = pd.read_csv(made / "visits.csv").head(30)
    rows = json.loads(frame.to_json(orient="records"))
    findings = api.post("/score", {"rows": rows})
    assert [finding["id"] for finding in findings] == frame["visit_id"].tolist()
    expected = saved.detector.error_probability(*_xy(saved, frame))
    assert np.allclose([finding["error_probability"] for finding in findings], expected)
    assert "no label column" in api.post("/score", {"rows": [{"age": 1}]}, status=422)["error"]


def _xy(saved, frame):
    data = read(frame, like=saved.schema)
    return data.X, data.Y


def test_without_a_model_nothing_is_scored(api):
    assert "--model" in api.post("/score", {"rows": [{"age": 1}]}, status=422)["error"]


def test_a_project_moves_to_postgresql_with_all_its_verdicts(api, project_file, postgres):
    judge_some(api)
    address = new_database(postgres)
    out = project_file.parent / "out.csv"
    result = run("apply", project_file, "--database", address, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert out.read_text() == api.get("/export/table").text
    moved = Api(client_of(Project(Database(address))))
    assert moved.get("/progress") == api.get("/progress")
    assert moved.get("/verdicts") == api.get("/verdicts")
    moved.judge(moved.next(), "keep", "key-goes-on")
    assert len(moved.get("/verdicts")) == 11
    moved.client.app.state.review.project.database.close()
    assert run("review", project_file, "--database", address).exit_code == 2  # it is not empty any more
    assert run("review", "--database", "mysql://x/y").exit_code == 2


def test_responses_have_health_and_confusions(api):
    judge_some(api)
    lines = api.get("/responses")
    assert [line["suspicious"] for line in lines] == sorted((line["suspicious"] for line in lines), reverse=True)
    assert sum(line["findings"] for line in lines) == QUEUE
    assert all(sum(line["likely"]) == 400 for line in lines)
    one = api.get(f"/responses/{lines[0]['place']}")
    assert set(one["confusions"]) == {"instead", "together", "corrected_together"}
    api.get("/responses/99", status=404)


def test_a_project_with_verdicts_is_never_replaced(api, project_file, made):
    api.judge(api.next(), "keep", "key-a-verdict")
    result = run("audit", made / "visits.csv", "--labels", "dx_*", "--review", "--project", project_file, "--no-open")
    assert result.exit_code == 2
    assert "verdicts already" in " ".join(result.stderr.split())


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + b"x" * 5000])
def test_what_is_no_project_is_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "x.review"
    path.write_bytes(content)
    result = run("apply", path, "-o", tmp_path / "out.csv")
    assert result.exit_code == 2, result.stderr
    assert len(result.stderr.strip().splitlines()) <= 3
    assert run("review", tmp_path / "nothing.review").exit_code == 2


def test_rerank_audits_with_the_learner_that_was_asked_for(made, tmp_path):
    data = read(made / "visits.csv", labels=["dx_*", "rx_*"], id="visit_id")
    none, empty = np.empty(0, np.intp), np.empty(0)
    nobody = Judged(none, empty.astype(bool), empty, none, none, {})
    auditing = {"model": "br", "learner": "naive-bayes", "score": "noise", "folds": 3, "random_state": 1}
    found, _ = reranked(data, nobody, auditing)
    model = BinaryRelevance("naive-bayes")
    expected = mcode.audit(data.X, named_responses(data), model=model, score="noise", folds=3, random_state=1)
    np.testing.assert_array_equal(found.outlier_score, expected.outlier_score)
