"""How honest the false-discovery cut is: the share of right rows among the flagged, and of wrong rows that are flagged.

Generated tables with known truth, and real tables with one flip in 2 % of the rows. There, errors that the table came
with count as false alarms: its false-discovery rate is an upper bound. The way was chosen on generated
tables, yeast, emotions and medical; the others report it. Ways to cut at 10 %:
- library: the largest k whose mean of 1 - error probability is at most 10 %, as `Audit.flagged` does;
- redrawn: Benjamini-Hochberg on p-values against rows whose responses were drawn anew;
- both: rows that pass both;
- oracle: the largest k with at most 10 % right rows, which nobody can know: what the ranking would allow.
`--only sources` compares the models that responses are drawn from: the chain, the detector's own model, and both.

    python benchmarks/cut.py [--seeds N] [--only generated|visits|real|sources]
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

import mcode
from datasets import load, write_csv
from detection import corrupted
from mcode.corruption import Flip
from mcode.data import read
from mcode.data.synthetic import clinic_visits
from mcode.detector.reading import fit_score
from mcode.detector.redraw import ordinary_scores
from mcode.models import DependentRelevance
from mcode.models.folds import stratified_folds
from mcode.ranking import conformal_p_value, false_discovery_cut
from mcode.scores import LearnedScore
from mcode.spaces.rho import RhoSpace

LEVEL = 0.1
REAL = {"yeast": 5, "emotions": 10, "medical": 10, "enron": 2, "mediamill_sample": 1, "bibtex": 1}
CHOSEN_ON = ("yeast", "emotions", "medical")
DESIGNS = {
    "strong; 3 % wrong": {"n": 300, "effect": 4.0, "link": 4.0, "share": 0.03},
    "weak; 3 % wrong": {"n": 300, "effect": 2.0, "link": 1.5, "share": 0.03},
    "strong; 1 % wrong": {"n": 300, "effect": 4.0, "link": 2.0, "share": 0.01},
    "strong; none wrong": {"n": 300, "effect": 4.0, "link": 4.0, "share": 0.0},
}


def logistic_chain(seed: int, n: int, effect: float, link: float, share: float) -> tuple[Any, Any, Any]:
    """Return X, Y and which rows are wrong: each response depends on six features and on the response before it."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, 6)), rng.normal(scale=effect, size=(6, 6))
    Y = np.zeros((n, 6), np.uint8)
    for j in range(6):
        eta = X @ W[:, j] + (link * (2.0 * Y[:, j - 1] - 1.0) if j else 0.0)
        Y[:, j] = rng.random(n) < 1.0 / (1.0 + np.exp(-eta))
    wrong = np.zeros(n, bool)
    wrong[rng.permutation(n)[: round(share * n)]] = True
    Y[wrong] = Flip().corrupt(Y[wrong], rng) if wrong.any() else Y[wrong]
    return X, Y, wrong


def visits(seed: int) -> tuple[Any, Any, Any]:
    """Return clinic visits with several kinds of error in 2 % of the rows."""
    table = clinic_visits(2000, random_state=seed)
    data = read(table.to_arrow(), labels=["dx_*", "rx_*"], id="visit_id")
    return data.X, data.Y, table.truth.is_wrong


def real(name: str, seed: int) -> tuple[Any, Any, Any]:
    X, Y = load(name)
    return X, *corrupted(Y, Flip(), seed)


def cuts(X: Any, Y: Any, wrong: Any, seed: int) -> dict[str, Any]:
    """Return the rows that each way flags."""
    found = mcode.audit(X, Y, random_state=seed)
    redrawn = np.flatnonzero(false_discovery_cut(found.p_value, LEVEL))
    return {
        "library": found.flagged(LEVEL),
        "redrawn": redrawn,
        "both": np.intersect1d(found.flagged(LEVEL), redrawn),
        "oracle": _first_within((~wrong).astype(float), found.ranking),
    }


def cuts_by_source(X: Any, Y: Any, wrong: Any, seed: int) -> dict[str, Any]:
    """Return the rows flagged against responses drawn from each source; the steps are those of `mcode.audit`."""
    folds = stratified_folds(Y, 5, np.random.default_rng(seed))
    space = RhoSpace(DependentRelevance(), LearnedScore.needs).fit(X, Y, folds, final=False)
    panel, score = space.out_of_fold(X, Y), LearnedScore()
    scores = fit_score(score, panel, lambda Z, rows: space.out_of_fold(X[rows], Z, rows), folds)
    out = {}
    for way, sources in {"chain": ("chain",), "model": ("model",), "both": ("chain", "model")}.items():
        ordinary = ordinary_scores(space, score, X, Y, np.random.default_rng(seed), sources)
        out[way] = np.flatnonzero(false_discovery_cut(conformal_p_value(scores, ordinary), LEVEL))
    return out


def _first_within(false: Any, ranking: Any) -> Any:
    share = np.cumsum(false[ranking]) / np.arange(1, len(ranking) + 1)
    within = np.flatnonzero(share <= LEVEL)
    return ranking[: within[-1] + 1 if len(within) else 0]


def table_of(name: str, tables: Any, seeds: int, cut: Any = cuts) -> list[dict[str, Any]]:
    flagged: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(seeds):
        X, Y, wrong = tables(seed)
        for way, rows in cut(X, Y, wrong, seed).items():
            hits = int(wrong[rows].sum())
            false_share = (len(rows) - hits) / max(1, len(rows))
            flagged.setdefault(way, []).append((false_share, hits / max(1, int(wrong.sum())), len(rows)))
    lines = []
    for way, numbers in flagged.items():
        share, power, count = np.mean(numbers, axis=0)
        error = np.std([number[0] for number in numbers]) / np.sqrt(seeds)
        lines.append(
            {
                "data": name,
                "seeds": seeds,
                "way": way,
                "false discovery rate": float(share),
                "its standard error": float(error),
                "power": float(power),
                "rows flagged": float(count),
            }
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="generated tables of each design")
    parser.add_argument(
        "--only", choices=("generated", "visits", "real", "sources"), help="one part; it is saved on its own"
    )
    options = parser.parse_args()
    for part, cut in {"generated": cuts, "sources": cuts_by_source}.items():
        if options.only not in (None, part):
            continue
        lines = []
        for name, design in DESIGNS.items():
            tables = partial(logistic_chain, **design)
            lines += table_of(name, tables, options.seeds, cut)
            write_csv(f"cut_{part}", lines)
    if options.only in (None, "visits"):
        write_csv("cut_visits", table_of("clinic visits; 2 % wrong", visits, options.seeds))
    if options.only in (None, "real"):
        lines = []
        for name, seeds in REAL.items():
            role = "chosen on" if name in CHOSEN_ON else "reported"
            lines += [{"role": role, **line} for line in table_of(name, partial(real, name), seeds)]
            write_csv("cut_real", lines)


if __name__ == "__main__":
    main()
