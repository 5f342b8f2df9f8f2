"""Whether errors that are put into rows after a fit are found as those that were recorded before it.

The clean protocol fits a table with wrong rows once and then gives errors to copies of its other rows, each read by
models that never saw the row. That spares a fit for every injection, and is right only if it makes no difference
whether the row was recorded wrong while the models were fitted. Here both are measured in the same fits: `recorded` are
the wrong rows of the table itself, `copies` are up to twelve injections into its other rows.

    python benchmarks/audit_copies.py [--quick]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from datasets import ROOT, write_csv
from mcode.experiments import seen
from mcode.experiments.clean import CleanPlan
from mcode.experiments.datasets import TITLES, DataFolder, Table
from mcode.experiments.injection import KINDS, SHARE, parts, with_errors
from mcode.experiments.metrics import all_of
from mcode.experiments.rivals import METHODS

FITS = {"emotions": 24, "genbase": 20, "medical": 14, "yeast": 8}
METHODS_SHOWN = ("mcode default", "MCODE-ComP", "MCODE-Linf", "BR complement")
KINDS_SHOWN = ("one flip", "one dropped", "y of another row")
MEASURES = ("auc", "ap")
INJECTIONS = 12


def one_fit(table: Table, kind: str, seed: int) -> dict[str, tuple[list[float], Any]]:
    """Return, by method, what it reaches on the recorded wrong rows and on copies of the others, in one fit."""
    rng = np.random.default_rng(table.seed(seed, 11))
    Y, wrong = with_errors(table.Y, KINDS[kind], SHARE, rng)
    read, rest = seen.Table(table.X, Y, final=False), np.flatnonzero(~wrong)
    other = KINDS[kind].corrupt(table.Y, rng)
    injections = list(parts((other != table.Y).any(axis=1)[rest], SHARE, rng))[:INJECTIONS]
    copies, found = read.with_responses(other[rest], rest), {}
    for name in METHODS_SHOWN:
        method = METHODS[name]()
        own = method.fit(read)
        of_copies = method.score(copies)
        injected = []
        for rows in injections:
            chosen = np.isin(np.arange(len(rest)), rows)
            injected.append(_measures(chosen, np.where(chosen, of_copies, own[rest])))
        found[name] = _measures(wrong, own), np.mean(injected, axis=0)
    return found


def _measures(wrong: Any, score: Any) -> list[float]:
    found = all_of(wrong, score)
    return [found[measure] for measure in MEASURES]


def measure(table: Table, kind: str, fits: int) -> list[dict[str, Any]]:
    """Return a row for each method: both means, their difference, and its standard error over the fits."""
    found = [one_fit(table, kind, seed) for seed in range(fits)]
    rows = []
    for name in METHODS_SHOWN:
        recorded, copies = (np.array([fit[name][part] for fit in found]) for part in (0, 1))
        row: dict[str, Any] = {"data": TITLES[table.name], "kind": kind, "method": name, "fits": fits}
        for k, what in enumerate(MEASURES):
            apart = copies[:, k] - recorded[:, k]
            row[f"{what} recorded"], row[f"{what} copies"] = recorded[:, k].mean(), copies[:, k].mean()
            row[f"{what} difference"] = apart.mean()
            row[f"{what} error"] = apart.std(ddof=1) / np.sqrt(fits)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two fits of emotions; nothing is saved")
    quick = parser.parse_args().quick
    plan, data, rows = CleanPlan.of(quick=False, seed=0), DataFolder(ROOT), []
    for name, fits in {"emotions": 2}.items() if quick else FITS.items():
        for kind in KINDS_SHOWN:
            rows += measure(plan.table(data, name), kind, fits)
            for row in rows[-len(METHODS_SHOWN) :]:
                print(
                    {key: round(float(value), 3) if isinstance(value, float) else value for key, value in row.items()}
                )
    for name in METHODS_SHOWN:
        mine = [row for row in rows if row["method"] == name]
        print(name, {what: round(float(np.mean([row[f"{what} difference"] for row in mine])), 4) for what in MEASURES})
    if not quick:
        write_csv("audit_copies", rows)


if __name__ == "__main__":
    main()
