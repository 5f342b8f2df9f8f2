"""A project: the reference to a source table, its findings, and every verdict on them, in one database."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from mcode.data import Dataset, read
from mcode.errors import DataFormatError
from mcode.web import tables as t
from mcode.web.database import AT_ONCE, Database, storable, to_json
from mcode.web.packing import ResponseNames


@dataclass(frozen=True)
class Source:
    """The table that is reviewed: where it is, what it was, and how it was read and audited.

    Attributes
    ----------
    path : str
    sha256 : str, of the file when it was audited
    reading : dict, arguments of `mcode.read`
    auditing : dict, arguments of `mcode.audit`, and the name of the learner if it is not the default
    """

    path: str
    sha256: str
    reading: Mapping[str, Any]
    auditing: Mapping[str, Any]

    @classmethod
    def of(cls, path: Path, reading: Mapping[str, Any], auditing: Mapping[str, Any]) -> Source:
        """Describe a file."""
        return cls(str(path.resolve()), digest(path), reading, auditing)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Project:
    """An open project.

    Parameters
    ----------
    database : Database that holds one
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        if not database.has_tables():
            raise DataFormatError(
                database.name, reason="there is no project in it; `mcode audit FILE --review` makes one"
            )
        version = self.fact("format")
        if version != t.FORMAT:
            raise DataFormatError(
                database.name, reason=f"its format is {version!r} and this mcode reads {t.FORMAT}; update mcode"
            )

    def fact(self, name: str) -> Any:
        """Return something that is known of the whole."""
        with self.database.read() as connection:
            return read_fact(connection, name)

    @cached_property
    def source(self) -> Source:
        """The table that is reviewed."""
        return Source(**self.fact("source"))

    @cached_property
    def about(self) -> ResponseNames:
        """Names and values of the responses."""
        with self.database.read() as connection:
            rows = connection.execute(select(t.responses.c.name, t.responses.c.choices).order_by(t.responses.c.place))
            names, choices = zip(*rows, strict=True)
        return ResponseNames(names, tuple(tuple(json.loads(text)) for text in choices))

    def source_path(self) -> Path:
        """Return where the source table is, unchanged: where it was, or beside the project."""
        recorded = Path(self.source.path)
        places = [recorded]
        if isinstance(self.database.place, Path):
            places.append(self.database.place.resolve().parent / recorded.name)
        found = [path for path in places if path.is_file()]
        if not found:
            raise DataFormatError(recorded, reason="the source table is not there; put it back, or beside the project")
        same = next((path for path in found if digest(path) == self.source.sha256), None)
        if same is None:
            raise DataFormatError(found[0], reason="the source table was changed since it was audited; audit it anew")
        return same

    def read_source(self) -> Dataset:
        """Read the source table as it was read for the audit."""
        return read(self.source_path(), **self.source.reading)


def read_fact(connection: Connection, name: str) -> Any:
    """Return a fact; None where it is not known."""
    value = connection.execute(select(t.facts.c.value).where(t.facts.c.name == name)).scalar()
    return None if value is None else json.loads(value)


def write_fact(connection: Connection, name: str, value: object) -> None:
    """Set a fact."""
    connection.execute(t.facts.delete().where(t.facts.c.name == name))
    connection.execute(insert(t.facts).values(name=name, value=to_json(value)))


def begin_project(database: Database, source: Source, data: Dataset) -> None:
    """Make the tables of a new project, replacing one on which no verdict was given."""
    check_free(database)
    if database.has_tables():
        t.metadata.drop_all(database.engine)
    t.metadata.create_all(database.engine)
    with database.write() as connection:
        write_fact(connection, "format", t.FORMAT)
        write_fact(connection, "source", dataclasses.asdict(source))
        write_fact(connection, "id_name", data.id_name)
        write_fact(connection, "n_rows", len(data))
        write_fact(connection, "columns", list(data.context_columns))
        add_rows(
            connection,
            t.responses,
            (
                {"place": place, "name": storable(name), "choices": to_json(list(values)), "health": "{}"}
                for place, (name, values) in enumerate(zip(data.label_names, data.label_values, strict=True))
            ),
        )


def check_free(database: Database) -> None:
    """Refuse to replace a project on which verdicts were given."""
    if not database.has_tables():
        return
    with database.read() as connection:
        given = connection.execute(select(func.count()).select_from(t.verdicts)).scalar() or 0
    if given:
        raise DataFormatError(
            database.name,
            reason=f"it is a project with {given:,} verdicts already; open it with `mcode review`, or name another",
        )


def add_rows(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, some hundred at a time."""
    waiting: list[Mapping[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) >= AT_ONCE:
            connection.execute(insert(table), waiting)
            waiting = []
    if waiting:
        connection.execute(insert(table), waiting)


def in_parts(values: Sequence[int]) -> Iterable[Sequence[int]]:
    """Yield values some hundred at a time: a statement takes only so many."""
    for at in range(0, len(values), AT_ONCE):
        yield values[at : at + AT_ONCE]


def copy_project(source: Project, target: Database) -> None:
    """Copy a whole project into an empty database."""
    if target.has_tables():
        raise DataFormatError(target.name, reason="there is a project in it already; open it without naming another")
    t.metadata.create_all(target.engine)
    with source.database.read() as old, target.write() as new:
        for table in t.metadata.sorted_tables:
            rows = old.execution_options(yield_per=AT_ONCE).execute(select(table)).mappings()
            add_rows(new, table, (dict(row) for row in rows))
        if not target.is_sqlite:  # numbers were given from outside: the next one comes after them
            following = "(SELECT COALESCE(MAX(seq), 0) + 1 FROM verdicts)"
            new.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('verdicts', 'seq'), {following}, false)")
