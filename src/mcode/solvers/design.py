"""The design Z = [X | parents | 1] that all columns of a solve share, and the products a solver needs of it.

The solver never asks how Z is stored: a `Design` has `product`, `adjoint`, both at once, and `squared_adjoint`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix
from mcode.solvers.kernels import gather, gather_curved, gather_tiles

Array = NDArray[Any]

# Above this share of non-zero entries one dense matrix product is faster than the sparse loops.
DENSE_ABOVE = 0.25
TILE = 2048  # rows of a tall sparse design whose products are made together
FEWEST_IN_A_TILE = 4  # entries of a column, on average
MOST_AXES = 1500  # columns of a dense X up to which finding its principal axes costs little beside the fit


class Design(Protocol):
    """A matrix Z of shape (n, p), known only by what it does to blocks of b columns."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    microseconds: float  # of a product with one column, roughly

    def product(self, D: Array, out: Array) -> None:
        """Write Z @ D, of shape (n, b)."""

    def adjoint(self, R: Array, out: Array) -> None:
        """Write Z' @ R, of shape (p, b)."""

    def curved(self, D: Array, curvature: Array, along: Array, out: Array) -> None:
        """Write along = curvature * (Z @ D), of shape (n, b), and Z' @ along, of shape (p, b)."""

    def squared_adjoint(self, H: Array, out: Array) -> None:
        """Write (Z * Z)' @ H of shape (p, b), or a close positive bound: it serves as a preconditioner only."""


class DenseDesign:
    """Z as one array; the products are BLAS."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z
        self.shape: tuple[int, int] = (Z.shape[0], Z.shape[1])
        self.dtype = Z.dtype
        self.microseconds = 2e-3 * Z.size / 50
        self.mean_square = np.einsum("ij,ij->j", Z, Z) / max(1, len(Z))

    @cached_property
    def transposed(self) -> Array:
        """Z' in an order of its own: where NumPy's BLAS is not at hand, products with Z.T take half as long again."""
        return np.ascontiguousarray(self.Z.T)

    def product(self, D: Array, out: Array) -> None:
        """Write Z @ D."""
        np.dot(self.Z, D, out=out)

    def adjoint(self, R: Array, out: Array) -> None:
        """Write Z' @ R."""
        np.dot(self.Z.T, R, out=out)

    def curved(self, D: Array, curvature: Array, along: Array, out: Array) -> None:
        """Write curvature * (Z @ D) and Z' @ that."""
        np.dot(self.Z, D, out=along)
        along *= curvature
        np.dot(self.Z.T, along, out=out)

    def squared_adjoint(self, H: Array, out: Array) -> None:
        """Write mean squares times the sum of H: as good a preconditioner here as the exact sum, and free."""
        np.multiply.outer(self.mean_square, H.sum(axis=0), out=out)


