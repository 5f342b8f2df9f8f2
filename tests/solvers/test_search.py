import numpy as np
import pytest

from mcode.models import parents as see
from mcode.models.folds import stratified_folds
from mcode.solvers import objective
from mcode.solvers.fit import Task
from mcode.solvers.search import GRID, Fold, fit_folds, search
from oracles import fit_label_by_label, held_out_losses, log_likelihoods, stacked
from solver_tasks import TIGHT, expected_of, make_task
from tables import dependent_table, sparse_table


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
