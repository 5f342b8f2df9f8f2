"""Experiments 1 and 2 as the paper prints them: folds, halves, bootstrap, injection, and all methods on the same rows.

Experiment 1: 0.5 % x N of the N x d cells are flipped, "with no pre-selection of instances or dimensions": 25 cells of
5,000 bootstrapped rows. Experiment 2: p cells in each of 0.5 % of the rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._progress import advance
from mcode.experiments import metrics
from mcode.experiments.datasets import DataFolder, Table
from mcode.experiments.methods import PAPER, Case, Trained
from mcode.experiments.results import Results, keep_settings
from mcode.models.encoding import Codes

SHARE = 0.005
EXPERIMENT_1 = ("mediamill_sample", "bibtex", "reuters_aligned", "corel5k", "medical", "genbase", "reuters")
EXPERIMENT_2 = ("mediamill_sample", "bibtex", "corel5k")
KEYS = ("data", "repeat", "fold", "p", "method")


@dataclass(frozen=True)
class Unit:
    """One test set: a fold of a repeat, with p outlying dimensions per wrong row (0: cells anywhere, Experiment 1)."""

    data: str
    repeat: int
    fold: int
    p: int


@dataclass(frozen=True)
class Plan:
    """How large a run is.

    Attributes
    ----------
    experiment : "1" or "2"
    sets : file names of the data sets
    seed : int
    repeats, folds, bootstrap : int
    dimensions : the numbers p of outlying dimensions
    """

    experiment: str
    sets: tuple[str, ...]
    seed: int = 0
    repeats: int = 3
    folds: int = 10
    bootstrap: int = 5000
    dimensions: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, experiment: str, *, quick: bool, seed: int, sets: Sequence[str] = ()) -> Plan:
        """Return the paper's plan, or a small one of the same shape."""
        every: tuple[str, ...] = EXPERIMENT_1 if experiment == "1" else EXPERIMENT_2
        dimensions = (0,) if experiment == "1" else tuple(range(1, 11))
        if not quick:
            return cls(experiment, tuple(sets) or every, seed, dimensions=dimensions)
        few = tuple(sets) or (("medical", "genbase") if experiment == "1" else ("corel5k",))
        return cls(
            experiment, few, seed, repeats=1, folds=3, bootstrap=1000, dimensions=dimensions[:1] + dimensions[4:5]
        )

    def units(self) -> Iterator[Unit]:
        """Return all test sets, those of one model after each other; a stopped run has whole repeats of all data."""
        for repeat in range(self.repeats):
            for data in self.sets:
                for fold in range(self.folds):
                    for p in self.dimensions:
                        yield Unit(data, repeat, fold, p)

    def settings(self) -> dict[str, Any]:
        """Return what makes results comparable; more data sets may be added to a folder."""
        kept = {name: value for name, value in asdict(self).items() if name != "sets"}
        return {**kept, "dimensions": list(self.dimensions)}


def bootstrapped(rows: NDArray[np.intp], size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return `size` of the rows, drawn with replacement."""
    return rng.choice(rows, size)


def flip_cells(Y: Codes, rng: np.random.Generator) -> Codes:
    """Return Y with 0.5 % x N cells flipped, drawn from all N x d cells (Experiment 1)."""
    n, d = Y.shape
    out = Y.copy()
    out.ravel()[rng.choice(n * d, max(1, round(SHARE * n)), replace=False)] ^= 1
    return out


def flip_in_rows(Y: Codes, p: int, rng: np.random.Generator) -> Codes:
    """Return Y with p cells flipped in each of 0.5 % of the rows (Experiment 2)."""
    n, d = Y.shape
    out = Y.copy()
    for row in rng.choice(n, max(1, round(SHARE * n)), replace=False):
        out[row, rng.choice(d, min(p, d), replace=False)] ^= 1
    return out


@dataclass
class PaperProtocol:
    """Runs the units of a plan; the model of a fold is fitted once and serves all methods and all p."""

    plan: Plan
    data: DataFolder
    _trained: tuple[Any, Trained, float] | None = field(default=None, init=False)

    def rows(self, unit: Unit, methods: Sequence[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return what the methods reach on one test set, and the seconds that each took."""
        table = self.data.table(unit.data)
        trained, test, fitting = self._fold(table, unit)
        rng = np.random.default_rng(table.seed(self.plan.seed, unit.repeat, unit.fold, unit.p, 1))
        drawn = bootstrapped(test, self.plan.bootstrap, rng)
        Y = table.Y[drawn]
        changed = flip_in_rows(Y, unit.p, rng) if unit.p else flip_cells(Y, rng)
        wrong = (changed != Y).any(axis=1)
        case = Case(trained, table.X[drawn], changed)
        found = []
        times = [{**asdict(unit), "method": "fit", "seconds": fitting}] if fitting else []
        for method in methods:
            start = time.perf_counter()
            score = PAPER[method](case)
            times.append({**asdict(unit), "method": method, "seconds": time.perf_counter() - start})
            found.append({**asdict(unit), "method": method, "wrong": int(wrong.sum()), **metrics.all_of(wrong, score)})
        return found, times

    def _fold(self, table: Table, unit: Unit) -> tuple[Trained, NDArray[np.intp], float]:
        """Return what was fitted on the other folds, the rows of this one, and the seconds if it is new."""
        fold_of_row = np.random.default_rng(table.seed(self.plan.seed, unit.repeat)).permutation(len(table.Y))
        fold_of_row %= self.plan.folds
        test, train = np.flatnonzero(fold_of_row == unit.fold), np.flatnonzero(fold_of_row != unit.fold)
        name = (unit.data, unit.repeat, unit.fold)
        if self._trained is not None and self._trained[0] == name:
            return self._trained[1], test, 0.0
        start = time.perf_counter()
        rng = np.random.default_rng(table.seed(self.plan.seed, unit.repeat, unit.fold, 0))
        trained = Trained.on(table.X[train], table.Y[train], rng)
        self._trained = (name, trained, 0.0)
        return trained, test, time.perf_counter() - start


def paper_results(folder: Path) -> Results:
    """Return the rows that are in a folder."""
    return Results(folder / "rows.csv", KEYS, ("wrong", *metrics.MEASURES))


def run_paper(plan: Plan, data: DataFolder, folder: Path, redo: Sequence[str] = ()) -> Results:
    """Run an experiment of the paper, or what is left of it; the rows are in `folder`/rows.csv."""
    data.check(plan.sets)
    keep_settings(folder, plan.settings())
    results = paper_results(folder)
    times = Results(folder / "times.csv", KEYS, ("seconds",))
    for method in redo:
        results.drop(method=method)
    protocol = PaperProtocol(plan, data)
    units = list(plan.units())
    for done, unit in enumerate(units):
        advance(f"experiment {plan.experiment}", done, len(units))
        missing = [method for method in PAPER if not results.has(**asdict(unit), method=method)]
        if missing:
            found, took = protocol.rows(unit, missing)
            results.append(found)
            times.append(took)
    advance(f"experiment {plan.experiment}", len(units), len(units))
    every = Plan.of(plan.experiment, quick=False, seed=plan.seed).sets
    whole = replace(plan, sets=tuple(dict.fromkeys((*every, *plan.sets)))).units()
    results.finish({**asdict(unit), "method": method} for unit in whole for method in PAPER)
    return results
