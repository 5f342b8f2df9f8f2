import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, spearmanr
from sklearn.covariance import MinCovDet

from mcode.errors import InputError, ParameterError
from mcode.scores.concentration import consistency_factor
from mcode.scores.robust import RobustScore
from mcode.scores.scatter import DualRows, PrimalRows, ridge_for
from scores.oracles import regularised_distances


def correlated(n, m, seed=0, correlation=0.5):
    covariance = correlation ** np.abs(np.subtract.outer(np.arange(m), np.arange(m)))
    return np.random.default_rng(seed).multivariate_normal(np.zeros(m), covariance, size=n)


@pytest.mark.parametrize(("n", "m"), [(1000, 5), (2000, 30)])
@pytest.mark.parametrize("contaminated", [0.0, 0.1])
def test_on_well_conditioned_data_it_agrees_with_scikit_learn(n, m, contaminated):
    M = correlated(n, m) * np.logspace(-2, 2, m)
    M[: int(contaminated * n)] += 8.0 * np.logspace(-2, 2, m)
    score = RobustScore()
    ours, theirs = score.fit_outlier_score(M), MinCovDet(random_state=0).fit(M).mahalanobis(M)
    cut = chi2.isf(0.025, m)
    assert score.ridge_ == 0.0
    assert spearmanr(ours, theirs).statistic > 0.99
    assert np.mean((ours > cut) != (theirs > cut)) <= 0.01


def test_outliers_that_hide_each_other_are_seen():
    M = correlated(400, 8)
    M[:120] = 6.0 + 0.1 * M[:120]
    score = RobustScore().fit_outlier_score(M)
    assert score[:120].min() > score[120:].max()


def test_a_singular_half_sample_is_regularised_to_the_stated_condition():
    rng = np.random.default_rng(0)
    base = rng.random((40, 60))
    M = base[rng.integers(0, 40, 2000)]
    M[:5] = rng.random((5, 60)) + 1.0
    score = RobustScore(max_condition=50.0)
    found = score.fit_outlier_score(M)
    assert score.dual_
    assert 0 < score.ridge_ < 1
    assert found[:5].min() > np.max(found[5:])


def test_primal_and_dual_give_the_same_distances():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20, 30))
    weights = rng.integers(0, 3, 20).astype(float)
    primal = PrimalRows(Z, 50.0).scatter(weights, 1.3)
    rows = DualRows(Z @ Z.T, 30, 50.0)
    dual = rows.scatter(weights, 1.3)
    assert primal.ridge == pytest.approx(dual.ridge)
    assert primal.log_det == pytest.approx(dual.log_det)
    np.testing.assert_allclose(rows.distances(dual), primal.distances(Z), rtol=1e-8)
    support = np.repeat(Z, weights.astype(int), axis=0)
    slow = regularised_distances(Z, support, primal.ridge, 1.3, support.mean(axis=0))
    np.testing.assert_allclose(primal.distances(Z), slow, rtol=1e-8)


@given(st.floats(0, 10), st.floats(1e-6, 1e6), st.floats(1.5, 1e6))
def test_the_ridge_bounds_the_condition_number(smallest, spread, kappa):
    largest = smallest + spread
    ridge = ridge_for(smallest, largest, kappa)
    low, high = (ridge + (1 - ridge) * value for value in (smallest, largest))
    assert 0 <= ridge < 1
    assert high <= kappa * low * (1 + 1e-6)


@pytest.mark.parametrize("center", ["robust", "mean"])
@pytest.mark.parametrize("shape", [(80, 5), (30, 60)])
def test_sparse_and_dense_input_score_alike(center, shape):
    rng = np.random.default_rng(0)
    M = rng.random(shape) * (rng.random(shape) < 0.5)
    M[:, 2], M[:, 3] = 1.0, 0.0  # constant columns, stored and not stored
    dense, sparse = RobustScore(center=center).fit(M), RobustScore(center=center).fit(sp.csr_matrix(M))
    new = M.copy()
    new[0, 2] = 3.0
    assert dense.n_constant_ == sparse.n_constant_ == 2
    for store in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(sparse.outlier_score(store(new)), dense.outlier_score(new), rtol=1e-7)
        np.testing.assert_allclose(dense.outlier_score(store(new)), dense.outlier_score(new), rtol=1e-7)


def test_a_sparse_column_far_from_zero_is_centred_first():
    rng = np.random.default_rng(0)
    M = rng.random((30, 60)) * (rng.random((30, 60)) < 0.5)
    M[:, 0] = 1e6 + rng.random(30)
    np.testing.assert_allclose(
        RobustScore().fit_outlier_score(sp.csr_matrix(M)), RobustScore().fit_outlier_score(M), rtol=1e-6
    )


@pytest.mark.parametrize("shape", [(200, 4), (20, 40)])
def test_the_plain_mean_moves_the_centre_alone(shape):
    M = np.random.default_rng(0).normal(size=shape)
    M[: shape[0] // 5] += 5.0
    score = RobustScore(center="mean").fit(M)
    assert score.outlier_score(M.mean(axis=0)[None])[0] == pytest.approx(0.0, abs=1e-9)
    assert RobustScore().fit(M).outlier_score(M.mean(axis=0)[None])[0] > 0.01


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(60, 3), (15, 25)]))
def test_scores_follow_the_order_of_the_rows_bit_by_bit(seed, shape):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=shape)[rng.integers(0, shape[0], 2 * shape[0])]
    order = rng.permutation(len(M))
    a, b = RobustScore().fit(M), RobustScore().fit(M[order])
    np.testing.assert_array_equal(a.outlier_score(M), b.outlier_score(M))


