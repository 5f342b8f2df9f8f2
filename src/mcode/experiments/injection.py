"""Errors put into a table on purpose, for the clean protocol: kinds by name, and which rows get them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mcode.corruption import Add, Drop, ErrorKind, Flip, Mismatch, Swap
from mcode.models.encoding import Codes

KINDS: dict[str, ErrorKind] = {
    "one flip": Flip(),
    "three flips": Flip(3),
    "one added": Add(),
    "one dropped": Drop(),
    "one swapped": Swap(),
    "y of another row": Mismatch(),
}
SHARE = 0.02


def with_errors(Y: Codes, kind: ErrorKind, share: float, rng: np.random.Generator) -> tuple[Codes, NDArray[np.bool_]]:
    """Return Y with an error of one kind in a share of its rows, and which rows those are.

    Examples
    --------
    >>> Y, wrong = with_errors(np.eye(100, dtype=np.uint8), Flip(), 0.05, np.random.default_rng(0))
    >>> wrong.sum(), (Y != np.eye(100)).sum()
    (np.int64(5), np.int64(5))
    """
    other = kind.corrupt(Y, rng)
    candidates = rng.permutation(np.flatnonzero((other != Y).any(axis=1)))
    rows = candidates[: max(1, round(share * len(Y)))]
    out = Y.copy()
    out[rows] = other[rows]
    return out, np.isin(np.arange(len(Y)), rows)


def with_errors_of_all_kinds(Y: Codes, share: float, rng: np.random.Generator) -> tuple[Codes, NDArray[np.bool_]]:
    """Return Y with errors in a share of its rows, each of a kind drawn at random, and which rows those are."""
    others = np.stack([kind.corrupt(Y, rng) for kind in KINDS.values()])
    drawn = others[rng.integers(len(KINDS), size=len(Y)), np.arange(len(Y))]
    candidates = rng.permutation(np.flatnonzero((drawn != Y).any(axis=1)))
    wrong = np.isin(np.arange(len(Y)), candidates[: round(share * len(Y))])
    return np.where(wrong[:, None], drawn, Y), wrong


def parts(changed: NDArray[np.bool_], share: float, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Deal the rows that an error changed into sets of a share of all rows: no row is in two of them."""
    rows = rng.permutation(np.flatnonzero(changed))
    size = max(1, round(share * len(changed)))
    for start in range(0, len(rows) - size + 1, size):
        yield rows[start : start + size]
