"""The clean protocol: what is injected, that the methods are what they are called, and that a run can be stopped."""

import gc
import json
import weakref

import numpy as np
import pytest
from cleanlab.multilabel_classification import get_label_quality_scores

import mcode
from mcode._progress import reporting
from mcode.experiments import clean, clean_tables, metrics, rivals, seen
from mcode.experiments.blame import COPIES, MOST_ROWS, blame_results, in_audit, run_blame
from mcode.experiments.clean import CleanPlan, CleanUnit, audit_cells, is_wanted, run_clean
from mcode.experiments.clean_tables import NAMES, blocks, report_clean
from mcode.experiments.datasets import DataFolder, Table
from mcode.experiments.estimate import over_fits
from mcode.experiments.injection import KINDS, SHARE, parts, with_errors, with_errors_of_all_kinds
from mcode.experiments.judges import Audited, Halves
from mcode.experiments.measuring import Effort, measure
from mcode.experiments.metrics import all_of, auc
from mcode.experiments.results import OtherSettingsError, Results
from mcode.experiments.rivals import METHODS, hamming_to_nearest
from mcode.experiments.seen import Rows
from mcode.experiments.seen import Table as Seen
from mcode.experiments.stopwatch import Stopwatch
from mcode.models import BatchLogistic, BinaryRelevance, ClassifierChain, DependentRelevance
from mcode.spaces.rho import RhoSpace
from tables import dependent_table, sparse_table


@pytest.fixture(scope="module")
def table():
    return dependent_table(n=160, m=4, d=5, seed=4)


@pytest.fixture(scope="module")
def read(table):
    return Seen(*table, final=True)


@pytest.fixture
def few_methods(monkeypatch):
    """Take four methods only, for tests of the machinery."""
    few = {name: METHODS[name] for name in (rivals.DEFAULT, "MCODE-ComP", "MCODE-LOF", "ECOD y")}
    monkeypatch.setattr(clean, "METHODS", few)
    return few


@pytest.mark.parametrize("kind", KINDS)
def test_two_percent_of_the_rows_are_wrong_and_no_others(table, kind):
    Y = np.vstack([table[1]] * 4)
    changed, wrong = with_errors(Y, KINDS[kind], 0.02, np.random.default_rng(0))
    assert wrong.sum() == 13
    np.testing.assert_array_equal((changed != Y).any(axis=1), wrong)


def test_contamination_changes_its_share_of_rows_and_no_others(table):
    Y = np.vstack([table[1]] * 4)
    changed, wrong = with_errors_of_all_kinds(Y, 0.1, np.random.default_rng(0))
    assert wrong.sum() == 64
    np.testing.assert_array_equal((changed != Y).any(axis=1), wrong)
    assert set((changed != Y).sum(axis=1)) >= {0, 1, 2, 3}  # one flip, a swap, three flips
    np.testing.assert_array_equal(with_errors_of_all_kinds(Y, 0.0, np.random.default_rng(0))[0], Y)


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
    never = Effort(target=0.0, most_copies=2, most_exact=0)
    measured = np.array(measure(halves, ["MCODE-ComP"], "three flips", [1], never)["MCODE-ComP"].approximate)
    other = KINDS["three flips"].corrupt(data.Y, np.random.default_rng(data.seed(1, 0)))
    right, wrong = (halves.copy_scores("MCODE-ComP", halves.copies(Y)) for Y in (data.Y, other))
    everywhere = auc(np.repeat([False, True], len(data.Y)), np.concatenate([right, wrong]))
    assert len(measured) == 2 * 53
    assert measured[:53, 0].mean() == pytest.approx(everywhere, abs=0.02)
    assert (measured >= 0).all()
    assert (measured <= 1).all()


