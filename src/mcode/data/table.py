"""CSV, TSV, Parquet, Arrow and JSON lines -> Arrow tables, through pyarrow; tables in memory as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcode._optional import require
from mcode._progress import advance
from mcode.data.columns import ArrowTable
from mcode.data.opening import first_sentence, not_in_encoding, open_bytes
from mcode.errors import DataFormatError, ParameterError

BLOCK = 1 << 23
# What people and other tools write for "not known"; texts that mean "no" or "none of these" are not among them.
MISSING = ["", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "<NA>", "None"]


@dataclass(frozen=True)
class TableOptions:
    """How to read a table.

    Attributes
    ----------
    delimiter : str or None, what separates cells of a CSV file; None looks at the header
    encoding : str
    types : dict, column -> name of an Arrow type, where it is known before reading
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    types: Mapping[str, str] = field(default_factory=dict)

    def arrow_types(self) -> dict[str, Any]:
        """Return the known types as Arrow has them."""
        arrow = require("pyarrow", extra="tables")
        return {name: arrow_type(arrow, kind) for name, kind in self.types.items()}


def arrow_type(arrow: Any, kind: str) -> Any:
    """Return the Arrow type of this name, time zone included."""
    unit, _, zone = kind.removeprefix("timestamp[").removesuffix("]").partition(", tz=")
    return arrow.timestamp(unit, zone or None) if kind.startswith("timestamp[") else arrow.type_for_alias(kind)


@contextmanager
def arrow_errors(path: object) -> Iterator[None]:
    """Turn what pyarrow raises over a damaged file into one sentence of ours."""
    arrow = require("pyarrow", extra="tables")
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataFormatError(path, reason=not_in_encoding(error.encoding)) from error
    except (arrow.ArrowException, OSError, ValueError, TypeError, OverflowError, EOFError, KeyError) as error:
        if isinstance(error, DataFormatError):
            raise
        raise DataFormatError(path, reason=f"it cannot be read ({first_sentence(error)})") from error


def batches(path: Path, kind: str, options: TableOptions) -> Iterator[Any]:
    """Yield the record batches of a file without holding more than a few in memory.

    The types of CSV columns must be known (`options.types`) or show in the first block.
    """
    with arrow_errors(path), open_bytes(path) as file:
        match kind:
            case "csv" | "tsv":
                yield from _csv(path, file, kind, options, whole=False)
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
                table = _csv(path, file, kind, options, whole=True)
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


def _csv(path: Path, file: Any, kind: str, options: TableOptions, whole: bool) -> Any:
    csv = require("pyarrow.csv", extra="tables")
    delimiter = _delimiter(path, file, kind, options)
    invalid: list[Any] = []

    def skip(row: Any) -> str:
        invalid.append(row)
        return "skip"

    arguments: dict[str, Any] = {
        "read_options": csv.ReadOptions(block_size=BLOCK, encoding=options.encoding, use_threads=True),
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
        "convert_options": csv.ConvertOptions(
            column_types=options.arrow_types(), null_values=MISSING, strings_can_be_null=True
        ),
    }
    table = csv.read_csv(file, **arguments) if whole else csv.open_csv(file, **arguments)
    if not whole:
        return _checked_batches(table, path, invalid)
    _refuse_ragged(path, invalid)
    return table


def _checked_batches(reader: Any, path: Path, invalid: list[Any]) -> Iterator[Any]:
    for batch in reader:
        _refuse_ragged(path, invalid)
        yield batch
    _refuse_ragged(path, invalid)


def _refuse_ragged(path: Path, invalid: list[Any]) -> None:
    if invalid:
        row = invalid[0]
        raise DataFormatError(
            path,
            _line_of(path, row.text) if row.number is None else row.number,
            f"the row has {row.actual_columns} cells; the header has {row.expected_columns}",
        )


def _line_of(path: Path, text: str) -> int | None:
    """Return the number of the line that is `text`; None where cells with line ends hide it."""
    wanted = text.encode(errors="surrogateescape")
    with open_bytes(path) as file:
        return next((number for number, line in enumerate(file, start=1) if line.rstrip(b"\r\n") == wanted), None)


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


def arrow_table(table: object) -> ArrowTable | None:
    """Return a pandas, polars or Arrow table as an Arrow table, None if it is none of these."""
    module = type(table).__module__.split(".", 1)[0]
    if module not in ("pandas", "polars", "pyarrow"):
        return None
    arrow = require("pyarrow", extra="tables")
    with arrow_errors(table_name(table)):
        convert: dict[str, Callable[[Any], Any]] = {
            "pandas": lambda t: arrow.Table.from_pandas(_with_text_names(t), preserve_index=False),
            "polars": lambda t: t.to_arrow() if hasattr(t, "to_arrow") else t.collect().to_arrow(),
            "pyarrow": lambda t: arrow.Table.from_batches([t]) if isinstance(t, arrow.RecordBatch) else t,
        }
        found = convert[module](table)
        if not isinstance(found, arrow.Table):
            raise TypeError(f"a {type(table).__name__} is not a table")
        return found


def table_name(table: object) -> str:
    """Return how errors call a table in memory."""
    return f"the {type(table).__module__.split('.', 1)[0]} table"


def _with_text_names(frame: Any) -> Any:
    return frame.set_axis([str(name) for name in frame.columns], axis=1)
