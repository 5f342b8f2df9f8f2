"""The penalty of each column, searched over folds.

A walk takes each column along a grid of penalties, warm-started, while the loss on the held-out rows falls. What it
computed on the way, the coefficients of every fold, is what a cross-fitted audit needs: nothing is fitted twice.

How well a row is predicted has no say in the penalty of the model that judges it: a wrong response is badly predicted
where it is held out, asks for a stronger penalty, and would so make itself look less wrong. So the penalty of a fold's
model is chosen on the losses of the other folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode._progress import advance
from mcode.solvers.design import as_design
from mcode.solvers.fit import Array, Columns, Task, fit_of, tighter
from mcode.solvers.threads import run_all

GRID = np.logspace(4, -4, 10)  # the penalties that are tried, strongest first
FIRST = 3  # where the walk begins: strong enough that the first fits are cheap, close to where most columns end
SEARCH_TOLERANCE = 5e-2  # for columns with at least MANY_ONES ones and a penalty of 1 or more
MANY_ONES = 200
FINEST_SEARCH = 2e-3
ENTRIES_PER_THREAD = 50_000  # of X, above which folds are made side by side
LOST = 1.5  # standard errors by which a column may predict worse in the first fold and still be fitted in the others
WEAK = 0.1
CLEARLY = 0.98
MOST_SEARCHED = 30_000  # rows on which the penalty is searched
FEW = 6  # rows with the rarer value, below which a column's own losses say too little about its penalty


def search_tolerance(ones: Floats, penalty: float) -> Floats:
    """Return how exact the search needs columns with so many ones.

    A fit at a small penalty that is stopped early looks regularised, wins the search, and then overfits when it is
    fitted to the end: so the tolerance shrinks with the penalty. And the rarer a column, the noisier its losses.
    """
    rarity = np.clip(np.sqrt(ones / MANY_ONES), 0.1, 1.0)
    return np.asarray(np.maximum(SEARCH_TOLERANCE * np.minimum(penalty, 1.0) * rarity, FINEST_SEARCH))


class Fold:
    """One fold: a fit on the other rows, its coefficients (in the coordinates of the fit), and the rows held out."""

    def __init__(self, task: Task, held_out: NDArray[np.bool_], dtype: Any) -> None:
        self.rows = np.flatnonzero(held_out)
        self.fit = fit_of(task, np.flatnonzero(~held_out), dtype)
        self.W = self.fit.constant(np.arange(task.n_columns))
        self._design = as_design(self.fit.stack(task, self.rows))
        self._target = task.target[self.rows]
        self._weight = None if task.weight is None else task.weight[self.rows]

    def coefficients(self) -> Array:
        """Return the coefficients of every column in the task's coordinates."""
        return self.fit.widen(self.W)

    def losses(self, columns: Columns, W: Array) -> Array:
        """Return the loss of every held-out row for some columns with coefficients W."""
        loss = self.fit.losses(self._design, W, columns, self._target)
        return loss if self._weight is None else loss * self._weight[:, columns].astype(W.dtype)


@dataclass(frozen=True)
class Search:
    """What the walk along the penalties found.

    Attributes
    ----------
    penalty : (b,) array, the penalty of each column
    fold_penalty : (n_folds, b) array, the penalty of each column in each fold, chosen on the other folds
    loss : (len(GRID), n_folds, b) array of held-out losses, NaN where the walk did not go
    folds : the folds, with coefficients near those at the chosen penalty
    complete : whether the folds have all rows of the task, and not a sample
    """

    penalty: Floats
    fold_penalty: Floats
    loss: Floats
    folds: list[Fold]
    complete: bool = True


def make_folds(task: Task, fold_of_row: NDArray[np.intp], dtype: Any = np.float32) -> list[Fold]:
    """Return a fold for each number in `fold_of_row`."""
    _ = task.turned  # made once, before the folds ask for it side by side
    large = (task.X.nnz if sp.issparse(task.X) else task.X.size) > ENTRIES_PER_THREAD
    calls = [partial(Fold, task, fold_of_row == f, dtype) for f in range(int(fold_of_row.max()) + 1)]
    return run_all(calls, side_by_side=large)