@pytest.fixture(scope="module")
def audited(table):
    """Return a table with wrong rows, fitted by one method of each family, and which rows are wrong."""
    data = Table("emotions", *table)
    Y, wrong = with_errors(data.Y, KINDS["one flip"], 0.02, np.random.default_rng(3))
    names = [rivals.DEFAULT, "MCODE-ComP", "cleanlab margin", "base rate", "nearest label set", "MCODE-LOF", "ECOD y"]
    return Audited(data, Y, wrong, names, Stopwatch()), Y, wrong


def test_rows_of_an_audit_that_are_not_wrong_keep_their_scores(audited, table):
    judge, Y, wrong = audited
    for name in (rivals.DEFAULT, "MCODE-ComP", "cleanlab margin", "base rate", "nearest label set"):
        whole = METHODS[name]().fit(Seen(table[0], Y, final=False))
        np.testing.assert_allclose(judge.right[name], whole[~wrong])
        # a copy without an error is the row itself: the learned score must take the contrasts of the row's own fold
        again = judge.copy_scores(name, judge.copies(Y[judge.ranked]))
        np.testing.assert_allclose(again, judge.right[name], rtol=1e-6, atol=1e-9)


class _FixedFolds(Seen):
    """A table whose folds and penalty are given, so that one changed row changes nothing but what is fitted on it."""

    def __init__(self, X, Y, folds):
        super().__init__(X, Y, final=False)
        self.folds = folds

    def space(self, name):
        if name not in self._spaces:
            model = {"DBR": DependentRelevance, "BR": BinaryRelevance}[name](BatchLogistic(penalty=1.0))
            self._spaces[name] = RhoSpace(model).fit(self.X, self.Y, self.folds, final=False)
        return self._spaces[name]


@pytest.mark.parametrize(
    "name", ["MCODE-ComP", "MCODE-Linf", "BR complement", "cleanlab self-confidence", "nearest label set"]
)
def test_the_copy_of_a_row_has_the_score_of_an_audit_in_which_that_row_is_wrong(table, name):
    # Exact for what is fitted fold by fold. The search for a penalty pools all folds and the folds themselves are
    # stratified by Y, so both are given; base rates count all rows, so scores that use them are only nearly the same.
    X, Y = table
    folds = Seen(X, Y, final=False).folds
    other = KINDS["three flips"].corrupt(Y, np.random.default_rng(5))
    read = _FixedFolds(X, Y, folds)
    method = METHODS[name]()
    right = method.fit(read)
    copies = method.score(read.with_responses(other, np.arange(len(Y))))
    for row in (0, 17, 101):
        changed = Y.copy()
        changed[row] = other[row]
        audit = METHODS[name]().fit(_FixedFolds(X, changed, folds))
        assert audit[row] == pytest.approx(copies[row], rel=1e-6, abs=1e-9)
        # what was fitted *with* the row does change, and rows of its own fold do not
        mates = (folds == folds[row]) & (np.arange(len(Y)) != row)
        np.testing.assert_allclose(audit[mates], right[mates], rtol=1e-6, atol=1e-9)
    assert not np.allclose(copies, right)


@pytest.mark.parametrize("name", ["MCODE-LOF", "ECOD y"])
def test_methods_that_look_at_all_rows_are_fitted_on_the_mixed_rows(audited, name):
    judge, Y, _ = audited
    other = KINDS["one flip"].corrupt(judge.table.Y, np.random.default_rng(0))[judge.ranked]
    injected = np.arange(len(judge.ranked)) % 40 == 3
    found = judge.scores_with(name, injected, judge.copies(other))
    mixed = np.where(injected[:, None], other, Y[judge.ranked])
    slow = METHODS[name]().fit_among(judge.read.with_responses(mixed, judge.ranked))
    np.testing.assert_allclose(found, slow, rtol=1e-6)


