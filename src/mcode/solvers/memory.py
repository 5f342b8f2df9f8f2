"""Arrays that begin at a cache line.

NumPy's large arrays begin 16 bytes after one, so that every vector load of a kernel touches two lines: the sparse
products then take a quarter longer.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CACHE_LINE = 64


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array in C order that begins at a cache line; what it holds is arbitrary.

    Examples
    --------
    >>> empty((3, 8), np.float32).ctypes.data % CACHE_LINE
    0
    """
    size, kind = prod(shape), np.dtype(dtype)
    room = np.empty(size + CACHE_LINE // kind.itemsize, kind)
    first = -room.__array_interface__["data"][0] % CACHE_LINE // kind.itemsize
    return room[first : first + size].reshape(shape)


def columns_of(array: Array, keep: NDArray[np.intp], dtype: Any = None) -> Array:
    """Return some columns of an array, at a cache line."""
    out = empty((len(array), len(keep)), dtype or array.dtype)
    if out.dtype == array.dtype:
        # any mode but "raise" writes without a buffer
        return np.take(array, keep, axis=1, out=out, mode="clip")
    out[...] = array[:, keep]
    return out
