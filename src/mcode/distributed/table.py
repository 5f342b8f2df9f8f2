"""Tables in partitions: what a worker has to do to get at the rows of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Matrix, column_names
from mcode.data import Dataset
from mcode.distributed.cluster import Cluster
from mcode.errors import InputError
from mcode.models.conditional import check_rows
from mcode.models.encoding import Codes, ResponseEncoding

Source: TypeAlias = Any  # a `FilePart`, or the list that `Blocks` is made of


@dataclass(frozen=True)
class Rows:
    """Some rows of a table in memory.

    Attributes
    ----------
    X, Y : context and codes of the responses
    ids : (n,) array that names the rows among all
    data : Dataset that they were read as, None where they were arrays
    """

    X: Matrix
    Y: Codes
    ids: NDArray[Any]
    data: Dataset | None = None


class Part(Protocol):
    """A partition that knows how to get its rows."""

    def rows(self, encoding: ResponseEncoding) -> Rows:
        """Read and check the rows."""

    def inspect(self) -> ResponseEncoding:
        """Check what has to be checked once, and return the values that the responses have in this partition."""


@dataclass(frozen=True)
class Table:
    """A table in partitions.

    Attributes
    ----------
    sources : what stands for each partition in the arguments of a task
    lengths : rows of each partition
    n_features, n_responses : int
    encoding : ResponseEncoding where it is known before any row is read
    rereadable : whether tasks may read rows anew in every pass at little cost: files yes, Dask's blocks no
    collections : what the sources were taken from; Dask drops blocks on the workers when nobody holds their collection
    """

    sources: Sequence[Source]
    lengths: Sequence[int]
    n_features: int
    n_responses: int
    response_names: Sequence[str]
    encoding: ResponseEncoding | None = None
    rereadable: bool = False
    collections: tuple[Any, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return int(sum(self.lengths))


@dataclass(frozen=True)
class Blocks:
    """A partition that Dask made: blocks of X and Y that belong together."""

    X: Any
    Y: Any
    start: int
    number: int
    n_features: int
    names: Sequence[str]

    def rows(self, encoding: ResponseEncoding) -> Rows:
        """Check the blocks."""
        with in_partition(self.number):
            context = self.X.tocsr() if hasattr(self.X, "tocsr") else self.X
            X, Y = check_rows(context, self.Y, encoding, self.n_features)
        return Rows(X, Y, np.arange(self.start, self.start + len(Y)))

    def inspect(self) -> ResponseEncoding:
        """Return the values that the responses have in these blocks."""
        with in_partition(self.number):
            found = column_names(self.Y)
            if found is not None and found != list(self.names):
                raise InputError("Y", f"its columns are {found[:5]}", f"other partitions have {list(self.names[:5])}")
            return ResponseEncoding(ResponseEncoding.of(self.Y).values, list(self.names))


def as_part(source: Source) -> Part:
    """Return the partition that stands in the arguments of a task."""
    part: Part = Blocks(*source) if isinstance(source, list) else source
    return part


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """Name the partition in what is wrong with its rows."""
    try:
        yield
    except InputError as error:
        raise InputError(error.argument, f"partition {number}: {error.came}", error.allowed) from None


def from_dask(cluster: Cluster, X: Any, Y: Any) -> Table:
    """Return the table of a Dask array or dataframe X and a Y that is cut like it, or can be."""
    for name, part in (("X", X), ("Y", Y)):
        if type(part).__module__.split(".", 1)[0] != "dask" or not hasattr(part, "to_delayed"):
            raise InputError(
                name, f"it is a {type(part).__name__}", "X and Y are both Dask arrays or dataframes, or both in memory"
            )
    X, Y = _two_dimensional(X, "X"), _two_dimensional(Y, "Y")
    Y = _cut_alike(X, Y)
    x_blocks, y_blocks = _blocks(X), _blocks(Y)
    if len(x_blocks) != len(y_blocks):
        raise InputError(
            "X and Y", f"they have {len(x_blocks)} and {len(y_blocks)} partitions", "cut both at the same rows"
        )
    lengths = _lengths(cluster, X, x_blocks)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).tolist()
    names = column_names(Y) if not isinstance(Y, da.Array) else None
    n_features, n_responses = _width(X), _width(Y)
    names = names or [str(j) for j in range(n_responses)]
    sources = [
        [x, y, start, k, n_features, names]
        for k, (x, y, start, length) in enumerate(zip(x_blocks, y_blocks, starts, lengths, strict=True))
        if length
    ]
    if not sources:
        raise InputError("X", "it has no rows", "at least one row is needed")
    return Table(sources, [n for n in lengths if n], n_features, n_responses, names, collections=(X, Y))


def _two_dimensional(table: Any, name: str) -> Any:
    if table.ndim == 1:
        if name == "X":
            raise InputError("X", "it has 1 dimension", "a table with rows and columns is expected")
        return table[:, None] if isinstance(table, da.Array) else table.to_frame()
    return table.rechunk({1: -1}) if isinstance(table, da.Array) and len(table.chunks[1]) > 1 else table


def _cut_alike(X: Any, Y: Any) -> Any:
    """Return Y with the cuts of X, where both are known."""
    both = isinstance(X, da.Array) and isinstance(Y, da.Array)
    if not both or np.isnan(X.chunks[0]).any() or np.isnan(Y.chunks[0]).any():
        return Y
    if X.shape[0] != Y.shape[0]:
        raise InputError(
            "X and Y", f"they have {X.shape[0]} and {Y.shape[0]} rows", "each row of X belongs to one row of Y"
        )
    return Y if X.chunks[0] == Y.chunks[0] else Y.rechunk({0: X.chunks[0]})


def _blocks(table: Any) -> list[Any]:
    return list(np.ravel(table.to_delayed()))


def _lengths(cluster: Cluster, X: Any, blocks: list[Any]) -> list[int]:
    if isinstance(X, da.Array) and not np.isnan(X.chunks[0]).any():
        return [int(n) for n in X.chunks[0]]
    return [int(n) for n in cluster.gather(cluster.compute(_n_rows, blocks), "count the rows")]


def _n_rows(block: Any) -> int:
    return int(block.shape[0])


def _width(table: Any) -> int:
    width = table.shape[1] if isinstance(table, da.Array) else len(table.columns)
    if np.isnan(width):
        raise InputError("X", "its number of columns is not known to Dask", "call compute_chunk_sizes() first")
    return int(width)


def lazily(function: Any, table: Table, *args: Any, columns: int | None, dtype: Any = np.float64) -> da.Array:
    """Return function(source, *args) of all partitions as one Dask array that is computed when it is asked for."""
    call = dask.delayed(function, pure=False)
    tail = () if columns is None else (columns,)
    return da.concatenate(
        [
            da.from_delayed(call(source, *args), (n, *tail), dtype=dtype)
            for source, n in zip(table.sources, table.lengths, strict=True)
        ]
    )
