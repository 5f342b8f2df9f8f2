"""The paper's fourth score: local outlier factor."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import ArrayLike, NDArray

from mcode._arrays import Floats, Matrix, dense
from mcode.errors import InputError, ParameterError
from mcode.scores.base import ScoreBase
from mcode.scores.distinct import DistinctRows, distinct_rows
from mcode.scores.neighbours import Array, NeighbourSearch

_GRAIN = 2.0**-36  # of the largest value of a column: a smaller difference is rounding, not a different row


class LOFScore(ScoreBase):
    """Local outlier factor, the paper's Score_4: how much denser the neighbours of a row are than the row itself.

    With N(i) all rows within the k-distance of i (ties included, i left out),

    reach(i, j) = max(k-distance(j), |v_i - v_j|)
    density(i)  = 1 / mean of reach(i, j) over j in N(i)
    score(i)    = mean of density(j) / density(i) over j in N(i)

    About 1 inside a cluster, larger outside. Equal rows are merged and counted, so that the result is as if every copy
    were there, at the cost of the distinct rows. A row with more than k copies has infinite density: infinity over
    infinity is 1, and a row that is less dense but has a neighbour of infinite density has an infinite score. Distances
    are Euclidean. The score is two-sided: an unusually certain row is far from the others, too.

    Parameters
    ----------
    k : int, default=30
        Number of neighbours.
    duplicates : {"counted", "distinct"}, default="counted"
        Whether each copy of a row is a neighbour of its own, as in Breunig's definition, or each distinct row counts
        once.

    Attributes
    ----------
    training_score_ : ndarray of shape (n,)
        Score of each row that was fitted, which is not its own neighbour. `outlier_score` gives the score of new rows,
        to which a fitted row of the same values is a neighbour at distance 0.
    n_distinct_ : int
        Number of distinct rows.

    References
    ----------
    Breunig, Kriegel, Ng & Sander 2000, "LOF: identifying density-based local outliers".

    Examples
    --------
    >>> M = [[0.0], [1.0], [2.0], [3.0], [9.0]]
    >>> LOFScore(k=2).fit(M).training_score_.round(2)
    array([1.  , 1.  , 1.  , 1.  , 4.33])
    >>> LOFScore(k=2).fit(M).outlier_score([[1.5], [20.0]]).round(2)
    array([0.67, 5.74])
    """

    accepts_sparse: ClassVar[bool] = True

    def __init__(self, k: int = 30, duplicates: Literal["counted", "distinct"] = "counted") -> None:
        self.k = k
        self.duplicates = duplicates

    def fit_outlier_score(self, M: ArrayLike) -> Floats:
        """Return the scores of the rows of `M` among themselves; no row is its own neighbour."""
        return self.fit(M).training_score_

    def _fit(self, M: Matrix) -> None:
        self._check_parameters()
        self.grain_ = _grain(M)
        table = distinct_rows(_snapped(M, self.grain_))
        counts = table.counts if self.duplicates == "counted" else np.ones_like(table.counts)
        self._refuse_too_few(table, counts)
        self.n_distinct_ = table.counts.size
        self.reference_, self.counts_ = table.rows, counts
        search = NeighbourSearch(table.rows, table.rows, counts, self.k, leave_out_self=True)
        self.k_distance_ = np.concatenate([block.k_distance for block in search])
        self.density_ = self._densities(search, leave_out_self=True)
        self.training_score_ = self._ratios(search, self.density_, leave_out_self=True)[table.which]

    def _outlier_score(self, M: Matrix) -> Floats:
        table = distinct_rows(_snapped(M, self.grain_))
        rows: Matrix = dense(table.rows) if isinstance(self.reference_, np.ndarray) else sp.csr_matrix(table.rows)
        search = NeighbourSearch(rows, self.reference_, self.counts_, self.k, leave_out_self=False)
        density = self._densities(search, leave_out_self=False)
        return self._ratios(search, density, leave_out_self=False)[table.which]

    def _densities(self, search: NeighbourSearch, *, leave_out_self: bool) -> Floats:
        parts = [
            _block_densities(b.first, b.starts, b.index, b.distance, self.k_distance_, self.counts_, leave_out_self)
            for b in search
        ]
        return np.concatenate(parts)

    def _ratios(self, search: NeighbourSearch, density: Floats, *, leave_out_self: bool) -> Floats:
        parts = [
            _block_ratios(b.first, b.starts, b.index, density, self.density_, self.counts_, leave_out_self)
            for b in search
        ]
        return np.concatenate(parts)

    def _check_parameters(self) -> None:
        if not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise ParameterError("k", self.k, "a whole number of at least 1")
        if self.duplicates not in ("counted", "distinct"):
            raise ParameterError("duplicates", self.duplicates, "'counted' or 'distinct'")

    def _refuse_too_few(self, table: DistinctRows, counts: NDArray[np.int64]) -> None:
        n_rows = int(counts.sum())
        if n_rows <= self.k:
            what = "row(s)" if self.duplicates == "counted" else "distinct row(s)"
            way_out = f"; k={n_rows - 1} would do" if n_rows > 1 else ""
            raise InputError(
                "M", f"it has {n_rows} {what}", f"k={self.k} neighbours need at least {self.k + 1}{way_out}"
            )


def _grain(M: Matrix) -> Floats:
    extremes: list[Any] = [M.min(axis=0), M.max(axis=0)]
    low, high = (np.asarray(dense(each), dtype=np.float64).ravel() for each in extremes)
    return np.asarray(np.maximum(np.abs(low), np.abs(high)) * _GRAIN)


def _snapped(M: Matrix, grain: Floats) -> Matrix:
    """Return M on a grid: copies of a row that a matrix product gave different last bits are copies again."""
    unit = np.where(grain > 0, grain, 1.0)
    if isinstance(M, np.ndarray):
        return np.asarray(np.round(M / unit) * unit)
    steps = unit[M.indices]
    return sp.csr_matrix((np.round(M.data / steps) * steps, M.indices, M.indptr), shape=M.shape)


@njit(cache=True, nogil=True)
def _block_densities(
    first: int, starts: Array, index: Array, distance: Array, k_distance: Array, counts: Array, leave_out_self: bool
) -> Array:
    density = np.empty(starts.size - 1)
    for i in range(density.size):
        total, n_copies = 0.0, 0
        for at in range(starts[i], starts[i + 1]):
            j = index[at]
            copies = counts[j] - (1 if leave_out_self and j == first + i else 0)
            total += copies * max(k_distance[j], distance[at])
            n_copies += copies
        density[i] = n_copies / total if total > 0 else np.inf
    return density


@njit(cache=True, nogil=True)
def _block_ratios(
    first: int,
    starts: Array,
    index: Array,
    density: Array,
    reference_density: Array,
    counts: Array,
    leave_out_self: bool,
) -> Array:
    score = np.empty(starts.size - 1)
    for i in range(score.size):
        own = density[first + i]
        total, n_copies = 0.0, 0
        for at in range(starts[i], starts[i + 1]):
            j = index[at]
            copies = counts[j] - (1 if leave_out_self and j == first + i else 0)
            both_infinite = np.isinf(own) and np.isinf(reference_density[j])
            ratio = 1.0 if both_infinite else reference_density[j] / own
            total += copies * ratio
            n_copies += copies
        score[i] = total / n_copies
    return score
