"""The smallest change that makes a row ordinary, searched over several responses at once.

A change of responses is worth log P(y' | x) - log P(y | x) - price * (number of changed responses): the logarithm of
how much likelier it is that y' was meant and miswritten than that y was meant. Single changes and pairs of the most
suspicious responses are tried together, because two wrong responses can vouch for each other; then one or two responses
at a time are changed, changed back or exchanged for others until nothing gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.detector.whole import Whole
from mcode.models.encoding import Codes

LEAST_PRICE = float(np.log(10.0))
MOST_CANDIDATES = 8
MOST_ROUNDS = 6
VECTORS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Repairs:
    """Repaired responses of several rows.

    Attributes
    ----------
    Y : (n, d) codes after the repair
    log_before, log_after : (n,) arrays, log P(y | x)
    """

    Y: Codes
    log_before: Floats
    log_after: Floats


def price_of_a_change(n_responses: int) -> float:
    """Return what a changed response costs in log-likelihood: log d, since any of the d responses may be the wrong one.

    So a change has to make the row d times likelier, and at least ten times (benchmarks/blame.py).

    Examples
    --------
    >>> round(price_of_a_change(159), 2)
    5.07
    """
    return max(LEAST_PRICE, float(np.log(n_responses)))


def repair_rows(whole: Whole, Y: Codes, suspicion: Floats, price: float | None = None) -> Repairs:
    """Return the repair of each row.

    Parameters
    ----------
    whole : Whole, which scores response vectors of these rows
    Y : (n, d) codes
    suspicion : (n, d) array, which responses to try first
    price : float or None, what a changed response costs in log-likelihood; None is `price_of_a_change`
    """
    price = price_of_a_change(Y.shape[1]) if price is None else price
    others = whole.other_values(np.arange(len(Y)), Y)
    k = min(MOST_CANDIDATES, Y.shape[1])
    candidates = np.argsort(-suspicion, axis=1, kind="stable")[:, :k]
    at_once = max(1, VECTORS_AT_ONCE // (k * k))
    repaired = Y.copy()
    for start in range(0, len(Y), at_once):
        rows = np.arange(start, min(len(Y), start + at_once))
        repaired[rows] = _search(whole, rows, Y[rows], others[rows], candidates[rows], price)
    everything = np.arange(len(Y))
    repaired = _best_values(whole, everything, Y, repaired)
    return Repairs(repaired, whole.joint_log_proba(everything, Y), whole.joint_log_proba(everything, repaired))


def _best_values(whole: Whole, rows: NDArray[np.intp], Y: Codes, repaired: Codes) -> Codes:
    """Let changed responses take the value that fits the repaired row, where that makes it likelier.

    The value that was tried was the likeliest one beside the recorded responses, wrong ones among them. With two values
    there is no other.
    """
    likely = whole.likeliest_values(rows, repaired)
    better = np.where((repaired != Y) & (likely != Y), likely, repaired).astype(np.uint8)
    if (better == repaired).all():
        return repaired
    gains = whole.log_proba(rows, better) > whole.log_proba(rows, repaired)
    return np.where(gains[:, None], better, repaired).astype(np.uint8)


def _search(
    whole: Whole, rows: NDArray[np.intp], Y: Codes, others: Codes, candidates: NDArray[np.intp], price: float
) -> Codes:
    """Improve the responses of some rows until no move gains; every round scores all moves of all rows in one call."""
    k = candidates.shape[1]
    moves = _singles_and_pairs(k)
    changed = np.zeros((len(Y), k), bool)  # which candidates of each row are changed
    worth = np.zeros(len(Y))
    before = whole.log_proba(rows, Y)
    active = np.arange(len(Y))
    for _ in range(MOST_ROUNDS):
        tried = changed[active][:, None, :] ^ moves[None]
        vectors = _apply(Y[active], others[active], candidates[active], tried)
        value = whole.log_proba(np.repeat(rows[active], len(moves)), vectors).reshape(len(active), -1)
        value -= before[active][:, None] + price * tried.sum(axis=2)
        best = value.argmax(axis=1)
        gains = np.flatnonzero(value[np.arange(len(active)), best] > worth[active] + 1e-9)
        changed[active[gains]] = tried[gains, best[gains]]
        worth[active[gains]] = value[gains, best[gains]]
        active = active[gains]
        if not len(active):
            break
    return _apply(Y, others, candidates, changed[:, None, :])


def _singles_and_pairs(k: int) -> NDArray[np.bool_]:
    """Return every set of one or two of k candidates; toggling one that is changed and one that is not is a swap."""
    sets = [*combinations(range(k), 1), *combinations(range(k), 2)]
    moves = np.zeros((len(sets), k), bool)
    for move, chosen in zip(moves, sets, strict=True):
        move[list(chosen)] = True
    return moves


def _apply(Y: Codes, others: Codes, candidates: NDArray[np.intp], changed: NDArray[np.bool_]) -> Codes:
    """Return Y with some candidates at their other value, (n * n_moves, d) for `changed` of shape (n, n_moves, k)."""
    n, n_moves, _ = changed.shape
    out = np.repeat(Y[:, None, :], n_moves, axis=1)
    now, then = (np.take_along_axis(codes, candidates, axis=1)[:, None, :] for codes in (Y, others))
    flipped = np.where(changed, then, now)
    np.put_along_axis(out, np.broadcast_to(candidates[:, None, :], changed.shape), flipped, axis=2)
    return out.reshape(n * n_moves, -1)
