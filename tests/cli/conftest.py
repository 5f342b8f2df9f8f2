"""One small table of clinic visits with errors, and a model fitted on it, for all tests of the command line."""

import pytest

from cli.runner import run
from mcode.data.synthetic import clinic_visits

LABELS = "dx_diabetes,dx_hypertension,dx_copd,rx_metformin,rx_bronchodilator,rx_ace_inhibitor"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("visits")


@pytest.fixture(scope="session")
def visits(folder):
    """Return the path of a table of 400 visits; few columns, so that an audit takes a second."""
    path = folder / "visits.csv"
    frame = clinic_visits(400, error_rate=0.03, random_state=1).to_pandas()
    keep = ["visit_id", "age", "sex", "smoker", "systolic", "hba1c", "oxygen", *LABELS.split(",")]
    frame[keep].to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model(folder, visits):
    """Return the path of a model fitted on the visits."""
    path = folder / "visits.mcode"
    result = run("fit", visits, "--labels", "dx_*,rx_*", "--id", "visit_id", "--score", "noise", "-o", path)
    assert result.exit_code == 0, result.stderr
    return path


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
