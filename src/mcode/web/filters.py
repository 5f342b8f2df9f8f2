"""Which findings are meant: by response, kind, probability, status and words of the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from mcode.web import tables as t
from mcode.web.database import storable

MOST_COUNTED = 10_000  # a search among words is counted so far and no further


@dataclass(frozen=True)
class Filter:
    """Which findings are meant.

    Attributes
    ----------
    status : "open", "corrected", "kept", "skipped", "conflict" or "all"
    response : int or None, place of the response that is named first
    kind : str or None, one of `packing.KINDS`
    at_least : float, smallest error probability
    text : str, words that the context or the id must hold
    """

    status: str = "open"
    response: int | None = None
    kind: str | None = None
    at_least: float = 0.0
    text: str = ""

    @property
    def words(self) -> list[str]:
        """The words that are searched for, in small letters."""
        return storable(self.text).lower().split()

    @property
    def is_tallied(self) -> bool:
        """Whether its findings are counted already."""
        return self.at_least <= 0.0 and not self.words

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions on `findings`."""
        c = t.findings.c
        out: list[ColumnElement[bool]] = [] if self.status == "all" else [c.status == self.status]
        if self.response is not None:
            out.append(c.response == self.response)
        if self.kind is not None:
            out.append(c.kind == self.kind)
        if self.at_least > 0.0:
            out.append(c.error_probability >= self.at_least)
        for word in self.words:
            d = t.details.alias().c  # the query around it may read `details` as well
            found = select(d.row).where(d.row == c.row, d.words.contains(word, autoescape=True))
            out.append(found.exists() | func.lower(c.id).contains(word, autoescape=True))
        return out

    def rows(self, *columns: Any) -> Select[Any]:
        """Return the findings that are meant, in the order of the queue."""
        c = t.findings.c
        return select(*columns).where(*self.conditions()).order_by(c.position, c.row)

    def count(self, connection: Connection) -> int:
        """Return how many findings are meant, counted at most to `MOST_COUNTED`."""
        if self.is_tallied:
            c = t.tallies.c
            conditions = [] if self.status == "all" else [c.status == self.status]
            conditions += [] if self.response is None else [c.response == self.response]
            conditions += [] if self.kind is None else [c.kind == self.kind]
            return int(
                connection.execute(select(func.coalesce(func.sum(c.number), 0)).where(*conditions)).scalar() or 0
            )
        some = select(t.findings.c.row).where(*self.conditions()).limit(MOST_COUNTED).subquery()
        return int(connection.execute(select(func.count()).select_from(some)).scalar() or 0)
