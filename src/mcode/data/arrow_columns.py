"""An Arrow table -> Columns: numbers into one matrix, texts and dates stay in Arrow, everything else is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._optional import require
from mcode.data.columns import EXACT_IN_SINGLE, TRUE_FALSE, ArrowTable, Columns
from mcode.data.gathering import GatheredRows
from mcode.data.opening import first_sentence, not_in_encoding
from mcode.errors import DataFormatError, McodeError

MIN_SPARSE_COLUMNS = 100  # narrower tables stay dense: models bring dense features to one scale
CELLS_AT_ONCE = 1 << 18


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
    return columns_of_batches(table.schema, table.to_batches(), source, encoding)


def columns_of_batches(schema: Any, batches: Iterable[Any], source: str, encoding: str = "utf-8") -> Columns:
    """Return the columns of a table that comes in record batches, each of which is let go when it has been copied.

    Parameters
    ----------
    schema : pyarrow.Schema
    batches : iterable of pyarrow.RecordBatch
    source, encoding : str, as for `columns_of`
    """
    names = column_names(schema, source, encoding)
    reader = _Reader(source, encoding)
    rows_at_once = max(1, CELLS_AT_ONCE // max(1, len(names)))
    odd = [j for j, kind in enumerate(schema.types) if not reader.is_canonical(kind)]
    blocks: _Blocks | None = None
    for batch in batches:
        for start in range(0, batch.num_rows, rows_at_once):
            part = batch.slice(start, rows_at_once)
            cells = part.columns
            for j in odd:
                cells[j] = reader.canonical(cells[j], names[j])
            columns = dict(zip(names, cells, strict=True))
            if blocks is None:
                blocks = _Blocks(reader, columns)
            blocks.add(columns, part.num_rows)
            del cells, columns, part
        del batch
        reader.arrow.default_memory_pool().release_unused()  # it would keep what it freed for later
    if blocks is None:
        raise DataFormatError(source, reason="it has a header but no rows")
    return blocks.columns(names)


class _Blocks:
    """The numbers of a table in one matrix and its other columns as they are, gathered a block at a time.

    Parameters
    ----------
    reader : _Reader
    columns : dict, the canonical columns of the first block, which say what each column is
    """

    def __init__(self, reader: _Reader, columns: dict[str, Any]) -> None:
        self.reader = reader
        types = reader.arrow.types
        self.number_names = tuple(name for name, cells in columns.items() if reader.is_number(cells.type))
        self.booleans = [name for name in self.number_names if types.is_boolean(columns[name].type)]
        self.whole = [j for j, n in enumerate(self.number_names) if not types.is_floating(columns[n].type)]
        self.texts: dict[str, list[Any]] = {n: [] for n, c in columns.items() if not reader.is_number(c.type)}
        self.rows = GatheredRows(len(self.number_names), MIN_SPARSE_COLUMNS)

    def add(self, columns: dict[str, Any], n_rows: int) -> None:
        for name, parts in self.texts.items():
            parts.append(columns[name])
        numbers = {name: columns[name] for name in self.number_names}
        numbers |= {name: columns[name].cast(self.reader.arrow.uint8()) for name in self.booleans}
        self.rows.add(self._single(self._matrix(numbers, n_rows)))

    def _matrix(self, numbers: dict[str, Any], n_rows: int) -> NDArray[np.floating[Any]]:
        if not numbers:
            return np.zeros((n_rows, 0), np.float32)
        batch = self.reader.arrow.record_batch(list(numbers.values()), names=[str(j) for j in range(len(numbers))])
        return np.asarray(batch.to_tensor(null_to_nan=True, row_major=True).to_numpy())

    def _single(self, block: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Return a block in single precision, unless that would change a whole number or overflow."""
        with np.errstate(over="ignore"):
            single = block.astype(np.float32, copy=False)
        beyond = np.isinf(single)
        if beyond.any():
            self._refuse_infinite(block)
            return block
        if block.dtype == np.float32 or not self.whole:
            return single
        part = block if len(self.whole) == block.shape[1] else block[:, self.whole]
        largest = max(np.fmax.reduce(part, axis=None), -np.fmin.reduce(part, axis=None))
        return block if largest > EXACT_IN_SINGLE else single

    def _refuse_infinite(self, block: NDArray[np.floating[Any]]) -> None:
        found = np.argwhere(np.isinf(block))
        if len(found):
            row, j = int(found[0][0]) + self.rows.n_rows, int(found[0][1])
            raise self.reader.refuse(
                self.number_names[j], f"is infinite in row {row}, counted from 0; give finite numbers or leave it empty"
            )

    def columns(self, names: list[str]) -> Columns:
        arrow = self.reader.arrow
        texts = arrow.table({name: arrow.chunked_array(parts) for name, parts in self.texts.items()})
        no_yes = dict.fromkeys(self.booleans, TRUE_FALSE)
        numbers = self.rows.matrix()
        return Columns(
            self.reader.source, tuple(names), numbers, self.number_names, no_yes, texts if self.texts else None
        )


def column_names(schema: Any, source: str, encoding: str = "utf-8") -> list[str]:
    """Return the names of the columns, each of which may occur once."""
    try:
        names = [str(name) for name in schema.names]
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

    def is_canonical(self, kind: Any) -> bool:
        """Return whether a column of this type is used as it is."""
        types = self.arrow.types
        return self.is_number(kind) or bool(types.is_string(kind) or types.is_timestamp(kind))

    def canonical(self, column: Any, name: str) -> Any:
        """Return a column as numbers, booleans, strings, timestamps or lists of strings."""
        try:
            return self._canonical(column, name)
        except self.errors as error:
            if isinstance(error, McodeError):
                raise
            raise self.refuse(name, f"cannot be used ({first_sentence(error)})") from error

    def _canonical(self, column: Any, name: str) -> Any:
        arrow, types, kind = self.arrow, self.arrow.types, column.type
        if types.is_dictionary(kind):
            return self._canonical(column.cast(kind.value_type), name)
        if self.is_canonical(kind):
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
            raise self.refuse(name, f"holds bytes: {not_in_encoding(self.encoding)}")
        raise self.refuse(name, f"holds values of type {kind}; numbers, booleans, dates and texts are allowed")

    def refuse(self, name: str, what: str) -> DataFormatError:
        """Return the sentence about a column."""
        return DataFormatError(self.source, reason=f"column {name!r} {what}")
