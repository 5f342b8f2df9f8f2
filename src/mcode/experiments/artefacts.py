"""Why some printed numbers are what they are: copies of rows, singular covariances, shifted labels.

Copies: a bootstrapped fold holds each right row many times, and a wrong one once; LOF then finds it without knowing
anything of the responses. Covariances: half of a bootstrapped fold holds fewer different rows than there are responses.
Shifted labels: in the published Reuters file the labels of the second half of the rows sit one column too far left.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import MinCovDet

from mcode._arrays import Floats
from mcode._progress import advance
from mcode.detector import MCODE
from mcode.experiments import figures, metrics
from mcode.experiments.datasets import TITLES, DataFolder, Table
from mcode.experiments.methods import NU, Case, Trained, robust
from mcode.experiments.protocol import flip_cells
from mcode.experiments.results import Results, keep_settings
from mcode.experiments.runs import values_of
from mcode.experiments.tables import Cell, TextTable
from mcode.scores import LOFScore, OneClassScore
from mcode.spaces.joint import joint

COPIED = ("genbase", "medical", "corel5k", "bibtex", "reuters_aligned")
COPIES = (1, 2, 5, 10, 20, 50)
BOOTSTRAPPED = 0  # as a number of copies: rows drawn with replacement, as in the paper
NEIGHBOURS = (5, 10, 20, 30, 50)
WRONG_ROWS = 5
DRAWS = 10
MANY_ROWS = 10_000  # from which on one draw is enough: five wrong rows against thousands
FEW_RESPONSES = 60  # up to which scikit-learn's FAST-MCD takes seconds
BOOTSTRAP = 5000
ALARM = 0.01
WIDTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # gamma, times 1 / number of columns


def artefact_results(folder: Path) -> dict[str, Results]:
    """Return the rows that are in a folder, by what they are about."""
    return {
        "copies": Results(folder / "copies.csv", ("data", "space", "copies", "k"), ("auc",)),
        "singular": Results(folder / "singular.csv", ("data", "draw"), _SINGULAR),
        "width": Results(folder / "width.csv", ("data", "space", "times"), ("auc",)),
        "shift": Results(
            folder / "shift.csv", ("file", "rows"), ("mean_error_probability", "alarms", "better_moved_back")
        ),
    }


def run_artefacts(
    data: DataFolder, folder: Path, *, quick: bool, seed: int, sets: Sequence[str] = ()
) -> dict[str, Results]:
    """Measure all three; what is there already is kept."""
    chosen = tuple(sets) or (COPIED[:1] if quick else COPIED)
    shifted = not sets and not quick
    data.check((*chosen, "reuters", "reuters_aligned") if shifted else chosen)
    keep_settings(folder, {"experiment": "artefacts", "seed": seed, "quick": quick})
    found = artefact_results(folder)
    for done, name in enumerate(chosen):
        advance("copies and covariances", done, len(chosen))
        if found["singular"].has(data=name, draw=(1 if quick else 3) - 1):
            continue
        table = data.table(name)
        test, trained = _one_fold(table, seed)
        found["copies"].append(copies_rows(table, test, trained, seed, 2 if quick else DRAWS))
        found["width"].append(width_rows(table, test, trained, seed, 1 if quick else 3))
        found["singular"].append(singular_rows(table, test, trained, seed, 1 if quick else 3))
    advance("copies and covariances", len(chosen), len(chosen))
    if shifted and not found["shift"].rows():
        published, repaired = data.table("reuters"), data.table("reuters_aligned")
        found["shift"].append(shift_rows(published, repaired))
    return found


def _one_fold(table: Table, seed: int) -> tuple[NDArray[np.intp], Trained]:
    """Return a tenth of the rows, and what the others give."""
    fold_of_row = np.random.default_rng(table.seed(seed, 7)).permutation(len(table.Y)) % 10
    test, train = np.flatnonzero(fold_of_row == 0), np.flatnonzero(fold_of_row != 0)
    return test, Trained.on(table.X[train], table.Y[train], np.random.default_rng(table.seed(seed, 8)))


def copies_rows(table: Table, test: NDArray[np.intp], trained: Trained, seed: int, draws: int) -> list[dict[str, Any]]:
    """Return the AUC of LOF in [x, y] and in rho against the number of copies of each row and against k."""
    rows = []
    for copies in (*COPIES, BOOTSTRAPPED):
        found: dict[tuple[str, int], list[float]] = {}
        for draw in range(draws if len(test) * copies <= MANY_ROWS else 1):
            rng = np.random.default_rng(table.seed(seed, 9, copies, draw))
            drawn = np.repeat(test, copies) if copies else rng.choice(test, BOOTSTRAP)
            wrong = np.zeros(len(drawn), bool)
            wrong[rng.choice(len(drawn), min(WRONG_ROWS if copies else 25, len(test) // 2), replace=False)] = True
            Y = table.Y[drawn]
            Y[wrong, rng.integers(Y.shape[1], size=wrong.sum())] ^= 1
            case = Case(trained, table.X[drawn], Y)
            for k in NEIGHBOURS:
                if k < len(drawn):
                    for space, M in (("[x, y]", case.joint_without_empty_columns), ("rho", case.rho)):
                        score = LOFScore(k).fit_outlier_score(M)
                        found.setdefault((space, k), []).append(metrics.auc(wrong, score))
        rows += [
            {"data": table.name, "space": space, "copies": copies, "k": k, "auc": float(np.mean(values))}
            for (space, k), values in found.items()
        ]
    return rows


def width_rows(table: Table, test: NDArray[np.intp], trained: Trained, seed: int, draws: int) -> list[dict[str, Any]]:
    """Return the AUC of one-class machines against the width of their kernel, which the paper does not state."""
    reference: dict[str, Any] = {"[x, y]": joint(trained.X, trained.Y), "rho": trained.rho(trained.X, trained.Y)}
    rows = []
    for space, known in reference.items():
        for times in WIDTHS:
            machine = OneClassScore(nu=NU, gamma=times / known.shape[1]).fit(known)
            found = []
            for draw in range(draws):
                rng = np.random.default_rng(table.seed(seed, 11, draw))
                drawn = rng.choice(test, BOOTSTRAP)
                Y = flip_cells(table.Y[drawn], rng)
                wrong = (table.Y[drawn] != Y).any(axis=1)
                case = Case(trained, table.X[drawn], Y)
                M = case.joint if space == "[x, y]" else case.rho
                found.append(metrics.auc(wrong, machine.outlier_score(M)))
            rows.append({"data": table.name, "space": space, "times": times, "auc": float(np.mean(found))})
    return rows


_SINGULAR = ("responses", "distinct", "distinct_in_half", "rank_of_half", "ridge", "auc", "auc_plain")


def singular_rows(
    table: Table, test: NDArray[np.intp], trained: Trained, seed: int, draws: int
) -> list[dict[str, Any]]:
    """Return what the covariance of half a bootstrapped fold is made of, and what the robust distance then finds.

    `auc_plain` is that of scikit-learn's MinCovDet, which takes a pseudo-inverse where the covariance is singular.
    """
    rows = []
    for draw in range(draws):
        rng = np.random.default_rng(table.seed(seed, 10, draw))
        drawn = rng.choice(test, BOOTSTRAP)
        Y = flip_cells(table.Y[drawn], rng)
        wrong = (table.Y[drawn] != Y).any(axis=1)
        rho = trained.rho(table.X[drawn], Y)
        score = robust().fit(rho)
        distance = score.outlier_score(rho)
        half = rho[np.argsort(distance, kind="stable")[: score.n_support_]]
        rows.append(
            {
                "data": table.name,
                "draw": draw,
                "responses": Y.shape[1],
                "distinct": len(np.unique(rho, axis=0)),
                "distinct_in_half": len(np.unique(half, axis=0)),
                "rank_of_half": int(np.linalg.matrix_rank(half - half.mean(axis=0), tol=1e-6)),
                "ridge": float(score.ridge_),
                "auc": metrics.auc(wrong, distance),
                "auc_plain": _plain(rho, wrong) if Y.shape[1] <= FEW_RESPONSES else "",
            }
        )
    return rows


def _plain(rho: Floats, wrong: NDArray[np.bool_]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that the covariance is not of full rank: that is the point
        fitted: Any = MinCovDet(random_state=0).fit(rho)
        return metrics.auc(wrong, np.asarray(fitted.mahalanobis(rho)))


def shift_rows(published: Table, repaired: Table) -> list[dict[str, Any]]:
    """Return what a detector fitted on the first half of the rows says of the second, as published and repaired.

    `better_moved_back`: the share of rows that become more probable when their labels move one column to the right.
    """
    n = len(published.Y) // 2
    detector = MCODE().fit(repaired.X[:n], repaired.Y[:n])
    rows = []
    for name, table in (("as published", published), ("repaired", repaired)):
        X, Y = table.X[n:], table.Y[n:]
        alarm = detector.p_value(X, Y) <= ALARM
        moved = np.zeros_like(Y)
        moved[:, 1:] = Y[:, :-1]
        before, after = (np.log(detector.transform(X, y)).sum(axis=1) for y in (Y, moved))
        rows.append(
            {
                "file": name,
                "rows": len(Y),
                "mean_error_probability": float(detector.error_probability(X, Y).mean()),
                "alarms": float(alarm.mean()),
                "better_moved_back": float((after > before).mean()),
            }
        )
    return rows


def report_artefacts(found: dict[str, Results], folder: Path) -> list[Path]:
    """Write the tables and the figure of copies."""
    written: list[Path] = []
    rows = found["copies"].rows()
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for name in values_of(rows, "data"):
        for space in values_of(rows, "space"):
            mine = [row for row in rows if row["data"] == name and row["space"] == space]
            panels[f"{TITLES[name]}, {space}"] = {
                f"k = {k}": (
                    [float(row["copies"]) for row in mine if row["k"] == k and row["copies"] != str(BOOTSTRAPPED)],
                    [float(row["auc"]) for row in mine if row["k"] == k and row["copies"] != str(BOOTSTRAPPED)],
                )
                for k in values_of(mine, "k")
            }
    if panels:
        written += figures.curves(panels, "copies of each row", "AUC of LOF", folder / "copies.svg", log_x=True)
        written += copies_table(rows).save(folder, "table")
    for name, title in (
        ("width", "AUC of one-class machines against gamma, in multiples of 1 / number of columns"),
        ("singular", "The robust distance in rho on bootstrapped folds"),
        ("shift", "The second half of Reuters, judged by a detector fitted on the first"),
    ):
        if found[name].rows():
            columns = found[name].columns
            lines = [[Cell(row[column]) for column in columns] for row in found[name].rows()]
            written += TextTable(title, columns, lines).save(folder, f"{name}-table")
    return written


def copies_table(rows: Sequence[dict[str, str]]) -> TextTable:
    """Return the AUC of LOF, data set and k by copies."""
    value = {(row["data"], row["space"], row["k"], row["copies"]): row["auc"] for row in rows}
    lines = [
        [
            Cell(TITLES[name]),
            Cell(space),
            Cell(str(k)),
            *(Cell(f"{float(value.get((name, space, str(k), str(c)), 'nan')):.3f}") for c in (*COPIES, BOOTSTRAPPED)),
        ]
        for name in values_of(rows, "data")
        for space in values_of(rows, "space")
        for k in NEIGHBOURS
    ]
    columns = ("data set", "space", "k", *(f"{c} copies" for c in COPIES), "bootstrapped to 5,000")
    return TextTable("AUC of LOF against the number of copies of each row", columns, lines)
