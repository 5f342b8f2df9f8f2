import numpy as np
import pytest
import scipy.sparse as sp

from mcode.solvers.fit import Fit, Task, fit_all
from oracles import log_likelihoods, stacked
from solver_tasks import MASKS, TIGHT, expected_of, make_task
from tables import dependent_table, sparse_table


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("make", [dependent_table, sparse_table])
@pytest.mark.parametrize("weighted", [False, True], ids=["all rows", "row weights"])
@pytest.mark.parametrize("penalty", [0.01, 1.0, 50.0])
def test_batched_fit_equals_fitting_each_label_alone(mask, make, weighted, penalty):
    X, Y = make()
    weight = (np.random.default_rng(5).random(Y.shape) < 0.7).astype(np.float32) if weighted else None
    task = make_task(X, Y, mask, weight)
    solution = fit_all(task, np.full(4, penalty), None, TIGHT)
    expected = expected_of(task, penalty)
    assert solution.converged.all()
    np.testing.assert_allclose(solution.W, expected, atol=1e-4)
    Z = stacked(X, task.parents)
    rho, expected_rho = (np.exp(log_likelihoods(Z, W, Y)) for W in (solution.W, expected))
    np.testing.assert_allclose(rho, expected_rho, atol=1e-4)


def test_each_column_has_its_own_penalty():
    X, Y = dependent_table()
    task = make_task(X, Y, "dbr")
    penalty = np.array([0.1, 1.0, 10.0, 100.0])
    np.testing.assert_allclose(fit_all(task, penalty, None, TIGHT).W, expected_of(task, penalty), atol=1e-4)


@pytest.mark.parametrize("make", [dependent_table, sparse_table])
def test_the_own_column_is_excluded_exactly(make):
    X, Y = make()
    W = fit_all(make_task(X, Y, "dbr"), np.full(4, 0.01), None, TIGHT).W
    responses = W[X.shape[1] : -1]
    assert (np.diag(responses) == 0.0).all()
    assert (responses[~np.eye(4, dtype=bool)] != 0.0).all()


@pytest.mark.parametrize("mask", MASKS)
def test_many_more_features_than_rows_are_fitted_exactly_in_fewer_columns(mask):
    X, Y = sparse_table(n=50, m=1000, density=0.01)
    task = make_task(X, Y, mask)
    solution = fit_all(task, np.full(4, 0.5), None, TIGHT)
    np.testing.assert_allclose(solution.W, expected_of(task, 0.5), atol=1e-4)
    empty = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel() == 0)
    assert len(empty) > 0
    assert (solution.W[empty] == 0.0).all()


def test_a_dense_table_wider_than_long_is_fitted_too():
    X, Y = dependent_table(n=40, m=150)
    task = make_task(X, Y, "dbr")
    np.testing.assert_allclose(fit_all(task, np.full(4, 2.0), None, TIGHT).W, expected_of(task, 2.0), atol=1e-4)


def test_more_columns_than_one_block_holds_are_fitted_alike():
    X, _ = dependent_table(n=100, m=4, d=4)
    target = np.random.default_rng(0).integers(0, 2, size=(100, 203)).astype(np.uint8)
    task = Task(X, target[:, :0], target, np.ones((0, 203), bool))
    solution = fit_all(task, np.ones(203), None, TIGHT)
    np.testing.assert_allclose(solution.W, expected_of(task, 1.0), atol=1e-4)


def test_constant_features_change_nothing_but_the_intercept():
    X, Y = dependent_table()
    constant = np.hstack([X, np.zeros((len(X), 1)), np.full((len(X), 1), 3.0)])
    task = make_task(constant, Y, "dbr")
    solution = fit_all(task, np.ones(4), None, TIGHT)
    assert solution.converged.all()
    assert (solution.W[X.shape[1]] == 0.0).all()
    np.testing.assert_allclose(solution.W, expected_of(task, 1.0), atol=1e-4)


@pytest.mark.parametrize(("value", "ones"), [(0, 0), (1, 120)])
def test_a_column_with_one_value_gets_its_smoothed_base_rate(value, ones):
    X, Y = dependent_table()
    Y[:, 2] = value
    solution = fit_all(make_task(X, Y, "dbr"), np.ones(4), None, TIGHT)
    assert solution.converged.all()
    assert (solution.W[:-1, 2] == 0.0).all()
    assert 1.0 / (1.0 + np.exp(-solution.W[-1, 2])) == pytest.approx((ones + 0.5) / 121.0, rel=1e-5)


def test_a_column_whose_weighted_rows_have_one_value_counts_these_rows_only():
    X, Y = dependent_table()
    weight = np.ones(Y.shape, np.float32)
    weight[:, 1] = Y[:, 1]
    fit = Fit(make_task(X, Y, "br", weight), slice(None), np.float64)
    ones = int(Y[:, 1].sum())
    assert fit.varies.tolist() == [True, False, True, True]
    assert fit.base_rate[1] == pytest.approx((ones + 0.5) / (ones + 1.0))


def test_a_loose_fit_is_refined_in_double_precision_only_where_needed():
    X, Y = dependent_table()
    task = make_task(X, Y, "dbr")
    loose, tight = fit_all(task, np.ones(4), None, 1e-3), fit_all(task, np.ones(4), None, TIGHT)
    assert loose.W.dtype == np.float32
    assert tight.W.dtype == np.float64
    assert (tight.gradient_norm < loose.gradient_norm).all()


def test_a_warm_start_arrives_at_the_same_minimum():
    X, Y = sparse_table(n=60, m=400, density=0.02)
    task = make_task(X, Y, "dbr")
    cold = fit_all(task, np.ones(4), None, TIGHT)
    start = fit_all(task, np.full(4, 20.0), None, 1e-3).W
    np.testing.assert_allclose(fit_all(task, np.ones(4), start, TIGHT).W, cold.W, atol=1e-5)


def test_coefficients_that_cannot_be_reached_are_reported_as_not_converged():
    X, Y = dependent_table()
    solution = fit_all(make_task(X, Y, "dbr"), np.ones(4), None, 1e-30)
    assert not solution.converged.any()
    assert (solution.gradient_norm > 0).all()


def test_a_sparse_table_without_columns_is_a_table_without_features():
    _, Y = dependent_table()
    task = make_task(sp.csr_matrix((120, 0)), Y, "dbr")
    np.testing.assert_allclose(fit_all(task, np.ones(4), None, TIGHT).W, expected_of(task, 1.0), atol=1e-4)
