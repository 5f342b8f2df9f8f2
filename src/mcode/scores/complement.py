"""The paper's first score."""

from __future__ import annotations

import numpy as np

from mcode._arrays import Floats, Matrix, dense
from mcode.scores.base import ScoreBase


class ComplementScore(ScoreBase):
    """How improbable the whole response vector is, the paper's Score_1.

    The paper scores 1 - P(y | x) with P(y | x) = prod_j rho_j. That number is 1.0 in floating point for every row
    that is improbable at all, so this class returns -log P = -sum_j log rho_j: the same order without the ties.

    Examples
    --------
    >>> ComplementScore().fit([[0.9, 0.8]]).outlier_score([[0.5, 0.5], [1.0, 1.0]]).round(3)
    array([1.386, 0.   ])
    """

    def _fit(self, M: Matrix) -> None:
        pass

    def _outlier_score(self, M: Matrix) -> Floats:
        return np.asarray(np.negative(np.log(dense(M))).sum(axis=1) + 0.0)  # + 0.0: a certain row is 0, not -0
