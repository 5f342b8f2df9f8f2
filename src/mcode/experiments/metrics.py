"""How well a ranking finds the wrong rows. Only the order of the scores counts, so infinite ones are welcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.errors import InputError

Flags = NDArray[np.bool_]
MEASURES = ("auc", "ap", "precision")


Groups = tuple[NDArray[np.float64], NDArray[np.float64]]


def auc(wrong: Flags, score: Floats) -> float:
    """Return the area under the ROC curve: P(a wrong row scores above a right one), ties counting one half.

    Examples
    --------
    >>> auc(np.array([True, False, False]), np.array([2.0, 1.0, 2.0]))
    0.75
    """
    return _auc(_tied_groups(wrong, score))


def _auc(groups: Groups) -> float:
    hits, sizes = groups
    n_wrong, n_right = hits.sum(), sizes.sum() - hits.sum()
    right = sizes - hits
    above = np.concatenate([[0], np.cumsum(right)[:-1]])  # right rows with a higher score than the group
    return float((hits * (n_right - above - right / 2.0)).sum() / (n_wrong * n_right))


def average_precision(wrong: Flags, score: Floats) -> float:
    """Return the area under the precision-recall curve, as a sum over thresholds (tied rows come together).

    Examples
    --------
    >>> average_precision(np.array([True, False, True, False]), np.array([4.0, 3.0, 2.0, 1.0])).__round__(4)
    0.8333
    """
    return _average_precision(_tied_groups(wrong, score))


def _average_precision(groups: Groups) -> float:
    hits, sizes = groups
    precision = np.cumsum(hits) / np.cumsum(sizes)
    return float((precision * hits).sum() / hits.sum())


def precision_at(wrong: Flags, score: Floats, k: int | None = None) -> float:
    """Return the share of wrong rows among the k highest scores; k is the number of wrong rows where it is not given.

    Where a tie reaches across the k-th place, its rows come in any order: the expected share is returned.

    Examples
    --------
    >>> precision_at(np.array([True, False, False]), np.array([1.0, 1.0, 0.0]), k=1)
    0.5
    """
    return _precision_at(_tied_groups(wrong, score), k)


def _precision_at(groups: Groups, k: int | None) -> float:
    hits, sizes = groups
    k = int(hits.sum()) if k is None else min(k, int(sizes.sum()))
    before = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    taken = np.clip(k - before, 0, sizes)
    return float((hits * taken / sizes).sum() / k)


def all_of(wrong: Flags, score: Floats) -> dict[str, float]:
    """Return the three measures by name."""
    groups = _tied_groups(wrong, score)
    return {"auc": _auc(groups), "ap": _average_precision(groups), "precision": _precision_at(groups, None)}


def of_injections(injections: Sequence[NDArray[np.intp]], wrong: Floats, right: Floats) -> NDArray[np.float64]:
    """Return the three measures of many injections into the same rows, shape (number of injections, 3).

    An injection gives some rows their `wrong` score, and all others keep their `right` one. Only the few wrong rows of
    each are looked up in the order of the right scores, instead of ordering all rows for every injection.

    Parameters
    ----------
    injections : rows of each injection, the same number in all
    wrong, right : (n,) arrays of scores

    Examples
    --------
    >>> of_injections([np.array([0])], np.array([4.0, 0.0, 0.0]), np.array([0.0, 5.0, 3.0])).round(2)
    array([[0.5, 0.5, 0. ]])
    """
    rows = np.array(injections)
    if np.isnan(wrong[rows]).any() or np.isnan(right).any():
        raise InputError("score", "it holds NaN", "a score orders rows")
    score, replaced, ordered = wrong[rows], right[rows], np.sort(right)
    n, k = len(right), rows.shape[1]
    # of each wrong row: right ones above it, and as high, those that have become wrong not among them
    above = n - np.searchsorted(ordered, score, side="right") - _count(replaced, np.greater, score)
    level = n - np.searchsorted(ordered, score, side="left") - _count(replaced, np.greater_equal, score) - above
    wrong_above, wrong_level = _count(score, np.greater, score), _count(score, np.equal, score)
    precision = (wrong_above + wrong_level) / (above + level + wrong_above + wrong_level)
    taken = np.clip(k - above - wrong_above, 0, level + wrong_level) / (level + wrong_level)
    return np.column_stack(
        [1.0 - (above + level / 2.0).mean(axis=1) / (n - k), precision.mean(axis=1), taken.mean(axis=1)]
    )


def _count(of: Floats, compare: np.ufunc, score: Floats) -> NDArray[np.float64]:
    """Return how many of the values of a row are above, at least, or as high as each of its scores."""
    return np.asarray(compare(of[:, None, :], score[:, :, None]).sum(axis=2, dtype=np.float64))


def _tied_groups(wrong: Flags, score: Floats) -> Groups:
    """Return, from the highest score down, how many wrong rows and how many rows have each score."""
    if np.isnan(score).any():
        raise InputError("score", "it holds NaN", "a score orders rows")
    if not wrong.any() or wrong.all():
        raise InputError("wrong", "all rows are wrong, or none is", "some of each are needed")
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(score) - 1)
    seen = np.cumsum(wrong[order])[ends].astype(np.float64)
    return np.diff(seen, prepend=0.0), np.diff(ends + 1.0, prepend=0.0)
