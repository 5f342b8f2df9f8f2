"""A finding as it is stored: codes and places instead of names, and numbers with the digits that mean something."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mcode.data.features import as_no_yes
from mcode.explain.finding import Evidence, Finding, ResponseFinding, Value
from mcode.web.database import storable, to_json

KINDS = {
    "missing": "should be there",
    "added": "should not be there",
    "value": "should be another value",
    "several": "several at once",
    "unclear": "no repair",
}


@dataclass(frozen=True)
class ResponseNames:
    """The responses of a project: their names, and how their codes are written."""

    names: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where each response is."""
        return {name: at for at, name in enumerate(self.names)}

    def code(self, place: int, value: Value) -> int:
        """Return the code of a value as a finding has it: 0 and 1, or the user's own text."""
        choices = self.choices[place]
        if isinstance(value, str):
            return choices.index(value) if value in choices else 0
        return 1 if value is None else int(value)


def kind_of(finding: Finding, about: ResponseNames) -> str:
    """Return which sort of error a finding is, one of `KINDS`."""
    changes = finding.repair.changes
    if len(changes) != 1:
        return "several" if changes else "unclear"
    place = about.place[changes[0].name]
    choices = about.choices[place]
    if as_no_yes(choices) != choices:
        return "value"
    return "missing" if about.code(place, changes[0].after) == 1 else "added"


def pack(finding: Finding, about: ResponseNames) -> str:
    """Return the responses and the repair of a finding as JSON."""
    place = about.place
    repair = finding.repair
    return to_json(
        {
            "responses": [_packed(response, place[response.name], about) for response in finding.responses],
            "repair": [[place[c.name], about.code(place[c.name], c.after)] for c in repair.changes],
            "odds": [_short(repair.probability_before), _short(repair.probability_after)],
        }
    )


def _packed(response: ResponseFinding, place: int, about: ResponseNames) -> list[Any]:
    numbers = [response.probability, response.error_probability, response.p_value]
    codes = about.code(place, response.observed), about.code(place, response.expected)
    out: list[Any] = [place, *codes, *map(_short, numbers)]
    if response.evidence or response.sentence:
        out += [[[e.kind == "response", e.name, e.value, e.weight] for e in response.evidence], response.sentence]
    return out


def _short(number: float) -> float:
    return float(f"{number:.4g}")


@dataclass(frozen=True)
class Stored:
    """A stored finding, unpacked: the responses by place, the repair and the recorded codes."""

    responses: tuple[StoredResponse, ...]
    repair: Mapping[int, int]
    probability_before: float
    probability_after: float

    @property
    def recorded(self) -> Mapping[int, int]:
        """The recorded code of each response."""
        return {response.place: response.observed for response in self.responses}


@dataclass(frozen=True)
class StoredResponse:
    """One response of a stored finding."""

    place: int
    observed: int
    expected: int
    probability: float
    error_probability: float
    p_value: float
    evidence: tuple[Evidence, ...] = ()
    sentence: str = ""


def unpack(body: str) -> Stored:
    """Return what `pack` stored."""
    data = json.loads(body)
    return Stored(
        tuple(_unpacked(*parts) for parts in data["responses"]),
        {int(place): int(code) for place, code in data["repair"]},
        *data["odds"],
    )


def _unpacked(
    place: int,
    observed: int,
    expected: int,
    probability: float,
    error: float,
    p_value: float,
    evidence: Sequence[Sequence[Any]] = (),
    sentence: str = "",
) -> StoredResponse:
    pieces = tuple(Evidence("response" if other else "feature", *rest) for other, *rest in evidence)
    return StoredResponse(place, observed, expected, probability, error, p_value, pieces, sentence)


def pack_context(context: Mapping[str, object]) -> tuple[str, str]:
    """Return the context of a row as JSON, and its words in small letters for the search.

    Examples
    --------
    >>> pack_context({"age": 41, "seen": None})
    ('[["age",41],["seen",null]]', 'age 41')
    """
    cells = [[name, _plain(value)] for name, value in context.items()]
    words = "\n".join(f"{name} {value}" for name, value in cells if value is not None)
    return to_json(cells), storable(words.lower())


def _plain(value: object) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
