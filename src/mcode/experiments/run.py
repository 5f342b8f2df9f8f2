"""The experiments by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcode.errors import UnknownNameError
from mcode.experiments.artefacts import report_artefacts, run_artefacts
from mcode.experiments.clean import CleanPlan, run_clean
from mcode.experiments.clean_tables import report_clean
from mcode.experiments.datasets import DataFolder
from mcode.experiments.likelihood import report_likelihood, run_likelihood
from mcode.experiments.methods import PAPER
from mcode.experiments.paper_tables import report_experiment_1, report_experiment_2
from mcode.experiments.protocol import Plan, run_paper
from mcode.experiments.rivals import METHODS

EXPERIMENTS = ("1", "2", "clean", "likelihood", "artefacts")


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
    known = {"1": tuple(PAPER), "2": tuple(PAPER), "clean": tuple(METHODS)}.get(which, ())
    for method in redo:
        if method not in known:
            raise UnknownNameError("redo", method, known)
    source = DataFolder(data)
    if which == "clean":
        results, blame = run_clean(CleanPlan.of(quick=quick, seed=seed, sets=sets), source, folder, redo)
        return [results.path, blame.path, *report_clean(results, blame, folder)]
    if which == "likelihood":
        results = run_likelihood(source, folder, quick=quick, seed=seed, sets=sets)
        return [results.path, *report_likelihood(results, folder)]
    if which == "artefacts":
        found = run_artefacts(source, folder, quick=quick, seed=seed, sets=sets)
        return [*(part.path for part in found.values() if part.rows()), *report_artefacts(found, folder)]
    results = run_paper(Plan.of(which, quick=quick, seed=seed, sets=sets), source, folder, redo)
    report = report_experiment_1 if which == "1" else report_experiment_2
    return [results.path, *report(results, folder)]
