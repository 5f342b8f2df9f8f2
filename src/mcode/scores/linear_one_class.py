"""The linear one-class support vector machine, for many rows and few features.

minimise over w, s:   |w|^2 / 2 - s + sum_i c_i max(0, s - w'f_i) / (nu * sum_i c_i)

by Newton steps on a smoothed hinge that is sharpened until it is the hinge. Only rows near or below the plane matter, a
share of about nu: the solver works on the lowest rows and looks at all of them to check that none was forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats

_SAMPLE = 10_000  # rows of the first guess
_WORKING = 10.0  # times nu: share of the rows that the solver works on
_SHARPNESS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # width of the smoothed hinge, relative to the value of a typical row
_MAX_NEWTON = 30
_MAX_ROUNDS = 10

Features = NDArray[np.floating[Any]]


def fit_linear_one_class(F: Features, counts: NDArray[np.int64], nu: float) -> tuple[Floats, float]:
    """Return the normal w (r,) and the offset s of the plane that leaves a share `nu` of the rows below it.

    Row i stands for ``counts[i]`` copies; rows must come in no particular order, since the first ones give the guess.

    Examples
    --------
    >>> w, s = fit_linear_one_class(np.array([[1.0], [2.0], [3.0], [4.0]]), np.ones(4, dtype=np.int64), nu=0.4)
    >>> w.round(3), round(s, 2)
    (array([1.375]), 2.75)
    """
    total, first = counts.sum(), slice(0, _SAMPLE)
    slopes = counts / (nu * total)
    middle = np.asarray(counts[first] @ F[first], dtype=np.float64) / counts[first].sum()
    unit = float(middle @ middle)  # value of a typical row under the plane through the middle
    guess = middle, float(np.quantile(F[first] @ middle, nu))
    w, s = _newton(F[first], slopes[first] * (total / counts[first].sum()), *guess, unit)
    values = F @ w.astype(F.dtype)
    working = values <= np.quantile(values, min(1.0, _WORKING * nu))
    for _ in range(_MAX_ROUNDS):
        working |= values < s
        w, s = _newton(F[working], slopes[working], w, s, unit)
        values = F @ w.astype(F.dtype)
        if not np.any(values[~working] < s):
            break
    return w, s


def _newton(F: Features, slopes: Floats, w: Floats, s: float, unit: float) -> tuple[Floats, float]:
    G = np.asarray(F, dtype=np.float64)
    values = np.asarray(G @ w, dtype=np.float64)
    for sharpness in _SHARPNESS:
        width = sharpness * unit
        for _ in range(_MAX_NEWTON):
            gradient, hessian = _derivatives(G, slopes, w, s, values, width)
            if abs(gradient[-1]) < 1e-6 and np.abs(gradient[:-1]).max() < 1e-6 * np.sqrt(unit):
                break
            step = np.asarray(np.linalg.solve(hessian, -gradient), dtype=np.float64)
            along = np.asarray(G @ step[:-1], dtype=np.float64)
            size = _step_size(slopes, w, s, values, step, along, width)
            w, s, values = w + size * step[:-1], s + size * step[-1], values + size * along
    return w, float(s)


def _derivatives(F: Floats, slopes: Floats, w: Floats, s: float, values: Floats, width: float) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the smoothed problem in (w, s)."""
    below = np.clip((s - values) / width, 0.0, 1.0)
    alpha = slopes * below
    gradient = np.append(w - alpha @ F, alpha.sum() - 1.0)
    band = (below > 0.0) & (below < 1.0)
    curved = np.hstack([-F[band], np.ones((int(band.sum()), 1))])
    hessian = curved.T @ (curved * (slopes[band] / width)[:, None])
    # Where no row is in the band s has no curvature: a thousandth of a row's keeps the step finite.
    hessian[np.diag_indices_from(hessian)] += np.append(np.ones(w.size), 1e-3 * slopes.min() / width)
    return gradient, hessian


def _step_size(slopes: Floats, w: Floats, s: float, values: Floats, step: Floats, along: Floats, width: float) -> float:
    """Zero of the derivative along the step, by bisection: the problem is convex."""

    def derivative(size: float) -> float:
        below = np.clip((s + size * step[-1] - values - size * along) / width, 0.0, 1.0)
        towards = (slopes * below) @ (step[-1] - along)
        return float((w + size * step[:-1]) @ step[:-1] - step[-1] + towards)

    if derivative(1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if derivative(middle) <= 0.0 else (low, middle)
    return high
