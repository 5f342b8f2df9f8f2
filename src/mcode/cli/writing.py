"""Result files: CSV, Parquet or JSON by their name, each appearing whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from mcode._optional import require
from mcode.errors import McodeError
from mcode.report.spreadsheet import neutral
from mcode.report.table import Table


class OutputError(McodeError):
    """A result that cannot be written where it was asked for."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}."


class Writer(Protocol):
    """Takes a table part by part."""

    def write(self, part: Table) -> None:
        """Add rows."""

    def close(self) -> None:
        """Finish the file."""


class CsvWriter:
    """One line per row, safe to open in a spreadsheet."""

    def __init__(self, path: Path) -> None:
        self._file: IO[str] = open(path, "w", newline="", encoding="utf-8")  # noqa: SIM115  closed by `close`
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._begun = False

    def write(self, part: Table) -> None:
        """Add rows, and before the first ones the names of the columns."""
        if not self._begun:
            self._writer.writerow([neutral(name) for name in part])
            self._begun = True
        self._writer.writerows([neutral(cell) for cell in row] for row in zip(*part.values(), strict=True))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class JsonWriter:
    """A list of objects, or with `lines` one object per line."""

    def __init__(self, path: Path, *, lines: bool) -> None:
        self._file: IO[str] = open(path, "w", encoding="utf-8")  # noqa: SIM115  closed by `close`
        self._lines, self._begun = lines, False
        if not lines:
            self._file.write("[")

    def write(self, part: Table) -> None:
        """Add rows."""
        for row in zip(*part.values(), strict=True):
            record = json.dumps(dict(zip(part, map(_finite, row), strict=True)), ensure_ascii=False, allow_nan=False)
            between = "" if self._lines else (",\n " if self._begun else "\n ")
            self._file.write(between + record + ("\n" if self._lines else ""))
            self._begun = True

    def close(self) -> None:
        """Finish the file."""
        if not self._lines:
            self._file.write("\n]\n")
        self._file.close()


class ParquetWriter:
    """One row group per part."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrow = require("pyarrow", extra="cli")
        self._parquet = require("pyarrow.parquet", extra="cli")
        self._writer: Any = None

    def write(self, part: Table) -> None:
        """Add rows; the first ones decide the types."""
        types = None if self._writer is None else self._writer.schema
        table = self._arrow.table({name: _one_type(values) for name, values in part.items()}, schema=types)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


def _one_type(values: list[Any]) -> list[Any]:
    """Return values of one sort: as they are, or as texts where text and numbers are mixed."""
    mixed = any(isinstance(value, str) for value in values) and not all(isinstance(value, str) for value in values)
    return [None if value is None else str(value) for value in values] if mixed else values


def _finite(value: object) -> object:
    """Return a value that JSON can hold: infinity and NaN become texts."""
    return str(value) if isinstance(value, float) and value - value != 0.0 else value


WRITERS: dict[str, Any] = {
    ".csv": CsvWriter,
    ".parquet": ParquetWriter,
    ".pq": ParquetWriter,
    ".json": lambda path: JsonWriter(path, lines=False),
    ".jsonl": lambda path: JsonWriter(path, lines=True),
}


def check_output(path: Path | None, *, inputs: tuple[Path, ...] = (), suffixes: tuple[str, ...] | None = None) -> None:
    """Refuse, before any long work, a place where the result cannot be written at the end."""
    if path is None:
        return
    if path.is_dir():
        raise OutputError(path, "it is a directory; name a file")
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise OutputError(path, f"the format is not known by its name; end it with {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise OutputError(path, f"the directory {str(path.parent)!r} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(path, f"the directory {str(path.parent)!r} may not be written to")
    if any(given.exists() and path.exists() and path.samefile(given) for given in inputs):
        raise OutputError(path, "it is the file that is read; name another one for the result")


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Give a temporary file beside `path` that takes its place when all is written, and vanishes otherwise."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """Give a writer of the format that the name asks for; the file appears when all is written."""
    with atomic(path) as part:
        writer: Writer = WRITERS[path.suffix.lower()](part)
        try:
            yield writer
        finally:
            writer.close()


def write_table(path: Path, table: Table) -> None:
    """Write a whole table."""
    with writing(path) as writer:
        writer.write(table)


def write_text(path: Path, text: str) -> None:
    """Write a text."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")
