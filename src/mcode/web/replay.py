"""What a row's state is: a pure function of its record.

A verdict replaces the ones its reviewer had seen, and the reviewer's own earlier ones. Two verdicts that stand beside
each other because neither reviewer had seen the other's are a conflict where they differ, until somebody who has seen
both decides. Nothing is ever taken out of the record: an undo is an entry that takes another one back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["open", "corrected", "kept", "skipped", "conflict"]
STATUSES: tuple[Status, ...] = ("open", "corrected", "kept", "skipped", "conflict")
Kind = Literal["accept", "change", "keep", "skip", "undo"]


@dataclass(frozen=True)
class Entry:
    """One entry of a row's record.

    Attributes
    ----------
    seq : int, its place in the record of the whole project
    kind : "accept", "change", "keep", "skip" or "undo"
    who : str
    seen : int, the last entry of this row that the reviewer had seen; 0 for none
    after : dict, response -> code, where it shall differ from the source
    undoes : int or None, the entry that an undo takes back
    """

    seq: int
    kind: str
    who: str
    seen: int = 0
    after: Mapping[int, int] = field(default_factory=dict)
    undoes: int | None = None


@dataclass(frozen=True)
class State:
    """What a record comes to.

    Attributes
    ----------
    status : "open", "corrected", "kept", "skipped" or "conflict"
    after : dict, response -> code, the corrections that count; of two in conflict the later one
    standing : tuple of int, the entries that count
    """

    status: Status
    after: Mapping[int, int]
    standing: tuple[int, ...]


def replay(record: Sequence[Entry]) -> State:
    """Return the state that a row's record comes to.

    Examples
    --------
    >>> anna, ben = Entry(1, "keep", "anna"), Entry(2, "accept", "ben", seen=0, after={3: 1})
    >>> replay([anna, ben]).status
    'conflict'
    >>> replay([anna, ben, Entry(3, "undo", "ben", undoes=2)]).status
    'kept'
    """
    undone = {entry.undoes for entry in record if entry.kind == "undo"}
    given = [entry for entry in record if entry.kind != "undo" and entry.seq not in undone]
    standing: list[Entry] = []
    for entry in given:
        if entry.kind == "skip" and any(other.kind != "skip" for other in standing):
            continue  # who skips a row leaves it to the others
        standing = [other for other in standing if other.seq > entry.seen and other.who != entry.who]
        standing = [other for other in standing if other.kind != "skip" or entry.kind == "skip"]
        standing.append(entry)
    if not standing:
        return State("open", {}, ())
    last = standing[-1]
    seqs = tuple(entry.seq for entry in standing)
    if last.kind == "skip":
        return State("skipped", {}, seqs)
    if any(dict(entry.after) != dict(last.after) for entry in standing):
        return State("conflict", last.after, seqs)
    return State("corrected" if last.after else "kept", last.after, seqs)
