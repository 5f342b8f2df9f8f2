"""The minimum covariance determinant by concentration steps.

A C-step keeps the h rows nearest to a centre under a covariance and takes their centre and covariance instead; the
determinant never grows (Rousseeuw & Van Driessen 1999).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from mcode._arrays import Floats
from mcode.scores.scatter import PrimalRows, PrimalScatter

_SCREENING_STEPS = 2  # of each start, before the best one alone goes on
_MAX_STEPS = 50
_SETTLED = 1e-6  # change of log det per column below which further C-steps are not worth their time
_FLAGGED = 0.025  # share of normal rows that the reweighting step leaves out

Counts = NDArray[np.int64]


class Scatter(Protocol):
    """A centre and a covariance; `PrimalScatter` or `DualScatter`."""

    @property
    def ridge(self) -> float:
        """Share of the identity in the covariance."""

    @property
    def log_det(self) -> float:
        """Logarithm of its determinant."""


S = TypeVar("S", bound=Scatter)


class Rows(Protocol[S]):
    """Rows whose weighted covariances are wanted; `PrimalRows` or `DualRows`."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    def scatter(self, weights: Floats, inflation: float, ridge: float) -> S:
        """Centre and covariance under `weights`, with a ridge of at least `ridge`."""

    def distances(self, scatter: S) -> Floats:
        """Squared distance of each row."""


@dataclass(frozen=True)
class Concentrated(Generic[S]):
    """The scatter of the support, its weights over the distinct rows, and the number of C-steps."""

    scatter: S
    weights: Floats
    n_steps: int


def consistency_factor(n_columns: int, kept: float) -> float:
    """Factor by which the covariance of the nearest share `kept` of normal rows is too small (Croux & Haesbroeck 1999).

    Examples
    --------
    >>> consistency_factor(10, 1.0), round(consistency_factor(10, 0.5), 3)
    (1.0, 1.531)
    """
    return 1.0 if kept >= 1.0 else float(kept / chi2.cdf(chi2.ppf(kept, n_columns), n_columns + 2))


def nearest(distances: NDArray[np.floating[Any]], counts: Counts, size: int) -> Floats:
    """Weights over distinct rows of the `size` nearest rows; the last one may be taken with part of its copies.

    Examples
    --------
    >>> nearest(np.array([0.3, 0.1, 0.2]), np.array([1, 2, 2]), 3)
    array([0., 2., 1.])
    """
    order = np.argsort(distances, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    weights = np.empty(counts.size)
    weights[order] = np.clip(size - before, 0, counts[order])
    return weights


def concentrate(rows: Rows[S], counts: Counts, starts: Iterable[Floats], inflation: float) -> Concentrated[S]:
    """Make C-steps from each of `starts` (weights over the rows) to the smallest determinant; keep the best."""
    screened = [_c_steps(rows, counts, start, inflation, 0.0, _SCREENING_STEPS) for start in starts]
    # Determinants compare only under one ridge: the largest that any start needs.
    ridge = max(each.scatter.ridge for each in screened)
    best = min(screened, key=lambda each: _log_det(rows, each, inflation, ridge))
    return _c_steps(rows, counts, best.weights, inflation, ridge, _MAX_STEPS)


def reweight(rows: PrimalRows, counts: Counts, found: Concentrated[PrimalScatter]) -> Concentrated[PrimalScatter]:
    """Estimate again from all rows within the 97.5 % point of chi-square, and at least from the support."""
    inside = rows.distances(found.scatter) < chi2.isf(_FLAGGED, rows.n_columns)
    weights = np.where(inside, counts, found.weights).astype(np.float64)
    scatter = rows.scatter(weights, consistency_factor(rows.n_columns, 1.0 - _FLAGGED))
    return Concentrated(scatter, weights, found.n_steps)


def _log_det(rows: Rows[S], screened: Concentrated[S], inflation: float, ridge: float) -> float:
    if screened.scatter.ridge == ridge:
        return screened.scatter.log_det
    return rows.scatter(screened.weights, inflation, ridge).log_det


def _c_steps(
    rows: Rows[S], counts: Counts, weights: Floats, inflation: float, ridge: float, most: int
) -> Concentrated[S]:
    size = round(weights.sum())
    scatter = rows.scatter(weights, inflation, ridge)
    n_steps = 0
    while n_steps < most:
        n_steps, before = n_steps + 1, scatter
        weights = nearest(rows.distances(before), counts, size)
        scatter = rows.scatter(weights, inflation, before.ridge)
        if before.log_det - scatter.log_det <= _SETTLED * rows.n_columns and before.ridge == scatter.ridge:
            break
    return Concentrated(scatter, weights, n_steps)
