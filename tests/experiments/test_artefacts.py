"""Copies, covariances, shifted labels, likelihoods: on small tables where the answer is known."""

import numpy as np
import pytest

from experiments.conftest import save
from mcode.experiments.artefacts import report_artefacts, run_artefacts, shift_rows
from mcode.experiments.datasets import DataFolder, Table
from mcode.experiments.likelihood import FOLDS, report_likelihood, run_likelihood
from mcode.experiments.run import run_experiment
from mcode.models import BinaryRelevance
from mcode.models.folds import stratified_folds
from tables import dependent_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets")
    save(path / "genbase.npz", *dependent_table(n=300, m=4, d=5, seed=1))
    save(path / "medical.npz", *dependent_table(n=200, m=4, d=5, seed=2))
    return path


def test_more_copies_than_neighbours_reveal_every_wrong_row(folder, tmp_path):
    found = run_artefacts(DataFolder(folder), tmp_path, quick=True, seed=0)
    value = {(row["space"], int(row["copies"]), int(row["k"])): float(row["auc"]) for row in found["copies"].rows()}
    assert value["[x, y]", 50, 30] == 1.0
    assert value["[x, y]", 20, 10] == 1.0
    assert value["[x, y]", 1, 10] < 0.95
    singular = found["singular"].rows()[0]
    assert int(singular["distinct_in_half"]) <= int(singular["distinct"]) <= 30 + 25
    written = report_artefacts(found, tmp_path)
    assert {path.name for path in written} >= {"copies.svg", "table.md", "singular-table.md"}


def test_labels_moved_by_a_column_raise_alarms():
    X, Y = dependent_table(n=400, m=6, d=6, seed=3)
    shifted = Y.copy()
    shifted[200:, :-1], shifted[200:, -1] = Y[200:, 1:], 0
    published, repaired = shift_rows(Table("reuters", X, shifted), Table("reuters_aligned", X, Y))
    assert published["rows"] == repaired["rows"] == 200
    assert published["mean_error_probability"] > 1.5 * repaired["mean_error_probability"]
    assert published["alarms"] > repaired["alarms"]
    assert published["better_moved_back"] > 3 * repaired["better_moved_back"]


def test_likelihood_is_the_mean_over_held_out_rows(folder, tmp_path):
    results = run_likelihood(DataFolder(folder), tmp_path, quick=True, seed=0)
    table = DataFolder(folder).table("medical")
    fold_of_row = stratified_folds(table.Y, FOLDS, np.random.default_rng(table.seed(0)))
    cross = BinaryRelevance().cross_fit(table.X, table.Y, fold_of_row, final=False)
    slow = cross.folds[2].log_proba(table.X[fold_of_row == 2], table.Y[fold_of_row == 2]).sum(axis=1).mean()
    row = next(row for row in results.rows() if row["method"] == "BR" and row["fold"] == "2")
    assert float(row["log_likelihood"]) == pytest.approx(slow, abs=1e-5)
    assert report_likelihood(results, tmp_path)


def test_every_experiment_runs_by_its_name(folder, tmp_path):
    for which in ("likelihood", "artefacts"):
        written = run_experiment(which, tmp_path / which, folder, quick=True)
        assert all(path.exists() for path in written)
