"""Responses that are not known: each response learns from the rows where it is, and a missing one judges nobody.

The rule. A response is fitted on the rows where it is known. As an input of other responses a missing one stands at its
most likely value: while fitting, given the context alone, by models that did not see the row; afterwards given the
context and all other responses, in a few sweeps over the missing cells. A missing cell has rho = 1: it adds nothing to
a score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.models.categorical import likeliest_values, n_values_of
from mcode.models.encoding import MISSING, Codes
from mcode.models.indicators import NumberOfValues
from mcode.models.learners import Conditionals, Learner
from mcode.models.parents import none

SWEEPS = 3
HALF = float(np.log(0.5))


def has_missing(Y: Codes) -> bool:
    """Whether some response is not known.

    Examples
    --------
    >>> has_missing(np.array([[0, 255]], dtype=np.uint8))
    True
    """
    return bool(Y.size) and bool(Y.max() == MISSING)  # the largest number of its type


def fill_for_training(
    learner: Learner, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp], n_values: NumberOfValues = None
) -> Codes:
    """Return Y, missing cells at their most likely value given the context, by models that did not see the row."""
    known = Y != MISSING
    absent = np.where(known, Y, 0).astype(np.uint8)
    if n_values is not None:
        nobody = none(Y.shape[1])
        by_fold, _ = learner.cross_fit(X, absent, nobody, fold_of_row, final=False, known=known, n_values=n_values)
        filled = Y.copy()
        for f, conditionals in enumerate(by_fold.folds):
            mine = np.flatnonzero(fold_of_row == f)
            filled[mine] = likeliest_values(conditionals, X[mine], absent[mine])
        return np.where(known, Y, filled).astype(np.uint8)
    alone, _ = learner.cross_fit(X, absent, none(Y.shape[1]), fold_of_row, final=False, known=known)
    likelier = (alone.log_proba(X, absent) < HALF).astype(np.uint8)
    return np.where(known, Y, likelier).astype(np.uint8)


def fill(conditionals: Conditionals, X: Matrix, Y: Codes) -> Codes:
    """Return Y with each missing cell at its most likely value given the context and all other responses.

    The missing cells start as absent. In each sweep those turn around whose other value is likelier.
    """
    if not has_missing(Y):
        return Y
    missing = Y == MISSING
    rows = np.flatnonzero(missing.any(axis=1))
    filled = np.where(missing, 0, Y).astype(np.uint8)
    if n_values_of(conditionals) is not None:
        for _ in range(SWEEPS):
            likely = likeliest_values(conditionals, X[rows], filled[rows])
            filled[rows] = np.where(missing[rows], likely, filled[rows])
        return filled
    for _ in range(SWEEPS):
        unlikely = conditionals.log_proba(X[rows], filled[rows]) < HALF
        turned = unlikely & missing[rows]
        filled[rows] ^= turned.view(np.uint8)
        if not turned.any():
            break
    return filled


def log_proba_of_known(conditionals: Conditionals, X: Matrix, Y: Codes) -> Floats:
    """Return log P of the observed responses, shape (n, d), and 0 for those that are missing."""
    if not has_missing(Y):
        return conditionals.log_proba(X, Y)
    return np.where(Y == MISSING, 0.0, conditionals.log_proba(X, fill(conditionals, X, Y)))
