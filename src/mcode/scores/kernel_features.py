"""Features whose inner products approximate the Gaussian kernel: the Nystroem method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.scores.products import inner_products, squared_lengths

_BLOCK = 4_096  # rows at a time: their kernel values stay in cache
_NEGLIGIBLE = 1e-6  # eigenvalue of the landmarks' kernel, relative to the largest, below which float32 is noise


def gaussian_kernel(A: Matrix, B: Matrix, gamma: float) -> Floats:
    """exp(-gamma |a - b|^2) for each row a of `A` and b of `B`, in the precision of `A`.

    Examples
    --------
    >>> gaussian_kernel(np.array([[0.0], [1.0]]), np.array([[0.0]]), gamma=1.0).round(3)
    array([[1.   ],
           [0.368]])
    """
    values = inner_products(A, B)
    values *= -2.0
    values += squared_lengths(A)[:, None]
    values += squared_lengths(B)
    np.maximum(values, 0.0, out=values)
    values *= -gamma
    return np.asarray(np.exp(values, out=values))


@dataclass(frozen=True)
class NystroemFeatures:
    """F = K(M, L) U diag(e)^-1/2 with L the landmark rows and K(L, L) = U diag(e) U', so that F F' is near K(M, M).

    Attributes
    ----------
    landmarks : matrix of shape (l, m)
    mapping : ndarray of shape (l, r)
        U diag(e)^-1/2 without negligible eigenvalues.
    middle : ndarray of shape (m,), or None for sparse rows
        Taken off before float32: distances do not change, rounding shrinks.
    gamma : float
    """

    landmarks: Matrix
    mapping: Floats
    middle: Floats | None
    gamma: float

    @classmethod
    def of(cls, landmarks: Matrix, gamma: float) -> NystroemFeatures:
        """Prepare the features for `landmarks`."""
        values, vectors = np.linalg.eigh(gaussian_kernel(landmarks, landmarks, gamma))
        kept = values > _NEGLIGIBLE * values[-1]
        mapping = np.asarray(vectors[:, kept] / np.sqrt(values[kept]))
        middle = np.asarray(landmarks.mean(axis=0)) if isinstance(landmarks, np.ndarray) else None
        return cls(landmarks, mapping, middle, gamma)

    def transform(self, M: Matrix, precision: type[np.floating[Any]] = np.float64) -> NDArray[Any]:
        """Return the features (n x r) of the rows of `M`."""
        features = np.empty((M.shape[0], self.mapping.shape[1]), dtype=precision)
        landmarks, mapping = self._prepared(self.landmarks, precision), self.mapping.astype(precision)
        for at in range(0, M.shape[0], _BLOCK):
            kernel = gaussian_kernel(self._prepared(M[at : at + _BLOCK], precision), landmarks, self.gamma)
            features[at : at + _BLOCK] = kernel.astype(precision, copy=False) @ mapping
        return features

    def _prepared(self, M: Matrix, precision: type[np.floating[Any]]) -> Matrix:
        return M if self.middle is None else np.asarray(M - self.middle, dtype=precision)
