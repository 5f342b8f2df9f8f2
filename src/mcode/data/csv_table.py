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


class LaterCellsDifferError(Exception):
    """Cells that are not of the type of the file's first block, or a row longer than a block."""


def read_csv(path: Path, file: Any, kind: str, options: TableOptions) -> ArrowTable:
    """Read a whole file; the type of a column is found from all of its cells."""
    reader = require("pyarrow.csv", extra="tables")
    delimiter = _delimiter(path, file, kind, options)
    with _ragged_rows_named(path, options, delimiter):
        return reader.read_csv(file, **_arguments(options, delimiter, BLOCK))


@contextmanager
def opened_csv(
    path: Path, file: Any, kind: str, options: TableOptions, block: int, *, first_block_decides: bool
) -> Iterator[Any]:
    """Open a file to be read in blocks; types that `options` does not state are found from the first one.

    With `first_block_decides`, what is wrong only because of that is a `LaterCellsDifferError`.
    """
    arrow = require("pyarrow", extra="tables")
    reader = require("pyarrow.csv", extra="tables")
    delimiter = _delimiter(path, file, kind, options)
    try:
        with _ragged_rows_named(path, options, delimiter):
            yield reader.open_csv(file, **_arguments(options, delimiter, block))
    except arrow.ArrowInvalid as error:
        if first_block_decides and any(words in str(error) for words in ("conversion error", "straddling")):
            raise LaterCellsDifferError from error
        raise


def _arguments(options: TableOptions, delimiter: str, block: int) -> dict[str, Any]:
    reader = require("pyarrow.csv", extra="tables")
    return {
        "read_options": reader.ReadOptions(block_size=block, encoding=options.encoding),
        "parse_options": reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": reader.ConvertOptions(
            column_types=options.arrow_types(), null_values=MISSING, strings_can_be_null=True
        ),
    }


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
