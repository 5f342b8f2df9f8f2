"""CSV, Parquet, Arrow and JSON lines -> record batches, through pyarrow; tables in memory as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcode._optional import require
from mcode._progress import advance
from mcode.data.arrow_columns import CELLS_AT_ONCE, columns_of, columns_of_batches
from mcode.data.arrow_options import BLOCK, SMALL_BLOCK, TableOptions, arrow_errors
from mcode.data.columns import ArrowTable, Columns
from mcode.data.csv_table import LaterCellsDifferError, opened_csv, read_csv
from mcode.data.opening import open_bytes
from mcode.errors import DataFormatError


def batches(path: Path, kind: str, options: TableOptions) -> Iterator[Any]:
    """Yield the record batches of a file without holding more than a few in memory.

    The types of CSV columns must be known (`options.types`) or show in the first block.
    """
    with _opened(path, kind, options) as (_, parts):
        yield from parts


def table_columns(path: Path, kind: str, options: TableOptions) -> Columns:
    """Return the columns of a whole file, which is read in blocks.

    The types of CSV columns are taken from the first block. If cells of a later one are of another type, the file is
    read once more, as one table, which takes more memory.
    """
    try:
        with _opened(path, kind, options, block=SMALL_BLOCK, first_block_decides=True) as (schema, parts):
            return columns_of_batches(schema, parts, str(path), options.encoding)
    except LaterCellsDifferError:
        with arrow_errors(path), open_bytes(path) as file:
            return columns_of(read_csv(path, file, kind, options), str(path), options.encoding)


@contextmanager
def _opened(
    path: Path, kind: str, options: TableOptions, *, block: int = BLOCK, first_block_decides: bool = False
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a file: its schema, and its record batches, checked."""
    with arrow_errors(path), open_bytes(path) as file:
        if kind in ("csv", "tsv"):
            with opened_csv(path, file, kind, options, block, first_block_decides=first_block_decides) as reader:
                yield reader.schema, _checked(reader)
            return
        match kind:
            case "parquet":
                opened = require("pyarrow.parquet", extra="tables").ParquetFile(file)
                schema, parts = opened.schema_arrow, _parquet_batches(opened)
            case "arrow":
                schema, parts = _arrow_batches(file)
            case _:
                table = _json(file)
                schema, parts = table.schema, iter(table.to_batches(max_chunksize=1 << 15))
        yield schema, _checked(parts)


def _checked(parts: Iterator[Any]) -> Iterator[Any]:
    for part in parts:
        part.validate(full=True)  # a crafted file may hold offsets that point outside of it
        yield part


def _parquet_batches(file: Any) -> Iterator[Any]:
    n_rows, done = file.metadata.num_rows, 0
    rows_at_once = max(1, min(1 << 15, CELLS_AT_ONCE // max(1, file.metadata.num_columns)))
    for part in file.iter_batches(batch_size=rows_at_once, use_threads=False):
        yield part
        done += part.num_rows
        advance("read", done, n_rows)


def _arrow_batches(file: Any) -> tuple[Any, Iterator[Any]]:
    ipc = require("pyarrow.ipc", extra="tables")
    if file.peek(6)[:6] == b"ARROW1":
        reader = ipc.open_file(file)
        return reader.schema, (reader.get_batch(at) for at in range(reader.num_record_batches))
    reader = ipc.open_stream(file)
    return reader.schema, iter(reader)


def _json(file: Any) -> ArrowTable:
    json = require("pyarrow.json", extra="tables")
    return json.read_json(file, json.ReadOptions(block_size=BLOCK), json.ParseOptions(newlines_in_values=False))


def arrow_table(table: object) -> ArrowTable | None:
    """Return a pandas, polars or Arrow table as an Arrow table, None if it is none of these."""
    module = type(table).__module__.split(".", 1)[0]
    if module not in ("pandas", "polars", "pyarrow"):
        return None
    arrow = require("pyarrow", extra="tables")
    if not hasattr(type(table), "columns"):
        raise DataFormatError(table_name(table), reason=f"a {type(table).__name__} is not a table")
    with arrow_errors(table_name(table)):
        convert: dict[str, Callable[[Any], Any]] = {
            "pandas": lambda t: arrow.Table.from_pandas(_with_text_names(t), preserve_index=False),
            "polars": lambda t: t.to_arrow() if hasattr(t, "to_arrow") else t.collect().to_arrow(),
            "pyarrow": lambda t: arrow.Table.from_batches([t]) if isinstance(t, arrow.RecordBatch) else t,
        }
        return convert[module](table)


def table_name(table: object) -> str:
    """Return how errors call a table in memory."""
    return f"the {type(table).__module__.split('.', 1)[0]} table"


def _with_text_names(frame: Any) -> Any:
    return frame.set_axis([str(name) for name in frame.columns], axis=1)