def test_an_audit_injects_what_a_plain_loop_injects(audited):
    judge, Y, wrong = audited
    effort = Effort(target=0.0, most_copies=1, most_exact=5)
    found = measure(judge, ["MCODE-ComP", "MCODE-LOF"], "one flip", [9], effort)
    rng = np.random.default_rng(judge.table.seed(9, 0))
    other = KINDS["one flip"].corrupt(judge.table.Y, rng)[~wrong]
    panel = judge.read.reread("DBR")(other, np.flatnonzero(~wrong))
    copies, right = -panel.views["model"].sum(axis=1), judge.right["MCODE-ComP"]
    for number, rows in enumerate(parts(np.ones(len(other), bool), 0.02, rng)):
        injected = np.isin(np.arange(len(other)), rows)
        expected = list(all_of(injected, np.where(injected, copies, right)).values())
        np.testing.assert_allclose(found["MCODE-ComP"].approximate[number], expected)
        if number < 5:
            mixed = judge.read.with_responses(np.where(injected[:, None], other, Y[~wrong]), judge.ranked)
            expected = list(all_of(injected, METHODS["MCODE-LOF"]().fit_among(mixed)).values())
            np.testing.assert_allclose(found["MCODE-LOF"].exact[number], expected)
    assert found["MCODE-LOF"].injections == 5
    assert found["MCODE-ComP"].injections == number + 1


@pytest.mark.parametrize(
    ("kind", "repetition", "names"),
    [
        ("one swapped", 0, ["IForest y", "SongCAD"]),
        ("", 1, [rivals.DEFAULT, "MCODE-RD", "MCODE-ComP", "cleanlab entropy"]),
    ],
)
def test_a_method_measured_alone_has_the_cells_that_it_has_among_others(data_folder, kind, repetition, names):
    plan = CleanPlan(("genbase",), most_copies=3, most_exact=8, most_fits=2)
    table = plan.table(DataFolder(data_folder), "genbase")
    unit = CleanUnit("audit", "genbase", 0.02, kind, repetition)
    kinds = plan.kinds_of(unit)
    together = audit_cells(plan, table, unit, dict.fromkeys(unit.methods(), kinds), Stopwatch())
    for name in names:
        alone = audit_cells(plan, table, unit, {name: kinds[-1:]}, Stopwatch())
        assert alone == {(name, kinds[-1]): together[name, kinds[-1]]}


def test_only_a_method_that_cannot_read_copies_has_no_standard_error(data_folder):
    plan = CleanPlan.of(quick=True, seed=0, sets=["genbase"])
    table = plan.table(DataFolder(data_folder), "genbase")
    units = [*plan.audits("genbase"), plan.audit_without_model("genbase", "one flip")]
    cells = {}
    for unit in units:
        cells |= audit_cells(plan, table, unit, dict.fromkeys(unit.methods(), ("one flip",)), Stopwatch())
    assert [unit.repetition for unit in units] == [1, 0]
    assert [pair for pair, cell in cells.items() if cell["auc_error"] == ""] == [("SongCAD", "one flip")]
    assert cells["SongCAD", "one flip"]["injections"] == 1
    assert sorted(name for name, _ in cells) == sorted(METHODS)


def test_the_error_of_several_fits_is_what_they_differ_by(data_folder):
    plan = CleanPlan(("genbase",), most_rows=200, most_fits=3)
    table = plan.table(DataFolder(data_folder), "genbase")
    unit = CleanUnit("audit", "genbase", 0.02, "", 1)
    cell = audit_cells(plan, table, unit, {"MCODE-ComP": ["one flip"]}, Stopwatch())["MCODE-ComP", "one flip"]
    values = []
    for fit in (1, 2, 3):
        Y, wrong = with_errors_of_all_kinds(table.Y, 0.02, np.random.default_rng(table.seed(0, 2, len(KINDS), fit)))
        judge = Audited(table, Y, wrong, ["MCODE-ComP"], Stopwatch())
        found = measure(judge, ["MCODE-ComP"], "one flip", [0, 7, 0, fit], Effort(0.0, 1, 0))
        values.append(found["MCODE-ComP"].estimate().mean[1])
    assert (cell["fits"], cell["ap"]) == (3, pytest.approx(np.mean(values)))
    assert cell["ap_error"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))


