"""`mcode.read`: a file or a table in memory -> Dataset."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._optional import require
from mcode.data.arff import read_arff
from mcode.data.arrow_columns import check_distinct, columns_of
from mcode.data.arrow_options import TableOptions
from mcode.data.columns import TRUE_FALSE, Columns
from mcode.data.dataset import Dataset, Schema
from mcode.data.formats import TABLES, format_of
from mcode.data.labels import (
    USUALLY_MOST_VALUES,
    ZERO_ONE,
    MissingLabels,
    OwnValues,
    Responses,
    as_patterns,
    check_column,
    match_columns,
    responses_of,
    tags_of,
)
from mcode.data.libsvm import read_libsvm
from mcode.data.mulan_xml import read_label_names
from mcode.data.npz import read_npz
from mcode.data.opening import AnyPath, check_encoding, check_file
from mcode.data.table import arrow_table, batches, table_columns, table_name
from mcode.data.vectorise import Vectoriser, conform
from mcode.errors import DataFormatError, ParameterError
from mcode.models.encoding import MOST_VALUES

ROWS_AT_ONCE = 50_000


@dataclass(frozen=True)
class _Request:
    """What the caller asked for, checked."""

    labels: list[str] | None
    label_file: AnyPath | None
    ignore: list[str]
    id_name: str | None
    tags_column: str | None
    separator: str
    missing_labels: MissingLabels
    max_values: int
    options: TableOptions


def read(
    path: AnyPath | object,
    labels: str | Sequence[str] | AnyPath | None = None,
    *,
    ignore: str | Sequence[str] = (),
    id: str | None = None,
    tags_column: str | None = None,
    separator: str = ";",
    missing_labels: MissingLabels = "refuse",
    max_values: int = USUALLY_MOST_VALUES,
    like: Dataset | Schema | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Read a table of context and responses.

    Parameters
    ----------
    path : path, or a pandas, polars or Arrow table
        CSV and TSV (also .gz), Parquet, Arrow, JSON lines, ARFF, multi-label libsvm, or our npz.
    labels : str, list of str, path or None, default=None
        The responses: column names or patterns such as ``"dx_*"``, or a Mulan XML file. None takes what the file itself
        says: an XML file of the same name beside it, MEKA's ``-C n``, the labels of libsvm and npz.
    ignore : str or list of str, default=()
        Columns, or patterns of columns, to leave out.
    id : str or None, default=None
        The column that names the rows; it is not used as context.
    tags_column : str or None, default=None
        A column of delimited tags (or of lists); each tag becomes a response.
    separator : str, default=";"
        What delimits the tags.
    missing_labels : "refuse" or "drop", default="refuse"
        What to do with rows where a response is missing.
    max_values : int, default=20
        The most values that a response may have, up to 50; more are rather a name or a measurement than a category.
    like : Dataset or Schema or None, default=None
        Read the same features and responses as an earlier file; the arguments above are then taken from it.
    format : str or None, default=None
        "csv", "tsv", "parquet", "arrow", "jsonl", "arff", "libsvm" or "npz"; None goes by the file's name.
    delimiter : str or None, default=None
        What separates the cells of a CSV file; None looks at its header.
    encoding : str, default="utf-8"

    Returns
    -------
    Dataset

    Raises
    ------
    DataFormatError
        With one sentence that names the file, the line where it is known, what came and what is allowed.

    Examples
    --------
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"age": [41, 67], "smoker": ["no", None], "tags": ["flu;fever", ""]})
    >>> data = read(visits, tags_column="tags")
    >>> data.label_names, data.Y.tolist()
    (('fever', 'flu'), [[1, 1], [0, 0]])
    >>> read(visits, labels="dx_*")
    Traceback (most recent call last):
    mcode.errors.DataFormatError: the pandas table: no column matches the label pattern 'dx_*'; the columns are ...
    """
    if missing_labels not in ("refuse", "drop"):
        raise ParameterError("missing_labels", missing_labels, "'refuse' or 'drop'")
    if not (isinstance(max_values, int) and 2 <= max_values <= MOST_VALUES):
        raise ParameterError("max_values", max_values, f"a whole number from 2 to {MOST_VALUES}")
    check_encoding(encoding)
    if like is not None:
        schema = like.schema if isinstance(like, Dataset) else like
        options = TableOptions(delimiter, encoding, _known_types(schema))
        return _read_like(path, schema, missing_labels, format, options)
    options = TableOptions(delimiter, encoding, {} if id is None else {id: "string"})
    patterns, label_file = _label_request(labels)
    ignored = as_patterns("ignore", ignore)
    request = _Request(patterns, label_file, ignored, id, tags_column, separator, missing_labels, max_values, options)
    columns, responses = _load(path, request, format)
    return _first_dataset(columns, responses, request)


