"""An audit -> the queue of a project: findings, their details, the health of each response."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sqlalchemy import Connection, delete, func, insert, or_, select, update

from mcode._progress import advance
from mcode.data import Dataset
from mcode.detector import Audit
from mcode.explain.finding import Finding
from mcode.report.summary import Summary
from mcode.web import tables as t
from mcode.web.database import Database, now, storable, to_json
from mcode.web.packing import ResponseNames, kind_of, pack, pack_context
from mcode.web.project import add_rows, in_parts, read_fact, write_fact

MOST_CONFUSIONS = 8
LIKELY_BINS = 20


@dataclasses.dataclass(frozen=True)
class Ranked:
    """What an audit says, ready to be stored.

    Attributes
    ----------
    data : Dataset
    found : Audit of it
    findings : list of Finding, in the order of the queue
    summary : Summary
    """

    data: Dataset
    found: Audit
    findings: Sequence[Finding]
    summary: Summary


def fill(database: Database, ranked: Ranked, *, note: Mapping[str, Any] | None = None) -> None:
    """Make these findings the queue; findings that somebody judged or is looking at stay."""
    about = ResponseNames(ranked.data.label_names, tuple(tuple(v) for v in ranked.data.label_values))
    with database.write() as connection:
        keep = or_(t.findings.c.latest > 0, t.findings.c.held_until > now())
        kept = set(connection.execute(select(t.findings.c.row).where(keep)).scalars())
        gone = [row for row in connection.execute(select(t.findings.c.row)).scalars() if row not in kept]
        for part in in_parts(gone):
            connection.execute(delete(t.findings).where(t.findings.c.row.in_(part)))
            connection.execute(delete(t.details).where(t.details.c.row.in_(part)))
        new = [(at, row, f) for at, (row, f) in enumerate(_placed(ranked), start=1) if row not in kept]
        add_rows(connection, t.findings, (_finding(at, row, f, about) for at, row, f in new))
        add_rows(connection, t.details, _details(new, ranked.data, about))
        outside = _error_outside(ranked)
        _store_health(connection, ranked)
        write_fact(connection, "summary", _summary(ranked.summary))
        write_fact(connection, "outside", outside)
        number = (read_fact(connection, "ranking") or {"number": 0})["number"] + 1
        write_fact(connection, "ranking", {"number": number, **(note or {})})
        count_anew(connection)


def _placed(ranked: Ranked) -> Iterator[tuple[int, Finding]]:
    """Yield each finding with its place in the file."""
    places = ranked.data.places
    for finding in ranked.findings:
        yield finding.row if places is None else int(places[finding.row]), finding


def _finding(at: int, row: int, finding: Finding, about: ResponseNames) -> dict[str, Any]:
    first = finding.responses[0]
    place = about.place[first.name]
    return {
        "row": row,
        "id": storable(str(row if finding.id is None else finding.id)),
        "position": at,
        "score": _finite(finding.score),
        "p_value": finding.p_value,
        "error_probability": finding.error_probability,
        "response": place,
        "observed": about.code(place, first.observed),
        "expected": about.code(place, first.expected),
        "probability": first.probability,
        "kind": kind_of(finding, about),
        "sentence": storable(finding.sentence),
        "status": "open",
        "latest": 0,
    }


def _finite(number: float) -> float:
    return float(np.clip(number, -1e300, 1e300))


def _details(new: Sequence[tuple[int, int, Finding]], data: Dataset, about: ResponseNames) -> Iterator[dict[str, Any]]:
    for done, (_, row, finding) in enumerate(new, start=1):
        context, words = pack_context(data.context(finding.row))
        yield {"row": row, "body": pack(finding, about), "context": context, "words": words}
        advance("store findings", done, len(new))


def _error_outside(ranked: Ranked) -> float:
    """Return the expected number of wrong rows that are not in the queue."""
    inside = [finding.row for finding in ranked.findings]
    return max(0.0, float(ranked.found.error_probability.sum() - ranked.found.error_probability[inside].sum()))


def _summary(summary: Summary) -> dict[str, Any]:
    about = dataclasses.asdict(summary)
    del about["health"]
    return about


def _store_health(connection: Connection, ranked: Ranked) -> None:
    """Store the health of each response, how likely its recorded values are, and what it is confused with."""
    place = {name: at for at, name in enumerate(ranked.data.label_names)}
    for health in ranked.summary.health:
        at = place[health.name]
        likely = np.histogram(np.clip(ranked.found.rho[:, at], 0.0, 1.0), bins=LIKELY_BINS, range=(0.0, 1.0))[0]
        stored = to_json({**dataclasses.asdict(health), "likely": likely.tolist()})
        connection.execute(update(t.responses).where(t.responses.c.place == at).values(health=stored))
    connection.execute(delete(t.confusions))
    add_rows(connection, t.confusions, _confusions(ranked.found))


def _confusions(found: Audit) -> Iterator[dict[str, Any]]:
    """Yield how often one response is expected where another one is recorded against expectation.

    "instead": this one is expected and absent, the other is present and not expected; "together": both are expected
    and absent. A response with several values is neither present nor absent.
    """
    unlikely = (found.rho < 0.5) & (np.asarray(found.encoding.n_values) == 2)
    missing = sp.csr_matrix((unlikely & (found.codes == 0)).astype(np.int32))
    extra = sp.csr_matrix((unlikely & (found.codes == 1)).astype(np.int32))
    for how, counts in (("instead", missing.T @ extra), ("together", missing.T @ missing)):
        table = sp.csr_matrix(counts)
        for at in range(table.shape[0]):
            others = table.indices[table.indptr[at] : table.indptr[at + 1]]
            times = table.data[table.indptr[at] : table.indptr[at + 1]]
            strongest = [int(k) for k in np.argsort(-times, kind="stable") if others[k] != at][:MOST_CONFUSIONS]
            for k in strongest:
                yield {"response": at, "other": int(others[k]), "how": how, "number": int(times[k])}


def count_anew(connection: Connection) -> None:
    """Count the findings of each sort; from then on every verdict moves the counts."""
    c = t.findings.c
    connection.execute(delete(t.tallies))
    sums = select(c.status, c.kind, c.response, func.count(), func.sum(c.error_probability))
    connection.execute(
        insert(t.tallies).from_select(
            ["status", "kind", "response", "number", "expected"], sums.group_by(c.status, c.kind, c.response)
        )
    )
