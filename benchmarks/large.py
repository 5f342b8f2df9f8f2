"""Large tables: time and memory of an audit, and the speed of scoring.

Everything runs in processes of its own; seconds and peak memory are those of the process and its children together.
- audits: `mcode.audit` beside the plain loop that people write today: scikit-learn's LogisticRegression for each
  response, 5 folds, context only, one fixed penalty. Some of its responses are timed and the rest is extrapolated; the
  table says how many.
- command: `mcode audit imdb.npz` beside a script that reads the same file, makes out-of-fold probabilities by the same
  loop over all responses, on all cores, and gives them to cleanlab's default. Wall-clock and processor seconds.
- scoring: a fitted DBR against the one matrix product it needs, on as many threads in the same precision.

    python benchmarks/large.py [--quick] [--only audits|command|scoring] [--sets NAME ...]
"""

from __future__ import annotations

import argparse
import json
import operator
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp
from cleanlab.multilabel_classification import get_label_quality_scores
from joblib import Parallel, cpu_count, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import mcode
from datasets import ROOT, load, update_csv
from mcode.models import BatchLogistic, DependentRelevance

PEER_RESPONSES = 12
ROUNDS, PAUSE = 15, 0.1  # of scoring, and seconds before each call


class Watched:
    """A process and its children: wall-clock and processor seconds, and the most memory they held together."""

    def __init__(self, call: list[str]) -> None:
        start = time.perf_counter()
        process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
        self.peak, self._cpu = 0.0, dict[int, float]()
        watcher = threading.Thread(target=self._watch, args=(psutil.Process(process.pid),))
        watcher.start()
        self.output = process.communicate()[0]
        watcher.join()
        self.seconds = time.perf_counter() - start
        if process.returncode:
            raise SystemExit(f"{call} failed")

    def _watch(self, parent: psutil.Process) -> None:
        while True:
            try:
                family = [parent, *parent.children(recursive=True)]
                self.peak = max(self.peak, sum(member.memory_info().rss for member in family) / 2**30)
                self._cpu |= {member.pid: sum(member.cpu_times()[:2]) for member in family}
                if parent.status() == psutil.STATUS_ZOMBIE:
                    return
            except psutil.Error:
                if not parent.is_running():
                    return
            time.sleep(0.05)

    def numbers(self) -> dict[str, float]:
        """Return what was measured."""
        return {"seconds": self.seconds, "cpu_s": sum(self._cpu.values()), "peak_gb": self.peak}


def audit_once(name: str, score: str, rows: int) -> None:
    """Audit in this process and print the time without start and loading."""
    X, Y = load(name)
    X, Y = X[:rows], Y[:rows]
    start = time.perf_counter()
    mcode.audit(X, Y, score=score)
    print(json.dumps({"seconds": time.perf_counter() - start}))


def audit_apart(name: str, score: str, rows: int) -> dict[str, float]:
    watched = Watched([sys.executable, __file__, "--one", name, score, str(rows)])
    return {**watched.numbers(), **json.loads(watched.output.splitlines()[-1])}


def cleanlab_once(name: str) -> None:
    """Do what a user of cleanlab does with one-vs-rest logistic regression: read, cross-fit, score."""
    X, Y = load(name)

    def one(j: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cross_val_predict(LogisticRegression(max_iter=200), X, Y[:, j], cv=5, method="predict_proba")[:, 1]

    present = np.column_stack(Parallel(n_jobs=cpu_count())(delayed(one)(j) for j in range(Y.shape[1])))
    get_label_quality_scores([list(np.flatnonzero(row)) for row in Y], present)


def command(name: str) -> list[dict[str, Any]]:
    """Run the command and the script with cleanlab on the same file, one after the other."""
    ours = Watched([sys.executable, "-m", "mcode", "audit", str(ROOT / f"{name}.npz"), "--quiet"])
    peer = Watched([sys.executable, __file__, "--cleanlab", name])
    table = [
        {"data": name, "what": "mcode audit", **ours.numbers()},
        {"data": name, "what": "cleanlab with scikit-learn one-vs-rest", **peer.numbers()},
    ]
    for line in table:
        print(line, flush=True)
    return table


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

    with Parallel(n_jobs=cpu_count()) as pool:
        pool(delayed(one)(j) for j in timed[: cpu_count()])  # starting the processes is not what is extrapolated
        start = time.perf_counter()
        pool(delayed(one)(j) for j in timed)
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
    """Time log_proba of a fitted DBR against [X | Y] @ W, the product it needs, best of several runs in turn.

    A pause goes before each: the threads of a matrix product wait for the next one in a loop, on the cores that
    whatever comes next would use.
    """
    table = []
    for name, copies in cases:
        X, Y = load(name)
        Y = np.ascontiguousarray(Y)  # as the product's own matrix is made ready
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
        for _ in range(ROUNDS):
            for what, call in calls.items():
                time.sleep(PAUSE)
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
    parser.add_argument("--only", choices=("audits", "command", "scoring"), help="one part")
    parser.add_argument("--sets", nargs="*", default=["imdb", "delicious"], help="tables to audit")
    parser.add_argument("--cleanlab", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=3, metavar=("NAME", "SCORE", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        audit_once(options.one[0], options.one[1], int(options.one[2]))
        return
    if options.cleanlab:
        cleanlab_once(options.cleanlab)
        return
    rows = 2000 if options.quick else 10**9
    parts = {
        "scoring": partial(scoring, [("imdb", 1), ("delicious", 1), ("bibtex", 1), ("mediamill_sample", 20)]),
        "command": partial(command, "imdb"),
        "audits": partial(audits, [(name, rows) for name in options.sets]),
    }
    files = {"scoring": "scoring", "command": "large_command", "audits": "large"}
    for part, measure in parts.items():
        if options.only not in (None, part) or (options.quick and part == "command"):
            continue
        found = measure()
        if not options.quick:
            update_csv(files[part], found)


if __name__ == "__main__":
    main()
