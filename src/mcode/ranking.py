"""From a score to a decision: percentile rank, conformal p-value, false-discovery cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcode._arrays import Floats
from mcode.errors import ParameterError


def is_share(value: object) -> bool:
    """Whether a parameter is a number strictly between 0 and 1.

    Examples
    --------
    >>> is_share(0.1), is_share(1), is_share("0.1")
    (True, False, False)
    """
    return isinstance(value, int | float | np.number) and bool(0.0 < value < 1.0)


def percentile_rank(scores: ArrayLike, reference: ArrayLike) -> Floats:
    """Return the share of reference scores that are smaller, ties counted half: the paper's last step.

    Examples
    --------
    >>> percentile_rank([0.5, 3.0], [0.0, 1.0, 2.0, 3.0])
    array([0.25 , 0.875])
    """
    ordered = np.sort(np.asarray(reference, dtype=np.float64), axis=None)
    below = np.searchsorted(ordered, scores, side="left")
    upto = np.searchsorted(ordered, scores, side="right")
    return np.asarray((below + upto) / (2.0 * len(ordered)))


def conformal_p_value(scores: ArrayLike, reference: ArrayLike) -> Floats:
    """Return (1 + number of reference scores at least as large) / (1 + number of reference scores).

    For a row drawn like the reference rows, P(p <= a) <= a for every a, whatever the score (Vovk et al. 2005).

    Examples
    --------
    >>> conformal_p_value([0.5, 9.0], [0.0, 1.0, 2.0, 3.0])
    array([0.8, 0.2])
    """
    ordered = np.sort(np.asarray(reference, dtype=np.float64), axis=None)
    at_least = len(ordered) - np.searchsorted(ordered, scores, side="left")
    return np.asarray((1.0 + at_least) / (1.0 + len(ordered)))


def own_p_value(scores: ArrayLike) -> Floats:
    """Return the conformal p-value of each score among all of them: every row judged against the others.

    This is `conformal_p_value` with the other rows as reference: (number of scores at least as large, itself
    included) / n.

    Examples
    --------
    >>> own_p_value([0.0, 2.0, 1.0, 3.0])
    array([1.  , 0.5 , 0.75, 0.25])
    """
    values = np.asarray(scores, dtype=np.float64)
    ordered = np.sort(values)
    return np.asarray((len(ordered) - np.searchsorted(ordered, values, side="left")) / len(ordered))


def false_discovery_cut(p_values: ArrayLike, level: float = 0.1) -> NDArray[np.bool_]:
    """Return which hypotheses to reject so that the expected share of false ones is at most `level`.

    Benjamini & Hochberg (1995); with conformal p-values against one reference see Bates et al. (2023).

    Examples
    --------
    >>> false_discovery_cut([0.001, 0.5, 0.02, 0.9], level=0.1)
    array([ True, False,  True, False])
    """
    if not is_share(level):
        raise ParameterError("level", level, "a number between 0 and 1")
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    passed = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / max(1, len(p)))
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order[: passed[-1] + 1 if len(passed) else 0]] = True
    return rejected


def posterior_cut(error_probability: ArrayLike, level: float = 0.1) -> NDArray[np.bool_]:
    """Return the most rows whose mean probability of being right is at most `level`, the likeliest errors first.

    Examples
    --------
    >>> posterior_cut([0.99, 0.2, 0.85], level=0.1)
    array([ True, False,  True])
    """
    if not is_share(level):
        raise ParameterError("level", level, "a number between 0 and 1")
    wrong = np.asarray(error_probability, dtype=np.float64)
    order = np.argsort(-wrong, kind="stable")
    false_share = np.cumsum(1.0 - wrong[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros(len(wrong), dtype=bool)
    chosen[order[: np.count_nonzero(false_share <= level)]] = True  # the mean never falls along the order
    return chosen
