"""The experiments by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mcode.errors import UnknownNameError
from mcode.experiments.datasets import DataFolder
from mcode.experiments.paper_tables import report_experiment_1, report_experiment_2
from mcode.experiments.protocol import Plan, run_paper
from mcode.experiments.results import Results

EXPERIMENTS = ("1", "2")


def run_experiment(
    which: str,
    folder: Path,
    data: Path | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    sets: Sequence[str] = (),
    redo: Sequence[str] = (),
) -> list[Path]:
    """Run an experiment, or what is left of it, and write its rows, tables and figures.

    Parameters
    ----------
    which : one of EXPERIMENTS
    folder : where the results go
    data : folder of the data sets; None is that of the environment variable MCODE_DATA
    quick : a small run of the same shape
    seed : seed of folds, halves, bootstrap and injection
    sets : file names of data sets; all of the experiment where none is given
    redo : methods to measure again

    Returns
    -------
    the files that were written
    """
    if which not in EXPERIMENTS:
        raise UnknownNameError("which", which, EXPERIMENTS)
    source = DataFolder(data)
    reports: dict[str, Callable[[Results, Path], list[Path]]] = {"1": report_experiment_1, "2": report_experiment_2}
    plan = Plan.of(which, quick=quick, seed=seed, sets=sets)
    results = run_paper(plan, source, folder, redo)
    return [results.path, *reports[which](results, folder)]
