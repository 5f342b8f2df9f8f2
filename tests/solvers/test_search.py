import numpy as np
import pytest

from mcode.models import parents as see
from mcode.models.folds import stratified_folds
from mcode.solvers import objective
from mcode.solvers.fit import Task
from mcode.solvers.search import GRID, WEAK, Fold, Walk, fit_folds, search
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


def test_the_losses_of_a_fold_have_no_say_in_the_penalty_of_its_own_model():
    rng = np.random.default_rng(0)
    chosen = []
    for own_loss in (0.0, 10.0 * rng.random((len(GRID), 6))):
        walk = Walk(6, [Coefficients()] * 3, np.array([2, 3, 50, 60, 70, 80.0]))
        walk.loss = np.random.default_rng(1).random((len(GRID), 3, 6))
        walk.loss[:, 1] += own_loss
        walk.settle_on_own()
        chosen.append(walk.best_without)
    np.testing.assert_array_equal(chosen[0][1], chosen[1][1])
    assert (chosen[0][[0, 2]] != chosen[1][[0, 2]]).any()  # the other folds do listen to it


class Coefficients:
    """All that a walk knows of a fold."""

    W = np.zeros((1, 6))


def test_the_penalty_of_a_fold_is_the_best_for_the_others():
    X, Y = dependent_table(n=300, d=4)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    found = search(make_task(X, Y, "br"), folds, np.float64)
    strong = GRID >= WEAK  # steps to weaker ones have to gain more than luck may
    for f in range(3):
        others = found.loss[:, np.arange(3) != f].sum(axis=1)
        for j in range(4):
            chosen = np.flatnonzero(found.fold_penalty[f, j] == GRID)[0]
            assert others[chosen, j] <= np.nanmin(others[strong, j]) * (1 + 1e-9) or not strong[chosen]


def test_responses_that_few_rows_have_choose_their_penalty_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10)).astype(np.float32)
    Y = (rng.random((200, 12)) < 0.3).astype(np.uint8)
    for j in range(8):  # from one to four ones
        Y[:, j] = 0
        Y[rng.choice(200, j // 2 + 1, replace=False), j] = 1
    folds = stratified_folds(Y, 5, np.random.default_rng(0))
    found = search(make_task(X, Y, "br"), folds)
    assert len(np.unique(found.penalty[:8])) == 1
    assert found.penalty[0] >= 1.0  # nothing explains them; alone, a single one asks for no penalty at all
    assert all(len(np.unique(row[:8])) == 1 for row in found.fold_penalty)


def test_one_rare_response_does_not_drag_the_others_to_no_penalty():
    # Each of seven rare responses would stop at once; an eighth gains a little all the way to the weakest penalty.
    class Given(Walk):
        def _fit(self, at, columns, *, warm=True):
            curve = np.full(8, 1.0 + 0.5 * abs(at - 3))
            curve[7] = 1.0 - 0.1 * at
            self.loss[at][:, columns] = curve[columns]

    folds = [Coefficients()] * 3
    for fold in folds:
        fold.W = np.zeros((1, 8))
    walk = Given(8, folds, np.full(8, 4.0))
    walk.go()
    np.testing.assert_array_equal(walk.best, 3)
    np.testing.assert_array_equal(walk.best_without, 3)
