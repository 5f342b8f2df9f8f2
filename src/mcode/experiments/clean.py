"""The clean protocol: no bootstrap, no duplicates, six kinds of error, all methods on the same wrong rows.

Two settings. "split": models are fitted on one half of the rows, of which a share is contaminated by errors of all
kinds, and score the other half; then the halves change places. "audit": 2 % of the rows of a whole table have errors
of all kinds while the models are fitted on it, and every other row is scored out of fold. In both, one fit serves all
kinds and any number of injections (`mcode.experiments.judges`), and there are as many as it takes for the standard
error of each mean to fall below 0.005 (`mcode.experiments.measuring`). Fits to small tables differ much by which rows
were wrong while they were made: their audits are fitted again and again, with other wrong rows and a few injections
each, method by method and kind by kind until the standard error over the fits is below 0.005.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mcode._arrays import Floats
from mcode.experiments import metrics
from mcode.experiments.blame import run_blame
from mcode.experiments.datasets import DataFolder, Table, sample
from mcode.experiments.estimate import over_fits, plain_mean
from mcode.experiments.injection import KINDS, SHARE, with_errors, with_errors_of_all_kinds
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
PROTOCOL = 4  # 1 had one injection for each fit of an audit, 2 few fits, 3 fits for each kind: rows must not be mixed

# The most rows taken of a data set: what fits into an hour and a half on two cores.
MOST_ROWS = 2000
FEWER_ROWS = {"bibtex": 1000, "corel5k": 1000, "delicious": 600, "reuters_aligned": 1000}
SETS = (
    "emotions", "genbase", "medical", "yeast", "enron", "imdb", "corel5k", "mediamill_sample", "bibtex",
    "reuters_aligned", "delicious",
)  # fmt: skip
# In which order they are measured: work of long pieces first, so that no process is alone with one at the end.
LONGEST_FIRST = (
    "medical", "genbase", "corel5k", "delicious", "reuters_aligned", "bibtex", "imdb", "enron", "mediamill_sample",
    "emotions", "yeast",
)  # fmt: skip

# Tables whose audits are fitted many times, each time with the injections of one copy of the rows. A repetition has as
# many fits as a share of all before it. The audit of another table is its repetition 0, one fit with many injections.
REFITTED = ("emotions", "genbase", "medical", "yeast")
FIRST_FITS, FEWEST_FITS, SHARE_OF_FITS = 12, 4, 0.25
EXACT_OF_A_FIT = 2  # injections for which a method that looks at all rows is asked again
MOST_FITS = 10_000  # cleanlab's entropy has .1 or 1.0 on a small table, by which rows were wrong
MOST_WITH_COMPANIONS = 400  # of methods that look through several models at once


Wanted: TypeAlias = Mapping[str, Sequence[str]]  # the kinds of error that are to be measured, by method
Cells: TypeAlias = dict[tuple[str, str], dict[str, Any]]  # of a method and a kind


@dataclass(frozen=True)
class CleanUnit:
    """What is measured in one go: a level of contamination of the split setting, or some audits of one table."""

    setting: str
    data: str
    contamination: float
    kind: str  # "" where one fit serves all kinds
    repetition: int  # `CleanPlan.fits` has its fits

    def key(self, kind: str, method: str) -> dict[str, Any]:
        """Return the key of a row."""
        return {**asdict(self), "kind": kind, "method": method}

    def methods(self) -> list[str]:
        """Return the methods that are measured in it: those of `METHODS` that its data set has, in one of its units."""
        names = [name for name in METHODS if self.data in FEWER_SETS.get(name, (self.data,))]
        return [name for name in names if self.setting == "split" or rests_on_fit(name) == (self.kind == "")]


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

    def audits(self, data: str) -> Iterator[CleanUnit]:
        """Return the repetitions of an audit by models, all that there may be."""
        if data not in REFITTED:
            yield CleanUnit("audit", data, SHARE, "", 0)
            return
        repetition = 1
        while self.fits(repetition):
            yield CleanUnit("audit", data, SHARE, "", repetition)
            repetition += 1

    def audit_without_model(self, data: str, kind: str) -> CleanUnit:
        """Return the audit by methods that learn from no rows but those they rank."""
        return CleanUnit("audit", data, SHARE, kind, 0)

    def split(self, data: str, level: float) -> CleanUnit:
        """Return the fit on both halves of a table."""
        return CleanUnit("split", data, level, "", 0)

    def strands(self, data: str) -> Iterator[Iterator[CleanUnit]]:
        """Return the units of a data set that follow each other, in lists that do not wait for each other."""
        yield self.audits(data)
        yield from (iter([self.audit_without_model(data, kind)]) for kind in self.kinds)
        yield from (iter([self.split(data, level)]) for level in self.levels)

    def units(self) -> Iterator[CleanUnit]:
        """Return all units, in the order of the results."""
        return (unit for data in self.sets for strand in self.strands(data) for unit in strand)

    def kinds_of(self, unit: CleanUnit) -> tuple[str, ...]:
        """Return the kinds of error that are measured in a unit."""
        return (unit.kind,) if unit.kind else self.kinds

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
    known = {name: place for place, name in enumerate(LONGEST_FIRST)}
    in_order = sorted(plan.sets, key=lambda name: known.get(name, 0))
    strands = [_Strand(plan, data.path, units, results, times) for name in in_order for units in plan.strands(name)]
    run_strands(strands, jobs, "clean protocol")
    every = replace(plan, sets=tuple(dict.fromkeys((*SETS, *plan.sets))))
    results.finish(
        unit.key(kind, name) for unit in every.units() for name in unit.methods() for kind in plan.kinds_of(unit)
    )
    return results, run_blame([plan.table(data, name) for name in plan.sets], plan.seed, folder, redo=bool(redo))


class _Strand:
    """Units of which each is measured for the methods that the units before it do not tell well enough."""

    def __init__(
        self, plan: CleanPlan, source: Path, units: Iterator[CleanUnit], results: Results, times: Results
    ) -> None:
        self._plan, self._source, self._units, self._results, self._times = plan, source, units, results, times

    def next_piece(self) -> Callable[[], Any] | None:
        """Return what measures the next unit that lacks rows."""
        for unit in self._units:
            wanted = [
                (name, kind)
                for name in unit.methods()
                for kind in self._plan.kinds_of(unit)
                if is_wanted(self._plan, self._results, unit, kind, name)
            ]
            if not wanted:
                return None
            missing: dict[str, list[str]] = {}
            for name, kind in wanted:
                if not self._results.has(**unit.key(kind, name)):
                    missing.setdefault(name, []).append(kind)
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


def is_wanted(plan: CleanPlan, results: Results, unit: CleanUnit, kind: str, method: str) -> bool:
    """Whether the fits before this unit do not tell the means of a method well enough, and there may be more."""
    if unit.repetition <= 1:
        return True
    if looks_through_companions(method) and plan.fits(unit.repetition).start > MOST_WITH_COMPANIONS:
        return False
    keys = [replace(unit, repetition=before).key(kind, method) for before in range(1, unit.repetition)]
    rows = [row for row in (results.row(**key) for key in keys) if row is not None]
    fits = [int(row["fits"]) for row in rows]
    found = (over_fits(fits, *([float(row[name]) for row in rows] for name in (m, f"{m}_error"))) for m in MEASURES)
    return not all(error < AIM for _, error in found)


def measure_unit(
    plan: CleanPlan, source: Path, unit: CleanUnit, wanted: Wanted
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of a unit, and the seconds of each method."""
    table, watch = plan.table(_folder(source), unit.data), Stopwatch()
    start = time.perf_counter()
    found = (split_cells if unit.setting == "split" else audit_cells)(plan, table, unit, wanted, watch)
    seconds = {**watch.seconds, "all": time.perf_counter() - start}
    rows = [{**unit.key(kind, name), **found[name, kind]} for name, kinds in wanted.items() for kind in kinds]
    return rows, [{**asdict(unit), "method": name, "seconds": value} for name, value in seconds.items()]


