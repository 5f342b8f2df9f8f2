"""How often each response, or each of its values, occurs."""

from __future__ import annotations

import numpy as np

from mcode._arrays import Floats
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators, NumberOfValues


def smoothed_base_rate(Y: Codes, n_values: NumberOfValues = None) -> Floats:
    """Return how often each response is present, never 0 or 1, shape (d,).

    Where some have several values: how often each value occurs, shape (largest number of values, d).

    Examples
    --------
    >>> smoothed_base_rate(np.array([[0], [0], [1]], dtype=np.uint8))
    array([0.375])
    """
    if n_values is None:
        return np.asarray((Y.sum(axis=0, dtype=np.float64) + 0.5) / (len(Y) + 1.0))
    counts = np.array([np.equal(Y, value).sum(axis=0) for value in range(max(n_values))], dtype=np.float64)
    return np.asarray((counts + 1.0 / np.asarray(n_values)) / (len(Y) + 1.0))


def rate_of_recorded(Y: Codes, base_rate: Floats) -> Floats:
    """Return how often the recorded value of each response occurs, shape (n, d).

    Examples
    --------
    >>> rate_of_recorded(np.array([[0], [1]], dtype=np.uint8), np.array([0.375]))
    array([[0.625],
           [0.375]])
    """
    if base_rate.ndim == 1:
        return np.where(Y == 1, base_rate, 1.0 - base_rate)
    return np.asarray(base_rate[Y, np.arange(Y.shape[1])])


def logits_of_rates(count: Floats, rows: Floats | float, n_values: NumberOfValues) -> Floats:
    """Return logits of the columns of `indicators` by which each response is as probable as it is frequent, shape (c,).

    Parameters
    ----------
    count : (c,) array, how many rows have each column
    rows : how many rows there are, or for how many each column is known
    n_values : how many values each response has; None where all have two

    Examples
    --------
    >>> logits_of_rates(np.array([1.0]), 3, None).round(3)  # (1 + 1/2) / (3 + 1) against the rest
    array([-0.511])
    """
    many = np.full(len(count), 2) if n_values is None else np.repeat(n_values, np.diff(Indicators(n_values).starts))
    rate = (count + 1.0 / many) / (np.asarray(rows) + 1.0)
    return np.where(many == 2, np.log(rate) - np.log1p(-rate), np.log(rate))
