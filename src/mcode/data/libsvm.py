"""Multi-label libsvm: one row per line, `label,label index:value index:value ...`."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from mcode.data.columns import MOST_COLUMNS, Columns, storage_of
from mcode.data.labels import ZERO_ONE, Responses
from mcode.data.opening import numbered_lines
from mcode.errors import DataFormatError

LARGEST = float(np.finfo(np.float32).max)


@dataclass
class _Rows:
    """Rows as they are read, in arrays of the machine's own numbers: a Python number takes seven times as much."""

    indices: array[int] = field(default_factory=lambda: array("i"))
    data: array[float] = field(default_factory=lambda: array("f"))
    ends: array[int] = field(default_factory=lambda: array("q", [0]))
    label_at: dict[str, int] = field(default_factory=dict)  # in the order in which they are met
    labels: array[int] = field(default_factory=lambda: array("i"))
    label_ends: array[int] = field(default_factory=lambda: array("q", [0]))
    n_features: int = 0  # stated by a header line "rows features labels", 0 where there is none

    def __len__(self) -> int:
        return len(self.ends) - 1


def read_libsvm(
    path: Path, encoding: str, feature_names: tuple[str, ...] | None = None, label_names: tuple[str, ...] | None = None
) -> tuple[Columns, Responses]:
    """Read a multi-label libsvm file.

    A feature is named by its index as the file writes it. Known names from earlier data fix the features and labels.
    """
    rows = _read_rows(path, encoding)
    if not len(rows):
        raise DataFormatError(path, reason="it holds no rows")
    first, names = _features(path, rows, feature_names)
    indices = np.asarray(rows.indices)
    indices -= first
    matrix = sp.csr_matrix(
        (np.asarray(rows.data), indices, np.asarray(rows.ends)),
        shape=(len(rows), len(names)),
    )
    matrix.sort_indices()
    columns = Columns(str(path), names, storage_of(matrix), names)
    return columns, _responses(path, rows, label_names)


def _features(path: Path, rows: _Rows, known: tuple[str, ...] | None) -> tuple[int, tuple[str, ...]]:
    """Return the first index, 0 or 1, and the names of the features."""
    lowest, highest = min(rows.indices, default=1), max(rows.indices, default=0)
    if known is None:
        first = 0 if lowest == 0 or (rows.n_features and highest < rows.n_features) else 1
        last = max(highest, rows.n_features - 1 + first)
        return first, tuple(str(j) for j in range(first, last + 1))
    first = int(known[0]) if known and known[0].isdecimal() else 1
    if lowest < first or highest >= first + len(known):
        strange = lowest if lowest < first else highest
        raise DataFormatError(
            path, reason=f"index {strange} is not among the {len(known)} known features (from {first})"
        )
    return first, known


def _responses(path: Path, rows: _Rows, known: tuple[str, ...] | None) -> Responses:
    found = rows.label_at
    if known is not None and (strange := sorted(set(found).difference(known))):
        raise DataFormatError(path, reason=f"label {strange[0]!r} is not known from the first file")
    names = tuple(sorted(found, key=_label_order)) if known is None else known
    if not names:
        raise DataFormatError(path, reason="no row has a label; rows begin with labels, 'a,b 3:1 7:0.5'")
    at = {name: j for j, name in enumerate(names)}
    place = np.array([at[label] for label in found], np.intp)
    codes = np.zeros((len(rows), len(names)), np.uint8)
    row = np.repeat(np.arange(len(rows)), np.diff(np.asarray(rows.label_ends)))
    codes[row, place[np.asarray(rows.labels)]] = 1
    return Responses(codes, names, (ZERO_ONE,) * len(names), np.ones(len(rows), bool))


def _label_order(name: str) -> tuple[float, str]:
    """Numbers by their size, then texts."""
    try:
        value = float(name)
    except ValueError:
        value = np.inf
    return (np.inf if np.isnan(value) else value), name


def _read_rows(path: Path, encoding: str) -> _Rows:
    rows = _Rows()
    for number, line in numbered_lines(path, encoding):
        text = line.split("#", 1)[0]
        tokens = text.split()
        if number == 1 and len(tokens) == 3 and all(token.isdecimal() for token in tokens):
            rows.n_features = min(int(tokens[1]), MOST_COLUMNS)
            continue
        if not tokens:
            continue
        labelled = ":" not in tokens[0] and not text[0].isspace()
        labels = [label for label in tokens[0].split(",") if label] if labelled else []
        rows.labels.extend(rows.label_at.setdefault(label, len(rows.label_at)) for label in labels)
        rows.label_ends.append(len(rows.labels))
        _read_entries(path, number, tokens[int(labelled) :], rows)
        rows.ends.append(len(rows.indices))
    return rows


def _read_entries(path: Path, number: int, tokens: list[str], rows: _Rows) -> None:
    start = len(rows.indices)
    for token in tokens:
        index, colon, value = token.partition(":")
        try:
            entry, at = float(value), int(index)
        except ValueError as error:
            raise DataFormatError(path, number, f"{token[:40]!r} is not index:value") from error
        if not colon or not 0 <= at <= MOST_COLUMNS:
            raise DataFormatError(path, number, f"{token[:40]!r} has an index that is not from 0 to {MOST_COLUMNS}")
        if not abs(entry) <= LARGEST:
            raise DataFormatError(path, number, f"{token[:40]!r} has a value that is not finite")
        rows.indices.append(at)
        rows.data.append(entry)
    here = rows.indices[start:]
    if len(set(here)) != len(here):
        raise DataFormatError(path, number, "an index is given twice in one row")
