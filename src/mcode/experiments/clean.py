"""The clean protocol: no bootstrap, no duplicates, six kinds of error, all methods on the same wrong rows.

Two settings. "split": models are fitted on one half of the rows, of which a share is contaminated by errors of all
kinds, and score the other half; then the halves change places. "audit": 2 % of the rows of a whole table are wrong
while the models are fitted on it, and every other row is scored out of fold. In both, one fit serves any number of
injections (`mcode.experiments.judges`), and there are as many as it takes for the standard error of each mean to fall
below 0.005 (`mcode.experiments.measuring`). Fits to small tables differ much by which rows were wrong while they were
made: their audits are repeated with other wrong rows, method by method, until that error is below 0.005 as well, or a
largest number of times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mcode._progress import advance
from mcode.experiments import metrics
from mcode.experiments.blame import run_blame
from mcode.experiments.datasets import DataFolder, Table, sample
from mcode.experiments.estimate import REPETITIONS_THAT_SHOW, error_of_mean
from mcode.experiments.injection import KINDS, SHARE, with_errors
from mcode.experiments.judges import Audited, Halves
from mcode.experiments.measuring import Effort, Tally, measure
from mcode.experiments.metrics import MEASURES
from mcode.experiments.results import Results, keep_settings
from mcode.experiments.rivals import FEWER_SETS, METHODS
from mcode.experiments.stopwatch import Stopwatch

KEYS = ("setting", "data", "contamination", "kind", "repetition", "method")
LEVELS = (0.0, 0.01, 0.02, 0.05)
ENOUGH = 0.005  # standard error of a mean
MOST_COPIES = 60
FEWER_COPIES = 12  # of tables so large that more would take long; they have more wrong rows in each injection
CELLS = 2_400_000  # responses that are read in all copies of a table that has more than FEWER_COPIES
MOST_EXACT = 64  # injections for which a method that looks at all rows is asked again; slow ones have fewer
# Repetitions differ by their fits as well as by their injections. Where they show how much, the share of the wanted
# error that is left to the injections: at all of it, the fits would push half of the means above.
SHARE_OF_INJECTIONS = 0.6
PROTOCOL = 2  # 1 had one injection for each fit of an audit: its rows must not be mixed with these

# The most rows taken of a data set, and the repetitions of its audits for all methods, and for methods whose means are
# not known well enough by then: what fits into an hour and a half on two cores.
MOST_ROWS = 2000
FEWER_ROWS = {"delicious": 600}
REPETITIONS = {"emotions": 10, "genbase": 6, "medical": 4, "yeast": 4, "enron": 2}
MOST_REPETITIONS = {"emotions": 14, "genbase": 13, "medical": 8, "yeast": 7}
SETS = (
    "emotions", "genbase", "medical", "yeast", "enron", "imdb", "corel5k", "mediamill_sample", "bibtex",
    "reuters_aligned", "delicious",
)  # fmt: skip


@dataclass(frozen=True)
class CleanUnit:
    """One fit: a level of contamination of the split setting, or an audit of one table."""

    setting: str
    data: str
    contamination: float
    kind: str  # "" in the split setting: one fit serves all kinds
    repetition: int

    def keys(self, method: str) -> list[dict[str, Any]]:
        """Return the keys of all its rows for a method."""
        kinds = [self.kind] if self.kind else list(KINDS)
        return [{**asdict(self), "kind": kind, "method": method} for kind in kinds]


@dataclass(frozen=True)
class CleanPlan:
    """How large a run is."""

    sets: tuple[str, ...] = SETS
    seed: int = 0
    most_rows: int = MOST_ROWS
    levels: tuple[float, ...] = LEVELS
    kinds: tuple[str, ...] = tuple(KINDS)
    most_copies: int = MOST_COPIES
    most_exact: int = MOST_EXACT
    most_repetitions: int = 14

    @classmethod
    def of(cls, *, quick: bool, seed: int, sets: Sequence[str] = ()) -> CleanPlan:
        """Return the whole plan, or a small one of the same shape."""
        if not quick:
            return cls(tuple(sets) or SETS, seed)
        few = tuple(sets) or ("emotions",)
        return cls(few, seed, most_rows=300, levels=(0.0, 0.05), most_copies=1, most_exact=4, most_repetitions=1)

    def units(self) -> Iterator[CleanUnit]:
        """Return all fits: first the audits once, then the clean halves, then all else."""
        audits = [
            CleanUnit("audit", data, SHARE, kind, repetition)
            for repetition in range(self.most_repetitions)
            for data in self.sets
            if repetition < min(self.most_repetitions, MOST_REPETITIONS.get(data, self.repetitions(data)))
            for kind in self.kinds
        ]
        splits = [CleanUnit("split", data, level, "", 0) for level in self.levels for data in self.sets]
        once = len(self.sets) * len(self.kinds)
        clean = len(self.sets)
        yield from audits[:once] + splits[:clean] + splits[clean:] + audits[once:]

    def repetitions(self, data: str) -> int:
        """Return how often a data set is audited by all methods, each time with other wrong rows."""
        return min(self.most_repetitions, REPETITIONS.get(data, 1))

    def effort(self, table: Table, repetitions: int = 1) -> Effort:
        """Return how well a repetition must know its means for their mean to be known to ENOUGH."""
        share = SHARE_OF_INJECTIONS if repetitions >= REPETITIONS_THAT_SHOW else 1.0
        copies = min(self.most_copies, max(FEWER_COPIES, CELLS // table.Y.size))
        return Effort(share * ENOUGH * np.sqrt(repetitions), copies, self.most_exact)

    def table(self, data: DataFolder, name: str) -> Table:
        """Return a data set, or the rows that are taken of it."""
        return sample(data.table(name), min(self.most_rows, FEWER_ROWS.get(name, self.most_rows)), self.seed)

    def settings(self) -> dict[str, Any]:
        """Return what makes results comparable."""
        kept = {name: value for name, value in asdict(self).items() if name != "sets"}
        return {
            "experiment": "clean",
            "protocol": PROTOCOL,
            **{k: list(v) if isinstance(v, tuple) else v for k, v in kept.items()},
        }


def clean_results(folder: Path) -> Results:
    """Return the rows that are in a folder."""
    errors = tuple(f"{measure}_error" for measure in MEASURES)
    return Results(folder / "rows.csv", KEYS, ("injections", *MEASURES, *errors))


def run_clean(plan: CleanPlan, data: DataFolder, folder: Path, redo: Sequence[str] = ()) -> tuple[Results, Results]:
    """Run the clean protocol, or what is left of it: rows.csv, and blame.csv for which response is named."""
    data.check(plan.sets)
    keep_settings(folder, plan.settings())
    results = clean_results(folder)
    times = Results(folder / "times.csv", KEYS, ("seconds",))
    for method in redo:
        results.drop(method=method)
    units = list(plan.units())
    for done, unit in enumerate(units):
        advance("clean protocol", done, len(units))
        missing = [name for name in measured_in(unit) if not all(results.has(**key) for key in unit.keys(name))]
        if unit.repetition >= plan.repetitions(unit.data):
            missing = [name for name in missing if not is_well_known(results, unit, name)]
        if not missing:
            continue
        table = plan.table(data, unit.data)
        start = time.perf_counter()
        found, took = audit_rows(plan, table, unit, missing) if unit.kind else split_rows(plan, table, unit, missing)
        took["all"] = time.perf_counter() - start
        results.append(found)
        times.append({**asdict(unit), "method": name, "seconds": seconds} for name, seconds in took.items())
    advance("clean protocol", len(units), len(units))
    every = CleanPlan(
        tuple(dict.fromkeys((*SETS, *plan.sets))), **{k: v for k, v in asdict(plan).items() if k != "sets"}
    )
    results.finish(key for unit in every.units() for name in measured_in(unit) for key in unit.keys(name))
    return results, run_blame([plan.table(data, name) for name in plan.sets], plan.seed, folder, redo=bool(redo))


def measured_in(unit: CleanUnit) -> list[str]:
    """Return the methods that are measured in a unit: slow ones on some data sets, and once."""
    return [
        name for name in METHODS if name not in FEWER_SETS or (unit.data in FEWER_SETS[name] and unit.repetition == 0)
    ]


def is_well_known(results: Results, unit: CleanUnit, method: str) -> bool:
    """Whether the repetitions before this one tell the means of a method well enough."""
    keys = [replace(unit, repetition=before).keys(method)[0] for before in range(unit.repetition)]
    rows = [row for row in (results.row(**key) for key in keys) if row is not None]
    return all(
        error_of_mean([float(row[m]) for row in rows], [float(row[f"{m}_error"] or "nan") for row in rows]) < ENOUGH
        for m in MEASURES
    )


def audit_rows(
    plan: CleanPlan, table: Table, unit: CleanUnit, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return what methods reach in the audit of one table, and their seconds."""
    watch = Stopwatch()
    place = list(KINDS).index(unit.kind)
    rng = np.random.default_rng(table.seed(plan.seed, 2, place, unit.repetition))
    Y, wrong = with_errors(table.Y, KINDS[unit.kind], SHARE, rng)
    by_copies = [name for name in methods if METHODS[name]().copies != "none"]
    judge = Audited(table, Y, wrong, by_copies, watch)
    seed, effort = [plan.seed, 7, place, unit.repetition], plan.effort(table, plan.repetitions(unit.data))
    found = measure(judge, by_copies, unit.kind, seed, effort)
    rows = []
    for name in methods:
        if name in found:
            rows.append({**asdict(unit), "method": name, **_measured(found[name])})
        else:
            score = watch(name, partial(METHODS[name]().fit, judge.read))
            rows.append({**asdict(unit), "method": name, **_measured_once(metrics.all_of(wrong, score))})
    return rows, watch.seconds


def split_rows(
    plan: CleanPlan, table: Table, unit: CleanUnit, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return what methods reach on held-out halves, and their seconds."""
    watch = Stopwatch()
    halves = Halves(table, unit.contamination, plan.seed, methods, watch)
    rows = []
    for place, kind in enumerate(plan.kinds):
        found = measure(halves, methods, kind, [plan.seed, 4, place], plan.effort(table))
        rows += [{**asdict(unit), "kind": kind, "method": name, **_measured(found[name])} for name in methods]
    return rows, watch.seconds


def _measured(tally: Tally) -> dict[str, Any]:
    """Return the cells of a row: means and standard errors over the injections of one fit."""
    found = tally.estimate()
    errors = {
        f"{measure}_error": float(error) if np.isfinite(error) else ""
        for measure, error in zip(MEASURES, found.error, strict=True)
    }
    return {"injections": tally.injections, **dict(zip(MEASURES, map(float, found.mean), strict=True)), **errors}


def _measured_once(found: dict[str, float]) -> dict[str, Any]:
    """Return the cells of a method that cannot read copies: one injection, the table's own wrong rows."""
    return {"injections": 1, **found, **{f"{measure}_error": "" for measure in MEASURES}}
