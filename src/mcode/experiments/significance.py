"""Which differences between methods are more than chance.

Over data sets: the Friedman test on ranks, then each method against the best by Holm's step-down procedure (Demsar
2006, Holm 1979). On one data set: paired t-tests over runs, plain as in the paper, and with the correction of Nadeau &
Bengio (2003), since the training rows of repeated folds overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mcode._arrays import Floats
from mcode.errors import ParameterError


def ranks(quality: Floats, decimals: int | None = None) -> Floats:
    """Return the rank of each method (column) on each data set (row); 1 is the best, ties share their mean rank.

    Examples
    --------
    >>> ranks(np.array([[0.9, 0.7, 0.9]]))
    array([[1.5, 3. , 1.5]])
    """
    shown = quality if decimals is None else np.round(quality, decimals)
    return np.asarray(stats.rankdata(-shown, axis=1))


@dataclass(frozen=True)
class Friedman:
    """The test that all methods rank alike.

    Attributes
    ----------
    mean_rank, sd_rank : (k,) arrays
    chi2, p_value : the statistic and its p-value by k - 1 degrees of freedom
    f, f_p_value : the less conservative statistic of Iman & Davenport
    n : number of data sets
    """

    mean_rank: Floats
    sd_rank: Floats
    chi2: float
    p_value: float
    f: float
    f_p_value: float
    n: int


def friedman(rank: Floats) -> Friedman:
    """Test a table of ranks, data sets by methods.

    chi2 = 12 n / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4),   F = (n - 1) chi2 / (n (k - 1) - chi2)
    """
    n, k = rank.shape
    mean = rank.mean(axis=0)
    chi2 = float(12.0 * n / (k * (k + 1)) * (np.square(mean).sum() - k * (k + 1) ** 2 / 4.0))
    room = n * (k - 1) - chi2
    f = float((n - 1) * chi2 / room) if room > 1e-9 else np.inf
    return Friedman(
        mean_rank=mean,
        sd_rank=rank.std(axis=0, ddof=1) if n > 1 else np.zeros(k),
        chi2=chi2,
        p_value=float(stats.chi2.sf(chi2, k - 1)),
        f=f,
        f_p_value=float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))) if n > 1 else 1.0,
        n=n,
    )


def holm(p_values: Floats) -> Floats:
    """Return Holm's adjusted p-values: reject where they are at most alpha.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    m = len(p_values)
    stepped = np.maximum.accumulate((m - np.arange(m)) * p_values[order])
    out = np.empty(m)
    out[order] = np.minimum(1.0, stepped)
    return out


def against(control: int, mean_rank: Floats, n: int) -> Floats:
    """Return adjusted p-values of every method against a control, two-sided; 1 for the control itself.

    z_j = (R_j - R_control) / sqrt(k (k + 1) / (6 n))
    """
    k = len(mean_rank)
    z = (mean_rank - mean_rank[control]) / np.sqrt(k * (k + 1) / (6.0 * n))
    others = np.arange(k) != control
    out = np.ones(k)
    out[others] = holm(2.0 * stats.norm.sf(np.abs(z[others])))
    return out


def level_with_best(rank: Floats, alpha: float = 0.05) -> NDArray[np.bool_]:
    """Return the methods that are not significantly worse than the one with the best mean rank: the bold rank row."""
    mean = rank.mean(axis=0)
    return np.asarray(against(int(mean.argmin()), mean, len(rank)) > alpha)


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's critical difference of mean ranks of k methods on n data sets.

    Examples
    --------
    >>> round(critical_difference(4, 30), 3)
    0.856
    """
    q = stats.studentized_range.isf(alpha, k, 1e6) / np.sqrt(2.0)
    return float(q * np.sqrt(k * (k + 1) / (6.0 * n)))


def paired_t(a: Floats, b: Floats, overlap: float = 0.0) -> float:
    """Return the two-sided p-value of a paired t-test over runs; 1 where all differences are equal to 0.

    Parameters
    ----------
    a, b : (r,) arrays, one entry per run
    overlap : float
        Test rows over training rows, for the correction of Nadeau & Bengio: the variance of the mean is
        (1 / r + overlap) times that of one difference. 0 is the plain test.
    """
    difference = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    r = len(difference)
    if r < 2:
        raise ParameterError("runs", r, "at least 2")
    return _p_of(float(difference.mean()), float(difference.std(ddof=1)) * np.sqrt(1.0 / r + overlap), r - 1)


def t_of_summaries(mean: Floats, sd: Floats, runs: int) -> Floats:
    """Return p-values of each method against the best, where only means and standard deviations are known.

    The runs of two methods are taken as independent, and the degrees of freedom are Welch's.
    """
    best = int(mean.argmax())
    variance = np.square(sd) / runs
    out = np.ones(len(mean))
    for j in range(len(mean)):
        both: Any = variance[j] + variance[best]
        if j != best:
            shared = np.square(variance[j]) + np.square(variance[best])
            freedom = (runs - 1) * both**2 / shared if shared > 0 else runs - 1
            out[j] = _p_of(float(mean[best] - mean[j]), float(np.sqrt(both)), float(freedom))
    return out


def best_methods(runs: Floats, alpha: float = 0.05, overlap: float = 0.0) -> NDArray[np.bool_]:
    """Return the method with the best mean and those level with it by paired t-tests: the bold cells of a data set.

    Parameters
    ----------
    runs : (r, k) array of qualities, runs by methods
    """
    best = int(runs.mean(axis=0).argmax())
    return np.array([paired_t(runs[:, best], runs[:, j], overlap) > alpha for j in range(runs.shape[1])])


def _p_of(difference: float, error: float, freedom: float) -> float:
    if error < 1e-15:  # every run gave the same difference
        return 1.0 if abs(difference) < 1e-12 else 0.0
    return float(2.0 * stats.t.sf(abs(difference) / error, freedom))
