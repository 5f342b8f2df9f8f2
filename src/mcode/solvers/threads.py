"""Independent pieces of work on all cores, each with one BLAS thread.

Small matrix products on several BLAS threads spend their time handing over; many pieces side by side do not. Threads
suffice because every kernel and every BLAS call releases the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@cache
def _blas() -> Any:
    return ThreadpoolController()  # finding the libraries takes milliseconds: once is enough


class _Limit:
    """The process's BLAS threads: one as long as anybody asks for one."""

    def __init__(self) -> None:
        self._lock, self._users, self._limiter = Lock(), 0, None

    def take(self) -> None:
        with self._lock:
            if not self._users:
                self._limiter = _blas().limit(limits=1, user_api="blas")
            self._users += 1

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._limiter is not None:
                self._limiter.restore_original_limits()
                self._limiter = None


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Give matrix products one thread. Changing their number takes a millisecond: worth doing once around many calls.

    Examples
    --------
    >>> with one_blas_thread():
    ...     run_all([lambda: 1, lambda: 2])
    [1, 2]
    """
    _limit.take()
    try:
        yield
    finally:
        _limit.give_back()


@cache
def n_threads() -> int:
    """Return how many pieces of work run side by side; finding out reads files of the system."""
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
    with one_blas_thread():
        if not side_by_side or min(len(calls), n_threads()) <= 1:
            return [call() for call in calls]
        with ThreadPoolExecutor(min(len(calls), n_threads())) as pool:
            return list(pool.map(lambda call: call(), calls))
