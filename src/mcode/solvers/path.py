"""From rows to coefficients: one fit on some rows, and the search for the penalty over folds.

A *fit* owns a design over its training rows and solves any set of columns there. The *search* walks each column along
a grid of penalties, warm-started, while the loss on the held-out rows falls; what it computed on the way (held-out
logits, coefficients of every fold) is what a cross-fitted audit needs, so nothing is fitted twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode._progress import advance
from mcode.solvers.design import DenseDesign, Design, Rotation, as_design, stack
from mcode.solvers.memory import columns_of, empty
from mcode.solvers.newton import LANES, Solution, minimise
from mcode.solvers.objective import LogisticObjective, losses
from mcode.solvers.softmax import SoftmaxObjective, log_of_sum, logits, softmax_losses
from mcode.solvers.threads import n_threads, run_all

Array = NDArray[Any]
Columns = NDArray[np.intp]

GRID = np.logspace(4, -4, 10)  # the penalties that are tried, strongest first
FIRST = 3  # where the walk begins: strong enough that the first fits are cheap, close to where most columns end
SEARCH_TOLERANCE = 5e-2  # for columns with at least MANY_ONES ones and a penalty of 1 or more
MANY_ONES = 200
FINEST_SEARCH = 2e-3
HEAVY_MICROSECONDS = 80.0
LONG_MICROSECONDS = 100.0  # of a product with one column, from which wide blocks save more than a thread that waits
ENTRIES_PER_THREAD = 50_000  # of X, above which folds are made side by side
LOST = 1.5  # standard errors by which a column may predict worse in the first fold and still be fitted in the others
WEAK = 0.1
CLEARLY = 0.98
MOST_SEARCHED = 30_000  # rows on which the penalty is searched
SINGLE_TOLERANCE = 1e-5  # the relative gradient that float32 reaches
SMALLEST_SCALE = (
    1e-2  # of the count of the rarer value: a smaller gradient at the base rate is next to no effect, or rounding
)


@dataclass(frozen=True)
class Task:
    """What is to be fitted: every column's target over shared inputs, and which inputs each column may use.

    Attributes
    ----------
    X : (n, m) matrix of context features
    parents : (n, k) array of 0 and 1
        Responses that serve as inputs; k = 0 when no column uses any.
    target : (n, b) array of 0 and 1, or of codes below `n_values`
    free : (k, b) boolean array
        Which parents each column may use.
    weight : (n, b) array or None
        Row weights of each column.
    n_values : int
        How many values every target has. With more than two, a column of coefficients is that of a whole response: all
        coefficients of [X | parents | 1], each for all values (`softmax.SoftmaxObjective`).
    """

    X: Matrix
    parents: Array
    target: Array
    free: NDArray[np.bool_]
    weight: Array | None = None
    n_values: int = 2

    @property
    def n_columns(self) -> int:
        """How many columns there are to fit."""
        return int(self.target.shape[1])

    def rows(self, some: Columns) -> Task:
        """Return the same task on some of the rows."""
        weight = None if self.weight is None else self.weight[some]
        return Task(self.X[some], self.parents[some], self.target[some], self.free, weight, self.n_values)


class Fit:
    """The columns of a task, fitted on some of its rows.

    It works in coordinates of its own, in which X is rotated (`design.Rotation`): coefficients go in through `narrow`
    and come out through `widen`, which know the task's coordinates [X | parents | 1].

    Attributes
    ----------
    varies : (b,) boolean array
        Which columns have two values in these rows. The others are not fitted: no finite coefficients are best.
    base_rate : (b,) array
        Smoothed share of ones, (ones + 1/2) / (rows + 1).
    """

    _lanes = LANES

    def __init__(self, task: Task, rows: Columns | slice, dtype: Any) -> None:
        X = task.X[rows]
        self._rotation = Rotation.of(X)
        self._dtype = np.dtype(dtype)
        self._design = as_design(self.stack(X, task.parents[rows]))
        self._target = task.target[rows]
        self._weight = None if task.weight is None else task.weight[rows]
        self._free = task.free[: 0 if task.free.all() else None].astype(dtype)
        self._m = X.shape[1]
        self._m_narrow = self._design.shape[1] - task.parents.shape[1] - 1
        self._scale = np.full(task.n_columns, np.nan)
        self._measure()

    def _measure(self) -> None:
        total, ones = self._count()
        self.varies = (ones > 0) & (ones < total)
        self.base_rate = (ones + 0.5) / (total + 1.0)
        self._ones, self._total = ones, total

    def _count(self) -> tuple[Floats, Floats]:
        if self._weight is None:
            ones = self._target.sum(axis=0, dtype=np.float64)
            return np.full(len(ones), float(len(self._target))), ones
        ones = (self._weight * self._target).sum(axis=0, dtype=np.float64)
        return self._weight.sum(axis=0, dtype=np.float64), ones

    def constant(self, columns: Columns) -> Array:
        """Return coefficients that predict the base rate of some columns."""
        W = np.zeros((self._design.shape[1], len(columns)), self._dtype)
        W[-1] = self._intercept(columns)
        return W

    def _intercept(self, columns: Columns) -> Floats:
        return np.asarray(np.log(self.base_rate[columns]) - np.log1p(-self.base_rate[columns]))

    @property
    def _block_width(self) -> int:
        """Columns per block, so that a block's coefficients stay in cache."""
        if isinstance(self._design, DenseDesign):
            return 96
        return 64

    def is_heavy(self, columns: Columns) -> bool:
        """Whether a product with a block of these columns is long enough to run beside others."""
        return self._design.microseconds * min(len(columns), self._block_width) > HEAVY_MICROSECONDS

    def search_tolerance(self, columns: Columns, penalty: float) -> Floats:
        """Return how exact the search needs each column."""
        return search_tolerance(self._ones[columns], penalty)

    def blocks(self, columns: Columns, beside: int = 1) -> list[Columns]:
        """Cut the columns that vary into even blocks; neighbours in frequency converge together, so they share one.

        As many fits as `beside` says are cut like this one and solved side by side with it.
        """
        columns = columns[self.varies[columns]]
        if not len(columns):
            return []
        ordered = columns[np.argsort(self._ones[columns], kind="stable")]
        n_blocks = -(-len(ordered) // self._block_width)
        alone = beside < n_threads() or self._design.microseconds < LONG_MICROSECONDS
        if self.is_heavy(columns) and alone:  # as many blocks as keep all threads busy to the end
            n_blocks = min(-(-n_blocks // n_threads()) * n_threads(), -(-len(ordered) // LANES))
        return np.array_split(ordered, n_blocks)

    def solve(self, columns: Columns, penalty: Floats, start: Array | None, tolerance: Floats) -> Solution:
        """Fit a block of columns, each with its own penalty and tolerance, from `start` or from the base rate."""
        b = len(columns)
        padded = np.resize(columns, -(-b // self._lanes) * self._lanes)  # whole lanes, by repeating columns
        again = np.arange(len(padded)) % b
        objective = self._objective(padded, penalty[again])
        unknown = np.isnan(self._scale[columns]).any()
        if unknown or start is None:
            point = objective.at_constant(self._intercept(padded))
        if unknown:
            rarer = np.minimum(self._ones, self._total - self._ones)[padded]
            norm = np.linalg.norm(point.gradient, axis=0)
            self._scale[padded] = np.maximum(norm, np.maximum(SMALLEST_SCALE * rarer, 1e-30))
        if start is not None:
            point = objective.at(columns_of(start, again, self._dtype))
        solution = minimise(point, self._scale[padded], tolerance[again])
        return Solution(solution.W[:, :b], solution.n_iter[:b], solution.gradient_norm[:b], solution.converged[:b])

    def _objective(self, columns: Columns, penalty: Floats) -> LogisticObjective:
        free = columns_of(self._free, columns)
        weight = None if self._weight is None else columns_of(self._weight, columns, self._dtype)
        target = columns_of(self._target, columns, self._dtype)
        return LogisticObjective(self._design, target, penalty.astype(self._dtype), free, weight)

    def stack(self, X: Matrix, parents: Array) -> Matrix:
        """Return [X | parents | 1] of any rows in these coordinates."""
        return stack(X if self._rotation is None else self._rotation.narrow(X, self._dtype), parents, self._dtype)

    def narrow(self, W: Array) -> Array:
        """Return coefficients of the task's coordinates in these."""
        if self._rotation is None:
            return W
        return np.concatenate([self._rotation.basis.T @ W[: self._m], W[self._m :]]).astype(self._dtype)

    def widen(self, W: Array) -> Array:
        """Return coefficients of these coordinates in the task's."""
        if self._rotation is None:
            return W
        return np.concatenate([self._rotation.basis @ W[: self._m_narrow], W[self._m_narrow :]]).astype(self._dtype)

    def losses(self, design: Design, W: Array, columns: Columns, target: Array) -> Array:
        """Return the loss of any rows, given by their design and target, for some columns with coefficients W."""
        eta = empty((len(target), len(columns)), W.dtype)
        design.product(np.ascontiguousarray(W), eta)
        return losses(eta, columns_of(target, columns, W.dtype))


class SoftmaxFit(Fit):
    """The same for responses with several values: a column holds all coefficients of a response.

    Attributes
    ----------
    varies : (b,) boolean array, which responses have two values or more in these rows
    base_rate : (K, b) array, smoothed share of each value; with one value only that is all there is to predict by
    seen : (K, b) boolean array, which values occur in these rows
    """

    _lanes = 1  # a response fills several columns by itself

    def __init__(self, task: Task, rows: Columns | slice, dtype: Any) -> None:
        self._n_values = task.n_values
        super().__init__(task, rows, dtype)

    def _measure(self) -> None:
        weight = np.ones(self._target.shape) if self._weight is None else self._weight
        counts = np.array(
            [np.where(self._target == k, weight, 0).sum(axis=0, dtype=np.float64) for k in range(self._n_values)]
        )
        self.seen = counts > 0
        self.varies = self.seen.sum(axis=0) > 1
        self._total = counts.sum(axis=0)
        self._ones = self._total - counts.max(axis=0)  # what is left to tell from the commonest value
        self.base_rate = (counts + 1.0 / self._n_values) / (self._total + 1.0)

    def constant(self, columns: Columns) -> Array:
        """Return coefficients that predict the base rates of some responses."""
        W = np.zeros((self._design.shape[1] * self._n_values, len(columns)), self._dtype)
        W[-self._n_values :] = self._intercept(columns)
        return W

    def _intercept(self, columns: Columns) -> Floats:
        return np.asarray(np.log(self.base_rate[:, columns]))

    @property
    def _block_width(self) -> int:
        return max(1, super()._block_width // self._n_values)

    def solve(self, columns: Columns, penalty: Floats, start: Array | None, tolerance: Floats) -> Solution:
        """Fit a block of responses; a value that no row has gets its base rate on an average row."""
        solution = super().solve(columns, penalty, start, tolerance)
        seen = self.seen[:, columns]
        if not seen.all():
            level = log_of_sum(logits(self._design, solution.W, seen)).mean(axis=0)
            unseen = np.log(self.base_rate[:, columns]) + level
            last = solution.W[-self._n_values :]
            last[~seen] = unseen[~seen]
        return solution

    def _objective(self, columns: Columns, penalty: Floats) -> SoftmaxObjective:  # type: ignore[override]
        free = np.ascontiguousarray(self._free[:, columns])
        weight = None if self._weight is None else self._weight[:, columns].astype(self._dtype)
        target = np.ascontiguousarray(self._target[:, columns])
        seen = self.seen[:, columns]
        return SoftmaxObjective(self._design, target, seen, penalty.astype(self._dtype), free, weight)

    def narrow(self, W: Array) -> Array:
        """Return coefficients of the task's coordinates in these."""
        return self._of_values(super().narrow, W)

    def widen(self, W: Array) -> Array:
        """Return coefficients of these coordinates in the task's."""
        return self._of_values(super().widen, W)

    def _of_values(self, change: Callable[[Array], Array], W: Array) -> Array:
        b = W.shape[1]
        flat = np.ascontiguousarray(W).reshape(-1, self._n_values * b)
        return np.ascontiguousarray(change(flat)).reshape(-1, b)

    def losses(self, design: Design, W: Array, columns: Columns, target: Array) -> Array:
        """Return the loss of any rows, given by their design and target, for some responses with coefficients W."""
        everything = np.ones((self._n_values, len(columns)), bool)
        return softmax_losses(logits(design, W, everything), target[:, columns]).astype(W.dtype)


def fit_of(task: Task, rows: Columns | slice, dtype: Any) -> Fit:
    """Return the fit of a task's kind on some of its rows."""
    return (Fit if task.n_values == 2 else SoftmaxFit)(task, rows, dtype)


def search_tolerance(ones: Floats, penalty: float) -> Floats:
    """Return how exact the search needs columns with so many ones.

    A fit at a small penalty that is stopped early looks regularised, wins the search, and then overfits when it is
    fitted to the end: so the tolerance shrinks with the penalty. And the rarer a column, the noisier its losses.
    """
    rarity = np.clip(np.sqrt(ones / MANY_ONES), 0.1, 1.0)
    return np.asarray(np.maximum(SEARCH_TOLERANCE * np.minimum(penalty, 1.0) * rarity, FINEST_SEARCH))


def tighter(tolerance: float, penalty: Floats) -> Floats:
    """Return the tolerance that gives the same exactness in probability at every penalty: measured, its root."""
    return np.asarray(tolerance * np.minimum(1.0, np.sqrt(penalty)))


def fit_all(task: Task, penalty: Floats, start: Array | None, tolerance: float) -> Solution:
    """Fit every column on all rows to the end; columns with one value only get their base rate.

    float32 goes as far as its rounding allows; float64 finishes the columns that are not at `tolerance` by then.
    """
    everything = np.arange(task.n_columns)
    rough = _fit_all(
        fit_of(task, slice(None), np.float32), everything, penalty, start, max(tolerance, SINGLE_TOLERANCE)
    )
    left = everything if tolerance < SINGLE_TOLERANCE else np.flatnonzero(~rough.converged)
    if not len(left):
        return rough
    fine = _fit_all(fit_of(task, slice(None), np.float64), left, penalty, rough.W[:, left], tolerance)
    W, n_iter, norm, converged = rough.W.astype(np.float64), rough.n_iter, rough.gradient_norm, rough.converged
    W[:, left], norm[left], converged[left] = fine.W, fine.gradient_norm, fine.converged
    n_iter[left] += fine.n_iter
    return Solution(W, n_iter, norm, converged)


def _fit_all(fit: Fit, columns: Columns, penalty: Floats, start: Array | None, tolerance: float) -> Solution:
    """Fit `columns` in parallel blocks; `start` has one column for each of them."""
    W = fit.constant(columns)
    start = None if start is None else fit.narrow(start)
    n_iter, norm = np.zeros(len(columns), np.intp), np.zeros(len(columns))
    converged = np.ones(len(columns), bool)
    place = np.full(int(columns.max(initial=0)) + 1, -1)
    place[columns] = np.arange(len(columns))

    def solve(block: Columns) -> None:
        at = place[block]
        part = fit.solve(
            block, penalty[block], None if start is None else start[:, at], tighter(tolerance, penalty[block])
        )
        W[:, at], n_iter[at], norm[at], converged[at] = part.W, part.n_iter, part.gradient_norm, part.converged

    run_all([partial(solve, block) for block in fit.blocks(columns)], side_by_side=fit.is_heavy(columns))
    return Solution(fit.widen(W), n_iter, norm, converged)


class Fold:
    """One fold: a fit on the other rows, its coefficients (in the coordinates of the fit), and the rows held out."""

    def __init__(self, task: Task, held_out: NDArray[np.bool_], dtype: Any) -> None:
        self.rows = np.flatnonzero(held_out)
        self.fit = fit_of(task, np.flatnonzero(~held_out), dtype)
        self.W = self.fit.constant(np.arange(task.n_columns))
        self._design = as_design(self.fit.stack(task.X[self.rows], task.parents[self.rows]))
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
    loss : (len(GRID), n_folds, b) array of held-out losses, NaN where the walk did not go
    folds : the folds, with their coefficients at the chosen penalty
    complete : whether the folds have all rows of the task, and not a sample
    """

    penalty: Floats
    loss: Floats
    folds: list[Fold]
    complete: bool = True


def make_folds(task: Task, fold_of_row: NDArray[np.intp], dtype: Any = np.float32) -> list[Fold]:
    """Return a fold for each number in `fold_of_row`."""
    large = (task.X.nnz if sp.issparse(task.X) else task.X.size) > ENTRIES_PER_THREAD
    calls = [partial(Fold, task, fold_of_row == f, dtype) for f in range(int(fold_of_row.max()) + 1)]
    return run_all(calls, side_by_side=large)


def search(task: Task, fold_of_row: NDArray[np.intp], dtype: Any = np.float32) -> Search:
    """Find the penalty of each column by cross-validated log-loss, and fit every fold with it.

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
    return Search(GRID[walk.best], walk.loss, folds, complete=n <= MOST_SEARCHED)


def complete_folds(found: Search, task: Task, fold_of_row: NDArray[np.intp], dtype: Any = np.float32) -> list[Fold]:
    """Return the folds of a search with all rows in them, begun at what the search left behind."""
    if found.complete:
        return found.folds
    folds = make_folds(task, fold_of_row, dtype)
    for fold, begun in zip(folds, found.folds, strict=True):
        fold.W = fold.fit.narrow(begun.coefficients())
    return folds


def fit_folds(folds: list[Fold], penalty: Floats, tolerance: float) -> None:
    """Bring the coefficients of every fold to `tolerance` at the given penalties, from where they are."""
    everything = np.arange(len(penalty))

    def solve(fold: Fold, block: Columns) -> None:
        exactness = tighter(tolerance, penalty[block])
        fold.W[:, block] = fold.fit.solve(block, penalty[block], fold.W[:, block], exactness).W

    calls = [partial(solve, fold, block) for fold in folds for block in fold.fit.blocks(everything, len(folds))]
    run_all(calls, side_by_side=folds[0].fit.is_heavy(everything))


class Walk:
    """Where each column stands on the grid of penalties, and its best coefficients so far in every fold.

    Of the folds it knows their coefficients `W`; how they are fitted is in `_fit` alone, which a subclass brings.
    """

    def __init__(self, n_columns: int, folds: list[Any]) -> None:
        self.n_columns, self.folds = n_columns, folds
        self.loss = np.full((len(GRID), len(folds), n_columns), np.nan)
        self.best = np.full(n_columns, FIRST)
        self._last = [fold.W.copy() for fold in folds]  # where each column's walk is, best or not

    def go(self) -> None:
        """Walk every column to its penalty."""
        everything = np.arange(self.n_columns)
        self.visit(FIRST, everything, warm=False)
        for direction in (+1, -1):
            columns, at = everything[self.best == FIRST], FIRST + direction
            while len(columns) and 0 <= at < len(GRID):
                advance("search for the penalty", self.n_columns - len(columns), self.n_columns)
                self.visit(at, columns)
                columns, at = columns[self.best[columns] == at], at + direction
        self.settle_on_pooled()
        advance("search for the penalty", self.n_columns, self.n_columns)

    def visit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        """Fit `columns` in every fold with penalty GRID[at], and move there those that predict better than before."""
        before = np.nan_to_num(self.loss[self.best, :, np.arange(self.n_columns)].sum(axis=1), nan=np.inf)
        self._fit(at, columns, warm=warm)
        self._move(at, columns[self.loss[at][:, columns].sum(axis=0) < before[columns]])

    def settle_on_pooled(self) -> None:
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
            return
        movers = np.flatnonzero(self.best != pooled)
        self._fit(pooled, movers)
        if self.loss[pooled].sum() < CLEARLY * own:
            self._move(pooled, movers)

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
        super().__init__(n_columns, folds)
        shape, dtype = (len(folds[0].rows), n_columns), folds[0].W.dtype
        self._last_losses, self._best_losses = np.zeros(shape, dtype), np.zeros(shape, dtype)

    def visit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        """Fit `columns` with penalty GRID[at], and move there those that predict better than before."""
        if not warm:
            super().visit(at, columns, warm=warm)
            return
        before = self.loss[self.best, :, np.arange(self.n_columns)].sum(axis=1)
        self._fit_in(range(1), at, columns)
        rises = self._last_losses[:, columns] - self._best_losses[:, columns]
        rise, error = rises.sum(axis=0), np.sqrt(np.einsum("ij,ij->j", rises, rises))
        hopeful = rise <= LOST * error
        columns, error = columns[hopeful], error[hopeful]
        self._fit_in(range(1, len(self.folds)), at, columns)
        doubt = np.sqrt(len(self.folds)) * error if GRID[at] < WEAK else 0.0
        self._move(at, columns[self.loss[at][:, columns].sum(axis=0) < before[columns] - doubt])

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
        tolerance = fold.fit.search_tolerance(block, GRID[at])
        W = fold.fit.solve(block, np.full(len(block), GRID[at]), start, tolerance).W
        self._last[f][:, block] = W
        self._judge(f, at, block, W)

    def _judge(self, f: int, at: int, columns: Columns, W: Array) -> None:
        losses = self.folds[f].losses(columns, W)
        self.loss[at, f, columns] = losses.sum(axis=0, dtype=np.float64)
        if f == 0:
            self._last_losses[:, columns] = losses


def _fill_from_nearest(curves: Floats) -> Floats:
    """Replace NaN in each column by the nearest number above or below: a walk visits one unbroken stretch."""
    filled = curves.copy()
    for at in range(1, len(filled)):
        filled[at] = np.where(np.isnan(filled[at]), filled[at - 1], filled[at])
    for at in range(len(filled) - 2, -1, -1):
        filled[at] = np.where(np.isnan(filled[at]), filled[at + 1], filled[at])
    return filled
