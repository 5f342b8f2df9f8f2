"""How well audits find kinds of error that the clean protocol does not have; and how long the default audit takes.

2 % of the rows of real tables are corrupted, every method on the same rows; the models are fitted out of fold on the
table that holds the errors. The learned score trains on six kinds and on several flips, additions or drops in a row,
which two flips, six flips, two added and two dropped are near to; nothing it trains on is like a block of responses
that comes from another row, a row whose responses were all lost or joined with those of another, or two replaced. What
it does about kinds it does not know was chosen on half of the data sets; the other half reports it. Large tables are
sampled. Saves a table for each data set, and the time of the default audit beside that of the complement score's.

    python benchmarks/detection.py [--quick] [--show] [--quality] [--times] [--sets NAME ...] [--kinds NAME ...]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from cleanlab.multilabel_classification import get_label_quality_scores
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, roc_auc_score

import mcode
from datasets import load, read_csv, update_csv
from mcode.corruption import Add, Drop, ErrorKind, Flip, Swap
from mcode.detector.reading import companions_of, fit_score
from mcode.models import BinaryRelevance, DependentRelevance
from mcode.models.folds import stratified_folds
from mcode.scores import as_score
from mcode.spaces.rho import RhoSpace

SEEDS = {
    "bibtex": 1,
    "corel5k": 1,
    "delicious": 1,
    "emotions": 4,
    "enron": 2,
    "genbase": 4,
    "imdb": 2,
    "mediamill_sample": 1,
    "medical": 4,
    "reuters_aligned": 1,
    "yeast": 2,
}
CHOSEN_ON = ("bibtex", "emotions", "genbase", "medical", "reuters_aligned", "yeast")
MOST_ROWS = {"delicious": 600}  # and 2,000 of all others, as the clean protocol has them
TIMED = ("yeast", "emotions", "enron", "medical", "mediamill_sample", "bibtex")
MODELS = {"BR": BinaryRelevance, "DBR": DependentRelevance}
SCORES = ("complement", "norm", "noise")  # of both models
MORE_SCORES = ("learned",)  # of DBR
DEFAULT = "DBR learned"
SHARE = 0.02


@dataclass(frozen=True)
class Block(ErrorKind):
    """A quarter of the responses, the same ones everywhere, comes from another row: columns pasted in another order."""

    def corrupt(self, Y: Any, rng: np.random.Generator) -> Any:
        """Replace the block in every row by that of another row, with other values where there are any."""
        n, d = Y.shape
        columns = rng.permutation(d)[: max(2, d // 4)]
        donor = (np.arange(n) + rng.integers(1, n, size=n)) % n
        for _ in range(20):
            same = np.flatnonzero((Y[donor][:, columns] == Y[:, columns]).all(axis=1))
            donor[same] = rng.integers(n, size=len(same))
        out = Y.copy()
        out[:, columns] = Y[donor][:, columns]
        return out


@dataclass(frozen=True)
class Twice(ErrorKind):
    """A kind of error happens twice."""

    kind: ErrorKind

    def corrupt(self, Y: Any, rng: np.random.Generator) -> Any:
        """Corrupt what is corrupted."""
        return self.kind.corrupt(self.kind.corrupt(Y, rng), rng)


class Cleared(ErrorKind):
    """No response was recorded."""

    def corrupt(self, Y: Any, rng: np.random.Generator) -> Any:
        """Return a table in which nothing is present."""
        return np.zeros_like(Y)


class Joined(ErrorKind):
    """The responses of another row were recorded as well."""

    def corrupt(self, Y: Any, rng: np.random.Generator) -> Any:
        """Add to each row what is present in another one."""
        return Y | Y[(np.arange(len(Y)) + rng.integers(1, len(Y), size=len(Y))) % len(Y)]


KINDS: dict[str, ErrorKind] = {
    "two flips": Flip(2),
    "six flips": Flip(6),
    "two added": Twice(Add()),
    "two dropped": Twice(Drop()),
    "two swapped": Twice(Swap()),
    "block": Block(),
    "cleared": Cleared(),
    "joined": Joined(),
}


def table(name: str, seed: int) -> tuple[Any, Any]:
    """Return X and Y of a data set, of the largest ones a sample of rows and the responses that are present in it."""
    X, Y = load(name)
    rows = np.sort(np.random.default_rng(seed).permutation(len(Y))[: MOST_ROWS.get(name, 2000)])
    X, Y = X[rows], Y[rows]
    return X, np.ascontiguousarray(Y[:, Y.any(axis=0)])


def corrupted(Y: Any, kind: Any, seed: int) -> tuple[Any, Any]:
    """Return Y with an error in 2 % of its rows, and which rows those are."""
    rng = np.random.default_rng(seed)
    other = kind.corrupt(Y, rng)
    candidates = rng.permutation(np.flatnonzero((other != Y).any(axis=1)))
    rows = candidates[: max(1, round(SHARE * len(Y)))]
    Yc = Y.copy()
    Yc[rows] = other[rows]
    return Yc, np.isin(np.arange(len(Y)), rows)


def scores_of_all(X: Any, Y: Any, seed: int) -> dict[str, Any]:
    """Return the outlier scores of every method on one table."""
    found: dict[str, Any] = {}
    folds = stratified_folds(Y, 5, np.random.default_rng(seed))
    for name, make in MODELS.items():
        wanted = [as_score(score) for score in SCORES + (MORE_SCORES if name == "DBR" else ())]
        companions = tuple(sorted({view for score in wanted for view in companions_of(score)}))
        space = RhoSpace(make(), companions).fit(X, Y, folds, final=False)
        panel = space.out_of_fold(X, Y)

        def reread(Yc: Any, rows: Any, space: RhoSpace = space) -> Any:
            return space.out_of_fold(X[rows], Yc, rows)

        for label, score in zip(SCORES + MORE_SCORES, wanted, strict=False):
            found[f"{name} {label}"] = fit_score(score, panel, reread, folds)
        if name == "BR":
            present = np.where(Y == 1, panel.rho, 1.0 - panel.rho)
            labels = [list(np.flatnonzero(row)) for row in Y]
            found["BR cleanlab default"] = -get_label_quality_scores(labels, present)
    return found


def measure(name: str, kind_name: str, seeds: int) -> list[dict[str, Any]]:
    """Return AUC and average precision of every method on one set and kind, mean over seeds."""
    results: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        X, Y = table(name, seed)
        Yc, wrong = corrupted(Y, KINDS[kind_name], seed)
        for method, score in scores_of_all(X, Yc, seed).items():
            rank = rankdata(score)  # a local outlier factor can be infinite
            pair = (roc_auc_score(wrong, rank), average_precision_score(wrong, rank))
            results.setdefault(method, []).append(pair)
    print(f"{name:18} {kind_name:18} default {np.mean(results[DEFAULT], axis=0).round(3)}", flush=True)
    where = {"data": name, "role": "chosen on" if name in CHOSEN_ON else "reported", "kind": kind_name}
    means = {method: np.mean(pairs, axis=0) for method, pairs in results.items()}
    return [
        {**where, "method": method, "auc": auc, "ap": precision, "rows": len(Y), "seeds": seeds}
        for method, (auc, precision) in means.items()
    ]


def measure_time(name: str, repeats: int) -> dict[str, Any]:
    """Return seconds of the default audit and of the complement score's, best of some runs, alternating."""
    X, Y = load(name)
    best = {"complement": np.inf, "learned": np.inf}
    for _ in range(repeats):
        for score in best:
            start = time.perf_counter()
            mcode.audit(X, Y, score=score)
            best[score] = min(best[score], time.perf_counter() - start)
    return {"data": name, **best, "ratio": best["learned"] / best["complement"]}


