"""Names and values in the user's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mcode.errors import InputError
from mcode.explain.finding import Evidence, Value
from mcode.models.encoding import ResponseEncoding


@runtime_checkable
class Described(Protocol):
    """A feature that knows where it comes from, as those of `mcode.read` do."""

    @property
    def column(self) -> str:
        """The user's column."""

    @property
    def kind(self) -> str:
        """One of "number", "boolean", "category", "missing", "date" and "word"."""

    @property
    def value(self) -> str | None:
        """The category, the word or the part of the date that the feature is about."""

    def say(self, x: float) -> str:
        """Return the value x of the feature as a phrase, `column = value` where it has a value."""


# Per feature: its description, or (source column, category), the category None for a number.
Features: TypeAlias = "Sequence[Described | tuple[str, str | None]]"


@dataclass(frozen=True)
class Labels:
    """How responses and features are called.

    Parameters
    ----------
    encoding : ResponseEncoding, names and values of the responses
    binary : (m,) boolean array, features that hold nothing but 0 and 1
    features : sequence of m descriptions, or None: they are called "feature 0", "feature 1", ...
    """

    encoding: ResponseEncoding
    binary: NDArray[np.bool_]
    features: Features | None = None

    def __post_init__(self) -> None:
        if self.features is not None and len(self.features) != len(self.binary):
            raise InputError(
                "features", f"it describes {len(self.features)} features", f"the context has {len(self.binary)}"
            )

    def response_value(self, response: int, code: int) -> Value:
        """Return the value of a response that a code stands for."""
        values = self.encoding.values[response].tolist()
        value: Value = values[code] if code < len(values) else None
        return value

    def of_many(self, response: int) -> bool:
        """Whether a response has more than two values."""
        return len(self.encoding.values[response]) > 2

    def response_evidence(self, response: int, code: int, weight: float) -> Evidence:
        """Return another response of the row as evidence; one number of several is a name, and neither yes nor no."""
        value = self.response_value(response, code)
        shown = str(value) if self.of_many(response) else value
        return Evidence("response", self.encoding.names[response], shown, round_weight(weight))

    def group(self, feature: int) -> tuple[str, int]:
        """Return what features of one fact have in common.

        The categories of a column are one fact about the row, and so are a number and that it is known.
        """
        match self.features[feature] if self.features is not None else None:
            case Described(kind="number" | "category" | "missing", column=column) | (str(column), _):
                return column, -1
        return "", feature

    def feature_evidence(self, features: Sequence[int], x: NDArray[np.floating], weight: float) -> Evidence:
        """Return the features of one fact, whose values are `x`, as one piece of evidence."""
        value_of = dict(zip(features, x.tolist(), strict=True))
        told = max(features, key=lambda feature: self._telling(feature, value_of[feature]))
        name, said = self._say(told, float(value_of[told]))
        return Evidence("feature", name, said, round_weight(weight))

    def _telling(self, feature: int, x: float) -> int:
        """Return how much a feature tells of its fact: most if it says that the value is missing or which one it is."""
        match self.features[feature] if self.features is not None else None:
            case Described(kind="missing"):
                return 3 if x >= 0.5 else 0
            case Described(kind="category") | (_, str()):
                return 2 if x >= 0.5 else 1
        return 2

    def _say(self, feature: int, x: float) -> tuple[str, Value]:
        if self.features is None:
            return f"feature {feature}", self._number(feature, x)
        match self.features[feature]:
            case (str(column), None):
                return column, self._number(feature, x)
            case (str(column), str(category)):
                return (column, category) if x >= 0.5 else (f"{column} = {category}", False)
            case Described() as about:
                return self._say_described(feature, about, x)
        raise InputError("features", f"{self.features[feature]!r}", "give (column, category or None) for each feature")

    def _say_described(self, feature: int, about: Described, x: float) -> tuple[str, Value]:
        match about.kind:
            case "number":
                return about.column, self._number(feature, x)
            case "category":
                return (about.column, about.value) if x >= 0.5 else (f"{about.column} = {about.value}", False)
            case "word" | "missing":  # a yes or no about the column: named by how yes is said
                return about.say(1.0), bool(x >= 0.5)
        name, _, said = about.say(x).rpartition(" = ")
        return name, said

    def _number(self, feature: int, x: float) -> Value:
        """Return a number as a person writes it: without the digits that storing it in 32 bits added."""
        if self.binary[feature]:
            return bool(x)
        return int(x) if x.is_integer() and abs(x) < 1e15 else float(f"{x:.6g}")


def round_weight(weight: float) -> float:
    """Return a weight with the digits that mean something."""
    return float(f"{weight:.6g}")


def is_present(value: Value) -> bool | None:
    """Return whether a value says present or absent; None where it is some other value.

    Examples
    --------
    >>> is_present(1), is_present(False), is_present("B")
    (True, False, None)
    """
    if isinstance(value, bool | int) and value in (0, 1):
        return bool(value)
    return None
