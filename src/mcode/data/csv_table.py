"""CSV and TSV -> Arrow tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcode._optional import require
from mcode.data.arrow_options import BLOCK, TableOptions
from mcode.data.columns import ArrowTable
from mcode.data.opening import open_bytes
from mcode.errors import DataFormatError, ParameterError

# What people and other tools write for "not known"; texts that mean "no" or "none of these" are not among them.
MISSING = ["", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "<NA>", "None"]
LARGE_FILE = 1 << 26  # bytes from which it pays to look for columns of small numbers first


def read_csv(path: Path, file: Any, kind: str, options: TableOptions) -> ArrowTable:
    """Read a whole file; the type of a column is found from all of its cells.

    Numbers take 8 bytes each. In a large file, columns that begin with small whole numbers are read as 1 byte each; if
    one of them goes on differently, the file is read once more.
    """
    arrow = require("pyarrow", extra="tables")
    reader = require("pyarrow.csv", extra="tables")
    delimiter = _delimiter(path, file, kind, options)
    small = _small_columns(path, options, delimiter) if path.stat().st_size >= LARGE_FILE else {}
    with _ragged_rows_named(path, options, delimiter):
        try:
            return reader.read_csv(file, **_arguments(options, delimiter, small))
        except arrow.ArrowInvalid as error:
            if not small or "conversion error" not in str(error):
                raise
        with open_bytes(path) as again:
            return reader.read_csv(again, **_arguments(options, delimiter, {}))


def csv_batches(path: Path, file: Any, kind: str, options: TableOptions) -> Iterator[Any]:
    """Yield record batches; types that `options` does not state are found from the first block."""
    reader = require("pyarrow.csv", extra="tables")
    delimiter = _delimiter(path, file, kind, options)
    with _ragged_rows_named(path, options, delimiter):
        yield from reader.open_csv(file, **_arguments(options, delimiter, {}))


def _arguments(options: TableOptions, delimiter: str, small: dict[str, Any]) -> dict[str, Any]:
    reader = require("pyarrow.csv", extra="tables")
    return {
        "read_options": reader.ReadOptions(block_size=BLOCK, encoding=options.encoding),
        "parse_options": reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": reader.ConvertOptions(
            column_types={**small, **options.arrow_types()}, null_values=MISSING, strings_can_be_null=True
        ),
    }


def _small_columns(path: Path, options: TableOptions, delimiter: str) -> dict[str, Any]:
    """Return the columns that hold whole numbers from -128 to 127 in the first block."""
    arrow = require("pyarrow", extra="tables")
    compute = require("pyarrow.compute", extra="tables")
    reader = require("pyarrow.csv", extra="tables")
    with _ragged_rows_named(path, options, delimiter), open_bytes(path) as file:
        block = next(iter(reader.open_csv(file, **_arguments(options, delimiter, {}))), None)
    small = {}
    for name, column in zip(block.schema.names, block.columns, strict=True) if block is not None else ():
        if arrow.types.is_int64(column.type):
            limits = compute.min_max(column).as_py()
            if limits["min"] is not None and limits["min"] >= -128 and limits["max"] <= 127:
                small[name] = arrow.int8()
    return small


@contextmanager
def _ragged_rows_named(path: Path, options: TableOptions, delimiter: str) -> Iterator[None]:
    """Say in which line a row has more or fewer cells than the header; pyarrow knows only that there is one."""
    arrow = require("pyarrow", extra="tables")
    try:
        yield
    except arrow.ArrowInvalid as error:
        found = _first_ragged(path, options, delimiter) if "columns, got" in str(error) else None
        raise (found or error) from error


def _first_ragged(path: Path, options: TableOptions, delimiter: str) -> DataFormatError | None:
    with open_bytes(path) as file, io.TextIOWrapper(file, options.encoding, errors="replace", newline="") as text:
        rows = csv.reader(text, delimiter=delimiter)
        try:
            expected = len(next(rows, []))
            ragged = next((row for row in rows if row and len(row) != expected), None)
        except csv.Error:
            return None
        if ragged is None:
            return None
        return DataFormatError(path, rows.line_num, f"the row has {len(ragged)} cells; the header has {expected}")


def _delimiter(path: Path, file: Any, kind: str, options: TableOptions) -> str:
    """Return what was asked for, a tab for TSV, else the first of , ; and tab that the header holds."""
    if options.delimiter is not None:
        if len(options.delimiter) != 1 or not options.delimiter.isascii() or options.delimiter in '\r\n"':
            raise ParameterError("delimiter", options.delimiter, "one character")
        return options.delimiter
    start = file.peek(1 << 16)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") and options.encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        raise DataFormatError(path, 1, "the text is in UTF-16; say encoding='utf-16'")
    header = start.split(b"\n", 1)[0]
    return "\t" if kind == "tsv" else next((d for d in ",;\t" if d.encode() in header), ",")
