"""What every reader delivers: named columns, the numbers as one matrix, everything else as an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix

ArrowTable: TypeAlias = Any  # pyarrow ships no types

TRUE_FALSE = ("false", "true")
SPARSE_BELOW = 0.25  # share of non-zero cells below which a matrix is kept sparse
MOST_COLUMNS = 2_000_000  # a file of a few bytes may claim more; each column costs memory before any cell is read
EXACT_IN_SINGLE = 2**24  # whole numbers beyond this change when stored as float32


@dataclass(frozen=True)
class Columns:
    """The columns of one file.

    Attributes
    ----------
    source : str
        The file, for errors.
    order : tuple of str
        All names, in the order of the file.
    numbers : (n, k) matrix
        The columns that hold numbers; NaN is missing.
    number_names : tuple of str
    no_yes : dict
        How 0 and 1 are written, for the number columns that stand for two values.
    texts : Arrow table or None
        The other columns: texts and dates.
    """

    source: str
    order: tuple[str, ...]
    numbers: Matrix
    number_names: tuple[str, ...]
    no_yes: dict[str, tuple[str, str]] = field(default_factory=dict)
    texts: ArrowTable = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.numbers.shape[0])

    @property
    def text_names(self) -> tuple[str, ...]:
        """Names of the columns that are not numbers."""
        return () if self.texts is None else tuple(self.texts.column_names)

    @property
    def true_false(self) -> set[str]:
        """Names of the columns that hold true and false."""
        return {name for name, pair in self.no_yes.items() if pair == TRUE_FALSE}

    def number(self, name: str) -> NDArray[np.floating[Any]]:
        """Return one number column, shape (n,)."""
        column = self.numbers[:, self.number_names.index(name)]
        return np.asarray(column.toarray()).ravel() if sp.issparse(column) else np.asarray(column)

    def without(self, names: Sequence[str]) -> Columns:
        """Return the columns that are not in `names`."""
        dropped = set(names)
        return self if not dropped else self.only([name for name in self.order if name not in dropped])

    def only(self, names: Sequence[str]) -> Columns:
        """Return the named columns, in the order of `names`."""
        at = {name: j for j, name in enumerate(self.number_names)}
        number_names = tuple(name for name in names if name in at)
        text_names = [name for name in names if name not in at]
        numbers = self.numbers
        if number_names != self.number_names:
            numbers = numbers[:, [at[name] for name in number_names]]
        return replace(
            self,
            order=tuple(names),
            numbers=numbers if sp.issparse(numbers) else np.ascontiguousarray(numbers),
            number_names=number_names,
            texts=self.texts.select(text_names) if text_names else None,
        )

    def take(self, rows: NDArray[np.intp]) -> Columns:
        """Return some of the rows."""
        texts = None if self.texts is None else self.texts.take(rows)
        return replace(self, numbers=self.numbers[rows], texts=texts)


class NumberBlock:
    """Columns of numbers on their way into one matrix, each kept as small as it can be while others are being read.

    The matrix is sparse where few cells differ from 0, and float32 unless that would change a whole number.

    Parameters
    ----------
    n_rows : int
    min_sparse_columns : int, default=0
        A table with fewer columns is dense however many zeros it has.

    Examples
    --------
    >>> block = NumberBlock(2)
    >>> block.add(np.array([1, 0]))
    >>> block.add(np.array([2.5, np.nan]))
    >>> block.matrix()
    array([[1. , 2.5],
           [0. , nan]], dtype=float32)
    """

    def __init__(self, n_rows: int, min_sparse_columns: int = 0) -> None:
        self.n_rows, self.min_sparse_columns = n_rows, min_sparse_columns
        self._rows: list[NDArray[np.int32] | None] = []  # None: the column is kept whole
        self._values: list[NDArray[np.floating[Any]]] = []

    def add(self, column: NDArray[Any]) -> None:
        """Append one column, shape (n,)."""
        rows = np.flatnonzero(column)
        kept_whole = len(rows) >= SPARSE_BELOW * self.n_rows
        self._rows.append(None if kept_whole else rows.astype(np.int32))
        values = column if kept_whole else column[rows]
        self._values.append(values.astype(_float_type(values)))

    def matrix(self) -> Matrix:
        """Return all columns, shape (n, k)."""
        dtype = np.result_type(np.float32, *{values.dtype for values in self._values})
        filled = sum(int(np.count_nonzero(values)) for values in self._values)
        n_columns = len(self._values)
        if n_columns < max(1, self.min_sparse_columns) or filled >= SPARSE_BELOW * self.n_rows * n_columns:
            return self._dense(dtype)
        return self._sparse(filled, dtype)

    def _dense(self, dtype: Any) -> Matrix:
        out = np.zeros((self.n_rows, len(self._values)), dtype)
        for j, (rows, values) in enumerate(zip(self._rows, self._values, strict=True)):
            out[slice(None) if rows is None else rows, j] = values
        return out

    def _sparse(self, filled: int, dtype: Any) -> Matrix:
        indices, data = np.empty(filled, np.int32), np.empty(filled, dtype)
        indptr = np.zeros(len(self._values) + 1, np.int64)
        for j, (rows, values) in enumerate(zip(self._rows, self._values, strict=True)):
            at = np.flatnonzero(values) if rows is None else rows
            here = slice(indptr[j], indptr[j] + len(at))
            indices[here], data[here] = at, values[at] if rows is None else values
            indptr[j + 1] = here.stop
        return sp.csr_matrix(sp.csc_matrix((data, indices, indptr), shape=(self.n_rows, len(self._values))))


def _float_type(values: NDArray[Any]) -> type[np.floating[Any]]:
    """Return float32 unless it would change a whole number or overflow."""
    if not values.size or (values.dtype.kind in "bf" and values.dtype.itemsize <= 4):
        return np.float32
    largest = np.nanmax(np.abs(values.astype(np.float64))) if not np.isnan(values).all() else 0.0
    exact = largest <= (EXACT_IN_SINGLE if values.dtype.kind in "iu" else np.finfo(np.float32).max)
    return np.float32 if exact else np.float64


def storage_of(matrix: Matrix) -> Matrix:
    """Return a matrix sparse where less than a quarter of it is non-zero, dense otherwise."""
    n_cells = max(1, matrix.shape[0] * matrix.shape[1])
    filled = matrix.nnz if sp.issparse(matrix) else int(np.count_nonzero(matrix))
    if filled < SPARSE_BELOW * n_cells:
        return sp.csr_matrix(matrix)
    return np.ascontiguousarray(matrix.toarray()) if sp.issparse(matrix) else matrix
