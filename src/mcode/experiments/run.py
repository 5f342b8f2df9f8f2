"""The experiments by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import joblib

from mcode.errors import UnknownNameError
from mcode.experiments.artefacts import artefact_results, report_artefacts, run_artefacts
from mcode.experiments.blame import blame_results
from mcode.experiments.clean import CleanPlan, clean_results, run_clean
from mcode.experiments.clean_tables import report_clean
from mcode.experiments.datasets import DataFolder
from mcode.experiments.likelihood import likelihood_results, report_likelihood, run_likelihood
from mcode.experiments.methods import PAPER
from mcode.experiments.paper_tables import report_experiment_1, report_experiment_2
from mcode.experiments.protocol import Plan, paper_results, run_paper
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
    only_tables: bool = False,
    jobs: int | None = None,
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
    only_tables : measure nothing; write the tables and figures of the rows that are there
    jobs : processes of the clean protocol side by side; None is one for each core, or this one alone if `quick`

    Returns
    -------
    the files that were written
    """
    if which not in EXPERIMENTS:
        raise UnknownNameError("which", which, EXPERIMENTS, or_instance=False)
    known = {"1": tuple(PAPER), "2": tuple(PAPER), "clean": tuple(METHODS)}.get(which, ())
    for method in redo:
        if method not in known:
            raise UnknownNameError("redo", method, known, or_instance=False)
    if only_tables:
        return _report(which, folder)
    source = DataFolder(data)
    if which == "clean":
        processes = jobs or (1 if quick else joblib.cpu_count())
        run_clean(CleanPlan.of(quick=quick, seed=seed, sets=sets), source, folder, redo, processes)
    elif which == "likelihood":
        run_likelihood(source, folder, quick=quick, seed=seed, sets=sets)
    elif which == "artefacts":
        run_artefacts(source, folder, quick=quick, seed=seed, sets=sets)
    else:
        run_paper(Plan.of(which, quick=quick, seed=seed, sets=sets), source, folder, redo)
    return _report(which, folder)


def _report(which: str, folder: Path) -> list[Path]:
    """Write the tables and figures of the rows in a folder; return all files."""
    if which == "artefacts":
        found = artefact_results(folder)
        return [*(part.path for part in found.values() if part.rows()), *report_artefacts(found, folder)]
    if which == "likelihood":
        results = likelihood_results(folder)
        return [results.path, *report_likelihood(results, folder)]
    if which == "clean":
        results, blame = clean_results(folder), blame_results(folder)
        return [results.path, *report_clean(results, blame, folder)]
    results = paper_results(folder)
    report = report_experiment_1 if which == "1" else report_experiment_2
    return [results.path, *report(results, folder)]
