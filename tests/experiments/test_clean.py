"""The clean protocol: what is injected, that the methods are what they are called, and that a run can be stopped."""

import numpy as np
import pytest
from cleanlab.multilabel_classification import get_label_quality_scores

import mcode
from mcode._progress import reporting
from mcode.experiments import clean, clean_tables, rivals
from mcode.experiments.blame import run_blame
from mcode.experiments.clean import CleanPlan, CleanUnit, Halves, Stopwatch, run_clean
from mcode.experiments.clean_tables import NAMES, blocks, report_clean
from mcode.experiments.datasets import DataFolder, Table
from mcode.experiments.injection import KINDS, parts, with_errors, with_errors_of_all_kinds
from mcode.experiments.metrics import auc
from mcode.experiments.results import Results
from mcode.experiments.rivals import METHODS, hamming_to_nearest
from mcode.experiments.seen import Rows
from mcode.experiments.seen import Table as Seen
from mcode.models import BinaryRelevance, ClassifierChain
from tables import dependent_table, sparse_table


@pytest.fixture(scope="module")
def table():
    return dependent_table(n=160, m=4, d=5, seed=4)


@pytest.fixture(scope="module")
def read(table):
    return Seen(*table, final=True)


@pytest.fixture
def few_methods(monkeypatch):
    """Take three methods only, for tests of the machinery."""
    few = {name: METHODS[name] for name in (rivals.DEFAULT, "MCODE-ComP", "ECOD y")}
    monkeypatch.setattr(clean, "METHODS", few)
    return few


@pytest.mark.parametrize("kind", KINDS)
def test_two_percent_of_the_rows_are_wrong_and_no_others(table, kind):
    Y = np.vstack([table[1]] * 4)
    changed, wrong = with_errors(Y, KINDS[kind], 0.02, np.random.default_rng(0))
    assert wrong.sum() == 13
    np.testing.assert_array_equal((changed != Y).any(axis=1), wrong)


def test_contamination_changes_at_most_its_share_of_rows(table):
    Y = table[1]
    changed = (with_errors_of_all_kinds(Y, 0.1, np.random.default_rng(0)) != Y).any(axis=1)
    assert 8 <= changed.sum() <= 16
    np.testing.assert_array_equal(with_errors_of_all_kinds(Y, 0.0, np.random.default_rng(0)), Y)


def test_injections_share_no_row():
    changed = np.arange(100) % 3 > 0
    sets = list(parts(changed, 0.05, np.random.default_rng(0)))
    together = np.concatenate(sets)
    assert len(sets) == 13
    assert len(set(together)) == len(together)
    assert changed[together].all()


def test_default_is_what_audit_and_detector_give(table, read):
    X, Y = table
    method = METHODS[rivals.DEFAULT]()
    np.testing.assert_allclose(method.fit(read), mcode.audit(X, Y).outlier_score)
    new_X, new_Y = dependent_table(n=30, m=4, d=5, seed=9)
    detector = mcode.MCODE().fit(X, Y)
    np.testing.assert_allclose(method.score(Rows(read, new_X, new_Y)), detector.outlier_score(new_X, new_Y))


@pytest.mark.parametrize(
    ("name", "model", "score"),
    [
        ("MCODE-ComP", "dbr", "complement"),
        ("MCODE-Linf", "dbr", "norm"),
        ("chain complement", "chain", "complement"),
        ("BR complement", BinaryRelevance(), "complement"),
        ("chain Linf", ClassifierChain(), "norm"),
        ("DBR noise", "dbr", "noise"),
        ("chain noise", "chain", "noise"),
        ("BR noise", "br", "noise"),
        ("chain learned", "chain", "learned"),
        ("BR learned", "br", "learned"),
    ],
)
def test_methods_over_rho_are_detectors_of_the_library(table, read, name, model, score):
    X, Y = table
    method = METHODS[name]()
    np.testing.assert_allclose(method.fit(read), mcode.audit(X, Y, model=model, score=score).outlier_score, rtol=1e-6)


