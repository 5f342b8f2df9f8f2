"""Which fold a row belongs to, and which rows are in a sample: by a hash of the row's id alone.

So neither depends on how the table is cut into partitions, on their order, or on how many workers there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._optional import require

Hashes = NDArray[np.uint64]


def hash_ids(ids: NDArray[Any], seed: int = 0) -> Hashes:
    """Return 64 well-mixed bits for each id; whole numbers by splitmix64, texts by the hash of pandas.

    Examples
    --------
    >>> hash_ids(np.array([0, 1])).tolist() == hash_ids(np.array([1, 0]))[::-1].tolist()
    True
    """
    if ids.dtype.kind in "iu":
        bits = ids.astype(np.int64).view(np.uint64)
    else:
        texts = ids.astype(str).astype(object)
        bits = np.asarray(require("pandas", extra="dask").util.hash_array(texts), np.uint64)
    with np.errstate(over="ignore"):
        return _mix(bits + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1))


def _mix(z: Hashes) -> Hashes:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Deal:
    """How rows are dealt out.

    Attributes
    ----------
    n_folds : int
    seed : int
    """

    n_folds: int
    seed: int = 0

    def fold_of(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """Return the fold in which each row is held out.

        Examples
        --------
        >>> np.bincount(Deal(5).fold_of(np.arange(100_000))) // 1000
        array([20, 20, 20, 19, 19])
        """
        return (hash_ids(ids, 2 * self.seed) % np.uint64(self.n_folds)).astype(np.intp)

    def place_of(self, ids: NDArray[Any]) -> Hashes:
        """Return where each row stands in the queue for a sample: the first k of all rows are a uniform sample."""
        return hash_ids(ids, 2 * self.seed + 1)
