"""The paper's third score."""

from __future__ import annotations

import numpy as np

from mcode._arrays import Floats, Matrix, dense
from mcode.errors import ParameterError
from mcode.scores.base import ScoreBase


class NormScore(ScoreBase):
    """Distance of rho from certainty in the L_r norm, the paper's Score_3.

    score(i) = (sum_j (1 - rho[i, j]) ** r) ** (1 / r);  0 when every response was certain.

    Parameters
    ----------
    r : float, default=inf
        Order of the norm, at least 1. At infinity the least likely response alone decides, as in the paper.

    Examples
    --------
    >>> NormScore(r=1).fit([[0.9, 0.8]]).outlier_score([[0.9, 0.8], [0.1, 0.8]]).round(1)
    array([0.3, 1.1])
    """

    def __init__(self, r: float = np.inf) -> None:
        self.r = r

    def _fit(self, M: Matrix) -> None:
        if not (isinstance(self.r, int | float | np.number) and self.r >= 1):
            raise ParameterError("r", self.r, "a number of at least 1, or infinity")

    def _outlier_score(self, M: Matrix) -> Floats:
        return np.asarray(np.linalg.norm(1.0 - dense(M), ord=self.r, axis=1))
