"""What verdicts teach about alarms: which responses' alarms turn out true, and which do not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcode._arrays import Floats

STEPS = 25


def learned_shifts(
    log_odds: Floats, groups: NDArray[np.intp], wrong: NDArray[np.bool_], n_groups: int, spread: ArrayLike = 1.0
) -> Floats:
    """Return how far verdicts move the log odds of each group of alarms.

    The log odds that a row of groups g is wrong are those of the detector plus the sum of b over its groups, with b
    normal around 0 with standard deviation `spread`: b is the most probable value given the verdicts, so one verdict
    moves little and many move much.

    Parameters
    ----------
    log_odds : (n,) array, the detector's log odds of the judged rows
    groups : (n, k) array, the groups that each judged row belongs to, counted from 0
    wrong : (n,) boolean array, whether the reviewer found the row wrong
    n_groups : int
    spread : float or (n_groups,) array, default=1.0

    Returns
    -------
    (n_groups,) array

    Examples
    --------
    >>> groups = np.array([[0]] * 8 + [[1]] * 8)
    >>> learned_shifts(np.zeros(16), groups, np.arange(16) < 8, 2).round(1)
    array([ 1.5, -1.5])
    """
    n, k = groups.shape
    member = np.zeros((n, n_groups))
    np.add.at(member, (np.repeat(np.arange(n), k), groups.ravel()), 1.0)
    used = np.flatnonzero(member.any(axis=0))
    design, shifts = member[:, used], np.zeros(len(used))
    precision = 1.0 / np.broadcast_to(np.asarray(spread, float), n_groups)[used] ** 2
    for _ in range(STEPS):  # Newton's method; strictly convex, so it ends at the one minimum
        p = 1.0 / (1.0 + np.exp(-np.clip(log_odds + design @ shifts, -30.0, 30.0)))
        gradient = design.T @ (p - wrong) + precision * shifts
        hessian = (design * (p * (1.0 - p))[:, None]).T @ design + np.diag(precision)
        step = np.linalg.solve(hessian, gradient)
        shifts -= np.clip(step, -2.0, 2.0)
        if np.abs(step).max(initial=0.0) < 1e-8:
            break
    out = np.zeros(n_groups)
    out[used] = shifts
    return out
