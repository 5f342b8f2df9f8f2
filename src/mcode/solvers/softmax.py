"""The objective of responses with several values: multinomial logistic regression, a block of responses at once.

A response with K values has K columns of coefficients that its probabilities tie together:

    value(W)    = sum_i v_i * (log sum_k exp(eta_ik) - eta_i,t_i) + lambda / 2 * |W without intercepts|^2,  eta = Z W
    gradient(W) = Z' (v * (P - T)) + lambda * W,   P = softmax(eta), T the indicators of the target
    hessian D   = Z' (v * P * (Z D - sum_k P_k (Z D)_k)) + lambda * D

To the iteration (`newton`) a response is *one* column, of p * K coefficients: W has shape (p * K, b), and the same
memory read as (p, K * b) is what the design is multiplied with. So step lengths, conjugate gradients and the test for
convergence are those of the whole response, and Newton's method needs no other word for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.solvers.design import Design
from mcode.solvers.kernels import add_penalty
from mcode.solvers.objective import SMALLEST_CURVATURE

Array = NDArray[Any]


@dataclass(frozen=True)
class SoftmaxObjective:
    """L2-penalised multinomial loss of a block of responses with K values each, over one shared design.

    Parameters
    ----------
    design : Design of shape (n, p), whose last column is 1 (the intercepts, never penalised)
    target : (n, b) array of codes 0 .. K - 1
    seen : (K, b) boolean array
        Values that occur in these rows. The others have probability 0: no finite coefficients are best for them.
    penalty : (b,) array
        lambda of each response, shared by its columns; C = 1 / lambda in scikit-learn's words.
    free : (d, b) array of 1 and 0, in the design's precision
        Which of the d parent columns, the last ones before the intercept, each response may use.
    weight : (n, b) array or None
    """

    design: Design
    target: Array
    seen: NDArray[np.bool_]
    penalty: Array
    free: Array
    weight: Array | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the arithmetic."""
        return self.design.dtype

    def columns(self, keep: NDArray[np.intp]) -> SoftmaxObjective:
        """Return the same objective for some of the responses."""
        target, free = (np.ascontiguousarray(part[:, keep]) for part in (self.target, self.free))
        weight = None if self.weight is None else np.ascontiguousarray(self.weight[:, keep])
        return SoftmaxObjective(self.design, target, self.seen[:, keep], self.penalty[keep], free, weight)

    def at(self, W: Array) -> SoftmaxPoint:
        """Look at the objective from `W`."""
        probability = logits(self.design, W, self.seen)
        loss = np.empty(self.target.shape)
        _softmax(probability, self.target, loss)
        residual = probability.copy()
        _subtract_target(residual, self.target)
        if self.weight is not None:
            residual *= self.weight[:, None, :]
            loss *= self.weight
        gradient = np.empty_like(W)
        self._adjoint(residual, W, gradient)
        return SoftmaxPoint(self, W, probability, loss, gradient, residual)

    def at_constant(self, intercept: Array) -> SoftmaxPoint:
        """Look at the objective from coefficients that are all 0 but for the intercepts, of shape (K, b)."""
        W = np.zeros((self.design.shape[1] * len(self.seen), self.seen.shape[1]), self.dtype)
        W[-len(self.seen) :] = intercept
        return self.at(W)

    def _adjoint(self, cells: Array, W: Array, out: Array) -> Floats:
        """Write Z' cells + penalty * W into `out`, of the shape of W; return the dot products with W."""
        n_values, b = self.seen.shape
        flat = out.reshape(-1, n_values * b)
        self.design.adjoint(cells.reshape(len(cells), -1), flat)
        penalty, free = np.tile(self.penalty, n_values), np.tile(self.free, (1, n_values))
        dots = add_penalty(flat, W.reshape(flat.shape), penalty, free)
        return np.asarray(dots.reshape(n_values, b).sum(axis=0))


