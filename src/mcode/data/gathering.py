"""Rows that come a block at a time -> one matrix, without a second copy of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix

SPARSE_BELOW = 0.25  # share of non-zero cells below which a matrix is kept sparse
GROWTH = 1.03
ROWS_AT_ONCE = 4096


class GrowingArray:
    """An array that grows at its end, in its own memory where the system can do that.

    Parameters
    ----------
    dtype : numpy type

    Examples
    --------
    >>> cells = GrowingArray(np.float32)
    >>> cells.append(np.array([1.0, 2.0], np.float32))
    >>> cells.append(np.array([3.0], np.float32))
    >>> cells.whole()
    array([1., 2., 3.], dtype=float32)
    """

    def __init__(self, dtype: Any) -> None:
        self._cells = np.empty(0, dtype)
        self._size = 0

    def append(self, part: NDArray[Any]) -> None:
        """Add cells at the end; the type widens if it must to hold them."""
        dtype = np.result_type(self._cells.dtype, part.dtype)
        if dtype != self._cells.dtype:
            self._cells = self._cells.astype(dtype)
        end = self._size + part.size
        if end > self._cells.size:
            self._cells.resize(max(end, int(GROWTH * self._size)), refcheck=False)  # nobody else has it yet
        self._cells[self._size : end] = part.ravel()
        self._size = end

    def whole(self) -> NDArray[Any]:
        """Return all cells; nothing is appended afterwards."""
        self._cells.resize(self._size, refcheck=False)
        return self._cells


class GatheredRows:
    """Blocks of rows on their way into one matrix, sparse where less than a quarter of it is non-zero.

    The first block decides how rows are gathered, and all of them what comes out.

    Parameters
    ----------
    n_columns : int
    min_sparse_columns : int, default=0
        A matrix with fewer columns is dense however many zeros it has.

    Examples
    --------
    >>> rows = GatheredRows(2)
    >>> rows.add(np.array([[1, 2.5]], np.float32))
    >>> rows.add(sp.csr_matrix([[0, 4.0]], dtype=np.float32))
    >>> rows.matrix()
    array([[1. , 2.5],
           [0. , 4. ]], dtype=float32)
    """

    def __init__(self, n_columns: int, min_sparse_columns: int = 0) -> None:
        self.n_columns, self.n_rows, self.n_filled = n_columns, 0, 0
        self._may_be_sparse = n_columns >= min_sparse_columns
        self._sparse: bool | None = None
        self._cells = GrowingArray(np.float32)
        self._indices, self._lengths = GrowingArray(np.int32), GrowingArray(np.int64)

    def add(self, block: Matrix) -> None:
        """Append a block of rows, shape (b, n_columns), dense or CSR."""
        self.n_rows += block.shape[0]
        self.n_filled += block.nnz if sp.issparse(block) else int(np.count_nonzero(block))
        if self._sparse is None:
            self._sparse = self._is_mostly_zero()
        if not self._sparse:
            self._cells.append(block.toarray() if sp.issparse(block) else np.asarray(block))
            return
        rows = sp.csr_matrix(block)
        self._cells.append(rows.data)
        self._indices.append(rows.indices.astype(np.int32, copy=False))
        self._lengths.append(np.diff(rows.indptr).astype(np.int64))

    def _is_mostly_zero(self) -> bool:
        return self._may_be_sparse and self.n_filled < SPARSE_BELOW * max(1, self.n_rows * self.n_columns)

    def matrix(self) -> Matrix:
        """Return all rows."""
        shape = (self.n_rows, self.n_columns)
        if not self._sparse:
            dense = self._cells.whole().reshape(shape)
            return sp.csr_matrix(dense) if self._is_mostly_zero() else dense
        # both index arrays need one type, or SciPy copies them
        wide = np.int32 if self.n_filled <= np.iinfo(np.int32).max else np.int64
        ends = np.concatenate([[0], np.cumsum(self._lengths.whole())]).astype(wide)
        parts: Any = (self._cells.whole(), self._indices.whole().astype(wide, copy=False), ends)
        rows: sp.csr_matrix = sp.csr_matrix(parts, shape=shape)
        return rows if self._is_mostly_zero() else np.ascontiguousarray(rows.toarray())


def keep_columns(matrix: Matrix, kept: NDArray[np.intp]) -> Matrix:
    """Return the columns `kept`, in ascending order, within the memory of `matrix`, which is used up.

    Examples
    --------
    >>> keep_columns(np.arange(6.0).reshape(2, 3), np.array([0, 2]))
    array([[0., 2.],
           [3., 5.]])
    """
    return _keep_sparse(matrix, kept) if sp.issparse(matrix) else _keep_dense(np.asarray(matrix), kept)


def _keep_dense(matrix: NDArray[Any], kept: NDArray[np.intp]) -> Matrix:
    n_rows = matrix.shape[0]
    if not (matrix.flags.c_contiguous and matrix.flags.writeable):
        return np.ascontiguousarray(matrix[:, kept])
    cells, end = matrix.reshape(-1), 0
    for start in range(0, n_rows, ROWS_AT_ONCE):
        part = matrix[start : start + ROWS_AT_ONCE][:, kept]  # a copy, and never ahead of what is still to be read
        cells[end : end + part.size] = part.ravel()
        end += part.size
    rows = cells[:end].reshape(n_rows, len(kept))
    return rows.copy() if end < cells.size // 2 else rows


def _keep_sparse(matrix: sp.csr_matrix, kept: NDArray[np.intp]) -> sp.csr_matrix:
    n_rows, n_columns = matrix.shape
    place = np.full(n_columns, -1, matrix.indices.dtype)
    place[kept] = np.arange(len(kept))
    data, indices, old = matrix.data, matrix.indices, matrix.indptr
    ends, end = np.zeros_like(old), 0
    for start in range(0, n_rows, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_rows)
        part = slice(old[start], old[stop])
        places = place[indices[part]]
        stays = places >= 0
        count = np.concatenate([[0], np.cumsum(stays)])
        ends[start + 1 : stop + 1] = end + count[old[start + 1 : stop + 1] - old[start]]
        here = slice(end, end + int(count[-1]))
        data[here], indices[here] = data[part][stays], places[stays]
        end = here.stop
    matrix.data, matrix.indices = np.empty(0, data.dtype), np.empty(0, indices.dtype)
    return sp.csr_matrix((_shortened(data, end), _shortened(indices, end), ends), shape=(n_rows, len(kept)))


def _shortened(cells: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the first cells; the memory of the others is given back where nobody else can see it."""
    if not cells.flags.owndata:
        return cells[:size]
    cells.resize(size, refcheck=False)
    return cells
