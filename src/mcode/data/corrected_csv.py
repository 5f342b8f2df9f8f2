"""CSV and TSV with some cells changed; every other byte stays, quotes, line ends and encoding included."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from mcode.data.changes import Changes
from mcode.errors import DataFormatError

WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


def corrected_csv(path: Path, data: bytes, changes: Changes, encoding: str, delimiter: str | None) -> bytes:
    """Return the bytes of the file with the changes made."""
    name = codecs.lookup(encoding).name
    if name in WIDE:  # commas and quotes are no single bytes there
        return _corrected(path, data.decode(name), changes, None, delimiter).encode(name)
    # Latin-1 maps each byte to one character and back: the text can be cut where commas are without decoding it.
    return _corrected(path, data.decode("latin-1"), changes, name, delimiter).encode("latin-1")


def _corrected(path: Path, text: str, changes: Changes, encoding: str | None, delimiter: str | None) -> str:
    begin = text.split("\n", 1)[0]
    table = _Table(text, delimiter or next((d for d in ",;\t" if d in begin), ","), encoding)
    rows = table.records()
    header = next(rows, None)
    if header is None:
        raise DataFormatError(path, reason="it has no header")
    names = [table.plain(table.raw(cell)) for cell in table.cells(*header)]
    if names and encoding is not None:
        names[0] = names[0].removeprefix("\ufeff")
    columns = changes.columns(names, path)
    parts, at, n_rows = [], 0, 0
    for row, (start, end) in enumerate(rows):
        n_rows = row + 1
        if row not in changes.cells:
            continue
        cells = list(table.cells(start, end))
        for column, place in sorted(columns.items(), key=lambda item: item[1]):
            left, right = cells[place]
            old = table.plain(table.raw((left, right)))
            new = changes.new_text(row, column, old)
            if new != old:
                parts += [text[at:left], table.quoted(new, like=text[left:right])]
                at = right
    changes.check_done(n_rows, path)
    return "".join([*parts, text[at:]])


class _Table:
    """A text cut into records and cells as Arrow's reader cuts it."""

    def __init__(self, text: str, delimiter: str, encoding: str | None) -> None:
        self.text, self.delimiter, self.encoding = text, delimiter, encoding
        mark = re.escape(delimiter)
        self._cell = re.compile(rf'(?:"(?:[^"]|"")*"[^{mark}\r\n]*|[^{mark}\r\n]*)')

    def records(self) -> Iterator[tuple[int, int]]:
        """Yield where each record begins and ends, without its line end; empty lines are none."""
        at, line = (3 if self.text.startswith("ï»¿") else 0), re.compile(r"[^\r\n]*")
        while at < len(self.text):
            found = line.match(self.text, at)
            end = found.end() if found else at
            if self.text.find('"', at, end) >= 0:  # a quoted cell may hold line ends
                *_, (_, end) = self.cells(at, len(self.text))
            if end > at:
                yield at, end
            at = end + (2 if self.text.startswith("\r\n", end) else 1)

    def cells(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield where each cell of the record that begins at `start` begins and ends."""
        at = start
        while found := self._cell.match(self.text, at, end):
            yield found.start(), found.end()
            if not self.text.startswith(self.delimiter, found.end(), end):
                return
            at = found.end() + 1

    def raw(self, cell: tuple[int, int]) -> str:
        return self.text[cell[0] : cell[1]]

    def plain(self, raw: str) -> str:
        """Return what a cell holds, without its quotes."""
        if raw.startswith('"'):
            closing = raw.rfind('"')
            raw = raw[1:closing].replace('""', '"') + raw[closing + 1 :]
        return raw if self.encoding is None else raw.encode("latin-1").decode(self.encoding)

    def quoted(self, value: str, like: str) -> str:
        """Return a value as a cell, in quotes where the cell before was or where it must be."""
        if like.startswith('"') or any(mark in value for mark in (self.delimiter, '"', "\r", "\n")):
            value = '"' + value.replace('"', '""') + '"'
        return value if self.encoding is None else value.encode(self.encoding).decode("latin-1")
