"""What verdicts teach about alarms: which responses' alarms turn out true, and which do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcode._arrays import Floats

SPREAD = 1.0  # how far, in log odds, the alarms of one group are expected to differ from what the detector says
SPREADS = (0.1, 0.25, 0.5, 1.0)
STEPS = 25


@dataclass(frozen=True)
class _Fit:
    """The most probable shifts of the groups that occur among the verdicts, and how probable the verdicts are."""

    used: NDArray[np.intp]
    shifts: Floats
    log_evidence: float


def learned_shifts(
    log_odds: Floats, groups: NDArray[np.intp], wrong: NDArray[np.bool_], n_groups: int, spread: ArrayLike = SPREAD
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
    found = _fit(log_odds, groups, wrong, n_groups, spread)
    out = np.zeros(n_groups)
    out[found.used] = found.shifts
    return out


def likeliest_spread(
    log_odds: Floats, groups: NDArray[np.intp], wrong: NDArray[np.bool_], n_groups: int
) -> NDArray[np.float64]:
    """Return by how much groups differ, as the verdicts say; group 0, all alarms, may always move by `SPREAD`.

    It is the one of `SPREADS` under which the verdicts are most probable, with the shifts integrated out by Laplace's
    approximation. Verdicts that say the same about all groups give the smallest, so that chance teaches nothing.

    Parameters
    ----------
    log_odds, groups, wrong, n_groups : as for `learned_shifts`

    Returns
    -------
    (n_groups,) array, the standard deviation of each group's shift

    Examples
    --------
    >>> groups = np.array([[0, 1]] * 40 + [[0, 2]] * 40)
    >>> likeliest_spread(np.zeros(80), groups, np.arange(80) < 40, 3)
    array([1., 1., 1.])
    >>> likeliest_spread(np.zeros(80), groups, np.arange(80) % 2 == 0, 3)
    array([1. , 0.1, 0.1])
    """
    each = [np.r_[SPREAD, np.full(n_groups - 1, spread)] for spread in SPREADS]
    evidence = [_fit(log_odds, groups, wrong, n_groups, spread).log_evidence for spread in each]
    return np.asarray(each[int(np.argmax(evidence))])


def _fit(
    log_odds: Floats, groups: NDArray[np.intp], wrong: NDArray[np.bool_], n_groups: int, spread: ArrayLike
) -> _Fit:
    n, k = groups.shape
    member = np.zeros((n, n_groups))
    np.add.at(member, (np.repeat(np.arange(n), k), groups.ravel()), 1.0)
    used = np.flatnonzero(member.any(axis=0))
    design, shifts = member[:, used], np.zeros(len(used))
    precision = 1.0 / np.broadcast_to(np.asarray(spread, float), n_groups)[used] ** 2
    for _ in range(STEPS):  # Newton's method; strictly convex, so it ends at the one minimum
        p = _probability(log_odds + design @ shifts)
        hessian = (design * (p * (1.0 - p))[:, None]).T @ design + np.diag(precision)
        step = np.linalg.solve(hessian, design.T @ (p - wrong) + precision * shifts)
        shifts -= np.clip(step, -2.0, 2.0)
        if np.abs(step).max(initial=0.0) < 1e-8:
            break
    p = _probability(log_odds + design @ shifts)
    curvature = (design * (p * (1.0 - p))[:, None]).T @ design
    volume = np.linalg.slogdet(np.eye(len(used)) + curvature / precision[:, None])[1]
    fit = np.log(np.where(wrong, p, 1.0 - p)).sum() - 0.5 * precision @ shifts**2
    return _Fit(used, shifts, float(fit - 0.5 * volume))


def _probability(log_odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -30.0, 30.0))))
