"""The cluster: how a pass over the table is handed out, summed up on the workers, and survives their loss.

A task is a pure function of its arguments, and everything it needs is in its arguments or can be computed again from
them. So a worker may die at any time: Dask runs its tasks elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, TypeAlias

import dask
import numpy as np
import psutil
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm.core import CommClosedError
from distributed.protocol.pickle import dumps
from distributed.scheduler import KilledWorker

import distributed
from distributed import Client, LocalCluster, as_completed, wait
from mcode._progress import advance
from mcode.errors import McodeError, ParameterError

Future: TypeAlias = Any  # Dask ships types for little of its surface

ARITY = 8  # sums that one task adds up
GROUPS_PER_THREAD = 2  # pieces of work per thread and pass: few messages, and the last one is not waited for long
SMALL = 2**16  # bytes of a value that travels inside of each task
WORKERS_KNOWN_SECONDS = 3.0
WATCHED_SECONDS = 1.0  # passes that take longer report how far they are
GLANCE_SECONDS = 0.02
PATIENCE_SECONDS = 60.0  # with a cluster that seems to have lost all its workers


class ClusterError(McodeError, RuntimeError):
    """The cluster failed, not the data: says what happened and what to do."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)

    def __str__(self) -> str:
        return self.sentence


class Cluster:
    """A Dask client, and the few things that are asked of it.

    Attributes
    ----------
    passes : int, how many times the whole table was gone through
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.passes = 0
        self._seconds = 0.0  # of the last pass
        self._asked, self._workers = -np.inf, dict[str, int]()

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker by its address, as of not long ago."""
        if time.monotonic() - self._asked < WORKERS_KNOWN_SECONDS:
            return self._workers
        with speaking(self.client):
            self._need_workers()
            found: dict[str, int] = self.client.nthreads()
        self._asked, self._workers = time.monotonic(), dict(sorted(found.items()))
        return self._workers

    def memory(self) -> int:
        """Return the sum of the workers' memory limits in bytes; without a limit it is the machine's memory."""
        with speaking(self.client):
            limits = self.client.run(_memory_limit)
        return int(sum(limits.values()))

    def share(self, value: Any) -> Any:
        """Return what stands for a value in the arguments of the tasks of a pass.

        A small one is itself. A larger one is a task of its own, whose result each worker fetches once: in the
        arguments of hundreds of waiting tasks it would fill the workers' memory. Not scattered data, which would be
        lost with the worker that holds it.
        """
        if isinstance(value, distributed.Future):
            return value
        size = value.nbytes if isinstance(value, np.ndarray) else len(dumps(value))
        return value if size <= SMALL else self.client.submit(same, value, pure=False)

    def compute(self, function: Callable[..., Any], sources: Sequence[Any], *args: Any) -> list[Future]:
        """Return handles of function(source, *args) for each source; sources may hold Dask's delayed blocks."""
        call = dask.delayed(function, pure=False)
        addresses = list(self.workers())
        alone = len(addresses) == 1
        with speaking(self.client):
            shared = [self.share(value) for value in args]
            return [
                self.client.compute(
                    call(source, *shared),
                    workers=None if alone else [addresses[k * len(addresses) // len(sources)]],
                    allow_other_workers=not alone,
                    optimize_graph=False,
                )
                for k, source in enumerate(sources)
            ]

    def total(self, parts: list[Future], stage: str = "this pass over the table") -> Any:
        """Return the sum of what the parts hold, added up on the workers in a tree but for its last few parts.

        The list is emptied: what has been added up is dropped at once, or the parts of a long table would fill the
        workers' memory before the first is added.
        """
        level = list(parts)
        parts.clear()
        began = time.monotonic()
        with speaking(self.client):
            watched: list[Future] = []
            while len(level) > ARITY:
                level = [
                    self.client.submit(_sum, level[k : k + ARITY], pure=False, priority=1)
                    for k in range(0, len(level), ARITY)
                ]
                watched = watched or level
            if self._seconds > WATCHED_SECONDS:
                self._watch(watched or level, stage)
            watched = []
            self._await(level)
            result = _sum(self.client.gather(level))
        self._seconds = time.monotonic() - began
        self.passes += 1
        return result

    def run_everywhere(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function on every worker that answers."""
        with speaking(self.client):
            self.client.run(function, *args, on_error="ignore")

    def gather(self, parts: Sequence[Future], stage: str) -> list[Any]:
        """Return what every part holds; only for small things."""
        with speaking(self.client):
            self._watch(parts, stage)
            return list(self.client.gather(list(parts)))

    def _watch(self, parts: Sequence[Future], stage: str) -> None:
        """Report how many parts are done until all are."""
        left, done, since = as_completed(parts), 0, time.monotonic()
        while left.count():
            if left.has_ready():
                done += len(left.next_batch(block=False))
                advance(stage, done, len(parts))
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE_SECONDS:
                self._need_workers()
                since = time.monotonic()
            else:
                time.sleep(GLANCE_SECONDS)

    def _await(self, parts: Sequence[Future]) -> None:
        while True:
            try:
                wait(parts, timeout=PATIENCE_SECONDS)
            except TimeoutError:
                self._need_workers()
            else:
                return

    def _need_workers(self) -> None:
        """Refuse to wait for ever: work that takes long is fine, a cluster that has nobody left is not.

        Dask leaves work that prefers a worker undone where all workers were lost at the same moment.
        """
        if self.client.nthreads():
            if self.client.run_on_scheduler(_undone):
                raise ClusterError(
                    "All workers were lost at the same moment, and their work with them; repeat the run."
                )
            return
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        except TimeoutError as error:
            raise ClusterError(
                "All workers of the cluster are gone and none came back; start workers and repeat the run."
            ) from error


def groups(items: Sequence[Any], n_groups: int) -> list[list[Any]]:
    """Return the items in at most `n_groups` runs of nearly equal length.

    Examples
    --------
    >>> groups([1, 2, 3, 4, 5], 2)
    [[1, 2, 3], [4, 5]]
    """
    n = max(1, min(n_groups, len(items)))
    size, more = divmod(len(items), n)
    ends = [k * size + min(k, more) for k in range(n + 1)]
    return [list(items[a:b]) for a, b in pairwise(ends)]


def same(value: Any) -> Any:
    """Return a value: as a task, it is what stands for the value in the arguments of others."""
    return value


def _sum(parts: list[Any]) -> Any:
    return reduce(add, parts)


def _undone(dask_scheduler: Any) -> int:
    return len(dask_scheduler.unrunnable)


def _memory_limit(dask_worker: Any) -> int:
    return int(dask_worker.memory_manager.memory_limit or psutil.virtual_memory().total)


@contextmanager
def speaking(client: Client) -> Iterator[None]:
    """Ask a cluster, and turn its failures into sentences; errors of the work itself pass as they are."""
    try:
        with client.as_current():
            yield
    except KilledWorker as error:
        raise ClusterError(
            "Workers died again and again on the same piece of work, most likely for want of memory; give each worker "
            "more memory, or cut the table into smaller partitions."
        ) from error
    except (FutureCancelledError, FuturesCancelledError, CommClosedError, TimeoutError, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # about a file, not about the network
        if "lost dependencies" in str(error):
            raise ClusterError(
                "Partitions of the table that lay on the cluster are lost; make the table again and repeat the run."
            ) from error
        where = client.scheduler.address if client.scheduler is not None else "its address"
        raise ClusterError(
            f"The Dask scheduler at {where} no longer answers; nothing was finished. Start it again and repeat the run."
        ) from error


@contextmanager
def connect(cluster: str) -> Iterator[Client]:
    """Give a client of the cluster that a text names, closed at the end.

    Parameters
    ----------
    cluster : "tcp://host:port" or "tls://host:port" of a running scheduler, or "local:N" for N processes of this
        machine that end with the run
    """
    kind, _, rest = cluster.partition(":")
    if kind == "local":
        if not rest.isdigit() or int(rest) < 1:
            raise ParameterError("--cluster", cluster, "local:N with N of at least 1, for example local:2")
        options = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(n_workers=int(rest), **options) as own, Client(own) as client:
            yield client
        return
    if kind not in ("tcp", "tls", "ws", "wss") or not rest.startswith("//"):
        raise ParameterError("--cluster", cluster, "tcp://host:port of a Dask scheduler, or local:N")
    try:
        client = Client(cluster, timeout=10)
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"No Dask scheduler answers at {cluster}; start one with `dask scheduler`.") from error
    with client:
        yield client


@contextmanager
def current() -> Iterator[Cluster]:
    """Give the client that Dask works with now, or one of this process's own threads where there is none."""
    try:
        client = Client.current()
    except ValueError:
        with LocalCluster(processes=False, dashboard_address=":0") as own, Client(own, set_as_default=False) as client:
            yield Cluster(client)
        return
    yield Cluster(client)
