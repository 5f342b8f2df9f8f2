"""Large tables: time and memory of an audit, and the speed of scoring.

Each audit runs in a process of its own, so that its peak memory is its own. Beside it stands the plain loop that people
write today: scikit-learn's LogisticRegression for each response, 5 folds, context only, one fixed penalty. Some of its
responses are timed and the rest is extrapolated; the table says how many. Scoring a fitted DBR is timed against the one
matrix product it needs.

    python benchmarks/large.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import operator
import resource
import subprocess
import sys
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, cpu_count, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import mcode
from datasets import load, write_csv
from mcode.models import BatchLogistic, DependentRelevance

PEER_RESPONSES = 12


def audit_once(name: str, score: str, rows: int) -> None:
    """Audit in this process and print time and peak memory."""
    X, Y = load(name)
    X, Y = X[:rows], Y[:rows]
    start = time.perf_counter()
    mcode.audit(X, Y, score=score)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))


def audit_apart(name: str, score: str, rows: int) -> dict[str, float]:
    call = [sys.executable, __file__, "--one", name, score, str(rows)]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peer_loop(name: str, rows: int) -> tuple[float, int]:
    """Return seconds of the one-vs-rest loop over all responses, and how many were really timed."""
    X, Y = load(name)
    X, Y = X[:rows], Y[:rows]
    usable = np.flatnonzero((Y.sum(axis=0) >= 5) & ((1 - Y).sum(axis=0) >= 5))
    timed = usable[np.linspace(0, len(usable) - 1, min(PEER_RESPONSES, len(usable))).astype(int)]

    def one(j: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cross_val_predict(LogisticRegression(max_iter=200), X, Y[:, j], cv=5, method="predict_proba")

    start = time.perf_counter()
    Parallel(n_jobs=cpu_count())(delayed(one)(j) for j in timed)
    return (time.perf_counter() - start) * len(usable) / len(timed), len(timed)


def audits(cases: list[tuple[str, int]]) -> list[dict[str, Any]]:
    table = []
    for name, rows in cases:
        peer, timed = peer_loop(name, rows)
        for score in ("complement", "learned"):
            ours = audit_apart(name, score, rows)
            table.append({"data": name, "score": score, **ours, "one_vs_rest_loop_s": peer, "responses_timed": timed})
            print(
                f"{name:10} {score:10} {ours['seconds']:7.1f} s, peak {ours['peak_gb']:.2f} GB; "
                f"one-vs-rest loop {peer:.1f} s ({timed} responses timed)",
                flush=True,
            )
    return table


def scoring(cases: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Time log_proba of a fitted DBR against [X | Y] @ W, the product it needs, best of several runs in turn."""
    table = []
    for name, copies in cases:
        X, Y = load(name)
        few = slice(0, 5000)
        model = DependentRelevance(BatchLogistic(penalty=10.0, scale=False)).fit(X[few], Y[few])
        W = np.vstack([model.conditionals_.features, model.conditionals_.responses]).astype(np.float32)
        if sp.issparse(X):
            Z = sp.csr_matrix(sp.hstack([X, Y], dtype=np.float32))
        else:
            X, Y = np.tile(X, (copies, 1)), np.tile(Y, (copies, 1))
            Z = np.hstack([X, Y]).astype(np.float32)
        calls = {"product": partial(operator.matmul, Z, W), "scoring": partial(model.log_proba, X, Y)}
        best = dict.fromkeys(calls, np.inf)
        for _ in range(7):
            for what, call in calls.items():
                start = time.perf_counter()
                call()
                best[what] = min(best[what], time.perf_counter() - start)
        share = best["product"] / best["scoring"]
        table.append({"data": name, "rows": len(Y), **best, "share_of_product_speed": share})
        print(f"{name:18} {len(Y)} rows: product {best['product']:.3f} s, scoring {best['scoring']:.3f} s: {share:.0%}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a slice of the rows; nothing is saved")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "SCORE", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        audit_once(options.one[0], options.one[1], int(options.one[2]))
        return
    rows = 2000 if options.quick else 10**9
    speeds = scoring([("imdb", 1), ("delicious", 1), ("bibtex", 1), ("mediamill_sample", 20)])
    found = audits([("imdb", rows), ("delicious", rows)])
    if not options.quick:
        write_csv("large", found)
        write_csv("scoring", speeds)


if __name__ == "__main__":
    main()