def print_means(rows: list[dict[str, Any]], role: str) -> None:
    """Print means over data sets, and each method's mean rank over data sets and kinds, of the rows of one role."""
    rows = [row for row in rows if row["role"] == role]
    if not rows:
        return
    methods = list(dict.fromkeys(row["method"] for row in rows))
    sets = list(dict.fromkeys(row["data"] for row in rows))
    stored = {(row["method"], row["data"], row["kind"]): (float(row["auc"]), float(row["ap"])) for row in rows}
    kinds = [kind for kind in KINDS if all((methods[0], name, kind) in stored for name in sets)]
    values = np.array([[[stored[method, name, kind] for kind in kinds] for name in sets] for method in methods])
    ranks = rankdata(-values, axis=0).mean(axis=(1, 2))
    print(
        f"\n{role}: {', '.join(sets)}\n{'AUC / average precision':24}" + "".join(f"{kind:>18}" for kind in kinds),
        end="",
    )
    print(f"{'mean':>18}{'mean rank':>18}")
    for method, means, rank in zip(methods, values.mean(axis=1), ranks, strict=True):
        cells = [f"{auc:.3f} / {precision:.3f}" for auc, precision in [*means, means.mean(axis=0)]]
        print(f"{method:24}" + "".join(f"{cell:>18}" for cell in cells) + f"{rank[0]:>10.2f} / {rank[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small set, one seed; nothing is saved")
    parser.add_argument("--show", action="store_true", help="print the means of the stored results and stop")
    parser.add_argument("--quality", action="store_true", help="measure no times")
    parser.add_argument("--times", action="store_true", help="measure the times alone")
    parser.add_argument("--sets", nargs="*", default=list(SEEDS), help="data sets to audit")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), help="kinds of error")
    options = parser.parse_args()
    if options.quick:
        print_means([row for kind in KINDS for row in measure("emotions", kind, 1)], "chosen on")
        return
    if not (options.show or options.times):
        for name in options.sets:
            update_csv("detection", [row for kind in options.kinds for row in measure(name, kind, SEEDS[name])])
    if not (options.show or options.quality):
        for name in [name for name in TIMED if name in options.sets]:
            update_csv("detection_time", [measure_time(name, 3)])
    for role in ("chosen on", "reported"):
        print_means(read_csv("detection"), role)
    times = read_csv("detection_time")
    for row in times:
        print(row)
    total = sum(float(row["learned"]) for row in times) / sum(float(row["complement"]) for row in times)
    print(f"all sets together: ratio {total:.1f}")


if __name__ == "__main__":
    main()
