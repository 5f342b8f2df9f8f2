"""From rows to coefficients: the columns of a task, fitted on some of its rows at given penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.solvers import in_memory, newton
from mcode.solvers.design import DenseDesign, Design, Rotation, as_design, stack
from mcode.solvers.memory import columns_of, empty
from mcode.solvers.newton import LANES, Solution
from mcode.solvers.objective import LogisticObjective, losses
from mcode.solvers.softmax import SoftmaxObjective, log_of_sum, logits, softmax_losses
from mcode.solvers.threads import n_threads, run_all

Array = NDArray[Any]
Columns = NDArray[np.intp]

HEAVY_MICROSECONDS = 80.0  # of a product with a block, from which blocks run side by side
LONG_MICROSECONDS = 100.0  # of a product with one column, from which wide blocks save more than a thread that waits
CLOSER = 0.5  # share of its gradient at the start that a column which has to move may keep
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

    @cached_property
    def axes(self) -> Rotation | None:
        """Coordinates of a dense X that all fits on its rows share; those of a sparse one depend on the rows."""
        return None if sp.issparse(self.X) else Rotation.of(self.X)

    @cached_property
    def turned(self) -> Array | None:
        """X in these coordinates, in single precision."""
        return None if self.axes is None else np.asarray(self.axes.narrow(self.X, np.float32))

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
    ones : (b,) array
        How many ones each column has; with row weights, their sum.
    base_rate : (b,) array
        Smoothed share of ones, (ones + 1/2) / (rows + 1).
    """

    _lanes = LANES
    _minimise: Callable[..., Solution] = staticmethod(in_memory.minimise)

    def __init__(self, task: Task, rows: Columns | slice, dtype: Any) -> None:
        self._rotation = Rotation.of(task.X[rows]) if sp.issparse(task.X) else task.axes
        self._dtype = np.dtype(dtype)
        self._design = as_design(self.stack(task, rows))
        self._target = task.target[rows]
        self._weight = None if task.weight is None else task.weight[rows]
        self._free = task.free[: 0 if task.free.all() else None].astype(dtype)
        self._m = task.X.shape[1]
        self._m_narrow = self._design.shape[1] - task.parents.shape[1] - 1
        self._scale = np.full(task.n_columns, np.nan)
        self._measure()

    def weigh(self, weight: Array) -> None:
        """Give the rows other weights; the design, which is what a fit takes its time for, stays."""
        self._weight = weight
        self._measure()

    def _measure(self) -> None:
        total, ones = self._count()
        self.varies = (ones > 0) & (ones < total)
        self.base_rate = (ones + 0.5) / (total + 1.0)
        self.ones, self._total = ones, total

    def _count(self) -> tuple[Floats, Floats]:
        if self._weight is None:
            ones = self._target.sum(axis=0, dtype=np.float64)
            return np.full(len(ones), float(len(self._target))), ones
        ones = (self._weight * self._target).sum(axis=0, dtype=np.float64)
        return self._weight.sum(axis=0, dtype=np.float64), ones

    @property
    def rarer(self) -> Floats:
        """How many rows have the rarer value of each column."""
        return np.minimum(self.ones, self._total - self.ones)

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

    def blocks(self, columns: Columns, beside: int = 1) -> list[Columns]:
        """Cut the columns that vary into even blocks; neighbours in frequency converge together, so they share one.

        As many fits as `beside` says are cut like this one and solved side by side with it.
        """
        columns = columns[self.varies[columns]]
        if not len(columns):
            return []
        ordered = columns[np.argsort(self.ones[columns], kind="stable")]
        n_blocks = -(-len(ordered) // self._block_width)
        alone = beside < n_threads() or self._design.microseconds < LONG_MICROSECONDS
        if self.is_heavy(columns) and alone:  # as many blocks as keep all threads busy to the end
            n_blocks = min(-(-n_blocks // n_threads()) * n_threads(), -(-len(ordered) // LANES))
        return np.array_split(ordered, n_blocks)

    def solve(
        self, columns: Columns, penalty: Floats, start: Array | None, tolerance: Floats, *, move: bool = False
    ) -> Solution:
        """Fit a block of columns, each with its own penalty and tolerance, from `start` or from the base rate.

        With `move` no column stays at its start because that is within the tolerance.
        """
        b = len(columns)
        padded = np.resize(columns, -(-b // self._lanes) * self._lanes)  # whole lanes, by repeating columns
        again = np.arange(len(padded)) % b
        objective = self._objective(padded, penalty[again])
        unknown = np.isnan(self._scale[columns]).any()
        if unknown or start is None:
            point = objective.at_constant(self._intercept(padded))
        if unknown:
            rarer = self.rarer[padded]
            norm = np.linalg.norm(point.gradient, axis=0)
            self._scale[padded] = np.maximum(norm, np.maximum(SMALLEST_SCALE * rarer, 1e-30))
        if start is not None:
            point = objective.at(columns_of(start, again, self._dtype))
        tolerance = tolerance[again]
        if move:
            now = np.linalg.norm(point.gradient, axis=0) / self._scale[padded]
            tolerance = np.minimum(tolerance, np.maximum(CLOSER * now, SINGLE_TOLERANCE))
        solution = self._minimise(point, self._scale[padded], tolerance)
        return Solution(solution.W[:, :b], solution.n_iter[:b], solution.gradient_norm[:b], solution.converged[:b])

    def _objective(self, columns: Columns, penalty: Floats) -> LogisticObjective:
        free = columns_of(self._free, columns)
        weight = None if self._weight is None else columns_of(self._weight, columns, self._dtype)
        target = columns_of(self._target, columns, self._dtype)
        return LogisticObjective(self._design, target, penalty.astype(self._dtype), free, weight)

    def stack(self, task: Task, rows: Columns | slice) -> Matrix:
        """Return [X | parents | 1] of any rows of the task in these coordinates."""
        if self._rotation is None:
            X = task.X[rows]
        elif task.turned is not None and self._dtype == np.float32:
            X = task.turned[rows]
        else:
            X = self._rotation.narrow(task.X[rows], self._dtype)
        return stack(X, task.parents[rows], self._dtype)

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
    _minimise = staticmethod(newton.minimise)

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
        self.ones = self._total - counts.max(axis=0)  # what is left to tell from the commonest value
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

    def solve(
        self, columns: Columns, penalty: Floats, start: Array | None, tolerance: Floats, *, move: bool = False
    ) -> Solution:
        """Fit a block of responses; a value that no row has gets its base rate on an average row."""
        solution = super().solve(columns, penalty, start, tolerance, move=move)
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


def tighter(tolerance: float, penalty: Floats) -> Floats:
    """Return the tolerance that gives the same exactness in probability at every penalty: measured, its root."""
    return np.asarray(tolerance * np.minimum(1.0, np.sqrt(penalty)))


def fit_all(task: Task, penalty: Floats, start: Array | None, tolerance: float, fit: Fit | None = None) -> Solution:
    """Fit every column on all rows to the end; columns with one value only get their base rate.

    float32 goes as far as its rounding allows; float64 finishes the columns that are not at `tolerance` by then. Who
    fits a task several times brings its `fit` in float32.
    """
    everything = np.arange(task.n_columns)
    single = fit_of(task, slice(None), np.float32) if fit is None else fit
    rough = _fit_all(single, everything, penalty, start, max(tolerance, SINGLE_TOLERANCE))
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
