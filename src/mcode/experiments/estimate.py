"""Means of many injections and their standard errors: plain ones, and ones that spare most of the slow injections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcode._arrays import Floats

ROUNDING = 1e-9
FEWEST_FOR_A_LINE = 6  # pairs; with fewer, a fitted coefficient makes the mean of skewed values wrong


@dataclass(frozen=True)
class Estimate:
    """Means of some measures, and their standard errors.

    Attributes
    ----------
    mean : (k,) array
    error : (k,) array; infinite where too little was measured to know it
    exact_error : (k,) array
        The part of the error that only more slow values can make smaller.
    """

    mean: Floats
    error: Floats
    exact_error: Floats


def plain_mean(values: Floats) -> Estimate:
    """Return the mean of values, shape (n, k), and std / sqrt(n).

    Examples
    --------
    >>> found = plain_mean(np.array([[1.0], [3.0]]))
    >>> found.mean, found.error
    (array([2.]), array([1.]))
    """
    n, k = values.shape
    error = np.std(values, axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(k, np.inf)
    return Estimate(values.mean(axis=0), error, error)


def mean_with_help(cheap: Floats, paired: Floats, exact: Floats) -> Estimate:
    """Return the mean of slow exact values, known for a few cases, with the help of cheap ones, known for many.

    A control variate: whatever the cheap values are, bad ones make the error larger, not the mean wrong.

    Parameters
    ----------
    cheap : (N, k) array, the cheap values A of all cases
    paired : (n, k) array, those of the cases that have exact values; they are among `cheap`
    exact : (n, k) array, the exact values E
    """
    by_which = mean_by_regression if len(exact) >= FEWEST_FOR_A_LINE else mean_by_difference
    return by_which(cheap, paired, exact)


def mean_by_difference(cheap: Floats, paired: Floats, exact: Floats) -> Estimate:
    """Return mean_N(A) + mean_n(E - A), which is exactly unbiased.

    error^2 = var(E - A) (1/n - 1/N) + var(E) / N, which is var(A)/N + var(E - A)/n + 2 cov(A, E - A)/N put so that no
    estimate of it is negative.

    Examples
    --------
    >>> cheap = np.arange(100.0)[:, None]
    >>> found = mean_by_difference(cheap, cheap[:3], cheap[:3] + 1.0)
    >>> found.mean, found.exact_error
    (array([50.5]), array([0.]))
    """
    n, n_cheap = len(exact), len(cheap)
    apart = exact - paired
    mean = cheap.mean(axis=0) + apart.mean(axis=0)
    if n < 2:
        return Estimate(mean, np.full(mean.shape, np.inf), np.full(mean.shape, np.inf))
    of_exact = np.var(apart, axis=0, ddof=1) * (1.0 / n - 1.0 / n_cheap)
    of_all = np.var(exact, axis=0, ddof=1) / n_cheap
    return Estimate(mean, np.sqrt(of_exact + of_all), np.sqrt(of_exact))


def mean_by_regression(cheap: Floats, paired: Floats, exact: Floats) -> Estimate:
    """Return the line of the exact on the cheap values, read at the mean of all cheap ones.

    The regression estimator of double sampling (Cochran 1977, section 12.6). With n pairs among N cases,

        mean    = mean_n(E) + b (mean_N(A) - mean_n(A)),   b = cov_n(E, A) / var_n(A)
        error^2 = s^2 (1/n + (mean_N(A) - mean_n(A))^2 / sum_n (A - mean_n(A))^2) + b^2 var_N(A) / N

    with s^2 what the line leaves over, on n - 2 degrees of freedom. It is unbiased where E is linear in A, and up to
    terms of order 1/n elsewhere; unlike the difference it also gains where the two are on different scales.

    Examples
    --------
    >>> cheap = np.arange(100.0)[:, None]
    >>> mean_by_regression(cheap, cheap[:6], 2.0 * cheap[:6] + 1.0).mean
    array([100.])
    """
    n, n_cheap = len(exact), len(cheap)
    apart, exact_apart = paired - paired.mean(axis=0), exact - exact.mean(axis=0)
    square = (apart**2).sum(axis=0)
    varies = np.ptp(paired, axis=0) > ROUNDING  # where the cheap values are all the same they say nothing: b = 0
    safe = np.where(varies, square, 1.0)
    b = np.where(varies, (apart * exact_apart).sum(axis=0) / safe, 0.0)
    shift = np.where(varies, cheap.mean(axis=0) - paired.mean(axis=0), 0.0)
    left_over = ((exact_apart - b * apart) ** 2).sum(axis=0) / (n - 1 - varies)
    of_exact = left_over * (1.0 / n + shift**2 / safe)
    of_cheap = b**2 * np.var(cheap, axis=0, ddof=1) / n_cheap
    return Estimate(exact.mean(axis=0) + b * shift, np.sqrt(of_exact + of_cheap), np.sqrt(of_exact))


def over_fits(fits: Sequence[int], means: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Return the mean of many fits, and its standard error, from those of parts of them.

    One fit has the error of its injections. Of several, each counts alike and what they differ by is the error: by the
    rows that were wrong while they were made, and by the injections. The squares that were summed in a part follow
    from its error, so that the parts say what all fits together would.

    Parameters
    ----------
    fits : how many fits each part has
    means, errors : of each part; the error of a part of several fits is std / sqrt(fits)

    Examples
    --------
    >>> over_fits([1], [0.7], [0.004])
    (0.7, 0.004)
    >>> values = np.array([0.70, 0.74, 0.81, 0.79, 0.70])
    >>> error = values.std(ddof=1) / np.sqrt(5)
    >>> in_parts = over_fits([2, 3], [0.72, values[2:].mean()], [0.02, values[2:].std(ddof=1) / np.sqrt(3)])
    >>> np.allclose(in_parts, (values.mean(), error))
    True
    """
    n, mean, error = (np.asarray(values, dtype=np.float64) for values in (fits, means, errors))
    total = n.sum()
    if total == 1:
        return float(mean[0]), float(error[0])
    overall = (n * mean).sum() / total
    squares = (n * (n - 1.0) * error**2 + n * (mean - overall) ** 2).sum()
    return float(overall), float(np.sqrt(squares / (total - 1.0) / total))
