"""The commands on a file whose responses have several values."""

import json

import pandas as pd
import pytest

from categories import SEVERITY, clinic, with_errors
from cli.runner import run


@pytest.fixture(scope="module")
def clinic_file(tmp_path_factory):
    X, Y = clinic(400)
    recorded, rows, _ = with_errors(Y, 15)
    path = tmp_path_factory.mktemp("clinic") / "clinic.csv"
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(4)]).join(recorded)
    frame.insert(0, "patient", [f"P{i}" for i in range(len(frame))])
    frame.to_csv(path, index=False)
    return path, rows


LABELS = ("--labels", "severity,drug,admitted", "--id", "patient")


def test_an_audit_names_values_in_its_table_its_report_and_its_json(clinic_file, tmp_path):
    path, _ = clinic_file
    out, page = tmp_path / "found.csv", tmp_path / "report.html"
    result = run("audit", path, *LABELS, "--top", "20", "--csv", out, "--report", page, "--json")
    assert result.exit_code == 0, result.output
    table = pd.read_csv(out)
    of_severity = table[table.response == "severity"]
    assert set(of_severity.observed) | set(of_severity.expected) <= set(SEVERITY)
    assert (table.observed != table.expected).sum() > 10
    assert "expected `" in " ".join(of_severity.sentence.dropna())
    assert "3 values" in page.read_text()
    assert len(json.loads(result.stdout)["findings"]) == 20


def test_a_model_is_fitted_and_scores_a_file(clinic_file, tmp_path):
    path, _ = clinic_file
    model, out = tmp_path / "clinic.mcode", tmp_path / "scored.csv"
    assert run("fit", path, *LABELS, "-o", model).exit_code == 0
    result = run("score", model, path, "--csv", out)
    assert result.exit_code == 0, result.output
    scored = pd.read_csv(out)
    assert len(scored) == 400
    assert set(scored[scored.response == "severity"].expected) <= set(SEVERITY)


def test_a_column_with_many_values_is_refused_unless_asked_for(tmp_path):
    path = tmp_path / "many.csv"
    rows = "\n".join(f"{i},{i % 30},{i % 2}" for i in range(300))
    path.write_text(f"x,ward,dx\n{rows}\n")
    refused = run("audit", path, "--labels", "ward,dx")
    assert refused.exit_code == 2
    assert "max_values=30" in refused.output.replace("\n", " ")
    assert run("audit", path, "--labels", "ward,dx", "--max-values", "30", "--score", "complement").exit_code == 0
