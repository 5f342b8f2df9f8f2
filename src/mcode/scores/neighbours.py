"""The k nearest rows, exactly, with all ties, with copies counted, and in bounded memory.

Blocks of approximate squared distances come from matrix products in float32. A row's candidates are all rows within its
k-th smallest approximate distance plus a bound on the rounding error; their distances are then computed again, from
differences in float64, so the result is that of exact search. Where float32 leaves too many candidates (distances tiny
against the spread of the data) the row is searched again in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numba import njit
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix, dense
from mcode.scores.products import squared_lengths
from mcode.solvers.threads import one_blas_thread

_BLOCK_BYTES = 32 << 20  # of one block of approximate distances, per worker
_FEWEST_ROWS = 64  # per block: fewer would make the matrix product inefficient
_KEPT_NEIGHBOURS = 40_000_000  # in all; above it they are found again when they are needed again (12 bytes each)
_DENSE_BYTES = 512 << 20  # the largest that a sparse matrix may become which is searched as a dense one
_DENSE_SHARE = 0.07  # the least share of its values that are not 0; below it products of sparse rows are faster
_TIE = 1e-12  # squared distances closer than this, relatively, are equal

Array = NDArray[Any]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Neighbourhoods:
    """Neighbours of a block of query rows, as lists laid end to end.

    Attributes
    ----------
    first : int
        Number of the block's first query row.
    starts : ndarray of shape (b + 1,)
        Query row ``first + i`` has the entries from ``starts[i]`` to ``starts[i + 1]``.
    index, distance : ndarray
        Neighbours among the distinct reference rows, and how far they are.
    k_distance : ndarray of shape (b,)
        Distance of the k-th neighbour of each query row, every copy counted.
    """

    first: int
    starts: Indices
    index: NDArray[np.int32]
    distance: Floats
    k_distance: Floats


class NeighbourSearch:
    """Neighbours of query rows among distinct reference rows.

    Iterate to get `Neighbourhoods`, block by block in order, as often as needed.

    Parameters
    ----------
    queries, reference : matrices of shape (n, m) and (u, m), float64, both dense or both sparse
    counts : ndarray of shape (u,), int64
        How many copies each reference row stands for.
    k : int
        At most the number of copies that a query row may have as neighbours.
    leave_out_self : bool
        Query row i is reference row i, and one copy of it is no neighbour of itself.
    """

    def __init__(self, queries: Matrix, reference: Matrix, counts: Indices, k: int, leave_out_self: bool) -> None:
        if not isinstance(reference, np.ndarray) and _better_dense(reference):
            queries, reference = (np.asarray(dense(queries)), np.asarray(dense(reference)))
        rows = _DenseRows if isinstance(reference, np.ndarray) else _SparseRows
        self._source = rows(queries, reference)
        self._counts, self._k, self._leave_out_self = counts, k, leave_out_self
        self._n_queries, self._n_reference = queries.shape[0], reference.shape[0]
        self._kept: list[Neighbourhoods] | None = None

    def __iter__(self) -> Iterator[Neighbourhoods]:
        if self._kept is not None:
            yield from self._kept
            return
        kept, n_entries = [], 0
        for block in self._search():
            yield block
            n_entries += block.index.size
            if n_entries <= _KEPT_NEIGHBOURS:
                kept.append(block)
            else:
                kept.clear()
        if n_entries <= _KEPT_NEIGHBOURS:
            self._kept = kept

    def _search(self) -> Iterator[Neighbourhoods]:
        size = max(_FEWEST_ROWS, _BLOCK_BYTES // (4 * self._n_reference))
        firsts = range(0, self._n_queries, size)
        n_workers = min(effective_n_jobs(-1), len(firsts))
        # Each worker has a block of its own: BLAS threads inside one product would only wait for each other.
        with one_blas_thread(), ThreadPoolExecutor(n_workers) as workers:
            yield from workers.map(lambda first: self._block(first, min(first + size, self._n_queries)), firsts)

    def _block(self, first: int, last: int) -> Neighbourhoods:
        own = np.arange(first, last, dtype=np.int64) if self._leave_out_self else np.full(last - first, -1, np.int64)
        n_others = self._n_reference - int(self._leave_out_self)
        n_nearest = min(self._k, n_others)
        starts, index = self._source.candidates(first, last, own, n_nearest)
        squares = self._source.exact(first, starts, index)
        return Neighbourhoods(first, *_within_k_distance(starts, index, squares, own, self._counts, self._k))


def _better_dense(sparse: Any) -> bool:
    """Whether a sparse matrix is searched faster as a dense one, and fits into memory so."""
    size = sparse.shape[0] * sparse.shape[1]
    return bool(sparse.nnz >= _DENSE_SHARE * size and size * 8 <= _DENSE_BYTES)


class _DenseRows:
    """Approximate and exact distances between dense rows."""

    def __init__(self, queries: Any, reference: Any) -> None:
        self._queries, self._reference = np.ascontiguousarray(queries), np.ascontiguousarray(reference)
        self._middle = self._reference.mean(axis=0)
        centred = self._reference - self._middle  # short rows: the rounding error grows with their length
        self._unit = float(np.abs(centred).max()) or 1.0  # float32 neither overflows nor underflows
        centred /= self._unit
        squares = squared_lengths(centred)
        # One product gives |b|^2 - 2ab: the rows [b, |b|^2] against the queries [-2a, 1].
        self._double = np.hstack([centred, squares[:, None]])
        self._single = self._double.astype(np.float32)

    def candidates(self, first: int, last: int, own: Indices, n_nearest: int) -> tuple[Indices, NDArray[np.int32]]:
        """Return lists of candidates, which hold every neighbour."""
        A = (self._queries[first:last] - self._middle) / self._unit
        squares = squared_lengths(A)
        A = np.hstack([-2.0 * A, np.ones((A.shape[0], 1))])
        most = 4 * n_nearest + 64
        with np.errstate(over="ignore", invalid="ignore"):  # a query beyond float32 is searched again below
            values = A.astype(np.float32) @ self._single.T
        starts, index = _candidates(values, squares, own, n_nearest, self._error(np.float32), most)
        sizes = np.diff(starts)
        again = np.flatnonzero((sizes > most) | (sizes < n_nearest))
        if not again.size:
            return starts, index
        values = A[again] @ self._double.T
        more = _candidates(values, squares[again], own[again], n_nearest, self._error(np.float64), values.shape[1])
        return _replace_lists(starts, index, again, *more)

    def exact(self, first: int, starts: Indices, index: NDArray[np.int32]) -> Floats:
        """Squared distances to the candidates, from differences."""
        return np.asarray(_exact_dense(self._queries, self._reference, first, starts, index))

    def _error(self, precision: type[np.floating[Any]]) -> float:
        """Bound on the rounding error of |b|^2 - 2ab, as a multiple of |b|^2 + 2|a||b|."""
        return float((self._reference.shape[1] + 8) * np.finfo(precision).eps / 2)


class _SparseRows:
    """Approximate and exact distances between sparse rows."""

    def __init__(self, queries: Any, reference: Any) -> None:
        self._queries, self._reference = sp.csr_matrix(queries), sp.csr_matrix(reference)
        self._transposed = sp.csr_matrix(self._reference.T)
        self._squares = squared_lengths(self._reference)

    def candidates(self, first: int, last: int, own: Indices, n_nearest: int) -> tuple[Indices, NDArray[np.int32]]:
        """Return lists of candidates, which hold every neighbour."""
        A = self._queries[first:last]
        squares = squared_lengths(A)
        values = np.asarray((A @ self._transposed).toarray(), dtype=np.float64)
        values *= -2.0
        values += self._squares
        longest = int(np.diff(A.indptr).max(initial=0))
        error = (longest + 8) * np.finfo(np.float64).eps
        starts, index = _candidates(values, squares, own, n_nearest, error, values.shape[1])
        return starts, index

    def exact(self, first: int, starts: Indices, index: NDArray[np.int32]) -> Floats:
        """Squared distances to the candidates, from differences."""
        Q, R = self._queries, self._reference
        queries = (Q.indptr, Q.indices, Q.data)
        return np.asarray(_exact_sparse(*queries, R.indptr, R.indices, R.data, first, starts, index))


@njit(cache=True, nogil=True)
def _candidates(
    values: Array, squares: Array, own: Array, n_nearest: int, error: float, most: int
) -> tuple[Array, Array]:
    """Rows whose approximate value is within the n_nearest-th smallest plus the rounding error.

    A list longer than `most` is cut at `most` + 1 entries: the caller then asks again in higher precision.
    """
    n_rows, n_reference = values.shape
    starts = np.zeros(n_rows + 1, np.int64)
    index = np.empty(n_rows * (n_nearest + 8), np.int32)
    passed = np.empty(n_reference, np.int32)
    heap = np.empty(n_nearest, values.dtype)
    used = 0
    for i in range(n_rows):
        length = np.sqrt(squares[i])
        size, n_passed = 0, 0
        bound = np.inf
        for j in range(n_reference):
            value = values[i, j]
            if value <= bound and j != own[i]:
                passed[n_passed] = j
                n_passed += 1
                if size < n_nearest:
                    size += 1
                    _sift_up(heap, size - 1, value)
                elif value < heap[0]:
                    _sift_down(heap, size, value)
                if size == n_nearest:
                    # A row b within the distance r has |b| <= |a| + r, so its error is at most this.
                    reach = length + np.sqrt(max(heap[0] + squares[i], 0.0))
                    bound = heap[0] + 2.0 * error * (reach * reach + 2.0 * length * reach + squares[i])
        found = 0
        for at in range(n_passed):
            if values[i, passed[at]] <= bound and found <= most:
                if used == index.size:
                    larger = np.empty(2 * index.size, np.int32)
                    larger[:used] = index
                    index = larger
                index[used] = passed[at]
                used += 1
                found += 1
        starts[i + 1] = used
    return starts, index[:used].copy()


@njit(cache=True, nogil=True)
def _sift_up(heap: Array, at: int, value: float) -> None:
    """Add `value` at the end of a heap with the largest on top."""
    while at > 0:
        above = (at - 1) // 2
        if heap[above] >= value:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = value


@njit(cache=True, nogil=True)
def _sift_down(heap: Array, size: int, value: float) -> None:
    """Replace the largest, on top, by `value`."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= value:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = value


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _exact_dense(queries: Array, reference: Array, first: int, starts: Array, index: Array) -> Array:
    squares = np.empty(index.size)
    for i in range(starts.size - 1):
        for at in range(starts[i], starts[i + 1]):
            total = 0.0
            for c in range(reference.shape[1]):
                apart = queries[first + i, c] - reference[index[at], c]
                total += apart * apart
            squares[at] = total
    return squares


