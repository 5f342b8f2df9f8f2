"""The default learner: L2-penalised logistic regression for all responses in one batched solve."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mcode._arrays import Floats, Matrix
from mcode.errors import NotConvergedWarning, ParameterError
from mcode.models.categorical import CategoricalConditionals, joined, tasks_by_number_of_values
from mcode.models.encoding import Codes
from mcode.models.folds import stratified_folds
from mcode.models.indicators import NumberOfValues
from mcode.models.learners import CrossFit
from mcode.models.parents import Parents
from mcode.solvers.fit import Task, fit_all
from mcode.solvers.kernels import add_present, gather, log_likelihood
from mcode.solvers.newton import Solution
from mcode.solvers.search import Fold, complete_folds, fit_folds, make_folds, search
from mcode.solvers.threads import n_threads, one_blas_thread, run_all

Array = NDArray[Any]

# Relative gradients at which a fit is done. Fold models only judge held-out rows. A model at a searched penalty agrees
# with the exact optimum within 1e-4 in probability, one at a given penalty also in its coefficients.
FOLD_TOLERANCE = 3e-4
SEARCHED_TOLERANCE = 1e-5
GIVEN_TOLERANCE = 1e-7
STRETCHES = 4  # of the rows for each thread
TILE = 64  # rows: BLAS takes some together and others at the end alone, which may round them otherwise
CELLS_AT_ONCE = 2**17  # a chunk's logits stay in cache from the product to the probability


class BatchLogistic(BaseEstimator):
    """Logistic regression with an L2 penalty for every response, solved together.

    For each response j it minimises sum_i -log P(y_ij | x_i, parents) + penalty_j / 2 * |w_j|^2; the intercept is
    free. In scikit-learn's words C = 1 / penalty. A response with more than two values is a multinomial regression with
    one penalty for all of its columns, the symmetric one of scikit-learn.

    Parameters
    ----------
    penalty : "cv" or float or array of shape (d,), default="cv"
        A number is used for all responses. With "cv" each response gets, by cross-validated log-loss on a grid from
        1e4 to 1e-4, its own penalty, or all get the one that serves them best together if that predicts better.
        Responses with a value that fewer than six rows have choose theirs together.
    scale : bool or None, default=None
        Bring dense features to mean 0 and standard deviation 1 first. None does so when the penalty is searched: a
        penalty given as a number speaks of the features as they are. Sparse features are never scaled.
    folds : int, default=5
        Number of folds of the search when the learner is fitted on its own. A detector brings its own folds.
    random_state : int, default=0
        Seed of those folds.
    fold_penalty : array of shape (n_folds, d) or None, default=None
        Penalties of the models of the folds, where these differ from `penalty`: a detector brings what it found for
        another model.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[0], [0], [1], [1]], dtype=np.uint8)
    >>> fitted = BatchLogistic(penalty=1.0).fit(X, Y, np.zeros((1, 1), dtype=bool))
    >>> np.exp(fitted.log_proba(X, Y)).round(2).ravel()
    array([0.81, 0.62, 0.62, 0.81])
    """

    def __init__(
        self,
        penalty: Literal["cv"] | float | Floats = "cv",
        *,
        scale: bool | None = None,
        folds: int = 5,
        random_state: int = 0,
        fold_penalty: Floats | None = None,
    ) -> None:
        self.penalty = penalty
        self.scale = scale
        self.folds = folds
        self.random_state = random_state
        self.fold_penalty = fold_penalty

    @one_blas_thread()
    def fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        *,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> LinearConditionals | CategoricalConditionals:
        """Fit each response on all rows where it is known; with penalty="cv" after a search over stratified folds."""
        given = self.given_penalty(Y.shape[1])
        scaling = Scaling.of(X, self.scales())
        if n_values is not None:
            return self._fit_parts(X, Y, parents, None, True, known, n_values)[1]
        task = _task(scaling.apply(X), Y, parents, known)
        if given is not None:
            return _finish(task, given, None, scaling, GIVEN_TOLERANCE)
        found = search(task, stratified_folds(Y, self.folds, np.random.default_rng(self.random_state)))
        return _finish(task, found.penalty, _mean_of(found.folds), scaling, SEARCHED_TOLERANCE)

    @one_blas_thread()
    def cross_fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        fold_of_row: NDArray[np.intp],
        *,
        final: bool,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> tuple[CrossFit, LinearConditionals | CategoricalConditionals | None]:
        """Fit every fold, and all rows where `final` asks for it; the folds serve the search for the penalty too.

        A fold is fitted with the penalty that the other folds chose, so that its rows had no say in what judges them.
        """
        given = self.given_penalty(Y.shape[1])
        scaling = Scaling.of(X, self.scales())
        if n_values is not None:
            folds_of, fitted = self._fit_parts(X, Y, parents, fold_of_row, final, known, n_values)
            return CrossFit(fold_of_row, folds_of), fitted if final else None
        task = _task(scaling.apply(X), Y, parents, known)
        if given is not None:
            folds = make_folds(task, fold_of_row)
            penalty, of_fold = given, self.given_in_folds(given, len(folds))
        else:
            found = search(task, fold_of_row)
            penalty, of_fold, folds = found.penalty, found.fold_penalty, complete_folds(found, task, fold_of_row)
        fit_folds(folds, of_fold, FOLD_TOLERANCE)
        linear = [
            LinearConditionals.of(fold.coefficients(), X.shape[1], scaling, one)
            for fold, one in zip(folds, of_fold, strict=True)
        ]
        cross = CrossFit(fold_of_row, linear)
        if not final:
            return cross, None
        tolerance = SEARCHED_TOLERANCE if given is None else GIVEN_TOLERANCE
        return cross, _finish(task, penalty, _mean_of(folds), scaling, tolerance)

    def _fit_parts(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        fold_of_row: NDArray[np.intp] | None,
        final: bool,
        known: NDArray[np.bool_] | None,
        n_values: tuple[int, ...],
    ) -> tuple[list[CategoricalConditionals], CategoricalConditionals]:
        """Fit responses of different numbers of values one task after the other; return folds, if any, and all rows."""
        given, scaling = self.given_penalty(Y.shape[1]), Scaling.of(X, self.scales())
        weight = None if known is None else known.astype(np.float32)
        inner = stratified_folds(Y, self.folds, np.random.default_rng(self.random_state))
        fold = inner if fold_of_row is None else fold_of_row
        penalty, whole, by_fold = np.empty(Y.shape[1]), [], []
        of_fold = np.empty((int(fold.max()) + 1, Y.shape[1]))
        for mine, task in tasks_by_number_of_values(scaling.apply(X), Y, parents, n_values, weight):
            start, folds = None, []
            if given is None:
                found = search(task, fold)
                penalty[mine], of_fold[:, mine], start = found.penalty, found.fold_penalty, _mean_of(found.folds)
                folds = complete_folds(found, task, fold) if fold_of_row is not None else []
            else:
                penalty[mine], of_fold[:, mine] = given[mine], self.given_in_folds(given, len(of_fold))[:, mine]
            if fold_of_row is not None:
                folds = folds or make_folds(task, fold)
                fit_folds(folds, of_fold[:, mine], FOLD_TOLERANCE)
                by_fold.append([(mine, one.coefficients()) for one in folds])
            if final:
                tolerance = SEARCHED_TOLERANCE if given is None else GIVEN_TOLERANCE
                whole.append((mine, _solve(task, mine, penalty[mine], start, tolerance).W))

        def conditionals(parts: Sequence[tuple[NDArray[np.intp], Array]], asked: Floats) -> CategoricalConditionals:
            linear = LinearConditionals.of(joined(parts, n_values), X.shape[1], scaling, asked)
            return CategoricalConditionals(linear, n_values, asked)

        folds_of = [
            conditionals(parts, asked) for parts, asked in zip(zip(*by_fold, strict=True), of_fold, strict=False)
        ]
        return folds_of, conditionals(whole, penalty) if final else folds_of[0]

    def scales(self) -> bool:
        """Whether dense features are brought to one scale."""
        return isinstance(self.penalty, str) if self.scale is None else self.scale

    def given_in_folds(self, given: Floats, n_folds: int) -> Floats:
        """Return the penalty of each response in each fold, where penalties are given."""
        asked = given if self.fold_penalty is None else np.asarray(self.fold_penalty, dtype=np.float64)
        return np.broadcast_to(asked, (n_folds, len(given)))

    def given_penalty(self, n_responses: int) -> Floats | None:
        """Return the penalty of each response, or None where it is to be searched."""
        allowed = "'cv' or a positive number"
        if isinstance(self.penalty, str):
            if self.penalty != "cv":
                raise ParameterError("penalty", self.penalty, allowed)
            return None
        try:
            penalty = np.broadcast_to(np.asarray(self.penalty, dtype=np.float64), (n_responses,))
        except (TypeError, ValueError) as error:
            raise ParameterError("penalty", self.penalty, f"{allowed}, or {n_responses} numbers") from error
        if not (np.isfinite(penalty).all() and (penalty > 0).all()):
            raise ParameterError("penalty", self.penalty, allowed)
        return penalty


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation of dense features; None where they are taken as they are."""

    mean: Floats | None = None
    deviation: Floats | None = None

    @classmethod
    def of(cls, X: Matrix, wanted: bool) -> Scaling:
        """Measure the columns of X; a constant one is only centred."""
        if not wanted or sp.issparse(X):
            return cls()
        deviation = X.std(axis=0, dtype=np.float64)
        return cls(X.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0))

    def apply(self, X: Matrix) -> Matrix:
        """Return the scaled features."""
        if self.mean is None or self.deviation is None:
            return X
        centred = np.subtract(np.asarray(X), self.mean.astype(X.dtype))
        return np.asarray(np.divide(centred, self.deviation.astype(X.dtype), out=centred))

    def into(self, features: Array, intercept: Array) -> tuple[Array, Array]:
        """Return coefficients for features as they are that do what these do for scaled ones."""
        if self.mean is None or self.deviation is None:
            return features, intercept
        unscaled = features / self.deviation[:, None]
        return unscaled, intercept - self.mean @ unscaled


