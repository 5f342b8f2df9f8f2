import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import mcode
from mcode.corruption import Flip
from mcode.detector.reading import USUAL_ERROR_RATE, posterior
from mcode.errors import ParameterError
from mcode.models import BatchLogistic, DependentRelevance
from mcode.models.folds import stratified_folds
from mcode.scores.learned import CAREFUL_BY, FEWEST_CAUGHT, STAYING, LearnedScore, largest_share
from tables import dependent_table

GIVEN = DependentRelevance(BatchLogistic(penalty=1.0))
NAMES = ["a", "b", "c", "d", "e", "f"]


@pytest.fixture(scope="module")
def planted():
    """A table in which the first 20 of 400 rows have one wrong response; which cells are wrong."""
    X, right = dependent_table(n=400, m=5, d=6, seed=4)
    Y = right.copy()
    Y[:20] = Flip().corrupt(right, np.random.default_rng(0))[:20]
    return X, Y, right != Y


@pytest.fixture(scope="module")
def found(planted):
    X, Y, _ = planted
    return mcode.audit(X, pd.DataFrame(Y, columns=NAMES))


def test_wrong_rows_come_first_and_the_wrong_response_is_blamed(planted, found):
    _, _, wrong = planted
    rows = wrong.any(axis=1)
    assert roc_auc_score(rows, found.outlier_score) > 0.75
    assert roc_auc_score(rows, found.error_probability) > 0.75
    blamed = found.response_error_probability[:20].argmax(axis=1)
    assert (blamed == wrong[:20].argmax(axis=1)).mean() > 0.4  # one in six by chance


def test_every_number_is_where_it_belongs(planted, found):
    n, d = planted[1].shape
    assert found.outlier_score.shape == found.p_value.shape == found.error_probability.shape == (n,)
    assert found.rho.shape == found.response_error_probability.shape == found.response_p_value.shape == (n, d)
    for numbers in (found.p_value, found.error_probability, found.rho, found.response_p_value):
        assert ((numbers > 0) & (numbers <= 1)).all()
    assert ((found.response_error_probability >= 0) & (found.response_error_probability <= 1)).all()
    assert (found.response_error_probability.max(axis=1) <= found.error_probability + 1e-12).all()


def test_the_ranking_sorts_by_score_and_p_values_agree_with_it(found):
    assert (np.diff(found.outlier_score[found.ranking]) <= 0).all()
    assert (np.diff(found.p_value[found.ranking]) >= 0).all()
    assert sorted(found.ranking) == list(range(400))


def test_every_row_is_judged_by_models_that_never_saw_it(planted):
    X, Y, _ = planted
    audit = mcode.audit(X, Y, model=GIVEN, score="complement", folds=3, random_state=5)
    folds = stratified_folds(Y, 3, np.random.default_rng(5))
    for f in range(3):
        model = DependentRelevance(BatchLogistic(1.0)).fit(X[folds != f], Y[folds != f])
        expected = np.exp(model.log_proba(X[folds == f], Y[folds == f]))
        np.testing.assert_allclose(audit.rho[folds == f], expected, atol=5e-3)
    np.testing.assert_allclose(audit.outlier_score, -np.log(audit.rho).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("score", ["learned", "noise", "complement", "norm", "robust", "lof", "ocsvm"])
@pytest.mark.parametrize("model", ["br", "chain", "dbr"])
def test_every_model_and_score_audits(model, score):
    X, Y = dependent_table(n=80)
    audit = mcode.audit(X, Y, model=model, score=score, folds=3)
    for numbers in (audit.outlier_score, audit.p_value, audit.error_probability, audit.response_error_probability):
        assert np.isfinite(numbers).all()


def test_the_same_seed_gives_the_same_bits_and_another_one_other_folds(planted):
    X, Y, _ = planted
    one, again, other = (mcode.audit(X, Y, folds=3, random_state=seed) for seed in (1, 1, 2))
    for name in ("outlier_score", "p_value", "error_probability", "rho", "response_error_probability"):
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))
    assert (one.rho != other.rho).any()


def test_the_frame_lists_the_most_suspicious_rows_first(planted, found):
    _, Y, _ = planted
    frame = found.to_frame(30)
    assert list(frame.columns)[:7] == ["row", "score", "p_value", "error_probability", "label", "observed", "expected"]
    assert len(found.to_frame()) == 400
    np.testing.assert_array_equal(frame["row"], found.ranking[:30])
    for line in frame.itertuples():
        j = NAMES.index(line.label)
        assert line.observed == Y[line.row, j]
        assert line.probability == found.rho[line.row, j]
        assert line.expected == (line.observed if line.probability >= 0.5 else 1 - line.observed)
        assert j == found.response_error_probability[line.row].argmax()


