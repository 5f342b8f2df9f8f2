"""A learner that counts: which responses go together, two by two.

Where a response is rare a regression on all others has little to go by, and its penalty makes it say little; that
most of the few rows with one response have a certain other one is seen at once by counting. Each other response that
is present speaks for itself (naive Bayes):

    logit P(y_j = 1 | the others) = logit P(y_j = 1) + sum over k present of L_jk,
    L_jk = log((lift_jk + 1) / 2),   lift_jk = P(j and k) / (P(j) P(k)).

1 is the lift of responses that have nothing to do with each other: half of what is believed is what was counted.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mcode._arrays import Matrix
from mcode.models.base_rate import logits_of_rates
from mcode.models.categorical import CategoricalConditionals
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators, NumberOfValues, indicators
from mcode.models.learners import FoldByFold
from mcode.models.logistic import LinearConditionals, Scaling
from mcode.models.parents import Parents

Singles: TypeAlias = NDArray[np.float32]


class PairLifts(FoldByFold, BaseEstimator):
    """Naive Bayes over the responses that are present; the context is not looked at.

    Examples
    --------
    >>> Y = np.array([[1, 1], [1, 1], [0, 0], [0, 0]], dtype=np.uint8)
    >>> fitted = PairLifts().fit(np.empty((4, 0)), Y, np.array([[False, True], [True, False]]))
    >>> np.exp(fitted.log_proba(np.empty((2, 0)), np.array([[1, 1], [1, 0]], dtype=np.uint8))).round(2)
    array([[0.6, 0.6],
           [0.5, 0.4]])
    """

    def fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        *,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> LinearConditionals | CategoricalConditionals:
        """Count in all rows, of each pair in those where both are known."""
        columns = Indicators((2,) * Y.shape[1] if n_values is None else n_values)
        present, rows = indicators(Y, n_values), np.full(int(columns.starts[-1]), float(len(Y)))
        there = None if known is None else known[:, columns.response]
        if there is not None:
            present, rows = present * there, there.sum(axis=0, dtype=np.float64)
        rate = logits_of_rates(present.sum(axis=0, dtype=np.float64), rows, n_values)
        lifts = None
        if parents.any():
            lifts = _lifts(present, there) * parents.T[columns.response][:, columns.response]
        nothing, without = np.zeros((X.shape[1], len(rate)), np.float32), np.zeros(Y.shape[1])
        linear = LinearConditionals(nothing, lifts, rate, Scaling(), without)
        return linear if n_values is None else CategoricalConditionals(linear, n_values, without)


def _lifts(present: Codes, known: NDArray[np.bool_] | None) -> Singles:
    """Return L of each two columns, (c, c), also of those of one response, which no parents let through."""
    ones: Any = sp.csr_array(present, dtype=np.float32)
    together = np.asarray((ones.T @ ones).toarray())
    if known is None:
        count = np.diag(together).astype(np.float64)
        by_chance = np.outer(count, count) / max(len(present), 1)
    else:
        there = known.astype(np.float32)
        of_each = np.asarray(ones.T @ there, dtype=np.float64)  # how many rows have j, of those that know k
        by_chance = of_each * of_each.T / np.maximum(there.T @ there, 1.0)
    lift = np.divide(together, by_chance, out=np.ones_like(by_chance), where=by_chance > 0.0)
    return np.asarray(np.log((lift + 1.0) / 2.0), dtype=np.float32)
