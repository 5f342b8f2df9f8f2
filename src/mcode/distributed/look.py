"""What is learned from a table before anything is fitted: values, moments, counts, and a sample of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.detector.judged import Typical
from mcode.distributed.cluster import Cluster
from mcode.distributed.deal import Deal
from mcode.distributed.table import Rows, Source, Table, as_part
from mcode.errors import InputError
from mcode.models.encoding import MISSING, TWO_VALUES, ResponseEncoding
from mcode.models.missing import has_missing
from mcode.solvers.design import MOST_AXES


@dataclass(frozen=True)
class First:
    """Sums of the first pass, which needs to know nothing of the table."""

    n_rows: int
    total: Floats
    binary: NDArray[np.bool_]
    sparse: bool
    values: list[NDArray[Any]]
    names: list[str]

    def __add__(self, other: First) -> First:
        values = [_union(a, b, name) for a, b, name in zip(self.values, other.values, self.names, strict=True)]
        return First(
            self.n_rows + other.n_rows,
            self.total + other.total,
            self.binary & other.binary,
            self.sparse or other.sparse,
            values,
            self.names,
        )


def _union(a: NDArray[Any], b: NDArray[Any], name: str) -> NDArray[Any]:
    if np.array_equal(a, b):
        return a
    try:
        both = np.unique(np.concatenate([a, b]).astype(object))
    except TypeError:
        both = np.array([])
    if not 1 <= len(both) <= 2:
        shown = ", ".join(repr(str(v)) for v in [*a.tolist(), *b.tolist()][:4])
        raise InputError("Y", f"column {name!r} holds {shown} in different partitions", TWO_VALUES)
    return both


def first_look(source: Source, encoding: ResponseEncoding | None) -> First:
    """Return the sums of one partition."""
    part = as_part(source)
    found = part.inspect()
    own = encoding or found
    rows = part.rows(own)
    if has_missing(rows.Y):
        row, column = (int(at[0]) for at in np.nonzero(rows.Y == MISSING))
        raise InputError(
            "Y",
            f"row {rows.ids[row]}, column {own.names[column]!r} is missing",
            "tables in partitions are fitted and audited where all responses are known; fill or drop these rows first",
        )
    typical = Typical.of(rows.X, rows.Y)
    total = np.asarray(rows.X.sum(axis=0, dtype=np.float64)).ravel()
    return First(len(rows.Y), total, typical.binary, bool(sp.issparse(rows.X)), own.values, own.names)


@dataclass(frozen=True)
class Second:
    """Sums of the second pass: moments about the mean, and how often each response is present in each fold."""

    gram: Floats  # (m, m), or (m,) where axes are not looked for: sums of products, or of squares
    ones: Floats  # (n_folds, d)
    rows: Floats  # (n_folds,)

    def __add__(self, other: Second) -> Second:
        return Second(self.gram + other.gram, self.ones + other.ones, self.rows + other.rows)


def second_look(source: Source, encoding: ResponseEncoding, mean: Floats | None, deal: Deal) -> Second:
    """Return the sums of one partition; `mean` is None where the context is sparse."""
    rows = as_part(source).rows(encoding)
    fold = deal.fold_of(rows.ids)
    ones = np.stack([rows.Y[fold == f].sum(axis=0, dtype=np.float64) for f in range(deal.n_folds)])
    counts = np.bincount(fold, minlength=deal.n_folds).astype(np.float64)
    return Second(_products(rows.X, mean), ones, counts)


def _products(X: Matrix, mean: Floats | None) -> Floats:
    if mean is None:
        return np.zeros(X.shape[1])
    total = np.zeros((X.shape[1], X.shape[1])) if X.shape[1] <= MOST_AXES else np.zeros(X.shape[1])
    for start in range(0, X.shape[0], 8192):
        centred = np.asarray(X[start : start + 8192] - mean, np.float64)
        total += centred.T @ centred if total.ndim == 2 else np.einsum("ij,ij->j", centred, centred)
    return total


@dataclass(frozen=True)
class Known:
    """What is known of a table before anything is fitted.

    Attributes
    ----------
    encoding : ResponseEncoding of all partitions
    n_rows : int
    sparse : whether the context is sparse
    mean, gram : (m,) and (m, m) arrays: moments of a dense context, the second about the mean (or its diagonal)
    ones, rows : (n_folds, d) and (n_folds,) arrays: present responses and rows of each fold
    typical : Typical
    """

    encoding: ResponseEncoding
    n_rows: int
    sparse: bool
    mean: Floats
    gram: Floats
    ones: Floats
    rows: Floats
    typical: Typical

    @property
    def one_valued(self) -> list[str]:
        """Responses that have one value only."""
        ones = self.ones.sum(axis=0)
        return [self.encoding.names[j] for j in np.flatnonzero((ones == 0) | (ones == self.n_rows))]

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each feature, 1 where it does not vary."""
        squares = np.diagonal(self.gram) if self.gram.ndim == 2 else self.gram
        deviation = np.sqrt(squares / self.n_rows)
        return np.where(deviation > 1e-12 * np.abs(self.mean), deviation, 1.0)


