"""How well can the wrong response of a flipped row be named at all? The default knows less than is assumed here.

Models are fitted on one half of the rows of a data set; every row of the other half has one response flipped, three
times over. Weights of the views are learned from flips alone, on one half of those rows, and judged on the other, then
the halves change places. So the kind of error is known, and the rows to learn from come from the very rows that are
judged. Beside the views of the default, others that are no linear model of x, or a differently shrunk one:

- neighbours: how many of the 15 nearest rows have the response (cosine of a sparse x, Euclid of a scaled dense one)
- forest: 100 extremely randomised trees on x, for all responses together
- context: DBR with a penalty on the context that is eight times that on the other responses
- both ways: the change of the chain's P(y | x) and of DBR's pseudo-likelihood when the response is changed
- bag: the mean of ten DBRs, each fitted to a bootstrap of the rows

"Boosted" also leaves the linear form: gradient-boosted trees over all of these, on the 20 most suspicious responses of
a row.

And how well could it be named by who knows the truth? `--truth` replaces the responses of each table by draws from a
chain that was fitted to it. So P(y | x) is known: a flip of j is as likely as P(y with j flipped back | x), and to name
the largest of these is the best that anybody can do. The detector learns from one half of the rows as always.

    python benchmarks/blame_limit.py [--truth] [--quick]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler, normalize

from datasets import ROOT, write_csv
from mcode.corruption import Flip, log_odds_against
from mcode.detector import MCODE
from mcode.experiments.clean import CleanPlan
from mcode.experiments.datasets import TITLES, DataFolder, Table
from mcode.models import BatchLogistic, ClassifierChain, DependentRelevance
from mcode.models.base_rate import smoothed_base_rate
from mcode.models.full_conditional import change_linear, full_log_proba
from mcode.models.logistic import LinearConditionals
from mcode.models.parents import all_others
from mcode.scores import LearnedScore
from mcode.scores.blame import cell_features, fit_competition
from mcode.spaces.rho import RhoSpace, floored

TIMES = 3  # that each row is flipped
NEIGHBOURS = 15
CONTEXT = 8.0
MOST_FEATURES = 200  # that a split of a tree looks at
BAGS = 10
SUSPICIOUS = 20  # responses of a row that boosted trees look at
EXTRAS = ("neighbours", "forest", "context", "chain both ways", "DBR both ways", "bag")


def log_rho_of(present: Any, Y: Any) -> Any:
    """Return log P of what was observed, where P(present) is a share of few rows."""
    return np.log(np.where(Y == 1, present, 1.0 - present))


def neighbours(X: Any, Y: Any, new_X: Any, rate: Any) -> Any:
    """Return the share of the nearest rows that have each response, smoothed by its rate."""
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(Y)), algorithm="brute").fit(X)
    found = Y[near.kneighbors(new_X, return_distance=False)]
    return (found.sum(axis=1) + 2.0 * rate) / (found.shape[1] + 2.0)


def forest(X: Any, Y: Any, new_X: Any, rate: Any) -> Any:
    """Return the mean of the leaves a row falls into, smoothed by the rate of each response."""
    trees = ExtraTreesRegressor(
        100, min_samples_leaf=2, max_features=min(MOST_FEATURES, X.shape[1]), n_jobs=-1, random_state=0
    ).fit(X, Y.astype(np.float64))
    return (50.0 * trees.predict(new_X).reshape(new_X.shape[0], -1) + rate) / 51.0


def measure(table: Table) -> dict[str, Any]:
    """Return the share of flipped rows whose wrong response is named first, by each way."""
    rng = np.random.default_rng(table.seed(0, 21))
    half = rng.permutation(len(table.Y)) % 2
    train, test = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
    X, Y = table.X[train], table.Y[train]
    rate = smoothed_base_rate(Y)
    space = RhoSpace(DependentRelevance(), LearnedScore.needs).fit(X, Y, None, final=True)
    even = normalize(table.X) if sp.issparse(table.X) else StandardScaler().fit(X).transform(table.X)
    shrunk = (table.X if sp.issparse(table.X) else even) / np.sqrt(CONTEXT)
    context = DependentRelevance(BatchLogistic(scale=False)).fit(shrunk[train], Y)
    present = {
        "neighbours": neighbours(even[train], Y, even[test], rate),
        "forest": forest(X, Y, table.X[test], rate),
    }
    own_model, chain = space.models["model"], space.models["chain"]
    assert own_model.conditionals_ is not None
    assert chain.conditionals_ is not None
    bag = bagged(own_model, X, Y, rng)
    features, extra, wrong, own = [], [], [], []
    for _ in range(TIMES):
        flipped = Flip().corrupt(table.Y[test], rng)
        panel = space.panel(table.X[test], flipped)
        views = {name: log_rho_of(share, flipped) for name, share in present.items()}
        views["context"] = context.log_proba(shrunk[test], flipped)
        views["chain both ways"] = full_log_proba(chain.conditionals_, chain.parents_, table.X[test], flipped)
        views["DBR both ways"] = change_linear(
            own_model.conditionals_,
            all_others(Y.shape[1]),
            table.X[test],
            flipped,
            panel.views["model"].astype(np.float64),
        )
        views["bag"] = np.log(np.mean([np.exp(one.log_proba(table.X[test], flipped)) for one in bag], axis=0))
        features.append(cell_features(panel))
        extra.append(np.stack([log_odds_against(floored(views[name])) for name in EXTRAS], axis=2))
        wrong.append(flipped != table.Y[test])
        own.append(panel.views["model"])
    F, E, is_wrong = np.concatenate(features), np.concatenate(extra), np.concatenate(wrong)
    place = np.tile(rng.permutation(len(test)) % 2, TIMES)
    named = {"smallest rho": -np.concatenate(own), "views of the default": _judged(F, is_wrong, place)}
    for k, name in enumerate(EXTRAS):
        named[f"with {name}"] = _judged(np.concatenate([F, E[:, :, k : k + 1]], axis=2), is_wrong, place)
    named["with all six"] = _judged(np.concatenate([F, E], axis=2), is_wrong, place)
    named["boosted, with all six"] = _judged(np.concatenate([F, E], axis=2), is_wrong, place, boosted)
    right = is_wrong.argmax(axis=1)
    shares = {way: float((values.argmax(axis=1) == right).mean()) for way, values in named.items()}
    return {"data": TITLES[table.name], "rows": len(test), **shares}


def bagged(model: Any, X: Any, Y: Any, rng: np.random.Generator) -> list[Any]:
    """Return models like a fitted one, with its penalties, of bootstraps of its rows."""
    learner = model.settled_learner(model.conditionals_, ())
    picks = [rng.integers(0, len(Y), len(Y)) for _ in range(BAGS)]
    return [DependentRelevance(clone(learner)).fit(X[pick], Y[pick]) for pick in picks]


def linear(F: Any, wrong: Any, new_F: Any) -> Any:
    """Return a weighted sum of the features, as the default's."""
    return new_F @ fit_competition(F, wrong, np.ones(len(F)))


