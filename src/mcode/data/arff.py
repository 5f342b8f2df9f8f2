"""ARFF, dense and sparse, as Weka, Mulan and MEKA write it.

The parser is our own: the readers in SciPy and liac-arff either know no sparse rows or build Python objects for every
cell, and neither says in which line a value is not allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix
from mcode._optional import require
from mcode.data.arff_header import Attribute, Header, RefusedValueError, read_header, split_values
from mcode.data.columns import EXACT_IN_SINGLE, Columns, storage_of
from mcode.data.gathering import GatheredRows
from mcode.data.opening import numbered_lines
from mcode.errors import DataFormatError

ROWS_AT_ONCE = 2048
WEIGHT = re.compile(r",\s*\{\s*[-+.\deE]+\s*\}\s*$")  # Weka's instance weight at the end of a row

Lines = list[tuple[int, str]]


def read_arff(path: Path, encoding: str) -> tuple[Columns, Header]:
    """Read an ARFF file: its columns, and the header that may count labels."""
    lines = numbered_lines(path, encoding)
    header = read_header(lines, path)
    builder = _Builder(path, header.attributes)
    rows = ((number, line.strip()) for number, line in lines)
    kept = ((number, line) for number, line in rows if line and not line.startswith("%"))
    while chunk := list(islice(kept, ROWS_AT_ONCE)):
        builder.add(chunk)
    return builder.columns(), header


@dataclass
class _Builder:
    """Collects rows, a chunk at a time, in one matrix and in lists of texts."""

    path: Path
    attributes: tuple[Attribute, ...]
    texts: dict[int, list[str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number_at = [j for j, a in enumerate(self.attributes) if a.is_number]
        self.texts = {j: [] for j, a in enumerate(self.attributes) if not a.is_number}
        self.place = np.full(len(self.attributes), -1)
        self.place[self.number_at] = np.arange(len(self.number_at))
        self.rows = GatheredRows(len(self.number_at))
        self.omitted = np.array([self.attributes[j].omitted for j in self.number_at])

    def add(self, chunk: Lines) -> None:
        for is_sparse, lines in _runs(chunk):
            numbers = self._sparse(lines) if is_sparse else self._dense(lines)
            self.rows.add(_narrow(numbers, self.path, lines))

    def _dense(self, lines: Lines) -> Matrix:
        rows = [self._split(number, WEIGHT.sub("", line)) for number, line in lines]
        columns = list(zip(*rows, strict=True))
        out = np.empty((len(lines), len(self.number_at)))
        for k, j in enumerate(self.number_at):
            out[:, k] = self._numbers(self.attributes[j], columns[j], lines)
        for j, texts in self.texts.items():
            texts.extend(self._convert(self.attributes[j].text, columns[j], lines))
        return out

    def _split(self, number: int, line: str) -> list[str | None]:
        try:
            values = split_values(line)
        except RefusedValueError as error:
            raise DataFormatError(self.path, number, str(error)) from error
        if len(values) != len(self.attributes):
            raise DataFormatError(
                self.path, number, f"the row has {len(values)} values; {len(self.attributes)} attributes are declared"
            )
        return values

    def _numbers(self, attribute: Attribute, tokens: tuple[str | None, ...], lines: Lines) -> NDArray[np.float64]:
        try:
            if attribute.kind == "number":
                return np.fromiter(map(float, tokens), np.float64, len(tokens))  # type: ignore[arg-type]
            code: dict[str | None, float] = {attribute.no_yes[0]: 0.0, attribute.no_yes[1]: 1.0}
            return np.fromiter((code[token] for token in tokens), np.float64, len(tokens))
        except (TypeError, ValueError, KeyError):  # a missing value, or one that is not allowed: look at each
            return np.array(self._convert(attribute.number, tokens, lines))

    def _convert(self, convert: Any, tokens: tuple[str | None, ...], lines: Lines) -> list[Any]:
        out = []
        for (number, _), token in zip(lines, tokens, strict=True):
            try:
                out.append(convert(token))
            except RefusedValueError as error:
                raise DataFormatError(self.path, number, str(error)) from error
        return out

    def _sparse(self, lines: Lines) -> Matrix:
        indices, data, indptr = list[int](), list[float](), [0]
        for number, line in lines:
            try:
                self._sparse_row(line, indices, data)
            except RefusedValueError as error:
                raise DataFormatError(self.path, number, str(error)) from error
            indptr.append(len(indices))
        shape = (len(lines), len(self.number_at))
        matrix = sp.csr_matrix((np.array(data, np.float64), np.array(indices, np.int32), indptr), shape=shape)
        matrix.sort_indices()
        return matrix if not self.omitted.any() else self._with_omitted(matrix)

    def _sparse_row(self, line: str, indices: list[int], data: list[float]) -> None:
        texts: dict[int, str | None] = {}
        seen: set[int] = set()
        for index, token in _entries(line):
            if not 0 <= index < len(self.attributes):
                raise RefusedValueError(
                    f"index {index} is not among the {len(self.attributes)} declared attributes (from 0)"
                )
            if index in seen:
                raise RefusedValueError(f"index {index} is given twice in one row")
            seen.add(index)
            attribute = self.attributes[index]
            if attribute.is_number:
                indices.append(int(self.place[index]))
                data.append(attribute.number(token))
            else:
                texts[index] = attribute.text(token)
        for j, column in self.texts.items():
            values = self.attributes[j].values
            column.append(texts.get(j, values[0] if values else None))

    def _with_omitted(self, matrix: sp.csr_matrix) -> Matrix:
        """Return the rows with first declared values where a row leaves them out."""
        out = np.tile(self.omitted, (matrix.shape[0], 1))
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        out[row, matrix.indices] = matrix.data
        return out

    def columns(self) -> Columns:
        if not self.rows.n_rows:
            raise DataFormatError(self.path, reason="there is no row after @data")
        names = tuple(a.name for a in self.attributes)
        return Columns(
            source=str(self.path),
            order=names,
            numbers=self.rows.matrix(),
            number_names=tuple(names[j] for j in self.number_at),
            no_yes={a.name: a.no_yes for a in self.attributes if a.kind == "two values"},
            texts=self._text_table(),
        )

    def _text_table(self) -> Any | None:
        if not self.texts:
            return None
        arrow = require("pyarrow", extra="tables")
        columns = [arrow.array(values, arrow.string()) for values in self.texts.values()]
        return arrow.table(columns, names=[self.attributes[j].name for j in self.texts])


def _runs(chunk: Lines) -> Iterator[tuple[bool, Lines]]:
    """Split a chunk into runs of sparse and of dense rows; nearly always one."""
    start = 0
    for at in range(1, len(chunk) + 1):
        if at == len(chunk) or chunk[at][1].startswith("{") != chunk[start][1].startswith("{"):
            yield chunk[start][1].startswith("{"), chunk[start:at]
            start = at


def _entries(line: str) -> Iterator[tuple[int, str | None]]:
    """Yield the index and the value of each entry of a sparse row."""
    body = WEIGHT.sub("", line).rstrip()
    if not body.endswith("}"):
        raise RefusedValueError("a sparse row is not closed by a brace")
    inside = body[1:-1].strip()
    if not inside:
        return
    quoted = "'" in inside or '"' in inside
    for item in QUOTED_ENTRY.findall(inside) if quoted else inside.split(","):
        parts = item.split(None, 1)
        if len(parts) != 2 or not parts[0].isdecimal():
            raise RefusedValueError(f"{item.strip()[:40]!r} is not an index and a value")
        value = parts[1].strip()
        yield (
            int(parts[0]),
            (None if value == "?" else value) if value[:1] not in ("'", '"') else split_values(value)[0],
        )


QUOTED_ENTRY = re.compile(r"""(?:[^,'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|['"])+""")


def _narrow(numbers: Matrix, path: Path, lines: Lines) -> Matrix:
    """Return a chunk in its final storage: sparse if mostly 0, float32 unless that would change an integer."""
    values = numbers.data if sp.issparse(numbers) else numbers
    if np.isinf(values).any():
        row = _row_of(numbers, np.isinf)
        raise DataFormatError(path, lines[row][0], "a value is infinite; give finite numbers, or ? for missing")
    large = np.abs(values) > EXACT_IN_SINGLE
    if np.any(large & (values == np.floor(values))):
        return storage_of(numbers)
    with np.errstate(over="ignore"):
        single: Matrix = numbers.astype(np.float32)
    if np.isinf(single.data if sp.issparse(single) else single).any():
        return storage_of(numbers)
    return storage_of(single)


def _row_of(numbers: Matrix, test: Any) -> int:
    if sp.issparse(numbers):
        return int(np.searchsorted(numbers.indptr, np.flatnonzero(test(numbers.data))[0], side="right") - 1)
    return int(np.argwhere(test(numbers))[0][0])
