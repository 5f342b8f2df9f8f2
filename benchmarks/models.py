"""What each model, learner and rival brings and costs, on real tables.

Detection: every row and a copy of it with one response flipped, both read by models that never saw the row; area under
the curve of the flip ratio (`auc`) and of the complement score (`auc_complement`). `log_likelihood` is the mean over
rows of the summed log probabilities of the recorded responses, out of fold: a pseudo-likelihood where responses see
each other, so compare it within one kind of model. `cost` is processor time to cross-fit, as a multiple of dependent
relevance in the same run.

    python benchmarks/models.py [--parts models learners ...] [--sets NAME ...]

Writes benchmarks/results/models_PART.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import mcode
from datasets import load, update_csv
from mcode._arrays import dense
from mcode.corruption import Flip
from mcode.detector.reading import companions_of, fit_score
from mcode.models import (
    BinaryRelevance,
    ChainEnsemble,
    ClassifierChain,
    DependentRelevance,
    MixtureModel,
    PerLabel,
    TreeRelevance,
    TrimmedModel,
    as_learner,
)
from mcode.models.encoding import MISSING
from mcode.models.folds import stratified_folds
from mcode.models.indicators import Indicators
from mcode.scores import as_score
from mcode.spaces.joint import joint
from mcode.spaces.rho import RhoSpace, floored

SETS = ("emotions", "yeast", "genbase", "medical", "enron")
WITHOUT_ENRON = ("learners", "song", "detectors")  # an hour of one-response-after-the-other
MODELS: dict[str, Callable[[], Any]] = {
    "dbr": DependentRelevance,
    "br": BinaryRelevance,
    "chain": ClassifierChain,
    "tree": TreeRelevance,
    "chain-ensemble": ChainEnsemble,
    "mixture": MixtureModel,
    "dbr trimmed": TrimmedModel,
}
LEARNERS = ("naive-bayes", "svm", "boosting")
HIDDEN = 0.2
MOST_SCORED = 600  # rows on which detectors of quadratic cost are compared
SLOW = {"LOCI": 60}  # its cost grows with the cube of the rows

Row = dict[str, Any]


def table(name: str) -> tuple[Any, Any, Any, Any]:
    """Return X, Y, Y with one response of each row flipped, and the folds."""
    X, Y = load(name)
    Y = Y.astype(np.uint8)
    flipped = Flip().corrupt(Y, np.random.default_rng(1))
    return X, Y, flipped, stratified_folds(Y, 5, np.random.default_rng(0))


def auc(clean: Any, wrong: Any) -> float:
    """Return how well scores tell wrong rows from clean ones."""
    return float(roc_auc_score(np.repeat([0, 1], [len(clean), len(wrong)]), np.concatenate([clean, wrong])))


def seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what some work returns, and the processor time it took."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def detection(clean: Any, wrong: Any) -> Row:
    """Return both areas under the curve from log rho of clean and of flipped rows."""
    ratio = Flip().log_ratio
    return {
        "auc": auc(ratio({"model": clean}), ratio({"model": wrong})),
        "auc_complement": auc(-clean.sum(axis=1), -wrong.sum(axis=1)),
    }


def compare(name: str, makers: dict[str, Callable[[], Any]]) -> Iterator[Row]:
    """Yield one row for each model; the first is what costs are measured by."""
    X, Y, flipped, folds = table(name)
    next(iter(makers.values()))().cross_fit(X, Y, folds, final=False)  # what is compiled once is not measured
    unit = 0.0
    for label, make in makers.items():
        cross, taken = seconds(lambda make=make: make().cross_fit(X, Y, folds, final=False))
        unit = unit or taken
        clean, wrong = floored(cross.log_proba(X, Y)), floored(cross.log_proba(X, flipped))
        yield {
            "data": name,
            "model": label,
            "log_likelihood": float(clean.sum(axis=1).mean()),
            **detection(clean, wrong),
            "cost": taken / unit,
        }


def models(name: str) -> Iterator[Row]:
    """Compare the ways in which responses depend on each other."""
    return compare(name, MODELS)


def learners(name: str) -> Iterator[Row]:
    """Compare what learns the conditionals of dependent relevance, one response after the other."""
    makers: dict[str, Callable[[], Any]] = {"logistic": DependentRelevance}
    for learner in LEARNERS:
        classifier = as_learner(learner).estimator  # type: ignore[attr-defined]
        makers[learner] = lambda classifier=classifier: DependentRelevance(PerLabel(classifier, n_jobs=1))
    return compare(name, makers)


def song(name: str) -> Iterator[Row]:
    """Compare the conditional rival: its log-likelihood is that of a proper joint."""
    X, Y, flipped, folds = table(name)
    DependentRelevance().cross_fit(X, Y, folds, final=False)  # what is compiled once is not measured
    mcode.SongCAD(reference="batch").fit(X[:100], Y[:100])
    _, unit = seconds(lambda: DependentRelevance().cross_fit(X, Y, folds, final=False))
    for responses in ("bernoulli", "gaussian"):
        for variant in ("full", "split", "direct"):
            clean, wrong, total = np.empty(len(Y)), np.empty(len(Y)), 0.0
            for f in range(5):
                train, held = np.flatnonzero(folds != f), np.flatnonzero(folds == f)
                detector = mcode.SongCAD(variant, responses=responses, reference="batch")  # type: ignore[arg-type]
                fitted, taken = seconds(lambda d=detector, t=train: d.fit(X[t], Y[t]))
                clean[held] = fitted.score_.outlier_score(X[held], Y[held])
                wrong[held] = fitted.score_.outlier_score(X[held], flipped[held])
                total += taken
            likelihood = float(-clean.mean()) if responses == "bernoulli" else ""
            yield {
                "data": name,
                "variant": variant,
                "responses": responses,
                "log_likelihood": likelihood,
                "auc": auc(clean, wrong),
                "cost": total / unit,
            }


def missing(name: str) -> Iterator[Row]:
    """Hide a fifth of the cells; the flips are among those that are left."""
    X, Y, _, folds = table(name)
    known = np.random.default_rng(2).random(Y.shape) >= HIDDEN
    known[~known.any(axis=1), 0] = True
    keys = np.where(known, np.random.default_rng(3).random(Y.shape), -1.0)
    flipped = Y.copy()
    flipped[np.arange(len(Y)), keys.argmax(axis=1)] ^= 1
    hide = lambda codes: np.where(known, codes, MISSING).astype(np.uint8)  # noqa: E731
    for label, train, clean_y, wrong_y in (
        ("all known", Y, Y, flipped),
        ("20 % hidden in training", hide(Y), Y, flipped),
        ("20 % hidden everywhere", hide(Y), hide(Y), hide(flipped)),
    ):
        space = RhoSpace(DependentRelevance()).fit(X, train, folds, final=False)
        clean, wrong = space.out_of_fold(X, clean_y), space.out_of_fold(X, wrong_y)
        yield {"data": name, "cells": label, **detection(clean.views["model"], wrong.views["model"])}
    filled = space.filled(X, hide(Y))
    gone = ~known
    yield {
        "data": name,
        "cells": "share of hidden cells whose suggestion is right",
        "auc": float((filled == Y)[gone].mean()),
        "auc_complement": "",
    }


def reliability(name: str) -> Iterator[Row]:
    """Compare surprises weighted by reliability with the plain sum."""
    X, Y, flipped, folds = table(name)
    for label, score in (
        ("complement", as_score("complement")),
        ("reliability global", mcode.scores.ReliabilityScore()),
        ("reliability local", mcode.scores.ReliabilityScore("local")),
    ):
        for model in ("br", "dbr"):
            space = RhoSpace(mcode.models.as_model(model), companions_of(score)).fit(X, Y, folds, final=False)
            clean, wrong = space.out_of_fold(X, Y), space.out_of_fold(X, flipped)
            fitted = as_score(score)
            scores = fit_score(fitted, clean, lambda Yc, rows, panel=clean: panel, folds)
            other = fitted.outlier_score(wrong if companions_of(score) or "reliability" in label else wrong.rho)
            yield {"data": name, "model": model, "score": label, "auc": auc(scores, other)}


def contamination(name: str) -> Iterator[Row]:
    """Put errors into the table itself, and find them with and without trimming."""
    X, Y, flipped, folds = table(name)
    order = np.random.default_rng(4).permutation(len(Y))
    for share in (0.01, 0.02, 0.05):
        wrong = np.zeros(len(Y), bool)
        wrong[order[: max(1, round(share * len(Y)))]] = True
        recorded = np.where(wrong[:, None], flipped, Y)
        for label, model in (
            ("plain", DependentRelevance()),
            ("trimmed 2 %", TrimmedModel(share=0.02)),
            ("trimmed 5 %", TrimmedModel(share=0.05)),
        ):
            space = RhoSpace(model).fit(X, recorded, folds, final=False)
            log_rho = space.out_of_fold(X, recorded).views["model"]
            score = Flip().log_ratio({"model": log_rho})
            yield {"data": name, "wrong": share, "fit": label, "auc": float(roc_auc_score(wrong, score))}


def generated(n: int, several: int, n_values: int, seed: int) -> tuple[Any, Any]:
    """Return a table in which `several` responses have `n_values` values that follow the context and each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    before = np.zeros((n, n_values))
    columns = []
    for _ in range(several):
        eta = X @ rng.normal(size=(10, n_values)) * 0.5 + 2.0 * before + rng.gumbel(size=(n, n_values))
        columns.append(eta.argmax(axis=1))
        before = np.eye(n_values)[columns[-1]][:, rng.permutation(n_values)]
    binary = (X[:, :2] + 1.5 * (np.column_stack(columns[:2]) == 0) + rng.logistic(size=(n, 2)) > 0.5).astype(int)
    return X, np.column_stack([*columns, binary]).astype(np.uint8)


