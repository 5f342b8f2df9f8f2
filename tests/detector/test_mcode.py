import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from mcode import MCODE, reporting
from mcode.corruption import Flip, Noise
from mcode.models import BatchLogistic, BinaryRelevance, ClassifierChain, DependentRelevance, PerLabel
from mcode.ranking import conformal_p_value, false_discovery_cut, percentile_rank
from mcode.scores import ComplementScore, LearnedScore, LOFScore, NoiseScore, NormScore
from tables import dependent_table, sparse_table

GIVEN = DependentRelevance(BatchLogistic(penalty=1.0))
SCORES = {
    "learned": "learned",
    "noise": "noise",
    "complement": "complement",
    "norm": NormScore(r=2),
    "robust": "robust",
    "lof": LOFScore(k=10),
    "ocsvm": "ocsvm",
    "foreign": IsolationForest(n_estimators=20, random_state=0),
}
METHODS = ["outlier_score", "percentile_rank", "p_value", "predict", "score_samples", "transform"]
METHODS += ["error_probability", "response_error_probability", "response_p_value"]
every_score = pytest.mark.parametrize("score", SCORES)
every_reference = pytest.mark.parametrize("reference", ["cross-fit", "holdout", "batch"])


@pytest.fixture(scope="module")
def table():
    """Training rows, and new ones of the same kind."""
    X, Y = dependent_table(n=200, d=4)
    return X[:120], Y[:120], X[120:], Y[120:]


@pytest.fixture(scope="module")
def fitted(table):
    """One detector for each score and reference, fitted once."""
    X, Y, _, _ = table
    found = {}

    def get(score, reference="cross-fit"):
        if (score, reference) not in found:
            found[score, reference] = MCODE(GIVEN, SCORES[score], reference=reference).fit(X, Y)
        return found[score, reference]

    return get


@every_score
@every_reference
def test_every_score_works_with_every_reference(score, reference, table, fitted):
    _, _, X, Y = table
    detector = fitted(score, reference)
    for method in METHODS:
        numbers = getattr(detector, method)(X, Y)
        assert numbers.shape == (Y.shape if "response" in method or method == "transform" else (len(Y),))
        assert np.isfinite(numbers).all()
    for method in ("percentile_rank", "p_value", "error_probability", "response_error_probability"):
        numbers = getattr(detector, method)(X, Y)
        assert ((numbers >= 0) & (numbers <= 1)).all()


@every_score
@pytest.mark.parametrize("reference", ["cross-fit", "holdout"])
def test_a_row_scores_alone_as_in_a_batch(score, reference, table, fitted):
    _, _, X, Y = table
    detector = fitted(score, reference)
    for method in METHODS:
        together = getattr(detector, method)(X, Y)
        alone = np.concatenate([getattr(detector, method)(X[i : i + 1], Y[i : i + 1]) for i in range(6)])
        np.testing.assert_allclose(alone, together[:6], rtol=1e-4, atol=1e-5, err_msg=method)


# Fitted anew on the rows in their order, these draw rows by their place.
DRAW_BY_PLACE = {("learned", "batch"), ("foreign", "batch")}


@pytest.mark.parametrize(
    ("score", "reference"),
    [(s, r) for s in SCORES for r in ("cross-fit", "holdout", "batch") if (s, r) not in DRAW_BY_PLACE],
)
def test_scores_follow_permuted_rows(score, reference, table, fitted):
    _, _, X, Y = table
    order = np.random.default_rng(0).permutation(len(Y))
    detector = fitted(score, reference)
    np.testing.assert_allclose(
        detector.outlier_score(X[order], Y[order]), detector.outlier_score(X, Y)[order], rtol=1e-5, atol=1e-6
    )


@every_score
def test_the_same_seed_gives_the_same_bits(score, table, fitted):
    X, Y, new_X, new_Y = table
    again = MCODE(GIVEN, SCORES[score]).fit(X, Y)
    for method in METHODS:
        np.testing.assert_array_equal(
            getattr(again, method)(new_X, new_Y), getattr(fitted(score), method)(new_X, new_Y), err_msg=method
        )