def search(task: Task, fold_of_row: NDArray[np.intp], dtype: Any = np.float32) -> Search:
    """Find the penalty of each column by cross-validated log-loss; fits of every fold are left behind.

    Each column starts at `GRID[FIRST]` and goes to weaker penalties as long as its held-out loss falls, then, if the
    start was best, to stronger ones. Folds are never warm-started from each other: with a loose tolerance that leaks
    held-out rows into the fit. Of a long table some rows say as much about the penalty as all.

    Parameters
    ----------
    task : Task
    fold_of_row : (n,) array of integers: the fold in which each row is held out
    dtype : precision of the arithmetic
    """
    n = len(fold_of_row)
    if n > MOST_SEARCHED:
        some = np.sort(np.random.default_rng(0).choice(n, MOST_SEARCHED, replace=False))
        task, fold_of_row = task.rows(some), fold_of_row[some]
    folds = make_folds(task, fold_of_row, dtype)
    walk = FirstFoldAhead(task.n_columns, folds)
    walk.go()
    return Search(GRID[walk.best], GRID[walk.best_without], walk.loss, folds, complete=n <= MOST_SEARCHED)


def complete_folds(found: Search, task: Task, fold_of_row: NDArray[np.intp], dtype: Any = np.float32) -> list[Fold]:
    """Return the folds of a search with all rows in them, begun at what the search left behind."""
    if found.complete:
        return found.folds
    folds = make_folds(task, fold_of_row, dtype)
    for fold, begun in zip(folds, found.folds, strict=True):
        fold.W = fold.fit.narrow(begun.coefficients())
    return folds


def fit_folds(folds: list[Fold], penalty: Floats, tolerance: float) -> None:
    """Bring the coefficients of every fold to `tolerance` at the given penalties, from where they are.

    Penalties are those of the columns, shape (b,), or of the columns in each fold, shape (n_folds, b).
    """
    of_fold = np.broadcast_to(penalty, (len(folds), np.shape(penalty)[-1]))
    everything = np.arange(of_fold.shape[1])

    def solve(f: int, block: Columns) -> None:
        fold, asked = folds[f], of_fold[f, block]
        fold.W[:, block] = fold.fit.solve(block, asked, fold.W[:, block], tighter(tolerance, asked)).W

    blocks = [(f, block) for f, fold in enumerate(folds) for block in fold.fit.blocks(everything, len(folds))]
    calls = [partial(solve, f, block) for f, block in blocks]
    run_all(calls, side_by_side=folds[0].fit.is_heavy(everything))