def categorical(name: str) -> Iterator[Row]:
    """Compare categories with the same table coded as one response of two values for each of their values.

    One response of each row is replaced by another value: known truth. `named` is the share of wrong rows in which the
    response that was replaced is the one with the largest error probability.
    """
    n_values = int(name.split()[0])
    X, Y = generated(1500, 4, n_values, seed=n_values)
    kinds = tuple([n_values] * 4 + [2, 2])
    rng = np.random.default_rng(1)
    other = Flip().corrupt(Y, rng, kinds)
    wrong = np.zeros(len(Y), bool)
    wrong[rng.permutation(len(Y))[: len(Y) // 20]] = True
    recorded = np.where(wrong[:, None], other, Y)
    replaced = (recorded != Y).argmax(axis=1)
    layout = Indicators(kinds)
    mcode.audit(X[:200], recorded[:200])  # what is compiled once is not measured
    for label, table, response in (
        ("categories", recorded, np.arange(len(kinds))),
        ("one response for each value", layout.of(recorded), layout.response),
    ):
        for score in ("learned", "noise", "complement", "norm"):
            found, taken = seconds(lambda t=table, s=score: mcode.audit(X, t, score=s))
            blame = response[found.response_error_probability.argmax(axis=1)]
            yield {
                "data": name,
                "coding": label,
                "score": score,
                "auc": float(roc_auc_score(wrong, found.outlier_score)),
                "named": float((blame == replaced)[wrong].mean()),
                "seconds": taken,
            }


def families() -> dict[str, Callable[[int], Any]]:
    """Return further families of unconditional detectors, by the number of rows they are given."""
    from pyod.models.abod import ABOD
    from pyod.models.cof import COF
    from pyod.models.knn import KNN
    from pyod.models.loci import LOCI
    from pyod.models.sod import SOD

    return {
        "ABOD (angles)": lambda n: ABOD(n_neighbors=20),
        "SOD (subspaces)": lambda n: SOD(n_neighbors=30, ref_set=20),
        "kNN (distance)": lambda n: KNN(n_neighbors=30),
        "COF (connectivity)": lambda n: COF(n_neighbors=30),
        "LOCI (correlation integral)": lambda n: LOCI(),
    }


def detectors(name: str) -> Iterator[Row]:
    """Compare any detector before and after the transformation: the same detector, over [X | Y] and over rho."""
    X, Y, flipped, _ = table(name)
    half = stratified_folds(Y, 2, np.random.default_rng(0))
    past, rest = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
    rng = np.random.default_rng(5)
    for label, make in families().items():
        most = next((rows for word, rows in SLOW.items() if word in label), MOST_SCORED)
        rows = rng.permutation(rest)[:most]
        wrong = np.arange(len(rows)) < max(5, len(rows) // 20)
        recorded = np.where(wrong[:, None], flipped[rows], Y[rows])
        space = RhoSpace(DependentRelevance()).fit(X[past], Y[past], None, final=True)
        seen = {"joint": dense(joint(X[rows], recorded)), "rho": space.panel(X[rows], recorded).rho}
        both: Row = {"data": name, "detector": label, "rows": len(rows)}
        for where, M in seen.items():
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", RuntimeWarning)
                scores = make(len(rows)).fit(M).decision_scores_  # of the rows it is fitted on: some can do no other
            # Equal rows have no angle: what has no score is neither odd nor usual.
            defined = np.isfinite(scores)
            middle = float(np.median(scores[defined])) if defined.any() else 0.0
            both[f"auc_{where}"] = float(roc_auc_score(wrong, np.where(defined, scores, middle)))
            both[f"undefined_{where}"] = int((~defined).sum())
        yield both


PARTS = {
    "models": models,
    "learners": learners,
    "song": song,
    "missing": missing,
    "reliability": reliability,
    "contamination": contamination,
    "detectors": detectors,
    "categorical": categorical,
}
GENERATED = {"categorical": ("3 values", "6 values", "12 values")}  # parts on generated tables with known truth


def main() -> None:
    """Run the parts and write their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--sets", nargs="+")
    options = parser.parse_args()
    threadpool_limits(1, "openmp")  # trees on several threads wait for each other more than they work
    for part in options.parts:
        usual = [name for name in SETS if part not in WITHOUT_ENRON or name != "enron"]
        for name in options.sets or GENERATED.get(part, usual):
            start, rows = time.perf_counter(), []
            for row in PARTS[part](name):
                rows.append(row)
                update_csv(f"models_{part}", rows)  # a run that is stopped keeps what it has
                print(
                    part, *(f"{value:.4g}" if isinstance(value, float) else value for value in row.values()), flush=True
                )
            print(f"# {part} {name}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