def test_scoring_does_not_change_the_detector(table, fitted):
    _, _, X, Y = table
    for reference in ("cross-fit", "holdout", "batch"):
        detector = fitted("learned", reference)
        first = [getattr(detector, method)(X, Y) for method in METHODS]
        detector.error_probability(X[:40], Y[:40])
        for method, numbers in zip(METHODS, first, strict=True):
            np.testing.assert_array_equal(getattr(detector, method)(X, Y), numbers, err_msg=f"{method}, {reference}")


@pytest.mark.parametrize("make", [BinaryRelevance, DependentRelevance])
def test_permuting_the_responses_permutes_rho_and_leaves_the_scores(make, table):
    X, Y, new_X, new_Y = table
    order = np.array([3, 1, 0, 2])
    one = MCODE(make(BatchLogistic(1.0)), "complement").fit(X, Y)
    other = MCODE(make(BatchLogistic(1.0)), "complement").fit(X, Y[:, order])
    np.testing.assert_allclose(
        other.transform(new_X, new_Y[:, order]), one.transform(new_X, new_Y)[:, order], atol=1e-5
    )
    np.testing.assert_allclose(other.outlier_score(new_X, new_Y[:, order]), one.outlier_score(new_X, new_Y), atol=1e-4)


@pytest.mark.parametrize("score", ["complement", "norm", "noise", "learned"])
def test_dense_and_sparse_rows_score_alike(score):
    X, Y = sparse_table(n=120)
    model = DependentRelevance(BatchLogistic(1.0))
    one, other = MCODE(model, score).fit(X, Y), MCODE(model, score).fit(X.toarray(), Y)
    np.testing.assert_allclose(one.outlier_score(X, Y), other.outlier_score(X.toarray(), Y), rtol=2e-2, atol=2e-2)
    np.testing.assert_allclose(one.outlier_score(X.toarray(), Y), one.outlier_score(X, Y), rtol=1e-4, atol=1e-4)


@settings(max_examples=15)
@given(st.integers(0, 3), st.integers(0, 79))
def test_flipping_one_response_turns_its_rho_around_and_leaves_nobody_but_its_neighbours(table, fitted, j, row):
    _, _, X, Y = table
    detector = fitted("complement")
    flipped = Y[[row]].copy()
    flipped[0, j] ^= 1
    before, after = detector.transform(X[[row]], Y[[row]]), detector.transform(X[[row]], flipped)
    assert after[0, j] == pytest.approx(1.0 - before[0, j], abs=1e-6)


def test_rho_is_what_the_fitted_model_says(table, fitted):
    _, _, X, Y = table
    detector = fitted("complement")
    np.testing.assert_allclose(detector.transform(X, Y), np.exp(detector.model_.log_proba(X, Y)), rtol=1e-9)
    np.testing.assert_allclose(detector.outlier_score(X, Y), -detector.model_.log_proba(X, Y).sum(axis=1), rtol=1e-9)


def test_noise_at_odds_1_is_the_complement_score(table):
    X, Y, new_X, new_Y = table
    one, other = MCODE(GIVEN, NoiseScore([Noise(1.0)])).fit(X, Y), MCODE(GIVEN, "complement").fit(X, Y)
    np.testing.assert_allclose(one.outlier_score(new_X, new_Y), other.outlier_score(new_X, new_Y), rtol=1e-9)
    np.testing.assert_allclose(one.p_value(new_X, new_Y), other.p_value(new_X, new_Y))


