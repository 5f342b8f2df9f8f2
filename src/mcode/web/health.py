"""What is known of each response: its health, its confusions, and what reviewers made of its findings."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, func, select

from mcode.web import tables as t
from mcode.web.packing import ResponseNames
from mcode.web.rows import LONGEST_NAME, shortened


def response_lines(connection: Connection, about: ResponseNames) -> list[dict[str, Any]]:
    """Return all responses, the one with most expected errors first."""
    c = t.tallies.c
    counted = select(c.response, c.status, func.sum(c.number)).group_by(c.response, c.status)
    counts: dict[int, dict[str, int]] = {}
    for place, status, count in connection.execute(counted):
        counts.setdefault(place, {})[status] = int(count)
    given = select(t.corrections.c.response, func.count()).group_by(t.corrections.c.response)
    changed: dict[int, int] = dict(connection.execute(given).all())
    lines = [
        {
            "place": row.place,
            "name": shortened(row.name, LONGEST_NAME),
            "choices": [shortened(choice, LONGEST_NAME) for choice in about.choices[row.place]],
            **_health(row.health),
            "findings": sum(counts.get(row.place, {}).values()),
            "open": counts.get(row.place, {}).get("open", 0),
            "kept": counts.get(row.place, {}).get("kept", 0),
            "corrected_values": int(changed.get(row.place, 0)),
        }
        for row in connection.execute(select(t.responses))
    ]
    return sorted(lines, key=lambda line: (-line["suspicious"], line["place"]))


def _health(text: str) -> dict[str, Any]:
    known: dict[str, Any] = {
        "present": 0.0,
        "predictable": 0.0,
        "suspicious": 0.0,
        "flagged": 0,
        "reliable": None,
        "likely": [],
        "n_values": 2,
    }
    return known | {name: value for name, value in json.loads(text).items() if name != "name"}


def confusion_lines(connection: Connection, place: int, about: ResponseNames) -> dict[str, list[dict[str, Any]]]:
    """Return which responses stand where this one is expected, which are expected with it, and what verdicts say."""
    c = t.confusions.c
    rows = connection.execute(
        select(c.other, c.how, c.number).where(c.response == place).order_by(c.number.desc(), c.other)
    ).all()
    one, other = t.corrections, t.corrections.alias()
    joined = select(other.c.response, func.count().label("number")).where(
        one.c.response == place, other.c.row == one.c.row, other.c.response != place
    )
    both = connection.execute(joined.group_by(other.c.response).order_by(func.count().desc()).limit(8)).all()
    return {
        "instead": [_other(row.other, row.number, about) for row in rows if row.how == "instead"],
        "together": [_other(row.other, row.number, about) for row in rows if row.how == "together"],
        "corrected_together": [_other(row.response, row.number, about) for row in both],
    }


def _other(place: int, count: int, about: ResponseNames) -> dict[str, Any]:
    return {"place": place, "name": shortened(about.names[place], LONGEST_NAME), "count": int(count)}
