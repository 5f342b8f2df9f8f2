"""A learner that compares contexts: how much more a row is like those that have a response than like any row.

A regression on thousands of words learns little of a response that five rows have; what these five contexts have in
common is seen without learning. With s the cosine of two contexts, whose features weigh more the fewer rows have them,

    logit P(y_j = 1 | x) = logit P(y_j = 1) + log(mean of s over rows with j / mean of s over all rows),

where one row like all others is added to those with j. All sums are linear in x: one product reads a row.

Only contexts that are mostly zeros, however they are stored, have features that are there or not. Of others nothing is
said, and P is the base rate: on the dense tables that were tried, neither cosines nor Gaussian kernels told more than
regressions had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import normalize

from mcode._arrays import Floats, Matrix
from mcode.models.base_rate import logits_of_rates
from mcode.models.categorical import log_proba_of_columns
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators, NumberOfValues, indicators
from mcode.models.learners import Conditionals, CrossFit, fit_each_fold
from mcode.models.parents import Parents

Singles: TypeAlias = NDArray[np.float32]

MOSTLY_ZEROS = 0.25  # the largest share of other values
NEVER = 1e-12  # added to means of cosines, so that what no row has in common has a logarithm


@dataclass(frozen=True)
class PrototypeConditionals:
    """What rows with each response, or each of its values, have in common.

    Attributes
    ----------
    rate : (c,) array: logits of how often each column of `indicators` is there
    prototypes : (m, c + 1) array: the mean context of the rows with each column, and that of all rows, last; None where
        contexts are not mostly zeros
    n_values : tuple of int, how many values each response has; None where all have two
    """

    rate: Floats
    prototypes: Singles | None
    n_values: NumberOfValues = None

    def log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log P(y_j | x) of what was observed, shape (n, d)."""
        log_odds = np.tile(self.rate, (len(Y), 1))
        if self.prototypes is not None:
            alike = np.asarray(abs(X) @ self.prototypes.astype(X.dtype), dtype=np.float64) + NEVER
            log_odds += np.log(alike[:, :-1] / alike[:, -1:])
        return log_proba_of_columns(log_odds, Y, self.n_values)


class Prototypes(BaseEstimator):
    """How much a row's context resembles those of the rows that have a response; other responses are not looked at.

    Examples
    --------
    >>> X = sp.csr_array(np.eye(4)[[0, 0, 1, 1, 2, 2]])  # one word in each row
    >>> Y = np.array([[1], [1], [0], [0], [0], [0]], dtype=np.uint8)
    >>> fitted = Prototypes().fit(X, Y, np.zeros((1, 1), bool))
    >>> np.exp(fitted.log_proba(X[[0, 2]], np.ones((2, 1), dtype=np.uint8))).round(2).ravel()
    array([0.56, 0.16])
    """

    def fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        *,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> PrototypeConditionals:
        """Average the contexts of all rows in which each response is known to be there."""
        return _averaged(X if _is_mostly_zeros(X) else None, Y, known, n_values)

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
        """Average in the other rows of every fold, and in all rows where `final` asks for it."""
        compared = X if _is_mostly_zeros(X) else None  # all folds alike

        def average(rows: NDArray[np.intp]) -> Conditionals:
            there = None if known is None else known[rows]
            return _averaged(None if compared is None else compared[rows], Y[rows], there, n_values)

        return fit_each_fold(fold_of_row, average, final=final)


def _averaged(
    X: Matrix | None, Y: Codes, known: NDArray[np.bool_] | None, n_values: NumberOfValues
) -> PrototypeConditionals:
    present, rows = indicators(Y, n_values), np.full(1, float(len(Y)))
    if known is not None:
        there = known if n_values is None else known[:, Indicators(n_values).response]
        present, rows = present * there, there.sum(axis=0, dtype=np.float64)
    rate = logits_of_rates(present.sum(axis=0, dtype=np.float64), rows, n_values)
    return PrototypeConditionals(rate, None if X is None else prototypes_of(X, present), n_values)


def _is_mostly_zeros(X: Any) -> bool:
    cells, others = X.shape[0] * X.shape[1], np.count_nonzero(X if isinstance(X, np.ndarray) else X.data)
    return cells > 0 and bool(others <= MOSTLY_ZEROS * cells)


def prototypes_of(X: Any, present: Codes) -> Singles:
    """Return the mean of the rows of X with each column present, one row like all others among them, and of all rows.

    Shape (m, c + 1), scaled so that a product with a row gives mean cosines. The length of that row is left out: it is
    in both parts of every quotient.
    """
    n = X.shape[0]
    size = sp.csr_array(abs(X), dtype=np.float32)
    having = np.bincount(size.indices, weights=size.data != 0, minlength=X.shape[1])
    telling = np.log((n + 1.0) / (having + 1.0)).astype(np.float32)  # a feature that all rows have tells nothing
    unit = normalize(sp.csr_array(size * telling), copy=False)
    of_all = unit.sum(axis=0) / n
    of_each = (unit.T @ sp.csr_array(present, dtype=np.float32)).toarray() + of_all[:, None]
    of_each /= present.sum(axis=0, dtype=np.float64) + 1.0
    return np.asarray(np.column_stack([of_each, of_all]) * telling[:, None], dtype=np.float32)
