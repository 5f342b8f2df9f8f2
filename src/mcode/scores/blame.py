"""Which response of a wrong row is the wrong one, learned from the same errors made on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.corruption import log_odds_against
from mcode.models.panel import Panel
from mcode.scores.row_features import spread
from mcode.solvers.kernels import log_likelihood
from mcode.solvers.path import Task, fit_all

MOST_CELLS = 20_000  # per kind of error
CELLS_AT_ONCE = 500_000  # nine features of each are in memory together
PENALTY = 1.0
TOLERANCE = 1e-4


def cell_features(panel: Panel) -> Floats:
    """Return what is known of each cell, shape (n, d, 9).

    Its log odds of being wrong under each model, how far they stand out from the other responses of the row (a wrong
    response makes its neighbours look odd too, but less so), and whether it is present.
    """
    present = panel.Y.astype(np.float64)
    parts = []
    for view in ("model", "chain", "br"):
        odds = log_odds_against(panel.views[view])
        parts += [odds, odds - _largest_of_others(odds)]
    parts += [present, present * parts[0], present * parts[1]]
    return np.stack(parts, axis=2)


def _largest_of_others(values: Floats) -> Floats:
    """Return, for each cell, the largest value among the other cells of its row."""
    if values.shape[1] == 1:
        return np.zeros_like(values)
    top = values.argmax(axis=1)
    rows = np.arange(len(values))
    others = values.copy()
    others[rows, top] = -np.inf
    out = np.repeat(values.max(axis=1)[:, None], values.shape[1], axis=1)
    out[rows, top] = others.max(axis=1)
    return out


def sample_cells(panel: Panel, wrong: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
    """Return features and truth of the cells of some corrupted rows, at most MOST_CELLS of them."""
    rows = rng.permutation(len(wrong))[: max(1, MOST_CELLS // wrong.shape[1])]
    features = cell_features(panel[rows])
    return features.reshape(-1, features.shape[2]), wrong[rows].ravel()


@dataclass(frozen=True)
class Blame:
    """P(a response is wrong | an error happened in its row) = sigmoid(w' features)."""

    center: Floats
    scale: Floats
    w: Floats

    @classmethod
    def fit(cls, cells: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> Blame:
        """Learn from sampled cells of rows with each kind of error."""
        F = np.vstack([features for features, _ in cells])
        wrong = np.concatenate([truth for _, truth in cells])
        center, scale = F.mean(axis=0), spread(F)
        Z = ((F - center) / scale).astype(np.float32)
        nothing = np.empty((len(F), 0), np.uint8)
        task = Task(Z, nothing, wrong[:, None].astype(np.uint8), np.ones((0, 1), bool))
        w = fit_all(task, np.array([PENALTY]), None, TOLERANCE).W[:, 0].astype(np.float64)
        return cls(center, scale, w)

    def probability(self, panel: Panel) -> Floats:
        """Return the probability of each cell, shape (n, d)."""
        out = np.empty(panel.Y.shape)
        at_once = max(1, CELLS_AT_ONCE // panel.Y.shape[1])
        for start in range(0, len(out), at_once):
            rows = slice(start, start + at_once)
            eta = ((cell_features(panel[rows]) - self.center) / self.scale) @ self.w[:-1] + self.w[-1]
            log_likelihood(eta, np.ones_like(eta), out[rows])
        return np.exp(out, out=out)
