"""Independent pieces of work on all cores, each with one BLAS thread.

Small matrix products on several BLAS threads spend their time handing over; many pieces side by side do not. Threads
suffice because every kernel and every BLAS call releases the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@cache
def _blas() -> Any:
    return ThreadpoolController()  # finding the libraries takes milliseconds: once is enough


def n_threads() -> int:
    """Return how many pieces of work run side by side."""
    return int(joblib.cpu_count())


def run_all(calls: Sequence[Callable[[], T]], *, side_by_side: bool = True) -> list[T]:
    """Return what each call returns, in order.

    Calls made of many short kernels are better run one after the other (`side_by_side=False`): threads then spend their
    time handing over the interpreter's lock.

    Examples
    --------
    >>> run_all([lambda: 1, lambda: 2])
    [1, 2]
    """
    with _blas().limit(limits=1, user_api="blas"):
        if not side_by_side or min(len(calls), n_threads()) <= 1:
            return [call() for call in calls]
        with ThreadPoolExecutor(min(len(calls), n_threads())) as pool:
            return list(pool.map(lambda call: call(), calls))
