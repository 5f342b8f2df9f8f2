"""JSON lines and libsvm with some lines changed; every other byte stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mcode.data.changes import Changes
from mcode.errors import DataFormatError

BLANK = " \t\n\r"


def corrected_json_lines(path: Path, data: bytes, changes: Changes, encoding: str) -> bytes:
    """Return the bytes of the file with the changes made; JSON is UTF-8 whatever `encoding` says."""

    def new_line(row: int, line: str, _number: int) -> str:
        spans = dict(_values(line))
        wanted = changes.columns(list(spans), path) if changes.tags_column else changes.cells[row]
        edits = [(spans[name], _json_value(changes, row, name, line[slice(*spans[name])])) for name in wanted]
        return _edited(line, edits)

    return _by_line(path, data, "utf-8", changes, lambda line: bool(line.strip()), new_line)


def corrected_libsvm(path: Path, data: bytes, changes: Changes, encoding: str) -> bytes:
    """Return the bytes of the file with the labels at the beginning of the changed lines made new."""

    def new_line(row: int, line: str, number: int) -> str:
        text, mark, comment = line.partition("#")
        first = text.split(None, 1)[0] if text.split() else ""
        labelled = ":" not in first and not text[:1].isspace()
        labels = [label for label in first.split(",") if label] if labelled else []
        cells = changes.cells[row]
        kept = [label for label in labels if cells.get(label, 1) == 1]
        kept += sorted(label for label, code in cells.items() if code == 1 and label not in kept)
        rest = text[len(first) :] if labelled else f" {text.lstrip()}"
        if not kept and not rest.strip():
            raise DataFormatError(path, number, "a row with neither label nor feature cannot be written as libsvm")
        return ",".join(kept) + rest + mark + comment

    def is_row(line: str) -> bool:
        return bool(line.split("#", 1)[0].split())

    return _by_line(path, data, encoding, changes, is_row, new_line, skip_first=_is_size)


def _is_size(line: str) -> bool:
    tokens = line.split("#", 1)[0].split()
    return len(tokens) == 3 and all(token.isdecimal() for token in tokens)


def _by_line(
    path: Path,
    data: bytes,
    encoding: str,
    changes: Changes,
    is_row: Callable[[str], bool],
    new_line: Callable[[int, str, int], str],
    skip_first: Callable[[str], bool] = lambda line: False,
) -> bytes:
    """Return the lines with those of changed rows made new by `new_line(row, line, line number)`."""
    out, row = [], 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.decode(encoding)
        begin = "\ufeff" if number == 1 and line.startswith("\ufeff") else ""
        body = line.removeprefix(begin).rstrip("\r")
        if (number == 1 and skip_first(body)) or not is_row(body):
            out.append(raw)
            continue
        if row in changes.cells:
            end = line[len(begin) + len(body) :]
            raw = (begin + new_line(row, body, number) + end).encode(encoding)
        out.append(raw)
        row += 1
    changes.check_done(row, path)
    return b"\n".join(out)


def _values(line: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each name of a JSON object, and where its value begins and ends."""
    decode = json.JSONDecoder().raw_decode
    at = _after_blank(line, line.index("{") + 1)
    while line[at] != "}":
        name, at = decode(line, at)
        start = _after_blank(line, _after_blank(line, at) + 1)  # past the colon
        _, end = decode(line, start)
        yield name, (start, end)
        at = _after_blank(line, end)
        at = _after_blank(line, at + 1) if line[at] == "," else at


def _after_blank(line: str, at: int) -> int:
    while line[at] in BLANK:
        at += 1
    return at


def _json_value(changes: Changes, row: int, name: str, raw: str) -> str:
    old: Any = json.loads(raw)
    if isinstance(old, list):
        return json.dumps(changes.new_tags(row, [str(tag) for tag in old]), ensure_ascii=False)
    if isinstance(old, str) or old is None:
        return json.dumps(changes.new_text(row, name, old or ""), ensure_ascii=False)
    return changes.new_text(row, name, raw)


def _edited(line: str, edits: list[tuple[tuple[int, int], str]]) -> str:
    for (start, end), new in sorted(edits, reverse=True):
        line = line[:start] + new + line[end:]
    return line
