"""One self-contained page: everything inline, nothing asked of the outside, everything from data escaped.

No data is ever written into the script: it reads and moves the elements that are there, so the page also works without
it. The page's own policy allows that one script by its hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from mcode._optional import require
from mcode.explain.finding import Evidence, Finding, ResponseFinding
from mcode.report.histogram import bars
from mcode.report.summary import Summary
from mcode.report.text import cut_line, share_line
from mcode.report.words import count_of, odds, percent, value_text

MOST_FINDINGS = 500  # a page of more is slow on a phone, and nobody reads it
MOST_RESPONSES = 6
MOST_EVIDENCE = 6


def html_page(summary: Summary, findings: Sequence[Finding], id_name: str | None = None) -> str:
    """Return the report as the text of one HTML page."""
    templates = files("mcode.report") / "templates"
    script = (templates / "page.js").read_text(encoding="utf-8")
    page: str = (
        _environment()
        .from_string((templates / "page.html").read_text(encoding="utf-8"))
        .render(
            summary=summary,
            findings=findings[:MOST_FINDINGS],
            n_findings=len(findings),
            id_name=id_name or "row",
            responses=sorted({finding.responses[0].name for finding in findings[:MOST_FINDINGS]}),
            bars=bars(summary.scores),
            cut_sentence=cut_line(summary.cut),
            share_sentence=share_line(summary),
            style=(templates / "page.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )
    return page


def _environment() -> Any:
    jinja = require("jinja2", extra="cli")
    environment = jinja.Environment(autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True)
    environment.lstrip_blocks = True
    environment.filters |= {"percent": percent, "odds": odds, "value": value_text, "count": count_of}
    environment.globals |= {
        "shown_evidence": shown_evidence,
        "shown_responses": shown_responses,
        "explained_responses": explained_responses,
    }
    return environment


def shown_evidence(response: ResponseFinding) -> list[tuple[Evidence, float]]:
    """Return the strongest evidence, each with the width of its bar in percent of the widest."""
    strongest = sorted(response.evidence, key=lambda evidence: -abs(evidence.weight))[:MOST_EVIDENCE]
    widest = max((abs(evidence.weight) for evidence in strongest), default=0.0) or 1.0
    return [(evidence, round(100.0 * abs(evidence.weight) / widest, 1)) for evidence in strongest]


def explained_responses(finding: Finding) -> list[ResponseFinding]:
    """Return the responses whose evidence is shown: the one named first, and what else the repair changes.

    Others may look odd as well, but only because a neighbour is wrong.
    """
    changed = {change.name for change in finding.repair.changes} | {finding.responses[0].name}
    return [response for response in finding.responses if response.evidence and response.name in changed]


def shown_responses(finding: Finding) -> tuple[ResponseFinding, ...]:
    """Return the responses worth listing: the suspicious ones, and a few more for comparison."""
    suspicious = sum(bool(response.evidence) for response in finding.responses)
    return finding.responses[: max(suspicious, MOST_RESPONSES)]
