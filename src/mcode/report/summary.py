"""What an audit found as a whole: the cut, the distribution of the scores, the health of each response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.detector import Audit
from mcode.models.encoding import MISSING
from mcode.report.histogram import Histogram

CutKind = Literal["fdr", "top", "rate"]


@dataclass(frozen=True)
class Cut:
    """Which rows are called findings.

    Attributes
    ----------
    kind : "fdr" (false-discovery rate), "top" (so many rows) or "rate" (so large a share of the rows)
    level : float, the rate, number or share that was asked for
    n_flagged : int
    expected_false_alarms : float, how many of the flagged rows are expected to be right after all
    """

    kind: CutKind
    level: float
    n_flagged: int
    expected_false_alarms: float


@dataclass(frozen=True)
class ResponseHealth:
    """One response over all rows.

    Attributes
    ----------
    name : str
    present : float, share of the rows that have it; of a response with several values, share of the commonest
    predictable : float
        Share of the uncertainty about the response that context and other responses remove: 1 - mean(-log rho) / the
        entropy of its base rate, at least 0. 1 = fully determined, 0 = no better than the base rate.
    suspicious : float, expected number of wrong values: the sum of its error probabilities
    flagged : int, rows among the findings that name it first
    reliable : float or None
        Where the model expects the other value, how likely that value is really wrong, on average: how far an alarm of
        this response can be trusted. None where the model never disagrees.
    n_values : int, how many values it has
    """

    name: str
    present: float
    predictable: float
    suspicious: float
    flagged: int
    reliable: float | None
    n_values: int = 2


@dataclass(frozen=True)
class Summary:
    """Everything a report says that is not about one row.

    Attributes
    ----------
    source : str, what was audited
    n_rows, n_features, n_responses : int
    model, score : str, names of the model and of the score
    error_rate : float, estimated share of wrong rows: the mean of their error probabilities
    cut : Cut
    scores : Histogram of the scores
    health : tuple of ResponseHealth, most suspicious first
    one_valued : tuple of str, responses that have one value only
    """

    source: str
    n_rows: int
    n_features: int
    n_responses: int
    model: str
    score: str
    error_rate: float
    cut: Cut
    scores: Histogram
    health: tuple[ResponseHealth, ...]
    one_valued: tuple[str, ...] = ()


def summarise(
    found: Audit,
    flagged: NDArray[np.intp],
    cut: Cut,
    *,
    source: str,
    n_features: int,
    label_names: Sequence[str],
    first_named: Sequence[str],
    model: str,
    score: str,
) -> Summary:
    """Return the summary of an audit.

    Parameters
    ----------
    found : Audit
    flagged : array of the rows that are findings
    cut : Cut that chose them
    source : str, the file
    n_features : int
    label_names : list of str, the user's names of the responses
    first_named : list of str, the response that each finding names first
    model, score : str
    """
    n_rows, n_responses = found.rho.shape
    constant = np.flatnonzero(found.codes.min(axis=0) == found.codes.max(axis=0))
    return Summary(
        source=source,
        n_rows=n_rows,
        n_features=n_features,
        n_responses=n_responses,
        model=model,
        score=score,
        error_rate=float(found.error_probability.mean()),  # what it assumes before it looks is careful: too low
        cut=cut,
        scores=Histogram.of(found.outlier_score, flagged),
        health=_health(found, label_names, first_named),
        one_valued=tuple(label_names[int(j)] for j in constant),
    )


def _health(found: Audit, names: Sequence[str], first_named: Sequence[str]) -> tuple[ResponseHealth, ...]:
    n_values = found.encoding.n_values
    present = np.asarray(found.codes.mean(axis=0), dtype=np.float64)
    suspicious = found.response_error_probability.sum(axis=0)
    predictable = predictability(found.rho, present)
    disagree = found.rho < 0.5
    for j in (j for j, k in enumerate(n_values) if k > 2):
        codes = found.codes[found.codes[:, j] != MISSING, j]
        share = np.bincount(codes, minlength=n_values[j]) / max(1, len(codes))
        entropy = -(share * np.log(np.maximum(share, 1e-300))).sum()
        surprise = -np.log(np.maximum(found.rho[:, j], 1e-300)).mean()
        present[j], predictable[j] = share.max(), np.clip(1.0 - surprise / max(entropy, 1e-9), 0.0, 1.0)
    if max(n_values) > 2:
        disagree = found.expected(np.arange(len(found.codes))) != found.codes
    wrong = np.where(disagree, found.response_error_probability, 0.0).sum(axis=0)
    times = disagree.sum(axis=0)
    return tuple(
        ResponseHealth(
            name=names[int(j)],
            present=float(present[j]),
            predictable=float(predictable[j]),
            suspicious=float(suspicious[j]),
            flagged=sum(name == names[int(j)] for name in first_named),
            reliable=float(wrong[j] / times[j]) if times[j] else None,
            n_values=n_values[int(j)],
        )
        for j in np.argsort(-suspicious, kind="stable")
    )


def predictability(rho: Floats, present: Floats) -> Floats:
    """Return, for each response, the share of its uncertainty that the model removes.

    Examples
    --------
    >>> predictability(np.array([[1.0, 0.5], [1.0, 0.5]]), np.array([0.5, 0.5]))
    array([1., 0.])
    """
    p = np.clip(present, 1e-12, 1.0 - 1e-12)
    entropy = -(p * np.log(p) + (1.0 - p) * np.log1p(-p))
    surprise = -np.log(np.maximum(rho, 1e-300)).mean(axis=0)
    # A response with one value only has nothing to predict; what is left of its entropy is rounding.
    removed = np.where(entropy > 1e-9, 1.0 - surprise / np.maximum(entropy, 1e-9), 1.0)
    return np.clip(removed, 0.0, 1.0)
