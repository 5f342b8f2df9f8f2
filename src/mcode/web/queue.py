"""The queue: which row comes next, a page of rows, and who is looking at which."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, or_, select, tuple_, update

from mcode.web import tables as t
from mcode.web.database import AnyRow, Database, now
from mcode.web.filters import Filter
from mcode.web.recording import NoSuchRowError

HOLD = 300.0  # seconds that a row is held for its reviewer; the page asks again while it is on screen
Cursor = tuple[int, int]  # position and row: where a page ended

LISTED = [column for column in t.findings.c if column.name not in ("held_until",)]


def free_for(who: str) -> ColumnElement[bool]:
    """Return the condition that nobody else is looking at a row."""
    c = t.findings.c
    return or_(c.held_until.is_(None), c.held_until < now(), c.held_by == who)


def next_row(connection: Connection, wanted: Filter, who: str, after: Cursor | None = None) -> int | None:
    """Return the most suspicious row that is meant and free, and hold it; None where there is none.

    Two reviewers who ask at the same time get different rows. What another row of the same reviewer's was held for is
    over.
    """
    c = t.findings.c
    asked = wanted.rows(c.row).where(free_for(who))
    if after is not None:
        asked = asked.where(beyond(after))
    row: int | None = connection.execute(asked.limit(1).with_for_update(skip_locked=True)).scalar()
    if row is not None:
        hold(connection, row, who)
    return row


def beyond(cursor: Cursor) -> ColumnElement[bool]:
    """Return the condition that a row comes after a place in the queue."""
    return tuple_(t.findings.c.position, t.findings.c.row) > tuple_(*cursor)


def hold(connection: Connection, row: int, who: str) -> str | None:
    """Hold a row for a reviewer; return who else is looking at it already, if anybody is."""
    c = t.findings.c
    mine = update(t.findings).where(c.row == row, free_for(who)).values(held_by=who, held_until=now() + HOLD)
    if connection.execute(mine).rowcount:
        return None
    found = connection.execute(select(c.held_by).where(c.row == row)).first()
    if found is None:
        raise NoSuchRowError(row)
    return str(found.held_by)


def release(database: Database, row: int, who: str) -> None:
    """Let a row go that was held for a reviewer."""
    c = t.findings.c
    with database.write() as connection:
        mine = update(t.findings).where(c.row == row, c.held_by == who)
        connection.execute(mine.values(held_by=None, held_until=None))


def page(connection: Connection, wanted: Filter, limit: int, after: Cursor | None = None) -> Sequence[AnyRow]:
    """Return the next rows after a place in the queue: each page costs the same, wherever it begins."""
    asked = wanted.rows(*LISTED).limit(limit)
    return connection.execute(asked if after is None else asked.where(beyond(after))).all()