@pytest.mark.parametrize("reference", ["cross-fit", "holdout"])
def test_ranks_and_p_values_are_taken_against_the_reference_rows(reference, table, fitted):
    _, Y, new_X, new_Y = table
    detector = fitted("complement", reference)
    assert len(detector.reference_score_) == (len(Y) if reference == "cross-fit" else len(Y) // 2)
    scores = detector.outlier_score(new_X, new_Y)
    np.testing.assert_array_equal(detector.p_value(new_X, new_Y), conformal_p_value(scores, detector.reference_score_))
    np.testing.assert_array_equal(
        detector.percentile_rank(new_X, new_Y), percentile_rank(scores, detector.reference_score_)
    )


def test_with_batch_the_rows_that_are_scored_are_the_reference(table, fitted):
    _, _, X, Y = table
    detector = fitted("lof", "batch")
    expected = LOFScore(k=10).fit_outlier_score(detector.transform(X, Y))
    np.testing.assert_allclose(detector.outlier_score(X, Y), expected, rtol=1e-9)
    assert detector.p_value(X, Y).min() == pytest.approx(1 / len(Y))


def test_with_cross_fit_the_reference_rows_are_read_out_of_fold(table, fitted):
    X, Y, _, _ = table
    detector = fitted("complement")
    optimistic = detector.outlier_score(X, Y)
    assert detector.reference_score_.mean() > optimistic.mean()


def test_with_holdout_the_model_sees_half_of_the_rows(table):
    X, Y, _, _ = table
    detector = MCODE(GIVEN, "complement", reference="holdout", random_state=3).fit(X, Y)
    other = MCODE(GIVEN, "complement", reference="holdout", random_state=4).fit(X, Y)
    assert len(detector.reference_score_) == 60
    assert (detector.transform(X, Y) != other.transform(X, Y)).any()


def test_predict_follows_the_alarm_rate_and_score_samples_the_sign(table, fitted):
    _, _, X, Y = table
    detector = MCODE(GIVEN, "complement", alarm_rate=0.2).fit(*table[:2])
    np.testing.assert_array_equal(detector.predict(X, Y), np.where(detector.p_value(X, Y) <= 0.2, -1, 1))
    np.testing.assert_array_equal(detector.score_samples(X, Y), -detector.outlier_score(X, Y))
    assert 0.05 < (detector.predict(X, Y) == -1).mean() < 0.45


@every_reference
def test_fit_predict_calls_the_most_outlying_share_of_its_own_rows(reference, table):
    X, Y, _, _ = table
    labels = MCODE(GIVEN, "complement", reference=reference, alarm_rate=0.1).fit_predict(X, Y)
    n = 60 if reference == "holdout" else 120
    assert labels.shape == (n,)
    assert (labels == -1).sum() == n // 10


def test_rows_with_a_flipped_response_are_found_and_the_response_is_blamed():
    X, Y = dependent_table(n=900, m=5, d=6, seed=4)
    X, Y, new_X, new_Y = X[:500], Y[:500], X[500:], Y[500:]
    wrong = Flip().corrupt(new_Y, np.random.default_rng(0))
    truth = np.arange(400) < 100
    mixed = np.where(truth[:, None], wrong, new_Y)
    cell = (wrong != new_Y).argmax(axis=1)[:100]
    for score in ("learned", "noise", "complement"):
        detector = MCODE(score=score).fit(X, Y)
        assert roc_auc_score(truth, detector.outlier_score(new_X, mixed)) > 0.7
        assert roc_auc_score(truth, detector.error_probability(new_X, mixed)) > 0.7
        blamed = detector.response_error_probability(new_X, mixed)[:100].argmax(axis=1)
        assert (blamed == cell).mean() > 0.5  # one in six by chance
        least = detector.response_p_value(new_X, mixed)[:100].argmin(axis=1)
        assert (least == cell).mean() > 0.4


def test_the_error_rate_is_taken_or_estimated(table):
    X, Y, new_X, new_Y = table
    low, high = (MCODE(GIVEN, "noise", error_rate=rate).fit(X, Y) for rate in (0.01, 0.2))
    assert (low.error_rate_, high.error_rate_) == (0.01, 0.2)
    one, other = low.error_probability(new_X, new_Y), high.error_probability(new_X, new_Y)
    np.testing.assert_allclose(
        np.log(other / (1 - other)) - np.log(one / (1 - one)), np.log(0.25) - np.log(1 / 99), atol=1e-6
    )
    assert MCODE(GIVEN, "noise").fit(X, Y).error_rate_ == 0.02
    assert 0.001 <= MCODE(GIVEN).fit(X, Y).error_rate_ <= 0.3


def test_more_wrong_rows_raise_the_estimated_error_rate():
    X, Y = dependent_table(n=500, d=6, seed=1)
    rates = []
    for share in (0.0, 0.05):
        mixed = np.where((np.arange(500) < 500 * share)[:, None], Flip(3).corrupt(Y, np.random.default_rng(0)), Y)
        rates.append(MCODE(GIVEN, LearnedScore([Flip(3)])).fit(X, mixed).error_rate_)
    assert rates[1] > rates[0]


def clean_p_values(reference, seeds, score="complement"):
    """p-values of new clean rows, and which seed they belong to."""
    for seed in seeds:
        X, Y = dependent_table(n=260, m=3, d=3, seed=seed)
        detector = MCODE(GIVEN, score, reference=reference).fit(X[:200], Y[:200])
        yield detector, X[200:], Y[200:]


@pytest.mark.parametrize("reference", ["cross-fit", "holdout"])
def test_p_values_of_clean_rows_are_uniform(reference):
    p_values, cells = [], []
    for detector, X, Y in clean_p_values(reference, range(20)):
        p_values.append(detector.p_value(X, Y)[:10])
        cells.append(detector.response_p_value(X, Y)[:10, 1])
    assert kstest(np.concatenate(p_values), "uniform").pvalue > 0.01
    assert kstest(np.concatenate(cells), "uniform").pvalue > 0.01


def test_the_share_of_false_discoveries_stays_below_its_level():
    shares, found = [], []
    for seed, (detector, X, Y) in enumerate(clean_p_values("holdout", range(20))):
        truth = np.arange(60) < 12
        # a response vector that no model of these rows would expect: every response far from its context
        far = np.where(truth[:, None], 8.0 * np.sign(X), X)
        strange = np.where(truth[:, None], np.random.default_rng(seed).integers(0, 2, Y.shape), Y)
        rejected = false_discovery_cut(detector.p_value(far, strange), 0.2)
        shares.append((rejected & ~truth).sum() / max(1, rejected.sum()))
        found.append((rejected & truth).sum())
    assert np.mean(shares) <= 0.2
    assert np.sum(found) > 0


def test_any_model_and_any_learner_make_a_detector(table):
    X, Y, new_X, new_Y = table
    nb = PerLabel(GaussianNB(), n_jobs=1)
    for model in ("br", "chain", "dbr", ClassifierChain([3, 2, 1, 0]), BinaryRelevance(nb), DependentRelevance(nb)):
        detector = MCODE(model, "noise", folds=3).fit(X, Y)
        assert np.isfinite(detector.outlier_score(new_X, new_Y)).all()


def test_progress_is_told_and_ends_complete(table):
    X, Y, _, _ = table
    seen = {}
    with reporting(lambda stage, done, total: seen.setdefault(stage, []).append((done, total))):
        MCODE(folds=3).fit(X, Y)
    assert set(seen) >= {"search for the penalty", "fit the companion models", "learn what errors look like"}
    for steps in seen.values():
        assert all(0 <= done <= total for done, total in steps)
        assert steps == sorted(steps)
    assert seen["learn what errors look like"][-1][0] == seen["learn what errors look like"][-1][1]


def test_what_was_given_stays_unfitted(table):
    X, Y, _, _ = table
    model, score = DependentRelevance(BatchLogistic(1.0)), LearnedScore()
    MCODE(model, score).fit(X, Y)
    assert not hasattr(model, "conditionals_")
    assert not hasattr(score, "contrast_")


@pytest.mark.parametrize("method", METHODS)
def test_a_detector_that_was_not_fitted_says_so(method, table):
    _, _, X, Y = table
    with pytest.raises(NotFittedError):
        getattr(MCODE(), method)(X, Y)


def test_a_detector_survives_a_refit_on_another_table(table):
    X, Y, _, _ = table
    detector = MCODE(GIVEN, "complement").fit(X, Y)
    smaller = detector.fit(X[:, :2], Y[:, :3]).outlier_score(X[:, :2], Y[:, :3])
    fresh = MCODE(GIVEN, ComplementScore()).fit(X[:, :2], Y[:, :3]).outlier_score(X[:, :2], Y[:, :3])
    np.testing.assert_array_equal(smaller, fresh)


def test_sparse_new_rows_are_read_by_a_detector_fitted_on_dense_ones(table):
    X, Y, new_X, new_Y = table
    detector = MCODE(score="complement").fit(X, Y)
    np.testing.assert_allclose(
        detector.outlier_score(sp.csr_matrix(new_X), sp.csr_matrix(new_Y)),
        detector.outlier_score(new_X, new_Y),
        rtol=1e-5,
    )
