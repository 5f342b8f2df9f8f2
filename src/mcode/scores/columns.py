"""Columns brought to mean 0 and standard deviation 1, with those that do not vary set apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.scores.distinct import DistinctRows
from mcode.scores.products import squared_lengths

_CONSTANT = 1e-12  # standard deviation, relative to the mean, that is rounding and not variation


@dataclass(frozen=True)
class Columns:
    """Mean and standard deviation of each column of a table.

    A sparse matrix is scaled and not centred, to stay sparse; what works with differences of rows does not see it,
    unless a mean is so large against its standard deviation that they drown in rounding: see `far_from_zero`.

    Attributes
    ----------
    mean, scale : ndarray of shape (m,)
    varies : ndarray of shape (m,), bool
        False where all rows have the same value up to rounding.
    """

    mean: Floats
    scale: Floats
    varies: NDArray[np.bool_]

    @classmethod
    def of(cls, table: DistinctRows) -> Columns:
        """Measure the columns of a table."""
        share = table.counts / table.total
        mean = np.asarray(share @ table.rows)
        scale = np.sqrt(_mean_square_deviation(table, mean))
        return cls(mean, scale, scale > _CONSTANT * np.abs(mean))

    def standardise(self, M: Matrix) -> Matrix:
        """Return the columns that vary, in standard deviations."""
        if not isinstance(M, np.ndarray):
            return sp.csr_matrix(M[:, self.varies] @ sp.diags(1.0 / self.scale[self.varies]))
        if self.varies.all():
            return np.asarray((M - self.mean) / self.scale)
        return np.asarray((M[:, self.varies] - self.mean[self.varies]) / self.scale[self.varies])

    @property
    def far_from_zero(self) -> bool:
        """Whether some column that varies must be centred before products of rows are accurate."""
        return bool(np.any(np.abs(self.mean[self.varies]) > 1e3 * self.scale[self.varies]))

    def squared_departure(self, M: Matrix) -> Floats:
        """Squared distance of each row from the values of the constant columns.

        A constant column has no unit of its own: it is measured in the median standard deviation of the others. Where
        all are constant there is no unit at all, and a departure is infinite.
        """
        value = self.mean[~self.varies]
        if not value.size:
            return np.zeros(M.shape[0])
        part = M[:, ~self.varies]
        if isinstance(part, np.ndarray):
            apart = part - value
            apart[np.abs(apart) <= _CONSTANT * np.abs(value)] = 0.0
            away = squared_lengths(apart)
        else:
            away = squared_lengths(part) - 2.0 * (part @ value) + value @ value
            away[away <= _CONSTANT * (value @ value)] = 0.0
        if self.varies.any():
            return np.asarray(away / np.median(self.scale[self.varies]) ** 2)
        return np.where(away > 0, np.inf, 0.0)


def _mean_square_deviation(table: DistinctRows, mean: Floats) -> Floats:
    rows, counts = table.rows, table.counts
    if isinstance(rows, np.ndarray):
        return np.asarray(counts @ np.square(rows - mean) / table.total)
    # Not E[x^2] - mean^2: for a column of ones the difference of two equal numbers would pass for variation.
    stored = sp.csr_matrix((np.square(rows.data - mean[rows.indices]), rows.indices, rows.indptr), shape=rows.shape)
    present = sp.csr_matrix((np.ones_like(rows.data), rows.indices, rows.indptr), shape=rows.shape)
    absent = table.total - counts @ present
    return np.asarray((counts @ stored + absent * mean**2) / table.total)
