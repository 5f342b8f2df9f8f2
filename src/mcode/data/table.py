"""Parquet, Arrow and JSON lines -> Arrow tables, through pyarrow; tables in memory as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mcode._optional import require
from mcode._progress import advance
from mcode.data.arrow_options import BLOCK, TableOptions, arrow_errors
from mcode.data.columns import ArrowTable
from mcode.data.csv_table import csv_batches, read_csv
from mcode.data.opening import open_bytes
from mcode.errors import DataFormatError


def batches(path: Path, kind: str, options: TableOptions) -> Iterator[Any]:
    """Yield the record batches of a file without holding more than a few in memory.

    The types of CSV columns must be known (`options.types`) or show in the first block.
    """
    with arrow_errors(path), open_bytes(path) as file:
        match kind:
            case "csv" | "tsv":
                yield from csv_batches(path, file, kind, options)
            case "parquet":
                yield from _parquet(file).iter_batches(batch_size=1 << 15)
            case "arrow":
                yield from _arrow_batches(file)
            case _:
                yield from _json(file).to_batches(max_chunksize=1 << 15)


def read_table(path: Path, kind: str, options: TableOptions) -> ArrowTable:
    """Read a whole file; types are found from all of it."""
    arrow = require("pyarrow", extra="tables")
    with arrow_errors(path), open_bytes(path) as file:
        match kind:
            case "csv" | "tsv":
                table = read_csv(path, file, kind, options)
            case "parquet":
                table = _parquet_table(arrow, _parquet(file))
            case "arrow":
                table = arrow.Table.from_batches(list(_arrow_batches(file)))
            case _:
                table = _json(file)
        table.validate(full=True)  # a crafted file may hold offsets that point outside of it
    return table


def _parquet(file: Any) -> Any:
    return require("pyarrow.parquet", extra="tables").ParquetFile(file)


def _parquet_table(arrow: Any, file: Any) -> ArrowTable:
    parts = []
    for group in range(file.num_row_groups):
        parts.append(file.read_row_group(group))
        advance("read", group + 1, file.num_row_groups)
    return arrow.concat_tables(parts) if parts else file.schema_arrow.empty_table()


def _arrow_batches(file: Any) -> Iterator[Any]:
    ipc = require("pyarrow.ipc", extra="tables")
    if file.peek(6)[:6] == b"ARROW1":
        reader = ipc.open_file(file)
        yield from (reader.get_batch(at) for at in range(reader.num_record_batches))
    else:
        yield from ipc.open_stream(file)


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
