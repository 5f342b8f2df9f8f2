"""Conditional log-likelihood of BR, chain and DBR on held-out rows: the appendix that the paper planned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mcode._progress import advance
from mcode.experiments.datasets import TITLES, DataFolder, sample
from mcode.experiments.results import Results, keep_settings
from mcode.experiments.runs import complete_runs, values_of
from mcode.experiments.significance import paired_t
from mcode.experiments.tables import Cell, TextTable
from mcode.models.conditional import BinaryRelevance, ClassifierChain, ConditionalModel, DependentRelevance
from mcode.models.folds import stratified_folds

SETS = (
    "emotions", "genbase", "medical", "yeast", "enron", "imdb", "corel5k", "mediamill_sample", "bibtex",
    "reuters_aligned", "reuters", "delicious",
)  # fmt: skip
MOST_ROWS = {"imdb": 6000, "delicious": 1500}
FOLDS = 5
MODELS: dict[str, type[ConditionalModel]] = {"BR": BinaryRelevance, "chain": ClassifierChain, "DBR": DependentRelevance}
NAMES = tuple(MODELS)


def likelihood_results(folder: Path) -> Results:
    """Return the rows that are in a folder."""
    return Results(folder / "rows.csv", ("data", "fold", "method"), ("rows", "log_likelihood"))


def run_likelihood(data: DataFolder, folder: Path, *, quick: bool, seed: int, sets: Sequence[str] = ()) -> Results:
    """Measure log P(y | x) of held-out rows, fold by fold; the folds are also those of the search for the penalty.

    Of BR and the chain it is a log-likelihood, of DBR the log pseudo-likelihood.
    """
    chosen = tuple(sets) or (("medical",) if quick else SETS)
    data.check(chosen)
    settings: dict[str, Any] = {"experiment": "likelihood", "seed": seed, "quick": quick}
    keep_settings(folder, settings)
    results = likelihood_results(folder)
    for done, name in enumerate(chosen):
        advance("likelihood", done, len(chosen))
        table = sample(data.table(name), 300 if quick else MOST_ROWS.get(name, 10_000), seed)
        fold_of_row = stratified_folds(table.Y, FOLDS, np.random.default_rng(table.seed(seed)))
        for model in NAMES:
            if all(results.has(data=name, fold=f, method=model) for f in range(FOLDS)):
                continue
            cross = MODELS[model]().cross_fit(table.X, table.Y, fold_of_row, final=False)
            log_likelihood = cross.log_proba(table.X, table.Y).sum(axis=1)
            results.append(
                {
                    "data": name,
                    "fold": f,
                    "method": model,
                    "rows": int((fold_of_row == f).sum()),
                    "log_likelihood": float(log_likelihood[fold_of_row == f].mean()),
                }
                for f in range(FOLDS)
            )
    advance("likelihood", len(chosen), len(chosen))
    order = dict.fromkeys((*SETS, *chosen))
    results.finish({"data": name, "fold": f, "method": m} for name in order for f in range(FOLDS) for m in NAMES)
    return results


def report_likelihood(results: Results, folder: Path) -> list[Path]:
    """Write the table: mean over folds, the best proper joint in bold, and the test of chain against BR."""
    rows = results.rows()
    lines = []
    for name in values_of(rows, "data"):
        found = complete_runs(rows, NAMES, "log_likelihood", ("fold",), data=name)
        if len(found) < 2:
            continue
        mean = found.mean(axis=0)
        p = paired_t(found[:, 1], found[:, 0], 1.0 / (FOLDS - 1))
        cells = [Cell(f"{mean[j]:.3f}", bool(j < 2 and mean[j] == mean[:2].max())) for j in range(3)]
        lines.append([Cell(TITLES[name]), *cells, Cell(f"{mean[1] - mean[0]:+.3f}"), Cell(f"{p:.4f}")])
    columns = ("data set", "BR", "chain", "DBR (pseudo)", "chain - BR", "p, corrected for overlap")
    title = "log P(y | x) per held-out row, mean over five folds"
    return TextTable(title, columns, lines).save(folder, "table") if lines else []
