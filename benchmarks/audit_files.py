"""The command `mcode audit` on files: real tables as CSV and Parquet, one response flipped in 2 % of the rows.

Beside it stands cleanlab's default (get_label_quality_scores) on out-of-fold probabilities of scikit-learn's
one-vs-rest logistic regression, with the same folds. k is the number of corrupted rows. The first-named response is the
column `response` of the command's result; for cleanlab it is the response with the lowest probability of what was
recorded, because its default does not name one.

    python benchmarks/audit_files.py [--sets NAME ...] [--seeds N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from cleanlab.multilabel_classification import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from datasets import load, update_csv
from detection import corrupted
from mcode.corruption import Flip
from mcode.models.folds import stratified_folds

SETS = {"yeast": 5, "enron": 3, "bibtex": 1}  # seeds of each
SUFFIXES = (".csv", ".parquet")


def write_table(path: Path, X: Any, Y: Any) -> None:
    """Write context and responses as a person would have them: one column each."""
    dense = X.toarray() if sp.issparse(X) else X
    features = {f"x{j}": dense[:, j] for j in range(dense.shape[1])}
    table = pd.DataFrame({**features, **{f"y{j}": Y[:, j] for j in range(Y.shape[1])}})
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path, index=False)


def audit_command(path: Path, seed: int, n_labels: int) -> tuple[Any, Any]:
    """Run the command; return the score and the place of the first-named response of each row."""
    out = path.with_name("findings.parquet")
    call = [sys.executable, "-m", "mcode", "audit", str(path), "--labels", "y*", "--seed", str(seed), "--quiet"]
    subprocess.run([*call, "--out", str(out)], check=True)
    found = pd.read_parquet(out).sort_values("row")
    assert found["response"].isin([f"y{j}" for j in range(n_labels)]).all()
    return found["score"].to_numpy(), found["response"].str[1:].astype(int).to_numpy()


def cleanlab_default(X: Any, Y: Any, folds: Any) -> tuple[Any, Any]:
    """Return the score and the place of the least probable response of each row."""
    present = np.empty(Y.shape)
    for f in range(folds.max() + 1):
        train, held = folds != f, folds == f
        for j in range(Y.shape[1]):
            if Y[train, j].min() == Y[train, j].max():
                present[held, j] = (Y[train, j].sum() + 0.5) / (train.sum() + 1.0)
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = LogisticRegression(max_iter=200).fit(X[train], Y[train, j])
            present[held, j] = fitted.predict_proba(X[held])[:, 1]
    labels = [list(np.flatnonzero(row)) for row in Y]
    return -get_label_quality_scores(labels, present), np.where(Y == 1, present, 1.0 - present).argmin(axis=1)


def measures(score: Any, first: Any, wrong: Any, changed: Any) -> dict[str, float]:
    k = int(wrong.sum())
    top = np.argsort(-score, kind="stable")[:k]
    named = changed[np.flatnonzero(wrong), first[wrong]]
    return {
        "precision at k": float(wrong[top].mean()),
        "average precision": float(average_precision_score(wrong, score)),
        "top-1 blame": float(named.mean()),
    }


def one_set(name: str, seeds: int) -> list[dict[str, Any]]:
    results: dict[str, list[dict[str, float]]] = {}
    X, Y = load(name)
    for seed in range(seeds):
        Yc, wrong = corrupted(Y, Flip(), seed)
        with tempfile.TemporaryDirectory() as folder:
            for suffix in SUFFIXES:
                path = Path(folder) / f"{name}{suffix}"
                write_table(path, X, Yc)
                score, first = audit_command(path, seed, Y.shape[1])
                results.setdefault(f"mcode audit {suffix[1:]}", []).append(measures(score, first, wrong, Yc != Y))
        folds = stratified_folds(Yc, 5, np.random.default_rng(seed))
        results.setdefault("cleanlab default", []).append(measures(*cleanlab_default(X, Yc, folds), wrong, Yc != Y))
    lines = []
    for method, runs in results.items():
        means = {what: float(np.mean([run[what] for run in runs])) for what in runs[0]}
        lines.append({"data": name, "seeds": seeds, "method": method, **means})
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS), help="data sets to audit")
    parser.add_argument("--seeds", type=int, help="corruptions of each set, instead of its own number")
    options = parser.parse_args()
    for name in options.sets:
        update_csv("audit_files", one_set(name, options.seeds or SETS[name]))


if __name__ == "__main__":
    main()