def stream(
    path: AnyPath,
    like: Dataset | Schema,
    *,
    rows: int = ROWS_AT_ONCE,
    missing_labels: MissingLabels = "refuse",
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[Dataset]:
    """Read a file as data sets of about `rows` rows, so that it may be larger than memory.

    CSV, TSV, Parquet and Arrow files are never held whole; other formats are read first and handed on in parts.
    The parameters are those of `read`. The ids of rows without an id column go on from one part to the next.
    """
    if rows < 1:
        raise ParameterError("rows", rows, "a whole number of at least 1")
    schema = like.schema if isinstance(like, Dataset) else like
    options = TableOptions(delimiter, check_encoding(encoding), _known_types(schema))
    file = check_file(path)
    kind = format_of(file, format)
    if kind not in TABLES:
        whole = _read_like(path, schema, missing_labels, format, options)
        yield from (whole.take(np.arange(at, min(at + rows, len(whole)))) for at in range(0, len(whole), rows))
        return
    start = 0
    for table in _grouped(batches(file, kind, options), rows):
        columns = columns_of(table, str(file), encoding)
        yield _further_dataset(columns, None, schema, missing_labels, start)
        start += table.num_rows
    if start == 0:
        raise DataFormatError(file, reason="it has a header but no rows")


def _grouped(parts: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield tables of about `rows` rows from smaller or larger record batches."""
    arrow = require("pyarrow", extra="tables")
    waiting, count = [], 0
    for part in parts:
        for at in range(0, part.num_rows, rows):
            piece = part.slice(at, rows)
            waiting.append(piece)
            count += piece.num_rows
            if count >= rows:
                yield arrow.Table.from_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield arrow.Table.from_batches(waiting)


def _label_request(labels: object) -> tuple[list[str] | None, AnyPath | None]:
    """Return patterns of label columns, or the XML file that names them."""
    if labels is None:
        return None, None
    if isinstance(labels, Path) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        return None, labels
    patterns = as_patterns("labels", labels)
    if not patterns:
        raise ParameterError("labels", labels, "at least one column name or pattern")
    return patterns, None


def _load(path: object, request: _Request, format: str | None) -> tuple[Columns, Responses]:
    """Return all columns of a file, and its responses."""
    table = arrow_table(path)
    if table is not None:
        columns = columns_of(table, table_name(path))
        return columns, _chosen(columns, request, list)
    file = check_file(_as_path(path))
    kind = format_of(file, format)
    if kind in ("libsvm", "npz"):
        loaded = read_libsvm(file, request.options.encoding) if kind == "libsvm" else read_npz(file)
        check_distinct(loaded[0].order, str(file))
        return loaded if request.labels is None else (loaded[0], _subset(loaded[1], request.labels, str(file)))
    if kind == "arff":
        columns, header = read_arff(file, request.options.encoding)
        check_distinct(columns.order, str(file))
        return columns, _chosen(columns, request, lambda: _named_beside(file) or header.meka_labels)
    columns = table_columns(file, kind, request.options)
    return columns, _chosen(columns, request, lambda: _named_beside(file))


def _as_path(path: object) -> AnyPath:
    if isinstance(path, str | Path) or hasattr(path, "__fspath__"):
        return path
    raise ParameterError("path", path, "a path, or a pandas, polars or Arrow table")


def _named_beside(file: Path) -> list[str]:
    """Return the labels of a Mulan XML file of the same name, if there is one."""
    xml = file.with_name(file.name.removesuffix(".gz")).with_suffix(".xml")
    return read_label_names(xml) if xml.is_file() else []


def _subset(responses: Responses, patterns: list[str], source: str) -> Responses:
    names = match_columns(source, responses.names, patterns, "label")
    at = [responses.names.index(name) for name in names]
    values = tuple(responses.values[j] for j in at)
    return Responses(np.ascontiguousarray(responses.codes[:, at]), tuple(names), values, responses.known)


def _chosen(columns: Columns, request: _Request, own: Callable[[], list[str]]) -> Responses:
    """Return the responses that were asked for, or those that the file itself names."""
    source = columns.source
    if request.tags_column is not None:
        if request.labels is not None or request.label_file is not None:
            raise ParameterError("tags_column", request.tags_column, "given without labels: the tags are the labels")
        check_column(source, columns.order, request.tags_column, "tags")
        return tags_of(columns, request.tags_column, request.separator, None)
    if request.labels is not None:
        names = match_columns(source, columns.order, request.labels, "label")
    else:
        names = own() if request.label_file is None else read_label_names(request.label_file)
        for name in names:
            check_column(source, columns.order, name, "label")
    if not names:
        raise DataFormatError(source, reason="it does not say which columns are labels; name them with labels='dx_*'")
    if request.id_name in names:
        raise ParameterError("id", request.id_name, "a column that is not a label")
    return responses_of(columns, names, None, request.missing_labels, request.max_values)


def _first_dataset(columns: Columns, responses: Responses, request: _Request) -> Dataset:
    source = columns.source
    ids = _row_ids(columns, request.id_name, 0)
    used = set(responses.columns)
    used.update([request.id_name] if request.id_name else [])
    if request.ignore:
        used.update(match_columns(source, columns.order, request.ignore, "ignore"))
    context = columns.shed(used)
    _refuse_lists(context)
    if not context.order:
        raise DataFormatError(source, reason="no column is left as context; labels need other columns to be judged by")
    if not responses.known.all():
        context = context.take(np.flatnonzero(responses.known))
    vectoriser = Vectoriser()
    found = vectoriser.fit_transform(context)
    if not vectoriser.features:
        raise DataFormatError(source, reason="no context column holds anything that repeats; add numbers or categories")
    schema = Schema(
        responses.names, responses.values, vectoriser, request.id_name, request.tags_column, request.separator
    )
    known = responses.known
    return Dataset(
        found.X, responses.codes[known], ids[known], schema, source, context.texts, found.filled, _places(known, 0)
    )


def _refuse_lists(context: Columns) -> None:
    for name in context.text_names:
        if str(context.texts.schema.field(name).type).startswith("list"):
            raise DataFormatError(
                context.source, reason=f"column {name!r} holds lists; ignore it, or name it as tags_column={name!r}"
            )


def _row_ids(columns: Columns, name: str | None, start: int) -> NDArray[Any]:
    if name is None:
        return np.arange(start, start + columns.n_rows)
    check_column(columns.source, columns.order, name, "id")
    if name in columns.number_names:
        cells = columns.number(name)
        whole = not np.isnan(cells).any() and np.array_equal(cells, np.round(cells))
        return cells.astype(np.int64) if whole else cells
    return np.array(columns.texts[name].to_pylist(), object)


def _read_like(
    path: object, schema: Schema, missing: MissingLabels, format: str | None, options: TableOptions
) -> Dataset:
    table = arrow_table(path)
    if table is not None:
        return _further_dataset(columns_of(table, table_name(path)), None, schema, missing, 0)
    file = check_file(_as_path(path))
    match kind := format_of(file, format):
        case "libsvm":
            columns, own = read_libsvm(file, options.encoding, schema.vectoriser.columns, schema.label_names)
        case "npz":
            columns, own = read_npz(file)
            own = _subset(own, list(schema.label_names), str(file))
        case "arff":
            columns = read_arff(file, options.encoding)[0]
            return _further_dataset(columns, None, schema, missing, 0)
        case _:
            columns = table_columns(file, kind, options)
            return _further_dataset(columns, None, schema, missing, 0)
    return _further_dataset(columns, own, schema, missing, 0)


def _further_dataset(
    columns: Columns, responses: Responses | None, schema: Schema, missing: MissingLabels, start: int
) -> Dataset:
    """Return the rows of a further file, or of a part of it that begins at row `start`."""
    if responses is None and schema.tags_column is not None:
        check_column(columns.source, columns.order, schema.tags_column, "tags")
        responses = tags_of(columns, schema.tags_column, schema.separator, schema.label_names)
    elif responses is None:
        for name in schema.label_names:
            check_column(columns.source, columns.order, name, "label")
        responses = responses_of(columns, schema.label_names, schema.label_values, missing)
    ids = _row_ids(columns, schema.id_name, start)
    context = conform(columns, schema.vectoriser.types)
    known = responses.known
    if not known.all():
        context = context.take(np.flatnonzero(known))
    found = schema.vectoriser.transform(context)
    places = _places(known, start)
    return Dataset(
        found.X, responses.codes[known], ids[known], schema, columns.source, context.texts, found.filled, places
    )


def _places(known: NDArray[np.bool_], start: int) -> NDArray[np.intp] | None:
    """Return each row's place in the file; None where every row was read from its beginning."""
    return None if start == 0 and known.all() else start + np.flatnonzero(known)


def _known_types(schema: Schema) -> dict[str, str]:
    """Return the Arrow types that a further file's columns must have, so that a part of it is not misjudged."""
    types = {name: "double" if kind == "number" else kind for name, kind in schema.vectoriser.types.items()}
    if schema.tags_column is None:
        types |= {n: _label_type(v) for n, v in zip(schema.label_names, schema.label_values, strict=True)}
    if schema.id_name is not None:
        types[schema.id_name] = "string"
    return types


def _label_type(values: OwnValues) -> str:
    if len(values) > 2 and all(re.fullmatch(r"-?[0-9]+", value) for value in values):
        return "double"  # written 1 or 1.0
    return {ZERO_ONE: "double", TRUE_FALSE: "bool"}.get(values, "string")
