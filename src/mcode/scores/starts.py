"""Deterministic first guesses of the clean half, which depend on the rows alone: no seed, no order of rows.

The idea of DetMCD (Hubert, Rousseeuw & Verdonck 2012): a few simple robust estimates, each of which fails on other
data, and C-steps that improve them all. They are guesses, so float32 and medians of part of the rows are good enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.scores.concentration import nearest

Counts = NDArray[np.int64]
Singles = NDArray[np.float32]


_MEDIAN_ROWS = 2_000  # distinct rows come in the order of a hash, so the first ones are as good as a random sample


def primal_starts(rows: Floats, counts: Counts, size: int) -> Iterator[Floats]:
    """Weights of `size` rows nearest to the median: as they are, by tanh correlation and by spatial sign."""
    Z = rows.astype(np.float32)
    Z -= _medians(Z, counts)
    squares = np.einsum("ij,ij->i", Z, Z)
    yield nearest(squares, counts, size)

    yield nearest(_orthogonalised(Z, counts, np.tanh(Z)), counts, size)
    lengths = np.sqrt(np.where(squares > 0, squares, np.float32(1)))
    yield nearest(_orthogonalised(Z, counts, Z / lengths[:, None]), counts, size)


def dual_starts(gram: Floats, counts: Counts, size: int) -> Iterator[Floats]:
    """Weights of `size` rows nearest to the mean and to the spatial median, from inner products."""
    yield nearest(_squares_from(gram, counts / counts.sum()), counts, size)
    yield nearest(_squares_from(gram, _spatial_median(gram, counts)), counts, size)


def _medians(Z: Singles, counts: Counts) -> Singles:
    copies = np.repeat(Z[:_MEDIAN_ROWS], counts[:_MEDIAN_ROWS], axis=0).T
    middle = copies.shape[1] // 2
    return np.asarray(np.partition(np.ascontiguousarray(copies), middle, axis=1)[:, middle])


def _orthogonalised(Z: Singles, counts: Counts, bounded: NDArray[np.floating[Any]]) -> Singles:
    """Squared distances along the principal axes of `bounded`, a copy of Z in which no row is far, in robust scales."""
    weights = np.sqrt(counts / counts.sum(), dtype=np.float32)
    weighted = bounded * weights[:, None]
    _, axes = np.linalg.eigh(weighted.T @ weighted)
    along = Z @ axes
    along -= _medians(along, counts)
    spread = np.sqrt(np.square(weights) @ np.square(along))
    # More than half of the rows may agree exactly; the scale must not be 0 then.
    scale = np.maximum(_medians(np.abs(along[:_MEDIAN_ROWS]), counts), np.float32(1e-3) * spread)
    along /= np.where(scale > 0, scale, np.float32(1))
    return np.asarray(np.einsum("ij,ij->i", along, along))


def _squares_from(gram: Floats, share: Floats) -> Floats:
    """Squared distance of each row from the mean of the rows under `share`."""
    means = gram @ share
    return np.asarray(np.maximum(np.diagonal(gram) - 2.0 * means + share @ means, 0.0))


def _spatial_median(gram: Floats, counts: Counts, n_rounds: int = 20) -> Floats:
    """Shares of the rows in the point of least total distance to all, by Weiszfeld's iteration."""
    share = counts / counts.sum()
    for _ in range(n_rounds):
        squares = _squares_from(gram, share)
        share = counts / np.sqrt(squares + 1e-12 * squares.mean() + np.finfo(float).tiny)
        share /= share.sum()
    return np.asarray(share)