@cache
def _folder(source: Path) -> DataFolder:
    return DataFolder(source)  # remembers the table that it read last


def audit_cells(plan: CleanPlan, table: Table, unit: CleanUnit, wanted: Wanted, watch: Stopwatch) -> Cells:
    """Return what methods reach in the audits of one table."""
    found = [_one_fit(plan, table, unit, fit, wanted, watch) for fit in plan.fits(unit.repetition)]
    return {pair: _together([fit[pair] for fit in found]) for pair in found[0]}


def _one_fit(plan: CleanPlan, table: Table, unit: CleanUnit, fit: int, wanted: Wanted, watch: Stopwatch) -> Cells:
    """Return what each method reaches on one table with wrong rows."""
    places = {kind: place for place, kind in enumerate(KINDS)}
    rng = np.random.default_rng(table.seed(plan.seed, 2, places.get(unit.kind, len(KINDS)), fit))
    if unit.kind:
        Y, wrong = with_errors(table.Y, KINDS[unit.kind], SHARE, rng)
    else:
        Y, wrong = with_errors_of_all_kinds(table.Y, SHARE, rng)
    by_copies = [name for name in wanted if METHODS[name]().copies != "none"]
    judge = Audited(table, Y, wrong, by_copies, watch)
    effort = plan.effort(table, unit.repetition)
    found: Cells = {}
    for kind in plan.kinds_of(unit):
        names = [name for name in by_copies if kind in wanted[name]]
        tallies = measure(judge, names, kind, [plan.seed, 7, places[kind], fit], effort)
        found |= {(name, kind): _measured(tally) for name, tally in tallies.items()}
    for name in wanted:
        if name not in by_copies:
            score = watch(name, partial(METHODS[name]().fit, judge.read))
            found[name, unit.kind] = _measured_once(metrics.all_of(wrong, score))
    return found


def split_cells(plan: CleanPlan, table: Table, unit: CleanUnit, wanted: Wanted, watch: Stopwatch) -> Cells:
    """Return what methods reach on held-out halves."""
    halves = Halves(table, unit.contamination, plan.seed, list(wanted), watch)
    found: Cells = {}
    for kind in plan.kinds:
        names = [name for name in wanted if kind in wanted[name]]
        tallies = measure(halves, names, kind, [plan.seed, 4, list(KINDS).index(kind)], plan.effort(table))
        found |= {(name, kind): _measured(tally) for name, tally in tallies.items()}
    return found


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
