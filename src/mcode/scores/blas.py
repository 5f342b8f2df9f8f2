"""How many threads BLAS uses for a piece of work."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> Any:
    return ThreadpoolController()  # finding the libraries takes milliseconds: once is enough


def one_blas_thread(when: bool = True) -> AbstractContextManager[Any]:
    """Keep small matrix products on one thread, where several would spend their time handing over.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas") if when else nullcontext()
    return limit
