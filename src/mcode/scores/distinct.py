"""A table as its distinct rows and how often each occurs, in an order that depends on their content alone.

Scores that work on (rows, counts) cost what the distinct rows cost, and give the same bits in whatever order the rows
came. The order is that of a hash, so the first rows are also a fair sample of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from mcode._arrays import Matrix


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of a table of n rows.

    Attributes
    ----------
    rows : matrix of shape (u, m), float64
        Each different row once.
    counts : ndarray of shape (u,), int64
        How often each occurs; the sum is n.
    which : ndarray of shape (n,), int64
        The distinct row that each original row equals: ``rows[which]`` is the table.
    """

    rows: Matrix
    counts: NDArray[np.int64]
    which: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Number of rows with all copies."""
        return self.which.size


def distinct_rows(M: Matrix) -> DistinctRows:
    """Merge equal rows of `M`; 0.0 and -0.0 are equal, and so are an absent and an explicit zero of a sparse matrix.

    Examples
    --------
    >>> merged = distinct_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    >>> sorted(merged.counts.tolist()), merged.rows[merged.which].tolist()
    ([1, 2], [[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]])
    """
    dense = isinstance(M, np.ndarray)
    rows: Matrix = np.ascontiguousarray(M, dtype=np.float64) + 0.0 if dense else _tidy_sparse(M)  # + 0.0: no -0.0
    keys = _row_keys(rows)
    _, first, which, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    if first.size < keys.size and not _all_equal(rows, first[which]):
        return _distinct_by_content(rows)
    return DistinctRows(rows[first], counts.astype(np.int64), which.astype(np.int64))


def _tidy_sparse(M: Any) -> sp.csr_matrix:
    tidy = sp.csr_matrix(M, dtype=np.float64, copy=True)
    tidy.eliminate_zeros()
    return tidy


def _row_keys(rows: Matrix) -> NDArray[np.uint64]:
    """64-bit hash of each row, the same for a dense and a sparse one."""
    drawn = np.random.default_rng(0).integers(0, 2**63, size=rows.shape[1], dtype=np.uint64)
    odd: NDArray[np.uint64] = np.asarray(drawn * np.uint64(2) + np.uint64(1))
    if isinstance(rows, np.ndarray):
        return np.asarray(_hash_dense(rows.view(np.uint64), odd))
    data: NDArray[Any] = np.asarray(rows.data)
    return np.asarray(_hash_sparse(data.view(np.uint64), rows.indices, rows.indptr, odd))


@njit(cache=True, nogil=True)
def _scrambled(bits: np.uint64) -> np.uint64:
    # Doubles such as 0 and 1 differ in a few high bits only; a sum of odd multiples would then collide often.
    bits = bits * np.uint64(0x9E3779B97F4A7C15)
    return (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)


@njit(cache=True, nogil=True)
def _hash_dense(bits: NDArray[Any], odd: NDArray[Any]) -> NDArray[Any]:
    keys = np.zeros(bits.shape[0], np.uint64)
    for i in range(bits.shape[0]):
        for c in range(bits.shape[1]):
            keys[i] += _scrambled(bits[i, c]) * odd[c]
    return keys


@njit(cache=True, nogil=True)
def _hash_sparse(bits: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], odd: NDArray[Any]) -> NDArray[Any]:
    keys = np.zeros(indptr.size - 1, np.uint64)
    for i in range(keys.size):
        for at in range(indptr[i], indptr[i + 1]):
            keys[i] += _scrambled(bits[at]) * odd[indices[at]]
    return keys


def _all_equal(rows: Matrix, others: NDArray[np.int64]) -> bool:
    """Whether each row equals the one whose number stands in `others`."""
    if isinstance(rows, np.ndarray):
        return bool(_dense_equal(rows, others))
    different: Any = rows != rows[others]
    return bool(different.nnz == 0)


@njit(cache=True, nogil=True)
def _dense_equal(rows: NDArray[Any], others: NDArray[Any]) -> bool:
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            if rows[i, c] != rows[others[i], c]:
                return False
    return True


def _distinct_by_content(rows: Matrix) -> DistinctRows:
    """Slow and certain: two different rows had the same hash."""
    whole = [_bytes_of_row(rows, i) for i in range(rows.shape[0])]
    place = {content: at for at, content in enumerate(sorted(set(whole)))}
    which = np.array([place[content] for content in whole], dtype=np.int64)
    _, first, counts = np.unique(which, return_index=True, return_counts=True)
    return DistinctRows(rows[first], counts.astype(np.int64), which)


def _bytes_of_row(rows: Matrix, i: int) -> bytes:
    if isinstance(rows, np.ndarray):
        return bytes(rows[i].tobytes())
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return bytes(rows.indices[part].astype(np.int64).tobytes() + b"|" + rows.data[part].tobytes())
