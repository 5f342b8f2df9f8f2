"""Injections into the rows that a judge ranks, until the means are known well enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.experiments import metrics
from mcode.experiments.estimate import Estimate, mean_with_help, plain_mean
from mcode.experiments.injection import KINDS, SHARE, parts
from mcode.experiments.judges import Copies, Judge
from mcode.experiments.metrics import MEASURES

FEWEST_EXACT = 6  # with fewer, an error that looks small by chance would end the work too often
SHARE_OF_EXACT = 0.8  # of the error, for the exact injections: the rest is left to the approximate ones


@dataclass(frozen=True)
class Effort:
    """How far to go: to a standard error of every measure, or up to a number of copies and of exact injections."""

    target: float
    most_copies: int
    most_exact: int


@dataclass
class Tally:
    """The measures of one method, injection by injection.

    A method that looks at one row at a time has `approximate` measures that are exact, and no others.
    """

    one_row: bool
    approximate: list[list[float]] = field(default_factory=list)
    paired: list[list[float]] = field(default_factory=list)
    exact: list[list[float]] = field(default_factory=list)

    @property
    def injections(self) -> int:
        """The number of injections that were measured exactly."""
        return len(self.approximate if self.one_row else self.exact)

    def estimate(self) -> Estimate:
        """Return the means and their standard errors."""
        if self.one_row:
            return plain_mean(np.array(self.approximate))
        return mean_with_help(np.array(self.approximate), np.array(self.paired), np.array(self.exact))

    def is_done(self, effort: Effort) -> bool:
        """Whether the means are known well enough, or more copies would not help."""
        if not self.injections:
            return False
        found = self.estimate()
        no_more = not self.one_row and self.injections >= effort.most_exact
        hopeless = no_more and (found.exact_error > effort.target).any()
        return bool(hopeless or (found.error < effort.target).all())

    def wants_exact(self, effort: Effort) -> bool:
        """Whether one more exact injection is worth its while."""
        if self.one_row or len(self.exact) >= effort.most_exact:
            return False
        if len(self.exact) < FEWEST_EXACT:
            return True
        found = self.estimate()
        done = (found.error < effort.target).all()
        return not (done or (found.exact_error < SHARE_OF_EXACT * effort.target).all())


def measure(judge: Judge, methods: Sequence[str], kind: str, seed: Sequence[int], effort: Effort) -> dict[str, Tally]:
    """Return what each method reaches when errors of a kind are injected into the ranked rows.

    A copy of the ranked rows has an error in every row that can have it. The changed rows are dealt into sets of 2 % of
    the ranked rows, and each set is one injection: its rows have the scores of their copies, all others their own. All
    methods see the same copies in the same order, and each stops by itself: what is measured of a method does not
    depend on which others are measured.
    """
    tallies = {name: Tally(one_row=judge.looks_at_one_row(name)) for name in methods}
    right = judge.table.Y
    for copy in range(effort.most_copies):
        pending = [name for name, tally in tallies.items() if not tally.is_done(effort)]
        if not pending:
            break
        rng = np.random.default_rng(judge.table.seed(*seed, copy))
        other = KINDS[kind].corrupt(right, rng)
        changed = (other != right).any(axis=1)[judge.ranked]
        injections = list(parts(changed, SHARE, rng))
        copies = judge.copies(other[judge.ranked])
        for name in pending:
            _add(tallies[name], judge, name, injections, copies, effort)
    return tallies


def _add(
    tally: Tally, judge: Judge, name: str, injections: list[NDArray[np.intp]], copies: Copies, effort: Effort
) -> None:
    """Add the injections of one copy: all of them approximately, exactly as many as it takes."""
    scores = judge.copy_scores(name, copies)
    approximate = metrics.of_injections(injections, scores, judge.right[name]).tolist()
    tally.approximate += approximate
    for rows, found in zip(injections, approximate, strict=True):
        if not tally.wants_exact(effort):
            break
        wrong = _flags(rows, len(scores))
        tally.paired.append(found)
        tally.exact.append(_measures(wrong, judge.scores_with(name, wrong, copies)))


def _flags(rows: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    flags = np.zeros(n, bool)
    flags[rows] = True
    return flags


def _measures(wrong: NDArray[np.bool_], score: Floats) -> list[float]:
    found = metrics.all_of(wrong, score)
    return [found[measure] for measure in MEASURES]
