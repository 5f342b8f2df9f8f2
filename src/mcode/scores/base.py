"""The contract of every score: a matrix in, one number per row out, larger = more outlying, everywhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mcode._arrays import Floats, Matrix, check_matrix
from mcode.errors import InputError


class ScoreBase(BaseEstimator, ABC):
    """Shared door of the scores over a matrix: checks it, then calls the mathematics.

    A subclass writes `_fit(M)` and `_outlier_score(M)` on canonical arrays. `M` is rho (n x d, values in (0, 1]) for
    `MCODE` and [X | Y] for `JointDetector`; it may be a CSR matrix where `accepts_sparse` says so.
    """

    accepts_sparse: ClassVar[bool] = False

    def fit(self, M: ArrayLike, y: object = None) -> Self:
        """Learn what is normal from the rows of `M`; `y` is ignored."""
        matrix = self._check(M)
        self.n_features_in_ = matrix.shape[1]
        self._fit(matrix)
        return self

    def outlier_score(self, M: ArrayLike) -> Floats:
        """Return one number for each row of `M`, larger = more outlying."""
        check_is_fitted(self, "n_features_in_")
        matrix = self._check(M)
        if matrix.shape[1] != self.n_features_in_:
            raise InputError("M", f"it has {matrix.shape[1]} columns", f"the score was fitted on {self.n_features_in_}")
        return np.asarray(self._outlier_score(matrix), dtype=np.float64)

    def fit_outlier_score(self, M: ArrayLike) -> Floats:
        """Fit to the rows of `M` and return their own scores."""
        return self.fit(M).outlier_score(M)

    def _check(self, M: Any) -> Matrix:
        matrix = check_matrix(M, "M", min_columns=1)
        return matrix if self.accepts_sparse or isinstance(matrix, np.ndarray) else matrix.toarray()

    @abstractmethod
    def _fit(self, M: Matrix) -> None: ...

    @abstractmethod
    def _outlier_score(self, M: Matrix) -> Floats: ...
