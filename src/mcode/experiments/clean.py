"""The clean protocol: no bootstrap, no duplicates, six kinds of error, all methods on the same wrong rows.

Two settings. "split": models are fitted on one half of the rows, of which a share is contaminated by errors of all
kinds, and score the other half; then the halves change places. Rows that are wrong cost no fit there: every test row is
corrupted once, the corrupted rows are dealt into sets of 2 % of all rows, each set is one injection, and there are as
many copies as it takes for the standard error of each mean to fall below 0.005. "audit": 2 % of the rows of a whole
table are wrong while the models are fitted on it, and every row is scored out of fold; each repetition is a fit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode._progress import advance
from mcode.experiments import metrics, seen
from mcode.experiments.blame import run_blame
from mcode.experiments.datasets import DataFolder, Table, sample
from mcode.experiments.injection import KINDS, SHARE, parts, with_errors, with_errors_of_all_kinds
from mcode.experiments.metrics import MEASURES
from mcode.experiments.results import Results, keep_settings
from mcode.experiments.rivals import FEWER_SETS, METHODS, Method
from mcode.models.encoding import Codes

KEYS = ("setting", "data", "contamination", "kind", "repetition", "method")
LEVELS = (0.0, 0.01, 0.02, 0.05)
ENOUGH = 0.005  # standard error of a mean
MOST_COPIES = 12
BATCHES = 5  # injections of a method whose scores depend on the batch: each is a batch of its own

# The most rows taken of a data set, and the repetitions of its audits: what fits into an hour and a half on two cores.
MOST_ROWS = 2000
FEWER_ROWS = {"delicious": 600}
REPETITIONS = {"emotions": 10, "genbase": 6, "medical": 4, "yeast": 4, "enron": 2}
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
    most_repetitions: int = 10

    @classmethod
    def of(cls, *, quick: bool, seed: int, sets: Sequence[str] = ()) -> CleanPlan:
        """Return the whole plan, or a small one of the same shape."""
        if not quick:
            return cls(tuple(sets) or SETS, seed)
        few = tuple(sets) or ("emotions",)
        return cls(few, seed, most_rows=300, levels=(0.0, 0.05), most_copies=1, most_repetitions=1)

    def units(self) -> Iterator[CleanUnit]:
        """Return all fits: first the audits once, then the clean halves, then all else."""
        audits = [
            CleanUnit("audit", data, SHARE, kind, repetition)
            for repetition in range(self.most_repetitions)
            for data in self.sets
            if repetition < REPETITIONS.get(data, 1)
            for kind in self.kinds
        ]
        splits = [CleanUnit("split", data, level, "", 0) for level in self.levels for data in self.sets]
        once = len(self.sets) * len(self.kinds)
        clean = len(self.sets)
        yield from audits[:once] + splits[:clean] + splits[clean:] + audits[once:]

    def table(self, data: DataFolder, name: str) -> Table:
        """Return a data set, or the rows that are taken of it."""
        return sample(data.table(name), min(self.most_rows, FEWER_ROWS.get(name, self.most_rows)), self.seed)

    def settings(self) -> dict[str, Any]:
        """Return what makes results comparable."""
        kept = {name: value for name, value in asdict(self).items() if name != "sets"}
        return {"experiment": "clean", **{k: list(v) if isinstance(v, tuple) else v for k, v in kept.items()}}


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


def audit_rows(
    plan: CleanPlan, table: Table, unit: CleanUnit, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return what methods reach in the audit of one table, and their seconds."""
    place = list(KINDS).index(unit.kind)
    rng = np.random.default_rng(table.seed(plan.seed, 2, place, unit.repetition))
    Y, wrong = with_errors(table.Y, KINDS[unit.kind], SHARE, rng)
    watch = Stopwatch()
    read = watch("fit", lambda: seen.Table(table.X, Y, final=False))
    rows = []
    for name in methods:
        score = watch(name, lambda name=name: METHODS[name]().fit(read))
        none = {f"{measure}_error": "" for measure in MEASURES}
        rows.append({**asdict(unit), "method": name, "injections": 1, **metrics.all_of(wrong, score), **none})
    return rows, watch.seconds