@dataclass(frozen=True)
class LinearConditionals:
    """d logistic regressions: P(y_j = 1 | x, y) = sigmoid(x' features[:, j] + y' responses[:, j] + intercept[j]).

    Attributes
    ----------
    features : (m, d) array of coefficients of the context, in scaled units
    responses : (d, d) array of coefficients of the other responses, or None where no response is an input
    intercept : (d,) array
    scaling : Scaling of the features
    penalty : (d,) array
    n_iter, gradient_norm, converged : (d,) arrays
        How each response's fit ended; None for the fits of folds.
    """

    features: Array
    responses: Array | None
    intercept: Array
    scaling: Scaling
    penalty: Floats
    n_iter: NDArray[np.intp] | None = None
    gradient_norm: Floats | None = None
    converged: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, W: Array, n_features: int, scaling: Scaling, penalty: Floats, **report: Any) -> LinearConditionals:
        """Take apart the coefficients of [X | parents | 1]."""
        responses = W[n_features:-1] if len(W) > n_features + 1 else None
        return cls(W[:n_features], responses, W[-1], scaling, penalty, **report)

    def logits(self, X: Matrix, Y: Codes) -> Array:
        """Return log odds of y_j = 1 given the context and the observed parents, shape (n, d)."""
        reader = self._reader(X)
        return reader.logits(X, Y, slice(0, len(Y)), np.empty(Y.shape, reader.features.dtype))

    def log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log P of the observed responses, shape (n, d), in the precision of X."""
        reader = self._reader(X)
        out = np.empty(Y.shape, reader.features.dtype)
        at_once = max(256, CELLS_AT_ONCE // Y.shape[1] // TILE * TILE)

        def read(stretch: slice) -> None:
            room = np.empty((at_once, Y.shape[1]), reader.features.dtype)  # fresh memory would cost more than the sums
            for start in range(stretch.start, stretch.stop, at_once):
                rows = slice(start, min(start + at_once, stretch.stop))
                log_likelihood(reader.logits(X, Y, rows, room[: rows.stop - start]), Y[rows], out[rows])

        length = max(at_once, -(-len(Y) // (STRETCHES * n_threads() * TILE)) * TILE)
        stretches = [slice(start, min(start + length, len(Y))) for start in range(0, len(Y), length)]
        run_all([partial(read, stretch) for stretch in stretches])
        return out

    def _reader(self, X: Matrix) -> DenseReader | SparseReader:
        responses = np.empty((0, len(self.intercept))) if self.responses is None else self.responses
        if sp.issparse(X):
            parts = (*self.scaling.into(self.features, self.intercept), responses)
            return SparseReader(*(np.ascontiguousarray(part, dtype=X.dtype) for part in parts))
        parts = (self.features, self.intercept, responses)
        return DenseReader(self.scaling, *(np.ascontiguousarray(part, dtype=X.dtype) for part in parts))


@dataclass(frozen=True)
class DenseReader:
    """Coefficients made ready for dense rows."""

    scaling: Scaling
    features: Array
    intercept: Array
    responses: Array

    def logits(self, X: Any, Y: Codes, rows: slice, out: Array) -> Array:
        """Return scaled X @ features + Y @ responses + intercept of some rows, in `out`."""
        np.matmul(np.asarray(self.scaling.apply(X[rows])), self.features, out=out)
        add_present(Y[rows], self.responses, self.intercept, out)
        return out


@dataclass(frozen=True)
class SparseReader:
    """Coefficients made ready for sparse rows."""

    features: Array
    intercept: Array
    responses: Array

    def logits(self, X: Any, Y: Codes, rows: slice, out: Array) -> Array:
        """Return X @ features + Y @ responses + intercept of some rows, in `out`."""
        starts = X.indptr[rows.start : rows.stop + 1]
        gather(_unsigned(starts), _unsigned(X.indices), X.data, self.features, out)
        add_present(Y[rows], self.responses, self.intercept, out)
        return out


def _unsigned(index: Array) -> Array:
    """Return the same memory as unsigned integers, which the kernels index faster with."""
    return index.view(f"u{index.itemsize}")


def _task(X: Matrix, Y: Codes, parents: Parents, known: NDArray[np.bool_] | None = None) -> Task:
    """Return what the solver has to fit; responses that nobody sees are no inputs, rows not known have no weight."""
    weight = None if known is None else known.astype(np.float32)
    if parents.any():
        return Task(X, Y, Y, parents.T, weight)
    return Task(X, Y[:, :0], Y, np.ones((0, Y.shape[1]), bool), weight)


def _mean_of(folds: list[Fold]) -> Array:
    """Return where the fit on all rows starts: the mean of the folds' coefficients."""
    return np.asarray(np.mean([fold.coefficients() for fold in folds], axis=0, dtype=np.float32))


def _finish(task: Task, penalty: Floats, start: Array | None, scaling: Scaling, tolerance: float) -> LinearConditionals:
    """Fit on all rows to the end, and take the coefficients apart."""
    solution = _solve(task, np.arange(task.n_columns), penalty, start, tolerance)
    report = {"n_iter": solution.n_iter, "gradient_norm": solution.gradient_norm, "converged": solution.converged}
    return LinearConditionals.of(solution.W, task.X.shape[1], scaling, penalty, **report)


def _solve(task: Task, responses: NDArray[np.intp], penalty: Floats, start: Array | None, tolerance: float) -> Solution:
    """Fit on all rows to the end, and name the responses that did not get there."""
    solution = fit_all(task, penalty, start, tolerance)
    left = np.flatnonzero(~solution.converged)
    if len(left):
        worst = float(solution.gradient_norm[left].max())
        warnings.warn(NotConvergedWarning([f"response {j}" for j in responses[left]], worst), stacklevel=3)
    return solution