class SparseDesign:
    """Z in compressed rows for Z @ D and in compressed columns for Z' @ R: both then gather, none scatters.

    A tall Z is cut into tiles of rows, whose part of R stays in cache: on imdb's 97,000 rows the products of a Hessian
    take half the time. Many columns with few entries in each tile would lose by it.

    Attributes
    ----------
    rows : starts, columns and values of the entries, row by row
    columns : starts, rows and values of the entries, tile by tile and there column by column
        The starts have shape (tiles, p + 1), and rows are counted from the first of their tile.
    squared : the squares of those values
    height : rows of a tile
    """

    def __init__(self, Z: sp.csr_matrix) -> None:
        self.shape: tuple[int, int] = (Z.shape[0], Z.shape[1])
        self.dtype = Z.dtype
        self.microseconds = 2e-3 * Z.nnz / 20
        tall = Z.shape[0] > 2 * TILE and Z.nnz / Z.shape[0] * TILE > Z.shape[1] * FEWEST_IN_A_TILE
        self.height = TILE if tall else max(1, Z.shape[0])
        wide = np.uint64 if Z.nnz >= 2**32 else np.uint32
        self.rows = (Z.indptr.astype(wide), Z.indices.astype(np.uint32), Z.data)
        starts = np.empty((-(-Z.shape[0] // self.height), Z.shape[1] + 1), wide)
        self.columns = (starts, np.empty(Z.nnz, np.uint32), np.empty(Z.nnz, Z.dtype))
        for tile, first_row in enumerate(range(0, Z.shape[0], self.height)):
            last_row = min(first_row + self.height, Z.shape[0])
            first, last = Z.indptr[first_row], Z.indptr[last_row]
            parts = (Z.data[first:last], Z.indices[first:last], Z.indptr[first_row : last_row + 1] - first)
            part = sp.csr_matrix(parts, shape=(last_row - first_row, Z.shape[1])).tocsc()
            starts[tile] = part.indptr + first
            self.columns[1][first:last], self.columns[2][first:last] = part.indices, part.data
        self.squared = self.columns[2] ** 2

    def product(self, D: Array, out: Array) -> None:
        """Write Z @ D."""
        gather(*self.rows, D, out)

    def adjoint(self, R: Array, out: Array) -> None:
        """Write Z' @ R."""
        gather_tiles(*self.columns, self.height, R, out)

    def curved(self, D: Array, curvature: Array, along: Array, out: Array) -> None:
        """Write curvature * (Z @ D) and Z' @ that."""
        gather_curved(*self.rows, *self.columns, self.height, D, curvature, along, out)

    def squared_adjoint(self, H: Array, out: Array) -> None:
        """Write (Z * Z)' @ H."""
        gather_tiles(*self.columns[:2], self.squared, self.height, H, out)


@dataclass(frozen=True)
class Rotation:
    """An exact change of coordinates of X that makes the fit cheaper without moving its penalised optimum.

    `basis` has orthonormal columns and shape (m, narrow): X_narrow = X @ basis, W = basis @ W_narrow. An L2 penalty is
    the same in both coordinates, and directions that X does not have get no coefficient.
    """

    basis: Any

    @classmethod
    def of(cls, X: Matrix) -> Rotation | None:
        """Return the rotation for the rows of X, or None where it would not pay."""
        return cls._merge_lonely_columns(X) if sp.issparse(X) else cls._principal_axes(X)

    @classmethod
    def _principal_axes(cls, X: Array) -> Rotation | None:
        """Return the eigenvectors of X'X: in their coordinates a diagonal preconditioner is nearly the Hessian."""
        if not 2 <= X.shape[1] <= MOST_AXES:
            return None
        # With more columns than rows, a basis of the rows comes first. After that all axes are kept, also those of next
        # to no length: beside one very large feature all others look like that.
        exact = X.astype(np.float64)
        if X.shape[1] <= X.shape[0]:
            return cls(np.linalg.eigh(exact.T @ exact)[1])
        rows = np.linalg.qr(exact.T)[0]
        inside = exact @ rows
        return cls(rows @ np.linalg.eigh(inside.T @ inside)[1])

    @classmethod
    def _merge_lonely_columns(cls, X: Any) -> Rotation | None:
        """Drop columns that are empty in these rows; merge those that occur in one row only into one per such row.

        The optimum spreads the merged coefficient over the columns in proportion to their values. (47,236 columns of
        Reuters become some 10,000.) None where less than a tenth of the columns would go.
        """
        m = X.shape[1]
        counts = np.bincount(X.indices, minlength=m)
        lonely = counts[X.indices] == 1
        row_of_entry = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        rows, group = np.unique(row_of_entry[lonely], return_inverse=True)
        kept = np.flatnonzero(counts > 1)
        n_narrow = len(kept) + len(rows)
        if n_narrow > 0.9 * m:
            return None
        values = X.data[lonely].astype(np.float64)
        norms = np.sqrt(np.bincount(group, weights=values**2, minlength=len(rows)))
        usable = norms[group] > 0
        entries = np.concatenate([np.ones(len(kept)), values[usable] / norms[group[usable]]])
        full = np.concatenate([kept, X.indices[lonely][usable]])
        narrow = np.concatenate([np.arange(len(kept)), len(kept) + group[usable]])
        return cls(sp.csr_matrix((entries, (full, narrow)), shape=(m, n_narrow)))

    def narrow(self, X: Matrix, dtype: Any) -> Matrix:
        """Return X in the new coordinates."""
        if sp.issparse(X):
            return sp.csr_matrix(X @ self.basis.astype(dtype))
        return np.asarray((X.astype(np.float64) @ self.basis).astype(dtype))


def stack(X: Matrix, parents: Array, dtype: Any) -> Matrix:
    """Return Z = [X | parents | 1] in one storage, sparse where few entries are non-zero."""
    n = X.shape[0]
    size = max(1, n * (X.shape[1] + parents.shape[1]))
    filled = (X.nnz if sp.issparse(X) else np.count_nonzero(X)) + np.count_nonzero(parents)
    if filled > DENSE_ABOVE * size:
        Z = np.empty((n, X.shape[1] + parents.shape[1] + 1), dtype)
        Z[:, : X.shape[1]] = X.toarray() if sp.issparse(X) else X
        Z[:, X.shape[1] : -1] = parents
        Z[:, -1] = 1
        return Z
    blocks: list[Any] = [sp.csr_matrix(X), sp.csr_matrix(parents), np.ones((n, 1))]
    return sp.csr_matrix(sp.hstack(blocks, format="csr", dtype=dtype))


def as_design(Z: Matrix) -> Design:
    """Return the design of a stacked matrix."""
    return SparseDesign(Z) if sp.issparse(Z) else DenseDesign(Z)