@dataclass(frozen=True)
class SoftmaxPoint:
    """A `SoftmaxObjective` seen from `W`; `objective.Point` says what its methods return."""

    objective: SoftmaxObjective
    W: Array
    probability: Array  # (n, K, b)
    loss: Floats  # (n, b), weighted
    gradient: Array
    scratch: Array

    def columns(self, keep: NDArray[np.intp]) -> SoftmaxPoint:
        """Return the same point for some of the responses."""
        W, loss, gradient = (np.ascontiguousarray(part[:, keep]) for part in (self.W, self.loss, self.gradient))
        probability = np.ascontiguousarray(self.probability[:, :, keep])
        return SoftmaxPoint(self.objective.columns(keep), W, probability, loss, gradient, np.empty_like(probability))

    def value(self) -> Floats:
        """Return the value of each response."""
        slopes = self.W[: -len(self.objective.seen)]
        squares = np.einsum("ij,ij->j", slopes, slopes, dtype=np.float64)
        return np.asarray(self.loss.sum(axis=0) + 0.5 * self.objective.penalty * squares)

    def hessian_product(self, D: Array, out: Array) -> Floats:
        """Write the product of each response's Hessian with its direction, and return their dot products."""
        n_values, b = self.objective.seen.shape
        along = self.scratch
        self.objective.design.product(D.reshape(-1, n_values * b), along.reshape(len(along), -1))
        _curve(self.probability, along)
        if self.objective.weight is not None:
            along *= self.objective.weight[:, None, :]
        return self.objective._adjoint(along, D, out)

    def inverse_diagonal(self) -> Array:
        """Return 1 / diag of each response's Hessian, up to what `squared_adjoint` leaves out."""
        n_values, b = self.objective.seen.shape
        curvature = self.probability * (1 - self.probability)
        if self.objective.weight is not None:
            curvature *= self.objective.weight[:, None, :]
        diagonal = np.empty_like(self.gradient)
        flat = diagonal.reshape(-1, n_values * b)
        self.objective.design.squared_adjoint(curvature.reshape(len(curvature), -1), flat)
        flat[:-1] += np.tile(self.objective.penalty, n_values)
        np.maximum(diagonal, SMALLEST_CURVATURE, out=diagonal)
        return np.reciprocal(diagonal, out=diagonal)


def logits(design: Design, W: Array, seen: NDArray[np.bool_]) -> Array:
    """Return eta of each row and value, shape (n, K, b), minus infinity for values that were not seen."""
    n_values, b = seen.shape
    if not b:
        return np.empty((design.shape[0], n_values, 0), W.dtype)
    eta = np.empty((design.shape[0], n_values, b), W.dtype)
    design.product(np.ascontiguousarray(W).reshape(-1, n_values * b), eta.reshape(len(eta), -1))
    if not seen.all():
        eta[:, ~seen] = -np.inf
    return eta


def log_of_sum(eta: Array) -> Floats:
    """Return log sum_k exp(eta_k) of each row, shape (n, b).

    Examples
    --------
    >>> log_of_sum(np.log([[[0.25], [0.5], [0.25]]]))
    array([[0.]])
    """
    out = np.empty((eta.shape[0], eta.shape[2]))
    _log_of_sum(eta, out)
    return out


def softmax_losses(eta: Array, target: Array) -> Floats:
    """Return -log P(target) of every row, shape (n, b).

    Examples
    --------
    >>> softmax_losses(np.zeros((1, 4, 1)), np.array([[2]])).round(4)
    array([[1.3863]])
    """
    observed = np.take_along_axis(eta, target.astype(np.intp)[:, None, :], axis=1)[:, 0]
    return np.asarray(log_of_sum(eta) - observed)


@njit(cache=True, nogil=True)
def _log_of_sum(eta: Any, out: Any) -> None:
    n, n_values, b = eta.shape
    for i in range(n):
        for c in range(b):
            top = eta[i, 0, c]
            for k in range(1, n_values):
                top = max(top, eta[i, k, c])
            total = 0.0
            for k in range(n_values):
                total += np.exp(np.float64(eta[i, k, c] - top))
            out[i, c] = top + np.log(total)


@njit(cache=True, nogil=True)
def _softmax(eta: Any, target: Any, loss: Any) -> None:
    """Turn eta into probabilities, and write the loss of each row."""
    n, n_values, b = eta.shape
    for i in range(n):
        for c in range(b):
            top = eta[i, 0, c]
            for k in range(1, n_values):
                top = max(top, eta[i, k, c])
            observed, total = eta[i, target[i, c], c] - top, 0.0
            for k in range(n_values):
                e = np.exp(eta[i, k, c] - top)
                eta[i, k, c] = e
                total += e
            for k in range(n_values):
                eta[i, k, c] /= total
            loss[i, c] = np.log(total) - observed


@njit(cache=True, nogil=True)
def _subtract_target(cells: Any, target: Any) -> None:
    for i in range(target.shape[0]):
        for c in range(target.shape[1]):
            cells[i, target[i, c], c] -= 1


@njit(cache=True, nogil=True)
def _curve(probability: Any, along: Any) -> None:
    """Replace u by P * (u - sum_k P_k u_k)."""
    n, n_values, b = along.shape
    for i in range(n):
        for c in range(b):
            mean = 0.0
            for k in range(n_values):
                mean += probability[i, k, c] * along[i, k, c]
            for k in range(n_values):
                along[i, k, c] = probability[i, k, c] * (along[i, k, c] - mean)
