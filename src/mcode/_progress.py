"""How long work tells how far it is. The library never prints: it calls whoever asked to be told.

>>> seen = []
>>> with reporting(lambda stage, done, total: seen.append((stage, done, total))):
...     advance("fit", 1, 2)
>>> advance("fit", 2, 2)  # nobody listens any more
>>> seen
[('fit', 1, 2)]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Progress(Protocol):
    """Receives the stage of the work, and how much of it is done."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that `done` of `total` parts of `stage` are finished."""


def _silence(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


_listener: ContextVar[Progress] = ContextVar("listener", default=_silence)


@contextmanager
def reporting(listener: Progress) -> Iterator[None]:
    """Tell `listener` about all work done inside the `with` block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def advance(stage: str, done: int, total: int) -> None:
    """Report that `done` of `total` parts of `stage` are finished."""
    _listener.get()(stage, done, total)
