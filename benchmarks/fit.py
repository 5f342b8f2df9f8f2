"""Speed of fitting all response models with a searched penalty, against scikit-learn response by response.

Both sides fit L2-penalised logistic regressions of each response on [X, the other responses], penalty by 3-fold
cross-validation on log-loss over the same 10 values and the same folds, on a random 45 % of the rows; another 45 %
judge them. The peer is LogisticRegressionCV over joblib, with the solver, the number of processes and of BLAS threads
that were fastest on a sample of responses. (liblinear penalises the intercept, which is another model: where it is
fastest, its time counts, and the loss is that of lbfgs.) Compilation is cached by numba and reported apart.

    python benchmarks/fit.py [--quick] [--compilation] [--sets NAME ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, cpu_count, delayed
from sklearn.linear_model import LogisticRegressionCV
from threadpoolctl import threadpool_limits

from datasets import RESULTS, load, write_csv
from mcode.models import BatchLogistic, DependentRelevance
from mcode.models.folds import stratified_folds

SETS = ("medical", "yeast", "mediamill_sample", "corel5k", "bibtex", "reuters_aligned")
GRID = np.logspace(-4, 4, 10)
SAMPLE = 6  # responses on which the peer's settings are compared


def halves(name: str) -> tuple[Any, Any, Any, Any]:
    """Return a training and a test part of 45 % each, dense features standardised by the training part."""
    X, Y = load(name)
    order = np.random.default_rng(0).permutation(len(Y))
    train, test = order[: int(0.45 * len(Y))], order[int(0.45 * len(Y)) : int(0.9 * len(Y))]
    if not sp.issparse(X):
        deviation = X[train].std(axis=0)
        X = ((X - X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1)).astype(np.float32)
    return X[train], Y[train], X[test], Y[test]


def with_others(X: Any, Y: Any, j: int) -> Any:
    others = np.delete(Y, j, axis=1)
    return sp.csr_matrix(sp.hstack([X, others])) if sp.issparse(X) else np.hstack([X, others])


def peer_fit_one(X: Any, Y: Any, j: int, folds: list[Any], solver: str, threads: int) -> Any:
    estimator = LogisticRegressionCV(
        Cs=GRID, cv=folds, scoring="neg_log_loss", solver=solver, l1_ratios=(0,), use_legacy_attributes=False
    )
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")  # of convergence: its default number of iterations is part of its speed
        return estimator.fit(with_others(X, Y, j), Y[:, j])


def peer_fit(X: Any, Y: Any, columns: Any, folds: list[Any], setting: tuple[str, int, int]) -> tuple[list[Any], float]:
    solver, processes, threads = setting
    start = time.perf_counter()
    fitted = Parallel(n_jobs=processes)(delayed(peer_fit_one)(X, Y, j, folds, solver, threads) for j in columns)
    return fitted, time.perf_counter() - start


def best_setting(X: Any, Y: Any, columns: Any, folds: list[Any]) -> tuple[str, int, int]:
    """Return the solver, processes and BLAS threads that are fastest on a sample of the responses."""
    sample = columns[np.linspace(0, len(columns) - 1, SAMPLE).astype(int)]
    solvers = ["lbfgs", "liblinear"] + (["newton-cholesky"] if X.shape[1] + Y.shape[1] < 300 else [])
    cores = cpu_count()
    Parallel(n_jobs=cores)(delayed(abs)(i) for i in range(cores))  # processes are up before the clock starts
    seconds = {(solver, cores, 1): peer_fit(X, Y, sample, folds, (solver, cores, 1))[1] for solver in solvers}
    solver = min(seconds, key=lambda setting: seconds[setting])[0]
    seconds[solver, 1, cores] = peer_fit(X, Y, sample, folds, (solver, 1, cores))[1]
    return min(seconds, key=lambda setting: seconds[setting])


def log_loss(probability: Any, Y: Any) -> float:
    p = np.clip(probability, 1e-12, 1.0)
    return float(-np.log(p).sum() / Y.size)


def compare(name: str, repeats: int) -> dict[str, Any]:
    X, Y, X_test, Y_test = halves(name)
    fold = stratified_folds(Y, 3, np.random.default_rng(0))
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    usable = np.all([(Y[t].min(axis=0) < Y[t].max(axis=0)) for t, _ in folds], axis=0)
    columns = np.flatnonzero(usable)

    learner = BatchLogistic(penalty="cv", scale=False, folds=3, random_state=0)
    timings = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        model = DependentRelevance(learner).fit(X, Y)
        timings.append(time.perf_counter() - start)
    ours = float(np.median(timings[1:]))

    setting = best_setting(X, Y, columns, folds)
    fitted, peer = peer_fit(X, Y, columns, folds, setting)
    if setting[0] == "liblinear":
        fitted, _ = peer_fit(X, Y, columns, folds, ("lbfgs", *setting[1:]))
    log_rho = model.log_proba(X_test, Y_test)[:, columns]
    rho = np.column_stack(
        [
            classifier.predict_proba(with_others(X_test, Y_test, j))[np.arange(len(Y_test)), Y_test[:, j]]
            for classifier, j in zip(fitted, columns, strict=True)
        ]
    )
    loss_ours, loss_peer = log_loss(np.exp(log_rho), log_rho), log_loss(rho, rho)
    return {
        "data": name, "rows": len(Y), "features": X.shape[1], "responses": len(columns),
        "peer": "{} {}x{}".format(*setting), "peer_s": peer, "ours_s": ours, "ratio": peer / ours,
        "first_call_extra_s": max(0.0, timings[0] - ours),
        "loss_peer": loss_peer, "loss_ours": loss_ours, "loss_difference": loss_ours / loss_peer - 1,
    }  # fmt: skip


def growth() -> list[dict[str, Any]]:
    """Return seconds against rows, features and responses, each varied alone, on bibtex."""
    X, Y = load("bibtex")
    order = np.random.default_rng(0).permutation(len(Y))
    X, Y = X[order], Y[order]
    frequent = np.argsort(-Y.sum(axis=0))
    wide = np.argsort(-np.asarray((X != 0).sum(axis=0)).ravel())
    cases = [("rows", n, X[:n], Y[:n]) for n in (500, 1000, 2000, 4000, 7395)]
    cases += [("features", m, X[:3000][:, wide[:m]], Y[:3000]) for m in (115, 230, 460, 920, 1836)]
    cases += [("responses", d, X[:3000], Y[:3000][:, frequent[:d]]) for d in (10, 20, 40, 80, 159)]
    rows = []
    for what, size, X_part, Y_part in cases:
        start = time.perf_counter()
        DependentRelevance(BatchLogistic(folds=3)).fit(X_part, Y_part)
        rows.append({"varied": what, "size": size, "seconds": time.perf_counter() - start})
    return rows


def compilation() -> list[dict[str, Any]]:
    """Return the seconds of a process's first fit: where nothing was ever compiled, and where a process before did it.

    medical is the sparse case, yeast the dense one; each begins with an empty cache.
    """
    rows = []
    for name in ("medical", "yeast"):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, "--first-fit", name]
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            cold, cached = (
                float(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
                for _ in range(2)
            )
        rows.append({"data": name, "nothing_compiled_s": cold, "compiled_before_s": cached})
        print(f"{name:17} first fit ever {cold:.1f} s, first fit of a later process {cached:.2f} s", flush=True)
    return rows


def first_fit(name: str) -> float:
    X, Y, _, _ = halves(name)
    start = time.perf_counter()
    DependentRelevance(BatchLogistic(penalty="cv", scale=False, folds=3)).fit(X, Y)
    return time.perf_counter() - start


def plot_growth(rows: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter, NullLocator

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    for axis, what in zip(axes, ("rows", "features", "responses"), strict=True):
        size = np.array([row["size"] for row in rows if row["varied"] == what])
        seconds = np.array([row["seconds"] for row in rows if row["varied"] == what])
        slope = np.polyfit(np.log(size), np.log(seconds), 1)[0]
        axis.loglog(size, seconds, "o-", color="#2a6f97")
        axis.set_xlabel(f"{what} (growth exponent {slope:.2f})")
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticks(size, [str(each) for each in size])
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds to fit")
    figure.suptitle("Fitting a DBR with a searched penalty on bibtex")
    figure.savefig(RESULTS / "fit_growth.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small sets, no growth plot; nothing is saved")
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="data sets to compare on")
    parser.add_argument("--compilation", action="store_true", help="measure what compilation takes, and stop")
    parser.add_argument("--first-fit", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first_fit:
        print(first_fit(options.first_fit))
        return
    if options.compilation:
        write_csv("fit_compilation", compilation())
        return
    rows = []
    for name in ("medical", "yeast") if options.quick else options.sets:
        rows.append(compare(name, 1 if options.quick else 5))
        line = (
            "{data:17} peer {peer_s:7.2f} s ({peer})  ours {ours_s:6.3f} s  ratio {ratio:5.1f}  "
            "log-loss {loss_peer:.5f} {loss_ours:.5f} ({loss_difference:+.2%})  first call +{first_call_extra_s:.1f} s"
        )
        print(line.format(**rows[-1]), flush=True)
    print(f"geometric mean of the ratios: {np.exp(np.mean(np.log([row['ratio'] for row in rows]))):.1f}")
    if not options.quick:
        write_csv("fit", rows)
        curves = growth()
        write_csv("fit_growth", curves)
        plot_growth(curves)
        write_csv("fit_compilation", compilation())


if __name__ == "__main__":
    main()