def test_work_ends_when_the_errors_are_small_enough_or_cannot_become_so(audited):
    judge = audited[0]
    names = ["MCODE-ComP", "MCODE-LOF"]
    loose = measure(judge, names, "one flip", [1], Effort(target=1.0, most_copies=4, most_exact=40))
    assert (loose["MCODE-ComP"].injections, loose["MCODE-LOF"].injections) == (52, 6)
    strict = measure(judge, names, "one flip", [1], Effort(target=0.02, most_copies=40, most_exact=40))
    assert (strict["MCODE-ComP"].estimate().error < 0.02).all()
    assert 104 <= strict["MCODE-ComP"].injections < 40 * 52
    capped = measure(judge, names, "one flip", [1], Effort(target=1e-4, most_copies=4, most_exact=7))
    assert capped["MCODE-LOF"].injections == 7
    assert len(capped["MCODE-LOF"].approximate) == 52  # seven exact ones cannot do it, however many copies there are


def test_one_fit_is_measured_well_and_one_of_many_by_one_copy(table):
    small, large = Table("emotions", *table), Table("corel5k", table[0], np.zeros((1000, 374), np.uint8))
    plan = CleanPlan()
    assert plan.effort(small).target == plan.effort(large).target < 0.005
    assert plan.effort(large).most_copies == 24
    assert plan.effort(small).most_copies == 60
    assert plan.effort(small, repetition=1).most_copies == 1
    assert CleanPlan.of(quick=True, seed=0).effort(small).most_copies == 1


def test_parts_of_the_fits_say_what_all_of_them_say():
    assert over_fits([1], [0.7], [0.004]) == (0.7, 0.004)
    assert np.isnan(over_fits([1], [0.7], [np.nan])[1])
    rng = np.random.default_rng(0)
    values = rng.normal(size=40)
    pieces = np.split(values, [12, 16, 21])
    found = over_fits(
        [len(piece) for piece in pieces],
        [piece.mean() for piece in pieces],
        [piece.std(ddof=1) / np.sqrt(len(piece)) for piece in pieces],
    )
    np.testing.assert_allclose(found, (values.mean(), values.std(ddof=1) / np.sqrt(40)))


def test_models_are_fitted_with_the_companions_that_are_asked_for(table):
    X, Y = table
    reads = seen.together(METHODS[name]().reads for name in ("MCODE-ComP", "BR noise", "base rate"))
    assert reads == {"DBR": (), "BR": ("br", "chain", "prior")}
    few, all_of_them = Seen(X, Y, final=False, reads=reads), Seen(X, Y, final=False)
    assert set(few.own.panel("DBR").views) == {"model"}
    for name in ("DBR", "BR"):
        for view, found in few.own.panel(name).views.items():
            np.testing.assert_array_equal(found, all_of_them.own.panel(name).views[view])


def test_rows_of_the_protocol_before_are_refused(data_folder, few_methods, tmp_path):
    plan = CleanPlan(("genbase",), most_copies=1, most_exact=4)
    before = {name: value for name, value in plan.settings().items() if name not in ("protocol", "most_exact")}
    (tmp_path / "settings.json").write_text(json.dumps(before))
    with pytest.raises(OtherSettingsError, match="protocol 4"):
        run_clean(plan, DataFolder(data_folder), tmp_path)


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(data_folder, few_methods, tmp_path):
    plan = CleanPlan(
        ("genbase",),
        most_rows=120,
        levels=(0.05,),
        kinds=("one flip",),
        most_copies=2,
        most_exact=7,
        most_fits=3,
    )
    data = DataFolder(data_folder)
    whole = run_clean(plan, data, tmp_path / "whole")[0].path.read_bytes()
    in_processes = run_clean(plan, data, tmp_path / "processes", jobs=2)[0].path.read_bytes()
    assert in_processes == whole

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
    again = run_clean(plan, data, tmp_path / "killed", redo=["MCODE-LOF", rivals.DEFAULT])[0]
    assert again.path.read_bytes() == whole
    assert all(row["ap_error"] for row in again.rows())


