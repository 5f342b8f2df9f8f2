"""ARFF with some cells changed, dense and sparse rows; every other byte stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcode.data.arff import WEIGHT
from mcode.data.arff_header import VALUE, Attribute, read_header
from mcode.data.changes import Changes

PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+")


def corrected_arff(path: Path, data: bytes, changes: Changes, encoding: str) -> bytes:
    """Return the bytes of the file with the changes made."""
    raw = data.split(b"\n")
    lines = ((number, line.decode(encoding).removeprefix("\ufeff")) for number, line in enumerate(raw, start=1))
    last = 0

    def counted() -> Iterator[tuple[int, str]]:
        nonlocal last
        for last, line in lines:
            yield last, line.rstrip("\r")

    attributes = read_header(counted(), path).attributes
    columns = changes.columns([attribute.name for attribute in attributes], path)
    row = 0
    for at in range(last, len(raw)):
        text = raw[at].decode(encoding)
        body = text.strip()
        if not body or body.startswith("%"):
            continue
        if row in changes.cells:
            new_row = _sparse_row if body.startswith("{") else _dense_row
            start = text.index(body)
            new = new_row(row, body, attributes, columns, changes)
            raw[at] = f"{text[:start]}{new}{text[start + len(body) :]}".encode(encoding)
        row += 1
    changes.check_done(row, path)
    return b"\n".join(raw)


def _dense_row(
    row: int, body: str, attributes: tuple[Attribute, ...], columns: dict[str, int], changes: Changes
) -> str:
    weight = WEIGHT.search(body)
    cells, rest = (body[: weight.start()], body[weight.start() :]) if weight else (body, "")
    spans = list(_spans(cells))
    for name, place in sorted(columns.items(), key=lambda item: -item[1]):
        start, end = spans[place]
        cells = cells[:start] + _new_token(row, name, cells[start:end], changes) + cells[end:]
    return cells + rest


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each value begins and ends, quotes included."""
    at = 0
    while found := VALUE.match(text, at):
        group = next(k for k in (1, 2, 3) if found[k] is not None)
        quote = 0 if group == 3 else 1
        bare = found[group].rstrip() if group == 3 else found[group]
        yield found.start(group) - quote, found.start(group) + len(bare) + quote
        if not found[4]:
            return
        at = found.end()


def _sparse_row(
    row: int, body: str, attributes: tuple[Attribute, ...], columns: dict[str, int], changes: Changes
) -> str:
    closing = body.rindex("}") if not WEIGHT.search(body) else body.rindex("}", 0, WEIGHT.search(body).start())  # type: ignore[union-attr]
    inside, rest = body[1:closing], body[closing + 1 :]
    entries = [entry.strip() for entry in _split(inside)] if inside.strip() else []
    token = {int(entry.split(None, 1)[0]): entry.split(None, 1)[1].strip() for entry in entries}
    for name, place in columns.items():
        attribute = attributes[place]
        first = attribute.values[0] if attribute.values else "0"
        old = token.get(place, first)
        new = _new_token(row, name, old, changes)
        if new == old:
            continue
        if _plain(new) == first or (not attribute.values and float(_plain(new)) == 0.0):
            token.pop(place, None)  # a sparse row leaves its first value out
        else:
            token[place] = new
    return "{" + ", ".join(f"{place} {token[place]}" for place in sorted(token)) + "}" + rest


def _split(inside: str) -> Iterator[str]:
    start = 0
    quote = ""
    for at, mark in enumerate(inside):
        if quote:
            quote = "" if mark == quote and inside[at - 1] != "\\" else quote
        elif mark in "'\"":
            quote = mark
        elif mark == ",":
            yield inside[start:at]
            start = at + 1
    yield inside[start:]


def _new_token(row: int, name: str, token: str, changes: Changes) -> str:
    old = _plain(token)
    new = changes.new_text(row, name, "" if token == "?" else old)
    return token if new == old else _quoted(new, token)


def _plain(token: str) -> str:
    if token[:1] not in ("'", '"'):
        return token
    return token[1:-1].replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def _quoted(value: str, like: str) -> str:
    if like[:1] not in ("'", '"') and value and PLAIN.issuperset(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