def test_the_frame_speaks_the_values_of_the_table(planted):
    X, Y, _ = planted
    frame = mcode.audit(X, np.array(["absent", "present"])[Y], score="noise", folds=3).to_frame(10)
    assert set(frame["observed"]) | set(frame["expected"]) <= {"absent", "present"}


def test_an_audit_keeps_what_it_saw_when_the_table_is_changed_afterwards():
    X, Y = dependent_table(n=60)
    audit = mcode.audit(X, Y, model=GIVEN, score="complement", folds=3)
    before = audit.to_frame()
    Y[:] = 1 - Y
    pd.testing.assert_frame_equal(audit.to_frame(), before)


def test_flagged_rows_are_the_most_suspicious_ones_and_grow_with_the_share_allowed(found):
    few, many = found.flagged(0.05), found.flagged(0.6)
    assert len(few) <= len(many)
    assert set(few) <= set(many)
    assert len(many) < 400
    assert (np.diff(found.error_probability[many]) <= 1e-12).all() or (np.diff(found.p_value[many]) >= 0).all()


@pytest.mark.parametrize("fdr", [0.0, 1.0, -1, 2, "0.1", None])
def test_a_share_of_false_alarms_out_of_range_is_refused(found, fdr):
    with pytest.raises(ParameterError, match="fdr must be a number between 0 and 1; got"):
        found.flagged(fdr)


def test_the_error_rate_is_taken_or_estimated(planted):
    X, Y, _ = planted
    given = mcode.audit(X, Y, score="noise", folds=3, error_rate=0.05)
    assert given.error_rate == 0.05
    assert mcode.audit(X, Y, score="noise", folds=3).error_rate == USUAL_ERROR_RATE
    estimated = mcode.audit(X, Y, folds=3)
    assert 0.0 < estimated.error_rate < 0.2
    same_rate = mcode.audit(X, Y, folds=3, error_rate=estimated.error_rate)
    np.testing.assert_allclose(same_rate.error_probability, estimated.error_probability, rtol=1e-9)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.25])
def test_the_largest_possible_share_of_wrong_rows_is_that_of_a_mixture_on_the_careful_side(share):
    rng = np.random.default_rng(0)
    recorded = rng.normal(size=50_000) + 5.0 * (rng.random(50_000) < share)
    made_wrong = [rng.normal(size=20_000) + 5.0]
    careful = CAREFUL_BY / np.sqrt(FEWEST_CAUGHT * share * 50_000)  # of the fewest rows that the estimate can rest on
    assert (1.0 - careful - 0.055) * share < largest_share(recorded, made_wrong, np.ones(1)) <= share


def test_a_table_without_wrong_rows_has_next_to_no_share_of_them():
    rng = np.random.default_rng(0)
    assert largest_share(rng.normal(size=5000), [rng.normal(size=5000) + 9.0], np.ones(1)) < 0.003


def test_ratios_against_recorded_rows_become_ratios_against_right_ones():
    score = LearnedScore()
    score.contamination_ = 0.1 / STAYING  # the others have left the contrasts
    right, wrong = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.1, 0.8])  # probabilities of three kinds of rows
    recorded = 0.9 * right + 0.1 * wrong
    np.testing.assert_allclose(score.against_right_rows(np.log(wrong / recorded)), np.log(wrong / right), atol=1e-12)
    assert np.isfinite(score.against_right_rows(np.array([1e4, -1e4]))).all()


def test_the_posterior_is_safe_for_extreme_ratios():
    np.testing.assert_allclose(posterior(np.array([-1e4, 0.0, 1e4]), 0.1), [0.0, 0.1, 1.0], atol=1e-12)


def test_real_rows_with_planted_errors_are_found(real_data):
    X, Y = real_data("emotions")
    rng = np.random.default_rng(0)
    rows = rng.choice(len(Y), 30, replace=False)
    changed = Y.copy()
    changed[rows] = Flip(2).corrupt(Y, rng)[rows]
    audit = mcode.audit(X, changed, folds=3)
    assert roc_auc_score(np.isin(np.arange(len(Y)), rows), audit.outlier_score) > 0.75
