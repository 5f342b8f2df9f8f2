"""Tables and figures of the clean protocol: what each method reaches on each kind of error, and where we lose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from mcode._arrays import Floats
from mcode.experiments import figures
from mcode.experiments.clean import ENOUGH
from mcode.experiments.datasets import TITLES
from mcode.experiments.estimate import over_fits
from mcode.experiments.injection import KINDS
from mcode.experiments.results import Results
from mcode.experiments.rivals import CLEANLAB, DEFAULT, FEWER_SETS, METHODS, PAPER_EIGHT
from mcode.experiments.significance import against, critical_difference, friedman, holm, ranks
from mcode.experiments.tables import Cell, TextTable

NAMES = tuple(name for name in METHODS if name not in FEWER_SETS)
OURS = NAMES.index(DEFAULT)
SHOWN = {"auc": "AUC", "ap": "average precision", "precision": "precision at k"}
# The half of the data sets that had no say in the features, kinds and shares of the default (docs/scores.md).
REPORTED = ("corel5k", "emotions", "genbase", "mediamill_sample", "reuters_aligned")
Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Blocks:
    """Means over fits of every method, for each data set and kind of error where all methods are there.

    Attributes
    ----------
    names : list of pairs (data set, kind)
    values : (n, k) array, blocks by methods
    errors : (n, k) array of standard errors of the means (`over_fits`); NaN where they are not known
    """

    names: list[tuple[str, str]]
    values: Floats
    errors: Floats

    def of_kind(self, kind: str) -> Floats:
        """Return the blocks of one kind of error, data sets by methods."""
        return self.values[[name[1] == kind for name in self.names]]

    def on(self, sets: Sequence[str]) -> Blocks:
        """Return the blocks of some data sets."""
        mine = [name in sets for name, _ in self.names]
        names = [name for name in self.names if name[0] in sets]
        return Blocks(names, self.values[mine], self.errors[mine])

    def by_data_set(self) -> Floats:
        """Return means over kinds, data sets by methods."""
        sets = dict.fromkeys(name for name, _ in self.names)
        return np.array([self.values[[name == other for other, _ in self.names]].mean(axis=0) for name in sets])


def blocks(rows: Rows, setting: str, contamination: float, measure: str) -> Blocks:
    """Gather what every method reached in a setting."""
    found: dict[tuple[str, str], dict[str, list[tuple[int, float, float]]]] = {}
    for row in rows:
        if row["setting"] == setting and float(row["contamination"]) == contamination:
            error = float(row[f"{measure}_error"] or "nan")
            of = found.setdefault((row["data"], row["kind"]), {})
            of.setdefault(row["method"], []).append((int(row["fits"]), float(row[measure]), error))
    whole = {name: of for name, of in found.items() if all(method in of for method in NAMES)}
    pairs = [[over_fits(*zip(*of[method], strict=True)) for method in NAMES] for of in whole.values()]
    values, errors = ([[pair[part] for pair in line] for line in pairs] for part in (0, 1))
    shape = (len(whole), len(NAMES))
    return Blocks(list(whole), np.array(values).reshape(shape), np.array(errors).reshape(shape))


def report_clean(results: Results, blame: Results, folder: Path) -> list[Path]:
    """Write all tables and figures of the clean protocol."""
    rows = results.rows()
    settings = {
        "audit": ("audit", 0.02),
        **{f"split-{level:g}": ("split", level) for level in _levels(rows)},
    }
    written: list[Path] = []
    summaries = []
    clean_halves = set(blocks(rows, "split", 0.0, "auc").names)
    for name, (setting, level) in settings.items():
        by_measure = {measure: blocks(rows, setting, level, measure) for measure in SHOWN}
        names = set(by_measure["auc"].names)
        if not names or (setting == "split" and names < clean_halves):
            continue  # a level of contamination is compared with the first one, on the same data sets
        summaries.append((name, by_measure))
        written += by_kind(by_measure).save(folder, f"kinds-{name}")
        written += losses(by_measure).save(folder, f"losses-{name}")
        for measure in ("auc", "ap"):
            written += cd_figure(by_measure[measure], measure, name, folder / f"ranks-{name}-{measure}.svg")
        written += summary([(name, by_measure)]).save(folder, f"ranks-{name}")
        written += head_to_head(by_measure).save(folder, f"rivals-{name}")
        if {data for data, _ in names}.issuperset(REPORTED):
            reported = {measure: found.on(REPORTED) for measure, found in by_measure.items()}
            written += head_to_head(reported).save(folder, f"reported-{name}")
    if summaries:
        written += summary(summaries[:2]).save(folder, "table")  # the audit, and the clean halves
        written += standard_errors(summaries).save(folder, "errors")
    if len([name for name, _ in summaries if name.startswith("split")]) > 1:
        written += contamination_figure(summaries, folder / "contamination.svg")
    if slow := fewer_sets(rows):
        written += slow.save(folder, "fewer-sets")
    for setting in dict.fromkeys(row["setting"] for row in blame.rows()):
        written += blame_table([row for row in blame.rows() if row["setting"] == setting]).save(
            folder, f"blame-{setting}"
        )
    return written


def fewer_sets(rows: Rows) -> TextTable | None:
    """Return what methods that are measured on fewer data sets reach beside the default: AUC / average precision.

    A line is a method on a data set in a setting, over the kinds of error that both have.
    """
    lines = []
    for method in FEWER_SETS:
        mine, default = (_gathered(rows, name) for name in (method, DEFAULT))
        both = [block for block in mine if block in default]
        for data, setting, level in dict.fromkeys(block[:3] for block in both):
            kinds = [block for block in both if block[:3] == (data, setting, level)]
            cells = [
                " / ".join(f"{np.mean([_mean(found[block], m) for block in kinds]):.3f}" for m in ("auc", "ap"))
                for found in (mine, default)
            ]
            name = f"{setting}, {100 * float(level):g} % wrong"
            lines.append([Cell(text) for text in (method, TITLES[data], name, *cells, str(len(kinds)))])
    if not lines:
        return None
    title = "Methods measured on fewer data sets: AUC / average precision"
    return TextTable(title, ("method", "data set", "setting", "its own", "default", "kinds"), lines)


def _gathered(rows: Rows, method: str) -> dict[tuple[str, ...], list[Mapping[str, str]]]:
    """Return the rows of a method by data set, setting, contamination and kind of error."""
    found: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        if row["method"] == method:
            found.setdefault((row["data"], row["setting"], row["contamination"], row["kind"]), []).append(row)
    return found


def _mean(rows: Rows, measure: str) -> float:
    return over_fits([int(row["fits"]) for row in rows], [float(row[measure]) for row in rows], [0.0] * len(rows))[0]


def _levels(rows: Rows) -> list[float]:
    return sorted({float(row["contamination"]) for row in rows if row["setting"] == "split"})


def summary(summaries: Sequence[tuple[str, Mapping[str, Blocks]]]) -> TextTable:
    """Return, for each setting, means over data sets and kinds, mean ranks, and Holm's p-values against the default."""
    columns, parts = [""], []
    for name, by_measure in summaries:
        for measure in ("auc", "ap"):
            found = by_measure[measure]
            rank = friedman(ranks(found.values)).mean_rank
            p = against(OURS, rank, len(found.names))
            best = {int(rank.argmin())}
            label = f"{name} ({len(found.names)} blocks)"
            columns += [f"{label}: {SHOWN[measure]}", "mean rank", "p"]
            mean = found.values.mean(axis=0)
            top = int(mean.argmax())
            parts.append(
                [
                    (Cell(f"{m:.3f}", j == top), Cell(f"{r:.2f}", j in best), Cell(_p_text(q, j)))
                    for j, (m, r, q) in enumerate(zip(mean, rank, p, strict=True))
                ]
            )
    lines = [[Cell(method), *(cell for part in parts for cell in part[j])] for j, method in enumerate(NAMES)]
    title = "Clean protocol: means over data sets and kinds of error; mean ranks; Holm's p-values against the default"
    return TextTable(title, tuple(columns), lines)


