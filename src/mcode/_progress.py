"""How long work tells how far it is. The library never prints: it calls a `Progress` that the caller gave."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the stage, and how much of it is done."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that `done` of `total` parts of `stage` are finished."""


class NoProgress:
    """The silent default.

    Examples
    --------
    >>> NoProgress()("fit", 1, 10)
    """

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Do nothing."""
