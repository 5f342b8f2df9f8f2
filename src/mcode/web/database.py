"""A database: SQLite file or PostgreSQL, reading and writing in transactions that are on disk when they end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, Row, create_engine, event, inspect, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError

from mcode._optional import require
from mcode.errors import DataFormatError, ParameterError

AnyRow: TypeAlias = "Row[*tuple[Any, ...]]"

WAIT = 30.0  # seconds that a writer waits for another one
AT_ONCE = 500  # rows per statement


class Database:
    """Where a project is kept.

    Parameters
    ----------
    place : path of a SQLite file, or the address of a PostgreSQL database

    Examples
    --------
    >>> import tempfile
    >>> from sqlalchemy import text
    >>> database = Database(Path(tempfile.mkdtemp()) / "small.review")
    >>> with database.read() as connection:
    ...     connection.execute(text("select 1 + 1")).scalar()
    2
    >>> database.close()
    """

    def __init__(self, place: Path | str) -> None:
        self.place = place
        self.is_sqlite = isinstance(place, Path)
        self.engine = _sqlite(place) if isinstance(place, Path) else _postgresql(place)
        # SQLite has one writer at a time; waiting here costs less than its own polling.
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()

    @property
    def name(self) -> str:
        """How it is called, without a password."""
        return str(self.place) if self.is_sqlite else self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database."""
        with self._sentences(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a connection whose changes are on disk when the block ends, or none of them are made."""
        with self._turn, self._sentences(), self.engine.connect() as connection:
            writer = connection.execution_options(begins_to_write=True)
            with writer.begin():
                yield writer

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            raise DataFormatError(self.name, reason=f"the database does not answer ({_short(error)})") from error
        except DatabaseError as error:
            if "not a database" in str(error.orig) or "malformed" in str(error.orig):
                raise DataFormatError(self.name, reason="it is no mcode project") from error
            raise

    def has_tables(self) -> bool:
        """Return whether a project is in it."""
        with self._sentences():
            return "facts" in inspect(self.engine).get_table_names()

    def close(self) -> None:
        """Close all connections; a SQLite project is one file again."""
        self.engine.dispose()


def _sqlite(path: Path) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}", connect_args={"timeout": WAIT, "check_same_thread": False}, pool_size=20, max_overflow=30
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not guessed by the driver
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")  # what was acknowledged survives a power cut
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("begins_to_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(address: str) -> Engine:
    try:
        url = make_url(address)
    except ArgumentError:
        raise ParameterError("--database", address, "an address such as postgresql://user@host/name") from None
    if url.get_backend_name() != "postgresql":
        raise ParameterError("--database", url.render_as_string(), "an address such as postgresql://user@host/name")
    require("psycopg", extra="postgres")
    return create_engine(url.set(drivername="postgresql+psycopg"), pool_size=20, max_overflow=30, pool_pre_ping=True)


def _short(error: OperationalError) -> str:
    return " ".join(str(error.orig).split())[:200]


def now() -> float:
    """Return the time in seconds."""
    return time.time()


def now_text() -> str:
    """Return the time as it is recorded: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def storable(text: str) -> str:
    r"""Return text that every database can hold: without null characters and halves of characters.

    Examples
    --------
    >>> storable("a\0b\ud800")
    'a\ufffdb?'
    """
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def to_json(value: object) -> str:
    """Return JSON that every database can hold."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
