"""How well audits find errors: 2 % of the rows of real tables corrupted, every method on the same rows.

Two kinds of error: one response flipped, and the y of another row. The models are fitted out of fold on the table that
holds the errors. Prints and saves a table for each data set, and the time of the default audit against that of the
complement score.

    python benchmarks/detection.py [--quick] [--show] [--sets NAME ...] [--seeds N]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from cleanlab.multilabel_classification import get_label_quality_scores
from sklearn.metrics import average_precision_score, roc_auc_score

import mcode
from datasets import load, read_csv, update_csv
from mcode.corruption import Flip, Mismatch
from mcode.detector.reading import fit_score
from mcode.models import BinaryRelevance, ClassifierChain, DependentRelevance
from mcode.models.folds import stratified_folds
from mcode.scores import as_score
from mcode.spaces.rho import RhoSpace

SETS = ("yeast", "emotions", "enron", "medical", "bibtex", "mediamill_sample")
KINDS = {"one flip": Flip(), "y of another row": Mismatch()}
MODELS = {"BR": BinaryRelevance, "chain": ClassifierChain, "DBR": DependentRelevance}
SCORES = ("complement", "norm", "noise", "learned", "robust", "lof", "ocsvm")
SHARE = 0.02


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
        space = RhoSpace(make(), ("br", "chain", "prior")).fit(X, Y, folds, final=False)
        panel = space.out_of_fold(X, Y)

        def reread(Yc: Any, rows: Any, space: RhoSpace = space) -> Any:
            return space.out_of_fold(X[rows], Yc, rows)

        for score in SCORES:
            found[f"{name} {score}"] = fit_score(as_score(score), panel, reread, folds)
        if name == "BR":
            present = np.where(Y == 1, panel.rho, 1.0 - panel.rho)
            labels = [list(np.flatnonzero(row)) for row in Y]
            found["BR cleanlab default"] = -get_label_quality_scores(labels, present)
    return found


def quality_table(sets: tuple[str, ...], seeds: int) -> list[dict[str, Any]]:
    """Return AUC and average precision of every method on every set and kind, mean over seeds."""
    rows = []
    for name in sets:
        X, Y = load(name)
        for kind_name, kind in KINDS.items():
            results: dict[str, list[tuple[float, float]]] = {}
            for seed in range(seeds):
                Yc, wrong = corrupted(Y, kind, seed)
                for method, score in scores_of_all(X, Yc, seed).items():
                    pair = (roc_auc_score(wrong, score), average_precision_score(wrong, score))
                    results.setdefault(method, []).append(pair)
            for method, pairs in results.items():
                auc, precision = np.mean(pairs, axis=0)
                result = {"auc": auc, "ap": precision, "seeds": seeds}
                rows.append({"data": name, "kind": kind_name, "method": method, **result})
            best = results["DBR learned"]
            print(f"{name:18} {kind_name:18} default {np.mean(best, axis=0).round(3)}", flush=True)
    return rows


def time_table(sets: tuple[str, ...], repeats: int) -> list[dict[str, Any]]:
    """Return seconds of the default audit and of the complement score's, best of some runs, alternating."""
    rows = []
    for name in sets:
        X, Y = load(name)
        best = {"complement": np.inf, "learned": np.inf}
        for _ in range(repeats):
            for score in best:
                start = time.perf_counter()
                mcode.audit(X, Y, score=score)
                best[score] = min(best[score], time.perf_counter() - start)
        rows.append({"data": name, **best, "ratio": best["learned"] / best["complement"]})
    return rows


def print_means(rows: list[dict[str, Any]]) -> None:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    print(f"\n{'mean over data sets':24}" + "".join(f"{kind:>22}" for kind in KINDS) + "   (AUC / average precision)")
    for method in methods:
        cells = []
        for kind in KINDS:
            mine = [row for row in rows if row["method"] == method and row["kind"] == kind]
            auc, precision = (np.mean([float(row[measure]) for row in mine]) for measure in ("auc", "ap"))
            cells.append(f"{auc:.3f} / {precision:.3f}")
        print(f"{method:24}" + "".join(f"{cell:>22}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small sets, one seed; nothing is saved")
    parser.add_argument("--show", action="store_true", help="print the means of the stored results and stop")
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="data sets to audit")
    parser.add_argument("--seeds", type=int, default=3, help="corruptions per data set and kind")
    options = parser.parse_args()
    if options.show:
        print_means(read_csv("detection"))
        return
    sets = ("yeast", "emotions") if options.quick else tuple(options.sets)
    rows = quality_table(sets, 1 if options.quick else options.seeds)
    print_means(rows)
    times = time_table(sets, 1 if options.quick else 3)
    for row in times:
        print("{data:18} complement {complement:.2f} s, learned {learned:.2f} s, ratio {ratio:.1f}".format(**row))
    total = sum(row["learned"] for row in times) / sum(row["complement"] for row in times)
    print(f"all sets together: ratio {total:.1f}")
    if not options.quick:
        update_csv("detection", rows)
        update_csv("detection_time", times)


if __name__ == "__main__":
    main()
