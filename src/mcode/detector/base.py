"""What every detector does after its rows have been read: score, rank, decide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mcode._arrays import Floats, Matrix, TableLike
from mcode.detector.elsewhere import anywhere
from mcode.errors import InputError, ParameterError, UnknownNameError
from mcode.models.conditional import check_rows
from mcode.models.encoding import MISSING, Codes, ResponseEncoding, one_valued
from mcode.models.indicators import NumberOfValues, several
from mcode.models.missing import has_missing
from mcode.ranking import conformal_p_value, is_share, own_p_value, percentile_rank

Reference = Literal["cross-fit", "holdout", "batch"]
REFERENCES = ("cross-fit", "holdout", "batch")


class DetectorBase(BaseEstimator, ABC):
    """The surface of every detector, whatever its space: larger outlier scores are more outlying.

    Attributes
    ----------
    score_ : the fitted score; with reference="batch" it is fitted anew on the rows being scored
    reference_score_ : (n,) array of the scores of rows taken as normal; None with reference="batch"
    encoding_ : ResponseEncoding
    n_features_in_, n_responses_ : int
    n_values_ : tuple of int, how many values each response has; None where all have two
    one_valued_ : list of str
        Responses that had one value only in training: they are scored by their smoothed base rate.
    """

    score: Any
    reference: Reference
    alarm_rate: float
    reference_score_: Floats | None
    n_values_: NumberOfValues = None
    accepts_missing: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Tags:
        """Say what is accepted: sparse rows, and a table of responses that is always needed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    @abstractmethod
    def fit(self, X: TableLike, Y: TableLike) -> Self:
        """Learn from past rows, assumed mostly right."""

    @abstractmethod
    def _outlier_score(self, X: Matrix, Y: Codes) -> Floats: ...

    @anywhere
    def outlier_score(self, X: TableLike, Y: TableLike) -> Floats:
        """Return one number for each row, larger = more outlying."""
        return self._outlier_score(*self._check(X, Y))

    @anywhere
    def percentile_rank(self, X: TableLike, Y: TableLike) -> Floats:
        """Return the share of reference rows with a smaller score: the paper's last step.

        With reference="batch" the rows that are scored are the reference.
        """
        scores = self.outlier_score(X, Y)
        return percentile_rank(scores, scores if self.reference_score_ is None else self.reference_score_)

    @anywhere
    def p_value(self, X: TableLike, Y: TableLike) -> Floats:
        """Return the conformal p-value of each row: small = more outlying than the reference rows."""
        scores = self.outlier_score(X, Y)
        return own_p_value(scores) if self.reference_score_ is None else self._p_value_of(scores)

    def _p_value_of(self, scores: Floats) -> Floats:
        assert self.reference_score_ is not None
        return conformal_p_value(scores, self.reference_score_)

    @anywhere
    def score_samples(self, X: TableLike, Y: TableLike) -> Floats:
        """Return the opposite of the outlier score: scikit-learn's meaning, larger = normal."""
        return -self.outlier_score(X, Y)

    @anywhere
    def predict(self, X: TableLike, Y: TableLike) -> NDArray[np.intp]:
        """Return -1 for outliers and 1 for the others, as scikit-learn does.

        A row is an outlier when its p-value is at most `alarm_rate`: of normal rows about that share is called so.
        """
        return np.where(self.p_value(X, Y) <= self.alarm_rate, -1, 1)

    @anywhere
    def fit_predict(self, X: TableLike, Y: TableLike) -> NDArray[np.intp]:
        """Fit, and return -1 for the most outlying share `alarm_rate` of the same rows and 1 for the others."""
        self.fit(X, Y)
        scores = self.outlier_score(X, Y) if self.reference_score_ is None else self.reference_score_
        return np.where(own_p_value(scores) <= self.alarm_rate, -1, 1)

    def _check_parameters(self) -> None:
        if self.reference not in REFERENCES:
            raise UnknownNameError("reference", self.reference, REFERENCES, or_instance=False)
        if not is_share(self.alarm_rate):
            raise ParameterError("alarm_rate", self.alarm_rate, "a number between 0 and 1")

    def _open(self, X: TableLike, Y: TableLike) -> tuple[Matrix, Codes]:
        """Check parameters and training rows, and remember what they look like."""
        self._check_parameters()
        self.encoding_ = ResponseEncoding.of(Y)
        features, codes = self._known(check_rows(X, Y, self.encoding_))
        self.n_features_in_, self.n_responses_ = features.shape[1], codes.shape[1]
        self.n_values_ = several(self.encoding_.n_values)
        self.one_valued_ = one_valued(codes, self.encoding_.names)
        return features, codes

    def _check(self, X: TableLike, Y: TableLike) -> tuple[Matrix, Codes]:
        check_is_fitted(self, "score_")
        return self._known(check_rows(X, Y, self.encoding_, self.n_features_in_))

    def _known(self, rows: tuple[Matrix, Codes]) -> tuple[Matrix, Codes]:
        """Refuse missing responses where the detector has no rule for them."""
        if not self.accepts_missing and has_missing(rows[1]):
            row, column = (int(at[0]) for at in np.nonzero(rows[1] == MISSING))
            raise InputError(
                "Y",
                f"row {row}, column {self.encoding_.names[column]!r} is missing",
                "fill or drop rows with missing responses, or use MCODE, which accepts them",
            )
        return rows
