"""A folder of Parquet files as a table in partitions: each is some row groups of one file, read when they are needed.

What becomes of the columns is learned from some rows of several files, as `mcode.read` does for one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from mcode.data import Dataset, Schema, read
from mcode.data.arrow_options import arrow_errors
from mcode.data.labels import ZERO_ONE
from mcode.distributed.results import MANIFEST, check_finished
from mcode.distributed.table import Rows, Table
from mcode.errors import DataFormatError
from mcode.models.encoding import ResponseEncoding
from mcode.own_words import named_responses

PART_BYTES = 24 * 2**20  # of Parquet's own uncompressed count: a worker holds a few parts at once
COLUMNS_AT_ONCE = 16  # as many as stay in cache while they are turned
SCHEMA_ROWS = 50_000
SCHEMA_GROUPS = 12


@dataclass(frozen=True)
class FilePart:
    """Some row groups of one file.

    Attributes
    ----------
    path : str
    groups : numbers of the row groups
    start : int, rows of the table before these
    schema : Schema by which they are read
    drop : whether rows without responses are left out
    """

    path: str
    groups: tuple[int, ...]
    start: int
    schema: Schema
    drop: bool

    def rows(self, encoding: ResponseEncoding) -> Rows:
        """Read the rows, and refuse what is not a number."""
        table = self._table()
        data = plain_numbers(table, self)
        if data is None or not np.isfinite(data.X.sum(dtype=np.float64)):
            self._refuse_strange(table)
        if data is None:
            data = self._dataset(table)
        return Rows(data.X, encoding.encode(named_responses(data)), data.row_ids, data)

    def inspect(self) -> ResponseEncoding:
        """Return the values that the schema knows; the rows are checked whenever they are read."""
        return encoding_of(self.schema)

    def _refuse_strange(self, table: Any) -> None:
        for name, kind in self.schema.vectoriser.types.items():
            if kind == "number" and name in table.column_names and arrow.types.is_floating(table[name].type):
                strange = compute.fill_null(compute.invert(compute.is_finite(table[name])), False)
                if compute.any(strange).as_py():
                    row = int(np.flatnonzero(strange.to_numpy())[0])
                    reason = f"column {name!r} is not a number (NaN or infinite) in row {row} of row group"
                    raise DataFormatError(
                        self.path, reason=f"{reason} {self.groups[0]}; leave the cell empty (null) or give a number"
                    )

    def _table(self) -> Any:
        with _reading(self.path), parquet.ParquetFile(self.path, metadata=_metadata(self.path)) as file:
            known = set(file.schema_arrow.names)
            names = [name for name in columns_read(self.schema) if name in known]
            return file.read_row_groups(list(self.groups), columns=names, use_threads=False)

    def _dataset(self, table: Any) -> Dataset:
        try:
            data = read(table, like=self.schema, missing_labels="drop" if self.drop else "refuse")
        except DataFormatError as error:
            raise DataFormatError(self.path, reason=error.reason) from None
        ids = data.row_ids if self.schema.id_name is not None else data.row_ids + self.start
        return replace(data, row_ids=ids, source=self.path)


def plain_numbers(table: Any, part: FilePart) -> Dataset | None:
    """Return a table of nothing but numbers, without an empty cell, at once; None for any other.

    `mcode.read` comes to the same, and takes several times as long over deciding what each column is.
    """
    schema, types = part.schema, arrow.types
    features = schema.vectoriser.features
    names = [feature.column for feature in features]
    if tuple(names) != schema.vectoriser.columns or any(feature.kind != "number" for feature in features):
        return None
    if schema.tags_column is not None or any(values != ZERO_ONE for values in schema.label_values):
        return None
    if table.num_columns < len(columns_read(schema)) or any(column.null_count for column in table.columns):
        return None
    context = [table[name] for name in names]
    labels = [table[name] for name in schema.label_names]
    if not all(types.is_floating(c.type) for c in context) or not all(types.is_integer(c.type) for c in labels):
        return None
    single = all(c.type.bit_width <= 32 for c in context)
    X = rows_of_columns(context, table.num_rows, np.float32 if single else np.float64)
    codes = np.column_stack([column.to_numpy() for column in labels])
    if ((codes != 0) & (codes != 1)).any():
        return None
    ids = np.arange(part.start, part.start + table.num_rows)
    if schema.id_name is not None:
        ids = np.array(table[schema.id_name].to_pylist(), object)
        ids = ids.astype(np.int64) if types.is_integer(table[schema.id_name].type) else ids
    return Dataset(X, codes.astype(np.uint8), ids, schema, part.path)


def rows_of_columns(columns: Sequence[Any], n_rows: int, dtype: Any) -> Any:
    """Return Arrow columns as a matrix row by row; some are turned at a time, so that they stay in cache.

    Examples
    --------
    >>> rows_of_columns([arrow.array([1.0, 2.0]), arrow.array([3.0, 4.0])], 2, np.float32)
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    X = np.empty((n_rows, len(columns)), dtype)
    some = np.empty((COLUMNS_AT_ONCE, n_rows), dtype)
    for start in range(0, len(columns), COLUMNS_AT_ONCE):
        these = columns[start : start + COLUMNS_AT_ONCE]
        for j, column in enumerate(these):
            some[j] = column.to_numpy()
        X[:, start : start + len(these)] = some[: len(these)].T
    return X


