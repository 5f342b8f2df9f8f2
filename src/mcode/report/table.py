"""Findings as a table: one line per row, most suspicious first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode.detector import Audit
from mcode.explain.finding import Finding, Value
from mcode.models.indicators import several

COLUMNS = (
    "rank",
    "score",
    "p_value",
    "error_probability",
    "response",
    "observed",
    "expected",
    "probability",
    "sentence",
)
Table = dict[str, list[Any]]


def id_column(id_name: str | None) -> str:
    """Return the name of the first column: that of the user's id, unless it is one of ours.

    Examples
    --------
    >>> id_column("patient"), id_column(None), id_column("rank")
    ('patient', 'row', 'rank_id')
    """
    name = "row" if id_name is None else id_name
    return f"{name}_id" if name in COLUMNS else name


def findings_table(findings: Sequence[Finding], id_name: str | None) -> Table:
    """Return the findings as columns."""
    first = [finding.responses[0] for finding in findings]
    return {
        id_column(id_name): [finding.row if finding.id is None else finding.id for finding in findings],
        "rank": [finding.rank for finding in findings],
        "score": [finding.score for finding in findings],
        "p_value": [finding.p_value for finding in findings],
        "error_probability": [finding.error_probability for finding in findings],
        "response": [response.name for response in first],
        "observed": [response.observed for response in first],
        "expected": [response.expected for response in first],
        "probability": [response.probability for response in first],
        "sentence": [finding.sentence for finding in findings],
    }


def ranked_table(
    found: Audit,
    findings: Sequence[Finding],
    *,
    row_ids: NDArray[Any],
    id_name: str | None,
    label_names: Sequence[str],
    written: Sequence[Sequence[Value]],
) -> Table:
    """Return all rows of an audit, most suspicious first; those explained by `findings` have a sentence.

    A row without a finding names the response that is most likely wrong. `written` says how the codes of each
    response are written.
    """
    rows = found.ranking
    worst = found.response_error_probability[rows].argmax(axis=1)
    code = found.codes[rows, worst]
    rho = found.rho[rows, worst]
    if several(found.encoding.n_values) is None:
        expected = np.where(rho < 0.5, 1 - code, code)
    else:
        expected = found.expected(rows)[np.arange(len(rows)), worst]
    table: Table = {
        id_column(id_name): [_plain(value) for value in row_ids[rows].tolist()],
        "rank": list(range(1, len(rows) + 1)),
        "score": found.outlier_score[rows].tolist(),
        "p_value": found.p_value[rows].tolist(),
        "error_probability": found.error_probability[rows].tolist(),
        "response": [label_names[j] for j in worst],
        "observed": [written[j][int(c)] for j, c in zip(worst, code, strict=True)],
        "expected": [written[j][int(c)] for j, c in zip(worst, expected, strict=True)],
        "probability": rho.tolist(),
        "sentence": [""] * len(rows),
    }
    place = {int(row): at for at, row in enumerate(rows)}
    for finding in findings:
        at, first = place[finding.row], finding.responses[0]
        named = {"response": first.name, "observed": first.observed, "expected": first.expected}
        for name, value in {**named, "probability": first.probability, "sentence": finding.sentence}.items():
            table[name][at] = value
    return table


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float) else str(value)
