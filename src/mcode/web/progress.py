"""How far the review is: counts that every verdict keeps up to date, so that they cost the same at any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from mcode.web import tables as t
from mcode.web.project import read_fact
from mcode.web.replay import STATUSES


@dataclass(frozen=True)
class Progress:
    """How far the review is.

    Attributes
    ----------
    findings : int, rows of the queue, judged ones included
    counts : dict, status -> rows
    reviewed : int, rows that were corrected or kept
    errors_left : float
        How many wrong rows are expected among those not judged: the sum of their error probabilities, in the queue and
        outside of it.
    """

    findings: int
    counts: dict[str, int]
    reviewed: int
    errors_left: float


def progress(connection: Connection) -> Progress:
    """Return how far the review is."""
    c = t.tallies.c
    rows = connection.execute(select(c.status, func.sum(c.number), func.sum(c.expected)).group_by(c.status)).all()
    counts = dict.fromkeys(STATUSES, 0) | {status: int(count) for status, count, _ in rows}
    expected = sum(float(total) for status, _, total in rows if status in ("open", "skipped", "conflict"))
    outside = float(read_fact(connection, "outside") or 0.0)
    return Progress(
        findings=sum(counts.values()),
        counts=counts,
        reviewed=counts["corrected"] + counts["kept"],
        errors_left=max(0.0, expected) + outside,
    )


def open_by(connection: Connection, column: str) -> dict[Any, int]:
    """Return the number of open findings for each response or kind."""
    c = t.tallies.c
    counted = select(c[column], func.sum(c.number)).where(c.status == "open").group_by(c[column])
    return {value: int(count) for value, count in connection.execute(counted) if count}
