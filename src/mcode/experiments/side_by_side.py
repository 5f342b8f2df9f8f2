"""Long work in several processes, each on one core: pieces of different strands side by side, those of one in order.

Threads would wait for each other: most of what an experiment does to a small table is Python.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from mcode._progress import advance
from mcode.solvers.threads import one_blas_thread


class Strand(Protocol):
    """Pieces of work of which each may depend on what those before it found."""

    def next_piece(self) -> Callable[[], Any] | None:
        """Return the next piece, which another process must be able to run, or None where nothing is left to do."""

    def take(self, found: Any) -> None:
        """Receive what that piece returned."""


def run_strands(strands: Iterable[Strand], jobs: int, stage: str) -> None:
    """Run all pieces of all strands, in `jobs` processes where that is more than one, and report the strands done.

    Matrix products have one thread in either case, so that what is found does not depend on `jobs`.
    """
    waiting = deque(strands)
    total = len(waiting)
    if jobs == 1:
        with one_blas_thread():
            for done, strand in enumerate(waiting):
                advance(stage, done, total)
                while (piece := strand.next_piece()) is not None:
                    strand.take(piece())
    else:
        _run_in_processes(waiting, jobs, stage)
    advance(stage, total, total)


def _run_in_processes(waiting: deque[Strand], jobs: int, stage: str) -> None:
    total, done = len(waiting), 0
    running: dict[Future[Any], Strand] = {}
    # processes that begin from nothing: a copy of one whose threads hold locks may wait for them for ever
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _on_one_core)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                strand = waiting.popleft()
                piece = strand.next_piece()
                if piece is None:
                    done += 1
                else:
                    running[pool.submit(piece)] = strand
            advance(stage, done, total)
            for finished in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                strand = running.pop(finished)
                strand.take(finished.result())
                waiting.appendleft(strand)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _on_one_core() -> None:
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # what `mcode.solvers.threads` goes by
    threadpool_limits(1)
