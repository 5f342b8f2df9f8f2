"""Which response of a wrong row is the wrong one, learned from the same errors made on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mcode._arrays import Floats
from mcode.corruption import log_odds_against, log_sum_exp
from mcode.models.panel import Panel
from mcode.scores.row_features import LOOKED_AT, SMALLEST_SPREAD, presence
from mcode.solvers.kernels import log_likelihood, residual_and_curvature
from mcode.solvers.threads import run_all

MOST_CELLS = 20_000  # per kind of error
FEWEST_ROWS = 300
CELLS_AT_ONCE = 100_000  # a dozen features of each are in memory together
VIEWS = (*LOOKED_AT, "twins", "company")
ALSO_IF_PRESENT = ("model", "pairs")  # views that say other things of a present response than of an absent one
PENALTY = 3.0
STEPS = 30
EXACTNESS = 1e-6  # of the loss, relative
MOST_CALIBRATED = 1_000  # rows, roughly: two numbers need no more
FARTHEST = 30.0  # log odds beyond which a response is as good as certain

Singles: TypeAlias = NDArray[np.float32]
Cells: TypeAlias = tuple[Singles, NDArray[np.bool_]]  # features (n, d, k) and truth (n, d) of the cells of some rows


def cell_features(panel: Panel) -> Singles:
    """Return what is known of each cell, shape (n, d, k), in single precision: of many responses it is large.

    Its log odds of being wrong under each model, whether it is present, how often the response is, and how many are
    present in the row: too many of them speak against each, too few for one that is missing.
    """
    return np.stack(_features_one_by_one(panel), axis=2, dtype=np.float32, casting="same_kind")


def _features_one_by_one(panel: Panel) -> list[Floats]:
    codes, base = presence(panel)
    present = codes.astype(np.float64)
    odds = {view: log_odds_against(panel.views[view], panel.n_values) for view in VIEWS}
    if_present = [present * part for part in (base, *(odds[view] for view in ALSO_IF_PRESENT))]
    number = np.log1p(present.sum(axis=1, keepdims=True))
    return [*odds.values(), present, base, *if_present, number * present, number * base]


def sample_rows(n: int, d: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return which of n corrupted rows are learned from, in order: they have about MOST_CELLS cells."""
    return np.sort(rng.permutation(n)[: max(FEWEST_ROWS, MOST_CELLS // d)])


@dataclass(frozen=True)
class Blame:
    """P(a response is wrong | an error happened in its row).

    The responses of a row compete: were just one of them wrong, it would be j with probability softmax(w' features)_j.
    Several can be wrong, so each has P = sigmoid(a + b * the log odds of that), which leaves the order as it is.
    """

    w: Floats
    calibration: Floats  # a, b

    @classmethod
    def fit(cls, cells: Sequence[Cells], shares: Floats) -> Blame:
        """Learn from sampled cells of rows with each kind of error.

        A kind counts by its share for each response that it makes wrong: where many are, any of them may be named.
        """
        features = np.concatenate([F for F, _ in cells])
        wrong = np.concatenate([truth for _, truth in cells])
        weights = [share / truth.sum() for (_, truth), share in zip(cells, shares, strict=True)]
        share = np.repeat(weights, [len(truth) for _, truth in cells])
        share *= len(wrong) / share.sum()
        w = fit_competition(features, wrong, share)
        some = slice(None, None, max(1, len(wrong) // MOST_CALIBRATED))
        log_odds = _log_odds_of_being_the_one(features[some] @ w)
        return cls(w, _fit_calibration(log_odds, wrong[some], share[some]))

    def probability(self, panel: Panel) -> Floats:
        """Return the probability of each cell, shape (n, d)."""
        out = np.empty(panel.Y.shape)
        at_once = max(1, CELLS_AT_ONCE // panel.Y.shape[1])
        a, b = self.calibration

        def read(rows: slice) -> None:
            values = np.zeros_like(out[rows])
            for weight, feature in zip(self.w, _features_one_by_one(panel[rows]), strict=True):
                values += weight * feature
            eta = a + b * _log_odds_of_being_the_one(values)
            log_likelihood(eta, np.ones_like(eta), out[rows])

        run_all([partial(read, slice(start, start + at_once)) for start in range(0, len(out), at_once)])
        return np.exp(out, out=out)


def _log_odds_of_being_the_one(values: Floats) -> Floats:
    """Return values - log sum exp of the other values of the row: the log odds of softmax(values)."""
    log_share = values - log_sum_exp(values)[:, None]
    log_rest = np.log(np.maximum(-np.expm1(log_share), 1e-300))
    return np.asarray(np.clip(log_share - log_rest, -FARTHEST, FARTHEST))


def fit_competition(features: Floats | Singles, wrong: NDArray[np.bool_], share: Floats) -> Floats:
    """Return w that maximises the likelihood that the one response named of each row is a wrong one."""
    axes, in_axes = _even_axes(features)
    # one response after the other, so that sums over the responses of a row run along whole arrays
    U = np.empty((*wrong.T.shape, features.shape[2]), np.float32)
    for rows, cells in _in_parts(features):
        U[:, rows] = (cells @ axes).transpose(1, 0, 2)
    U = U.reshape(-1, U.shape[2])
    is_wrong, weight = np.ascontiguousarray(wrong.T, dtype=np.float32), share.astype(np.float32)

    def loss(v: Floats) -> tuple[float, Floats]:
        eta = (U @ v.astype(np.float32)).reshape(is_wrong.shape)
        eta -= eta.max(axis=0)
        odds = np.exp(eta, out=eta)
        total, total_wrong = odds.sum(axis=0), np.maximum((odds * is_wrong).sum(axis=0), 1e-30)
        shrunk = in_axes @ v
        value = share @ np.log(total / total_wrong) + 0.5 * v @ shrunk
        odds *= weight / total - is_wrong * (weight / total_wrong)
        return float(value), odds.ravel() @ U + shrunk

    start = np.zeros(features.shape[2])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": EXACTNESS})
    return np.asarray(axes @ found.x)


def _in_parts(features: Floats | Singles) -> Iterator[tuple[slice, Floats]]:
    """Return the cells of some rows after the other in double precision, less what the first cell has.

    A number that all cells of a row have more of changes nothing in a competition.
    """
    at_once = max(1, CELLS_AT_ONCE // features.shape[1])
    first = features[0, 0].astype(np.float64)
    for start in range(0, len(features), at_once):
        rows = slice(start, start + at_once)
        yield rows, features[rows] - first


def _even_axes(features: Floats | Singles) -> tuple[Floats, Floats]:
    """Return axes along which the loss is about equally curved at its start, and the penalty in them.

    Features overlap so much that the search would take twice as many steps along their own axes.
    """
    n, d, k = features.shape
    total, squares, of_rows = np.zeros(k), np.zeros((k, k)), np.zeros((k, k))
    for _, cells in _in_parts(features):
        flat, means = cells.reshape(-1, k), cells.mean(axis=1)
        total += flat.sum(axis=0)
        squares += flat.T @ flat
        of_rows += means.T @ means
    deviation = np.sqrt(np.maximum(np.diag(squares) / (n * d) - (total / (n * d)) ** 2, 0.0))
    scale = 1.0 / np.where(deviation < SMALLEST_SPREAD, 1.0, deviation)
    curvature = scale[:, None] * (squares / d - of_rows) * scale + PENALTY * np.eye(k)
    even = np.linalg.inv(np.linalg.cholesky(curvature)).T
    return scale[:, None] * even, PENALTY * even.T @ even


def _fit_calibration(log_odds: Floats, wrong: NDArray[np.bool_], share: Floats) -> Floats:
    """Return intercept and slope, never a falling one, of wrong cells on their log odds."""
    target, x = (values.reshape(1, -1) for values in (wrong.astype(np.float64), log_odds))
    weight = np.repeat(share, wrong.shape[1])
    log_p, residual, curvature = (np.empty(x.shape) for _ in range(3))

    def loss(ab: Floats) -> tuple[float, Floats]:
        eta, away = ab[0] + ab[1] * x, ab - [0.0, 1.0]
        log_likelihood(eta, target, log_p)
        residual_and_curvature(eta, target, residual, curvature)
        slope = residual[0] * weight
        return float(0.5 * away @ away - log_p[0] @ weight), np.array([slope.sum(), slope @ x[0]]) + away

    bounds = [(None, None), (0.05, None)]
    return np.asarray(minimize(loss, np.array([0.0, 1.0]), jac=True, method="L-BFGS-B", bounds=bounds).x)