def look(cluster: Cluster, table: Table, deal: Deal) -> Known:
    """Go through the table twice and return what is known then."""
    first: First = cluster.total(cluster.compute(first_look, table.sources, table.encoding), "read the table")
    encoding = table.encoding or ResponseEncoding(first.values, list(table.response_names))
    check_two_values(encoding)
    mean = first.total / first.n_rows
    about = None if first.sparse else mean
    second: Second = cluster.total(cluster.compute(second_look, table.sources, encoding, about, deal))
    typical = Typical(
        np.zeros(len(mean)) if first.sparse else mean, first.binary, second.ones.sum(axis=0) / first.n_rows
    )
    return Known(encoding, first.n_rows, first.sparse, mean, second.gram, second.ones, second.rows, typical)


def check_two_values(encoding: ResponseEncoding) -> None:
    """Refuse responses with several values."""
    for name, n_values in zip(encoding.names, encoding.n_values, strict=True):
        if n_values > 2:
            raise InputError(
                "Y",
                f"column {name!r} has {n_values} values",
                "tables in partitions are fitted and audited with two values per response; use one column per value",
            )


@dataclass(frozen=True)
class Sample:
    """Rows that stand first in the queue: a uniform sample, the same whatever the partitions.

    Attributes
    ----------
    place : (k,) array, where each row stands
    rows : Rows
    most : int, rows to keep
    """

    place: NDArray[np.uint64]
    rows: Rows
    most: int

    def __add__(self, other: Sample) -> Sample:
        both = Sample(
            np.concatenate([self.place, other.place]),
            Rows(
                stacked([self.rows.X, other.rows.X]),
                np.concatenate([self.rows.Y, other.rows.Y]),
                np.concatenate([self.rows.ids, other.rows.ids]),
            ),
            self.most,
        )
        return both.first()

    def first(self) -> Sample:
        """Return the first rows of the queue, in its order."""
        chosen = np.argsort(self.place, kind="stable")[: self.most]
        rows = self.rows
        return Sample(self.place[chosen], Rows(rows.X[chosen], rows.Y[chosen], rows.ids[chosen]), self.most)


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Return the rows of several matrices as one, sparse where all are."""
    if all(sp.issparse(part) for part in parts):
        return sp.csr_matrix(sp.vstack(list[Any](parts)))
    return np.vstack([part.toarray() if sp.issparse(part) else part for part in parts])


def draw(source: Source, encoding: ResponseEncoding, deal: Deal, limit: int, most: int, fold: int | None) -> Sample:
    """Return the rows of one partition that stand before `limit` in the queue, of one fold or of all."""
    rows = as_part(source).rows(encoding)
    place = deal.place_of(rows.ids)
    mine = place <= np.uint64(limit)
    if fold is not None:
        mine &= deal.fold_of(rows.ids) == fold
    at = np.flatnonzero(mine)
    return Sample(place[at], Rows(rows.X[at], rows.Y[at], rows.ids[at]), most).first()


def sample(
    cluster: Cluster, table: Table, encoding: ResponseEncoding, deal: Deal, most: int, fold: int | None = None
) -> Rows:
    """Return a uniform sample of `most` rows, or all where there are fewer."""
    candidates = table.n_rows if fold is None else table.n_rows / deal.n_folds
    share = min(1.0, (most + 6.0 * most**0.5 + 10.0) / max(1.0, candidates))  # enough with near certainty
    limit = min(2**64 - 1, int(share * 2**64))
    parts = cluster.compute(draw, table.sources, encoding, deal, limit, most, fold)
    found: Sample = cluster.total(parts, "draw a sample")
    return found.rows
