"""What a worker remembers between passes, within bounds. Losing it costs time and changes no result."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import psutil

CACHE_SHARE = 0.15  # of a worker's memory limit, for partitions that are read anew in every pass
FULL_SHARE = 0.5  # of the limit: a process that takes more keeps nothing, for it needs the rest to work

# By partition: the token of the coefficients, and the curvature of each piece there. One entry per partition.
curvatures: dict[str, tuple[str, list[Any]]] = {}

_pieces: dict[str, list[Any]] = {}
_size = 0
_lock = Lock()


def kept(key: str, make: Callable[[], list[Any]]) -> list[Any]:
    """Return what was kept under a key, or make it and keep it if there is room.

    What came first stays: passes go round in the same order, and then a cache that throws out the oldest never hits.
    """
    global _size
    found = _pieces.get(key)
    if found is not None:
        return found
    made = make()
    size = sum(_bytes(piece.Z) + piece.Y.nbytes for piece in made)
    with _lock:
        if key not in _pieces and _size + size <= _budget():
            _pieces[key] = made
            _size += size
    return made


def _bytes(Z: Any) -> int:
    return int(Z.nbytes if isinstance(Z, np.ndarray) else 3 * (Z.data.nbytes + Z.indices.nbytes))


def _budget() -> float:
    from distributed import get_worker

    limit = get_worker().memory_manager.memory_limit
    if not limit:
        return float(2**30)
    room = FULL_SHARE * limit - psutil.Process().memory_info().rss
    return float(min(CACHE_SHARE * limit, _size + room))


def forget(prefix: str) -> None:
    """Drop all that is kept under keys that begin like this."""
    global _size
    with _lock:
        for key in [key for key in _pieces if key.startswith(prefix)]:
            _size -= sum(_bytes(piece.Z) + piece.Y.nbytes for piece in _pieces.pop(key))
        for key in [key for key in curvatures if key.startswith(prefix)]:
            del curvatures[key]
