"""P(y_j | x, all other responses) of any model: the question to which all models can give an answer.

A model in which responses see each other in a circle, and one in which nobody sees anybody, answers it itself. In a
chain or a tree, which is a proper joint, it follows from the joint, and only j and those that see j take part:

    P(y_j | x, the others) = P(y | x) / (P(y | x) + P(y with y_j changed | x)),

summed over all other values where y_j has several.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.models.categorical import n_values_of
from mcode.models.encoding import Codes
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.models.parents import Parents, is_acyclic
from mcode.models.per_label import ClassifierConditionals
from mcode.solvers.threads import run_all

ROWS_AT_ONCE = 1024
LARGEST_LOGIT = 200.0  # so that a product of two exponentials and of a running product stays a number


def full_log_proba(conditionals: Conditionals, parents: Parents, X: Matrix, Y: Codes) -> Floats:
    """Return log P(y_j | x, all other responses) of what was observed, shape (n, d).

    Parameters
    ----------
    conditionals : the fitted conditionals of a model
    parents : who sees whom in that model
    X, Y : context and codes
    """
    if not parents.any() or not is_acyclic(parents):
        return conditionals.log_proba(X, Y)
    if isinstance(conditionals, LinearConditionals):
        return change_linear(conditionals, parents, X, Y, np.empty(Y.shape))
    n_values = n_values_of(conditionals)
    if n_values is not None:
        return _by_each_value(conditionals, parents, X, Y, n_values)
    return _by_changing(conditionals, parents, X, Y)


def _by_each_value(
    conditionals: Conditionals, parents: Parents, X: Matrix, Y: Codes, n_values: tuple[int, ...]
) -> Floats:
    """Put every value in the place of each response in turn."""
    out = np.empty(Y.shape)
    for j, k in enumerate(n_values):
        involved = [j, *np.flatnonzero(parents[:, j])]
        joint = np.empty((len(Y), k))
        for value in range(k):
            changed = Y.copy()
            changed[:, j] = value
            joint[:, value] = conditionals.log_proba(X, changed)[:, involved].sum(axis=1)
        out[:, j] = joint[np.arange(len(Y)), Y[:, j]] - np.logaddexp.reduce(joint, axis=1)
    return out


def _by_changing(conditionals: Conditionals, parents: Parents, X: Matrix, Y: Codes) -> Floats:
    """Change one response after the other, and ask those that see it again."""
    observed = conditionals.log_proba(X, Y)
    out = np.empty_like(observed)
    for j in range(Y.shape[1]):
        changed = Y.copy()
        changed[:, j] ^= 1
        involved = np.flatnonzero(parents[:, j])
        rise = np.log(np.maximum(-np.expm1(observed[:, j]), 1e-300)) - observed[:, j]
        if isinstance(conditionals, ClassifierConditionals):
            after = np.column_stack(
                [np.zeros(len(Y))] + [conditionals.log_proba_of(int(i), X, changed) for i in involved]
            )
            rise += after.sum(axis=1) - observed[:, involved].sum(axis=1)
        elif len(involved):
            rise += (conditionals.log_proba(X, changed) - observed)[:, involved].sum(axis=1)
        out[:, j] = -np.logaddexp(0.0, rise)
    return out


def change_linear(
    conditionals: LinearConditionals,
    parents: Parents,
    X: Matrix,
    Y: Codes,
    out: Floats,
    *,
    asked: NDArray[np.bool_] | None = None,
    known: NDArray[np.bool_] | None = None,
) -> Floats:
    """Do the same with the exact terms of logistic regressions, one multiplication for each pair; return `out`.

    Parameters
    ----------
    conditionals, parents, X, Y : as for `full_log_proba`, but that responses may see each other
    out : (n, d) array
    asked : (n, d) boolean array, the responses to be changed; the others keep what is in `out`. None changes all.
    known : (n, d) boolean array, the responses that take part; None takes all
    """
    assert conditionals.responses is not None
    towards_one = np.exp(np.clip(conditionals.responses.astype(np.float64), -LARGEST_LOGIT, LARGEST_LOGIT))
    child, starts = np.nonzero(parents.T)[1], np.concatenate([[0], np.cumsum(parents.sum(axis=0))])
    every = np.broadcast_to(np.True_, Y.shape)

    def read(rows: slice) -> None:
        logits = conditionals.logits(X[rows], Y[rows]).astype(np.float64)
        np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT, out=logits)
        change = (every if asked is None else asked)[rows]
        there = (every if known is None else known)[rows]
        _change_each(logits, towards_one, 1.0 / towards_one, starts, child, Y[rows], change, there, out[rows])

    run_all([partial(read, slice(start, start + ROWS_AT_ONCE)) for start in range(0, len(Y), ROWS_AT_ONCE)])
    return out


@njit(cache=True, nogil=True)
def _change_each(
    eta: Any, up: Any, down: Any, starts: Any, child: Any, Y: Any, change: Any, there: Any, out: Any
) -> None:
    """Write log P(y_j | x, the others).

    -log P(y_i) = log(1 + e_i) with e_i = exp(-eta_i) or exp(eta_i). Changing y_j multiplies e_i by exp of a
    coefficient, so the ratio of two probabilities of y is a product over those that see j; its logarithm is taken
    seldom. A response that is not there has e_i = 0, whatever is changed.
    """
    n, d = Y.shape
    e, inverse = np.empty(d), np.empty(d)
    for row in range(n):
        for i in range(d):
            e[i] = np.exp(-eta[row, i] if Y[row, i] else eta[row, i]) if there[row, i] else 0.0
            inverse[i] = 1.0 / (1.0 + e[i])
        for j in range(d):
            if not (change[row, j] and there[row, j]):
                continue
            fall, product = np.log(e[j]), 1.0
            for k in range(starts[j], starts[j + 1]):
                i = child[k]
                factor = up[j, i] if Y[row, i] == Y[row, j] else down[j, i]
                product *= (1.0 + e[i] * factor) * inverse[i]
                if product > 1e100 or product < 1e-100:
                    fall -= np.log(product)
                    product = 1.0
            fall -= np.log(product)  # log P(y with y_j changed) - log P(y)
            out[row, j] = -np.log1p(np.exp(fall)) if fall < 0.0 else -fall - np.log1p(np.exp(-fall))
