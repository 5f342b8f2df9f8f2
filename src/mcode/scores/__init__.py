"""Scores: a matrix in, one number per row out, larger = more outlying."""

from mcode.scores.base import ScoreBase
from mcode.scores.complement import ComplementScore
from mcode.scores.norm import NormScore

__all__ = ["ComplementScore", "NormScore", "ScoreBase"]
