"""What a feature is in the user's own words: which column it comes from and how to say its value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["number", "boolean", "category", "missing", "date", "word"]

DAY = "day"  # the part of a date that says the whole date, as days since 1970-01-01

# Texts that mean no and yes, in small letters. A column that holds only such a pair is one yes/no feature.
NO_YES = (
    ("0", "1"),
    ("no", "yes"),
    ("n", "y"),
    ("false", "true"),
    ("f", "t"),
    ("absent", "present"),
    ("negative", "positive"),
    ("neg", "pos"),
    ("off", "on"),
)
YES_OF = dict(NO_YES)
NO_OF = {yes: no for no, yes in NO_YES}


def as_no_yes(values: tuple[str, ...]) -> tuple[str, str] | None:
    """Return two texts ordered as (no, yes) where they mean that, else None.

    Examples
    --------
    >>> as_no_yes(("YES", "NO"))
    ('NO', 'YES')
    >>> as_no_yes(("F", "M")) is None
    True
    """
    if len(values) != 2:
        return None
    first, second = values
    if YES_OF.get(first.strip().lower()) == second.strip().lower():
        return first, second
    return (second, first) if YES_OF.get(second.strip().lower()) == first.strip().lower() else None


def number_text(value: float) -> str:
    """Return a number as a person writes it.

    Examples
    --------
    >>> number_text(9.100000381), number_text(1234567.0)
    ('9.1', '1234567')
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


@dataclass(frozen=True)
class Feature:
    """One column of X: where it comes from and how to say it.

    Attributes
    ----------
    name : str, unique in its data set
    column : str, the user's column
    kind : "number", "boolean", "category", "missing", "date" or "word"
    value : str or None
        The category, the word, or the part of the date ("year", "month", "weekday", "day").
    no_yes : pair of str
        How 0 and 1 are written, for a boolean.

    Examples
    --------
    >>> Feature("hba1c", "hba1c").say(9.1)
    'hba1c = 9.1'
    >>> Feature("sex=F", "sex", "category", "F").say(0)
    'sex is not F'
    >>> Feature("visited (day)", "visited", "date", "day").say(19783)
    'visited = 2024-03-01'
    """

    name: str
    column: str
    kind: Kind = "number"
    value: str | None = None
    no_yes: tuple[str, str] = ("0", "1")

    @property
    def source(self) -> tuple[str, str | None]:
        """The user's column, and the value that the feature is about (None for a number)."""
        return self.column, self.value

    def say(self, x: float) -> str:
        """Return the value `x` of this feature as a phrase about the user's column."""
        match self.kind:
            case "boolean":
                return f"{self.column} = {self.no_yes[int(x >= 0.5)]}"
            case "category":
                return f"{self.column} = {self.value}" if x >= 0.5 else f"{self.column} is not {self.value}"
            case "missing":
                return f"{self.column} is missing" if x >= 0.5 else f"{self.column} is known"
            case "word":
                return f"{self.column} {'mentions' if x >= 0.5 else 'does not mention'} {self.value!r}"
            case "date" if self.value == DAY:
                return f"{self.column} = {_day(x)}"
            case "date":
                return f"{self.value} of {self.column} = {number_text(x)}"
        return f"{self.column} = {number_text(x)}"


def _day(days: float) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=float(days))).isoformat()
    except OverflowError:
        return f"{number_text(days)} days after 1970-01-01"


def unique_names(features: list[Feature]) -> tuple[Feature, ...]:
    """Return the features with names that differ, where a column is called like another one's feature.

    Examples
    --------
    >>> [f.name for f in unique_names([Feature("a", "a"), Feature("a", "a", "missing")])]
    ['a', 'a (2)']
    """
    seen: set[str] = set()
    out = []
    for feature in features:
        name, count = feature.name, 1
        while name in seen:
            count += 1
            name = f"{feature.name} ({count})"
        seen.add(name)
        out.append(Feature(name, feature.column, feature.kind, feature.value, feature.no_yes))
    return tuple(out)
