"""Verdicts: each one entry of the record, with the state it leads to, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from mcode.errors import McodeError
from mcode.web import tables as t
from mcode.web.database import AnyRow, Database, now_text, to_json
from mcode.web.packing import unpack
from mcode.web.project import in_parts
from mcode.web.replay import Entry, State, replay

Result = TypeVar("Result")


class NoSuchRowError(McodeError):
    """A row that is no finding of this project."""

    def __init__(self, row: int) -> None:
        self.row = row
        super().__init__(row)

    def __str__(self) -> str:
        return f"row {self.row} is no finding of this project"


class KeyUsedError(McodeError):
    """A key under which another verdict was recorded."""

    def __str__(self) -> str:
        return "another verdict was recorded under this key; every verdict needs a key of its own"


@dataclass(frozen=True)
class Verdict:
    """What a reviewer says of a row.

    Attributes
    ----------
    key : str, made by the client: the same verdict sent twice counts once
    row : int
    kind : "accept", "change", "keep" or "skip"
    who : str
    seen : int, the last entry of the row's record that the reviewer had seen
    values : dict or None, response -> code, the whole of what shall differ; None accepts the stored repair
    batch : str or None, what verdicts that were given together have in common
    """

    key: str
    row: int
    kind: str
    who: str
    seen: int = 0
    values: Mapping[int, int] | None = field(default=None)
    batch: str | None = None


@dataclass(frozen=True)
class Recorded:
    """A verdict as it stands in the record, and the state of its row."""

    seq: int
    row: int
    kind: str
    status: str
    repeated: bool = False


def once_more(work: Callable[[], Result]) -> Result:
    """Run a transaction; once more where another one with the same key came first, which it then finds."""
    try:
        return work()
    except IntegrityError:
        return work()


def record(database: Database, verdicts: Sequence[Verdict]) -> list[Recorded]:
    """Record verdicts, all or none; they are on disk when this returns."""

    def work() -> list[Recorded]:
        with database.write() as connection:
            return record_in(connection, verdicts)

    return once_more(work)


def record_in(connection: Connection, verdicts: Sequence[Verdict]) -> list[Recorded]:
    """Record verdicts as part of a transaction."""
    repeated = _already(connection, verdicts)
    new = [verdict for verdict in verdicts if verdict.key not in repeated]
    rows = _Rows.locked(connection, sorted({verdict.row for verdict in new}))
    at = now_text()
    made = []
    for verdict in new:
        before = rows.state(verdict.row)
        after = rows.corrections(verdict)
        seq = _insert(connection, verdict, at, before.after, after)
        rows.append(Entry(seq, verdict.kind, verdict.who, verdict.seen, after), verdict.row)
        made.append(Recorded(seq, verdict.row, verdict.kind, rows.state(verdict.row).status))
    rows.store(connection, at)
    by_key = dict(zip((verdict.key for verdict in new), made, strict=True))
    return [repeated.get(verdict.key) or by_key[verdict.key] for verdict in verdicts]


def take_back(connection: Connection, entries: Sequence[AnyRow], *, key: str, who: str) -> list[Recorded]:
    """Record that some verdicts are undone."""
    rows = _Rows.locked(connection, sorted({entry.row for entry in entries}))
    at = now_text()
    made = []
    for number, entry in enumerate(entries):
        before = rows.state(entry.row).after
        verdict = Verdict(key if len(entries) == 1 else f"{key}:{number}", entry.row, "undo", who, entry.seq)
        undone = [*rows.record[entry.row], Entry(1 << 62, "undo", who, undoes=entry.seq)]
        seq = _insert(connection, verdict, at, before, replay(undone).after, undoes=entry.seq, batch=entry.batch)
        rows.append(Entry(seq, "undo", who, undoes=entry.seq), entry.row)
        made.append(Recorded(seq, entry.row, "undo", rows.state(entry.row).status))
    rows.store(connection, at)
    return made


def last_of(connection: Connection, who: str) -> Sequence[AnyRow]:
    """Return the reviewer's last verdict that was not undone; all of them, where it was one of many given together."""
    v, undo = t.verdicts, t.verdicts.alias()
    standing = ~select(undo.c.seq).where(undo.c.undoes == v.c.seq).exists()
    mine = select(v).where(v.c.who == who, v.c.kind != "undo", standing)
    last = connection.execute(mine.order_by(v.c.seq.desc()).limit(1)).first()
    if last is None or last.batch is None:
        return [last] if last is not None else []
    return connection.execute(mine.where(v.c.batch == last.batch).order_by(v.c.seq)).all()


def undo_last(database: Database, *, key: str, who: str) -> list[Recorded]:
    """Undo the reviewer's last verdict; nothing where there is none."""
    with database.write() as connection:
        c = t.verdicts.c
        done = connection.execute(select(c.row, c.seq).where((c.key == key) | (c.key == f"{key}:0"))).first()
        if done is not None:
            status = connection.execute(select(t.findings.c.status).where(t.findings.c.row == done.row)).scalar_one()
            return [Recorded(done.seq, done.row, "undo", status, repeated=True)]
        return take_back(connection, last_of(connection, who), key=key, who=who)


def _already(connection: Connection, verdicts: Sequence[Verdict]) -> dict[str, Recorded]:
    """Return what was recorded before under the keys of these verdicts."""
    asked = {verdict.key: verdict for verdict in verdicts}
    c = t.verdicts.c
    found: dict[str, Recorded] = {}
    keys = list(asked)
    for start in range(0, len(keys), 500):
        some = keys[start : start + 500]
        rows = connection.execute(
            select(c.key, c.seq, c.row, c.kind, c.who, t.findings.c.status)
            .join_from(t.verdicts, t.findings, t.findings.c.row == c.row)
            .where(c.key.in_(some))
        )
        for row in rows:
            verdict = asked[row.key]
            if (row.row, row.kind, row.who) != (verdict.row, verdict.kind, verdict.who):
                raise KeyUsedError
            found[row.key] = Recorded(row.seq, row.row, row.kind, row.status, repeated=True)
    return found


