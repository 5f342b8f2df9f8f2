"""How much better each response is predicted when one other response is known: all pairs, cheaply.

For the pair (i, j) the logits of i given the context are kept, and each value v of j may shift them:

    P(y_i = 1 | x, y_j = v) = sigmoid(logit_i(x) + shift_ijv).

A shift is a problem in one unknown. Its rows enter only through their logits, and those are counted into a few bins, so
a pair costs bins and not rows; and the rows where j is absent are all rows without those where it is present, so that
filling the bins costs the present responses only. d^2 regressions are never fitted.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode._progress import advance
from mcode.models.encoding import Codes
from mcode.solvers.threads import n_threads, run_all

BINS = 32
RIDGE = 1.0  # a shift is penalised by RIDGE / 2 * shift^2: a pair that never meets keeps a finite one


def pair_gains(logits: Floats, Y: Codes, fold_of_row: NDArray[np.intp]) -> Floats:
    """Return gain[i, j], the held-out log-likelihood of response i that knowing response j adds, shape (d, d).

    Parameters
    ----------
    logits : (n, d) array, out-of-fold log odds of each response given the context alone
    Y : (n, d) codes
    fold_of_row : (n,) array; the shifts are judged on folds on which they were not fitted
    """
    n, d = Y.shape
    rows, present = np.nonzero(Y)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    gain = np.zeros((d, d))
    n_folds = int(fold_of_row.max()) + 1

    def fill(i: int) -> None:
        edges = np.quantile(logits[:, i], np.linspace(0, 1, BINS + 1)[1:-1])
        bins = np.searchsorted(edges, logits[:, i])
        total = np.maximum(np.bincount(bins, minlength=BINS), 1)
        center = np.bincount(bins, weights=logits[:, i], minlength=BINS) / total
        _gains_of_one(bins, center, Y[:, i], starts, present, fold_of_row, n_folds, gain[i])
        gain[i, i] = 0.0

    at_once = 16 * n_threads()
    for start in range(0, d, at_once):
        advance("compare pairs of responses", start, d)
        run_all([partial(fill, i) for i in range(start, min(d, start + at_once))])
    advance("compare pairs of responses", d, d)
    return gain


@njit(cache=True, nogil=True)
def _gains_of_one(
    bins: Any, center: Any, y: Any, starts: Any, present: Any, fold: Any, n_folds: int, gain: Any
) -> None:
    """Write the gain of one response from each other one."""
    d, n_bins = len(gain), len(center)
    count = np.zeros((d, n_folds, n_bins))
    ones = np.zeros((d, n_folds, n_bins))
    all_count = np.zeros((n_folds, n_bins))
    all_ones = np.zeros((n_folds, n_bins))
    for row in range(len(bins)):
        f, b, t = fold[row], bins[row], float(y[row])
        all_count[f, b] += 1.0
        all_ones[f, b] += t
        for k in range(starts[row], starts[row + 1]):
            count[present[k], f, b] += 1.0
            ones[present[k], f, b] += t
    for j in range(d):
        gain[j] = _held_out_gain(center, count[j], ones[j]) + _held_out_gain(
            center, all_count - count[j], all_ones - ones[j]
        )


@njit(cache=True, nogil=True)
def _held_out_gain(center: Any, count: Any, ones: Any) -> float:
    """Return what a shift, fitted on the other folds, adds to the log-likelihood of each fold."""
    total_count, total_ones = count.sum(axis=0), ones.sum(axis=0)
    gained, shift = 0.0, 0.0
    for f in range(len(count)):
        if count[f].sum() == 0.0:
            continue
        shift = _best_shift(center, total_count - count[f], total_ones - ones[f], shift)
        for b in range(len(center)):
            if count[f, b] > 0.0:
                moved = center[b] + shift
                gained += ones[f, b] * shift - count[f, b] * (np.logaddexp(0.0, moved) - np.logaddexp(0.0, center[b]))
    return gained


@njit(cache=True, nogil=True)
def _best_shift(center: Any, count: Any, ones: Any, shift: float) -> float:
    """Return the shift of the logits that predicts best, by Newton's method from the shift of another fold."""
    for _ in range(50):
        slope, curvature = ones.sum() - RIDGE * shift, RIDGE
        for b in range(len(center)):
            if count[b] > 0.0:
                p = 1.0 / (1.0 + np.exp(-(center[b] + shift)))
                slope -= count[b] * p
                curvature += count[b] * p * (1.0 - p)
        step = min(max(slope / curvature, -2.0), 2.0)  # where all rows are certain, a full step would be endless
        shift += step
        if abs(step) < 1e-5:
            break
    return shift
