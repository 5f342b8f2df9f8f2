"""The clean protocol: no bootstrap, no duplicates, six kinds of error, all methods on the same wrong rows.

Two settings. "split": models are fitted on one half of the rows, of which a share is contaminated by errors of all
kinds, and score the other half; then the halves change places. "audit": 2 % of the rows of a whole table are wrong
while the models are fitted on it, and every other row is scored out of fold. In both, one fit serves any number of
injections (`mcode.experiments.judges`), and there are as many as it takes for the standard error of each mean to fall
below 0.005 (`mcode.experiments.measuring`). Fits to small tables differ much by which rows were wrong while they were
made: their audits are fitted again and again, with other wrong rows and a few injections each, method by method until
the standard error over the fits is below 0.005.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from mcode._arrays import Floats
from mcode.experiments import metrics
from mcode.experiments.blame import run_blame
from mcode.experiments.datasets import DataFolder, Table, sample
from mcode.experiments.estimate import over_fits, plain_mean
from mcode.experiments.injection import KINDS, SHARE, with_errors
from mcode.experiments.judges import Audited, Halves
from mcode.experiments.measuring import Effort, Tally, measure
from mcode.experiments.metrics import MEASURES
from mcode.experiments.results import Results, keep_settings
from mcode.experiments.rivals import FEWER_SETS, METHODS
from mcode.experiments.side_by_side import run_strands
from mcode.experiments.stopwatch import Stopwatch

KEYS = ("setting", "data", "contamination", "kind", "repetition", "method")
LEVELS = (0.0, 0.01, 0.02, 0.05)
ENOUGH = 0.005  # standard error of a mean
AIM = 0.00499  # what is asked for, so that a file's last digit cannot say otherwise
MOST_COPIES = 60
FEWER_COPIES = 24  # of tables so large that more would take long; they have more wrong rows in each injection
CELLS = 2_400_000  # responses that are read in all copies of a table that has more than FEWER_COPIES
MOST_EXACT = 1_000  # injections for which a method that looks at all rows is asked again
PROTOCOL = 3  # 1 had one injection for each fit of an audit, 2 few fits of small tables: rows must not be mixed

# The most rows taken of a data set: what fits into an hour and a half on two cores.
MOST_ROWS = 2000
FEWER_ROWS = {"corel5k": 1000, "delicious": 600}
SETS = (
    "emotions", "genbase", "medical", "yeast", "enron", "imdb", "corel5k", "mediamill_sample", "bibtex",
    "reuters_aligned", "delicious",
)  # fmt: skip
# In which order they are measured: work of long pieces first, so that no process is alone with one at the end.
LONGEST_FIRST = (
    "medical", "corel5k", "delicious", "imdb", "reuters_aligned", "bibtex", "enron", "mediamill_sample", "genbase",
    "yeast", "emotions",
)  # fmt: skip

# Tables whose audits are fitted many times. After the first repetition, one fit with many injections, each has several
# fits with the injections of one copy of the rows: as many as a share of all fits before it.
REFITTED = ("emotions", "genbase", "medical", "yeast")
FIRST_FITS, FEWEST_FITS, SHARE_OF_FITS = 12, 4, 0.25
EXACT_OF_A_FIT = 2  # injections for which a method that looks at all rows is asked again
MOST_FITS = 10_000  # cleanlab's entropy has .1 or 1.0 on a small table, by which rows were wrong
MOST_WITH_COMPANIONS = 400  # of methods that look through several models at once


@dataclass(frozen=True)
class CleanUnit:
    """What is measured in one go: a level of contamination of the split setting, or some audits of one table."""

    setting: str
    data: str
    contamination: float
    kind: str  # "" in the split setting: one fit serves all kinds
    repetition: int  # `CleanPlan.fits` has its fits

    def keys(self, method: str) -> list[dict[str, Any]]:
        """Return the keys of all its rows for a method."""
        kinds = [self.kind] if self.kind else list(KINDS)
        return [{**asdict(self), "kind": kind, "method": method} for kind in kinds]

    def methods(self) -> list[str]:
        """Return the methods that are measured in it: those of `METHODS` that its data set and repetition have."""
        refitted = self.setting == "audit" and self.data in REFITTED
        names = [name for name in METHODS if self.data in FEWER_SETS.get(name, (self.data,))]
        return [name for name in names if not refitted or rests_on_fit(name) == (self.repetition > 0)]


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
    most_fits: int = MOST_FITS

    @classmethod
    def of(cls, *, quick: bool, seed: int, sets: Sequence[str] = ()) -> CleanPlan:
        """Return the whole plan, or a small one of the same shape."""
        if not quick:
            return cls(tuple(sets) or SETS, seed)
        few = tuple(sets) or ("emotions",)
        return cls(few, seed, most_rows=300, levels=(0.0, 0.05), most_copies=1, most_exact=4, most_fits=2)

    def audits(self, data: str, kind: str) -> Iterator[CleanUnit]:
        """Return the repetitions of an audit, all that there may be."""
        repetition = 0
        while repetition == 0 or (data in REFITTED and self.fits(repetition)):
            yield CleanUnit("audit", data, SHARE, kind, repetition)
            repetition += 1

    def split(self, data: str, level: float) -> CleanUnit:
        """Return the fit on both halves of a table."""
        return CleanUnit("split", data, level, "", 0)

    def units(self) -> Iterator[CleanUnit]:
        """Return all units, in the order of the results."""
        for data in self.sets:
            for kind in self.kinds:
                yield from self.audits(data, kind)
        yield from (self.split(data, level) for level in self.levels for data in self.sets)

    def fits(self, repetition: int) -> range:
        """Return the numbers of the fits of a repetition of an audit.

        Examples
        --------
        >>> [len(CleanPlan().fits(repetition)) for repetition in (0, 1, 2, 10, 20)]
        [1, 12, 4, 18, 165]
        """
        if repetition == 0:
            return range(1)
        first, size = 1, FIRST_FITS
        for _ in range(repetition - 1):
            first += size
            size = max(FEWEST_FITS, int(SHARE_OF_FITS * (first - 1)))
        return range(first, min(first + size, self.most_fits + 1))

    def effort(self, table: Table, repetition: int = 0) -> Effort:
        """Return how well the means of one fit must be known."""
        if repetition:
            return Effort(0.0, 1, EXACT_OF_A_FIT)
        copies = min(self.most_copies, max(FEWER_COPIES, CELLS // table.Y.size))
        return Effort(AIM, copies, self.most_exact)

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
    return Results(folder / "rows.csv", KEYS, ("fits", "injections", *MEASURES, *errors))


def run_clean(
    plan: CleanPlan, data: DataFolder, folder: Path, redo: Sequence[str] = (), jobs: int = 1
) -> tuple[Results, Results]:
    """Run the clean protocol, or what is left of it: rows.csv, and blame.csv for which response is named."""
    data.check(plan.sets)
    keep_settings(folder, plan.settings())
    results = clean_results(folder)
    times = Results(folder / "times.csv", KEYS, ("seconds",))
    for method in redo:
        results.drop(method=method)
    strands = [_Strand(plan, data.path, units, results, times) for units in _in_strands(plan)]
    run_strands(strands, jobs, "clean protocol")
    every = replace(plan, sets=tuple(dict.fromkeys((*SETS, *plan.sets))))
    results.finish(key for unit in every.units() for name in unit.methods() for key in unit.keys(name))
    return results, run_blame([plan.table(data, name) for name in plan.sets], plan.seed, folder, redo=bool(redo))


def _in_strands(plan: CleanPlan) -> Iterator[Iterator[CleanUnit]]:
    """Return units that follow each other, in lists that do not wait for each other."""
    known = {name: place for place, name in enumerate(LONGEST_FIRST)}
    for data in sorted(plan.sets, key=lambda name: known.get(name, 0)):
        yield from (plan.audits(data, kind) for kind in plan.kinds)
        yield from (iter([plan.split(data, level)]) for level in plan.levels)


class _Strand:
    """Units of which each is measured for the methods that the units before it do not tell well enough."""

    def __init__(
        self, plan: CleanPlan, source: Path, units: Iterator[CleanUnit], results: Results, times: Results
    ) -> None:
        self._plan, self._source, self._units, self._results, self._times = plan, source, units, results, times

    def next_piece(self) -> Callable[[], Any] | None:
        """Return what measures the next unit that lacks rows."""
        for unit in self._units:
            wanted = [name for name in unit.methods() if is_wanted(self._plan, self._results, unit, name)]
            if not wanted and unit.repetition > 1:
                return None
            missing = [name for name in wanted if not all(self._results.has(**key) for key in unit.keys(name))]
            if missing:
                return partial(measure_unit, self._plan, self._source, unit, missing)
        return None

    def take(self, found: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
        """Keep what was measured."""
        self._results.append(found[0])
        self._times.append(found[1])


@cache
def rests_on_fit(name: str) -> bool:
    """Whether a method learns from rows of which some are wrong; others learn from the rows that they rank."""
    method = METHODS[name]()
    return method.copies == "alone" or bool(method.reads)


@cache
def looks_through_companions(name: str) -> bool:
    """Whether a method asks several models, which takes a multiple of the time."""
    return any(METHODS[name]().reads.values())


def is_wanted(plan: CleanPlan, results: Results, unit: CleanUnit, method: str) -> bool:
    """Whether the fits before this unit do not tell the means of a method well enough, and there may be more."""
    if unit.repetition <= 1:
        return True
    if looks_through_companions(method) and plan.fits(unit.repetition).start > MOST_WITH_COMPANIONS:
        return False
    keys = [replace(unit, repetition=before).keys(method)[0] for before in range(1, unit.repetition)]
    rows = [row for row in (results.row(**key) for key in keys) if row is not None]
    fits = [int(row["fits"]) for row in rows]
    found = (over_fits(fits, *([float(row[name]) for row in rows] for name in (m, f"{m}_error"))) for m in MEASURES)
    return not all(error < AIM for _, error in found)


def measure_unit(
    plan: CleanPlan, source: Path, unit: CleanUnit, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of a unit, and the seconds of each method."""
    table, start = plan.table(_folder(source), unit.data), time.perf_counter()
    rows, seconds = (audit_rows if unit.kind else split_rows)(plan, table, unit, methods)
    seconds["all"] = time.perf_counter() - start
    return rows, [{**asdict(unit), "method": name, "seconds": value} for name, value in seconds.items()]