def boosted(F: Any, wrong: Any, new_F: Any) -> Any:
    """Return the log odds by boosted trees over the features, their weighted sum, and its lead in the row."""
    weights = fit_competition(F, wrong, np.ones(len(F)))
    features, total = _with_lead(F, weights)
    k = min(SUSPICIOUS, total.shape[1])
    top = np.argsort(-total, axis=1)[:, :k]
    each = np.arange(len(F))[:, None]
    trees = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=40, l2_regularization=5.0, random_state=0
    ).fit(features[each, top].reshape(k * len(F), -1), wrong[each, top].ravel())
    new_features, new_total = _with_lead(new_F, weights)
    return trees.decision_function(new_features.reshape(new_total.size, -1)).reshape(new_total.shape)


def _with_lead(F: Any, weights: Any) -> tuple[Any, Any]:
    total = F @ weights
    ranked = np.sort(total, axis=1)
    rest = np.where(total == ranked[:, -1:], ranked[:, -2:-1], ranked[:, -1:])
    return np.concatenate([F, total[:, :, None], (total - rest)[:, :, None]], axis=2), total


def _judged(F: Any, wrong: Any, place: Any, judge: Any = linear) -> Any:
    """Return how much each cell is to blame, as learned on the rows of the other half."""
    out = np.empty(wrong.shape)
    for mine in (0, 1):
        learn = place != mine
        out[~learn] = judge(F[learn], wrong[learn], F[~learn])
    return out


