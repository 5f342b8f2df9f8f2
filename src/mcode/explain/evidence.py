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
from mcode.models.encoding import Codes
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.spaces.rho import floored

MOST_TRIED = 512  # features replaced one by one for a learner that is not linear


@dataclass(frozen=True)
class Moves:
    """How far each thing in a row moved the log odds of one response towards its value 1.

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