class Walk:
    """Where each column stands on the grid of penalties, and its best coefficients so far in every fold.

    Of the folds it knows their coefficients `W`; how they are fitted is in `_fit` alone, which a subclass brings.
    `rarer` is how many rows have the rarer value of each column.

    Columns with a rare value walk together, by the sum of their losses: there are many of them where there are any, and
    a rare response whose few rows happen to be predicted well without a penalty is certain of everything afterwards.
    """

    def __init__(self, n_columns: int, folds: list[Any], rarer: Floats) -> None:
        self.n_columns, self.folds = n_columns, folds
        self._rare = np.flatnonzero(rarer < FEW)
        # A value that one row has is never held out while a model knows of it: there is no loss to walk by.
        self._walking = np.flatnonzero(rarer >= 2)
        self._walker = np.arange(n_columns)
        self._walker[self._rare] = self._rare[:1]
        self.loss = np.full((len(GRID), len(folds), n_columns), np.nan)
        self.best = np.full(n_columns, FIRST)
        self.best_without = np.full((len(folds), n_columns), FIRST)
        self._handicap = np.zeros((len(GRID), n_columns))  # what steps to weak penalties have to gain, added up
        self._last = [fold.W.copy() for fold in folds]  # where each column's walk is, best or not

    def go(self) -> None:
        """Walk every column to its penalty."""
        self.visit(FIRST, np.arange(self.n_columns), warm=False)
        for direction in (+1, -1):
            columns, at = self._walking[self.best[self._walking] == FIRST], FIRST + direction
            while len(columns) and 0 <= at < len(GRID):
                advance("search for the penalty", self.n_columns - len(columns), self.n_columns)
                self.visit(at, columns)
                columns, at = columns[self.best[columns] == at], at + direction
        if not self.settle_on_pooled():
            self.settle_on_own()
        advance("search for the penalty", self.n_columns, self.n_columns)

    def visit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        """Fit `columns` in every fold with penalty GRID[at], and move there those that predict better than before."""
        self._fit(at, columns, warm=warm)
        self._step(at, columns, 0.0)

    def settle_on_pooled(self) -> bool:
        """Give all columns the one penalty that serves them best together, if that predicts better.

        Both ways are judged on folds that had no say: a column's own choice for a fold is made on the other folds. That
        choice is noisier than the one made on all folds, so pooling has to win clearly.
        Where a column was not fitted with the pooled penalty, the loss at the end of its walk stands for it; losses
        rise beyond that, so if pooling does not win even so, no fit is needed to know it.
        """
        filled = _fill_from_nearest(self.loss.sum(axis=1))
        pooled = int(filled.sum(axis=1).argmin())
        without_fold = np.nan_to_num(self.loss.sum(axis=1, keepdims=True) - self.loss, nan=np.inf)
        own = np.take_along_axis(self.loss, without_fold.argmin(axis=0)[None], axis=0).sum()
        if filled[pooled].sum() >= CLEARLY * own:
            return False
        movers = np.flatnonzero(self.best != pooled)
        self._fit(pooled, movers)
        if self.loss[pooled].sum() >= CLEARLY * own:
            return False
        self._move(pooled, movers)
        self.best_without[:] = pooled
        return True

    def settle_on_own(self) -> None:
        """Let each column have its own penalty, and in each fold the one that the other folds choose for it.

        Rare columns that did not walk get what those choose that did, or else all columns together.
        """
        losses = self.loss + self._handicap[:, None] / len(self.folds)
        self.best_without = _least(losses.sum(axis=1, keepdims=True) - losses)
        if len(self._rare):
            judges = np.intersect1d(self._rare, self._walking)
            of_all = (losses[:, :, judges] if len(judges) else _fill_from_nearest(losses)).sum(axis=2, keepdims=True)
            self.best[self._rare] = _least(of_all.sum(axis=1))
            self.best_without[:, self._rare] = _least(of_all.sum(axis=1, keepdims=True) - of_all)

    def _step(self, at: int, columns: Columns, doubt: Floats | float) -> None:
        """Move to GRID[at] the columns that predict better there by more than `doubt`, with those they walk with."""
        stood = self.best[columns]
        self._handicap[at, columns] = self._handicap[stood, columns] + doubt
        here, there = (
            self._of_walker(self.loss[place, :, columns].sum(axis=1) + self._handicap[place, columns], columns)
            for place in (stood, at)
        )
        self._move(at, columns[(there < here) | (stood == at)])

    def _of_walker(self, values: Floats, columns: Columns) -> Floats:
        """Return for each column the sum over those that it walks with."""
        walker = self._walker[columns]
        return np.asarray(np.bincount(walker, weights=values), dtype=np.float64)[walker]

    def _move(self, at: int, columns: Columns) -> None:
        self.best[columns] = at
        for fold, last in zip(self.folds, self._last, strict=True):
            fold.W[:, columns] = last[:, columns]

    def _fit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        """Fit `columns` in every fold, from where their walk is or anew, and enter `loss` and `_last`."""
        raise NotImplementedError


