"""Tables and figures of Experiments 1 and 2, with the paper's printed numbers beside ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mcode._arrays import Floats
from mcode.experiments import figures, paper
from mcode.experiments.datasets import TITLES
from mcode.experiments.methods import PAPER
from mcode.experiments.results import Results
from mcode.experiments.runs import complete_runs, values_of
from mcode.experiments.significance import best_methods, friedman, level_with_best, paired_t, ranks
from mcode.experiments.tables import Cell, TextTable

METHODS = tuple(PAPER)
RUN = ("repeat", "fold")
NEAR = 0.04  # a difference in AUC up to which a printed number counts as reproduced
TEN_FOLDS = 1.0 / 9.0  # test rows over training rows


def report_experiment_1(results: Results, folder: Path) -> list[Path]:
    """Write the table, its comparison with the paper, the tests and the bar figure."""
    rows = results.rows()
    runs = {name: complete_runs(rows, METHODS, "auc", RUN, data=name) for name in values_of(rows, "data")}
    runs = {name: found for name, found in runs.items() if len(found) > 1}
    if not runs:
        return []
    written = auc_table(runs).save(folder, "table")
    written += comparison(runs).save(folder, "comparison")
    written += tests(runs).save(folder, "tests")
    written += figures.bars(runs, METHODS, folder / "bars.svg")
    return written


def auc_table(runs: dict[str, Floats]) -> TextTable:
    """Return mean and standard deviation of the AUC, the best methods of each data set in bold, and the rank row.

    The rank row is over the data sets of the paper: of Reuters only the repaired file counts.
    """
    lines = []
    for name, found in runs.items():
        best = best_methods(found)
        cells = zip(found.mean(axis=0), found.std(axis=0, ddof=1), best, strict=True)
        lines.append(
            [Cell(TITLES[name]), *(Cell(f"{m:.3f} ({s:.3f})", bool(b)) for m, s, b in cells), Cell(str(len(found)))]
        )
    counted = [found.mean(axis=0) for name, found in runs.items() if name != "reuters"]
    if len(counted) > 1:
        rank = ranks(np.array(counted), decimals=3)
        test, level = friedman(rank), level_with_best(rank)
        cells = zip(test.mean_rank, test.sd_rank, level, strict=True)
        lines.append([Cell("Rank"), *(Cell(f"{m:.2f} ({s:.2f})", bool(b)) for m, s, b in cells), Cell("")])
    return TextTable("Experiment 1: AUC, mean (standard deviation)", ("data set", *METHODS, "runs"), lines)


def comparison(runs: dict[str, Floats]) -> TextTable:
    """Return, for every cell that the paper prints, its number, ours, the difference and a verdict."""
    lines = []
    for name, found in runs.items():
        printed_name = "Reuters" if name == "reuters" else TITLES[name]
        if printed_name not in paper.DATA_SETS:
            continue
        printed = paper.AUC[paper.DATA_SETS.index(printed_name)]
        for j, method in enumerate(METHODS):
            ours = float(found[:, j].mean())
            error = float(found[:, j].std(ddof=1) / np.sqrt(len(found)))
            apart = ours - float(printed[j])
            cells = [
                TITLES[name],
                method,
                f"{printed[j]:.3f}",
                f"{ours:.3f}",
                f"{error:.3f}",
                f"{apart:+.3f}",
                verdict(apart),
            ]
            lines.append([Cell(text) for text in cells])
    columns = ("data set", "method", "paper", "ours", "standard error", "difference", "verdict")
    return TextTable("Experiment 1: the paper's AUC and ours", columns, lines)


def verdict(apart: float) -> str:
    """Return one word for a difference: within 0.04 it agrees.

    Examples
    --------
    >>> verdict(0.04), verdict(-0.1), verdict(0.3)
    ('agrees', 'lower', 'higher')
    """
    if abs(round(apart, 3)) <= NEAR:
        return "agrees"
    return "higher" if apart > 0 else "lower"


def tests(runs: dict[str, Floats]) -> TextTable:
    """Return p-values of each method against the best of its data set: the paper's test, and with the correction."""
    lines = []
    for name, found in runs.items():
        best = int(found.mean(axis=0).argmax())
        for j, method in enumerate(METHODS):
            plain = paired_t(found[:, best], found[:, j])
            corrected = paired_t(found[:, best], found[:, j], TEN_FOLDS)
            cells = [TITLES[name], method, METHODS[best], f"{plain:.2e}", f"{corrected:.2e}"]
            lines.append([Cell(text) for text in cells])
    columns = ("data set", "method", "against", "p, paired t", "p, corrected for overlap")
    return TextTable("Experiment 1: paired t-tests against the best method of the data set", columns, lines)


def report_experiment_2(results: Results, folder: Path) -> list[Path]:
    """Write the table of average precision against the number of outlying dimensions, and the line figure."""
    rows = results.rows()
    curves: dict[str, dict[int, Floats]] = {}
    for name in values_of(rows, "data"):
        mine = [row for row in rows if row["data"] == name]
        by_p = {int(p): complete_runs(mine, METHODS, "ap", RUN, p=p) for p in values_of(mine, "p")}
        curves[name] = {p: found for p, found in sorted(by_p.items()) if len(found) > 1}
    curves = {name: curve for name, curve in curves.items() if curve}
    if not curves:
        return []
    lines = [
        [Cell(TITLES[name]), Cell(str(p)), *(_mean_cells(found)), Cell(str(len(found)))]
        for name, curve in curves.items()
        for p, found in curve.items()
    ]
    columns = ("data set", "p", *METHODS, "runs")
    table = TextTable("Experiment 2: area under the precision-recall curve, mean (standard deviation)", columns, lines)
    return table.save(folder, "table") + figures.lines(curves, METHODS, folder / "lines.svg")


def _mean_cells(found: Floats) -> list[Cell]:
    best = best_methods(found)
    numbers = zip(found.mean(axis=0), found.std(axis=0, ddof=1), best, strict=True)
    return [Cell(f"{m:.3f} ({s:.3f})", bool(b)) for m, s, b in numbers]
