"""The header of an ARFF file: what each attribute may hold, and how one value of it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mcode.data.features import as_no_yes
from mcode.errors import DataFormatError

AttributeKind: TypeAlias = Literal["number", "two values", "nominal", "text"]

NUMBERS = {"numeric", "real", "integer"}
MEKA_COUNT = re.compile(r"(?:^|[\s:])-[cC]\s+(-?\d+)")
ESCAPED = re.compile(r"\\(.)")
VALUE = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,]*))\s*(,|$)""", re.DOTALL)
NAME = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s*(.*)$""", re.DOTALL)


class RefusedValueError(ValueError):
    """A value that its attribute does not allow; the reader adds file and line."""


@dataclass(frozen=True)
class Attribute:
    """One declared column.

    Attributes
    ----------
    name : str
    kind : "number", "two values" (a no/yes pair, read as 0 and 1), "nominal" or "text"
    values : tuple of str, the declared values, in their order
    no_yes : pair of str, how 0 and 1 are written
    """

    name: str
    kind: AttributeKind
    values: tuple[str, ...] = ()
    no_yes: tuple[str, str] = ("0", "1")

    @property
    def is_number(self) -> bool:
        """Whether values become numbers."""
        return self.kind in ("number", "two values")

    @property
    def omitted(self) -> float:
        """What a sparse row means where it leaves this attribute out: 0, or the first declared value."""
        return float(self.kind == "two values" and self.values[0] == self.no_yes[1])

    def number(self, token: str | None) -> float:
        """Return a value as a number, NaN where it is missing."""
        if token is None:
            return float("nan")
        if self.kind == "number":
            return _number(token, self.name)
        return float(self.no_yes.index(self._declared(token)))

    def text(self, token: str | None) -> str | None:
        """Return a value as text, None where it is missing."""
        return token if token is None or self.kind == "text" else self._declared(token)

    def _declared(self, token: str) -> str:
        if token in self.values:
            return token
        same = next((v for v in self.values if _same_number(v, token)), None)
        if same is None:
            shown = ", ".join(self.values[:5]) + (", ..." if len(self.values) > 5 else "")
            raise RefusedValueError(f"value {token!r} is not among the declared values {{{shown}}} of {self.name!r}")
        return same


def _number(token: str, name: str) -> float:
    try:
        return float(token)
    except ValueError as error:
        raise RefusedValueError(f"value {token!r} of {name!r} is not a number") from error


def _same_number(declared: str, token: str) -> bool:
    """Return whether both are the same number, as 1 and 1.0 are."""
    try:
        return float(declared) == float(token)
    except ValueError:
        return False


@dataclass(frozen=True)
class Header:
    """What stands before @data."""

    relation: str
    attributes: tuple[Attribute, ...]

    @property
    def meka_labels(self) -> list[str]:
        """The labels that MEKA's `-C n` in the relation's name counts: the first n attributes, or the last -n."""
        found = MEKA_COUNT.search(self.relation)
        count = int(found[1]) if found else 0
        names = [a.name for a in self.attributes]
        if abs(count) >= len(names):
            return []
        return names[:count] if count >= 0 else names[count:]


def split_values(text: str) -> list[str | None]:
    r"""Split a comma-separated line; an unquoted ? is missing (None).

    Examples
    --------
    >>> split_values("1, 'a, b', ?, \"don't\"")
    ['1', 'a, b', None, "don't"]
    """
    if "'" not in text and '"' not in text:
        return [None if value == "?" else value for value in map(str.strip, text.split(","))]
    out: list[str | None] = []
    at = 0
    while found := VALUE.match(text, at):
        out.append(_unquoted(found))
        if not found[4]:
            return out
        at = found.end()
    raise RefusedValueError("a quote is opened and not closed, or followed by more text")


def _unquoted(found: re.Match[str]) -> str | None:
    quoted = found[1] if found[1] is not None else found[2]
    if quoted is not None:
        return ESCAPED.sub(r"\1", quoted)
    bare = found[3].strip()
    if bare[:1] in ("'", '"') and bare:
        raise RefusedValueError("a quote is opened and not closed, or followed by more text")
    return None if bare == "?" else bare


def read_header(lines: Iterator[tuple[int, str]], path: Path) -> Header:
    """Read up to and including @data."""
    relation, attributes = "", list[Attribute]()
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        keyword, _, rest = text.partition(" ") if " " in text.split("\t", 1)[0] else text.partition("\t")
        match keyword.lower():
            case "@relation":
                relation = rest.strip()
            case "@attribute":
                try:
                    attributes.append(parse_attribute(rest))
                except RefusedValueError as error:
                    raise DataFormatError(path, number, str(error)) from error
            case "@data":
                return Header(relation, _checked(attributes, path))
            case _:
                raise DataFormatError(
                    path, number, f"{text[:40]!r} is neither @relation, @attribute nor @data, nor a comment (%)"
                )
    raise DataFormatError(path, reason="there is no @data line; is this an ARFF file?")


def _checked(attributes: list[Attribute], path: Path) -> tuple[Attribute, ...]:
    if not attributes:
        raise DataFormatError(path, reason="no @attribute is declared before @data")
    return tuple(attributes)


def parse_attribute(text: str) -> Attribute:
    """Return the attribute that `text`, what follows @attribute, declares.

    Examples
    --------
    >>> parse_attribute("'blood type' {A, B, 'A B'}").values
    ('A', 'B', 'A B')
    >>> parse_attribute("motif {YES,NO}").no_yes
    ('NO', 'YES')
    """
    found = NAME.match(text)
    if not found:
        raise RefusedValueError("an @attribute has no name")
    name, rest = _unquoted(found), found[4].strip()
    name = "?" if name is None else name
    if not rest and "{" in name:  # no space between name and values
        name, _, values = name.partition("{")
        rest = "{" + values
    if rest.startswith("{"):
        return _nominal(name, rest)
    kind = rest.split()[0].lower() if rest else ""
    if kind in NUMBERS:
        return Attribute(name, "number")
    if kind in ("string", "date"):
        return Attribute(name, "text")
    raise RefusedValueError(
        f"attribute {name!r} has the type {rest[:40]!r}; "
        "allowed are numeric, real, integer, string, date and {a, b, ...}"
    )


def _nominal(name: str, text: str) -> Attribute:
    if not text.endswith("}"):
        raise RefusedValueError(f"the values of {name!r} are not closed by a brace")
    values = tuple("?" if v is None else v for v in split_values(text[1:-1].strip()))
    no_yes = as_no_yes(values)
    return Attribute(name, "nominal", values) if no_yes is None else Attribute(name, "two values", values, no_yes)