@njit(cache=True, nogil=True)
def _exact_sparse(
    q_ptr: Array,
    q_col: Array,
    q_val: Array,
    r_ptr: Array,
    r_col: Array,
    r_val: Array,
    first: int,
    starts: Array,
    index: Array,
) -> Array:
    squares = np.empty(index.size)
    for i in range(starts.size - 1):
        for at in range(starts[i], starts[i + 1]):
            a, a_end = q_ptr[first + i], q_ptr[first + i + 1]
            b, b_end = r_ptr[index[at]], r_ptr[index[at] + 1]
            total = 0.0
            while a < a_end or b < b_end:
                if b == b_end or (a < a_end and q_col[a] < r_col[b]):
                    apart = q_val[a]
                    a += 1
                elif a == a_end or r_col[b] < q_col[a]:
                    apart = r_val[b]
                    b += 1
                else:
                    apart = q_val[a] - r_val[b]
                    a += 1
                    b += 1
                total += apart * apart
            squares[at] = total
    return squares


@njit(cache=True, nogil=True)
def _within_k_distance(
    starts: Array, index: Array, squares: Array, own: Array, counts: Array, k: int
) -> tuple[Array, Array, Array, Array]:
    """Cut each list of candidates at the distance at which k copies are reached, ties included."""
    n_rows = starts.size - 1
    k_distance = np.empty(n_rows)
    new_starts = np.zeros(n_rows + 1, np.int64)
    # A row's own copies are neighbours at distance 0; its list of candidates does not hold it.
    new_index = np.empty(index.size + n_rows, np.int32)
    distance = np.empty(index.size + n_rows)
    used = 0
    for i in range(n_rows):
        members = squares[starts[i] : starts[i + 1]]
        order = np.argsort(members)
        reached = 0
        if own[i] >= 0 and counts[own[i]] > 1:
            reached = counts[own[i]] - 1
            new_index[used] = own[i]
            distance[used] = 0.0
            used += 1
        limit = 0.0
        for at in order:
            if reached >= k and members[at] > limit * (1.0 + _TIE):
                break
            if reached < k:
                limit = members[at]
            reached += counts[index[starts[i] + at]]
            new_index[used] = index[starts[i] + at]
            distance[used] = np.sqrt(members[at])
            used += 1
        k_distance[i] = np.sqrt(limit)
        new_starts[i + 1] = used
    return new_starts, new_index[:used].copy(), distance[:used].copy(), k_distance


def _replace_lists(
    starts: Indices, index: NDArray[np.int32], rows: Indices, new_starts: Indices, new_index: NDArray[np.int32]
) -> tuple[Indices, NDArray[np.int32]]:
    """Put other lists in the place of those of `rows`."""
    lists = [index[a:b] for a, b in pairwise(starts)]
    for row, (a, b) in zip(rows, pairwise(new_starts), strict=True):
        lists[row] = new_index[a:b]
    sizes = np.array([len(each) for each in lists], dtype=np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), np.concatenate(lists)
