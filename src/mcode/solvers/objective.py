"""What the iteration sees: an objective with value, gradient and Hessian product, for a block of columns at once.

For column c with target t, row weights v, penalty lambda and the coefficients w that the mask leaves free:

    value(w)    = sum_i v_i * (log(1 + exp(eta_i)) - t_i * eta_i) + lambda / 2 * |w without intercept|^2,  eta = Z w
    gradient(w) = Z' (v * (sigmoid(eta) - t)) + lambda * w
    hessian d   = Z' (v * s * (Z d)) + lambda * d,   s = sigmoid(eta) * (1 - sigmoid(eta))

All three are sums over rows, so a sum over chunks of rows can stand in for this class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.solvers.design import Design
from mcode.solvers.kernels import add_penalty, log_likelihood, residual_and_curvature
from mcode.solvers.memory import columns_of, empty

Array = NDArray[Any]

SMALLEST_CURVATURE = 1e-6


class Point(Protocol):
    """An objective seen from one matrix of coefficients W, of shape (p, b)."""

    @property
    def objective(self) -> Objective:
        """The objective that is looked at."""

    @property
    def W(self) -> Array:  # noqa: N802
        """Where it is looked at from."""

    @property
    def gradient(self) -> Array:
        """The gradient of each column, shape (p, b)."""

    def columns(self, keep: NDArray[np.intp]) -> Point:
        """Return the same point for some of the columns."""

    def value(self) -> Floats:
        """Return the value of each column, shape (b,)."""

    def hessian_product(self, D: Array, out: Array) -> Floats:
        """Write H_c @ D[:, c] for each column c into `out`, shape (p, b); return D'HD of each column, shape (b,)."""

    def inverse_diagonal(self) -> Array:
        """Return a positive approximation of 1 / diag(H_c), shape (p, b): the preconditioner."""


class Objective(Protocol):
    """A convex function of each of b columns of coefficients."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the arithmetic."""

    def at(self, W: Array) -> Point:
        """Look at the objective from `W`."""


@dataclass(frozen=True)
class LogisticObjective:
    """L2-penalised logistic loss of a block of columns over one shared design.

    Parameters
    ----------
    design : Design of shape (n, p), whose last column is 1 (the intercept, never penalised)
    target : (n, b) array of 0 and 1, in the design's precision
    penalty : (b,) array
        lambda of each column; C = 1 / lambda in scikit-learn's words.
    free : (d, b) array of 1 and 0, in the design's precision
        Which of the d parent columns, the last ones before the intercept, each column may use; d = 0 forbids nothing.
    weight : (n, b) array or None
        Weight of each row in each column.
    """

    design: Design
    target: Array
    penalty: Array
    free: Array
    weight: Array | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the arithmetic."""
        return self.design.dtype

    def columns(self, keep: NDArray[np.intp]) -> LogisticObjective:
        """Return the same objective for some of the columns."""
        return LogisticObjective(
            self.design,
            columns_of(self.target, keep),
            self.penalty[keep],
            columns_of(self.free, keep),
            None if self.weight is None else columns_of(self.weight, keep),
        )

    def at(self, W: Array) -> LogisticPoint:
        """Look at the objective from `W`."""
        eta = empty((len(self.target), W.shape[1]), self.dtype)
        self.design.product(W, eta)
        return self._seen_from(W, eta)

    def at_constant(self, intercept: Array) -> LogisticPoint:
        """Look at the objective from coefficients that are all 0 but for the intercept: `at` in half the time."""
        W = empty((self.design.shape[1], len(intercept)), self.dtype)
        W[:-1], W[-1] = 0, intercept
        eta = empty((len(self.target), len(intercept)), self.dtype)
        eta[...] = W[-1]
        return self._seen_from(W, eta)

    def _seen_from(self, W: Array, eta: Array) -> LogisticPoint:
        residual, curvature = empty(eta.shape, self.dtype), empty(eta.shape, self.dtype)
        residual_and_curvature(eta, self.target, residual, curvature)
        if self.weight is not None:
            residual *= self.weight
            curvature *= self.weight
        gradient = empty(W.shape, self.dtype)
        self.design.adjoint(residual, gradient)
        add_penalty(gradient, W, self.penalty, self.free)
        return LogisticPoint(self, W, eta, curvature, gradient, residual)


@dataclass(frozen=True)
class LogisticPoint:
    """A `LogisticObjective` seen from `W`; `Point` says what its methods return."""

    objective: LogisticObjective
    W: Array
    eta: Array
    curvature: Array
    gradient: Array
    scratch: Array  # memory of the shape of eta: fresh memory for every product would cost as much as the product

    def columns(self, keep: NDArray[np.intp]) -> LogisticPoint:
        """Return the same point for some of the columns."""
        W, eta, curvature, gradient = (
            columns_of(part, keep) for part in (self.W, self.eta, self.curvature, self.gradient)
        )
        return LogisticPoint(self.objective.columns(keep), W, eta, curvature, gradient, empty(eta.shape, eta.dtype))

    def value(self) -> Floats:
        """Return the value of each column."""
        loss = losses(self.eta, self.objective.target)
        if self.objective.weight is not None:
            loss *= self.objective.weight
        squares = np.einsum("ij,ij->j", self.W[:-1], self.W[:-1], dtype=np.float64)
        return np.asarray(loss.sum(axis=0, dtype=np.float64) + 0.5 * self.objective.penalty * squares)

    def hessian_product(self, D: Array, out: Array) -> Floats:
        """Write the product of each column's Hessian with its direction, and return their dot products."""
        self.objective.design.curved(D, self.curvature, self.scratch, out)
        return add_penalty(out, D, self.objective.penalty, self.objective.free)

    def inverse_diagonal(self) -> Array:
        """Return 1 / diag of each column's Hessian, up to what `squared_adjoint` leaves out."""
        diagonal = empty(self.gradient.shape, self.gradient.dtype)
        self.objective.design.squared_adjoint(self.curvature, diagonal)
        diagonal[:-1] += self.objective.penalty
        # The intercept of a column whose rows are all certain has next to no curvature; its step must stay finite.
        np.maximum(diagonal, SMALLEST_CURVATURE, out=diagonal)
        return np.reciprocal(diagonal, out=diagonal)


def losses(eta: Array, target: Array) -> Array:
    """Return the logistic loss of every cell."""
    loss = np.empty_like(eta)
    log_likelihood(eta, target, loss)
    return np.negative(loss, out=loss)
