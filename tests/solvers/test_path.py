import numpy as np
import pytest
import scipy.sparse as sp

from mcode.models import parents as see
from mcode.models.folds import stratified_folds
from mcode.solvers import objective
from mcode.solvers.path import GRID, Fit, Fold, Task, fit_all, fit_folds, search
from oracles import fit_label_by_label, held_out_losses, log_likelihoods, stacked
from tables import dependent_table, sparse_table

MASKS = {"br": see.none, "chain": lambda d: see.chain([2, 0, 3, 1], d), "dbr": see.all_others}
TIGHT = 1e-7


def make_task(X, Y, mask, weight=None):
    parents = MASKS[mask](Y.shape[1])
    if parents.any():
        return Task(X, Y, Y, parents.T, weight)
    return Task(X, Y[:, :0], Y, np.ones((0, Y.shape[1]), bool), weight)


def expected_of(task, penalty):
    return fit_label_by_label(task.X, task.parents, task.target, task.free, penalty, task.weight)


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


@pytest.mark.parametrize("make", [dependent_table, sparse_table])
def test_the_search_finds_the_penalty_of_an_exhaustive_grid(make):
    X, Y = make(n=2000, d=6, seed=3)
    X, new_X, Y, new_Y = X[:160], X[160:], Y[:160], Y[160:]
    task = Task(X, Y, Y, see.all_others(6).T)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    found = search(task, folds, np.float64)
    exhaustive = held_out_losses(X, Y, Y, task.free, GRID, folds)
    visited = ~np.isnan(found.loss.sum(axis=1))
    np.testing.assert_allclose(found.loss.sum(axis=1)[visited], exhaustive[visited], rtol=5e-2)
    own, pooled = exhaustive.argmin(axis=0), exhaustive.sum(axis=1).argmin()
    at = np.searchsorted(-GRID, -found.penalty)
    assert np.mean((at == own) | (at == pooled)) >= 0.8  # a column may take the penalty that serves all of them best
    Z = stacked(new_X, new_Y)
    ours, theirs = (
        -log_likelihoods(Z, expected_of(task, penalty), new_Y).sum() for penalty in (found.penalty, GRID[own])
    )
    assert ours <= 1.005 * theirs


def test_the_folds_of_a_search_hold_the_coefficients_at_its_penalty():
    X, Y = dependent_table(n=150)
    task = make_task(X, Y, "dbr")
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    found = search(task, folds, np.float64)
    fit_folds(found.folds, found.penalty, TIGHT)
    for f, fold in enumerate(found.folds):
        rest = folds != f
        expected = fit_label_by_label(X[rest], Y[rest], Y[rest], task.free, found.penalty)
        np.testing.assert_allclose(fold.coefficients(), expected, atol=1e-4)


def test_a_fold_never_sees_the_rows_it_judges():
    X, Y = dependent_table(n=90)
    held_out = np.arange(90) % 3 == 0
    other = Y.copy()
    other[held_out] = 1 - other[held_out]
    fitted = []
    for responses in (Y, other):
        fold = Fold(make_task(X, responses, "dbr"), held_out, np.float64)
        fit_folds([fold], np.ones(4), TIGHT)
        fitted.append(fold.coefficients())
    np.testing.assert_array_equal(*fitted)


def test_a_column_that_is_constant_in_one_fold_is_searched_all_the_same():
    X, Y = dependent_table(n=60)
    Y[:, 3] = 0
    Y[5, 3] = 1
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    found = search(make_task(X, Y, "dbr"), folds)
    assert np.isfinite(found.penalty).all()
    assert all(np.isfinite(fold.W).all() for fold in found.folds)


def test_sparse_and_dense_storage_give_the_same_search():
    X, Y = sparse_table(n=150)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    one = search(make_task(X, Y, "dbr"), folds, np.float64)
    other = search(make_task(X.toarray(), Y, "dbr"), folds, np.float64)
    np.testing.assert_array_equal(one.penalty, other.penalty)
    np.testing.assert_allclose(one.loss.sum(axis=1), other.loss.sum(axis=1), rtol=5e-2)  # the search is not exact


def test_a_sparse_table_without_columns_is_a_table_without_features():
    _, Y = dependent_table()
    task = make_task(sp.csr_matrix((120, 0)), Y, "dbr")
    np.testing.assert_allclose(fit_all(task, np.ones(4), None, TIGHT).W, expected_of(task, 1.0), atol=1e-4)


def test_a_column_that_nothing_explains_costs_no_more_than_others(monkeypatch):
    looked = []
    original = objective.LogisticObjective.at

    def counted(self, W):
        looked.append(1)
        return original(self, W)

    monkeypatch.setattr(objective.LogisticObjective, "at", counted)
    rng = np.random.default_rng(0)
    Y = (rng.random((20_000, 8)) < rng.uniform(0.02, 0.4, 8)).astype(np.uint8)
    Y[:, 1] = Y[:, 0] ^ (rng.random(len(Y)) < 0.02)
    free = np.triu(np.ones((8, 8), bool), 1)  # the first column may use nothing
    task = Task(np.empty((len(Y), 0), np.float32), Y, Y, free)
    folds = [Fold(task, np.arange(len(Y)) % 5 == f, np.float32) for f in range(5)]
    fit_folds(folds, np.full(8, 20.0), 3e-4)
    assert len(looked) < 5 * 12
    base = np.log(Y[:, 0].mean()) - np.log1p(-Y[:, 0].mean())
    assert all(abs(fold.coefficients()[-1, 0] - base) < 0.05 for fold in folds)
