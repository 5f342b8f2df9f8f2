"""What is said about one row: frozen, in the user's own names, ready for JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Evidence:
    """One thing that moved the expectation of a response.

    Attributes
    ----------
    kind : "feature" of the context, or another "response"
    name : the user's own column
    value : what that column holds in this row
    weight : float
        How far it moved the log odds towards the expected value (positive) or towards the observed one (negative).
    """

    kind: Literal["feature", "response"]
    name: str
    value: Value
    weight: float


@dataclass(frozen=True)
class ResponseFinding:
    """One response of the row.

    Attributes
    ----------
    name : the user's own column
    observed, expected : the recorded value, and the likelier one
    probability : float, P(observed | context, other responses)
    error_probability : float, how likely it is wrong
    p_value : float
    evidence : what moved the expectation, strongest first; empty for responses that are not suspicious
    sentence : str, one plain sentence; empty for responses that are not suspicious
    """

    name: str
    observed: Value
    expected: Value
    probability: float
    error_probability: float
    p_value: float
    evidence: tuple[Evidence, ...] = ()
    sentence: str = ""


@dataclass(frozen=True)
class Change:
    """One response that a repair changes."""

    name: str
    before: Value
    after: Value


@dataclass(frozen=True)
class Repair:
    """The smallest set of changed responses that makes y ordinary given x.

    `probability_before` and `probability_after` are P(y | x) of the whole response vector.
    """

    changes: tuple[Change, ...]
    probability_before: float
    probability_after: float


@dataclass(frozen=True)
class Finding:
    """Everything about one row.

    Attributes
    ----------
    row : int, its place in the table
    id : the user's own identifier, or None
    rank : int, 1 = most suspicious
    score, p_value, error_probability : float
    responses : all responses, the most suspicious first
    repair : Repair
    sentence : str, that of the most suspicious response
    """

    row: int
    id: Value
    rank: int
    score: float
    p_value: float
    error_probability: float
    responses: tuple[ResponseFinding, ...]
    repair: Repair
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and values."""
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        """Return JSON text that `from_json` reads back to an equal finding."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Finding:
        """Return the finding that `to_dict` was called on."""
        responses = tuple(
            ResponseFinding(**{**part, "evidence": tuple(Evidence(**e) for e in part["evidence"])})
            for part in data["responses"]
        )
        repair = data["repair"]
        changes = tuple(Change(**change) for change in repair["changes"])
        return cls(**{**data, "responses": responses, "repair": Repair(**{**repair, "changes": changes})})

    @classmethod
    def from_json(cls, text: str) -> Finding:
        """Return the finding that `to_json` was called on."""
        return cls.from_dict(json.loads(text))
