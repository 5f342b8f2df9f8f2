"""Responses as they would be if nothing were wrong: drawn anew from a model, given the context."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode._progress import advance
from mcode.detector.reading import apply_score
from mcode.models.categorical import log_proba_of_values, n_values_of
from mcode.models.encoding import MISSING, Codes
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.models.mixture import MixtureConditionals
from mcode.models.panel import Panel
from mcode.models.parents import Parents
from mcode.models.per_label import ClassifierConditionals
from mcode.spaces.rho import RhoSpace

SWEEPS = 3  # of Gibbs sampling, where responses see each other in a circle
# With ten draws for each row a single row can pass the false-discovery cut at 10 percent: 1 / (10 n + 1) < 0.1 / n.
DRAWS_PER_ROW = 10
MOST_DRAWS = 20_000


def ordinary_scores(
    space: RhoSpace,
    score: Any,
    X: Matrix,
    Y: Codes,
    rng: np.random.Generator,
    wanted: tuple[str, ...] = ("chain", "model"),
) -> Floats:
    """Return the scores of rows in which nothing is wrong: contexts of the table, their responses drawn anew.

    The rows of a table cannot be their own reference: the most outlying of n rows has p-value 1 / n, which no
    false-discovery cut lets pass. Each response vector is drawn, and read, by models that never saw its row. Half of
    the draws come from the chain and half from the detector's own model where there are both: measured on generated
    tables, the first is a little too careful and the second a little too bold (benchmarks/cut.py).
    """
    sources = [name for name in wanted if name in space.cross]
    n_draws = min(MOST_DRAWS, DRAWS_PER_ROW * len(Y)) // len(sources)
    scores = []
    for done, name in enumerate(sources):
        advance("draw ordinary rows", done, len(sources))
        rows = np.concatenate([rng.permutation(len(Y)) for _ in range(-(-n_draws // len(Y)))])[:n_draws]
        drawn = _redraw_out_of_fold(space, name, X, Y, np.sort(rows), rng)
        scores.append(apply_score(score, drawn))
    advance("draw ordinary rows", len(sources), len(sources))
    return np.concatenate(scores)


def _redraw_out_of_fold(
    space: RhoSpace, name: str, X: Matrix, Y: Codes, rows: NDArray[np.intp], rng: np.random.Generator
) -> Panel:
    cross, parents = space.cross[name], space.models[name].parents_
    drawn = Y[rows]
    missing = drawn == MISSING  # ordinary rows lack what the rows of the table lack
    drawn[missing] = 0
    for mine, conditionals in cross.parts(rows):
        drawn[mine] = redraw(conditionals, parents, X[rows[mine]], drawn[mine], rng)
    return space.out_of_fold(X[rows], np.where(missing, MISSING, drawn).astype(np.uint8), rows)


def drawing_order(parents: Parents) -> tuple[list[int], bool]:
    """Return an order in which the responses can be drawn, and whether one pass over it is exact.

    It is where each response comes after those it sees; where they see each other no order is.

    Examples
    --------
    >>> drawing_order(np.array([[False, True], [False, False]]))
    ([1, 0], True)
    >>> drawing_order(np.array([[False, True], [True, False]]))
    ([0, 1], False)
    """
    order: list[int] = []
    left = np.ones(len(parents), bool)
    while left.any():
        ready = np.flatnonzero(left & ~(parents & left).any(axis=1))
        if not len(ready):
            return order + [int(j) for j in np.flatnonzero(left)], False
        order += [int(j) for j in ready]
        left[ready] = False
    return order, True


def redraw(conditionals: Conditionals, parents: Parents, X: Matrix, Y: Codes, rng: np.random.Generator) -> Codes:
    """Return responses drawn from the model given the context, shape (n, d).

    Exact for chains, trees and binary relevance, whatever Y. Where responses see each other it is Gibbs sampling that
    starts from Y. A mixture draws each row from one of its members.
    """
    if isinstance(conditionals, MixtureConditionals):
        return _redraw_from_members(conditionals, X, Y, rng)
    order, exact = drawing_order(parents)
    drawn = Y.copy()
    n_values = n_values_of(conditionals)
    if n_values is not None:
        for _ in range(1 if exact else SWEEPS):
            for j in order:
                each = np.exp(log_proba_of_values(conditionals, j, n_values[j], X, drawn)).cumsum(axis=1)
                chosen = (each < rng.random((len(drawn), 1)) * each[:, -1:]).sum(axis=1)
                drawn[:, j] = np.minimum(chosen, n_values[j] - 1)
        return drawn
    probability = _OneResponse(conditionals, X)
    for _ in range(1 if exact else SWEEPS):
        for j in order:
            drawn[:, j] = rng.random(len(drawn)) < probability.of(j, drawn)
    return drawn


def _redraw_from_members(mixture: MixtureConditionals, X: Matrix, Y: Codes, rng: np.random.Generator) -> Codes:
    drawn = np.empty_like(Y)
    member_of_row = rng.choice(len(mixture.members), size=len(Y), p=mixture.weights)
    for k, member in enumerate(mixture.members):
        mine = np.flatnonzero(member_of_row == k)
        drawn[mine] = redraw(member.conditionals, member.parents, X[mine], Y[mine], rng)
    return drawn


class _OneResponse:
    """P(y_j = 1 | x, y) of one response at a time, with the work that does not depend on y done once."""

    def __init__(self, conditionals: Conditionals, X: Matrix) -> None:
        self.conditionals, self.X = conditionals, X
        if isinstance(conditionals, LinearConditionals):
            nobody = np.zeros((X.shape[0], len(conditionals.intercept)), np.uint8)
            self.context = conditionals.logits(X, nobody)

    def of(self, j: int, Y: Codes) -> Floats:
        if isinstance(self.conditionals, LinearConditionals):
            eta = self.context[:, j].astype(np.float64)
            if self.conditionals.responses is not None:
                eta += Y @ self.conditionals.responses[:, j]
            return np.asarray(np.exp(-np.logaddexp(0.0, -eta)))
        if isinstance(self.conditionals, ClassifierConditionals):
            log_rho = self.conditionals.log_proba_of(j, self.X, Y)
            return np.where(Y[:, j] == 1, np.exp(log_rho), -np.expm1(log_rho))
        other = Y.copy()
        other[:, j] = 1
        return np.asarray(np.exp(self.conditionals.log_proba(self.X, other)[:, j]))