class FirstFoldAhead(Walk):
    """A walk over folds in memory, in which the first fold goes ahead.

    A column that predicts clearly worse there ends its walk: fits in the other folds would hardly turn the verdict.
    (The search on bibtex and on yeast has a fifth less to do.) The losses of the first fold's rows are kept one by one,
    where a column's walk is and at its best, for the standard error of their difference. A step to a weak penalty has
    to gain more than that error: where it is a matter of luck, a rare response is better off with the stronger one.
    """

    def __init__(self, n_columns: int, folds: list[Fold]) -> None:
        super().__init__(n_columns, folds, np.sum([fold.fit.rarer for fold in folds], axis=0) / max(len(folds) - 1, 1))
        shape, dtype = (len(folds[0].rows), n_columns), folds[0].W.dtype
        self._last_losses, self._best_losses = np.zeros(shape, dtype), np.zeros(shape, dtype)

    def visit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        """Fit `columns` with penalty GRID[at], and move there those that predict better than before."""
        if not warm:
            super().visit(at, columns, warm=warm)
            return
        self._fit_in(range(1), at, columns)
        rises = self._last_losses[:, columns] - self._best_losses[:, columns]
        rise = self._of_walker(rises.sum(axis=0), columns)
        error = np.sqrt(self._of_walker(np.einsum("ij,ij->j", rises, rises), columns))
        hopeful = rise <= LOST * error
        columns, error = columns[hopeful], error[hopeful]
        self._fit_in(range(1, len(self.folds)), at, columns)
        doubt = np.sqrt(len(self.folds)) * error / self._of_walker(np.ones(len(columns)), columns)
        self._step(at, columns, doubt if GRID[at] < WEAK else 0.0)

    def _move(self, at: int, columns: Columns) -> None:
        super()._move(at, columns)
        self._best_losses[:, columns] = self._last_losses[:, columns]

    def _fit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        self._fit_in(range(len(self.folds)), at, columns, warm=warm)

    def _fit_in(self, folds: range, at: int, columns: Columns, *, warm: bool = True) -> None:
        blocks = [(f, block) for f in folds for block in self.folds[f].fit.blocks(columns, len(folds))]
        calls = [partial(self._fit_block, f, at, block, warm) for f, block in blocks]
        run_all(calls, side_by_side=self.folds[0].fit.is_heavy(columns))
        for f in folds:
            constant = columns[~self.folds[f].fit.varies[columns]]
            self._judge(f, at, constant, self.folds[f].W[:, constant])

    def _fit_block(self, f: int, at: int, block: Columns, warm: bool) -> None:
        fold = self.folds[f]
        start = self._last[f][:, block] if warm else None
        tolerance = search_tolerance(fold.fit.ones[block], GRID[at])
        # A start that is within the tolerance at the next penalty too would say nothing about that penalty.
        W = fold.fit.solve(block, np.full(len(block), GRID[at]), start, tolerance, move=warm).W
        self._last[f][:, block] = W
        self._judge(f, at, block, W)

    def _judge(self, f: int, at: int, columns: Columns, W: Array) -> None:
        losses = self.folds[f].losses(columns, W)
        self.loss[at, f, columns] = losses.sum(axis=0, dtype=np.float64)
        if f == 0:
            self._last_losses[:, columns] = losses


def _least(losses: Floats) -> NDArray[np.intp]:
    """Return where each curve along the grid is lowest, of the places that were visited."""
    return np.asarray(np.nan_to_num(losses, nan=np.inf).argmin(axis=0))


def _fill_from_nearest(curves: Floats) -> Floats:
    """Replace NaN in each column by the nearest number above or below: a walk visits one unbroken stretch."""
    filled = curves.copy()
    for at in range(1, len(filled)):
        filled[at] = np.where(np.isnan(filled[at]), filled[at - 1], filled[at])
    for at in range(len(filled) - 2, -1, -1):
        filled[at] = np.where(np.isnan(filled[at]), filled[at + 1], filled[at])
    return filled
