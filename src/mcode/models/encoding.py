"""Responses as the user has them <-> codes 0, 1, ..., checked once; a missing response has a code of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import column_names, table_to_array
from mcode.errors import InputError

Codes: TypeAlias = NDArray[np.uint8]

MISSING = 255  # the code of a response that is not known; a table of bytes may hold it itself
MOST_VALUES = 50
TWO_VALUES = "each response may have two values (true/false, 0/1 or two texts)"
CATEGORIES = f"{TWO_VALUES} or up to {MOST_VALUES} categories (texts or whole numbers)"


class ResponseEncoding:
    """What the values of each response are, learned from a training table Y.

    Attributes
    ----------
    values : list of arrays
        The values of each response; the code of a value is its place. Numbers 0 and 1 and booleans are always (0, 1),
        also where only one of them occurs in training.
    names : list of str
        Column names, or "0", "1", ... where the table has none.

    Examples
    --------
    >>> encoding = ResponseEncoding.of(np.array([["no", "x"], ["yes", "x"]]))
    >>> encoding.encode(np.array([["yes", "x"]]))
    array([[1, 0]], dtype=uint8)
    >>> encoding.decode(np.array([[1, 0]]))
    array([['yes', 'x']], dtype=object)
    >>> ResponseEncoding.of(np.array(["mild", "none", "severe"])).n_values
    (3,)
    """

    def __init__(self, values: list[NDArray[Any]], names: list[str]) -> None:
        self.values, self.names = values, names

    @classmethod
    def of(cls, Y: object) -> ResponseEncoding:
        """Learn the values of each column of Y."""
        table = _as_table(Y)
        names = column_names(Y) or [str(j) for j in range(table.shape[1])]
        if table.dtype == np.uint8 and _only_codes(table):
            return cls([np.array([0, 1])] * table.shape[1], names)
        return cls([_values_of(table[:, j], names[j]) for j in range(table.shape[1])], names)

    @classmethod
    def of_codes(cls, n_values: Sequence[int]) -> ResponseEncoding:
        """Return the encoding of a table that holds codes already."""
        return cls([np.arange(k) for k in n_values], [str(j) for j in range(len(n_values))])

    @property
    def n_responses(self) -> int:
        """Number of columns of Y."""
        return len(self.values)

    @property
    def n_values(self) -> tuple[int, ...]:
        """How many values each response has, at least two."""
        return tuple(max(2, len(values)) for values in self.values)

    @property
    def is_codes(self) -> bool:
        """Whether every value is its own code."""
        return all(v.dtype.kind == "i" and v[0] == 0 and v[-1] == len(v) - 1 for v in self.values)

    def encode(self, Y: object) -> Codes:
        """Return the codes of Y, shape (n, d), or say which cell holds a value that is not known."""
        table = _as_table(Y)
        if table.shape[1] != self.n_responses:
            raise InputError(
                "Y", f"it has {table.shape[1]} columns", f"the model was fitted on {self.n_responses} responses"
            )
        if table.dtype == np.uint8 and self.is_codes:
            most = max(self.n_values)
            if table.size and table.max() >= (2 if most == 2 else min(self.n_values)):
                self._refuse_unknown(table)
            return np.ascontiguousarray(table)  # stored by columns, every kernel would stride through it
        codes = np.empty(table.shape, np.uint8)
        for j, values in enumerate(self.values):
            codes[:, j] = self._encode_column(table[:, j], values, self.names[j])
        return codes

    def _refuse_unknown(self, table: NDArray[Any]) -> None:
        """Refuse codes that stand for no value."""
        unknown = (table >= np.array(self.n_values)) & (table != MISSING)
        if unknown.any():
            row, column = (int(at[0]) for at in np.nonzero(unknown))
            raise InputError(
                "Y",
                f"row {row}, column {self.names[column]!r} holds {table[row, column]}",
                f"its values are {list(self.values[column].tolist())}",
            )

    def _encode_column(self, column: NDArray[Any], values: NDArray[Any], name: str) -> Codes:
        missing = _missing(column)
        codes = np.full(len(column), MISSING, np.uint8)
        there = np.flatnonzero(~missing)
        column = column[there]
        cells = _numbers(column, name) if values.dtype.kind == "i" else column
        if len(values) > 2:
            return self._encode_categories(column, cells, there, values, name, codes)
        second = cells == values[-1] if len(values) == 2 else cells != values[0]
        known = second | (cells == values[0])
        if not np.all(known):
            self._refuse_cell(column, there, np.asarray(known), values, name)
        codes[there] = second
        return codes

    def _encode_categories(
        self,
        column: NDArray[Any],
        cells: NDArray[Any],
        there: NDArray[np.intp],
        values: NDArray[Any],
        name: str,
        codes: Codes,
    ) -> Codes:
        known = np.zeros(len(cells), bool)
        for code, value in enumerate(values.tolist()):
            mine = np.asarray(cells == value, dtype=bool)
            codes[there[mine]] = code
            known |= mine
        if not known.all():
            self._refuse_cell(column, there, known, values, name)
        return codes

    def _refuse_cell(
        self, column: NDArray[Any], there: NDArray[np.intp], known: NDArray[Any], values: NDArray[Any], name: str
    ) -> None:
        column, row = column[np.flatnonzero(~known)], int(there[~known][0])
        raise InputError(
            "Y",
            f"row {row}, column {name!r} holds {column[:1].tolist()[0]!r}",
            f"its values are {list(values.tolist())}",
        )

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the values that the codes stand for, shape (n, d); None for a response that is missing."""
        missing = np.asarray(codes) == MISSING
        if self.is_codes and not missing.any():
            return np.asarray(codes)
        out = np.empty(codes.shape, object)
        for j, values in enumerate(self.values):
            known = np.array([*values.tolist(), None], object)
            out[:, j] = known[np.where(missing[:, j], -1, codes[:, j].astype(np.intp))]
        return out


