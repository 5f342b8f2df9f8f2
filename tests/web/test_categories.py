"""Reviewing a table whose responses have several values: they are shown, and changed by hand to any of them."""

import pandas as pd
import pytest

from categories import SEVERITY, clinic, with_errors
from mcode.cli.auditing import run_audit
from mcode.cli.cut import CutRequest
from mcode.cli.reviewing import make_project
from mcode.data import read
from mcode.web.database import Database
from web.conftest import Api, client_of

READING = {"labels": ["severity", "drug", "admitted"], "id": "patient", "max_values": 20}


@pytest.fixture(scope="module")
def clinic_project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    X, Y = clinic(400)
    recorded, _, _ = with_errors(Y, 15)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(4)]).join(recorded)
    frame.insert(0, "patient", [f"P{i}" for i in range(len(frame))])
    path = folder / "clinic.csv"
    frame.to_csv(path, index=False)
    data = read(path, **READING)
    audited = run_audit(data, CutRequest.of(None, 20, None), model="dbr", score="noise")
    auditing = {"model": "dbr", "score": "noise", "folds": 5, "random_state": 0}
    made = make_project(audited, Database(folder / "clinic.review"), path, reading=READING, auditing=auditing, queue=30)
    yield made
    made.database.close()


def test_a_category_is_shown_and_changed_by_hand_to_any_of_its_values(clinic_project):
    client = client_of(clinic_project)
    api = Api(client)
    row = api.next()
    severity = next(response for response in row["responses"] if response["name"] == "severity")
    assert severity["choices"] == list(SEVERITY)
    wanted = next(code for code in (2, 1, 0) if code not in (severity["observed"], severity["expected"]))
    answer = api.judge(
        row, "change", "key-category-1", next={}, values=[{"response": severity["place"], "code": wanted}]
    )
    assert answer["recorded"]["status"] == "corrected"
    lines = api.get("/export/table").text.splitlines()
    assert lines[row["row"] + 1].split(",")[5] == SEVERITY[wanted]
    assert SEVERITY[wanted] in api.get("/export/patch").text
    refused = {"key": "key-category-2", "kind": "change", "seen": 0, "values": [{"response": 0, "code": 3}]}
    api.post(f"/rows/{answer['next']['row']}/verdicts", refused, status=422)


def test_an_accepted_repair_writes_the_expected_value(clinic_project):
    api = Api(client_of(clinic_project))
    row = api.next()
    while not any(change["name"] == "severity" for change in row["repair"]):
        row = api.judge(row, "keep", f"key-keep-{row['row']}", next={})["next"]
    change = next(change for change in row["repair"] if change["name"] == "severity")
    assert SEVERITY[change["code"]] == change["after"]
    values = [{"response": one["place"], "code": one["code"]} for one in row["repair"]]
    api.judge(row, "accept", "key-accept-category", values=values)
    line = api.get("/export/table").text.splitlines()[row["row"] + 1]
    assert line.split(",")[5] == change["after"]


def test_pages_show_how_many_values_there_are(clinic_project):
    client = client_of(clinic_project)
    headers = {"Authorization": "Bearer a-token-of-the-tests", "X-Reviewer": "anna"}
    assert "3 values" in client.get("/overview", headers=headers).text
    page = client.get("/responses/1", headers=headers)
    assert page.status_code == 200
    assert "<b>4</b><span>values</span>" in page.text


def test_verdicts_rerank_what_is_left(clinic_project):
    from mcode.web.reranking import rerank

    assert rerank(clinic_project) >= 1
    row = Api(client_of(clinic_project)).next()
    assert {response["name"] for response in row["responses"]} == {"severity", "drug", "admitted"}
