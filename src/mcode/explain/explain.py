"""Judged rows -> findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, dense
from mcode._progress import advance
from mcode.detector.judged import Judged
from mcode.detector.whole import Whole
from mcode.errors import InputError
from mcode.explain.evidence import Moves, moves, moves_towards
from mcode.explain.finding import Change, Evidence, Finding, Repair, ResponseFinding, Value
from mcode.explain.labels import Features, Labels
from mcode.explain.repair import Repairs, repair_rows
from mcode.explain.sentence import sentence
from mcode.models.encoding import Codes
from mcode.models.indicators import several
from mcode.models.learners import Conditionals

MOST_EVIDENCE = 10
SUSPICIOUS = 0.5  # of two values, an observed one less likely than the other is suspicious


def explain_rows(
    judged: Judged, *, features: Features | None = None, ids: Sequence[Any] | None = None
) -> list[Finding]:
    """Return one finding for each judged row: which response, why, and what it should have been.

    Parameters
    ----------
    judged : Judged, from a detector
    features : sequence of m descriptions, or None
        Where each feature comes from: (source column, category or None), or the features of a `Dataset`.
    ids : sequence of n identifiers, or None
    """
    labels = Labels(judged.encoding, judged.typical.binary, features)
    if ids is not None and len(ids) != len(judged.row):
        raise InputError("ids", f"it has {len(ids)} entries", f"{len(judged.row)} rows are explained")
    findings: dict[int, Finding] = {}
    for places, models in judged.judges:
        whole = Whole(models, judged.X[places])
        codes = judged.codes[places]
        blame = judged.response_error_probability[places]
        repairs = repair_rows(whole, codes, blame)
        usual = _usual(judged, whole, places)
        for local, place in enumerate(places.tolist()):
            explained = _Row(judged, labels, models, place, blame[local], repairs.Y[local], usual[local])
            findings[place] = explained.finding(repairs, local, None if ids is None else plain(ids[place]))
            advance("explain rows", len(findings), len(judged.row))
    return [findings[place] for place in range(len(judged.row))]


def _usual(judged: Judged, whole: Whole, places: NDArray[np.intp]) -> Codes:
    """Return the value that the detector's own model expects of each response: the likeliest one."""
    codes = judged.codes[places]
    if several(judged.encoding.n_values) is not None:
        return whole.likeliest_values(np.arange(len(places)), codes)
    return np.where(judged.rho[places] >= SUSPICIOUS, codes, 1 - codes).astype(np.uint8)


@dataclass(frozen=True)
class _Row:
    """One row while it is explained."""

    judged: Judged
    labels: Labels
    models: Mapping[str, Conditionals]
    place: int
    blame: Floats
    repaired: Codes
    usual: Codes

    @property
    def observed(self) -> Codes:
        return np.asarray(self.judged.codes[self.place])

    @cached_property
    def context(self) -> Floats:
        """The row's features, zeros included."""
        return np.asarray(dense(self.judged.X[self.place : self.place + 1])[0])

    def finding(self, repairs: Repairs, local: int, row_id: Value) -> Finding:
        changed = self.repaired != self.observed
        # the responses of the repair come first: together they explain the row, and one of them may hide the other
        order = np.lexsort((-self.blame, ~changed))
        responses = tuple(self._response(int(j), int(order[0]), changed) for j in order)
        judged, at = self.judged, self.place
        return Finding(
            row=int(judged.row[at]),
            id=row_id,
            rank=int(judged.rank[at]),
            score=float(judged.score[at]),
            p_value=float(judged.p_value[at]),
            error_probability=float(judged.error_probability[at]),
            responses=responses,
            repair=Repair(
                tuple(self._change(int(j)) for j in order if changed[j]),
                float(np.exp(repairs.log_before[local])),
                float(np.exp(repairs.log_after[local])),
            ),
            sentence=responses[0].sentence,
        )

    def _change(self, j: int) -> Change:
        return Change(
            self.judged.encoding.names[j], self._recorded(j), self.labels.response_value(j, int(self.repaired[j]))
        )

    def _recorded(self, j: int) -> Value:
        """Return what the table holds; None where the response is missing."""
        if self.judged.known is not None and not self.judged.known[self.place, j]:
            return None
        return self.labels.response_value(j, int(self.observed[j]))

    def _response(self, j: int, first: int, changed: np.ndarray[Any, Any]) -> ResponseFinding:
        judged, at = self.judged, self.place
        rho = float(judged.rho[at, j])
        observed = int(self.observed[j])
        suspicious = bool(self.usual[j] != observed)
        expected = int(self.repaired[j] if changed[j] or not suspicious else self.usual[j])
        name = judged.encoding.names[j]
        shown = self._recorded(j), self.labels.response_value(j, expected)
        evidence: tuple[Evidence, ...] = ()
        said = ""
        if j == first or changed[j] or suspicious:
            evidence = self._evidence(j, expected)
            others = [int(k) for k in np.flatnonzero(changed) if k != j]
            partner = judged.encoding.names[max(others, key=lambda k: self.blame[k])] if others else ""
            said = sentence(name, *shown, rho, evidence, partner, of_many=self.labels.of_many(j))
        return ResponseFinding(
            name, *shown, rho, float(self.blame[j]), float(judged.response_p_value[at, j]), evidence, said
        )

    def _evidence(self, j: int, expected: int) -> tuple[Evidence, ...]:
        judged, rows = self.judged, slice(self.place, self.place + 1)
        if several(judged.encoding.n_values) is not None:
            row = judged.X[rows], judged.codes[rows]
            moved = moves_towards(self.models["model"], judged.typical, *row, j, expected)
            pieces = _pieces(self.labels, self.context, self.observed, moved, 1.0)
            return tuple(sorted(pieces, key=lambda piece: -abs(piece.weight))[:MOST_EVIDENCE])
        moved = moves(self.models["model"], judged.typical, judged.X[rows], judged.codes[rows], j)
        pieces = _pieces(self.labels, self.context, self.observed, moved, 1.0 if expected == 1 else -1.0)
        return tuple(sorted(pieces, key=lambda piece: -abs(piece.weight))[:MOST_EVIDENCE])


def _pieces(labels: Labels, context: Floats, codes: Codes, moved: Moves, sign: float) -> list[Evidence]:
    """Return everything that moved the log odds; the categories of one column count as one thing."""
    facts: dict[tuple[str, int], list[int]] = {}
    for at, feature in enumerate(moved.features.tolist()):
        facts.setdefault(labels.group(feature), []).append(at)
    weights = {fact: sign * float(moved.feature_weights[at].sum()) for fact, at in facts.items()}
    strongest = sorted(facts, key=lambda fact: -abs(weights[fact]))[:MOST_EVIDENCE]
    pieces = []
    for fact in (fact for fact in strongest if weights[fact]):
        features = moved.features[facts[fact]].tolist()
        pieces.append(labels.feature_evidence(features, context[features], weights[fact]))
    for k in np.argsort(-np.abs(moved.responses), kind="stable")[:MOST_EVIDENCE]:
        if moved.responses[k]:
            pieces.append(labels.response_evidence(int(k), int(codes[k]), sign * float(moved.responses[k])))
    return pieces


def plain(value: Any) -> Value:
    """Return an identifier as a plain value, ready for JSON.

    Examples
    --------
    >>> plain(np.int64(3)), plain("A1")
    (3, 'A1')
    """
    value = value.item() if hasattr(value, "item") else value
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
