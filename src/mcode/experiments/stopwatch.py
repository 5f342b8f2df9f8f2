"""How long each part of an experiment took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class Stopwatch:
    """Seconds by name, added up.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> watch("sum", lambda: 1 + 1), list(watch.seconds)
    (2, ['sum'])
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[[], Result]) -> Result:
        """Do some work and add its seconds to a name."""
        start = time.perf_counter()
        result = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return result
