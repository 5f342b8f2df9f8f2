"""The regularised covariance of weighted rows, and squared Mahalanobis distances under it.

K = ridge * I + (1 - ridge) * c * S(w)   with S(w) the covariance of the rows under the weights w,

and the smallest ridge for which cond(K) <= max_condition: with l and L the extreme eigenvalues of c * S,

ridge = max(0, (L - kappa * l) / (kappa - 1 + L - kappa * l)),   kappa = max_condition

(Boudt, Rousseeuw, Vanduffel, Verdonck 2020, "The minimum regularized covariance determinant estimator", for the target
T = I). Where S is well conditioned, ridge is 0 and K is the plain covariance. `PrimalRows` works with m x m matrices,
`DualRows` with the Gram matrix of the rows when there are more columns than rows; both give the same distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from mcode._arrays import Floats

_NOTHING = 1e-12  # variance of columns whose variance over all rows is 1: the rows are copies of one


def ridge_for(smallest: float, largest: float, max_condition: float) -> float:
    """Return the smallest share of the identity that brings the condition number down to `max_condition`.

    Rows that are all equal have no covariance: their K is the identity, the distance from them Euclidean.

    Examples
    --------
    >>> ridge_for(1.0, 2.0, max_condition=10.0)
    0.0
    >>> r = ridge_for(0.0, 9.0, max_condition=10.0)
    >>> r, (r + (1 - r) * 9.0) / r
    (0.5, 10.0)
    """
    if largest <= _NOTHING:
        return 1.0
    excess = float(largest - max_condition * smallest)
    return excess / (max_condition - 1.0 + excess) if excess > 0 else 0.0


@dataclass(frozen=True)
class PrimalScatter:
    """A centre and K by ``whitening`` (m x m), which maps K to the identity."""

    center: Floats
    whitening: Floats
    ridge: float
    log_det: float
    least_variance: float

    def distances(self, rows: Floats) -> Floats:
        """Squared distances of `rows` (n x m) from the centre."""
        whitened = rows @ self.whitening
        whitened -= self.center @ self.whitening
        return np.asarray(np.einsum("ij,ij->i", whitened, whitened))


@dataclass(frozen=True)
class PrimalRows:
    """Rows (u x m, dense) with at least as many rows as columns."""

    rows: Floats
    max_condition: float

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    def scatter(self, weights: Floats, inflation: float = 1.0, ridge: float = 0.0) -> PrimalScatter:
        """Centre and K under `weights` (u,), with a ridge of at least `ridge`."""
        used = np.flatnonzero(weights)
        share = weights[used] / weights[used].sum()
        rooted = self.rows[used]
        center = share @ rooted
        rooted -= center
        rooted *= np.sqrt(share * inflation)[:, None]
        K = rooted.T @ rooted
        smallest, largest = _extreme_eigenvalues(K, rank=used.size - 1)
        ridge = max(ridge, ridge_for(smallest, largest, self.max_condition))
        K *= 1.0 - ridge
        K[np.diag_indices_from(K)] += ridge
        # the inverse of a triangular factor whitens as the eigenvectors do, which would take twice as long
        upper = sl.cholesky(K, check_finite=False, overwrite_a=True)
        log_det = 2.0 * float(np.log(np.diagonal(upper)).sum())
        whitening, _ = sl.lapack.dtrtri(upper)
        return PrimalScatter(center, whitening, ridge, log_det, ridge + (1.0 - ridge) * smallest)

    def distances(self, scatter: PrimalScatter) -> Floats:
        """Squared distances of the rows themselves."""
        return scatter.distances(self.rows)


@dataclass(frozen=True)
class DualScatter:
    """A centre and K, of more columns than rows, held as the Cholesky factor of a matrix over the support rows.

    With B the centred support rows times sqrt(c * share), K = ridge * I + (1 - ridge) * B'B and by Woodbury
    ridge * K^-1 = I - b B' (ridge * I + b B B')^-1 B, where b = 1 - ridge.

    Attributes
    ----------
    used : ndarray of shape (s,)
        The support rows.
    share, root : ndarray of shape (s,)
        Their weights, of sum 1, and sqrt(c * share).
    means : ndarray of shape (s,)
        Inner products of the support rows with their centre; `mean_square` is that of the centre with itself.
    cholesky : ndarray of shape (s, s)
        Lower factor of ridge * I + b B B'.
    """

    used: NDArray[np.intp]
    share: Floats
    root: Floats
    means: Floats
    mean_square: float
    cholesky: Floats
    ridge: float
    log_det: float

    @property
    def least_variance(self) -> float:
        """Smallest eigenvalue of K: most directions hold no row."""
        return self.ridge

    def distances(self, products: Floats, squares: Floats, shift: Shift | None = None) -> Floats:
        """Squared distances of rows known by their inner products with the support rows and their squared lengths."""
        to_center = products @ self.share
        along = products - self.means - (to_center - self.mean_square)[:, None]
        euclidean = squares - 2.0 * to_center + self.mean_square
        if shift is not None:
            along -= shift.along
            euclidean = euclidean - 2.0 * (shift.products - shift.of_center) + shift.square
        solved = sl.solve_triangular(self.cholesky, (along * self.root).T, lower=True, check_finite=False)
        inside = (1.0 - self.ridge) * np.einsum("ij,ij->j", solved, solved)
        return np.asarray(np.maximum(euclidean - inside, 0.0) / self.ridge)


@dataclass(frozen=True)
class Shift:
    """Another centre than that of K, as the vector delta between them, by its inner products.

    Attributes
    ----------
    along : ndarray of shape (s,)
        With the centred support rows.
    of_center, square : float
        With the centre of K and with itself.
    products : ndarray of shape (n,)
        With the rows to be scored.
    """

    along: Floats
    of_center: float
    square: float
    products: Floats


@dataclass(frozen=True)
class DualRows:
    """Rows known by their Gram matrix (u x u), with more columns than rows."""

    gram: Floats
    n_columns: int
    max_condition: float

    def scatter(self, weights: Floats, inflation: float = 1.0, ridge: float = 0.0) -> DualScatter:
        """Centre and K under `weights` (u,), with a ridge of at least `ridge`."""
        used = np.flatnonzero(weights)
        share = weights[used] / weights[used].sum()
        inner = self.gram[np.ix_(used, used)]
        means, root = inner @ share, np.sqrt(share * inflation)
        mean_square = float(share @ means)
        centred = (inner - means[:, None] - means[None, :] + mean_square) * root[:, None] * root[None, :]
        ridge = max(ridge, ridge_for(0.0, _largest_eigenvalue(centred), self.max_condition))
        small = (1.0 - ridge) * centred
        small[np.diag_indices_from(small)] += ridge
        lower = sl.cholesky(small, lower=True, check_finite=False, overwrite_a=True)
        log_det = 2.0 * np.log(np.diagonal(lower)).sum() + (self.n_columns - used.size) * np.log(ridge)
        return DualScatter(used, share, root, means, mean_square, lower, ridge, float(log_det))

    def distances(self, scatter: DualScatter) -> Floats:
        """Squared distances of the rows themselves."""
        return scatter.distances(self.gram[:, scatter.used], np.diagonal(self.gram))


def _extreme_eigenvalues(scatter: Floats, rank: int) -> tuple[float, float]:
    """Return the smallest and the largest eigenvalue of a covariance of at most this rank.

    Where it is plainly singular, one eigenvalue has to be found instead of all.
    """
    if rank < scatter.shape[0] or not np.diagonal(scatter).all():
        return 0.0, _largest_eigenvalue(scatter)
    values = np.linalg.eigvalsh(scatter)
    return max(float(values[0]), 0.0), float(values[-1])  # rounding makes zero eigenvalues slightly negative


def _largest_eigenvalue(symmetric: Floats) -> float:
    size = symmetric.shape[0]
    if size < 100 or not symmetric.any():  # of zeros Lanczos makes nothing
        return float(np.linalg.eigvalsh(symmetric)[-1])
    start = np.random.default_rng(0).standard_normal(size)  # fixed: the same bits every time
    largest, _ = eigsh(np.asarray(symmetric), k=1, which="LA", v0=np.asarray(start), tol=1e-6)
    return float(largest[0])
