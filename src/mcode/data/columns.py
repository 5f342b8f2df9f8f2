"""What every reader delivers: named columns, the numbers as one matrix, everything else as an Arrow table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix
from mcode.data.gathering import SPARSE_BELOW, keep_columns

ArrowTable: TypeAlias = Any  # pyarrow ships no types

TRUE_FALSE = ("false", "true")
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

    def shed(self, names: Collection[str]) -> Columns:
        """Return the columns that are not in `names`, in the same memory: these columns are used up."""
        kept = np.array([j for j, name in enumerate(self.number_names) if name not in names], np.intp)
        text_names = [name for name in self.text_names if name not in names]
        return replace(
            self,
            order=tuple(name for name in self.order if name not in names),
            numbers=self.numbers if len(kept) == len(self.number_names) else keep_columns(self.numbers, kept),
            number_names=tuple(self.number_names[j] for j in kept),
            texts=self.texts.select(text_names) if text_names else None,
        )

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


def storage_of(matrix: Matrix) -> Matrix:
    """Return a matrix sparse where less than a quarter of it is non-zero, dense otherwise."""
    n_cells = max(1, matrix.shape[0] * matrix.shape[1])
    filled = matrix.nnz if sp.issparse(matrix) else int(np.count_nonzero(matrix))
    if filled < SPARSE_BELOW * n_cells:
        return sp.csr_matrix(matrix)
    return np.ascontiguousarray(matrix.toarray()) if sp.issparse(matrix) else matrix