def _insert(
    connection: Connection,
    verdict: Verdict,
    at: str,
    before: Mapping[int, int],
    after: Mapping[int, int],
    undoes: int | None = None,
    batch: str | None = None,
) -> int:
    values = {
        "key": verdict.key,
        "row": verdict.row,
        "kind": verdict.kind,
        "who": verdict.who,
        "at": at,
        "before": to_json(before),
        "after": to_json(after),
        "seen": verdict.seen,
        "undoes": undoes,
        "batch": batch if undoes is not None else verdict.batch,
    }
    made = connection.execute(insert(t.verdicts).values(values)).inserted_primary_key
    return int(made[0]) if made is not None else 0


@dataclass
class _Rows:
    """Some rows of the queue while verdicts on them are recorded."""

    found: dict[int, AnyRow]
    bodies: dict[int, str]
    record: dict[int, list[Entry]]

    @classmethod
    def locked(cls, connection: Connection, rows: Sequence[int]) -> _Rows:
        """Read rows and their records; nobody else may write to them until the transaction ends."""
        c = t.findings.c
        found: dict[int, AnyRow] = {}
        bodies: dict[int, str] = {}
        record: dict[int, list[Entry]] = {row: [] for row in rows}
        for part in in_parts(rows):
            columns = (c.row, c.status, c.kind, c.response, c.error_probability, c.held_by)
            wanted: Select[Any] = select(*columns).where(c.row.in_(part))
            for row in connection.execute(wanted.order_by(c.row).with_for_update()):
                found[row.row] = row
            details = select(t.details.c.row, t.details.c.body).where(t.details.c.row.in_(part))
            bodies.update((row.row, row.body) for row in connection.execute(details))
            for entry in read_entries(connection, part):
                record[entry.row].append(as_entry(entry))
        missing = [row for row in rows if row not in found]
        if missing:
            raise NoSuchRowError(missing[0])
        return cls(found, bodies, record)

    def state(self, row: int) -> State:
        return replay(self.record[row])

    def append(self, entry: Entry, row: int) -> None:
        self.record[row].append(entry)

    def corrections(self, verdict: Verdict) -> dict[int, int]:
        """Return what a verdict makes differ from the source."""
        if verdict.kind in ("keep", "skip"):
            return {}
        stored = unpack(self.bodies[verdict.row])
        wanted = stored.repair if verdict.values is None else verdict.values
        return {place: code for place, code in sorted(wanted.items()) if stored.recorded.get(place) != code}

    def store(self, connection: Connection, at: str) -> None:
        """Write the state that each row has come to."""
        moves: dict[tuple[str, str, int], tuple[int, float]] = {}
        c = t.findings.c
        for row, old in self.found.items():
            entries = self.record[row]
            state = replay(entries)
            latest = entries[-1]
            held = {"held_by": None, "held_until": None} if old.held_by == latest.who else {}
            changed = update(t.findings).where(c.row == row).values(status=state.status, latest=latest.seq, **held)
            connection.execute(changed)
            self._store_corrections(connection, row, state, at)
            if state.status != old.status:
                for status, sign in ((old.status, -1), (state.status, 1)):
                    sort = (status, old.kind, old.response)
                    count, expected = moves.get(sort, (0, 0.0))
                    moves[sort] = count + sign, expected + sign * old.error_probability
        move_tallies(connection, moves)

    def _store_corrections(self, connection: Connection, row: int, state: State, at: str) -> None:
        connection.execute(delete(t.corrections).where(t.corrections.c.row == row))
        if not state.after:
            return
        who = next(entry.who for entry in self.record[row] if entry.seq == state.standing[-1])
        recorded = unpack(self.bodies[row]).recorded
        rows = [
            {"row": row, "response": place, "before": recorded[place], "after": code, "who": who, "at": at}
            for place, code in state.after.items()
        ]
        connection.execute(insert(t.corrections), rows)


def move_tallies(connection: Connection, moves: Mapping[tuple[str, str, int], tuple[int, float]]) -> None:
    """Move the counts, always in the same order, so that two writers never wait for each other."""
    c = t.tallies.c
    for (status, kind, response), (count, expected) in sorted(moves.items()):
        where = (c.status == status, c.kind == kind, c.response == response)
        changed = update(t.tallies).where(*where).values(number=c.number + count, expected=c.expected + expected)
        if connection.execute(changed).rowcount:
            continue
        new = {"status": status, "kind": kind, "response": response, "number": count, "expected": expected}
        _insert_or_add(connection, new)


def _insert_or_add(connection: Connection, new: dict[str, Any]) -> None:
    """Insert a count that another writer may be inserting as well."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as upsert
    else:
        from sqlalchemy.dialects.sqlite import insert as upsert  # type: ignore[assignment]
    statement = upsert(t.tallies).values(new)
    c = t.tallies.c
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["status", "kind", "response"],
            set_={"number": c.number + new["number"], "expected": c.expected + new["expected"]},
        )
    )


def read_entries(connection: Connection, rows: Sequence[int]) -> Iterable[AnyRow]:
    """Return the record of some rows, in its order."""
    return connection.execute(select(t.verdicts).where(t.verdicts.c.row.in_(rows)).order_by(t.verdicts.c.seq)).all()


def as_entry(row: AnyRow) -> Entry:
    """Return a line of the record as `replay` reads it."""
    after = {int(place): code for place, code in json.loads(row.after).items()}
    return Entry(row.seq, row.kind, row.who, row.seen, after, row.undoes)