def columns_read(schema: Schema) -> list[str]:
    """Return the columns of a file that are needed."""
    labels = list(schema.label_names) if schema.tags_column is None else [schema.tags_column]
    return [*schema.vectoriser.columns, *labels, *([schema.id_name] if schema.id_name else [])]


def encoding_of(schema: Schema) -> ResponseEncoding:
    """Return the values of the responses as `own_words.named_responses` writes them."""
    n_values = np.array([len(values) for values in schema.label_values])
    codes = np.minimum(np.arange(n_values.max())[:, None], n_values - 1).astype(np.uint8)
    rows = len(codes)
    return ResponseEncoding.of(named_responses(Dataset(np.zeros((rows, 1)), codes, np.arange(rows), schema)))


def _metadata(path: str) -> Any:
    """Return the end of a file. Its parts are read one after the other, and parsing hundreds of columns takes long."""
    about = Path(path).stat()
    return _parsed(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=2)
def _parsed(path: str, _changed: int, _size: int) -> Any:
    return parquet.read_metadata(path)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        with arrow_errors(path):
            yield
    except DataFormatError as error:
        if not Path(path).exists():
            raise DataFormatError(path, reason="the file is no longer there; run again when it is back") from error
        raise


@dataclass(frozen=True)
class Folder:
    """A folder of Parquet files.

    Attributes
    ----------
    path : Path
    table : Table
    schema : Schema
    """

    path: Path
    table: Table
    schema: Schema


def open_folder(
    path: Any,
    labels: Any = None,
    *,
    id: str | None = None,
    ignore: Sequence[str] = (),
    tags_column: str | None = None,
    separator: str = ";",
    drop_missing_labels: bool = False,
    like: Schema | None = None,
) -> Folder:
    """Look at the files of a folder and learn what becomes of their columns; the rows are read by the workers.

    Parameters
    ----------
    path : the folder, or one Parquet file
    labels, id, ignore, tags_column, separator : as of `mcode.read`
    drop_missing_labels : leave out rows where a response is missing
    like : Schema of an earlier table, from which all of the above is then taken
    """
    files = _files(Path(path))
    shapes = [_Footer.of(file) for file in files]
    _check_alike(files, shapes)
    if like is None:
        rows = _some_rows(files, shapes)
        schema = read(
            rows, labels, id=id, ignore=ignore, tags_column=tags_column, separator=separator,
            missing_labels="drop" if drop_missing_labels else "refuse",
        ).schema  # fmt: skip
    else:
        schema = like
    parts, lengths, start = [], [], 0
    for file, shape in zip(files, shapes, strict=True):
        for groups, n_rows in shape.parts():
            parts.append(FilePart(str(file), groups, start, schema, drop_missing_labels))
            lengths.append(n_rows)
            start += n_rows
    if not parts:
        raise DataFormatError(path, reason="its files have no rows")
    names = list(schema.label_names)
    n_features = len(schema.vectoriser.features)
    table = Table(parts, lengths, n_features, len(names), names, encoding_of(schema), rereadable=True)
    return Folder(Path(path), table, schema)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path.resolve()]
    if not path.is_dir():
        raise DataFormatError(path, reason="there is no such folder")
    if (path / MANIFEST).exists():
        check_finished(path)
    found = sorted(p.resolve() for p in path.glob("*.parquet") if not p.name.startswith((".", "_")))
    if not found:
        raise DataFormatError(path, reason="it holds no .parquet files")
    return found


