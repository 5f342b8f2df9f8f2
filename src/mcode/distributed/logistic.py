"""`BatchLogistic` on a table in partitions: the same solver, penalties and tolerances over a chunked objective.

All folds and responses are columns of one batch, so that a pass over the table serves all of them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode._progress import advance
from mcode.distributed.cluster import Cluster
from mcode.distributed.deal import Deal
from mcode.distributed.look import Known
from mcode.distributed.objective import ChunkedObjective, Passes
from mcode.distributed.pieces import Ask, Coordinates
from mcode.distributed.table import Rows, Table
from mcode.errors import NotConvergedWarning
from mcode.models.logistic import (
    GIVEN_TOLERANCE,
    SEARCHED_TOLERANCE,
    BatchLogistic,
    LinearConditionals,
    Scaling,
)
from mcode.models.parents import Parents
from mcode.solvers.fit import SINGLE_TOLERANCE, Task, fit_all, tighter
from mcode.solvers.newton import Solution, minimise
from mcode.solvers.search import FIRST, GRID, MOST_SEARCHED, WEAK, Walk, search, search_tolerance

Array = NDArray[Any]
Columns = NDArray[np.intp]

FOLD_TOLERANCE = 1e-5  # relative gradient: out-of-fold rho within 1e-4 of the optimum
SAMPLE_TOLERANCE = 1e-4
ENOUGH_TO_SEARCH = 10_000  # rows of a sample that the penalty is searched on, where the table is long
# The walk starts so close to the optimum that a tolerance of per cents would call every start the end.
LOOSEST_SEARCH = 1e-3
KEPT_SHARE = 0.4  # of the workers' memory that a prepared table may take, with the curvature of every column


@dataclass(frozen=True)
class Fitted:
    """Conditionals of every fold, and of all rows where they were asked for."""

    folds: list[LinearConditionals]
    final: LinearConditionals | None


def fit_logistic(
    cluster: Cluster,
    table: Table,
    known: Known,
    deal: Deal,
    learner: BatchLogistic,
    parents: Parents,
    sample: Rows,
    *,
    context: bool = True,
    folds: bool = True,
    final: bool = True,
    tolerance: float | None = None,
) -> Fitted:
    """Fit every fold where `folds` asks for it, and all rows where `final` does.

    Parameters
    ----------
    cluster, table, known, deal : the table, and how its rows are dealt out
    learner : BatchLogistic
    parents : (d, d) boolean array
    sample : Rows, from which the fit starts
    context : False leaves the context out, for the companion that knows the responses alone
    folds, final : what is wanted
    tolerance : relative gradient of the fit on all rows; None is that of `BatchLogistic`
    """
    coordinates = coordinates_of(known, learner.scales(), bool(parents.any()), context)
    keep = fits_in_memory(cluster, table, known, coordinates, deal)
    with Passes(cluster, table, known.encoding, coordinates, deal, keep=keep) as passes:
        return _Fit(passes, known, learner, parents, coordinates, deal, sample).run(folds, final, tolerance)


def coordinates_of(known: Known, scaled: bool, parents: bool, context: bool) -> Coordinates:
    """Return the coordinates of the fit: centred, scaled where that is wanted, along the principal axes."""
    if known.sparse or not context:
        return Coordinates(None, None, None, parents, context)
    scale = known.deviation if scaled else np.ones_like(known.mean)
    if known.gram.ndim == 1 or len(known.mean) < 2:
        return Coordinates(known.mean, scale, None, parents, context)
    squares, basis = np.linalg.eigh(known.gram / np.outer(scale, scale))
    mean_square = np.maximum(squares, 0.0) / known.n_rows
    return Coordinates(known.mean, scale, basis, parents, context, mean_square)


def fits_in_memory(cluster: Cluster, table: Table, known: Known, coordinates: Coordinates, deal: Deal) -> bool:
    """Return whether the workers can keep the prepared table; a sparse context is taken to be a tenth full."""
    width = table.n_features * coordinates.context * (1.2 if known.sparse else 4.0)
    width += table.n_responses * (1.0 + 4.0 * coordinates.parents + 4.0 * deal.n_folds)
    return known.n_rows * width <= KEPT_SHARE * cluster.memory()


class _Fit:
    """The columns of one learner: (fold, response) in the order of folds, or the responses on all rows."""

    def __init__(
        self,
        passes: Passes,
        known: Known,
        learner: BatchLogistic,
        parents: Parents,
        coordinates: Coordinates,
        deal: Deal,
        sample: Rows,
    ) -> None:
        self.sample, self.fold_of_sample = sample, deal.fold_of(sample.ids)
        self.passes, self.known, self.learner, self.coordinates = passes, known, learner, coordinates
        self.d, self.k = len(parents), deal.n_folds
        self.m = len(known.mean) if coordinates.context else 0
        self.p = self.m + (self.d if coordinates.parents else 0) + 1
        masked = coordinates.parents and not bool(parents.all())
        self.free = parents.T.astype(np.float32) if masked else np.ones((0, self.d), np.float32)
        self.of_folds = Ask(np.tile(np.arange(self.d), self.k), np.repeat(np.arange(self.k), self.d))
        self.of_all = Ask(np.arange(self.d), np.full(self.d, -1))
        self.scale = np.full(self.k * self.d, np.nan)

    def run(self, folds: bool, final: bool, tolerance: float | None) -> Fitted:
        given = self.learner.given_penalty(self.d)
        tolerance = tolerance or (SEARCHED_TOLERANCE if given is None else GIVEN_TOLERANCE)
        if given is None and self.known.n_rows > MOST_SEARCHED and len(self.sample.ids) >= ENOUGH_TO_SEARCH:
            penalty, of_folds, W = self.search_sample()
        elif given is None:
            walk = ChunkedWalk(self)
            walk.go()
            penalty, of_folds, W = GRID[walk.best], GRID[walk.best_without], walk.coefficients()
        elif folds:
            penalty, of_folds = given, self.learner.given_in_folds(given, self.k)
            W = self.from_sample(self.of_folds, of_folds.ravel())
        else:
            return Fitted([], self._finish(given, self.from_sample(self.of_all, given), tolerance))
        if folds:
            asked = of_folds.ravel()
            W = self.solve(self.of_folds, asked, W, tighter(FOLD_TOLERANCE, asked), "fit the folds").W
        by_fold = W.reshape(self.p, self.k, self.d)
        fitted = [self.conditionals(by_fold[:, f], of_folds[f]) for f in range(self.k)] if folds else []
        return Fitted(fitted, self._finish(penalty, by_fold.mean(axis=1), tolerance) if final else None)

    def from_sample(self, ask: Ask, penalty: Floats) -> Array:
        """Return where the fit of some columns starts: their fit on the sample, each fold without its own rows.

        It saves the first steps over the whole table, and moves no optimum. The penalty is that of as many rows as the
        sample has; where these are not all rows it is never weak, for a sample may be separable where the table is not.
        """
        share = len(self.sample.ids) / self.known.n_rows
        weak, tolerance = (0.0, GIVEN_TOLERANCE) if share == 1.0 else (1.0, SAMPLE_TOLERANCE)
        whole = self._task_of_sample()
        W = self.constant(ask)
        for f in np.unique(ask.fold):
            columns = np.flatnonzero((ask.fold == f) & self.varies(ask))
            rows = np.flatnonzero(self.fold_of_sample != f)
            if not len(columns) or len(rows) < 2:
                continue
            response = ask.response[columns]
            task = Task(
                whole.X[rows], whole.parents[rows], whole.target[np.ix_(rows, response)], whole.free[:, response]
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                W[:, columns] = fit_all(task, np.maximum(penalty[columns] * share, weak), None, tolerance).W
        return self.coordinates.back(W)

    def search_sample(self) -> tuple[Floats, Floats, Array]:
        """Return penalties for all rows and for folds, and where the folds start, from the sample and its folds alone.

        A long table is searched so in memory, too: some rows say as much about the penalty as all.
        """
        found = search(self._task_of_sample(), self.fold_of_sample)
        W = np.stack([fold.coefficients() for fold in found.folds], axis=1).reshape(self.p, -1)
        return found.penalty, found.fold_penalty, self.coordinates.back(W.astype(np.float64))

    def _task_of_sample(self) -> Task:
        Z = self.coordinates.stack(self.sample.X, self.sample.Y)
        parents = self.sample.Y if self.coordinates.parents else self.sample.Y[:, :0]
        free = self.free.astype(bool) if len(self.free) else np.ones((parents.shape[1], self.d), bool)
        return Task(Z[:, : self.m], parents, self.sample.Y, free)

    def counts(self, ask: Ask) -> tuple[Floats, Floats]:
        """Return the rows that each column is fitted on, and how many of them are ones."""
        inside = ask.fold >= 0
        rows = self.known.rows.sum() - np.where(inside, self.known.rows[ask.fold], 0.0)
        ones = self.known.ones.sum(axis=0)[ask.response]
        return rows, ones - np.where(inside, self.known.ones[ask.fold, ask.response], 0.0)

    def varies(self, ask: Ask) -> NDArray[np.bool_]:
        """Return which columns have two values in their rows."""
        rows, ones = self.counts(ask)
        return (ones > 0) & (ones < rows)

    def constant(self, ask: Ask) -> Array:
        """Return coefficients that predict the base rate of each column."""
        rows, ones = self.counts(ask)
        rate = (ones + 0.5) / (rows + 1.0)
        W = np.zeros((self.p, len(rate)))
        W[-1] = np.log(rate) - np.log1p(-rate)
        return W

    def solve(
        self, ask: Ask, penalty: Floats, start: Array, tolerance: Floats, stage: str, dtype: Any = np.float32
    ) -> Solution:
        """Fit the columns that vary from `start`; the others keep their base rate."""
        W, n_iter = self.constant(ask), np.zeros(len(penalty), np.intp)
        norm, converged = np.zeros(len(penalty)), np.ones(len(penalty), bool)
        live = np.flatnonzero(self.varies(ask))
        if len(live):
            advance(stage, 0, len(live))
            part, dtype = ask.take(live), np.dtype(dtype)
            free = np.ascontiguousarray(self.free[:, part.response], dtype)
            objective = ChunkedObjective(self.passes, part, penalty[live].astype(dtype), free, dtype)
            scale = self._scale(objective, part)
            found = minimise(objective.at(np.ascontiguousarray(start[:, live], dtype)), scale, tolerance[live])
            W[:, live], n_iter[live] = found.W, found.n_iter
            norm[live], converged[live] = found.gradient_norm, found.converged
            advance(stage, len(live), len(live))
        return Solution(W, n_iter, norm, converged)

    def _scale(self, objective: ChunkedObjective, part: Ask) -> Floats:
        """Return what a large gradient of each column is: that at its base rate. Folds remember theirs.

        It is never less than the sampling error of a gradient: a column without inputs starts at its optimum, and what
        is left there is rounding.
        """
        place = part.fold * self.d + part.response
        if (part.fold >= 0).all() and not np.isnan(self.scale[place]).any():
            return np.asarray(self.scale[place])
        gradient = objective.at(self.constant(part).astype(objective.dtype)).gradient
        rows, ones = self.counts(part)
        scale = np.maximum(np.linalg.norm(gradient.astype(np.float64), axis=0), np.sqrt(ones * (rows - ones) / rows))
        if (part.fold >= 0).all():
            self.scale[place] = scale
        return np.asarray(scale)

    def _finish(self, penalty: Floats, start: Array, tolerance: float) -> LinearConditionals:
        stage = "fit all rows"
        dtype = np.float32 if tolerance >= SINGLE_TOLERANCE else np.float64
        found = self.solve(self.of_all, penalty, start, tighter(tolerance, penalty), stage, dtype)
        if dtype == np.float32 and not found.converged.all():
            found = self.solve(self.of_all, penalty, found.W, tighter(tolerance, penalty), stage, np.float64)
        left = np.flatnonzero(~found.converged)
        if len(left):
            worst = float(found.gradient_norm[left].max())
            warnings.warn(NotConvergedWarning([f"response {j}" for j in left], worst), stacklevel=2)
        report = {"n_iter": found.n_iter, "gradient_norm": found.gradient_norm, "converged": found.converged}
        return self.conditionals(found.W, penalty, **report)

    def conditionals(self, W: Array, penalty: Floats, **report: Any) -> LinearConditionals:
        """Return coefficients in the user's own coordinates."""
        c = self.coordinates
        W = np.array(c.out(np.asarray(W, np.float64)))
        scaling = Scaling()
        if c.center is not None and c.scale is not None:
            if self.learner.scales():
                scaling = Scaling(c.center, c.scale)
            else:
                W[-1] -= c.center @ W[: self.m]
        return LinearConditionals.of(W, self.m, scaling, penalty, **report)