def test_cleanlab_gets_out_of_fold_probabilities_and_its_sign_is_turned(table, read):
    found = mcode.audit(*table, model="br", score="complement")
    probability = np.where(table[1] == 1, found.rho, 1 - found.rho)
    labels = [list(np.flatnonzero(y)) for y in table[1]]
    theirs = get_label_quality_scores(labels, probability)
    np.testing.assert_allclose(METHODS["cleanlab self-confidence"]().fit(read), -theirs)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_scores_its_table_and_other_rows(table, read, name):
    method = METHODS[name]()
    own = method.fit(read)
    assert own.shape == (160,)
    X, Y = dependent_table(n=30, m=4, d=5, seed=9)
    score = method.score(Rows(read, X, Y))
    assert score.shape == (30,)
    assert not np.isnan(np.concatenate([own, score])).any()
    if not method.whole_batch:
        alone = method.score(Rows(read, X[:1], Y[:1]))
        np.testing.assert_allclose(alone, score[:1], rtol=1e-5, atol=1e-8)


def test_wide_sparse_tables_are_narrowed_for_pyod():
    X, Y = sparse_table(n=80, m=300, d=4, seed=1, density=0.02)
    read = Seen(X, Y, final=False)
    assert read.own.narrow_joint.shape == (80, 204)
    variance = X.toarray().var(axis=0)
    chosen = read.widest_features
    assert variance[chosen].min() >= np.sort(variance)[-201] - 1e-12


def test_nearest_label_set_agrees_with_a_loop(table):
    Y, sets = table[1][:20], table[1][20:40]
    slow = [min((y != other).sum() for other in sets) for y in Y]
    np.testing.assert_array_equal(hamming_to_nearest(Y, sets), slow)


def test_base_rate_orders_rows_by_the_product_of_shares(table, read):
    Y = table[1]
    rate = (Y.sum(axis=0) + 0.5) / (len(Y) + 1)
    slow = [-sum(np.log(r if y else 1 - r) for y, r in zip(row, rate, strict=True)) for row in Y]
    order = np.argsort(slow)
    found = METHODS["base rate"]().fit(read)
    assert (np.diff(found[order]) > -1e-2).all()


def test_injections_into_the_other_half_are_those_of_a_plain_loop(table):
    data = Table("emotions", *table)
    halves = Halves(data, 0.0, 0, ["MCODE-ComP"], Stopwatch())
    measured = np.array(halves.measure("three flips", [1], 2)["MCODE-ComP"])
    other = KINDS["three flips"].corrupt(data.Y, np.random.default_rng(data.seed(1, 0)))
    right, wrong = halves._scores(data.Y, ["MCODE-ComP"]), halves._scores(other, ["MCODE-ComP"])
    everywhere = auc(np.repeat([False, True], len(data.Y)), np.concatenate([right["MCODE-ComP"], wrong["MCODE-ComP"]]))
    assert measured[:53, 0].mean() == pytest.approx(everywhere, abs=0.02)
    assert (measured >= 0).all()
    assert (measured <= 1).all()


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(data_folder, few_methods, tmp_path):
    plan = CleanPlan(
        ("genbase",), most_rows=120, levels=(0.05,), kinds=("one flip",), most_copies=1, most_repetitions=1
    )
    data = DataFolder(data_folder)
    whole = run_clean(plan, data, tmp_path / "whole")[0].path.read_bytes()

    class Killed(BaseException):
        pass

    def kill(stage, done, total):
        if stage == "clean protocol" and done == 1:
            raise Killed

    with pytest.raises(Killed), reporting(kill):
        run_clean(plan, data, tmp_path / "killed")
    path = tmp_path / "killed" / "rows.csv"
    path.write_bytes(path.read_bytes()[:-3])
    again = run_clean(plan, data, tmp_path / "killed", redo=["MCODE-ComP"])[0]
    assert again.path.read_bytes() == whole


def test_units_begin_with_one_audit_of_everything():
    units = list(CleanPlan().units())
    once = len(clean.SETS) * 6
    assert {unit.setting for unit in units[:once]} == {"audit"}
    assert {unit.repetition for unit in units[:once]} == {0}
    assert units[once] == CleanUnit("split", "emotions", 0.0, "", 0)
    assert len(set(units)) == len(units)


