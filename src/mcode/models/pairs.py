"""A learner that counts: which responses go together, two by two.

Where a response is rare a regression on all others has little to go by, and its penalty makes it say little; that
most of the few rows with one response have a certain other one is seen at once by counting. Each other response that
is present speaks for itself (naive Bayes):

    logit P(y_j = 1 | the others) = logit P(y_j = 1) + sum over k present of L_jk,
    L_jk = log((lift_jk + 1) / 2),   lift_jk = P(j and k) / (P(j) P(k)).

1 is the lift of responses that have nothing to do with each other: half of what is believed is what was counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mcode._arrays import Floats, Matrix
from mcode.models.base_rate import logits_of_rates
from mcode.models.categorical import CategoricalConditionals
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators, NumberOfValues, indicators
from mcode.models.learners import Conditionals, CrossFit, fit_each_fold
from mcode.models.logistic import LinearConditionals, Scaling
from mcode.models.parents import Parents


class PairLifts(BaseEstimator):
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
        there = None if known is None else known[:, columns.response]
        together, both, of_each = _counts(indicators(Y, n_values), there)
        rate, every = logits_of_rates(np.diag(together), np.diag(both), n_values), _lifts(together, both, of_each)
        lifts = every * parents.T[columns.response][:, columns.response] if parents.any() else None
        nothing = np.zeros((X.shape[1], len(rate)), np.float32)
        without = np.zeros(Y.shape[1])
        linear = LinearConditionals(nothing, lifts, rate, Scaling(), without)
        return linear if n_values is None else CategoricalConditionals(linear, n_values, without)

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
    ) -> tuple[CrossFit, Conditionals | None]:
        """Count in the other rows of every fold, and in all rows where `final` asks for it."""

        def count(rows: NDArray[np.intp]) -> Conditionals:
            there = None if known is None else known[rows]
            return self.fit(X[rows], Y[rows], parents, known=there, n_values=n_values)

        return fit_each_fold(fold_of_row, count, final=final)


def _lifts(together: Floats, both: Floats, of_each: Floats) -> Floats:
    """Return L of each two columns."""
    by_chance = of_each * of_each.T / np.maximum(both, 1.0)
    lift = np.divide(together, by_chance, out=np.ones_like(together), where=by_chance > 0.0)
    return np.log((lift + 1.0) / 2.0)


def _counts(present: Codes, known: NDArray[np.bool_] | None) -> tuple[Floats, Floats, Floats]:
    """Return how many rows have columns j and k, know both, and have j where they know k, each (c, c)."""
    if known is None:
        ones: Any = sp.csr_array(present, dtype=np.float64)
        together = np.asarray((ones.T @ ones).toarray())
        all_rows = np.full_like(together, len(present))
        return together, all_rows, np.repeat(np.diag(together)[:, None], len(together), axis=1)
    there = known.astype(np.float64)
    have = present * there
    return have.T @ have, there.T @ there, have.T @ there
