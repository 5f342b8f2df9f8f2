"""Any outlier detector of scikit-learn or PyOD as a score: one sign, one door."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import get_tags

from mcode._arrays import Floats, Matrix, dense
from mcode.errors import ParameterError
from mcode.scores.base import ScoreBase

_PROBED = 3  # rows scored alone, at fit, to see whether the batch matters
_PROBE_BATCH = 50
_SAME = 1e-6  # relative to the spread of the scores


class BatchDependenceWarning(UserWarning):
    """A detector gives the same row another score in another batch."""

    def __init__(self, detector: str) -> None:
        self.detector = detector
        super().__init__(detector)

    def __str__(self) -> str:
        return (
            f"{self.detector} scores a row differently alone and in a batch, because it looks at the batch as well as "
            "at what it was fitted on: compare scores within one batch only."
        )


class ForeignScore(ScoreBase):
    """A scikit-learn or PyOD detector as a score, larger = more outlying.

    scikit-learn's ``score_samples`` and ``decision_function`` are larger for *normal* rows, and the sign is turned;
    PyOD's ``decision_function`` is larger for outliers, and it is kept. The detector is cloned: the given one is never
    fitted. scikit-learn's LocalOutlierFactor is fitted with ``novelty=True``, without which it cannot score.

    Parameters
    ----------
    detector : object
        An instance of a scikit-learn outlier detector, or of a pipeline that ends in one, or of a PyOD detector.

    Attributes
    ----------
    detector_ : object
        The fitted clone.
    batch_dependent_ : bool
        Whether a row's score depends on the rows it is scored with, as with PyOD's ECOD, COPOD, SOD and COF. Found at
        fit by scoring a few rows alone and together; a `BatchDependenceWarning` says so, once.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> M = np.vstack([np.random.default_rng(0).normal(size=(50, 2)), [[9.0, 9.0]]])
    >>> ForeignScore(IsolationForest(random_state=0)).fit_outlier_score(M).argmax()
    np.int64(50)
    """

    accepts_sparse: ClassVar[bool] = True

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def fit_outlier_score(self, M: ArrayLike) -> Floats:
        """Return the scores of the rows of `M` among themselves, as the detector itself gives them where it does."""
        self.fit(M)
        own = _door(self.detector_).training_score(self.detector_)
        return self.outlier_score(M) if own is None else own

    def _fit(self, M: Matrix) -> None:
        door = _door(self.detector)
        self.detector_ = door.prepared(self.detector)
        self.detector_.fit(door.storage(self.detector_, M))
        self.batch_dependent_ = self._depends_on_batch(M)
        if self.batch_dependent_:
            warnings.warn(BatchDependenceWarning(type(self.detector).__name__), stacklevel=3)

    def _outlier_score(self, M: Matrix) -> Floats:
        door = _door(self.detector_)
        return door.outlier_score(self.detector_, door.storage(self.detector_, M))

    def _depends_on_batch(self, M: Matrix) -> bool:
        batch = M[: min(_PROBE_BATCH, M.shape[0])]
        together = self._outlier_score(batch)
        rows = np.argsort(together)[[0, together.size // 2, -1]][:_PROBED]
        try:
            alone = np.concatenate([self._outlier_score(batch[row : row + 1]) for row in rows])
        except (IndexError, ValueError):  # PyOD's SOD and COF look for neighbours in the batch: one row has none
            return True
        return not np.allclose(alone, together[rows], rtol=_SAME, atol=_SAME * float(np.ptp(together)))


class _Door(Protocol):
    """How the detectors of one library are prepared and read."""

    def prepared(self, detector: Any) -> Any:
        """Return an unfitted copy."""

    def storage(self, detector: Any, M: Matrix) -> Matrix:
        """Return M as the detector takes it."""

    def outlier_score(self, detector: Any, M: Matrix) -> Floats:
        """Larger = more outlying."""

    def training_score(self, detector: Any) -> Floats | None:
        """Scores of the fitted rows among themselves, where the detector has them."""


class _ScikitLearn:
    def prepared(self, detector: Any) -> Any:
        copy = clone(detector)
        return copy.set_params(novelty=True) if hasattr(copy, "novelty") else copy

    def storage(self, detector: Any, M: Matrix) -> Matrix:
        return M if get_tags(detector).input_tags.sparse else np.asarray(dense(M))

    def outlier_score(self, detector: Any, M: Matrix) -> Floats:
        inside = detector.score_samples if hasattr(detector, "score_samples") else detector.decision_function
        return -np.asarray(inside(M), dtype=np.float64).ravel()

    def training_score(self, detector: Any) -> Floats | None:
        factors = getattr(detector, "negative_outlier_factor_", None)
        return None if factors is None else -np.asarray(factors, dtype=np.float64)


class _PyOD:
    def prepared(self, detector: Any) -> Any:
        return clone(detector)

    def storage(self, detector: Any, M: Matrix) -> Matrix:
        return np.asarray(dense(M), dtype=np.float64)

    def outlier_score(self, detector: Any, M: Matrix) -> Floats:
        return np.asarray(detector.decision_function(M), dtype=np.float64).ravel()

    def training_score(self, detector: Any) -> Floats | None:
        return np.asarray(detector.decision_scores_, dtype=np.float64)


def _door(detector: object) -> _Door:
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(detector).__mro__]
    if isinstance(detector, type):
        raise ParameterError("detector", detector, "an instance, not a class")
    if ("pyod", "BaseDetector") in kinds:
        return _PyOD()
    if _is_scikit_learn_detector(detector):
        return _ScikitLearn()
    raise ParameterError("detector", detector, "an outlier detector of scikit-learn or PyOD")


def _is_scikit_learn_detector(detector: Any) -> bool:
    return hasattr(detector, "__sklearn_tags__") and get_tags(detector).estimator_type == "outlier_detector"


def wrap_detector(detector: object) -> ScoreBase:
    """Return `detector` as a score: a score as it is, a detector of scikit-learn or PyOD in a `ForeignScore`.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> wrap_detector(IsolationForest())
    ForeignScore(detector=IsolationForest())
    >>> wrap_detector(42)
    Traceback (most recent call last):
    mcode.errors.ParameterError: detector must be an outlier detector of scikit-learn or PyOD; got 42.
    """
    if isinstance(detector, ScoreBase):
        return detector
    _door(detector)
    return ForeignScore(detector)
