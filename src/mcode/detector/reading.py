"""Rows read through the models, and the score fitted on them: what `MCODE` and `audit` share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.corruption import Noise
from mcode.errors import ParameterError
from mcode.models.panel import Panel, Reread
from mcode.ranking import is_share
from mcode.scores.learned import LearnedScore
from mcode.scores.noise import NoiseScore

USUAL_ERROR_RATE = 0.02


def companions_of(score: Any) -> tuple[str, ...]:
    """Return the names of the models that a score wants to see beside the detector's own."""
    return tuple(getattr(score, "needs", ()))


def fit_score(score: Any, panel: Panel, reread: Reread, fold_of_row: NDArray[np.intp] | None) -> Floats:
    """Fit `score` on the rows of `panel`; return their own scores."""
    if isinstance(score, LearnedScore):
        return score.fit_outlier_score(panel, reread, fold_of_row)
    if _takes_panel(score):
        return np.asarray(score.fit(panel).outlier_score(panel))
    return np.asarray(score.fit_outlier_score(panel.rho))


def apply_score(score: Any, panel: Panel) -> Floats:
    """Return the scores of the rows of `panel`."""
    return np.asarray(score.outlier_score(panel if _takes_panel(score) else panel.rho))


def _takes_panel(score: Any) -> bool:
    return isinstance(score, LearnedScore | NoiseScore) or bool(getattr(score, "takes_panel", False))


def ratio_score(score: Any, panel: Panel) -> LearnedScore | NoiseScore:
    """Return the score that error probabilities are made of: itself where it is a likelihood ratio, else noise."""
    return score if isinstance(score, LearnedScore | NoiseScore) else NoiseScore([Noise(0.01)]).fit(panel)


def response_blame(score: LearnedScore | NoiseScore, panel: Panel) -> Floats:
    """Return P(response j is wrong | an error happened in the row), shape (n, d); a missing one is not wrong."""
    blame = score.response_blame(panel)
    return blame if panel.known is None else blame * panel.known


def assumed_error_rate(error_rate: float | str, score: LearnedScore | NoiseScore) -> float:
    """Return the share of wrong rows that probabilities assume: what was asked for, or what a learned score found."""
    if not isinstance(error_rate, str):
        return error_rate
    return score.contamination_ if isinstance(score, LearnedScore) else USUAL_ERROR_RATE


def check_error_rate(error_rate: float | str) -> None:
    """Refuse what is neither "auto" nor a share."""
    if not (is_share(error_rate) or (isinstance(error_rate, str) and error_rate == "auto")):
        raise ParameterError("error_rate", error_rate, "'auto' or a number between 0 and 1")


def posterior(log_ratio: Floats, rate: float) -> Floats:
    """Return sigmoid(logit(rate) + log_ratio): the probability that a row is wrong.

    Examples
    --------
    >>> posterior(np.array([0.0]), 0.02)
    array([0.02])
    """
    log_odds = np.log(rate) - np.log1p(-rate) + log_ratio
    return np.asarray(np.exp(-np.logaddexp(0.0, -log_odds)))
