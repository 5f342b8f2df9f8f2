"""What a learned score looks at in a row: a few sums and maxima of its surprises under each model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit

from mcode._arrays import Floats
from mcode.corruption import log_odds_against
from mcode.models.encoding import Codes
from mcode.models.panel import Panel
from mcode.solvers.threads import run_all

LOOKED_AT = ("model", "chain", "br", "others", "mutual", "alike", "pairs", "prototypes")
RATE = "rate"  # how often each response occurs, which all of them are compared with
JOINED = "context and responses"  # made of two of these: `_join`
PER_VIEW = (
    "sum of -log rho",
    "largest log odds",
    "second largest",
    "third largest",
    "log sum of floored odds",
    "sum over present",
    "sum over absent",
    "log sum of odds, present",
    "log sum of odds, absent",
)
MOST_SUSPICIOUS = (
    "it is present",
    "log odds of its base rate",
    "the same if it is present",
    "log odds of an error, chain",
    "log odds of an error, binary relevance",
    "log odds of an error if it is present",
    "the same, binary relevance",
)
OVERALL = (
    "base-rate surprise",
    "number present",
    "rarest present",
)
NAMES = (
    tuple(f"{view}: {name}" for view in (*LOOKED_AT, JOINED) for name in PER_VIEW)
    + OVERALL
    + tuple(f"most suspicious response: {name}" for name in MOST_SUSPICIOUS)
)
ROWS_AT_ONCE = 4096
FARTHEST = 27.0  # log odds, as far as a single view goes
SMALLEST_SPREAD = 1e-5  # log rho comes from single-precision logits


def row_features(panel: Panel) -> Floats:
    """Return the features of each row of a panel with the views of LOOKED_AT and RATE, shape (n, len(NAMES))."""
    present, base = presence(panel)
    n = len(panel.Y)
    out = np.empty((n, len(NAMES)))
    width = len(PER_VIEW)

    def summarise(start: int, v: int, view: str) -> None:
        rows = slice(start, start + ROWS_AT_ONCE)
        if view == JOINED:
            log_rho = np.empty((len(present[rows]), present.shape[1]))
            _join(panel.views["br"][rows], panel.views["mutual"][rows], panel.views[RATE][rows], log_rho)
        else:
            log_rho = panel.views[view][rows]
        _summarise(log_rho, present[rows], out[rows, v * width : (v + 1) * width])

    starts = range(0, n, ROWS_AT_ONCE)
    views = (*LOOKED_AT, JOINED)
    run_all([partial(summarise, start, v, view) for start in starts for v, view in enumerate(views)])
    summaries = len(views) * width
    out[:, summaries : summaries + len(OVERALL)] = _overall(panel, present)
    out[:, summaries + len(OVERALL) :] = _most_suspicious(panel, present, base)
    return out


def presence(panel: Panel) -> tuple[Codes, Floats]:
    """Return which responses are present, and the log odds of how often each is among the training rows, both (n, d).

    A response with several values is always present, and as often as its recorded value occurs.
    """
    several = np.zeros(panel.Y.shape[1], bool) if panel.n_values is None else np.asarray(panel.n_values) > 2
    present = np.where(several, 1, panel.Y).astype(np.uint8)
    against = log_odds_against(panel.views[RATE])
    return present, np.where(present == 1, -against, against)


def _overall(panel: Panel, codes: Codes) -> Floats:
    log_rate = panel.views[RATE]
    return np.column_stack([-log_rate.sum(axis=1), codes.sum(axis=1), -(codes * log_rate).min(axis=1)])


def _most_suspicious(panel: Panel, codes: Codes, base: Floats) -> Floats:
    """Return what is known of the response that the detector's own model believes least."""
    cell = np.arange(len(panel.Y)), panel.views["model"].argmin(axis=1)
    present = codes[cell].astype(np.float64)
    many = None if panel.n_values is None else np.asarray(panel.n_values)[cell[1]]
    log_odds = {name: log_odds_against(panel.views[name][cell], many) for name in ("model", "chain", "br")}
    return np.column_stack(
        [
            present,
            base[cell],
            present * base[cell],
            log_odds["chain"],
            log_odds["br"],
            present * log_odds["model"],
            present * log_odds["br"],
        ]
    )


def spread(F: Floats) -> Floats:
    """Return the standard deviation of each feature, or 1 where what varies is rounding: another row would be far away.

    Examples
    --------
    >>> spread(np.array([[1.0, 2.0, 0.1 + 0.2], [3.0, 2.0, 0.3]]))
    array([1., 1., 1.])
    """
    deviation = F.std(axis=0)
    return np.where(deviation < SMALLEST_SPREAD, 1.0, deviation)


@njit(cache=True, nogil=True)
def _join(br: Any, mutual: Any, rate: Any, out: Any) -> None:
    """Write log rho by the context and by the other responses, as if these were independent given the response.

    Then the odds multiply, and those of the base rate, which are in both, count once:
    P(y_j | x, the others) ~ P(y_j | x) P(y_j | the others) / P(y_j). A regression on both has to learn from few rows
    how much each of many parts says; here two numbers meet that are both known well.
    """
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            against = np.log(np.expm1(-br[i, j]) * np.expm1(-mutual[i, j]) / np.expm1(-rate[i, j]) + 1e-300)
            out[i, j] = -np.log1p(np.exp(min(max(against, -FARTHEST), FARTHEST)))


@njit(cache=True, nogil=True)
def _summarise(log_rho: Any, Y: Any, out: Any) -> None:
    """Write the numbers named in PER_VIEW for each row."""
    for i in range(log_rho.shape[0]):
        first, second, third = 0.0, 0.0, 0.0
        present, absent, odds_present, odds_absent, floored = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(log_rho.shape[1]):
            surprise = -log_rho[i, j]
            odds = np.expm1(surprise)
            if Y[i, j]:
                present += surprise
                odds_present += odds
            else:
                absent += surprise
                odds_absent += odds
            floored += odds / (1.0 + 0.01 * (1.0 + odds))  # (1 - rho) / (rho + 0.01)
            if odds > first:
                first, second, third = odds, first, second
            elif odds > second:
                second, third = odds, second
            elif odds > third:
                third = odds
        out[i, 0] = present + absent
        out[i, 1] = np.log(first + 1e-9)
        out[i, 2] = np.log(second + 1e-9)
        out[i, 3] = np.log(third + 1e-9)
        out[i, 4] = np.log(floored + 1e-9)
        out[i, 5] = present
        out[i, 6] = absent
        out[i, 7] = np.log(odds_present + 1e-6)
        out[i, 8] = np.log(odds_absent + 1e-6)
