"""An Arrow table -> Columns: numbers into one matrix, texts and dates stay in Arrow, everything else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._optional import require
from mcode.data.columns import TRUE_FALSE, ArrowTable, Columns, NumberBlock
from mcode.data.opening import first_sentence, not_in_encoding
from mcode.errors import DataFormatError, McodeError

MIN_SPARSE_COLUMNS = 100  # narrower tables stay dense: models bring dense features to one scale


def columns_of(table: ArrowTable, source: str, encoding: str = "utf-8") -> Columns:
    """Return the columns of an Arrow table.

    Parameters
    ----------
    table : pyarrow.Table
    source : str
        The file, for errors.
    encoding : str
        What texts were read as, for errors.
    """
    names = column_names(table, source, encoding)
    if table.num_rows == 0:
        raise DataFormatError(source, reason="it has a header but no rows")
    reader = _Reader(source, encoding)
    block = NumberBlock(table.num_rows, MIN_SPARSE_COLUMNS)
    number_names: list[str] = []
    no_yes: dict[str, tuple[str, str]] = {}
    texts: dict[str, Any] = {}
    waiting = list(zip(reversed(names), reversed(table.columns), strict=True))
    del table  # each column's memory is freed as soon as it is part of the block
    while waiting:
        name, column = waiting.pop()
        column = reader.canonical(column, name)
        if not reader.is_number(column.type):
            texts[name] = column
            continue
        if reader.arrow.types.is_boolean(column.type):
            no_yes[name] = TRUE_FALSE
        number_names.append(name)
        block.add(reader.number(column, name))
    table_of_texts = reader.arrow.table(texts) if texts else None
    return Columns(source, tuple(names), block.matrix(), tuple(number_names), no_yes, table_of_texts)


def column_names(table: ArrowTable, source: str, encoding: str = "utf-8") -> list[str]:
    """Return the names of the columns, each of which may occur once."""
    try:
        names = [str(name) for name in table.column_names]
    except UnicodeDecodeError as error:
        raise DataFormatError(source, reason=not_in_encoding(encoding)) from error
    check_distinct(names, source)
    return names


def check_distinct(names: list[str] | tuple[str, ...], source: str) -> None:
    """Refuse a table in which two columns have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataFormatError(source, reason=f"two columns are named {name!r}; give each column its own name")
        seen.add(name)


class _Reader:
    """Knows what Arrow's types are to us."""

    def __init__(self, source: str, encoding: str) -> None:
        self.source, self.encoding = source, encoding
        self.arrow = require("pyarrow", extra="tables")
        self.compute = require("pyarrow.compute", extra="tables")
        self.errors = (self.arrow.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError)

    def is_number(self, kind: Any) -> bool:
        """Return whether a canonical column becomes part of the matrix."""
        types = self.arrow.types
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def canonical(self, column: Any, name: str) -> Any:
        """Return a column as numbers, booleans, strings, timestamps or lists of strings."""
        try:
            return self._canonical(column, name)
        except self.errors as error:
            if isinstance(error, McodeError):
                raise
            raise self._refuse(name, f"cannot be used ({first_sentence(error)})") from error

    def _canonical(self, column: Any, name: str) -> Any:
        arrow, types, kind = self.arrow, self.arrow.types, column.type
        if types.is_dictionary(kind):
            return self._canonical(column.cast(kind.value_type), name)
        if self.is_number(kind) or types.is_string(kind) or types.is_timestamp(kind):
            return column
        if types.is_null(kind) or types.is_decimal(kind):
            return column.cast(arrow.float64())
        if types.is_large_string(kind) or kind == arrow.string_view():
            return column.cast(arrow.string())
        if types.is_date(kind):
            return column.cast(arrow.timestamp("s" if types.is_date32(kind) else "ms"))
        if types.is_time(kind) or types.is_duration(kind):
            whole = arrow.int32() if kind.bit_width == 32 else arrow.int64()
            per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
            return self.compute.divide(column.cast(whole).cast(arrow.float64()), per_second)
        if types.is_list(kind) or types.is_large_list(kind):
            return column.cast(arrow.list_(arrow.string()))
        if types.is_binary(kind) or types.is_large_binary(kind):
            raise self._refuse(name, f"holds bytes: {not_in_encoding(self.encoding)}")
        raise self._refuse(name, f"holds values of type {kind}; numbers, booleans, dates and texts are allowed")

    def _refuse(self, name: str, what: str) -> DataFormatError:
        return DataFormatError(self.source, reason=f"column {name!r} {what}")

    def number(self, column: Any, name: str) -> NDArray[Any]:
        """Return a column as an array, with NaN where it is missing."""
        types = self.arrow.types
        if not types.is_floating(column.type) and not column.null_count:
            cells = column.cast(self.arrow.uint8()) if types.is_boolean(column.type) else column
            return np.asarray(cells.to_numpy())
        if types.is_boolean(column.type):
            column = column.cast(self.arrow.uint8())
        cells = np.asarray(column.cast(self.arrow.float64(), safe=False).to_numpy())
        if np.isinf(cells).any():
            row = int(np.flatnonzero(np.isinf(cells))[0])
            raise self._refuse(name, f"is infinite in row {row}, counted from 0; give finite numbers or leave it empty")
        return cells