def one_valued(codes: Codes, names: list[str]) -> list[str]:
    """Return the names of responses of which one value only is known.

    Examples
    --------
    >>> one_valued(np.array([[0, 1], [1, 1]], dtype=np.uint8), ["a", "b"])
    ['b']
    """
    lowest = codes.min(axis=0)
    highest = np.where(codes == MISSING, 0, codes).max(axis=0)
    return [names[j] for j in np.flatnonzero(lowest >= highest)]


def _only_codes(table: NDArray[Any]) -> bool:
    if table.size == 0 or table.max() <= 1:
        return True
    return bool(((table <= 1) | (table == MISSING)).all())


def _as_table(Y: object) -> NDArray[Any]:
    table = np.asarray(Y.toarray()) if sp.issparse(Y) else table_to_array(Y, "Y")  # type: ignore[attr-defined]
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise InputError("Y", f"it has {table.ndim} dimensions", "a table of rows and responses is expected")
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise InputError("Y", f"it is empty (shape {table.shape})", "at least one row and one response are needed")
    return table.view(np.uint8) if table.dtype == np.bool_ else table


def _numbers(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of numbers or of number-like objects as floats."""
    if column.dtype.kind in "iufb":
        return column
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("Y", f"column {name!r} mixes numbers with other values", CATEGORIES) from error


def _is_numeric(column: NDArray[Any]) -> bool:
    if column.dtype.kind in "iufb":
        return True
    return column.dtype == object and all(isinstance(v, int | float | np.number | np.bool_ | None) for v in column)


def _values_of(column: NDArray[Any], name: str) -> NDArray[Any]:
    if _is_numeric(column):
        numbers = _numbers(column, name)
        _need_one(~_missing(numbers), name)
        numbers = np.where(_missing(numbers), 0, numbers)
        if np.isin(numbers, (0, 1)).all():
            return np.array([0, 1])
        return _categories_of_numbers(column, numbers[~_missing(column)], name)
    missing = _missing(column)
    _need_one(~missing, name)
    try:
        values = np.unique(column[~missing])
    except TypeError as error:
        raise InputError("Y", f"column {name!r} mixes values of different types", CATEGORIES) from error
    _refuse_many(values, name)
    return values


def _categories_of_numbers(column: NDArray[Any], numbers: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the whole numbers that stand for categories."""
    odd = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)))
    if odd.any():
        row = int(np.flatnonzero(~_missing(column))[odd][0])
        raise InputError("Y", f"row {row}, column {name!r} holds {column[row]!s}", CATEGORIES)
    values = np.unique(numbers)
    _refuse_many(values, name)
    return values.astype(np.int64)


def _refuse_many(values: NDArray[Any], name: str) -> None:
    if len(values) > MOST_VALUES:
        shown = ", ".join(repr(str(v)) for v in values[:3])
        raise InputError("Y", f"column {name!r} has {len(values)} different values ({shown}, ...)", CATEGORIES)


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells are NaN, None or the NA of pandas, whose comparisons have no truth value."""
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype != object:
        return np.zeros(len(column), bool)
    return np.array([v is None or type(v).__name__ == "NAType" or v != v for v in column], bool)


def _need_one(known: NDArray[np.bool_], name: str) -> None:
    if not known.any():
        raise InputError("Y", f"column {name!r} has no known value", "leave the column out, or fill some of its cells")
