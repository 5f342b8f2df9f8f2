"""How much of each kind of error the learned score should expect: what a share gains for one kind, others pay for.

Real tables with 2 % of their rows corrupted by one kind are audited out of fold; the ratios of all kinds are learned
once and then mixed by different shares. Means over the tables on which the shares were chosen, and over the others.

    python benchmarks/shares.py [--repeats N] [--sets NAME ...]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from datasets import load, write_csv
from mcode.corruption import log_sum_exp
from mcode.detector.reading import fit_score
from mcode.experiments.injection import KINDS, SHARE, with_errors
from mcode.models import DependentRelevance
from mcode.models.folds import stratified_folds
from mcode.scores import LearnedScore
from mcode.scores.learned import DEFAULT_ERRORS
from mcode.spaces.rho import RhoSpace

SETS = ("emotions", "genbase", "medical", "yeast", "enron", "mediamill_sample", "bibtex")
CHOSEN_ON = SETS[:5]
# one flip, three flips, added, dropped, swapped, y of another row
TRIED = {
    "default": tuple(DEFAULT_ERRORS.values()),
    "all alike": (1, 1, 1, 1, 1, 1),
    "three flips 1": (4, 1, 1, 1, 1, 2),
    "three flips 4": (4, 4, 1, 1, 1, 2),
    "three flips 8": (4, 8, 1, 1, 1, 2),
    "fewer flips": (3, 3, 2, 2, 1, 3),
}


def log_ratios(X: Any, Y: Any) -> tuple[Any, list[int]]:
    """Return the log ratio of each kind for each row, by contrasts that did not see it, and which kinds those are."""
    folds = stratified_folds(Y, 5, np.random.default_rng(0))
    space = RhoSpace(DependentRelevance(), LearnedScore.needs).fit(X, Y, folds, final=False)
    panel, found = space.out_of_fold(X, Y), []

    class Keeping(LearnedScore):
        def _combine(self, ratios: Any) -> Any:
            found.append(ratios)
            return super()._combine(ratios)

    score = Keeping()
    fit_score(score, panel, lambda Z, rows: space.out_of_fold(X[rows], Z, rows), folds)
    return found[0], [list(DEFAULT_ERRORS).index(kind) for kind in score.kinds_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2, help="corruptions of each kind")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="data sets")
    options = parser.parse_args()
    values: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for name in options.sets:
        X, Y = load(name)
        half = "chosen on" if name in CHOSEN_ON else "reported on"
        for h, (kind, error) in enumerate(KINDS.items()):
            for repeat in range(options.repeats):
                changed, wrong = with_errors(Y, error, SHARE, np.random.default_rng([repeat, h]))
                ratios, kinds = log_ratios(X, changed)
                for label, shares in TRIED.items():
                    mixed = log_sum_exp(ratios + np.log(np.array(shares, float)[kinds]))
                    found = roc_auc_score(wrong, mixed), average_precision_score(wrong, mixed)
                    values.setdefault((label, half, kind), []).append(found)
        print(name, flush=True)
    lines = []
    for (label, half, kind), found in values.items():
        auc, precision = np.mean(found, axis=0)
        shares = " ".join(map(str, TRIED[label]))
        lines.append(
            {
                "shares": shares,
                "what": label,
                "sets": half,
                "kind": kind,
                "AUC": round(float(auc), 4),
                "average precision": round(float(precision), 4),
            }
        )
    write_csv("shares", lines)
    for label in TRIED:
        for half in ("chosen on", "reported on"):
            mine = [line for line in lines if line["what"] == label and line["sets"] == half]
            if mine:
                numbers = " ".join(f"{line['AUC']:.3f}/{line['average precision']:.3f}" for line in mine)
                print(f"{label:15} {half:12} {numbers}")


if __name__ == "__main__":
    main()
