"""Context columns -> X: numbers as they are, everything else encoded, missing values filled and marked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix
from mcode._optional import require
from mcode.data.arrow_options import arrow_errors, arrow_type
from mcode.data.columns import Columns
from mcode.data.features import Feature, as_no_yes, number_text, unique_names
from mcode.data.mixed import MixedEncoder
from mcode.errors import DataFormatError

NUMBERS = ("number", "bool")
ENTRIES_AT_ONCE = 2**18
LARGEST_DENSE = 250_000_000  # cells; a mixed table with more stays sparse


@dataclass(frozen=True)
class Vectorised:
    """Features of some rows.

    Attributes
    ----------
    X : (n, m) matrix without missing values
    filled : (n, m) sparse matrix of bool or None
        Where X holds a typical value because the cell was empty.
    """

    X: Matrix
    filled: sp.csr_matrix | None


class Vectoriser:
    """How the columns of a table become features; fitted once, then applied to every further file.

    A number is itself. A text column that holds yes and no (or true/false, 0/1, ...) is one feature of 0 and 1. Other
    columns go through skrub (`MixedEncoder`). An empty cell gets the column's median, and the feature "... is missing"
    says so where that happened in the first file.

    Attributes
    ----------
    columns : tuple of str, the context columns
    types : dict, column -> "number", "bool" or the name of its Arrow type
    features : tuple of Feature, one per column of X
    """

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self.types: dict[str, str] = {}
        self.features: tuple[Feature, ...] = ()

    def fit_transform(self, columns: Columns) -> Vectorised:
        """Learn the features of these columns; return X."""
        empty = _missing_counts(columns.numbers) == columns.n_rows
        columns = columns.without([name for name, none in zip(columns.number_names, empty, strict=True) if none])
        self.columns = columns.order
        self.types = {name: "bool" if name in columns.true_false else "number" for name in columns.number_names}
        self.types |= {name: str(columns.texts.schema.field(name).type) for name in columns.text_names}
        self._pairs = {name: pair for name in columns.text_names if (pair := _no_yes_of(columns, name))}
        columns = _with_pairs(columns, self._pairs)
        encoded = None
        self._encoder: MixedEncoder | None = None
        if columns.texts is not None:
            self._encoder = MixedEncoder()
            encoded = self._encoder.fit_transform(columns.texts, columns.source)
        raw = [_number_feature(name, columns.no_yes) for name in columns.number_names]
        raw += self._encoder.features if self._encoder else []
        self._learn_filling(_blocks(columns.numbers, encoded), raw)
        return self._assemble(columns.numbers, encoded)

    def transform(self, columns: Columns) -> Vectorised:
        """Return X of further rows; `columns` holds at least the columns of the first file."""
        columns = _with_pairs(columns, self._pairs)
        encoded = self._encoder.transform(columns.texts, columns.source) if self._encoder else None
        return self._assemble(columns.numbers, encoded)

    def _learn_filling(self, blocks: list[Matrix], raw: list[Feature]) -> None:
        """Learn which features to keep, what stands for an empty cell, and where each feature goes."""
        self._median = np.concatenate([_medians(block) for block in blocks]) if raw else np.zeros(0)
        empty = np.concatenate([_missing_counts(block) for block in blocks]) if raw else np.zeros(0, int)
        kept = np.flatnonzero(~np.isnan(self._median))
        marked = _first_of_each_column([int(j) for j in kept if empty[j]], raw)
        features = [raw[j] for j in kept]
        features += [Feature(f"{raw[j].column} is missing", raw[j].column, "missing") for j in marked]
        position = {name: at for at, name in enumerate(self.columns)}
        order = sorted(range(len(features)), key=lambda at: position[features[at].column])
        self.features = unique_names([features[at] for at in order])
        self._kept, self._marked, self._order = kept, np.array(marked, np.intp), np.array(order, np.intp)

    def _assemble(self, numbers: Matrix, encoded: NDArray[Any] | None) -> Vectorised:
        n_raw = numbers.shape[1] + (0 if encoded is None else encoded.shape[1])
        in_place = len(self._order) == n_raw and np.array_equal(self._order, np.arange(n_raw))
        if encoded is None and in_place and not _missing_counts(numbers).any():
            return Vectorised(numbers, None)
        if sp.issparse(numbers) and numbers.shape[0] * max(1, n_raw) > LARGEST_DENSE:
            return self._assemble_sparse(numbers, encoded)
        raw = numbers.toarray() if sp.issparse(numbers) else np.asarray(numbers)
        if encoded is not None:
            raw = np.hstack([raw, encoded])
        is_empty = np.isnan(raw)
        marks = is_empty[:, self._marked]
        filled = np.where(is_empty, self._median.astype(raw.dtype), raw) if is_empty.any() else raw
        X = np.hstack([filled[:, self._kept], marks.astype(raw.dtype)])[:, self._order]
        where = np.hstack([is_empty[:, self._kept], np.zeros_like(marks)])[:, self._order]
        return Vectorised(np.ascontiguousarray(X), sp.csr_matrix(where) if where.any() else None)

    def _assemble_sparse(self, numbers: sp.csr_matrix, encoded: NDArray[Any] | None) -> Vectorised:
        raw = sp.csr_matrix(numbers if encoded is None else sp.hstack([numbers, sp.csr_matrix(encoded)]))
        is_empty = sp.csr_matrix((np.isnan(raw.data), raw.indices, raw.indptr), shape=raw.shape, copy=True)
        is_empty.eliminate_zeros()  # in place: the copy keeps the pattern of `raw`
        data = np.where(np.isnan(raw.data), self._median.astype(raw.dtype)[raw.indices], raw.data)
        raw = sp.csr_matrix((data, raw.indices, raw.indptr), shape=raw.shape)
        marks = is_empty[:, self._marked]
        X = sp.csr_matrix(sp.hstack([raw[:, self._kept], marks.astype(raw.dtype)]))[:, self._order]
        no_marks = sp.csr_matrix(np.zeros(marks.shape, bool))
        where = sp.csr_matrix(sp.hstack([is_empty[:, self._kept], no_marks]))[:, self._order]
        X.eliminate_zeros()
        X.sort_indices()
        return Vectorised(X, where if where.nnz else None)


def _number_feature(name: str, no_yes: dict[str, tuple[str, str]]) -> Feature:
    return Feature(name, name, "boolean", no_yes=no_yes[name]) if name in no_yes else Feature(name, name)


def _first_of_each_column(places: list[int], raw: list[Feature]) -> list[int]:
    first: dict[str, int] = {}
    for j in places:
        first.setdefault(raw[j].column, j)
    return list(first.values())


def _blocks(numbers: Matrix, encoded: NDArray[Any] | None) -> list[Matrix]:
    return [numbers] if encoded is None else [numbers, encoded]


def _missing_counts(block: Matrix) -> NDArray[np.intp]:
    """Return how many cells of each column are empty."""
    if sp.issparse(block):
        return np.bincount(block.indices[np.isnan(block.data)], minlength=block.shape[1])
    if np.isfinite(block.sum(dtype=np.float64)):  # one pass without a table of booleans
        return np.zeros(block.shape[1], np.intp)
    return np.asarray(np.isnan(block).sum(axis=0))


def _medians(block: Matrix) -> NDArray[np.float64]:
    """Return the median of the known cells of each column; NaN where none is known."""
    if not sp.issparse(block):
        return np.array([_median(np.asarray(block[:, j]), 0) for j in range(block.shape[1])])
    stored = np.zeros(block.shape[1], np.intp)
    for start in range(0, block.nnz, ENTRIES_AT_ONCE):  # NumPy counts in a copy of twice the size
        stored += np.bincount(block.indices[start : start + ENTRIES_AT_ONCE], minlength=block.shape[1])
    out = np.zeros(block.shape[1])  # the median of a column that is mostly 0, whatever else it holds
    full = np.flatnonzero(2 * stored >= block.shape[0])
    columns = block[:, full].tocsc()
    for at, j in enumerate(full):
        values = columns.data[columns.indptr[at] : columns.indptr[at + 1]]
        out[j] = _median(values, block.shape[0] - len(values))
    return out


def _median(values: NDArray[Any], n_zeros: int) -> float:
    """Return the median of the known ones among `values` and `n_zeros` zeros."""
    known = values[~np.isnan(values)]
    if len(known) + n_zeros == 0:
        return float("nan")
    if len(known) < n_zeros:  # more than half are 0
        return 0.0
    return float(np.median(np.concatenate([known, np.zeros(n_zeros, known.dtype)]) if n_zeros else known))


def _no_yes_of(columns: Columns, name: str) -> tuple[str, str] | None:
    """Return how no and yes are written in a text column that holds nothing else."""
    arrow = require("pyarrow", extra="tables")
    compute = require("pyarrow.compute", extra="tables")
    cells = columns.texts[name]
    if not arrow.types.is_string(cells.type):
        return None
    distinct = [value for value in compute.unique(cells).to_pylist() if value is not None]
    return as_no_yes(tuple(distinct))


def _with_pairs(columns: Columns, pairs: dict[str, tuple[str, str]]) -> Columns:
    """Return the columns with yes/no texts as numbers; a text that is neither is missing."""
    if not pairs:
        return columns
    compute = require("pyarrow.compute", extra="tables")
    extra = np.full((columns.n_rows, len(pairs)), np.nan, np.float32)
    for j, (name, (no, yes)) in enumerate(pairs.items()):
        cells = columns.texts[name]
        for code, text in enumerate((no, yes)):
            extra[np.asarray(compute.fill_null(compute.equal(cells, text), False)), j] = code
    numbers = columns.numbers
    joined: Matrix
    if sp.issparse(numbers):
        joined = sp.csr_matrix(sp.hstack([numbers, sp.csr_matrix(extra)]))
    else:
        joined = np.hstack([np.asarray(numbers), extra])
    texts = columns.texts.drop_columns(list(pairs))
    return replace(
        columns,
        numbers=joined,
        number_names=(*columns.number_names, *pairs),
        no_yes={**columns.no_yes, **pairs},
        texts=texts if texts.num_columns else None,
    )


def conform(columns: Columns, types: dict[str, str]) -> Columns:
    """Return the columns of a further file in the order and types of the first one.

    Parameters
    ----------
    columns : Columns
    types : dict
        Column -> "number", "bool" or the name of its Arrow type.
    """
    absent = next((name for name in types if name not in columns.order), None)
    if absent is not None:
        raise DataFormatError(columns.source, reason=f"the column {absent!r} of the first file is missing")
    wrong = next((n for n, kind in types.items() if kind in NUMBERS and n not in columns.number_names), None)
    if wrong is not None:
        raise DataFormatError(
            columns.source, reason=f"column {wrong!r} held numbers in the first file and now holds text"
        )
    columns = columns.only(list(types))
    texts = {name: kind for name, kind in types.items() if kind not in NUMBERS}
    return _as_texts(columns, texts) if texts else columns


def _as_texts(columns: Columns, types: dict[str, str]) -> Columns:
    """Return the columns with those of `types` as texts or dates, also where this file happens to hold numbers."""
    arrow = require("pyarrow", extra="tables")
    table = {}
    with arrow_errors(columns.source):
        for name, kind in types.items():
            if name in columns.number_names:
                cells = columns.number(name)
                texts = [None if np.isnan(value) else number_text(value) for value in cells.tolist()]
                column = arrow.chunked_array([arrow.array(texts, arrow.string())])
            else:
                column = columns.texts[name]
            table[name] = column.cast(arrow_type(arrow, kind))
    numbers = columns.only([name for name in columns.order if name not in types])
    return replace(numbers, order=columns.order, texts=arrow.table(table))
