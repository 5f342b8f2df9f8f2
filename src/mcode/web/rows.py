"""Everything about one row that its reviewer needs, ready for JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from mcode.explain.finding import Value
from mcode.report.words import odds, percent, value_text
from mcode.web import tables as t
from mcode.web.database import AnyRow, now
from mcode.web.packing import KINDS, ResponseNames, Stored, StoredResponse, unpack
from mcode.web.recording import NoSuchRowError, as_entry, read_entries
from mcode.web.replay import replay

MOST_RESPONSES = 20  # a row shows at least so many, and all suspicious ones; the others when asked for
MOST_EVIDENCE = 6
LONGEST_NAME = 200
LONGEST_CELL = 600
LONGEST_SENTENCE = 1200


def shortened(text: str, longest: int) -> str:
    """Return a text with its end left out where it is too long to be read.

    Examples
    --------
    >>> shortened("abcdef", 4)
    'abcd…'
    """
    return text if len(text) <= longest else text[:longest] + "…"


def listed(row: AnyRow, about: ResponseNames) -> dict[str, Any]:
    """Return a row of the queue as a line of a list."""
    choices = about.choices[row.response]
    return {
        "row": row.row,
        "id": shortened(row.id, LONGEST_NAME),
        "cursor": f"{row.position}.{row.row}",
        "error_probability": row.error_probability,
        "error_text": percent(row.error_probability),
        "score": row.score,
        "response": row.response,
        "response_name": shortened(about.names[row.response], LONGEST_NAME),
        "observed": shortened(choices[row.observed], LONGEST_NAME),
        "expected": shortened(choices[row.expected], LONGEST_NAME),
        "probability": row.probability,
        "probability_text": percent(row.probability),
        "kind": row.kind,
        "kind_text": KINDS[row.kind],
        "status": row.status,
        "sentence": shortened(row.sentence, LONGEST_SENTENCE),
    }


def whole(
    connection: Connection, row: int, about: ResponseNames, who: str, *, every_response: bool = False
) -> dict[str, Any]:
    """Return everything about one row."""
    f, d = t.findings.c, t.details.c
    asked = select(*t.findings.c, d.body, d.context).join_from(t.findings, t.details, f.row == d.row)
    found = connection.execute(asked.where(f.row == row)).first()
    if found is None:
        raise NoSuchRowError(row)
    stored = unpack(found.body)
    entries = list(read_entries(connection, [row]))
    state = replay([as_entry(entry) for entry in entries])
    shown = stored.responses if every_response else _shown(stored, state.after)
    held = found.held_by if found.held_by != who and (found.held_until or 0.0) > now() else None
    return {
        **listed(found, about),
        "p_value": found.p_value,
        "latest": found.latest,
        "held_by": held,
        "context": [_cell(name, value) for name, value in json.loads(found.context)],
        "responses": [_response(response, about, state.after) for response in shown],
        "n_responses": len(stored.responses),
        "repair": [_change(place, stored.recorded[place], code, about) for place, code in stored.repair.items()],
        "odds_before": odds(stored.probability_before),
        "odds_after": odds(stored.probability_after),
        "record": record_lines(entries, about, {row: Origin(found.id, stored.recorded)}, state.standing),
    }


def _shown(stored: Stored, after: Mapping[int, int]) -> list[StoredResponse]:
    suspicious = sum(bool(response.evidence) for response in stored.responses)
    most = max(suspicious, MOST_RESPONSES)
    return [r for at, r in enumerate(stored.responses) if at < most or r.place in after or r.place in stored.repair]


def _cell(name: str, value: Value) -> dict[str, Any]:
    text = "" if value is None else value_text(value)
    return {
        "column": shortened(name, LONGEST_NAME),
        "value": shortened(text, LONGEST_CELL),
        "empty": value is None,
        "cut": len(text) > LONGEST_CELL,
    }


def cell_text(connection: Connection, row: int, place: int) -> str:
    """Return the whole of a cell of the context."""
    context = connection.execute(select(t.details.c.context).where(t.details.c.row == row)).scalar()
    if context is None:
        raise NoSuchRowError(row)
    cells: Sequence[tuple[str, Value]] = json.loads(context)
    return value_text(cells[place][1]) if 0 <= place < len(cells) else ""


def _response(response: StoredResponse, about: ResponseNames, after: Mapping[int, int]) -> dict[str, Any]:
    widest = max((abs(piece.weight) for piece in response.evidence), default=0.0) or 1.0
    return {
        "place": response.place,
        "name": shortened(about.names[response.place], LONGEST_NAME),
        "choices": [shortened(choice, LONGEST_NAME) for choice in about.choices[response.place]],
        "observed": response.observed,
        "expected": response.expected,
        "current": after.get(response.place, response.observed),
        "probability": response.probability,
        "probability_text": percent(response.probability),
        "error_probability": response.error_probability,
        "error_text": percent(response.error_probability),
        "suspicious": bool(response.evidence) or response.observed != response.expected,
        "sentence": shortened(response.sentence, LONGEST_SENTENCE),
        "evidence": [
            {
                "kind": piece.kind,
                "name": shortened(piece.name, LONGEST_NAME),
                "value": shortened(value_text(piece.value), LONGEST_NAME),
                "weight": piece.weight,
                "width": round(100.0 * abs(piece.weight) / widest, 1),
            }
            for piece in sorted(response.evidence, key=lambda piece: -abs(piece.weight))[:MOST_EVIDENCE]
        ],
    }


def _change(place: int, before: int, after: int, about: ResponseNames) -> dict[str, Any]:
    choices = about.choices[place]
    return {
        "place": place,
        "name": shortened(about.names[place], LONGEST_NAME),
        "before": shortened(choices[before], LONGEST_NAME),
        "after": shortened(choices[after], LONGEST_NAME),
        "code": after,
    }


@dataclass(frozen=True)
class Origin:
    """What the source says about a row: its id, and the recorded code of each response."""

    id: str
    recorded: Mapping[int, int]


def origins_of(connection: Connection, rows: Collection[int]) -> dict[int, Origin]:
    """Return what the source says about those of these rows that are in the queue."""
    f, d = t.findings.c, t.details.c
    asked = select(f.row, f.id, d.body).join_from(t.findings, t.details, f.row == d.row).where(f.row.in_(rows))
    return {found.row: Origin(found.id, unpack(found.body).recorded) for found in connection.execute(asked)}


def record_lines(
    entries: Sequence[AnyRow], about: ResponseNames, origins: Mapping[int, Origin], standing: Sequence[int] = ()
) -> list[dict[str, Any]]:
    """Return entries of the record, each with who, when, and what it changed."""
    undone = {entry.undoes for entry in entries if entry.undoes is not None}
    return [
        {
            "seq": entry.seq,
            "row": entry.row,
            "id": shortened(origins[entry.row].id, LONGEST_NAME) if entry.row in origins else str(entry.row),
            "kind": entry.kind,
            "who": entry.who,
            "at": entry.at,
            "changes": _changes(json.loads(entry.before), json.loads(entry.after), origins.get(entry.row), about),
            "undoes": entry.undoes,
            "batch": entry.batch,
            "undone": entry.seq in undone,
            "standing": entry.seq in standing,
        }
        for entry in entries
    ]


def _changes(
    before: Mapping[str, int], after: Mapping[str, int], origin: Origin | None, about: ResponseNames
) -> list[dict[str, Any]]:
    """Return what an entry changed; a response that one side does not name is there as the source has it."""
    out = []
    for key in sorted(set(before) | set(after), key=int):
        if before.get(key) == after.get(key):
            continue
        place = int(key)
        recorded = None if origin is None else origin.recorded.get(place)
        codes = [side.get(key, recorded) for side in (before, after)]
        said = ["as recorded" if code is None else about.choices[place][code] for code in codes]
        out.append(
            {
                "place": place,
                "name": shortened(about.names[place], LONGEST_NAME),
                "before": shortened(said[0], LONGEST_NAME),
                "after": shortened(said[1], LONGEST_NAME),
            }
        )
    return out
