import csv
import json

import numpy as np
import pytest

from cli.runner import run
from mcode.cli.model_file import load_model
from mcode.data import read
from mcode.explain.finding import Finding
from mcode.own_words import named_responses
from mcode.report.table import COLUMNS

READ = ["--labels", "dx_*,rx_*", "--id", "visit_id"]


def lines(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def audited(visits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    out, report = folder / "findings.csv", folder / "report.html"
    result = run("audit", visits, *READ, "--top", 5, "--csv", out, "--report", report)
    return result, out, report


def test_audit_prints_what_was_found_and_why(audited):
    result = audited[0]
    assert result.exit_code == 0
    assert "visits.csv: 400 rows, 6 responses" in result.stdout
    assert "5 rows are flagged because the top 5 were asked for" in result.stdout
    assert "likely) although" in result.stdout
    assert "written:" in result.stderr


def test_audit_writes_every_row_most_suspicious_first(audited):
    rows = lines(audited[1])
    assert list(rows[0]) == ["visit_id", *COLUMNS]
    assert len({row["visit_id"] for row in rows}) == 400
    assert [int(row["rank"]) for row in rows] == list(range(1, 401))
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert [bool(row["sentence"]) for row in rows] == [True] * 5 + [False] * 395


def test_audit_writes_a_report_of_the_same_findings(audited):
    html = audited[2].read_text(encoding="utf-8")
    assert html.count("<article") == 5
    for row in lines(audited[1])[:5]:
        assert f"visit_id {row['visit_id']}" in html


def test_json_is_the_only_output_and_its_findings_round_trip(visits):
    result = run("audit", visits, *READ, "--rate", 0.005, "--score", "noise", "--json")
    found = json.loads(result.stdout)
    assert found["summary"]["cut"]["n_flagged"] == 2
    assert [Finding.from_dict(part).rank for part in found["findings"]] == [1, 2]


def test_quiet_prints_nothing(visits, tmp_path):
    out = tmp_path / "out.jsonl"
    result = run("audit", visits, *READ, "--score", "noise", "--quiet", "-o", out)
    assert (result.stdout, result.stderr) == ("", "")
    assert len(out.read_text(encoding="utf-8").splitlines()) == 400


@pytest.mark.parametrize(("threshold", "code"), [(0.0, 1), (1.0, 0)])
def test_fail_above_decides_the_exit_code(visits, threshold, code):
    result = run("audit", visits, *READ, "--score", "complement", "--quiet", "--fail-above", threshold)
    assert result.exit_code == code


def test_the_false_discovery_cut_is_the_default(visits):
    result = run("audit", visits, *READ, "--score", "noise", "--json")
    cut = json.loads(result.stdout)["summary"]["cut"]
    assert (cut["kind"], cut["level"]) == ("fdr", 0.1)
    assert cut["expected_false_alarms"] <= 0.1 * cut["n_flagged"] + 1e-9


def test_rows_without_an_id_are_counted(visits, tmp_path):
    out = tmp_path / "out.csv"
    run("audit", visits, "--labels", "dx_*,rx_*", "--ignore", "visit_id", "--score", "noise", "-q", "-o", out)
    assert sorted(int(row["row"]) for row in lines(out)) == list(range(400))


def test_values_are_written_as_the_table_writes_them(visits, tmp_path):
    table, out = tmp_path / "texts.csv", tmp_path / "out.csv"
    frame = read_frame(visits)
    frame["dx_copd"] = np.where(frame["dx_copd"] == 1, "yes", "no")
    frame["dx_diabetes"] = np.where(frame["dx_diabetes"] == 1, "A", "B")
    frame.to_csv(table, index=False)
    assert run("audit", table, *READ, "--score", "noise", "--top", 40, "-q", "-o", out).exit_code == 0
    written = {}
    for row in lines(out):
        written.setdefault(row["response"], set()).update((row["observed"], row["expected"]))
    assert written["dx_copd"] == {"yes", "no"}
    assert written["dx_diabetes"] == {"A", "B"}
    assert written["dx_hypertension"] == {"0", "1"}


def read_frame(path):
    import pandas as pd

    return pd.read_csv(path)


def test_info_says_what_a_model_was_fitted_on(model):
    facts = json.loads(run("info", model, "--json").stdout)
    assert facts["responses"][0] == "dx_diabetes"
    assert facts["reference rows"] == 400
    assert "hba1c" in run("info", model).stdout


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json", ".jsonl"])
def test_score_writes_the_same_in_every_format_and_in_any_chunks(model, visits, tmp_path, suffix):
    whole, parts = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    assert run("score", model, visits, "-o", whole).exit_code == 0
    assert run("score", model, visits, "-o", parts, "--chunk", 150).exit_code == 0
    table, again = load(whole), load(parts)
    assert list(table.columns) == ["visit_id", *COLUMNS]
    assert table["visit_id"].tolist() == read_frame(visits)["visit_id"].tolist()
    assert sorted(table["rank"]) == list(range(1, 401))
    assert table["rank"].tolist() == again["rank"].tolist()
    assert np.allclose(table["score"], again["score"], rtol=1e-5)


def load(path):
    import pandas as pd

    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_json(path, lines=path.suffix == ".jsonl")


def test_score_writes_what_the_detector_says(model, visits, tmp_path):
    out = tmp_path / "out.csv"
    run("score", model, visits, "-o", out, "-q")
    table, saved = load(out), load_model(model)
    data = read(visits, like=saved.schema)
    Y = named_responses(data)
    assert np.allclose(table["score"], saved.detector.outlier_score(data.X, Y))
    assert np.allclose(table["p_value"], saved.detector.p_value(data.X, Y))
    assert np.allclose(table["error_probability"], saved.detector.error_probability(data.X, Y))


def test_score_fails_above(model, visits, tmp_path):
    out = tmp_path / "out.csv"
    assert run("score", model, visits, "-o", out, "-q", "--fail-above", 0.0).exit_code == 1
    assert len(lines(out)) == 400


def test_score_explains_suspicious_rows(model, visits, tmp_path):
    out = tmp_path / "out.csv"
    run("score", model, visits, "-o", out, "-q", "--explain-above", 0.3)
    for row in lines(out):
        assert bool(row["sentence"]) == (float(row["error_probability"]) >= 0.3)


def test_explain_tells_all_about_one_row(model, visits):
    result = run("explain", model, visits, "--row", "V000007")
    assert result.exit_code == 0
    for word in ("visit_id V000007", "Repair:", "Responses", "dx_diabetes"):
        assert word in result.stdout
    found = json.loads(run("explain", model, visits, "--row", "V000007", "--json").stdout)
    assert (found["row"], found["id"], len(found["responses"])) == (7, "V000007", 6)


def test_tags_in_one_column_are_responses(visits, tmp_path):
    frame = read_frame(visits)
    names = [name for name in frame if name[:3] in ("dx_", "rx_")]
    frame["tags"] = ["|".join(name for name in names if row[name]) for _, row in frame.iterrows()]
    table = tmp_path / "tags.csv"
    frame.drop(columns=names).to_csv(table, index=False)
    result = run("audit", table, "--tags-column", "tags", "--separator", "|", "--id", "visit_id", "--score", "noise")
    assert "400 rows, 6 responses" in result.stdout


def test_demo_compares_with_the_truth(tmp_path):
    result = run("demo", "--rows", 600, "--out", tmp_path / "demo", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["wrong"] == 12
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"visits.csv", "findings.csv", "report.html"}
    assert len(read(tmp_path / "demo" / "visits.csv", labels=["dx_*", "rx_*"], id="visit_id")) == 600


def test_version_is_said():
    assert run("--version").stdout.startswith("mcode ")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        *[("--model", name) for name in ("tree", "chain-ensemble", "mixture")],
        *[("--learner", name) for name in ("svm", "naive-bayes", "boosting")],
    ],
)
def test_audit_takes_models_and_learners_by_name(visits, option, name):
    result = run("audit", visits, *READ, "--top", 3, "--score", "noise", option, name, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert len(found["findings"]) == 3
    assert name in found["summary"]["model"]


def test_fit_keeps_the_learner_that_was_asked_for(visits, tmp_path):
    path = tmp_path / "bayes.mcode"
    fitted = run("fit", visits, *READ, "--model", "tree", "--learner", "naive-bayes", "--score", "noise", "-o", path)
    assert fitted.exit_code == 0, fitted.stderr
    assert json.loads(run("info", path, "--json").stdout)["model"] == "TreeRelevance(learner='naive-bayes')"


def test_a_learner_that_does_not_exist_is_refused(visits):
    result = run("audit", visits, *READ, "--learner", "svn")
    assert result.exit_code == 2
    assert "Did you mean 'svm'?" in result.stderr