def test_reports_name_where_the_default_loses(tmp_path):
    results = Results(
        tmp_path / "rows.csv", clean.KEYS, ("injections", *clean.MEASURES, *(f"{m}_error" for m in clean.MEASURES))
    )
    rng, rows = np.random.default_rng(0), []
    for data in ("yeast", "enron", "medical"):
        for kind in KINDS:
            for setting, level in (("audit", 0.02), ("split", 0.0), ("split", 0.05)):
                key = {"setting": setting, "data": data, "contamination": level, "kind": kind, "repetition": 0}
                for name in NAMES:
                    value = float(0.5 + 0.1 * rng.random()) + 0.3 * (name == rivals.DEFAULT)
                    if (name, data, kind) == ("LOF", "yeast", "one flip"):
                        value = 0.95
                    values = dict.fromkeys(clean.MEASURES, value)
                    errors = {f"{m}_error": "" if setting == "audit" else 0.001 for m in clean.MEASURES}
                    rows.append({**key, "method": name, "injections": 1, **values, **errors})
    results.append(rows)
    blame = Results(tmp_path / "blame.csv", ("data", "kind", "method"), ("rows", "named"))
    written = report_clean(results, blame, tmp_path / "out")
    losses = (tmp_path / "out" / "losses-audit.csv").read_text().splitlines()
    assert losses[1].startswith("Yeast,one flip,AUC,0.8")
    assert len(losses) == 3
    found = blocks(results.rows(), "audit", 0.02, "auc")
    assert found.values.shape == (18, len(NAMES))
    assert found.by_data_set().shape == (3, len(NAMES))
    assert all(path.exists() for path in written)
    assert any(path.name == "contamination.svg" for path in written)


def test_named_responses_are_counted_on_rows_with_one_error(tmp_path, table):
    results = run_blame([Table("yeast", *table)], 0, tmp_path)
    assert len(results.rows()) == 6
    assert all(0.2 < float(row["named"]) <= 1.0 for row in results.rows() if row["kind"] == "one flip")
    again = run_blame([Table("yeast", *table)], 0, tmp_path)
    assert again.rows() == results.rows()


def test_a_slow_method_is_measured_on_fewer_sets_and_stands_in_a_table_of_its_own():
    once, again, other = (
        clean.CleanUnit("audit", data, 0.02, "one flip", repetition)
        for data, repetition in (("emotions", 0), ("emotions", 1), ("bibtex", 0))
    )
    assert "SongCAD" in clean.measured_in(once)
    assert "SongCAD" not in clean.measured_in(again)
    assert "SongCAD" not in clean.measured_in(other)
    assert "SongCAD" not in clean_tables.NAMES
    run = {"data": "emotions", "setting": "audit", "contamination": "0.02", "repetition": "0"}
    rows = [
        {**run, "kind": kind, "method": method, "auc": value, "ap": "0.1"}
        for kind, method, value in (
            ("one flip", "SongCAD", "0.6"),
            ("one added", "SongCAD", "0.8"),
            ("one flip", rivals.DEFAULT, "0.7"),
            ("one added", rivals.DEFAULT, "0.9"),
            ("three flips", rivals.DEFAULT, "0.99"),  # a kind that the other lacks
        )
    ]
    table = clean_tables.fewer_sets(rows)
    cells = [cell.text for cell in table.rows[0]]
    assert cells == ["SongCAD", "Emotions", "audit, 2 % wrong", "0.700 / 0.100", "0.800 / 0.100", "2"]
    assert clean_tables.fewer_sets(rows[2:]) is None


def test_song_is_the_detector_of_the_library(table, read):
    X, Y = table
    detector = mcode.SongCAD().fit(X, Y)
    method = METHODS["SongCAD"]()
    np.testing.assert_allclose(method.fit(read), detector.reference_score_)
    np.testing.assert_allclose(method.score(Rows(read, X[:9], Y[:9])), detector.outlier_score(X[:9], Y[:9]))
