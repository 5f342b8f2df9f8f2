"""Whether errors that are put into rows after a fit are found as those that were recorded before it.

The clean protocol fits a table with errors of all kinds once and then gives errors of one kind to copies of its other
rows, each read by models that never saw the row. That spares a fit for every injection and kind, and is right only if
it makes little difference which errors the models were fitted on. `recorded` are audits of tables that hold errors of
one kind, which are the rows to be found; `copies` are up to twelve injections of that kind after a fit to a table with
errors of all kinds.

    python benchmarks/audit_copies.py [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from datasets import ROOT, write_csv
from mcode.experiments import seen
from mcode.experiments.clean import CleanPlan
from mcode.experiments.datasets import TITLES, DataFolder, Table
from mcode.experiments.injection import KINDS, SHARE, parts, with_errors, with_errors_of_all_kinds
from mcode.experiments.metrics import all_of
from mcode.experiments.rivals import METHODS

FITS = {"emotions": 24, "genbase": 20, "medical": 14, "yeast": 8}
METHODS_SHOWN = ("mcode default", "MCODE-ComP", "MCODE-Linf", "BR complement")
KINDS_SHOWN = ("one flip", "one dropped", "y of another row")
MEASURES = ("auc", "ap")
INJECTIONS = 12


def recorded(table: Table, kind: str, seed: int) -> list[list[float]]:
    """Return what each method reaches where the rows to be found were wrong before the fit."""
    rng = np.random.default_rng(table.seed(seed, 11))
    Y, wrong = with_errors(table.Y, KINDS[kind], SHARE, rng)
    read = seen.Table(table.X, Y, final=False)
    return [_measures(wrong, METHODS[name]().fit(read)) for name in METHODS_SHOWN]


def copies(table: Table, kinds: Sequence[str], seed: int) -> list[list[list[float]]]:
    """Return what each method reaches, by kind, where they got their errors after a fit to other errors."""
    rng = np.random.default_rng(table.seed(seed, 12))
    Y, wrong = with_errors_of_all_kinds(table.Y, SHARE, rng)
    read, rest = seen.Table(table.X, Y, final=False), np.flatnonzero(~wrong)
    methods = [METHODS[name]() for name in METHODS_SHOWN]
    own = [method.fit(read)[rest] for method in methods]
    found = []
    for kind in kinds:
        other = KINDS[kind].corrupt(table.Y, rng)
        injections = list(parts((other != table.Y).any(axis=1)[rest], SHARE, rng))[:INJECTIONS]
        rows = read.with_responses(other[rest], rest)
        found.append([of_injections(injections, m.score(rows), mine) for m, mine in zip(methods, own, strict=True)])
    return found


def of_injections(injections: list[Any], of_copies: Any, own: Any) -> list[float]:
    """Return the means over injections."""
    flags = [np.isin(np.arange(len(own)), rows) for rows in injections]
    return np.mean([_measures(wrong, np.where(wrong, of_copies, own)) for wrong in flags], axis=0).tolist()


def _measures(wrong: Any, score: Any) -> list[float]:
    found = all_of(wrong, score)
    return [found[measure] for measure in MEASURES]


def measure(table: Table, fits: int) -> list[dict[str, Any]]:
    """Return a row for each kind and method: both means, their difference, and its standard error over the fits."""
    after = np.array([copies(table, KINDS_SHOWN, seed) for seed in range(fits)])
    rows = []
    for h, kind in enumerate(KINDS_SHOWN):
        before = np.array([recorded(table, kind, seed) for seed in range(fits)])
        for m, name in enumerate(METHODS_SHOWN):
            row: dict[str, Any] = {"data": TITLES[table.name], "kind": kind, "method": name, "fits": fits}
            for k, what in enumerate(MEASURES):
                of_recorded, of_copies = before[:, m, k], after[:, h, m, k]
                row[f"{what} recorded"], row[f"{what} copies"] = of_recorded.mean(), of_copies.mean()
                row[f"{what} difference"] = of_copies.mean() - of_recorded.mean()
                row[f"{what} error"] = np.sqrt((of_recorded.var(ddof=1) + of_copies.var(ddof=1)) / fits)
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two fits of emotions; nothing is saved")
    quick = parser.parse_args().quick
    plan, data, rows = CleanPlan.of(quick=False, seed=0), DataFolder(ROOT), []
    for name, fits in {"emotions": 2}.items() if quick else FITS.items():
        rows += measure(plan.table(data, name), fits)
        for row in rows[-len(METHODS_SHOWN) * len(KINDS_SHOWN) :]:
            print({key: round(float(value), 3) if isinstance(value, float) else value for key, value in row.items()})
    for name in METHODS_SHOWN:
        mine = [row for row in rows if row["method"] == name]
        columns = [f"{what} {part}" for what in MEASURES for part in ("recorded", "copies", "difference")]
        print(name, {column: round(float(np.mean([row[column] for row in mine])), 4) for column in columns})
    if not quick:
        write_csv("audit_copies", rows)


if __name__ == "__main__":
    main()
