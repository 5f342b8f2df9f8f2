"""A learner that compares responses: how much more the others of a row are like those of the rows that have this one.

`mcode.models.prototypes` over the other responses instead of the context. With s the cosine of two rows' responses,
which weigh more the fewer rows have them,

    logit P(y_j = 1 | the others) = logit P(y_j = 1) + log(mean of s over rows with j / mean of s over all rows),

where j itself is left out of the row that is compared, and one row like all others is added to those with j. Pairs that
are counted (`mcode.models.pairs`) multiply what each other response says; here they share one vote, so that a row with
many of them is not taken for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mcode._arrays import Floats, Matrix
from mcode.models.base_rate import logits_of_rates
from mcode.models.categorical import log_proba_of_columns
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators, NumberOfValues, indicators
from mcode.models.learners import FoldByFold
from mcode.models.parents import Parents
from mcode.models.prototypes import NEVER, prototypes_of
from mcode.solvers.kernels import add_present
from mcode.solvers.threads import run_all

Singles: TypeAlias = NDArray[np.float32]

ROWS_AT_ONCE = 1_024


@dataclass(frozen=True)
class CompanyConditionals:
    """What rows with each response, or each of its values, have in common beside it.

    Attributes
    ----------
    rate : (c,) array: logits of how often each column of `indicators` is there
    among_its_rows : (c, c) array: [k, l] is the mean weight of k in rows with l; 0 where the response of l does not see
        that of k
    among_all : (c, c) array: the mean weight of k in all rows, 0 in the same places
    n_values : tuple of int, how many values each response has; None where all have two
    """

    rate: Floats
    among_its_rows: Singles
    among_all: Singles
    n_values: NumberOfValues = None

    def log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log P(y_j | the others) of what was observed, shape (n, d)."""
        out, nothing = np.empty(Y.shape), np.zeros(len(self.rate), np.float32)

        def read(rows: slice) -> None:
            present = np.ascontiguousarray(indicators(Y[rows], self.n_values))
            alike, usual = (np.full(present.shape, NEVER, np.float32) for _ in range(2))
            add_present(present, self.among_its_rows, nothing, alike)
            add_present(present, self.among_all, nothing, usual)
            log_odds = self.rate + np.log(alike / usual)
            out[rows] = log_proba_of_columns(log_odds, Y[rows], self.n_values)

        starts = range(0, len(Y), ROWS_AT_ONCE)
        run_all([partial(read, slice(start, start + ROWS_AT_ONCE)) for start in starts])
        return out


class Company(FoldByFold, BaseEstimator):
    """How much the other responses of a row resemble those of the rows that have a response; no context is looked at.

    Examples
    --------
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=np.uint8)
    >>> fitted = Company().fit(np.empty((4, 0)), Y, ~np.eye(3, dtype=bool))
    >>> np.exp(fitted.log_proba(np.empty((2, 0)), np.array([[1, 1, 0], [1, 0, 1]], dtype=np.uint8))).round(3)
    array([[0.625, 0.625, 0.75 ],
           [0.25 , 0.53 , 0.25 ]])
    """

    def fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        *,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> CompanyConditionals:
        """Average the responses of all rows in which each one is known to be there."""
        columns = Indicators((2,) * Y.shape[1] if n_values is None else n_values)
        present, rows = indicators(Y, n_values), np.full(int(columns.starts[-1]), float(len(Y)))
        if known is not None:
            there = known[:, columns.response]
            present, rows = present * there, there.sum(axis=0, dtype=np.float64)
        rate = logits_of_rates(present.sum(axis=0, dtype=np.float64), rows, n_values)
        seen = parents.T[columns.response][:, columns.response]
        means = prototypes_of(present, present)
        return CompanyConditionals(rate, means[:, :-1] * seen, means[:, -1:] * seen, n_values)
