"""Which response is named first in a row with one error: by the default, and by the smallest rho.

In the two settings of the clean protocol: on held-out halves of right rows, and in audits of tables of which 2 % of the
rows have errors of all kinds, whose other rows are read out of fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode._progress import advance
from mcode.detector import MCODE
from mcode.detector.reading import companions_of, fit_score, response_blame
from mcode.experiments import seen
from mcode.experiments.datasets import Table
from mcode.experiments.injection import KINDS, SHARE, with_errors_of_all_kinds
from mcode.experiments.results import Results
from mcode.models.encoding import Codes
from mcode.scores import as_score

Indices: TypeAlias = NDArray[np.intp]
Look: TypeAlias = Callable[[Codes, Indices], tuple[Floats, Floats]]  # how suspicious each response is, and rho
Named: TypeAlias = dict[tuple[str, str], list[NDArray[np.bool_]]]  # by kind and method: was the wrong response first?

SINGLE = ("one flip", "one added", "one dropped")
COPIES = 8  # of each row, every one with its own error: a single one leaves 0.003 of chance in the mean of eleven sets
MOST_ROWS = 1000  # wrong rows of each copy, on halves of each half
METHODS = ("mcode default", "smallest rho")


def blame_results(folder: Path) -> Results:
    """Return the rows that are in a folder."""
    return Results(folder / "blame.csv", ("setting", "data", "kind", "method"), ("rows", "named"))


def run_blame(tables: Sequence[Table], seed: int, folder: Path, *, redo: bool = False) -> Results:
    """Measure, for each setting, data set and kind of single error, how often the wrong response is named first."""
    results = blame_results(folder)
    for done, table in enumerate(tables):
        advance("which response is named", done, len(tables))
        for setting, name_first in SETTINGS.items():
            key = {"setting": setting, "data": table.name}
            if not redo and all(results.has(**key, kind=k, method=m) for k in SINGLE for m in METHODS):
                continue
            results.drop(**key)
            results.append(
                {**key, "kind": kind, "method": method, "rows": found.size, "named": float(found.mean())}
                for (kind, method), parts in name_first(table, seed).items()
                for found in [np.concatenate(parts)]
            )
    advance("which response is named", len(tables), len(tables))
    return results


def on_halves(table: Table, seed: int) -> Named:
    """Fit on one half of the rows; copies of the other half's rows get one error each; then the halves swap."""
    half_of_row = np.random.default_rng(table.seed(seed, 5)).permutation(len(table.Y)) % 2
    named: Named = {}
    for half in (0, 1):
        train, test = np.flatnonzero(half_of_row == half), np.flatnonzero(half_of_row != half)
        detector, X = MCODE().fit(table.X[train], table.Y[train]), table.X[test]
        look = partial(_look_at_new, detector, X)
        _name_first(named, table.Y[test], np.arange(len(test)), MOST_ROWS, look, table.seed(seed, 6, half))
    return named


def in_audit(table: Table, seed: int) -> Named:
    """Fit the default on a table with wrong rows; copies of its other rows get one error each."""
    rng = np.random.default_rng(table.seed(seed, 7))
    recorded, wrong = with_errors_of_all_kinds(table.Y, SHARE, rng)
    score, model = as_score(MCODE().score), seen.DEFAULT_MODEL
    read = seen.Table(table.X, recorded, final=False, reads={model: companions_of(score)})
    fit_score(score, read.own.panel(model), read.reread(model), read.folds)
    named: Named = {}
    look = partial(_look_at_own, read, model, score)
    _name_first(named, table.Y, np.flatnonzero(~wrong), 2 * MOST_ROWS, look, table.seed(seed, 8))
    return named


SETTINGS: dict[str, Callable[[Table, int], Named]] = {"split": on_halves, "audit": in_audit}


def _look_at_new(detector: MCODE, X: Matrix, Y: Codes, rows: Indices) -> tuple[Floats, Floats]:
    """Return how suspicious each response is to the default, and rho."""
    return detector.response_error_probability(X[rows], Y), detector.transform(X[rows], Y)


def _look_at_own(read: seen.Table, model: str, score: Any, Y: Codes, rows: Indices) -> tuple[Floats, Floats]:
    """Return the same of rows of an audited table with other responses."""
    panel = read.with_responses(Y, rows).panel(model)
    return response_blame(score, panel), panel.rho


def _name_first(named: Named, Y: Codes, rows: Indices, most: int, look: Look, seed: list[int]) -> None:
    """Give copies of some rows one error each, and note in which of them the wrong response is named first."""
    for place, kind in enumerate(SINGLE):
        for copy in range(COPIES):
            rng = np.random.default_rng([*seed, place, copy])
            changed = KINDS[kind].corrupt(Y, rng)
            wrong = changed != Y
            mine = rng.permutation(rows[wrong[rows].any(axis=1)])[:most]
            right = wrong[mine].argmax(axis=1)
            suspicion, rho = look(changed[mine], mine)
            for method, first in zip(METHODS, (suspicion.argmax(axis=1), rho.argmin(axis=1)), strict=True):
                named.setdefault((kind, method), []).append(first == right)