def test_copies_count_as_rows_of_their_own():
    M = correlated(100, 3)
    twice = RobustScore(support_fraction=0.6).fit(np.vstack([M, M])).outlier_score(M)
    np.testing.assert_allclose(RobustScore(support_fraction=0.6).fit(M).outlier_score(M), twice, rtol=1e-9)


@pytest.mark.parametrize("shape", [(100, 4), (20, 40)])
def test_one_row_alone_scores_as_in_a_batch(shape):
    M = np.random.default_rng(0).normal(size=shape)
    score = RobustScore().fit(M)
    alone = np.concatenate([score.outlier_score(row[None]) for row in M])
    np.testing.assert_allclose(alone, score.outlier_score(M), rtol=1e-8)


def test_units_of_the_columns_do_not_matter():
    M = correlated(200, 4)
    scaled = RobustScore(space="rho").fit_outlier_score(M * [1e-6, 1.0, 1e3, 1e9] + [0.0, 5.0, -1e4, 0.0])
    np.testing.assert_allclose(scaled, RobustScore(space="rho").fit_outlier_score(M), rtol=1e-5)


def test_the_logarithm_is_taken_of_probabilities_alone():
    rng = np.random.default_rng(0)
    rho = rng.uniform(0.01, 1.0, size=(100, 3))
    assert RobustScore().fit(rho).space_ == "log"
    assert RobustScore().fit(rho - 0.5).space_ == "rho"
    assert RobustScore().fit(sp.csr_matrix(rho * (rho > 0.5))).space_ == "rho"
    np.testing.assert_array_equal(
        RobustScore().fit_outlier_score(rho), RobustScore(space="rho").fit_outlier_score(np.log(rho))
    )
    with pytest.raises(InputError, match="row 0, column 1 is 0; the log space needs values above 0"):
        RobustScore().fit(rho).outlier_score([[0.5, 0.0, 0.5]])


def test_a_departure_from_a_constant_column_counts():
    M = np.column_stack([correlated(100, 2), np.full(100, 0.1)])
    score = RobustScore().fit(M)
    usual = score.outlier_score(M)
    np.testing.assert_allclose(usual, RobustScore().fit(M[:, :2]).outlier_score(M[:, :2]))
    changed = M.copy()
    changed[0, 2] = 5.0
    assert score.outlier_score(changed)[0] > usual[0] + 1.0


@pytest.mark.parametrize(("n_others", "n_columns"), [(30, 4), (30, 50), (120, 110)])
def test_rows_beside_a_majority_of_copies_are_outlying(n_others, n_columns):
    copies = np.ones((2 * n_others, n_columns))
    M = np.vstack([copies, np.random.default_rng(0).normal(size=(n_others, n_columns)) + 1.0])
    found = RobustScore().fit_outlier_score(M)
    assert found[: len(copies)].max() < found[len(copies) :].min()
    assert np.isfinite(found).all()
    assert RobustScore(support_fraction=0.5, max_condition=10).fit(M).ridge_ > 0


def test_all_rows_equal_leave_no_doubt():
    score = RobustScore().fit(np.full((5, 3), 0.3))
    np.testing.assert_array_equal(score.outlier_score([[0.3, 0.3, 0.3], [0.3, 0.3, 0.4]]), [0.0, np.inf])


def test_one_column_is_the_squared_standard_score():
    M = np.random.default_rng(0).normal(size=(500, 1))
    score = RobustScore().fit_outlier_score(M)
    assert spearmanr(score, np.abs(M[:, 0] - np.median(M))).statistic > 0.99


def test_two_rows_are_enough_and_one_is_not():
    assert np.isfinite(RobustScore().fit_outlier_score([[0.0, 1.0], [1.0, 3.0]])).all()
    with pytest.raises(InputError, match="it has 1 row; a covariance needs at least 2"):
        RobustScore().fit([[0.0, 1.0]])
    with pytest.raises(InputError, match="infinity"):
        RobustScore().fit([[0.0, 1.0], [np.inf, 1.0]])


@pytest.mark.parametrize(
    "wrong", [{"center": "median"}, {"support_fraction": 0.0}, {"space": "logit"}, {"max_condition": 1.0}]
)
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(ParameterError, match=f"^{next(iter(wrong))} must be"):
        RobustScore(**wrong).fit(np.eye(3))


def test_inputs_stay_and_the_same_data_give_the_same_bits():
    M = correlated(80, 5)
    before = M.copy()
    np.testing.assert_array_equal(RobustScore().fit_outlier_score(M), RobustScore().fit_outlier_score(M))
    np.testing.assert_array_equal(M, before)


def test_the_covariance_of_normal_rows_is_consistent():
    M = np.random.default_rng(0).normal(size=(20000, 3))
    assert np.mean(RobustScore().fit_outlier_score(M)) == pytest.approx(3.0, rel=0.05)
    assert consistency_factor(3, 0.5) > consistency_factor(3, 0.9) > 1.0


def test_covariances_that_are_plainly_singular_have_the_condition_number_that_was_asked_for():
    rng = np.random.default_rng(0)
    few_rows = rng.normal(size=(90, 120))
    still = rng.normal(size=(400, 120))
    still[:, 7] = 0.0
    for rows in (few_rows, still):
        scatter = PrimalRows(rows, max_condition=50.0).scatter(np.ones(len(rows)))
        covariance = np.linalg.inv(scatter.whitening @ scatter.whitening.T)
        assert scatter.ridge > 0
        np.testing.assert_allclose(np.linalg.cond(covariance), 50.0, rtol=1e-5)
        np.testing.assert_allclose(np.linalg.slogdet(covariance)[1], scatter.log_det, rtol=1e-6)
        np.testing.assert_allclose(np.linalg.eigvalsh(covariance)[0], scatter.least_variance, rtol=1e-5)
