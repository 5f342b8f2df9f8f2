import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from mcode import JointDetector
from mcode.ranking import conformal_p_value
from mcode.scores import LOFScore, OneClassScore, RobustScore
from tables import dependent_table, sparse_table

SCORES = {"robust": RobustScore(), "lof": LOFScore(k=10), "ocsvm": OneClassScore()}
every_score = pytest.mark.parametrize("score", SCORES)


@pytest.fixture(scope="module")
def table():
    X, Y = dependent_table(n=160, m=3, d=3)
    return X[:120], Y[:120], X[120:], Y[120:]


@every_score
def test_it_is_the_score_over_context_and_responses(score, table):
    X, Y, new_X, new_Y = table
    detector = JointDetector(SCORES[score]).fit(X, Y)
    alone = SCORES[score].fit(np.hstack([X, Y]))
    np.testing.assert_allclose(
        detector.outlier_score(new_X, new_Y), alone.outlier_score(np.hstack([new_X, new_Y])), rtol=1e-9
    )


@every_score
def test_with_batch_it_is_fitted_on_the_rows_being_scored(score, table):
    X, Y, new_X, new_Y = table
    detector = JointDetector(SCORES[score], reference="batch").fit(X, Y)
    expected = SCORES[score].fit_outlier_score(np.hstack([new_X, new_Y]))
    np.testing.assert_allclose(detector.outlier_score(new_X, new_Y), expected, rtol=1e-9)
    assert detector.p_value(new_X, new_Y).min() == pytest.approx(1 / 40)


def test_with_holdout_it_learns_from_half_of_the_rows(table):
    X, Y, new_X, new_Y = table
    detector = JointDetector("robust", reference="holdout").fit(X, Y)
    assert len(detector.reference_score_) == 60
    scores = detector.outlier_score(new_X, new_Y)
    np.testing.assert_array_equal(detector.p_value(new_X, new_Y), conformal_p_value(scores, detector.reference_score_))


@every_score
def test_a_row_scores_alone_as_in_a_batch_and_follows_permutations(score, table):
    X, Y, new_X, new_Y = table
    detector = JointDetector(SCORES[score]).fit(X, Y)
    together = detector.outlier_score(new_X, new_Y)
    alone = np.concatenate([detector.outlier_score(new_X[[i]], new_Y[[i]]) for i in range(5)])
    np.testing.assert_allclose(alone, together[:5], rtol=1e-6)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(detector.outlier_score(new_X[order], new_Y[order]), together[order], rtol=1e-6)


@pytest.mark.parametrize("score", ["lof", "ocsvm"])
def test_permuting_the_responses_leaves_the_scores(score, table):
    X, Y, new_X, new_Y = table
    order = np.array([2, 0, 1])
    one, other = JointDetector(SCORES[score]).fit(X, Y), JointDetector(SCORES[score]).fit(X, Y[:, order])
    np.testing.assert_allclose(
        other.outlier_score(new_X, new_Y[:, order]), one.outlier_score(new_X, new_Y), rtol=1e-5, atol=1e-4
    )


@every_score
def test_sparse_rows_score_like_dense_ones(score):
    X, Y = sparse_table(n=100, m=20)
    one, other = JointDetector(SCORES[score]).fit(X, Y), JointDetector(SCORES[score]).fit(X.toarray(), Y)
    np.testing.assert_allclose(one.outlier_score(X, Y), other.outlier_score(X.toarray(), Y), rtol=1e-4, atol=1e-6)


def test_a_far_away_row_is_an_outlier_and_an_ordinary_one_is_not(table):
    X, Y, _, _ = table
    detector = JointDetector("lof", alarm_rate=0.05).fit(X, Y)
    rows = np.vstack([np.full((1, 3), 50.0), np.zeros((1, 3))])
    np.testing.assert_array_equal(detector.predict(rows, np.zeros((2, 3), int)), [-1, 1])
    assert detector.percentile_rank(rows, np.zeros((2, 3), int))[0] == 1.0


def test_a_detector_that_was_not_fitted_says_so(table):
    _, _, X, Y = table
    with pytest.raises(NotFittedError):
        JointDetector().outlier_score(sp.csr_matrix(X), Y)