def test_every_method_has_its_units_and_no_unit_is_there_twice():
    plan = CleanPlan()
    units = list(plan.units())
    assert len(set(units)) == len(units)
    assert {unit.repetition for unit in units if unit.setting == "split" or unit.data == "bibtex"} == {0}
    for data in clean.SETS:
        mine = [unit for unit in units if unit.setting == "audit" and unit.data == data]
        found = [
            name for unit in mine if unit.kind in ("", "one flip") and unit.repetition < 2 for name in unit.methods()
        ]
        slow = [name for name, sets in rivals.FEWER_SETS.items() if data not in sets]
        assert sorted([*found, *slow]) == sorted(METHODS)
        assert {unit.kind for unit in mine} == {"", *KINDS}
    assert sorted(clean.LONGEST_FIRST) == sorted(clean.SETS)


def test_a_data_set_that_is_not_part_of_the_protocol_can_be_measured_too(data_folder, few_methods, tmp_path):
    (tmp_path / "reuters.npz").write_bytes((data_folder / "medical.npz").read_bytes())
    plan = CleanPlan(("reuters",), most_rows=60, levels=(), kinds=("one flip",), most_copies=1, most_exact=2)
    rows = run_clean(plan, DataFolder(tmp_path), tmp_path / "out")[0].rows()
    assert {row["data"] for row in rows} == {"reuters"}


def test_a_table_is_forgotten_with_its_last_use(table):
    read = Seen(*table, final=False)
    METHODS["MCODE-ComP"]().fit(read)
    gone = weakref.ref(read)
    gc.disable()  # nothing but the counts of references
    try:
        del read
        assert gone() is None
    finally:
        gc.enable()


def test_fits_of_repetitions_follow_each_other():
    plan = CleanPlan(most_fits=100)
    ranges = [plan.fits(unit.repetition) for unit in plan.audits("genbase")]
    np.testing.assert_array_equal(np.concatenate(ranges), np.arange(1, 101))
    assert max(map(len, ranges[1:])) <= 25


def test_a_method_is_fitted_until_the_spread_of_its_fits_is_known(tmp_path):
    results, plan = clean.clean_results(tmp_path), CleanPlan()
    unit = CleanUnit("audit", "genbase", 0.02, "", 3)
    for method, spread in (("MCODE-ComP", 0.001), ("MCODE-LOF", 0.1)):
        results.append(
            {
                **{"setting": "audit", "data": "genbase", "contamination": 0.02, "kind": "one flip"},
                **{"repetition": r, "method": method, "fits": 10, "injections": 10},
                **dict.fromkeys(metrics.MEASURES, 0.5 + spread * (r % 2)),
                **{f"{m}_error": 0.001 for m in metrics.MEASURES},
            }
            for r in (1, 2)
        )
    assert not is_wanted(plan, results, unit, "one flip", "MCODE-ComP")
    assert is_wanted(plan, results, unit, "one flip", "MCODE-LOF")
    last = CleanUnit("audit", "genbase", 0.02, "", 30)
    assert plan.fits(30).start > clean.MOST_WITH_COMPANIONS
    assert not is_wanted(plan, results, last, "one flip", rivals.DEFAULT)


