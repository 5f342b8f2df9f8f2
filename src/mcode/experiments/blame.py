"""Which response is named first in a row with one error: by the default, and by the smallest rho."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcode._progress import advance
from mcode.detector import MCODE
from mcode.experiments.datasets import Table
from mcode.experiments.injection import KINDS
from mcode.experiments.results import Results

SINGLE = ("one flip", "one added", "one dropped")
MOST_ROWS = 500  # wrong rows of a data set and kind
METHODS = ("mcode default", "smallest rho")


def blame_results(folder: Path) -> Results:
    """Return the rows that are in a folder."""
    return Results(folder / "blame.csv", ("data", "kind", "method"), ("rows", "named"))


def run_blame(tables: Sequence[Table], seed: int, folder: Path, *, redo: bool = False) -> Results:
    """Measure, for each data set and kind of single error, how often the wrong response is named first.

    A detector is fitted on one half of the rows; rows of the other half get one error each.
    """
    results = blame_results(folder)
    for done, table in enumerate(tables):
        advance("which response is named", done, len(tables))
        if not redo and all(results.has(data=table.name, kind=k, method=m) for k in SINGLE for m in METHODS):
            continue
        results.drop(data=table.name)
        half = np.random.default_rng(table.seed(seed, 5)).permutation(len(table.Y)) % 2
        train, test = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
        detector = MCODE().fit(table.X[train], table.Y[train])
        found = []
        for place, kind in enumerate(SINGLE):
            rng = np.random.default_rng(table.seed(seed, 6, place))
            changed = KINDS[kind].corrupt(table.Y[test], rng)
            rows = rng.permutation(np.flatnonzero((changed != table.Y[test]).any(axis=1)))[:MOST_ROWS]
            X, Y = table.X[test[rows]], changed[rows]
            right = (changed != table.Y[test])[rows].argmax(axis=1)
            named = {
                METHODS[0]: detector.response_error_probability(X, Y).argmax(axis=1),
                METHODS[1]: detector.transform(X, Y).argmin(axis=1),
            }
            for method, response in named.items():
                share = float((response == right).mean())
                found.append({"data": table.name, "kind": kind, "method": method, "rows": len(rows), "named": share})
        results.append(found)
    advance("which response is named", len(tables), len(tables))
    return results
