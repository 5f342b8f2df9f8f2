"""The scores by name."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from mcode.errors import UnknownNameError
from mcode.scores.base import ScoreBase
from mcode.scores.complement import ComplementScore
from mcode.scores.foreign import wrap_detector
from mcode.scores.learned import LearnedScore
from mcode.scores.lof import LOFScore
from mcode.scores.noise import NoiseScore
from mcode.scores.norm import NormScore
from mcode.scores.ocsvm import OneClassScore
from mcode.scores.reliability import ReliabilityScore
from mcode.scores.robust import RobustScore

SCORES: dict[str, type[Any]] = {
    "complement": ComplementScore,
    "robust": RobustScore,
    "norm": NormScore,
    "lof": LOFScore,
    "ocsvm": OneClassScore,
    "noise": NoiseScore,
    "learned": LearnedScore,
    "reliability": ReliabilityScore,
}


def as_score(score: Any) -> Any:
    """Return an unfitted score: what a name stands for, a copy of a score, or a wrapped foreign detector.

    Examples
    --------
    >>> as_score("norm")
    NormScore()
    >>> from sklearn.ensemble import IsolationForest
    >>> as_score(IsolationForest())
    ForeignScore(detector=IsolationForest())
    """
    if isinstance(score, str):
        if score not in SCORES:
            raise UnknownNameError("score", score, SCORES)
        return SCORES[score]()
    if isinstance(score, ScoreBase | NoiseScore | LearnedScore | ReliabilityScore):
        return clone(score)
    if isinstance(score, type) or not hasattr(score, "fit"):
        raise UnknownNameError("score", score, SCORES)
    return wrap_detector(score)