def test_reports_name_where_the_default_loses(tmp_path):
    results = Results(
        tmp_path / "rows.csv",
        clean.KEYS,
        ("fits", "injections", *clean.MEASURES, *(f"{m}_error" for m in clean.MEASURES)),
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
                    rows.append({**key, "method": name, "fits": 1, "injections": 1, **values, **errors})
    results.append(rows)
    blame = blame_results(tmp_path)
    written = report_clean(results, blame, tmp_path / "out")
    losses = (tmp_path / "out" / "losses-audit.csv").read_text().splitlines()
    assert losses[1].startswith("Yeast,one flip,AUC,0.8")
    assert len(losses) == 3
    assert not any(path.name.startswith("reported") for path in written)  # its data sets are not there
    found = blocks(results.rows(), "audit", 0.02, "auc")
    assert found.values.shape == (18, len(NAMES))
    some = found.on(("yeast", "medical"))
    assert {data for data, _ in some.names} == {"yeast", "medical"}
    np.testing.assert_array_equal(some.by_data_set(), found.by_data_set()[[0, 2]])
    np.testing.assert_array_equal(some.of_kind("one flip"), found.of_kind("one flip")[[0, 2]])
    assert found.by_data_set().shape == (3, len(NAMES))
    assert all(path.exists() for path in written)
    assert any(path.name == "contamination.svg" for path in written)


def test_named_responses_are_counted_on_rows_with_one_error(tmp_path, table):
    results = run_blame([Table("yeast", *table)], 0, tmp_path)
    assert len(results.rows()) == 12
    flips = [row for row in results.rows() if row["kind"] == "one flip"]
    assert all(0.2 < float(row["named"]) <= 1.0 for row in flips)
    n, wrong = len(table[1]), round(SHARE * len(table[1]))
    assert {row["setting"]: int(row["rows"]) for row in flips} == {"split": COPIES * n, "audit": COPIES * (n - wrong)}
    again = run_blame([Table("yeast", *table)], 0, tmp_path)
    assert again.rows() == results.rows()
    tables = report_clean(clean.clean_results(tmp_path), results, tmp_path / "out")
    assert {path.name for path in tables} >= {"blame-split.md", "blame-audit.md"}


def test_rows_named_in_an_audit_are_what_the_audit_says_of_them(table):
    """A row that was recorded wrong is blamed as a copy with the same error is by models that never saw the row."""
    X, Y = table
    named = in_audit(Table("yeast", X, Y), 0)
    assert all(len(parts) == COPIES for parts in named.values())
    recorded, wrong = with_errors_of_all_kinds(Y, SHARE, np.random.default_rng(Table("yeast", X, Y).seed(0, 7)))
    found = mcode.audit(X, recorded)
    rows = np.flatnonzero(~wrong)
    rng = np.random.default_rng([*Table("yeast", X, Y).seed(0, 8), 0, 0])
    changed = KINDS["one flip"].corrupt(Y, rng)
    mine = rng.permutation(rows)[: 2 * MOST_ROWS]
    expected = found.space.out_of_fold(X[mine], changed[mine], mine)
    first = found.score.response_blame(expected).argmax(axis=1)
    right = (changed[mine] != Y[mine]).argmax(axis=1)
    np.testing.assert_array_equal(named["one flip", "mcode default"][0], first == right)
    np.testing.assert_array_equal(named["one flip", "smallest rho"][0], expected.rho.argmin(axis=1) == right)


def test_a_slow_method_is_measured_on_fewer_sets_and_stands_in_a_table_of_its_own():
    plan = CleanPlan()
    assert "SongCAD" in plan.audit_without_model("emotions", "one flip").methods()
    assert "SongCAD" not in next(plan.audits("emotions")).methods()
    assert "SongCAD" not in plan.audit_without_model("bibtex", "one flip").methods()
    assert "SongCAD" not in clean_tables.NAMES
    run = {"data": "emotions", "setting": "audit", "contamination": "0.02"}
    rows = [
        {**run, "kind": kind, "method": method, "fits": fits, "auc": value, "ap": "0.1"}
        for kind, method, fits, value in (
            ("one flip", "SongCAD", "1", "0.6"),
            ("one added", "SongCAD", "1", "0.8"),
            ("one flip", rivals.DEFAULT, "3", "0.6"),  # two parts of its fits: 0.7 in the mean
            ("one flip", rivals.DEFAULT, "1", "1.0"),
            ("one added", rivals.DEFAULT, "12", "0.9"),
            ("three flips", rivals.DEFAULT, "12", "0.99"),  # a kind that the other lacks
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
