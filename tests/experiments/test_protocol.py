"""The paper's protocol: what is injected, what is shared, and what a stopped run ends with."""

from dataclasses import asdict

import numpy as np
import pytest

from mcode._progress import reporting
from mcode.experiments.datasets import DataFolder, NoDataError, sample
from mcode.experiments.methods import PAPER, Case, Trained
from mcode.experiments.protocol import PaperProtocol, Plan, Unit, flip_cells, flip_in_rows, run_paper
from mcode.scores import LOFScore


@pytest.fixture
def plan():
    return Plan("1", ("genbase", "corel5k"), repeats=1, folds=2, bootstrap=400)


def test_half_a_percent_of_n_cells_are_flipped():
    Y = np.zeros((5000, 20), np.uint8)
    changed = flip_cells(Y, np.random.default_rng(0)) != Y
    assert changed.sum() == 25
    assert changed.any(axis=1).sum() <= 25


@pytest.mark.parametrize("p", [1, 4])
def test_half_a_percent_of_the_rows_have_p_flipped_cells(p):
    Y = np.zeros((5000, 20), np.uint8)
    changed = (flip_in_rows(Y, p, np.random.default_rng(0)) != Y).sum(axis=1)
    assert sorted(np.unique(changed)) == [0, p]
    assert (changed == p).sum() == 25


def test_plans_of_the_paper_have_its_numbers():
    first, second = (Plan.of(which, quick=False, seed=0) for which in "12")
    assert (first.repeats, first.folds, first.bootstrap, first.dimensions) == (3, 10, 5000, (0,))
    assert second.dimensions == tuple(range(1, 11))
    assert second.sets == ("mediamill_sample", "bibtex", "corel5k")
    assert len(list(first.units())) == 7 * 30


def test_half_of_the_training_rows_are_held_out(data_folder):
    table = DataFolder(data_folder).table("genbase")
    trained = Trained.on(table.X, table.Y, np.random.default_rng(0))
    assert len(trained.Y) == len(table.Y) // 2
    case = Case(trained, table.X[:60], table.Y[:60])
    for name, method in PAPER.items():
        score = method(case)
        assert score.shape == (60,), name
        assert not np.isnan(score).any(), name


def test_copies_of_a_dense_row_have_the_same_bits():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, 120)).astype(np.float32), (rng.random((200, 60)) < 0.3).astype(np.uint8)
    trained = Trained.on(X, Y, rng)
    each = trained.rho(X[:30], Y[:30])
    drawn = rng.choice(30, 1000)
    rho = trained.rho(X[drawn], Y[drawn])
    np.testing.assert_allclose(rho, each[drawn], rtol=1e-4)
    assert len(np.unique(rho, axis=0)) == len(np.unique(drawn))


def test_features_that_no_row_has_do_not_change_scores(data_folder):
    table = DataFolder(data_folder).table("corel5k")
    trained = Trained.on(table.X, table.Y, np.random.default_rng(0))
    case = Case(trained, table.X[:40], table.Y[:40])
    assert case.joint_without_empty_columns.shape[1] < case.joint.shape[1]
    whole = LOFScore(30).fit_outlier_score(case.joint)
    np.testing.assert_allclose(PAPER["LOF"](case), whole, rtol=1e-9)


def test_all_methods_of_a_fold_see_the_same_wrong_rows(data_folder, plan):
    protocol = PaperProtocol(plan, DataFolder(data_folder))
    together, _ = protocol.rows(Unit("genbase", 0, 1, 0), list(PAPER))
    alone, _ = PaperProtocol(plan, DataFolder(data_folder)).rows(Unit("genbase", 0, 1, 0), ["MCODE-LOF"])
    assert alone[0] == next(row for row in together if row["method"] == "MCODE-LOF")


def test_two_runs_with_one_seed_give_the_same_bits_and_another_seed_does_not(data_folder, plan, tmp_path):
    files = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        seeded = Plan(**{**asdict(plan), "seed": seed})
        files.append(run_paper(seeded, DataFolder(data_folder), tmp_path / name).path.read_bytes())
    assert files[0] == files[1]
    assert files[0] != files[2]


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(data_folder, plan, tmp_path):
    data = DataFolder(data_folder)
    whole = run_paper(plan, data, tmp_path / "whole").path.read_bytes()

    class Killed(BaseException):
        pass

    def kill_after_two(stage, done, total):
        if stage == "experiment 1" and done == 2:
            raise Killed

    with pytest.raises(Killed), reporting(kill_after_two):
        run_paper(plan, data, tmp_path / "killed")
    path = tmp_path / "killed" / "rows.csv"
    path.write_bytes(path.read_bytes()[:-7])  # killed while it wrote
    assert run_paper(plan, data, tmp_path / "killed").path.read_bytes() == whole


def test_a_method_can_be_measured_again_alone(data_folder, plan, tmp_path):
    data = DataFolder(data_folder)
    before = run_paper(plan, data, tmp_path).path.read_bytes()
    assert run_paper(plan, data, tmp_path, redo=["LOF"]).path.read_bytes() == before


def test_a_missing_data_set_is_named_before_any_work(tmp_path):
    with pytest.raises(NoDataError, match="--data"):
        run_paper(Plan("1", ("genbase",)), DataFolder(tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_sample_keeps_rows_together_and_small_tables_whole(data_folder):
    table = DataFolder(data_folder).table("genbase")
    assert sample(table, 1000, 0) is table
    part = sample(table, 20, 0)
    assert part.X.shape[0] == len(part.Y) == 20
    rows = {tuple(x) + tuple(y) for x, y in zip(table.X, table.Y, strict=True)}
    assert all(tuple(x) + tuple(y) in rows for x, y in zip(part.X, part.Y, strict=True))
