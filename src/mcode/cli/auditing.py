"""The audit of a data set from arrays to findings, and how it is shown: what `mcode audit` and `mcode demo` share."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mcode
from mcode.cli.console import Screen
from mcode.cli.cut import CutRequest, flag
from mcode.cli.writing import write_table, write_text
from mcode.data import Dataset
from mcode.detector import Audit
from mcode.explain.finding import Finding
from mcode.own_words import explain_audit, named_responses, written_values
from mcode.report import Summary, html_page, ranked_table, summarise, summary_lines
from mcode.report.table import Table, id_column
from mcode.report.words import percent, value_text


@dataclass(frozen=True)
class Audited:
    """A data set, what the audit found in it, and what is said about it."""

    data: Dataset
    found: Audit
    flagged: NDArray[np.intp]
    findings: list[Finding]
    summary: Summary

    def table(self) -> Table:
        """Return all rows, most suspicious first."""
        return ranked_table(
            self.found,
            self.findings,
            row_ids=self.data.row_ids,
            id_name=self.data.id_name,
            label_names=self.data.label_names,
            written=written_values(self.found.encoding, self.data),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the summary and the findings, ready for JSON."""
        about = dataclasses.asdict(self.summary)
        findings = [finding.to_dict() for finding in self.findings]
        return {"summary": json_ready(about), "findings": json_ready(findings)}


def run_audit(
    data: Dataset,
    request: CutRequest,
    *,
    model: str,
    learner: str = "logistic",
    score: str,
    folds: int | None = None,
    seed: int = 0,
) -> Audited:
    """Audit a data set and explain what it finds."""
    with_learner = mcode.models.as_model(model, learner)
    found = mcode.audit(data.X, named_responses(data), model=with_learner, score=score, folds=folds, random_state=seed)
    flagged, cut = flag(found, request)
    findings = explain_audit(found, data, flagged)
    summary = summarise(
        found,
        flagged,
        cut,
        source=Path(data.source).name,
        n_features=data.X.shape[1],
        label_names=data.label_names,
        first_named=[finding.responses[0].name for finding in findings],
        model=model if learner == "logistic" else f"{model} with {learner}",
        score=score,
    )
    return Audited(data, found, flagged, findings, summary)


def write_results(audited: Audited, out: Path | None, report: Path | None) -> None:
    """Write the files that were asked for."""
    if out is not None:
        write_table(out, audited.table())
    if report is not None:
        write_text(report, html_page(audited.summary, audited.findings, audited.data.id_name))


def show(screen: Screen, audited: Audited, most: int) -> None:
    """Print the summary and the first findings."""
    for line in summary_lines(audited.summary):
        screen.say(line)
    if not audited.findings:
        screen.say("To see the most suspicious rows all the same, ask for them: --top 20")
    show_findings(screen, audited.findings, audited.data.id_name, most)


def show_findings(screen: Screen, findings: list[Finding], id_name: str | None, most: int) -> None:
    """Print a table of the first findings."""
    if not findings or most < 1:
        return
    shown = findings[:most]
    title = "Findings" if len(shown) == len(findings) else f"First {len(shown)} of {len(findings):,} findings"
    columns = ["rank", "wrong", id_column(id_name), "what and why"]
    rows = [
        [
            str(finding.rank),
            percent(finding.error_probability),
            value_text(finding.row if finding.id is None else finding.id),
            finding.sentence,
        ]
        for finding in shown
    ]
    screen.table(title, columns, rows, numbers=2)


def json_ready(value: Any) -> Any:
    """Return nested values that JSON can hold: infinities and NaN as texts.

    Examples
    --------
    >>> json_ready({"score": (float("inf"), 1.0)})
    {'score': ['inf', 1.0]}
    """
    if isinstance(value, dict):
        return {name: json_ready(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
