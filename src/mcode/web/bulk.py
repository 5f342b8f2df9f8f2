"""One verdict on all rows of a filter, after showing what it would change."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from mcode.errors import McodeError
from mcode.web import tables as t
from mcode.web.database import Database
from mcode.web.filters import Filter
from mcode.web.packing import ResponseNames
from mcode.web.queue import free_for
from mcode.web.recording import Recorded, Verdict, record_in
from mcode.web.rows import LONGEST_NAME, shortened

MOST_AT_ONCE = 20_000
MOST_CHANGES_SHOWN = 50


class ChangedSinceError(McodeError):
    """A bulk verdict on rows that are no longer those that were shown."""

    def __str__(self) -> str:
        return "the rows changed since they were shown; look at what the verdict would change now"


class TooManyRowsError(McodeError):
    """A bulk verdict on more rows than are judged at once."""

    def __str__(self) -> str:
        return f"more than {MOST_AT_ONCE:,} rows are meant; narrow the filter"


@dataclass(frozen=True)
class Preview:
    """What a bulk verdict would do.

    Attributes
    ----------
    rows : int, rows that would be judged
    changes : list, for each response and new value how many rows would get it
    left_out : int, rows that others are looking at, and rows without a repair when repairs are accepted
    stamp : str, what the confirmation names, so that nothing else is judged than what was shown
    """

    rows: int
    changes: list[dict[str, Any]]
    left_out: int
    stamp: str


def preview(connection: Connection, wanted: Filter, kind: str, who: str, about: ResponseNames) -> Preview:
    """Return what a verdict on all rows of a filter would do."""
    found, left_out = _meant(connection, wanted, kind, who)
    counts: Counter[tuple[int, int]] = Counter()
    if kind == "accept":
        for row in found:
            counts.update((place, code) for place, code in json.loads(row.body)["repair"])
    changes = [
        {
            "place": place,
            "name": shortened(about.names[place], LONGEST_NAME),
            "after": shortened(about.choices[place][code], LONGEST_NAME),
            "rows": times,
        }
        for (place, code), times in counts.most_common(MOST_CHANGES_SHOWN)
    ]
    return Preview(len(found), changes, left_out, _stamp(found, kind))


def judge_all(database: Database, wanted: Filter, kind: str, who: str, *, key: str, stamp: str) -> list[Recorded]:
    """Record the same verdict on all rows of a filter, if they are still those that were shown."""
    with database.write() as connection:
        done = connection.execute(select(t.verdicts.c.row).where(t.verdicts.c.batch == key)).scalars().all()
        if done:
            return [Recorded(0, row, kind, "", repeated=True) for row in done]
        found, _ = _meant(connection, wanted, kind, who)
        if _stamp(found, kind) != stamp:
            raise ChangedSinceError
        verdicts = [Verdict(f"{key}:{row.row}", row.row, kind, who, seen=row.latest, batch=key) for row in found]
        return record_in(connection, verdicts)


def _meant(connection: Connection, wanted: Filter, kind: str, who: str) -> tuple[Sequence[Any], int]:
    """Return the rows that a bulk verdict judges, and how many of the filter it leaves out."""
    c = t.findings.c
    asked = wanted.rows(c.row, c.latest, c.kind, t.details.c.body).join(t.details, t.details.c.row == c.row)
    free = connection.execute(asked.where(free_for(who)).limit(MOST_AT_ONCE + 1)).all()
    if len(free) > MOST_AT_ONCE:
        raise TooManyRowsError
    judged = [row for row in free if kind != "accept" or row.kind != "unclear"]
    return judged, max(0, wanted.count(connection) - len(judged))


def _stamp(found: Sequence[Any], kind: str) -> str:
    text = json.dumps([kind, [[row.row, row.latest, row.body if kind == "accept" else ""] for row in found]])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