def split_rows(
    plan: CleanPlan, table: Table, unit: CleanUnit, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return what methods reach on held-out halves, and their seconds."""
    watch = Stopwatch()
    halves = Halves(table, unit.contamination, plan.seed, methods, watch)
    rows = []
    for place, kind in enumerate(plan.kinds):
        measured = halves.measure(kind, [plan.seed, 4, place], plan.most_copies)
        for name in methods:
            found = np.array(measured[name])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
            values = dict(zip(MEASURES, map(float, mean), strict=True))
            errors = {f"{measure}_error": float(e) for measure, e in zip(MEASURES, error, strict=True)}
            key = {**asdict(unit), "kind": kind, "method": name}
            rows.append({**key, "injections": len(found), **values, **errors})
    return rows, watch.seconds


class Halves:
    """Methods fitted on each half of a table, and the scores of the other half."""

    def __init__(self, table: Table, contamination: float, seed: int, methods: Sequence[str], watch: Stopwatch) -> None:
        self.table, self._watch = table, watch
        rng = np.random.default_rng(table.seed(seed, 3, round(1000 * contamination)))
        half_of_row = np.random.default_rng(table.seed(seed, 3)).permutation(len(table.Y)) % 2
        self._tests: list[NDArray[np.intp]] = []
        self._read: list[seen.Table] = []
        self._fitted: list[dict[str, Method]] = []
        for half in (0, 1):
            train = np.flatnonzero(half_of_row != half)
            Y = with_errors_of_all_kinds(table.Y[train], contamination, rng)
            self._tests.append(np.flatnonzero(half_of_row == half))
            self._read.append(watch("fit", lambda X=table.X[train], Y=Y: seen.Table(X, Y, final=True)))
            self._fitted.append({name: METHODS[name]() for name in methods})
            for name, method in self._fitted[-1].items():
                watch(name, lambda method=method: method.fit(self._read[-1]))
        self._right = self._scores(table.Y, methods)

    def _scores(self, Y: Codes, methods: Sequence[str]) -> dict[str, Floats]:
        """Return the scores of all rows with the responses Y, each by the methods of the other half."""
        out = {name: np.empty(len(Y)) for name in methods}
        for test, read, fitted in zip(self._tests, self._read, self._fitted, strict=True):
            rows = seen.Rows(read, self.table.X[test], Y[test])
            for name in methods:
                out[name][test] = self._watch(name, lambda n=name, r=rows, f=fitted: f[n].score(r))
        return out

    def measure(self, kind: str, seed: list[int], most_copies: int) -> dict[str, list[list[float]]]:
        """Return the measures of every injection for every method: until their standard errors are small."""
        Y = self.table.Y
        measured: dict[str, list[list[float]]] = {name: [] for name in self._fitted[0]}
        for copy in range(most_copies):
            pending = [name for name, found in measured.items() if not _enough(found)]
            alone = [name for name in pending if not self._fitted[0][name].whole_batch]
            batched = [name for name in pending if self._fitted[0][name].whole_batch] if copy == 0 else []
            if not alone and not batched:
                break
            rng = np.random.default_rng(self.table.seed(*seed, copy))
            other = KINDS[kind].corrupt(Y, rng)
            injections = list(parts((other != Y).any(axis=1), SHARE, rng))
            scores = self._scores(other, alone)
            for number, rows in enumerate(injections):
                wrong = np.zeros(len(Y), bool)
                wrong[rows] = True
                for name in alone:
                    measured[name].append(_measures(wrong, np.where(wrong, scores[name], self._right[name])))
                if number < BATCHES:
                    mixed = self._scores(np.where(wrong[:, None], other, Y), batched)
                    for name in batched:
                        measured[name].append(_measures(wrong, mixed[name]))
        return measured


def _measures(wrong: NDArray[np.bool_], score: Floats) -> list[float]:
    found = metrics.all_of(wrong, score)
    return [found[measure] for measure in MEASURES]


def _enough(found: list[list[float]]) -> bool:
    if len(found) < 2:
        return False
    return bool((np.std(found, axis=0, ddof=1) / np.sqrt(len(found)) < ENOUGH).all())


class Stopwatch:
    """Seconds by name, added up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, work: Any) -> Any:
        """Do some work and add its seconds to a name."""
        start = time.perf_counter()
        result = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return result
