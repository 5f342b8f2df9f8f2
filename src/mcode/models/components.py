"""Components of a mixture: densities that can be fitted to weighted rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from mcode._arrays import Floats

Covariance = Literal["diagonal", "full"]

# Rows are brought to unit variance first; no component may be narrower than this in any direction, nor surer.
SMALLEST_VARIANCE = 1e-2
SMALLEST_RATE = 1e-3
LOG_2PI = float(np.log(2.0 * np.pi))


class Components(Protocol):
    """k densities over the rows of a matrix."""

    def log_density(self, M: Floats) -> Floats:
        """Return the log density of each row under each component, shape (n, k)."""

    def fitted(self, M: Floats, weight: Floats) -> Components:
        """Return the components of the largest likelihood for rows that count `weight`, shape (n, k), in each."""


@dataclass(frozen=True)
class DiagonalGaussians:
    """Normal distributions with independent columns.

    Examples
    --------
    >>> unit = DiagonalGaussians(np.zeros((1, 2)), np.ones((1, 2)))
    >>> unit.log_density(np.zeros((1, 2))).round(4)
    array([[-1.8379]])
    """

    mean: Floats  # (k, p)
    variance: Floats  # (k, p)

    def log_density(self, M: Floats) -> Floats:
        """Return the log density of each row under each component, shape (n, k)."""
        precision = 1.0 / self.variance
        squares = (M**2) @ precision.T - 2.0 * M @ (self.mean * precision).T + (self.mean**2 * precision).sum(axis=1)
        return np.asarray(-0.5 * (squares + np.log(self.variance).sum(axis=1) + M.shape[1] * LOG_2PI))

    def fitted(self, M: Floats, weight: Floats) -> DiagonalGaussians:
        """Return weighted means and variances; a variance below the floor is at the floor, which is then the best."""
        total = np.maximum(weight.sum(axis=0), 1e-10)[:, None]
        mean = weight.T @ M / total
        variance = np.empty_like(mean)
        for k in range(len(mean)):
            variance[k] = weight[:, k] @ (M - mean[k]) ** 2 / total[k]
        return DiagonalGaussians(mean, np.maximum(variance, SMALLEST_VARIANCE))

    def part(self, columns: slice) -> DiagonalGaussians:
        """Return the marginal distributions of some columns."""
        return DiagonalGaussians(self.mean[:, columns], self.variance[:, columns])


@dataclass(frozen=True)
class FullGaussians:
    """Normal distributions with any covariance.

    Examples
    --------
    >>> unit = FullGaussians(np.zeros((1, 2)), np.eye(2)[None])
    >>> unit.log_density(np.zeros((1, 2))).round(4)
    array([[-1.8379]])
    """

    mean: Floats  # (k, p)
    covariance: Floats  # (k, p, p)

    def log_density(self, M: Floats) -> Floats:
        """Return the log density of each row under each component, shape (n, k)."""
        out = np.empty((len(M), len(self.mean)))
        for k, (mean, covariance) in enumerate(zip(self.mean, self.covariance, strict=True)):
            root = np.linalg.cholesky(covariance)
            away = np.linalg.solve(root, (M - mean).T)
            out[:, k] = -0.5 * ((away**2).sum(axis=0) + M.shape[1] * LOG_2PI) - np.log(np.diag(root)).sum()
        return out

    def fitted(self, M: Floats, weight: Floats) -> FullGaussians:
        """Return weighted means and covariances, whose eigenvalues are at the floor at least."""
        total = np.maximum(weight.sum(axis=0), 1e-10)
        mean = weight.T @ M / total[:, None]
        covariance = np.empty((len(mean), M.shape[1], M.shape[1]))
        for k in range(len(mean)):
            away = M - mean[k]
            values, axes = np.linalg.eigh((weight[:, k] * away.T) @ away / total[k])
            covariance[k] = (axes * np.maximum(values, SMALLEST_VARIANCE)) @ axes.T
        return FullGaussians(mean, covariance)

    def part(self, columns: slice) -> FullGaussians:
        """Return the marginal distributions of some columns."""
        return FullGaussians(self.mean[:, columns], self.covariance[:, columns, columns])


@dataclass(frozen=True)
class Bernoullis:
    """Independent columns of 0 and 1.

    Examples
    --------
    >>> Bernoullis(np.array([[0.5, 0.25]])).log_density(np.array([[1.0, 0.0]])).round(4)
    array([[-0.9808]])
    """

    rate: Floats  # (k, d)

    def log_density(self, M: Floats) -> Floats:
        """Return the log probability of each row under each component, shape (n, k)."""
        return np.asarray(M @ (np.log(self.rate) - np.log1p(-self.rate)).T + np.log1p(-self.rate).sum(axis=1))

    def fitted(self, M: Floats, weight: Floats) -> Bernoullis:
        """Return weighted rates, kept away from 0 and 1."""
        rate = weight.T @ M / np.maximum(weight.sum(axis=0), 1e-10)[:, None]
        return Bernoullis(np.clip(rate, SMALLEST_RATE, 1.0 - SMALLEST_RATE))


@dataclass(frozen=True)
class Products:
    """Components over columns of two sorts, independent of each other within a component."""

    first: Components
    second: Components
    n_first: int

    def log_density(self, M: Floats) -> Floats:
        """Return the sum of both log densities, shape (n, k)."""
        return self.first.log_density(M[:, : self.n_first]) + self.second.log_density(M[:, self.n_first :])

    def fitted(self, M: Floats, weight: Floats) -> Products:
        """Fit both parts with the same weights."""
        first = self.first.fitted(M[:, : self.n_first], weight)
        return Products(first, self.second.fitted(M[:, self.n_first :], weight), self.n_first)


def gaussians(n_components: int, n_columns: int, covariance: Covariance) -> DiagonalGaussians | FullGaussians:
    """Return standard normal components, to be fitted."""
    mean = np.zeros((n_components, n_columns))
    if covariance == "full":
        return FullGaussians(mean, np.repeat(np.eye(n_columns)[None], n_components, axis=0))
    return DiagonalGaussians(mean, np.ones((n_components, n_columns)))