def _p_text(p: float, j: int) -> str:
    if j == OURS:
        return ""
    return "< 1e-4" if p < 1e-4 else f"{p:.4f}"


def head_to_head(by_measure: Mapping[str, Blocks]) -> TextTable:
    """Return the default against the paper's eight and cleanlab's scorers: ranks among these, and paired differences.

    Holm's procedure is over the twelve comparisons, once on mean ranks as Demsar has it, and once on Wilcoxon's
    signed-rank tests, which do not depend on which other methods are in the table.
    """
    family = [OURS, *(NAMES.index(name) for name in (*PAPER_EIGHT, *CLEANLAB))]
    lines = [[Cell(NAMES[j])] for j in family]
    columns = [""]
    for measure in ("auc", "ap"):
        found = by_measure[measure].values[:, family]
        rank = friedman(ranks(found)).mean_rank
        by_rank = against(0, rank, len(found))
        by_pairs = np.append(1.0, holm(np.array([_signed_rank(found[:, 0] - other) for other in found[:, 1:].T])))
        columns += [SHOWN[measure], "mean rank", "p by ranks", "p by signed ranks", "wins of the default"]
        for place, line in enumerate(lines):
            mean = Cell(f"{found[:, place].mean():.3f}")
            wins = f"{int((found[:, 0] > found[:, place]).sum())} of {len(found)}" if place else ""
            p_values = [_p_text(float(p[place]), OURS if place == 0 else -1) for p in (by_rank, by_pairs)]
            line += [mean, Cell(f"{rank[place]:.2f}"), *map(Cell, p_values), Cell(wins)]
    return TextTable("The default, the paper's eight and cleanlab: ranks among these 13", tuple(columns), lines)


