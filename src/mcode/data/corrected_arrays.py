"""Parquet, Arrow and npz with some cells changed; types, order and metadata of the columns stay."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mcode._optional import require
from mcode.data.arrow_options import arrow_errors
from mcode.data.changes import Changes
from mcode.data.columns import ArrowTable


def corrected_parquet(source: Path, out: Path, changes: Changes) -> None:
    """Write the corrected copy of a Parquet file, with its row groups and compression."""
    parquet = require("pyarrow.parquet", extra="tables")
    with arrow_errors(source), parquet.ParquetFile(source) as file:
        table = corrected_table(source, file.read(), changes)
        group = file.metadata.row_group(0) if file.metadata.num_row_groups else None
        packing = group.column(0).compression.lower() if group is not None and group.num_columns else "snappy"
        parquet.write_table(
            table,
            out,
            row_group_size=max(1, group.num_rows) if group is not None else None,
            compression="none" if packing == "uncompressed" else packing,
        )


def corrected_arrow(source: Path, out: Path, changes: Changes) -> None:
    """Write the corrected copy of an Arrow file or stream."""
    ipc = require("pyarrow.ipc", extra="tables")
    with arrow_errors(source), source.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = ipc.open_file(file) if is_file else ipc.open_stream(file)
        table = corrected_table(source, reader.read_all(), changes)
        with (ipc.new_file if is_file else ipc.new_stream)(str(out), table.schema) as writer:
            writer.write_table(table)


def corrected_table(source: Path, table: ArrowTable, changes: Changes) -> ArrowTable:
    """Return an Arrow table with the changes made."""
    changes.check_done(table.num_rows, source)
    for name, place in changes.columns(list(table.column_names), source).items():
        field = table.schema.field(place)
        rows = [row for row, cells in changes.cells.items() if changes.tags_column is not None or name in cells]
        table = table.set_column(place, field, _corrected_column(table.column(place), rows, name, changes))
    return table


def _corrected_column(column: Any, rows: list[int], name: str, changes: Changes) -> Any:
    arrow = require("pyarrow", extra="tables")
    kind = column.type
    dictionary = arrow.types.is_dictionary(kind)
    plain = column.cast(kind.value_type) if dictionary else column
    values = plain.to_pylist() if arrow.types.is_nested(kind) else None
    if values is not None:
        for row in rows:
            values[row] = changes.new_tags(row, [str(tag) for tag in values[row] or []])
        return arrow.chunked_array([arrow.array(values, kind)])
    new = [_new_value(arrow, plain.type, changes, row, name, plain[row].as_py()) for row in rows]
    mask = np.zeros(len(plain), bool)
    mask[rows] = True
    in_order = [value for _, value in sorted(zip(rows, new, strict=True))]
    compute = require("pyarrow.compute", extra="tables")
    out = compute.replace_with_mask(plain.combine_chunks(), mask, arrow.array(in_order, plain.type))
    return out.dictionary_encode().cast(kind) if dictionary else out


def _new_value(arrow: Any, kind: Any, changes: Changes, row: int, name: str, old: Any) -> Any:
    """Return the new value of a cell, of the column's own type."""
    types = arrow.types
    if types.is_boolean(kind):
        return bool(changes.cells[row][name])
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return arrow.scalar(changes.values[name][changes.cells[row][name]]).cast(kind).as_py()
    return changes.new_text(row, name, "" if old is None else str(old))


def corrected_npz(source: Path, out: Path, changes: Changes) -> None:
    """Write the corrected copy of one of our npz files: the same arrays, Y with its changes."""
    with np.load(source, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    Y = arrays["Y"]
    labels = arrays.get("label_names")
    names = [str(name) for name in labels.ravel()] if labels is not None else [str(j) for j in range(Y.shape[1])]
    changes.check_done(len(Y), source)
    changes.columns(names, source)
    place = {name: at for at, name in enumerate(names)}
    for row, cells in changes.cells.items():
        for name, code in cells.items():
            Y[row, place[name]] = code
    with zipfile.ZipFile(source) as archive:
        packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())
    with out.open("wb") as opened:
        (np.savez_compressed if packed else np.savez)(opened, allow_pickle=False, **arrays)
