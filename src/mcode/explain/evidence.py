"""What moved the expectation of a response: the context, and the other responses of the row.

The weight of a piece of evidence is how far the log odds of the expected value fall when it is replaced by what is
typical: a feature by its mean (by 0 in a sparse context), a response by a draw from its base rate. For linear
conditionals these are the exact terms of the log odds; for other learners each replacement is scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.detector.judged import Typical
from mcode.models.categorical import CategoricalConditionals, log_proba_of_values, n_values_of
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.spaces.rho import floored

MOST_TRIED = 512  # features replaced one by one for a learner that is not linear


@dataclass(frozen=True)
class Moves:
    """How far each thing in a row moved the log odds of one response towards its value 1.

    In a table where some responses have several values: towards the expected value, against the observed one.

    Attributes
    ----------
    features : the places of features that moved it
    feature_weights : their weights, in the same order
    responses : (d,) array, the weights of the other responses; 0 for the response itself
    """

    features: NDArray[np.intp]
    feature_weights: Floats
    responses: Floats


def moves(conditionals: Conditionals, typical: Typical, X: Matrix, Y: Codes, response: int) -> Moves:
    """Return what moved the expectation of one response of one row (X and Y have one row)."""
    if isinstance(conditionals, LinearConditionals):
        return _linear(conditionals, typical, X, Y, response)
    return _by_replacing(conditionals, typical, X, Y, response)


def moves_towards(
    conditionals: Conditionals, typical: Typical, X: Matrix, Y: Codes, response: int, expected: int
) -> Moves:
    """Return what moved one response of one row towards `expected`, where some responses have several values."""
    if isinstance(conditionals, CategoricalConditionals):
        return _linear_towards(conditionals, typical, X, Y, response, expected)
    return _by_replacing_towards(conditionals, typical, X, Y, response, expected)


def _linear_towards(
    fitted: CategoricalConditionals, typical: Typical, X: Matrix, Y: Codes, j: int, expected: int
) -> Moves:
    layout, linear, two = Indicators(fitted.n_values), fitted.linear, fitted.n_values[j] == 2
    start, observed = int(layout.starts[j]), int(Y[0, j])
    if two:
        sign = 1.0 if expected == 1 else -1.0
        direction = sign * linear.features[:, start], sign * _column(linear, start)
    else:
        direction = (
            linear.features[:, start + expected] - linear.features[:, start + observed],
            _column(linear, start + expected) - _column(linear, start + observed),
        )
    features, away = _away_from_typical(typical, X)
    slope = direction[0][features].astype(np.float64)
    if linear.scaling.deviation is not None:
        slope = slope / linear.scaling.deviation[features]
    by_column = direction[1].astype(np.float64) * (layout.of(Y)[0] - typical.responses)
    responses = np.asarray(np.bincount(layout.response, by_column, Y.shape[1]), dtype=np.float64)
    responses[j] = 0.0
    return Moves(features, slope * away, responses)


def _column(linear: LinearConditionals, at: int) -> Floats:
    """Return what one logit owes to each column of the responses."""
    if linear.responses is None:
        return np.zeros(len(linear.intercept))
    return np.asarray(linear.responses[:, at], dtype=np.float64)


def _by_replacing_towards(
    conditionals: Conditionals, typical: Typical, X: Matrix, Y: Codes, j: int, expected: int
) -> Moves:
    """Score the row once for each replacement: a feature by its mean, a response by each of its values in turn."""
    n_values = n_values_of(conditionals)
    assert n_values is not None
    layout = Indicators(n_values)
    features, away = _away_from_typical(typical, X)
    largest = np.argsort(-np.abs(away), kind="stable")[:MOST_TRIED]
    features = np.sort(features[largest[away[largest] != 0]])
    replaced = [(k, value) for k, many in enumerate(n_values) if k != j for value in range(many)]
    x = np.asarray(X.toarray() if sp.issparse(X) else X)[0]
    contexts = np.repeat(x[None], 1 + len(features) + len(replaced), axis=0)
    contexts[1 + np.arange(len(features)), features] = typical.features[features]
    codes = np.repeat(Y, len(contexts), axis=0)
    for at, (k, value) in enumerate(replaced):
        codes[1 + len(features) + at, k] = value
    read = sp.csr_matrix(contexts) if sp.issparse(X) else contexts
    each = log_proba_of_values(conditionals, j, n_values[j], read, codes)
    log_odds = floored(each[:, expected].copy()) - floored(each[:, int(Y[0, j])].copy())
    fall = log_odds[0] - log_odds[1:]
    responses = np.zeros(Y.shape[1])
    for (k, value), lost in zip(replaced, fall[len(features) :], strict=True):
        rate = typical.responses[layout.columns(k)]
        responses[k] += lost * (rate[value] if n_values[k] > 2 else (rate[0] if value else 1.0 - rate[0]))
    return Moves(features, fall[: len(features)], responses)


def _linear(fitted: LinearConditionals, typical: Typical, X: Matrix, Y: Codes, j: int) -> Moves:
    features, away = _away_from_typical(typical, X)
    slope = fitted.features[features, j].astype(np.float64)
    if fitted.scaling.deviation is not None:
        slope = slope / fitted.scaling.deviation[features]
    responses = np.zeros(Y.shape[1])
    if fitted.responses is not None:
        responses = fitted.responses[:, j].astype(np.float64) * (Y[0] - typical.responses)
        responses[j] = 0.0
    return Moves(features, slope * away, responses)


def _away_from_typical(typical: Typical, X: Matrix) -> tuple[NDArray[np.intp], Floats]:
    """Return the features of a row that are not typical, and how far they are from it."""
    if sp.issparse(X) and not typical.features.any():
        row = sp.csr_matrix(X)
        return row.indices.astype(np.intp), row.data.astype(np.float64)
    x = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)[0]
    return np.arange(len(x)), x - typical.features


def _by_replacing(conditionals: Conditionals, typical: Typical, X: Matrix, Y: Codes, j: int) -> Moves:
    """Score the row once for each replacement, all in one call."""
    features, away = _away_from_typical(typical, X)
    largest = np.argsort(-np.abs(away), kind="stable")[:MOST_TRIED]
    features, d = np.sort(features[largest[away[largest] != 0]]), Y.shape[1]
    n_tried = len(features)
    x = np.asarray(X.toarray() if sp.issparse(X) else X)[0]
    contexts = np.repeat(x[None], 1 + n_tried + d, axis=0)
    contexts[1 + np.arange(n_tried), features] = typical.features[features]
    responses = np.repeat(Y, 1 + n_tried + d, axis=0)
    responses[1 + n_tried + np.arange(d), np.arange(d)] ^= 1
    responses[:, j] = 1  # so that what is scored is the log odds of 1
    log_rho = floored(conditionals.log_proba(sp.csr_matrix(contexts) if sp.issparse(X) else contexts, responses))[:, j]
    log_odds = log_rho - np.log(-np.expm1(log_rho))
    fall = log_odds[0] - log_odds[1:]
    # a draw from the base rate gives the other value with the probability of that value
    other = np.abs(Y[0] - typical.responses)
    other[j] = 0.0
    return Moves(features, fall[:n_tried], fall[n_tried:] * other)