@cache
def _folder(source: Path) -> DataFolder:
    return DataFolder(source)  # remembers the table that it read last


def audit_rows(
    plan: CleanPlan, table: Table, unit: CleanUnit, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return what methods reach in the audits of one table, and their seconds."""
    watch = Stopwatch()
    found = [_one_fit(plan, table, unit, fit, methods, watch) for fit in plan.fits(unit.repetition)]
    return [
        {**asdict(unit), "method": name, **_together([fit[name] for fit in found])} for name in methods
    ], watch.seconds


def _one_fit(
    plan: CleanPlan, table: Table, unit: CleanUnit, fit: int, methods: Sequence[str], watch: Stopwatch
) -> dict[str, dict[str, Any]]:
    """Return the cells of each method for one table with wrong rows."""
    place = list(KINDS).index(unit.kind)
    rng = np.random.default_rng(table.seed(plan.seed, 2, place, fit))
    Y, wrong = with_errors(table.Y, KINDS[unit.kind], SHARE, rng)
    by_copies = [name for name in methods if METHODS[name]().copies != "none"]
    judge = Audited(table, Y, wrong, by_copies, watch)
    effort = plan.effort(table, unit.repetition)
    found = measure(judge, by_copies, unit.kind, [plan.seed, 7, place, fit], effort)
    return {
        name: _measured(found[name])
        if name in found
        else _measured_once(metrics.all_of(wrong, watch(name, partial(METHODS[name]().fit, judge.read))))
        for name in methods
    }


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
    """Return the cells of one fit: means and standard errors over its injections."""
    found = tally.estimate()
    return {"fits": 1, "injections": tally.injections, **_cells(found.mean, found.error)}


def _measured_once(found: dict[str, float]) -> dict[str, Any]:
    """Return the cells of a method that cannot read copies: one injection, the table's own wrong rows."""
    mean = np.array([found[measure] for measure in MEASURES])
    return {"fits": 1, "injections": 1, **_cells(mean, np.full(len(MEASURES), np.inf))}


def _together(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the cells of several fits: means and standard errors over fits."""
    if len(cells) == 1:
        return cells[0]
    found = plain_mean(np.array([[fit[measure] for measure in MEASURES] for fit in cells]))
    injections = sum(fit["injections"] for fit in cells)
    return {"fits": len(cells), "injections": injections, **_cells(found.mean, found.error)}


def _cells(mean: Floats, error: Floats) -> dict[str, Any]:
    errors = {
        f"{measure}_error": float(value) if np.isfinite(value) else ""
        for measure, value in zip(MEASURES, error, strict=True)
    }
    return {**dict(zip(MEASURES, map(float, mean), strict=True)), **errors}
