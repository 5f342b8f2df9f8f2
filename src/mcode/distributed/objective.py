"""The objective of `mcode.solvers.newton` as a sum over partitions: coefficients go out, their sums come back.

One pass over the table is one round trip for all columns together: gradients, or Hessian products.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from distributed import wait
from mcode._arrays import Floats
from mcode.distributed.cluster import GROUPS_PER_THREAD, Cluster, Future, groups, same, speaking
from mcode.distributed.deal import Deal
from mcode.distributed.pieces import (
    Ask,
    Coordinates,
    Recipe,
    Slopes,
    anew,
    hessian_products,
    losses,
    prepare,
    slopes,
    squared_rises,
)
from mcode.distributed.storage import forget
from mcode.distributed.table import Table
from mcode.models.encoding import ResponseEncoding
from mcode.solvers.kernels import add_penalty
from mcode.solvers.objective import SMALLEST_CURVATURE

Array = NDArray[Any]
Columns = NDArray[np.intp]


class Passes:
    """Goes over all rows of a table that was made ready for the solver.

    Parameters
    ----------
    cluster : Cluster
    table : Table
    encoding, coordinates, deal : how the rows of a partition become pieces
    keep : whether the workers keep the pieces; otherwise they are made anew in every pass
    """

    def __init__(
        self,
        cluster: Cluster,
        table: Table,
        encoding: ResponseEncoding,
        coordinates: Coordinates,
        deal: Deal,
        *,
        keep: bool,
    ) -> None:
        self.cluster, self.keep, self.coordinates = cluster, keep, coordinates
        self.prefix = uuid.uuid4().hex
        self._how = (encoding, coordinates, deal)
        self._keyed = [[source, f"{self.prefix}:{k}"] for k, source in enumerate(table.sources)]
        self._chunks: list[Any] | None = None
        self._cut: list[tuple[str, Future]] = []
        self._cut_for: dict[str, int] = {}
        if keep:
            self._chunks = cluster.compute(prepare, self._keyed, *self._how)
        elif table.rereadable:
            self._chunks = [Recipe(source, key, *self._how) for source, key in self._keyed]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the workers drop what they kept."""
        self._chunks, self._cut = None, []
        self.cluster.run_everywhere(forget, self.prefix)

    def share(self, value: Array) -> Any:
        """Return what stands for an array in the arguments of tasks."""
        with speaking(self.cluster.client):
            return self.cluster.share(value)

    def total(self, function: Any, *args: Any) -> Any:
        """Return the sum over all partitions of function(partitions, *args)."""
        if self._chunks is None:
            return self.cluster.total(self.cluster.compute(anew, self._keyed, *self._how, function, *args))
        with speaking(self.cluster.client):
            parts = [self._submit(address, function, group, *args) for address, group in self._groups()]
        return self.cluster.total(parts)

    def _submit(self, address: str, function: Any, *args: Any) -> Future:
        """Return a handle of function(*args), computed on a worker or, if that is gone, on another."""
        alone = len(self.cluster.workers()) == 1
        where = {"workers": None if alone else [address], "allow_other_workers": not alone}
        return self.cluster.client.submit(function, *args, pure=False, **where)

    def _groups(self) -> list[tuple[str, Future]]:
        """Return partitions that one task goes over, and the worker where they are or whose turn it is.

        A group is one handle, or every pass would send the names and whereabouts of all its partitions.
        """
        assert self._chunks is not None
        workers = self.cluster.workers()
        if workers == self._cut_for:
            return self._cut
        at_home: dict[str, list[Any]] = {address: [] for address in workers}
        homes = self._homes() if self.keep else {}
        for k, chunk in enumerate(self._chunks):
            home = homes.get(k, "")
            at_home[home if home in workers else list(workers)[k * len(workers) // len(self._chunks)]].append(chunk)
        self._cut = [
            (address, self._submit(address, same, group))
            for address, mine in at_home.items()
            if mine
            for group in groups(mine, GROUPS_PER_THREAD * workers[address])
        ]
        self._cut_for = workers
        return self._cut

    def _homes(self) -> dict[int, str]:
        """Return where each kept partition is; those of a lost worker are nowhere and come back where they are used."""
        assert self._chunks is not None
        with speaking(self.cluster.client):
            wait(self._chunks)
            found = self.cluster.client.who_has(self._chunks)
        return {k: found[chunk.key][0] for k, chunk in enumerate(self._chunks) if found.get(chunk.key)}

    def slopes(self, W: Future, ask: Ask, token: str | None) -> Slopes:
        """Return the gradient sums at W."""
        found: Slopes = self.total(slopes, W, ask, token)
        return found

    def hessian_products(self, W: Future, D: Array, ask: Ask, columns: Columns, token: str) -> Array:
        """Return the products of the Hessians at W with the directions D of some columns."""
        found: Array = self.total(hessian_products, W, self.share(D), ask, columns, token)
        return found

    def losses(self, W: Array, ask: Ask, *, held_out: bool) -> Floats:
        """Return the loss of each column on the rows that it holds out, or on those it is fitted on."""
        found: Floats = self.total(losses, self.share(self.coordinates.out(W)), ask, held_out)
        return found

    def squared_rises(self, W: Array, before: Array, ask: Ask) -> Floats:
        """Return the summed squares of what each held-out row loses more at W than before."""
        at_both = (self.share(self.coordinates.out(each)) for each in (W, before))
        found: Floats = self.total(squared_rises, *at_both, ask)
        return found


@dataclass
class ChunkedObjective:
    """L2-penalised logistic loss of many columns, as a sum over partitions; see `mcode.solvers.objective`.

    Parameters
    ----------
    passes : Passes
    ask : Ask, the columns
    penalty : (b,) array
    free : (d, b) array of 1 and 0, or of no rows where nothing is forbidden
    dtype : precision of the gradients; Hessian products are always single: a direction need not be exact
    """

    passes: Passes
    ask: Ask
    penalty: Array
    free: Array
    dtype: np.dtype[Any]
    _last: ChunkedPoint | None = field(default=None, repr=False)

    def columns(self, keep: Columns) -> ChunkedObjective:
        """Return the same objective for some of the columns."""
        free = np.ascontiguousarray(self.free[:, keep])
        return ChunkedObjective(self.passes, self.ask.take(keep), self.penalty[keep], free, self.dtype)

    def at(self, W: Array) -> ChunkedPoint:
        """Look at the objective from `W`: one pass, unless it was looked at from there just now."""
        if self._last is not None and np.array_equal(self._last.W, W):
            return self._last
        token = uuid.uuid4().hex
        coordinates = self.passes.coordinates
        shared = self.passes.share(coordinates.out(W))
        sums = self.passes.slopes(shared, self.ask, token if self.passes.keep else None)
        gradient = coordinates.back(sums.gradient).astype(self.dtype)
        diagonal = coordinates.diagonal(sums.diagonal).astype(self.dtype)
        add_penalty(gradient, W, self.penalty, self.free)
        everything = np.arange(W.shape[1])
        self._last = ChunkedPoint(self, W, gradient, diagonal, shared, self.ask, everything, token)
        return self._last


@dataclass(frozen=True)
class ChunkedPoint:
    """A `ChunkedObjective` seen from `W`; `mcode.solvers.objective.Point` says what its methods return."""

    objective: ChunkedObjective
    W: Array
    gradient: Array
    diagonal: Array
    shared: Future  # the coefficients of the whole point on the cluster, of which `places` are this point's columns
    ask: Ask
    places: Columns
    token: str

    def columns(self, keep: Columns) -> ChunkedPoint:
        """Return the same point for some of the columns; nothing moves."""
        W, gradient, diagonal = (np.ascontiguousarray(a[:, keep]) for a in (self.W, self.gradient, self.diagonal))
        objective = self.objective.columns(keep)
        return ChunkedPoint(objective, W, gradient, diagonal, self.shared, self.ask, self.places[keep], self.token)

    def value(self) -> Floats:
        """Return the value of each column: one pass."""
        objective = self.objective
        squares = np.einsum("ij,ij->j", self.W[:-1], self.W[:-1], dtype=np.float64)
        fitted = objective.passes.losses(self.W, objective.ask, held_out=False)
        return np.asarray(fitted + 0.5 * objective.penalty * squares)

    def hessian_product(self, D: Array, out: Array) -> Floats:
        """Write the product of each column's Hessian with its direction: one pass."""
        passes, coordinates = self.objective.passes, self.objective.passes.coordinates
        directions = coordinates.out(np.ascontiguousarray(D, np.float32))
        out[...] = coordinates.back(passes.hessian_products(self.shared, directions, self.ask, self.places, self.token))
        found: Floats = add_penalty(out, D, self.objective.penalty, self.objective.free)
        return found

    def inverse_diagonal(self) -> Array:
        """Return 1 / diag of each column's Hessian."""
        diagonal = self.diagonal.copy()
        diagonal[:-1] += self.objective.penalty
        return np.reciprocal(np.maximum(diagonal, SMALLEST_CURVATURE))