def drawn(chain: ClassifierChain, X: Any, rng: np.random.Generator) -> Any:
    """Return responses drawn from a fitted chain, one after the other in its order."""
    conditionals, parents = chain.conditionals_, chain.parents_
    assert isinstance(conditionals, LinearConditionals)
    assert conditionals.responses is not None
    Y = np.zeros((X.shape[0], len(parents)), np.uint8)
    alone = conditionals.logits(X, Y)
    for j in np.argsort(parents.sum(axis=1)):
        logit = alone[:, j] + Y @ conditionals.responses[:, j]
        Y[:, j] = rng.random(len(Y)) < 1.0 / (1.0 + np.exp(-logit))
    return Y


def measure_truth(table: Table) -> dict[str, Any]:
    """Return the share of flipped rows whose wrong response is named first by a detector and by who knows P(y | x)."""
    rng = np.random.default_rng(table.seed(0, 22))
    chain = ClassifierChain().fit(table.X, table.Y)
    Y = drawn(chain, table.X, rng)
    assert chain.conditionals_ is not None
    half = rng.permutation(len(Y)) % 2
    named: dict[str, list[Any]] = {"smallest rho": [], "default": [], "truth": []}
    for test_half in (0, 1):
        train, test = np.flatnonzero(half != test_half), np.flatnonzero(half == test_half)
        X, detector = table.X[test], MCODE().fit(table.X[train], Y[train])
        for _ in range(TIMES):
            flipped = Flip().corrupt(Y[test], rng)
            right = (flipped != Y[test]).argmax(axis=1)
            exact = full_log_proba(chain.conditionals_, chain.parents_, X, flipped)
            named["smallest rho"].append(detector.transform(X, flipped).argmin(axis=1) == right)
            named["default"].append(detector.response_error_probability(X, flipped).argmax(axis=1) == right)
            named["truth"].append(exact.argmin(axis=1) == right)
    shares = {way: float(np.concatenate(found).mean()) for way, found in named.items()}
    return {"data": TITLES[table.name], "rows": len(Y), **shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="emotions only; nothing is saved")
    parser.add_argument("--truth", action="store_true", help="responses drawn from a known P(y | x)")
    options = parser.parse_args()
    quick, one = options.quick, measure_truth if options.truth else measure
    plan, data = CleanPlan.of(quick=False, seed=0), DataFolder(ROOT)
    found = []
    for name in ("emotions",) if quick else plan.sets:
        found.append(one(plan.table(data, name)))
        print(
            {key: round(value, 3) if isinstance(value, float) else value for key, value in found[-1].items()},
            flush=True,
        )
    ways = list(found[0])[2:]
    mean = {way: float(np.mean([row[way] for row in found])) for way in ways}
    found.append({"data": "mean", "rows": sum(row["rows"] for row in found), **mean})
    print({way: f"{mean[way]:.3f} ({mean[way] - mean['smallest rho']:+.3f})" for way in ways})
    if not quick:
        write_csv("blame_truth" if options.truth else "blame_limit", found)


if __name__ == "__main__":
    main()
