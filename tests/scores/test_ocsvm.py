import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from mcode.errors import InputError, ParameterError
from mcode.scores.kernel_features import NystroemFeatures, gaussian_kernel
from mcode.scores.linear_one_class import fit_linear_one_class
from mcode.scores.ocsvm import OneClassScore


def cloud(n=400, m=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def test_the_exact_machine_is_libsvm_with_the_sign_turned():
    M = cloud()
    score = OneClassScore(nu=0.1, gamma=0.3).fit(M)
    machine = OneClassSVM(nu=0.1, gamma=0.3, tol=1e-8).fit(M)
    assert score.exact_
    np.testing.assert_allclose(score.outlier_score(M), -machine.decision_function(M) / (0.1 * len(M)), atol=1e-6)


def test_copies_count_as_rows_of_their_own():
    M, counts = cloud(100), np.random.default_rng(1).integers(1, 5, 100)
    every_copy = np.repeat(M, counts, axis=0)
    machine = OneClassSVM(nu=0.1, gamma=0.3, tol=1e-8).fit(every_copy)
    score = OneClassScore(nu=0.1, gamma=0.3).fit(every_copy)
    assert score.n_distinct_ == 100
    np.testing.assert_allclose(
        score.outlier_score(M), -machine.decision_function(M) / (0.1 * len(every_copy)), atol=1e-6
    )


def test_above_the_limit_features_take_over_and_rank_alike():
    M = cloud(2000)
    exact, fast = OneClassScore(nu=0.05).fit(M), OneClassScore(nu=0.05, exact_limit=1999).fit(M)
    assert exact.exact_
    assert not fast.exact_
    assert fast.gamma_ == exact.gamma_
    assert spearmanr(exact.outlier_score(M), fast.outlier_score(M)).statistic > 0.98
    assert np.mean(fast.outlier_score(M) > 0) == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("nu", [0.02, 0.3, 0.9])
def test_the_linear_machine_reaches_the_objective_of_libsvm(nu):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(500, 6)) + 2.0
    counts = rng.integers(1, 4, 500)
    machine = OneClassSVM(kernel="linear", nu=nu, tol=1e-9).fit(np.repeat(F, counts, axis=0))
    scale = nu * counts.sum()

    def objective(w, s):
        return w @ w / 2 - s + counts @ np.maximum(0, s - F @ w) / scale

    best = objective(machine.coef_[0] / scale, machine.offset_[0] / scale)
    w, s = fit_linear_one_class(F, counts, nu)
    assert objective(w, s) <= best + 1e-4 * abs(best)


def test_a_row_forgotten_by_the_first_guess_is_found():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(30_000, 2)) * 0.1 + [3.0, 0.0]
    F[-100:, 1] += 5.0 * rng.choice([-1, 1], 100)  # none of them is among the rows of the first guess
    F[-100:, 0] = 0.5
    w, s = fit_linear_one_class(F, np.ones(30_000, np.int64), 0.001)
    assert np.mean(F @ w < s - 1e-3) <= 0.0011


def test_the_kernel_and_its_features_match_scikit_learn():
    M = cloud(50)
    np.testing.assert_allclose(gaussian_kernel(M, M[:9], 0.2), rbf_kernel(M, M[:9], gamma=0.2))
    F = NystroemFeatures.of(M, 0.2).transform(M)
    np.testing.assert_allclose(F @ F.T, rbf_kernel(M, gamma=0.2), atol=1e-4)


@pytest.mark.parametrize("exact_limit", [10**6, 0])
def test_sparse_and_dense_input_score_alike(exact_limit):
    rng = np.random.default_rng(0)
    M = rng.random((300, 20)) * (rng.random((300, 20)) < 0.3)
    dense = OneClassScore(nu=0.1, exact_limit=exact_limit).fit(M)
    sparse = OneClassScore(nu=0.1, exact_limit=exact_limit).fit(sp.csr_matrix(M))
    assert sparse.gamma_ == pytest.approx(dense.gamma_)
    for store in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(sparse.outlier_score(store(M)), dense.outlier_score(M), atol=2e-5)
        np.testing.assert_allclose(dense.outlier_score(store(M)), dense.outlier_score(M), rtol=1e-10)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 10**6]))
def test_the_order_of_the_rows_does_not_matter(seed, exact_limit):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(80, 3))[rng.integers(0, 80, 120)]
    a, b = (OneClassScore(nu=0.2, exact_limit=exact_limit).fit(each) for each in (M, M[rng.permutation(120)]))
    np.testing.assert_array_equal(a.outlier_score(M), b.outlier_score(M))


@pytest.mark.parametrize("exact_limit", [10**6, 0])
def test_one_row_alone_scores_as_in_a_batch(exact_limit):
    M = cloud()
    score = OneClassScore(nu=0.1, exact_limit=exact_limit).fit(M)
    alone = np.concatenate([score.outlier_score(row[None]) for row in M[:30]])
    np.testing.assert_allclose(alone, score.outlier_score(M)[:30], rtol=1e-8, atol=1e-12)


def test_far_rows_are_outlying_and_inputs_stay():
    M = cloud()
    before = M.copy()
    score = OneClassScore().fit(M)
    assert score.outlier_score([[9.0] * 5])[0] > score.outlier_score(M).max() > 0
    np.testing.assert_array_equal(M, before)


@pytest.mark.parametrize("exact_limit", [10**6, 0])
def test_all_rows_equal_are_inside_and_others_outside(exact_limit):
    score = OneClassScore(exact_limit=exact_limit).fit(np.full((20, 3), 0.5))
    assert score.outlier_score([[0.5] * 3])[0] == pytest.approx(0.0, abs=1e-6)
    assert score.outlier_score([[0.9] * 3])[0] > 0.01


def test_one_row_is_refused():
    with pytest.raises(InputError, match="it has 1 row; a region needs at least 2"):
        OneClassScore().fit([[1.0, 2.0]])


@pytest.mark.parametrize("wrong", [{"nu": 0.0}, {"nu": 1.0}, {"gamma": 0.0}, {"gamma": "auto"}, {"n_components": 0}])
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(ParameterError, match=f"^{next(iter(wrong))} must be"):
        OneClassScore(**wrong).fit(cloud(10))