@dataclass
class _FoldCoefficients:
    W: Array


class ChunkedWalk(Walk):
    """The walk along the penalties, all folds in one batch.

    As in memory, a step to a weak penalty has to gain more than the standard error of what it gains.
    """

    def __init__(self, fit: _Fit) -> None:
        self._fitted = fit
        by_fold = fit.constant(fit.of_folds).reshape(fit.p, fit.k, fit.d)
        rows, ones = fit.counts(fit.of_all)
        coefficients = [_FoldCoefficients(by_fold[:, f].copy()) for f in range(fit.k)]
        super().__init__(fit.d, coefficients, np.minimum(ones, rows - ones))

    def coefficients(self) -> Array:
        """Return the best coefficients so far of every fold and response."""
        return np.stack([fold.W for fold in self.folds], axis=1).reshape(self._fitted.p, -1)

    def visit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        """Fit `columns` with penalty GRID[at], and move there those that predict better than before."""
        if GRID[at] >= WEAK:
            super().visit(at, columns, warm=warm)
            return
        self._fit(at, columns, warm=warm)
        fit, chosen = self._fitted, self._of_folds(columns)
        now = np.stack(self._last, axis=1).reshape(fit.p, -1)[:, chosen]
        squares = fit.passes.squared_rises(now, self.coefficients()[:, chosen], fit.of_folds.take(chosen))
        self._step(at, columns, np.sqrt(squares.reshape(fit.k, len(columns)).sum(axis=0)))

    def _of_folds(self, columns: Columns) -> Columns:
        """Return the places of some responses in all folds."""
        return (np.arange(self._fitted.k)[:, None] * self._fitted.d + columns).ravel()

    def _fit(self, at: int, columns: Columns, *, warm: bool = True) -> None:
        fit, chosen = self._fitted, self._of_folds(columns)
        ask = fit.of_folds.take(chosen)
        penalty = np.full(len(chosen), GRID[at])
        last = np.stack(self._last, axis=1).reshape(fit.p, -1)[:, chosen]
        start = last if warm else fit.from_sample(ask, penalty)
        tolerance = np.minimum(search_tolerance(fit.counts(ask)[1], GRID[at]), LOOSEST_SEARCH)
        W = fit.solve(ask, penalty, start, tolerance, f"search for the penalty, step {abs(at - FIRST) + 1}").W
        loss = fit.passes.losses(W.astype(np.float32), ask, held_out=True)
        by_fold = W.reshape(fit.p, fit.k, len(columns))
        for f in range(fit.k):
            self._last[f][:, columns] = by_fold[:, f]
            self.loss[at, f, columns] = loss.reshape(fit.k, len(columns))[f]
