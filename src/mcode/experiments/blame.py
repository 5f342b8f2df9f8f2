"""Which response is named first in a row with one error: by the default, and by the smallest rho."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mcode._progress import advance
from mcode.detector import MCODE
from mcode.experiments.datasets import Table
from mcode.experiments.injection import KINDS
from mcode.experiments.results import Results

SINGLE = ("one flip", "one added", "one dropped")
COPIES = 8  # of each row, every one with its own error: a single one leaves 0.003 of chance in the mean of eleven sets
MOST_ROWS = 1000  # wrong rows of each half and copy
METHODS = ("mcode default", "smallest rho")


def blame_results(folder: Path) -> Results:
    """Return the rows that are in a folder."""
    return Results(folder / "blame.csv", ("data", "kind", "method"), ("rows", "named"))


def run_blame(tables: Sequence[Table], seed: int, folder: Path, *, redo: bool = False) -> Results:
    """Measure, for each data set and kind of single error, how often the wrong response is named first.

    A detector is fitted on one half of the rows; copies of the other half's rows get one error each; then the halves
    swap.
    """
    results = blame_results(folder)
    for done, table in enumerate(tables):
        advance("which response is named", done, len(tables))
        if not redo and all(results.has(data=table.name, kind=k, method=m) for k in SINGLE for m in METHODS):
            continue
        results.drop(data=table.name)
        half_of_row = np.random.default_rng(table.seed(seed, 5)).permutation(len(table.Y)) % 2
        halves = [named_right(table, half_of_row == half, [seed, 6, half]) for half in (0, 1)]
        for kind in SINGLE:
            both = {method: np.concatenate([half[kind, method] for half in halves]) for method in METHODS}
            results.append(
                {"data": table.name, "kind": kind, "method": method, "rows": len(found), "named": float(found.mean())}
                for method, found in both.items()
            )
    advance("which response is named", len(tables), len(tables))
    return results


def named_right(table: Table, train: NDArray[np.bool_], seed: list[int]) -> dict[tuple[str, str], NDArray[np.bool_]]:
    """Return, by kind and method, whether the wrong response of each row is the one that is named first."""
    X, Y = table.X[np.flatnonzero(~train)], table.Y[~train]
    detector = MCODE().fit(table.X[np.flatnonzero(train)], table.Y[train])
    found: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for place, kind in enumerate(SINGLE):
        named: dict[str, list[NDArray[np.bool_]]] = {method: [] for method in METHODS}
        for copy in range(COPIES):
            rng = np.random.default_rng(table.seed(*seed, place, copy))
            changed = KINDS[kind].corrupt(Y, rng)
            wrong = changed != Y
            rows = rng.permutation(np.flatnonzero(wrong.any(axis=1)))[:MOST_ROWS]
            right, recorded = wrong[rows].argmax(axis=1), (X[rows], changed[rows])
            named[METHODS[0]].append(detector.response_error_probability(*recorded).argmax(axis=1) == right)
            named[METHODS[1]].append(detector.transform(*recorded).argmin(axis=1) == right)
        found |= {(kind, method): np.concatenate(parts) for method, parts in named.items()}
    return found
