"""Conditionals of tables in which some responses have more than two values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators, NumberOfValues
from mcode.models.learners import Conditionals
from mcode.solvers.fit import Task
from mcode.solvers.kernels import log_likelihood
from mcode.solvers.softmax import log_of_sum

if TYPE_CHECKING:
    from mcode.models.logistic import LinearConditionals

Array = NDArray[Any]
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class CategoricalConditionals:
    """A logistic regression for each response with two values, a multinomial one for each with more.

    Attributes
    ----------
    linear : LinearConditionals over the columns of `Indicators`, as inputs and as outputs
        P(y_j = k | x, y) = softmax over the columns of j; sigmoid where j has two values.
    n_values : tuple of int, how many values each response has
    penalty : (d,) array
    """

    linear: LinearConditionals
    n_values: tuple[int, ...]
    penalty: Floats

    def log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log P of the observed responses, shape (n, d)."""
        out = np.empty(Y.shape)
        for start in range(0, len(Y), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            out[rows] = self.observed(self.logits(X[rows], Y[rows]), Y[rows])
        return out

    def logits(self, X: Matrix, Y: Codes) -> Array:
        """Return the logits of every column given the context and the observed responses, shape (n, columns)."""
        return self.linear.logits(X, Indicators(self.n_values).of(Y))

    def context_logits(self, X: Matrix) -> Array:
        """Return the part of the logits that the responses have no say in."""
        nobody = np.zeros((X.shape[0], len(self.linear.intercept)), np.uint8)
        return self.linear.logits(X, nobody)

    def add_responses(self, context: Array, Y: Codes) -> Array:
        """Return the logits of rows whose context part is known."""
        if self.linear.responses is None:
            return context
        return np.asarray(context + Indicators(self.n_values).of(Y).astype(context.dtype) @ self.linear.responses)

    def observed(self, eta: Array, Y: Codes) -> Floats:
        """Return log P of the observed responses from the logits of all columns."""
        return log_proba_of_columns(eta, Y, self.n_values)

    def of_values(self, eta: Array, response: int) -> Floats:
        """Return log P of every value of one response from the logits of all columns, shape (n, K)."""
        part = eta[:, Indicators(self.n_values).columns(response)]
        if self.n_values[response] > 2:
            return _log_softmax(part)
        return _log_softmax(np.hstack([np.zeros_like(part), part]))


def log_proba_of_columns(eta: Array, Y: Codes, n_values: NumberOfValues) -> Floats:
    """Return log P of the observed responses from the logits of the columns of `indicators`, shape (n, d).

    Examples
    --------
    >>> log_proba_of_columns(np.log([[3.0, 1.0, 1.0, 2.0]]), np.array([[1, 2]], dtype=np.uint8), (2, 3)).round(2)
    array([[-0.29, -0.69]])
    """
    out = np.empty(Y.shape)
    if n_values is None:
        log_likelihood(eta, Y, out)
        return out
    layout, two = Indicators(n_values), np.flatnonzero(np.asarray(n_values) == 2)
    if len(two):
        binary = np.empty((len(Y), len(two)))
        codes = np.ascontiguousarray(Y[:, two])
        log_likelihood(np.ascontiguousarray(eta[:, layout.starts[two]]), codes, binary)
        out[:, two] = binary
    for j in np.flatnonzero(np.asarray(n_values) > 2):
        part = eta[:, layout.columns(int(j))]
        out[:, j] = _log_softmax(part)[np.arange(len(Y)), Y[:, j]]
    return out


def _log_softmax(eta: Array) -> Floats:
    wide = np.ascontiguousarray(eta, dtype=np.float64)
    return np.asarray(wide - log_of_sum(wide[:, :, None]))


def n_values_of(conditionals: Conditionals) -> tuple[int, ...] | None:
    """Return how many values each response of fitted conditionals has, None where all have two."""
    return getattr(conditionals, "n_values", None)


def log_proba_of_values(conditionals: Conditionals, response: int, n_values: int, X: Matrix, Y: Codes) -> Floats:
    """Return log P of every value of one response given all else that was observed, shape (n, K).

    A response never sees itself, so what is asked is one reading for each value; logits hold all at once.
    """
    if isinstance(conditionals, CategoricalConditionals):
        return conditionals.of_values(conditionals.logits(X, Y), response)
    every = getattr(conditionals, "log_proba_of_values", None)
    if every is not None:
        return np.asarray(every(response, X, Y))
    out = np.empty((len(Y), n_values))
    for value in range(n_values):
        changed = Y.copy()
        changed[:, response] = value
        out[:, value] = conditionals.log_proba(X, changed)[:, response]
    return out


def likeliest_values(conditionals: Conditionals, X: Matrix, Y: Codes, *, other: bool = False) -> Codes:
    """Return the likeliest value of each response given all else that was observed, shape (n, d).

    With `other`, the likeliest one beside that which was observed.

    Examples
    --------
    >>> from mcode.models.logistic import BatchLogistic
    >>> Y = np.array([[0], [1], [1], [1]] * 5, dtype=np.uint8)
    >>> fitted = BatchLogistic(1.0).fit(np.zeros((20, 1)), Y, np.zeros((1, 1), bool))
    >>> likeliest_values(fitted, np.zeros((2, 1)), np.array([[0], [1]], dtype=np.uint8)).ravel()
    array([1, 1], dtype=uint8)
    """
    n_values = n_values_of(conditionals)
    if n_values is None:
        if other:
            return (1 - Y).astype(np.uint8)
        unlikely = conditionals.log_proba(X, Y) < np.log(0.5)
        return np.asarray(Y ^ unlikely.view(np.uint8))
    out = np.empty_like(Y)
    eta = conditionals.logits(X, Y) if isinstance(conditionals, CategoricalConditionals) else None
    for j, k in enumerate(n_values):
        if eta is not None and isinstance(conditionals, CategoricalConditionals):
            each = conditionals.of_values(eta, j)
        else:
            each = log_proba_of_values(conditionals, j, k, X, Y)
        if other:
            each[np.arange(len(Y)), Y[:, j]] = -np.inf
        out[:, j] = each.argmax(axis=1)
    return out


def tasks_by_number_of_values(
    X: Matrix, Y: Codes, parents: NDArray[np.bool_], n_values: Sequence[int], weight: Array | None
) -> list[tuple[NDArray[np.intp], Task]]:
    """Return what the solver has to fit: one task for all responses of two values, one for all of three, and so on.

    As inputs all responses are columns of 0 and 1 in every task; no response sees a column of its own.
    """
    layout = Indicators(tuple(n_values))
    inputs = layout.of(Y) if parents.any() else Y[:, :0]
    found = []
    for k in sorted(set(n_values)):
        mine = np.flatnonzero(np.asarray(n_values) == k)
        free = parents.T[layout.response][:, mine] if parents.any() else np.ones((0, len(mine)), bool)
        part = None if weight is None else np.ascontiguousarray(weight[:, mine])
        found.append((mine, Task(X, inputs, np.ascontiguousarray(Y[:, mine]), free, part, n_values=k)))
    return found


def joined(parts: Sequence[tuple[NDArray[np.intp], Array]], n_values: Sequence[int]) -> Array:
    """Return the coefficients of all tasks as one matrix over the columns of `Indicators`.

    The K columns of a response are brought around 0: adding the same to all of them changes no probability.
    """
    layout = Indicators(tuple(n_values))
    k = [n_values[int(mine[0])] for mine, _ in parts]
    n_rows = parts[0][1].shape[0] // (1 if k[0] == 2 else k[0])
    out = np.empty((n_rows, int(layout.starts[-1])), np.result_type(*[W.dtype for _, W in parts]))
    for (mine, W), many in zip(parts, k, strict=True):
        if many == 2:
            out[:, layout.starts[mine]] = W
            continue
        blocks = W.reshape(n_rows, many, len(mine))
        blocks = blocks - blocks.mean(axis=1, keepdims=True)
        for at, j in enumerate(mine):
            out[:, layout.columns(int(j))] = blocks[:, :, at]
    return out