@dataclass(frozen=True)
class _Footer:
    """What the end of a Parquet file says about it."""

    kinds: dict[str, str]
    rows: list[int]
    sizes: list[int]
    empty: list[set[str]]  # columns with missing cells, by row group

    @classmethod
    def of(cls, file: Path) -> _Footer:
        with arrow_errors(file), parquet.ParquetFile(file) as opened:
            about, schema = opened.metadata, opened.schema_arrow
            groups = [about.row_group(g) for g in range(about.num_row_groups)]
            return cls(
                {field.name: _kind(field.type) for field in schema},
                [group.num_rows for group in groups],
                [group.total_byte_size for group in groups],
                [_columns_with_missing(group) for group in groups],
            )

    def parts(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield runs of row groups of about `PART_BYTES`, and their rows."""
        run: list[int] = []
        for g, size in enumerate(self.sizes):
            if run and sum(self.sizes[k] for k in run) + size > PART_BYTES:
                yield tuple(run), sum(self.rows[k] for k in run)
                run = []
            if self.rows[g]:
                run.append(g)
        if run:
            yield tuple(run), sum(self.rows[k] for k in run)


def _kind(kind: Any) -> str:
    types = arrow.types
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)
    return "number" if number else "text" if types.is_string(kind) or types.is_large_string(kind) else str(kind)


def _columns_with_missing(group: Any) -> set[str]:
    columns = [group.column(c) for c in range(group.num_columns)]
    return {c.path_in_schema for c in columns if c.statistics is not None and c.statistics.null_count}


def _check_alike(files: list[Path], shapes: list[_Footer]) -> None:
    first = shapes[0].kinds
    for file, shape in zip(files, shapes, strict=True):
        lacks = next((name for name in first if name not in shape.kinds), None)
        more = next((name for name in shape.kinds if name not in first), None)
        other = next((name for name, kind in first.items() if shape.kinds.get(name, kind) != kind), None)
        if lacks is not None or more is not None:
            what = f"it lacks the column {lacks!r}" if lacks is not None else f"it has a column {more!r} more"
            raise DataFormatError(file, reason=f"{what} than {files[0].name}; all files need the same columns")
        if other is not None:
            kinds = f"{shape.kinds[other]} and in {files[0].name} {first[other]}"
            raise DataFormatError(file, reason=f"column {other!r} holds {kinds}; all files need the same columns")


def _some_rows(files: list[Path], shapes: list[_Footer]) -> Any:
    """Return some rows of several files, among them some for each column with missing cells."""
    groups = [(f, g) for f, shape in enumerate(shapes) for g in range(len(shape.rows)) if shape.rows[g]]
    if not groups:
        raise DataFormatError(files[0].parent, reason="its files have no rows")
    step = max(1, len(groups) // SCHEMA_GROUPS)
    chosen = groups[::step][:SCHEMA_GROUPS]
    for column in set().union(*(shapes[f].empty[g] for f, g in groups)):
        if not any(column in shapes[f].empty[g] for f, g in chosen):
            chosen.append(next((f, g) for f, g in groups if column in shapes[f].empty[g]))
    each = max(1, SCHEMA_ROWS // len(chosen))
    tables = []
    for f, g in chosen:
        with arrow_errors(files[f]), parquet.ParquetFile(files[f]) as file:
            table = file.read_row_group(g)
        at = np.linspace(0, table.num_rows - 1, min(each, table.num_rows)).astype(np.int64)
        tables.append(table.take(arrow.array(at)))
    return arrow.concat_tables(tables, promote_options="permissive")
