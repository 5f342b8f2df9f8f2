"""Scores: a matrix in, one number per row out, larger = more outlying."""

from mcode.scores.base import ScoreBase
from mcode.scores.complement import ComplementScore
from mcode.scores.foreign import ForeignScore
from mcode.scores.learned import LearnedScore
from mcode.scores.lof import LOFScore
from mcode.scores.names import as_score
from mcode.scores.noise import NoiseScore
from mcode.scores.norm import NormScore
from mcode.scores.ocsvm import OneClassScore
from mcode.scores.reliability import ReliabilityScore
from mcode.scores.robust import RobustScore

__all__ = [
    "ComplementScore",
    "ForeignScore",
    "LOFScore",
    "LearnedScore",
    "NoiseScore",
    "NormScore",
    "OneClassScore",
    "ReliabilityScore",
    "RobustScore",
    "ScoreBase",
    "as_score",
]
