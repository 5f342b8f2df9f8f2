"""Newton's method with conjugate gradients, on all columns of a block at once.

The columns are independent problems that share their matrix products. The iteration knows the objective only by
value, gradient and Hessian product (`objective.Objective`). Steps, numbered as in `minimise`:

1. columns whose gradient is small enough leave the batch;
2. solve H d = -g by preconditioned conjugate gradients, as exactly as the gradient deserves;
3. walk along d, shorter where the slope at the far end says that the step went past the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.solvers.kernels import column_dots, conjugate_step
from mcode.solvers.memory import columns_of, empty
from mcode.solvers.objective import Point

Array = NDArray[Any]

LANES = 8  # columns leave in multiples of this, so that the vector loops stay full
SHRINK_AT = 0.5  # share of live columns at which a block inside the conjugate gradients is packed anew
MAX_ITER = 50  # Newton steps of a column
MAX_CONJUGATE_STEPS = 200
MAX_SHORTER_STEPS = 25
SLOW = 0.7  # share of its gradient that a column keeps in a step without progress,
CLOSE = 1e-3  # once it is this close: farther away a step may lengthen the gradient
LOOSEST = 0.5  # share of the gradient that the conjugate gradients may leave
LEFT_OVER = 0.1  # share of the columns that they leave as exact as they are
MOST_SLOW = 2  # steps in a row without progress; a single one may be one of the few that the conjugate gradients left
STILL_STEEP = 0.75  # a shortened step may go further while the slope is steeper than this share of the initial one
STEEP_AT_THE_END = 0.25  # a step is accepted when the slope at its end is at most this share of the initial one


@dataclass(frozen=True)
class Solution:
    """Coefficients of every column, and how each one got there.

    Attributes
    ----------
    W : (p, b) array
    n_iter : (b,) array of Newton steps
    gradient_norm : (b,) array
    converged : (b,) boolean array: gradient_norm is at most the tolerance asked for
    """

    W: Array
    n_iter: NDArray[np.intp]
    gradient_norm: Floats
    converged: NDArray[np.bool_]


def minimise(start: Point, scale: Floats, tolerance: Floats, max_iter: int = MAX_ITER) -> Solution:
    """Minimise each column until the norm of its gradient is at most tolerance * scale.

    Parameters
    ----------
    start : Point
        An objective for b columns of p coefficients, seen from where to begin; its W is left as it is, and what a mask
        forbids is 0 there.
    scale : (b,) array
        What a large gradient is: its norm at the best constant prediction.
    tolerance : (b,) array
        The relative gradient to reach.
    max_iter : int
        The most Newton steps of a column.
    """
    W = start.W.copy()
    n_iter = np.zeros(W.shape[1], dtype=np.intp)
    relative, slow = np.full(W.shape[1], np.inf), np.zeros(W.shape[1], dtype=np.intp)
    batch = np.arange(W.shape[1])  # the columns still worked on
    point, before = start, relative.copy()

    for _ in range(max_iter + 1):
        # 1. converged columns leave the batch, and so do those that rounding keeps from coming closer
        now = np.sqrt(column_dots(point.gradient, point.gradient)) / scale[batch]
        relative[batch] = now
        slow[batch] = np.where((now > SLOW * before) & (before < CLOSE), slow[batch] + 1, 0)
        moving = (now > tolerance[batch]) & (slow[batch] < MOST_SLOW) & (n_iter[batch] < max_iter)
        if not moving.any():
            break
        keep = whole_lanes(moving, now)
        if len(keep) < len(batch):
            W[:, batch] = point.W
            batch, moving, now = batch[keep], moving[keep], now[keep]
            point = point.columns(keep)
        before = np.where(moving, now, 0.0)  # a column that has stopped stays stopped
        # 2. the Newton direction, more exact the closer the end, but no more exact than the end asks for
        enough = np.maximum(np.sqrt(now), LOOSEST * tolerance[batch] / np.maximum(now, 1e-30))  # a column may be there
        step = conjugate_gradients(point, np.minimum(LOOSEST, enough), moving)
        # 3. the length of the step
        point = _walk(point, step)
        n_iter[batch[moving]] += 1
    W[:, batch] = point.W
    return Solution(W, n_iter, relative * scale, relative <= tolerance)


@njit(cache=True, nogil=True)
def whole_lanes(moving: NDArray[np.bool_], now: Floats) -> NDArray[np.intp]:
    """Return the columns to keep: those that move, filled up to whole lanes by those closest to moving."""
    chosen, n_chosen = moving.copy(), 0
    for c in range(len(moving)):
        n_chosen += moving[c]
    missing = min(-n_chosen % LANES, len(moving) - n_chosen)
    for _ in range(missing):
        next_one = -1
        for c in range(len(now)):
            if not chosen[c] and (next_one < 0 or now[c] > now[next_one]):
                next_one = c
        chosen[next_one] = True
    return np.flatnonzero(chosen)


def conjugate_gradients(point: Point, forcing: Floats, moving: NDArray[np.bool_]) -> Array:
    """Solve H d = -g for each column until |H d + g| <= forcing * |g|; a column that does not move gets d = 0.

    The products cost the same for one live column as for a full block. So the block shrinks when half of its columns
    are done, and the last tenth is left as exact as it is then.
    """
    shape, dtype = point.gradient.shape, point.gradient.dtype
    step, D, HD = (empty(shape, dtype) for _ in range(3))
    step[...] = 0
    index = np.arange(step.shape[1])  # where the columns of the shrinking block stand in `step`
    part, diagonal = step, point.inverse_diagonal()
    residual = np.negative(point.gradient, out=empty(shape, dtype))
    np.multiply(residual, diagonal, out=D)
    rz, rr = column_dots(D, residual), column_dots(residual, residual)
    target = forcing**2 * rr
    live = moving & (rr > 0)
    few = LEFT_OVER * live.sum()
    for _ in range(MAX_CONJUGATE_STEPS):
        curvature = point.hessian_product(D, HD)
        n_live = conjugate_step(part, D, HD, curvature, residual, diagonal, rz, rr, live, target)
        if n_live <= few:
            break
        if n_live <= SHRINK_AT * len(index) - LANES:
            keep = whole_lanes(live, rr / np.maximum(target, 1e-300))
            step[:, index] = part
            index, rz, rr, target, live = index[keep], rz[keep], rr[keep], target[keep], live[keep]
            part, D, residual, diagonal = (columns_of(a, keep) for a in (part, D, residual, diagonal))
            point, HD = point.columns(keep), empty(D.shape, dtype)
    if part is not step:
        step[:, index] = part
    return step


def _walk(point: Point, step: Array) -> Point:
    """Go from `point` along `step`, in each column as far as the slope allows.

    The slope along the step is negative at its start. At the end of a good step it is near zero; where it is clearly
    positive the step passed the minimum. Then the minimum is bracketed: `short` is a length that is safe, `long` one
    that is too far.
    """
    slope = np.abs(column_dots(point.gradient, step))
    length, short, long = np.ones(len(slope)), np.zeros(len(slope)), np.full(len(slope), np.inf)
    for attempt in range(MAX_SHORTER_STEPS + 1):
        W = np.multiply(length.astype(step.dtype), step, out=empty(step.shape, step.dtype))
        W += point.W
        far = point.objective.at(W)
        if not change_lengths(slope, column_dots(far.gradient, step), length, short, long, attempt):
            break
    return far


@njit(cache=True, nogil=True, error_model="numpy")
def change_lengths(slope: Floats, end: Floats, length: Floats, short: Floats, long: Floats, attempt: int) -> bool:
    """Choose another length, in place, for the columns whose step ends where it should not; say whether there are any.

    In a bracket it is the middle; before there is one, where the line through the slopes at the start and at the `end`
    crosses zero, between 0.1 and 0.5 of the step. The last attempt falls back on what is safe.
    """
    any_left = False
    for c in range(len(slope)):
        too_far = not end[c] <= STEEP_AT_THE_END * slope[c]  # also where the end is not a number
        too_short = end[c] < -STILL_STEEP * slope[c] and long[c] < np.inf
        if attempt == MAX_SHORTER_STEPS or not (too_far or too_short):
            continue
        any_left = True
        if too_far:
            long[c] = length[c]
        else:
            short[c] = length[c]
        if attempt == MAX_SHORTER_STEPS - 1:
            length[c] = short[c]
        elif short[c] > 0:
            length[c] = 0.5 * (short[c] + long[c])
        else:
            steep = abs(end[c]) if abs(end[c]) < np.inf else np.inf
            length[c] = long[c] * min(max(slope[c] / max(slope[c] + steep, 1e-300), 0.1), 0.5)
    return any_left
