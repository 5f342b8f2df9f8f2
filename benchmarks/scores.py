"""Speed, memory and detection of the robust, LOF and one-class scores, beside scikit-learn on the same data.

python benchmarks/scores.py [--quick] [--part speed,detection,choices,cost] [--sets NAME ...] [--out benchmarks/results]

Real data sets are read from the directory in MCODE_DATA, else from ../shared/data beside the project.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import chi2, spearmanr
from sklearn.covariance import MinCovDet
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from mcode.models import DependentRelevance
from mcode.scores.lof import LOFScore
from mcode.scores.ocsvm import OneClassScore
from mcode.scores.robust import RobustScore

PROJECT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("MCODE_DATA", PROJECT.parent / "shared" / "data"))
FOLD = {"medical": 98, "genbase": 66, "yeast": 242, "bibtex": 740, "corel5k": 500}  # rows of a tenth, as in the paper
Row = dict[str, Any]
Score = Callable[[np.ndarray], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, one draw: about a minute")
    parser.add_argument("--part", default="speed,detection,choices,cost")
    parser.add_argument("--sets", nargs="*", help="data sets of the detection table to measure again; others are kept")
    parser.add_argument("--out", type=Path, default=PROJECT / "benchmarks" / "results")
    parser.add_argument("--lof-rows", type=int, help=argparse.SUPPRESS)  # the subprocess that measures memory
    options = parser.parse_args()
    if options.lof_rows:
        measure_lof(options.lof_rows)
        return
    warnings.simplefilter("ignore")  # scikit-learn warns of singular covariances and of duplicates: that is the point
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.sets or (["medical", "yeast"] if options.quick else list(FOLD))
    parts = {"speed": speed, "detection": partial(detection, names), "choices": choices, "cost": cost}
    for name in options.part.split(","):
        rows = print_rows(name, parts[name](options.quick))
        path = options.out / f"scores_{name}{'_quick' if options.quick else ''}.csv"
        if options.sets and path.exists():
            stored = csv.DictReader(path.read_text().splitlines())
            rows = [row for row in stored if row["data"] not in options.sets] + rows
        save(rows, path)
        if name == "cost":
            plot_cost(rows, path.with_suffix(".png"))


# --- data -----------------------------------------------------------------------------------------------------------


def correlated(n: int, m: int, seed: int = 0) -> np.ndarray:
    """Return normal rows with correlation 0.5 between neighbouring columns, of which 5 % are shifted."""
    rng = np.random.default_rng(seed)
    M = np.empty((n, m))
    M[:, 0] = rng.normal(size=n)
    for j in range(1, m):
        M[:, j] = 0.5 * M[:, j - 1] + np.sqrt(0.75) * rng.normal(size=n)
    M[: n // 20] += 3.0
    return M


def rho_like(n: int, m: int, seed: int = 0) -> np.ndarray:
    """Return probabilities of what was observed, from a model with 8 factors."""
    rng = np.random.default_rng(seed)
    logits = (
        rng.normal(2.5, 1, m) + 0.6 * rng.normal(size=(n, 8)) @ rng.normal(size=(8, m)) + 0.5 * rng.normal(size=(n, m))
    )
    p = 1 / (1 + np.exp(-logits))
    return np.where(rng.random((n, m)) < p, p, 1 - p)


@cache
def held_out(name: str) -> tuple[Any, np.ndarray, DependentRelevance]:
    """Return the half of a data set that the model has not seen, and the model."""
    file = np.load(DATA / f"{name}.npz", allow_pickle=False)
    parts = (file[f"x_{part}"] for part in ("data", "indices", "indptr")) if "X" not in file.files else None
    X = file["X"] if parts is None else sp.csr_matrix(tuple(parts), shape=tuple(file["x_shape"]))
    X, Y = X.astype(np.float64), file["Y"]
    if not sp.issparse(X):
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    order = np.random.default_rng(0).permutation(len(Y))
    seen, unseen = order[: len(Y) // 2], order[len(Y) // 2 :]
    return X[unseen], Y[unseen], DependentRelevance().fit(X[seen], Y[seen])


def flipped(name: str, protocol: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rho of held-out rows, some with one response flipped, and which.

    "plain": every row once, 2 % of them flipped. "bootstrap": 5,000 rows drawn from a tenth of the data, 25 flipped.
    """
    X, Y, model = held_out(name)
    rng = np.random.default_rng(seed)
    drawn = np.arange(len(Y))
    if protocol == "bootstrap":
        drawn = rng.choice(rng.choice(len(Y), FOLD[name], replace=False), 5000)
    n_flipped = 25 if protocol == "bootstrap" else max(10, len(Y) // 50)
    rows = rng.choice(len(drawn), n_flipped, replace=False)
    changed, is_flipped = Y[drawn].copy(), np.zeros(len(drawn), dtype=int)
    changed[rows, rng.integers(0, Y.shape[1], n_flipped)] ^= 1
    is_flipped[rows] = 1
    return np.exp(model.log_proba(X[drawn], changed)), is_flipped


# --- speed ----------------------------------------------------------------------------------------------------------


def seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def best_threads(run: Callable[[], object]) -> tuple[float, int]:
    """Return the time with the number of threads that is best for it: one, or all."""
    found = []
    for n_threads in sorted({1, os.cpu_count() or 1}):
        with threadpool_limits(n_threads):
            found.append((seconds(run, 1), n_threads))
    return min(found)


def min_cov_det(M: np.ndarray) -> MinCovDet:
    """Fit the peer on one thread, its best: with more it waits for them most of the time."""
    with threadpool_limits(1):
        return MinCovDet(random_state=0).fit(M)


def speed(quick: bool) -> Iterator[Row]:
    LOFScore(k=2).fit(rho_like(200, 3))  # compiles
    yield from robust_speed(quick)
    yield from lof_speed(quick)
    yield from one_class_speed(quick)


def robust_speed(quick: bool) -> Iterator[Row]:
    for n, m in [(2000, 50)] if quick else [(5000, 50), (5000, 100)]:
        M = correlated(n, m)
        if m == 50:  # at 100 columns several threads take minutes; at 50 they show which number is best
            theirs, n_threads = best_threads(lambda: MinCovDet(random_state=0).fit(M))  # noqa: B023
        else:
            theirs, n_threads = seconds(lambda: min_cov_det(M), 1), 1  # noqa: B023
        ours = seconds(lambda: RobustScore().fit(M))  # noqa: B023
        a, b, cut = RobustScore().fit_outlier_score(M), min_cov_det(M).mahalanobis(M), chi2.isf(0.025, m)
        apart = np.mean((a > cut) != (b > cut))
        note = f"rank correlation {spearmanr(a, b).statistic:.4f}, flagged differently {apart:.2%}"
        yield compared("robust", f"{n} x {m}", ours, theirs, f"MinCovDet, {n_threads} thread(s)", 30, note)
    rho, is_flipped = flipped("corel5k", "bootstrap", 0)
    ours = seconds(lambda: RobustScore().fit(rho))
    auc = roc_auc_score(is_flipped, RobustScore().fit_outlier_score(rho))
    yield compared("robust", "5000 x 374, Corel5k, 500 distinct", ours, None, "", None, f"AUC {auc:.3f}")


def lof_speed(quick: bool) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    few = rng.random((100, 50))
    tables = {
        "5000 x 100" if quick else "20000 x 100": (rng.normal(size=(5000 if quick else 20000, 100)), 1.5),
        "5000 x 50, 100 distinct": (few[rng.integers(0, 100, 5000)], 20),
    }
    for name, (M, target) in tables.items():
        theirs, n_threads = best_threads(lambda: LocalOutlierFactor(30).fit(M))  # noqa: B023
        theirs = min(theirs, seconds(lambda: LocalOutlierFactor(30).fit(M)))  # noqa: B023
        ours = seconds(lambda: LOFScore().fit(M))  # noqa: B023
        yield compared("lof", name, ours, theirs, f"LocalOutlierFactor, {n_threads} thread(s)", target, "")
    n = 20_000 if quick else 200_000
    output = subprocess.run(
        [sys.executable, __file__, "--lof-rows", str(n)], capture_output=True, text=True, check=True
    ).stdout.split()
    note = f"peak memory {float(output[1]):.2f} GB (target: below 2)"
    yield compared("lof", f"{n} x 50", float(output[0]), None, "", None, note)


def measure_lof(n: int) -> None:
    M = np.random.default_rng(0).normal(size=(n, 50))
    took = seconds(lambda: LOFScore().fit(M), 1)
    print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def one_class_speed(quick: bool) -> Iterator[Row]:
    sizes, n = ([2500, 5000, 10_000], 50_000) if quick else ([25_000, 50_000, 100_000], 200_000)
    gamma = OneClassScore().fit(rho_like(5000, 50)).gamma_
    times = []
    for size in sizes:
        M = rho_like(size, 50)
        times.append(seconds(lambda: OneClassSVM(nu=0.01, gamma=gamma).fit(M), 1))  # noqa: B023
    growth = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    extrapolated = times[-1] * (n / sizes[-1]) ** growth
    M = rho_like(n, 50)
    score = OneClassScore(exact_limit=20_000, gamma=gamma)
    ours = seconds(lambda: score.fit(M))
    exact = ", ".join(f"{t:.2f} s at {s}" for s, t in zip(sizes, times, strict=True))
    note = f"exact measured: {exact}; grows as n^{growth:.2f}"
    yield compared("one-class", f"{n} x 50", ours, extrapolated, "OneClassSVM, extrapolated", 50, note)


def compared(
    score: str, data: str, ours: float, theirs: float | None, peer: str, target: float | None, note: str
) -> Row:
    ratio = theirs / ours if theirs is not None else None
    met = "" if target is None or ratio is None else ("yes" if ratio >= target else "NO")
    return {
        "score": score,
        "data": data,
        "seconds": round(ours, 4),
        "peer": peer,
        "peer seconds": "" if theirs is None else round(theirs, 3),
        "times faster": "" if ratio is None else round(ratio, 1),
        "target": target or "",
        "met": met,
        "note": note,
    }


# --- detection ------------------------------------------------------------------------------------------------------


def same_width(M: np.ndarray) -> float:
    """Return the kernel width that OneClassScore uses, for the peer."""
    return float(OneClassScore().fit(M).gamma_)


def lof_by_definition(M: np.ndarray, k: int = 30) -> np.ndarray:
    """Return Breunig's local outlier factor by the obvious formulas over all pairs of rows, ties included."""
    M = M.round(12)  # copies of a row that a matrix product gave other last bits are copies
    squares = np.einsum("ij,ij->i", M, M)
    distance = np.sqrt(np.maximum(squares[:, None] + squares - 2 * M @ M.T, 0)).round(7)
    np.fill_diagonal(distance, np.inf)
    reach = np.partition(distance, k - 1, axis=1)[:, k - 1]
    near = distance <= reach[:, None]
    total = np.where(near, np.maximum(distance, reach), 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = near.sum(axis=1) / total
        ratio = density / density[:, None]
    ratio[np.isinf(density)[:, None] & np.isinf(density)] = 1.0
    return np.asarray(np.where(near, ratio, 0).sum(axis=1) / near.sum(axis=1))


def detection(names: list[str], quick: bool) -> Iterator[Row]:
    """Compare each score with the straightforward estimator in the same space; the exact SVM with the fast one.

    scikit-learn's LOF says itself that copies of rows make its results incorrect: there the definition is the measure.
    """
    pairs: dict[str, tuple[Score, Score]] = {
        "robust, log": (
            lambda M: RobustScore().fit_outlier_score(M),
            lambda M: min_cov_det(np.log(M)).mahalanobis(np.log(M)),
        ),
        "robust, rho": (
            lambda M: RobustScore(space="rho").fit_outlier_score(M),
            lambda M: min_cov_det(M).mahalanobis(M),
        ),
        "lof": (
            lambda M: LOFScore(k=30).fit_outlier_score(M),
            lambda M: -LocalOutlierFactor(n_neighbors=30).fit(M).negative_outlier_factor_,
        ),
        "lof, definition": (lambda M: LOFScore(k=30).fit_outlier_score(M), lof_by_definition),
        "one-class, exact": (
            lambda M: OneClassScore().fit_outlier_score(M),
            lambda M: -OneClassSVM(nu=0.01, gamma=same_width(M)).fit(M).decision_function(M),
        ),
        "one-class, features": (
            lambda M: OneClassScore(exact_limit=0).fit_outlier_score(M),
            lambda M: -OneClassSVM(nu=0.01, gamma=same_width(M)).fit(M).decision_function(M),
        ),
    }  # fmt: skip
    for protocol in ("plain", "bootstrap"):
        for name in names:
            for score, (ours, theirs) in pairs.items():
                slow = score.startswith("robust") and name in ("bibtex", "corel5k")
                draws = [flipped(name, protocol, seed) for seed in range(1 if quick else 3 if slow else 5)]
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    a, b = mean_auc(draws, ours), mean_auc(draws, theirs)
                incorrect = any("incorrect results" in str(warning.message) for warning in said)
                yield {
                    "protocol": protocol,
                    "data": name,
                    "score": score,
                    "AUC": round(a, 3),
                    "straightforward": round(b, 3),
                    "difference": round(a - b, 3),
                    "not lower by 0.01": "yes" if a >= b - 0.01 else "the other warns" if incorrect else "NO",
                    "draws": len(draws),
                }


def mean_auc(draws: list[tuple[np.ndarray, np.ndarray]], score: Score) -> float:
    values = []
    for rho, is_flipped in draws:
        try:
            found = np.nan_to_num(score(rho), posinf=1e300)
        except ValueError:  # MinCovDet refuses a support of zero covariance
            found = np.zeros(len(rho))
        values.append(roc_auc_score(is_flipped, found))
    return float(np.mean(values))


def choices(quick: bool) -> Iterator[Row]:
    """Measure what the defaults rest on: space and condition of the robust distance, width of the kernel."""
    candidates: dict[str, Score] = {}
    for space in ("rho", "log"):
        for condition in (5.0, 50.0, 1e3, 1e5):
            candidates[f"robust {space} {condition:g}"] = RobustScore(
                space=space, max_condition=condition
            ).fit_outlier_score
    for gamma in ("wide", "scale"):
        candidates[f"one-class {gamma}, exact"] = OneClassScore(gamma=gamma).fit_outlier_score
        candidates[f"one-class {gamma}, features"] = OneClassScore(gamma=gamma, exact_limit=0).fit_outlier_score
    candidates["lof counted"] = LOFScore().fit_outlier_score
    candidates["lof distinct"] = LOFScore(duplicates="distinct").fit_outlier_score
    for protocol in ("plain", "bootstrap"):
        names = ["medical", "yeast"] if quick else list(FOLD)
        draws = {name: [flipped(name, protocol, seed) for seed in range(1 if quick else 3)] for name in names}
        for candidate, score in candidates.items():
            aucs = {name: mean_auc(draws[name], score) for name in names}
            yield {
                "protocol": protocol, "candidate": candidate, **{name: round(auc, 3) for name, auc in aucs.items()},
                "mean": round(float(np.mean(list(aucs.values()))), 3),
            }  # fmt: skip


# --- cost -----------------------------------------------------------------------------------------------------------


def cost(quick: bool) -> Iterator[Row]:
    """Measure seconds to fit against rows (50 columns) and against columns (5,000 rows)."""
    ours: dict[str, Score] = {"robust": RobustScore().fit, "lof": LOFScore().fit, "one-class": OneClassScore().fit}
    peers: dict[str, Score] = {
        "robust": lambda M: min_cov_det(np.log(M)),
        "lof": LocalOutlierFactor(30).fit,
        "one-class": lambda M: OneClassSVM(nu=0.01, gamma=0.1 / (M.shape[1] * M.var())).fit(M),
    }
    longest = 1.0 if quick else 8.0  # a curve ends when a point took longer
    rows = [1000, 2000, 5000] if quick else [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
    columns = [10, 20, 50] if quick else [10, 20, 50, 100, 200, 400]
    for axis, shapes in {"rows": [(n, 50) for n in rows], "columns": [(5000, m) for m in columns]}.items():
        for score in ours:
            for whose, fit in {"mcode": ours[score], "scikit-learn": peers[score]}.items():
                for n, m in shapes:
                    M = rho_like(n, m)
                    took = seconds(lambda: fit(M), 1 if n > 20_000 else 2)  # noqa: B023
                    yield {
                        "axis": axis,
                        "score": score,
                        "by": whose,
                        "rows": n,
                        "columns": m,
                        "seconds": round(took, 5),
                    }
                    if took > longest:
                        break


def plot_cost(rows: list[Row], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12, 7), sharey=True, layout="constrained")
    for across, axis in enumerate(("rows", "columns")):
        for at, score in enumerate(("robust", "lof", "one-class")):
            panel = axes[across, at]
            for whose, color in (("mcode", "tab:blue"), ("scikit-learn", "tab:orange")):
                points = [r for r in rows if (r["axis"], r["score"], r["by"]) == (axis, score, whose)]
                panel.loglog([r[axis] for r in points], [r["seconds"] for r in points], "o-", color=color, label=whose)
            fixed = "50 columns" if axis == "rows" else "5,000 rows"
            panel.set_title(f"{score}, {fixed}")
            panel.set_xlabel(axis)
            panel.grid(visible=True, which="major", alpha=0.3)
        axes[across, 0].set_ylabel("seconds to fit")
    axes[0, 0].legend()
    figure.savefig(path, dpi=110)


# --- tables ---------------------------------------------------------------------------------------------------------


def print_rows(name: str, rows: Iterator[Row]) -> list[Row]:
    print(f"\n== {name}", flush=True)
    kept = []
    for row in rows:
        kept.append(row)
        print("  ".join(f"{key}: {value}" for key, value in row.items() if value != ""), flush=True)
    return kept


def save(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
