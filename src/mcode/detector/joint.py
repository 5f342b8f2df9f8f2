"""The paper's baselines: a score over [X | Y]."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from mcode._arrays import Floats, Matrix, TableLike
from mcode.detector.base import DetectorBase, Reference
from mcode.detector.elsewhere import anywhere
from mcode.errors import ParameterError
from mcode.models.encoding import Codes
from mcode.models.folds import stratified_folds
from mcode.scores.complement import ComplementScore
from mcode.scores.learned import LearnedScore
from mcode.scores.names import as_score
from mcode.scores.noise import NoiseScore
from mcode.scores.norm import NormScore
from mcode.scores.reliability import ReliabilityScore
from mcode.spaces.joint import joint


class JointDetector(DetectorBase):
    """Find rows that are unusual as a whole: context and responses are not told apart.

    It differs from `MCODE` in the space alone, so comparing the two shows what conditioning is worth.

    Parameters
    ----------
    score : "robust", "lof", "ocsvm", a score over a matrix, or a scikit-learn or PyOD detector, default="lof"
    reference : "cross-fit", "holdout" or "batch", default="cross-fit"
        Where the score learns what is normal: all training rows, a half of them, or the rows being scored. (There is no
        model to cross-fit; the name is that of `MCODE`.)
    alarm_rate : float, default=0.01
        The share of normal rows that `predict` may call outliers.
    random_state : int, default=0
        Seed of the halves.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); Y = X > 0
    >>> JointDetector("lof").fit(X, Y).predict([[9.0, 9.0]], [[1, 1]])
    array([-1])
    """

    def __init__(
        self,
        score: Any = "lof",
        *,
        reference: Reference = "cross-fit",
        alarm_rate: float = 0.01,
        random_state: int = 0,
    ) -> None:
        self.score = score
        self.reference = reference
        self.alarm_rate = alarm_rate
        self.random_state = random_state

    @anywhere
    def fit(self, X: TableLike, Y: TableLike) -> Self:
        """Learn from past rows, assumed mostly right."""
        features, codes = self._open(X, Y)
        self.score_ = as_score(self.score)
        if isinstance(self.score_, ComplementScore | NormScore | NoiseScore | LearnedScore | ReliabilityScore):
            raise ParameterError("score", self.score, "a score over any matrix: this one is defined on rho alone")
        M = joint(features, codes, self.n_values_)
        if self.reference == "holdout":
            half = stratified_folds(codes, 2, np.random.default_rng(self.random_state))
            M = M[np.flatnonzero(half == 1)]
        self.reference_score_ = None if self.reference == "batch" else np.asarray(self.score_.fit_outlier_score(M))
        return self

    def _outlier_score(self, X: Matrix, Y: Codes) -> Floats:
        M = joint(X, Y, self.n_values_)
        if self.reference == "batch":
            return np.asarray(clone(self.score_).fit_outlier_score(M))
        return np.asarray(self.score_.outlier_score(M))
