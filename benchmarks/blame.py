"""Which response of a wrong row is named first, and how often the repair is the right one.

2 % of the rows of real tables get one error. Top-1 blame is the share of those rows whose first-named response is a
wrong one, by five ways to name it; "learned" is what the library does, chosen on yeast, medical and enron. The repair
is tried at several prices of a change: the share of wrong rows repaired exactly, and of other rows left as they are.

    python benchmarks/blame.py [--quick]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from datasets import load, write_csv
from detection import corrupted
from mcode.corruption import Add, Drop, Flip, Swap, log_odds_against
from mcode.detector.judged import judges_of_folds
from mcode.detector.reading import fit_score
from mcode.detector.whole import Whole
from mcode.explain.repair import repair_rows
from mcode.models import DependentRelevance
from mcode.models.folds import stratified_folds
from mcode.scores import LearnedScore
from mcode.spaces.rho import RhoSpace

SEEDS = {"yeast": 4, "medical": 4, "enron": 3, "emotions": 6, "genbase": 4, "mediamill_sample": 1, "corel5k": 1}
CHOSEN_ON = ("yeast", "medical", "enron")
KINDS = {"one flip": Flip(), "one added": Add(), "one dropped": Drop(), "one swapped": Swap()}
PRICES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
N_OTHERS = 200


def ways_to_name(models: Any, X: Any, Y: Any, panel: Any, learned: Any) -> dict[str, Any]:
    """Return, by each way, how much each response is to blame."""
    return {
        "smallest rho": log_odds_against(panel.views["model"]),
        "learned": learned,
        "gain DBR": gains({"model": models["model"]}, X, Y),
        "gain chain": gains({"model": models["chain"]}, X, Y),
        "gain both": gains(models, X, Y),
    }


def gains(models: Any, X: Any, Y: Any) -> Any:
    """Return by how much log P(y | x) rises when one response is changed, shape (n, d)."""
    whole, rows = Whole(models, X), np.arange(len(Y))
    before = whole.log_proba(rows, Y)
    out = np.empty(Y.shape)
    for j in range(Y.shape[1]):
        changed = Y.copy()
        changed[:, j] ^= 1
        out[:, j] = whole.log_proba(rows, changed) - before
    return out


def measure(
    name: str, kind: Any, seed: int
) -> tuple[dict[str, list[Any]], dict[float, list[Any]], dict[float, list[Any]]]:
    X, Y = load(name)
    Yc, wrong = corrupted(Y, kind, seed)
    folds = stratified_folds(Yc, 5, np.random.default_rng(seed))
    space = RhoSpace(DependentRelevance(), LearnedScore.needs).fit(X, Yc, folds, final=False)
    panel = space.out_of_fold(X, Yc)
    score = LearnedScore()
    fit_score(score, panel, lambda Z, rows: space.out_of_fold(X[rows], Z, rows), folds)
    others = np.random.default_rng(seed).permutation(np.flatnonzero(~wrong))[:N_OTHERS]
    hits: dict[str, list[Any]] = {}
    repaired: dict[float, list[Any]] = {price: [] for price in PRICES}
    left: dict[float, list[Any]] = {price: [] for price in PRICES}
    rows = np.concatenate([np.flatnonzero(wrong), others])
    for places, models in judges_of_folds(space, rows):
        at = rows[places]
        learned = score.response_blame(panel[at])
        whole = Whole(models, X[at])
        for way, blame in ways_to_name(models, X[at], Yc[at], panel[at], learned).items():
            first = blame.argmax(axis=1)[wrong[at]]
            hits.setdefault(way, []).extend((Yc != Y)[at[wrong[at]], first])
        for price in PRICES:
            right = (Y[at] == repair_rows(whole, Yc[at], learned, price).Y).all(axis=1)
            repaired[price].extend(right[wrong[at]])
            left[price].extend(right[~wrong[at]])
    return hits, repaired, left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="yeast, one seed; nothing is saved")
    quick = parser.parse_args().quick
    named: list[dict[str, Any]] = []
    repairs: list[dict[str, Any]] = []
    for name, seeds in {"yeast": 1}.items() if quick else SEEDS.items():
        for kind_name, kind in KINDS.items():
            runs = [measure(name, kind, seed) for seed in range(1 if quick else seeds)]
            where = {"data": name, "kind": kind_name, "role": "chosen on" if name in CHOSEN_ON else "reported"}
            for way in runs[0][0]:
                cells = np.concatenate([hits[way] for hits, _, _ in runs])
                named.append({**where, "rows": len(cells), "way": way, "top-1 blame": float(cells.mean())})
                print(named[-1], flush=True)
            for price in PRICES:
                right = float(np.mean(np.concatenate([repaired[price] for _, repaired, _ in runs])))
                same = float(np.mean(np.concatenate([left[price] for _, _, left in runs])))
                repairs.append({**where, "price": price, "repaired": right, "others left": same})
                print(repairs[-1], flush=True)
        if not quick:
            write_csv("blame", named)
            write_csv("repair", repairs)


if __name__ == "__main__":
    main()
