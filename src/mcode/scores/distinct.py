"""A table as its distinct rows and how often each occurs, in an order that depends on their content alone.

Scores that work on (rows, counts) cost what the distinct rows cost, and give the same bits in whatever order the rows
came. The order is that of a hash, so the first rows are also a fair sample of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
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
    rows = _tidy_sparse(M) if sp.issparse(M) else np.ascontiguousarray(M, dtype=np.float64) + 0.0  # + 0.0: no -0.0
    keys = _row_keys(rows)
    _, first, which, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    if first.size < keys.size and not _equal(rows, rows[first[which]]):
        return _distinct_by_content(rows)
    return DistinctRows(rows[first], counts.astype(np.int64), which.astype(np.int64))


def _tidy_sparse(M: Any) -> sp.csr_matrix:
    tidy = sp.csr_matrix(M, dtype=np.float64, copy=True)
    tidy.eliminate_zeros()
    return tidy


def _row_keys(rows: Matrix) -> NDArray[np.uint64]:
    """64-bit hash of each row; column order matters, storage does not."""
    drawn = np.random.default_rng(0).integers(0, 2**63, size=rows.shape[1], dtype=np.uint64)
    odd: NDArray[np.uint64] = np.asarray(drawn * np.uint64(2) + np.uint64(1))
    if sp.issparse(rows):
        terms = _scrambled(rows.data) * odd[rows.indices]
        ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(ends[rows.indptr[1:]] - ends[rows.indptr[:-1]])
    return np.asarray(_scrambled(rows) @ odd)


def _scrambled(values: NDArray[Any]) -> NDArray[np.uint64]:
    # Doubles such as 0 and 1 differ in a few high bits only; a sum of odd multiples would then collide often.
    bits = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray((bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9))


def _equal(a: Matrix, b: Matrix) -> bool:
    different: Any = a != b
    return bool(different.nnz == 0 if sp.issparse(a) else not np.any(different))


def _distinct_by_content(rows: Matrix) -> DistinctRows:
    """Slow and certain: two different rows had the same hash."""
    whole = [_bytes_of_row(rows, i) for i in range(rows.shape[0])]
    place = {content: at for at, content in enumerate(sorted(set(whole)))}
    which = np.array([place[content] for content in whole], dtype=np.int64)
    _, first, counts = np.unique(which, return_index=True, return_counts=True)
    return DistinctRows(rows[first], counts.astype(np.int64), which)


def _bytes_of_row(rows: Matrix, i: int) -> bytes:
    if sp.issparse(rows):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        return rows.indices[part].astype(np.int64).tobytes() + b"|" + rows.data[part].tobytes()
    return bytes(rows[i].tobytes())
