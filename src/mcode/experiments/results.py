"""Results as tidy rows in a CSV file that grows while an experiment runs, so that a stopped one can go on.

Rows of a finished part are appended at once. When all parts are there, the file is written anew in the order of the
experiment: it has the same bits whether the run was stopped or not.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcode.errors import McodeError

Row = Mapping[str, Any]
Key = tuple[str, ...]


class OtherSettingsError(McodeError):
    """A folder that holds results of other settings."""

    def __init__(self, path: Path, there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        self.path, self.there, self.wanted = path, dict(there), dict(wanted)
        super().__init__(path, there, wanted)

    def __str__(self) -> str:
        return (
            f"{self.path} holds results of other settings ({_words(self.there)}; now {_words(self.wanted)}): "
            "name another folder with --out."
        )


class Results:
    """The rows of one experiment.

    Parameters
    ----------
    path : Path of the CSV file
    keys : names of the columns that name a row
    values : names of the columns that hold what was measured

    Examples
    --------
    >>> import tempfile, pathlib
    >>> results = Results(pathlib.Path(tempfile.mkdtemp()) / "r.csv", ("data", "method"), ("auc",))
    >>> results.append([{"data": "yeast", "method": "LOF", "auc": 0.75}])
    >>> results.has(data="yeast", method="LOF"), results.rows()
    (True, [{'data': 'yeast', 'method': 'LOF', 'auc': '0.750000'}])
    """

    def __init__(self, path: Path, keys: Sequence[str], values: Sequence[str]) -> None:
        self.path, self.keys, self.columns = path, tuple(keys), (*keys, *values)
        self._rows: dict[Key, dict[str, str]] = {}
        if path.exists():
            self._read()

    def has(self, **key: object) -> bool:
        """Whether the row of these keys is there."""
        return self.row(**key) is not None

    def row(self, **key: object) -> dict[str, str] | None:
        """Return the row of these keys, as texts, or None."""
        return self._rows.get(tuple(_text(key[name]) for name in self.keys))

    def rows(self) -> list[dict[str, str]]:
        """Return all rows, as texts."""
        return list(self._rows.values())

    def append(self, rows: Iterable[Row]) -> None:
        """Add the rows of a finished part to the file."""
        new = [{name: _text(row[name]) for name in self.columns} for row in rows]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        begun = self.path.exists()
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(("" if begun else _line(self.columns)) + "".join(_line(row.values()) for row in new))
            file.flush()
            os.fsync(file.fileno())
        self._rows.update((self._key(row), row) for row in new)

    def drop(self, **key: object) -> None:
        """Forget the rows that have these values, so that they are measured again."""
        wanted = {name: _text(value) for name, value in key.items()}
        kept = [row for row in self.rows() if any(row[name] != value for name, value in wanted.items())]
        self._write(kept)

    def finish(self, order: Iterable[Mapping[str, object]]) -> None:
        """Write the file anew in the order of these keys; rows of other keys follow as they are."""
        wanted = [tuple(_text(key[name]) for name in self.keys) for key in order]
        first = [self._rows[key] for key in wanted if key in self._rows]
        named = set(wanted)
        self._write(first + [row for key, row in self._rows.items() if key not in named])

    def _key(self, row: Mapping[str, str]) -> Key:
        return tuple(row[name] for name in self.keys)

    def _read(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a run that was killed while it wrote leaves half a line
        rows = list(csv.DictReader(io.StringIO(whole)))
        if whole and tuple(rows[0] if rows else _names(whole)) != self.columns:
            raise OtherSettingsError(self.path, {"columns": ",".join(_names(whole))}, {"columns": self.columns})
        if len(whole) < len(text):
            self._write(rows)
        self._rows = {self._key(row): row for row in rows}

    def _write(self, rows: list[dict[str, str]]) -> None:
        self._rows = {self._key(row): row for row in rows}
        write_whole(self.path, _line(self.columns) + "".join(_line(row.values()) for row in self._rows.values()))


def write_whole(path: Path, text: str) -> None:
    """Write a text so that the file is there as a whole or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def keep_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Note the settings of the results in a folder; refuse a folder that has results of others."""
    path = folder / "settings.json"
    if path.exists():
        there = json.loads(path.read_text(encoding="utf-8"))
        if there != dict(settings):
            raise OtherSettingsError(folder, there, settings)
        return
    write_whole(path, json.dumps(dict(settings), indent=2) + "\n")


def _line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(list(cells))
    return out.getvalue()


def _names(text: str) -> list[str]:
    return next(csv.reader(io.StringIO(text)))


def _text(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
