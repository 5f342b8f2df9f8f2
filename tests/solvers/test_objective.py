import numpy as np
import pytest

from mcode.solvers.design import as_design, stack
from mcode.solvers.objective import LogisticObjective, losses
from oracles import log_likelihoods, logistic_gradient, logistic_hessian, logistic_value, stacked
from tables import dependent_table, sparse_table


@pytest.fixture(params=["dense", "sparse"])
def problem(request):
    """An objective with masks and row weights, coefficients that respect the mask, and what it was made of."""
    X, Y = dependent_table(n=50) if request.param == "dense" else sparse_table(n=50)
    rng = np.random.default_rng(1)
    free = ~np.eye(4, dtype=bool)
    weight = (rng.random(Y.shape) < 0.7).astype(np.float64)
    penalty = np.array([0.1, 1.0, 10.0, 3.0])
    objective = LogisticObjective(as_design(stack(X, Y, np.float64)), Y.astype(np.float64), penalty, free, weight)
    Z = stacked(X, Y)
    W = rng.normal(scale=0.5, size=(Z.shape[1], 4))
    W[X.shape[1] : -1][~free] = 0.0
    return objective, W, Z, Y, free, weight, penalty


def allowed(free, c, p):
    """Which coefficients column c may use."""
    mask = np.ones(p, bool)
    mask[-1 - len(free) : -1] = free[:, c]
    return mask


def test_value_gradient_and_hessian_have_their_closed_forms(problem):
    objective, W, Z, Y, free, weight, penalty = problem
    point = objective.at(W)
    D = np.random.default_rng(2).normal(size=W.shape)
    HD = np.empty_like(D)
    for c in range(4):
        D[~allowed(free, c, len(W)), c] = 0.0
    point.hessian_product(D, HD)
    for c in range(4):
        mask = allowed(free, c, len(W))
        arguments = (penalty[c], weight[:, c])
        assert point.value()[c] == pytest.approx(logistic_value(Z, Y[:, c], W[:, c], *arguments), rel=1e-12)
        gradient = logistic_gradient(Z, Y[:, c], W[:, c], *arguments) * mask
        np.testing.assert_allclose(point.gradient[:, c], gradient, atol=1e-10)
        product = logistic_hessian(Z, W[:, c], *arguments) @ D[:, c] * mask
        np.testing.assert_allclose(HD[:, c], product, atol=1e-10)


def test_the_gradient_is_the_slope_of_the_value(problem):
    objective, W, *_, free, _, _ = problem
    gradient = objective.at(W).gradient
    step = 1e-6
    for k in range(len(W)):
        E = np.zeros_like(W)
        E[k] = step
        slope = (objective.at(W + E).value() - objective.at(W - E).value()) / (2 * step)
        for c in range(4):
            expected = slope[c] if allowed(free, c, len(W))[k] else 0.0
            assert gradient[k, c] == pytest.approx(expected, abs=1e-6)


def test_the_hessian_is_the_slope_of_the_gradient(problem):
    objective, W, *_, free, _, _ = problem
    D = np.random.default_rng(3).normal(size=W.shape)
    for c in range(4):
        D[~allowed(free, c, len(W)), c] = 0.0
    product = np.empty_like(D)
    objective.at(W).hessian_product(D, product)
    step = 1e-6
    slope = (objective.at(W + step * D).gradient - objective.at(W - step * D).gradient) / (2 * step)
    np.testing.assert_allclose(product, slope, atol=1e-6)


def test_forbidden_coefficients_have_no_gradient_and_no_curvature_at_all(problem):
    objective, W, _, _, free, _, _ = problem
    point = objective.at(W)
    product = np.empty_like(W)
    point.hessian_product(np.ones_like(W), product)
    assert (point.gradient[-1 - len(free) : -1][~free] == 0.0).all()
    assert (product[-1 - len(free) : -1][~free] == 0.0).all()


def test_a_row_of_weight_0_is_as_if_it_were_not_there(problem):
    objective, W, Z, Y, free, weight, penalty = problem
    rows = np.flatnonzero(weight[:, 1])
    alone = LogisticObjective(as_design(np.ascontiguousarray(Z[rows])), Y[rows, 1:2] * 1.0, penalty[1:2], free[:, 1:2])
    few, all_rows = alone.at(W[:, 1:2].copy()), objective.at(W)
    np.testing.assert_allclose(few.gradient[:, 0], all_rows.gradient[:, 1], atol=1e-12)
    assert few.value()[0] == pytest.approx(all_rows.value()[1], rel=1e-12)


def test_some_columns_of_a_point_are_the_point_of_these_columns(problem):
    objective, W, *_ = problem
    keep = np.array([3, 1])
    some, afresh = objective.at(W).columns(keep), objective.columns(keep).at(np.ascontiguousarray(W[:, keep]))
    np.testing.assert_allclose(some.gradient, afresh.gradient, atol=1e-12)
    np.testing.assert_allclose(some.value(), afresh.value(), rtol=1e-12)
    np.testing.assert_allclose(some.inverse_diagonal(), afresh.inverse_diagonal(), rtol=1e-12)


def test_the_preconditioner_is_positive_and_finite_even_where_every_row_is_certain(problem):
    objective, W, *_ = problem
    certain = objective.at(np.where(np.arange(len(W))[:, None] == len(W) - 1, 900.0, 0.0) * np.ones_like(W))
    inverse = certain.inverse_diagonal()
    assert (inverse > 0).all()
    assert np.isfinite(inverse).all()


def test_losses_are_minus_log_likelihoods():
    X, Y = dependent_table(n=30)
    W = np.random.default_rng(0).normal(size=(X.shape[1] + Y.shape[1] + 1, 4))
    Z = stacked(X, Y)
    np.testing.assert_allclose(losses(Z @ W, Y.astype(np.float64)), -log_likelihoods(Z, W, Y), rtol=1e-12)
