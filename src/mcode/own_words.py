"""Between a data set and a detector: responses under their own names, and findings in the user's own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._optional import require
from mcode.data import Dataset
from mcode.data.features import as_no_yes
from mcode.data.labels import ZERO_ONE, OwnValues
from mcode.detector import MCODE, Audit
from mcode.explain.finding import Change, Evidence, Finding, Repair, ResponseFinding, Value
from mcode.models.encoding import ResponseEncoding

ValuesOf = Mapping[str, OwnValues]


def is_presence(values: OwnValues) -> bool:
    """Return whether the values of a response mean absent and present.

    Examples
    --------
    >>> is_presence(("no", "yes")), is_presence(("A", "B"))
    (True, False)
    """
    return as_no_yes(values) == values


def named_responses(data: Dataset) -> Any:
    """Return the responses as a pandas table: 0 and 1 where they mean absent and present, else the user's texts."""
    pandas = require("pandas", extra="cli")
    if all(is_presence(values) for values in data.label_values):
        return pandas.DataFrame(data.Y, columns=list(data.label_names), copy=False)
    columns = {
        j: data.Y[:, j].astype(object) if is_presence(values) else np.array(values, object)[data.Y[:, j]]
        for j, values in enumerate(data.label_values)
    }
    return pandas.DataFrame(columns).astype(object).set_axis(list(data.label_names), axis=1)


def written_values(encoding: ResponseEncoding, data: Dataset) -> list[list[Value]]:
    """Return how the codes of each response are written in the user's table."""
    return [
        list(values) if is_presence(values) else [*encoding.values[j].tolist(), None][: max(2, len(encoding.values[j]))]
        for j, values in enumerate(data.label_values)
    ]


def explain_audit(found: Audit, data: Dataset, rows: NDArray[np.intp]) -> list[Finding]:
    """Return the findings of some rows of an audit, in the user's own names and values."""
    if not len(rows):
        return []
    ids = None if data.id_name is None else data.row_ids[rows]
    return in_own_values(found.explain_rows(rows, features=data.features, ids=ids), data)


def explain_new(detector: MCODE, data: Dataset) -> list[Finding]:
    """Return the findings of rows that a fitted detector reads, in the user's own names and values."""
    ids = None if data.id_name is None else data.row_ids
    return in_own_values(detector.explain(data.X, named_responses(data), features=data.features, ids=ids), data)


def in_own_values(findings: Sequence[Finding], data: Dataset) -> list[Finding]:
    """Return findings that write absent and present as the user's table does."""
    own = {
        name: values
        for name, values in zip(data.label_names, data.label_values, strict=True)
        if is_presence(values) and values != ZERO_ONE
    }
    return [_finding(finding, own) for finding in findings] if own else list(findings)


def _finding(finding: Finding, own: ValuesOf) -> Finding:
    repair = finding.repair
    changes = tuple(Change(c.name, _own(own, c.name, c.before), _own(own, c.name, c.after)) for c in repair.changes)
    return replace(
        finding,
        responses=tuple(_response(response, own) for response in finding.responses),
        repair=Repair(changes, repair.probability_before, repair.probability_after),
    )


def _response(response: ResponseFinding, own: ValuesOf) -> ResponseFinding:
    name = response.name
    evidence = tuple(_evidence(piece, own) for piece in response.evidence)
    observed, expected = _own(own, name, response.observed), _own(own, name, response.expected)
    return replace(response, observed=observed, expected=expected, evidence=evidence)


def _evidence(piece: Evidence, own: ValuesOf) -> Evidence:
    return replace(piece, value=_own(own, piece.name, piece.value)) if piece.kind == "response" else piece


def _own(own: ValuesOf, name: str, value: Value) -> Value:
    return own[name][int(value)] if name in own and isinstance(value, int) else value