def _signed_rank(difference: Floats) -> float:
    if not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference, method="approx").pvalue)


def by_kind(by_measure: Mapping[str, Blocks]) -> TextTable:
    """Return AUC / average precision / precision at k of every method for every kind, means over data sets."""
    kinds = [kind for kind in KINDS if any(name[1] == kind for name in by_measure["auc"].names)]
    lines = [[Cell(method)] for method in NAMES]
    for kind in kinds:
        means = {measure: found.of_kind(kind).mean(axis=0) for measure, found in by_measure.items()}
        for j in range(len(NAMES)):
            text = " / ".join(f"{means[measure][j]:.3f}" for measure in SHOWN)
            lines[j].append(Cell(text, bool(j in {int(means["auc"].argmax()), int(means["ap"].argmax())})))
    title = "AUC / average precision / precision at k, means over data sets; bold: best in AUC or average precision"
    return TextTable(title, ("", *kinds), lines)


def losses(by_measure: Mapping[str, Blocks]) -> TextTable:
    """Return the blocks where another method is better than the default, by AUC and by average precision."""
    lines = []
    for measure in ("auc", "ap"):
        found = by_measure[measure]
        for (data, kind), values in zip(found.names, found.values, strict=True):
            best = int(values.argmax())
            if best != OURS and values[best] > values[OURS]:
                cells = [TITLES[data], kind, SHOWN[measure], f"{values[OURS]:.3f}", NAMES[best], f"{values[best]:.3f}"]
                lines.append([Cell(text) for text in cells])
    columns = ("data set", "kind", "measure", "default", "best method", "its value")
    return TextTable("Where the default is not the best method", columns, lines)


def standard_errors(summaries: Sequence[tuple[str, Mapping[str, Blocks]]]) -> TextTable:
    """Return how large the standard errors of the means are that were reached, and in how many blocks."""
    lines = []
    for name, by_measure in summaries:
        for measure, found in by_measure.items():
            known = found.errors[~np.isnan(found.errors)]
            if known.size:
                below = f"{(known < ENOUGH).mean():.3f}"
                cells = [name, SHOWN[measure], str(known.size), below, f"{np.median(known):.4f}", f"{known.max():.4f}"]
                lines.append([Cell(text) for text in cells])
    columns = ("setting", "measure", "means", f"share below {ENOUGH:g}", "median error", "largest error")
    return TextTable("Standard errors of the means", columns, lines)


def blame_table(rows: Rows) -> TextTable:
    """Return how often the wrong response of a row with one error is named first."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    sets = list(dict.fromkeys(row["data"] for row in rows))
    value = {(row["data"], row["kind"], row["method"]): float(row["named"]) for row in rows}
    lines = []
    for data in [*sets, ""]:
        line = [Cell(TITLES[data] if data else "mean")]
        for kind in kinds:
            mine = [data] if data else sets
            ours, theirs = (
                float(np.mean([value[name, kind, method] for name in mine]))
                for method in ("mcode default", "smallest rho")
            )
            line.append(Cell(f"{ours:.3f} / {theirs:.3f} ({ours - theirs:+.3f})"))
        lines.append(line)
    title = "Share of rows with one error whose wrong response is named first: default / smallest rho of DBR"
    return TextTable(title, ("", *kinds), lines)


def cd_figure(found: Blocks, measure: str, setting: str, path: Path) -> list[Path]:
    """Draw the mean ranks over data sets and kinds."""
    rank = friedman(ranks(found.values)).mean_rank
    difference = critical_difference(len(NAMES), len(found.names))
    title = f"{setting}: mean rank by {SHOWN[measure]}, {len(found.names)} blocks"
    return figures.critical_differences(NAMES, rank, difference, title, path, ours=DEFAULT)


def contamination_figure(summaries: Iterable[tuple[str, Mapping[str, Blocks]]], path: Path) -> list[Path]:
    """Draw means against the share of wrong training rows, for the default and the best of each family."""
    chosen = (DEFAULT, "MCODE-ComP", "MCODE-Linf", "chain complement", "BR complement", "cleanlab self-confidence")
    panels = {}
    splits = [(float(name.removeprefix("split-")), found) for name, found in summaries if name.startswith("split")]
    for measure in ("auc", "ap"):
        panels[SHOWN[measure]] = {
            method: (
                [100.0 * level for level, _ in splits],
                [float(found[measure].values[:, NAMES.index(method)].mean()) for _, found in splits],
            )
            for method in chosen
        }
    return figures.curves(panels, "% of training rows wrong", "mean over data sets and kinds", path)
