"""A partition made ready for the solver, and what a pass asks of it. Everything here runs on the workers.

The rows of a partition are put together by fold: a column that leaves fold f out goes over the pieces of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.distributed.deal import Deal
from mcode.distributed.storage import curvatures, kept
from mcode.distributed.table import Source, as_part
from mcode.models.encoding import Codes, ResponseEncoding
from mcode.solvers.design import Design, as_design, stack
from mcode.solvers.kernels import residual_and_curvature
from mcode.solvers.memory import empty
from mcode.solvers.objective import losses as row_losses
from mcode.solvers.threads import run_all

Array = NDArray[Any]
Columns = NDArray[np.intp]

ROWS_AT_ONCE = 4096  # of a dense piece: its logits stay in cache from the product to the sum


@dataclass(frozen=True)
class Coordinates:
    """In which coordinates the context is fitted: X_fit = (X - center) / scale, rotated to its principal axes.

    The intercept takes up the centre. The basis is orthonormal, so that an L2 penalty is the same in both, and no
    optimum moves. Rows are never rotated: coefficients are, on their way out, and their sums on the way back.

    Attributes
    ----------
    center, scale : (m,) arrays, or None where the context is sparse
    basis : (m, m) array of principal axes, or None where they are not looked for
    mean_square : (m,) array of the mean squares along the axes
    parents : whether responses are inputs
    context : whether the context is
    """

    center: Floats | None
    scale: Floats | None
    basis: Floats | None
    parents: bool
    context: bool = True
    mean_square: Floats | None = None

    def out(self, W: Array) -> Array:
        """Return coefficients as the rows need them."""
        if self.basis is None:
            return W
        m = len(self.basis)
        return np.ascontiguousarray(np.concatenate([self.basis @ W[:m], W[m:]]), W.dtype)

    def back(self, sums: Array) -> Array:
        """Return sums over rows as the solver needs them."""
        if self.basis is None:
            return sums
        m = len(self.basis)
        return np.ascontiguousarray(np.concatenate([self.basis.T @ sums[:m], sums[m:]]), sums.dtype)

    def diagonal(self, sums: Array) -> Array:
        """Return the diagonal of the Hessian; along the axes, mean squares times the summed curvature."""
        if self.basis is None or self.mean_square is None:
            return sums
        return np.concatenate([np.multiply.outer(self.mean_square, sums[-1]), sums[len(self.basis) :]])

    def stack(self, X: Matrix, Y: Codes) -> Matrix:
        """Return [context | parents | 1] of some rows in single precision."""
        inputs = Y if self.parents else Y[:, :0]
        if not self.context:
            return stack(np.empty((len(Y), 0), np.float32), inputs, np.float32)
        if self.center is None or self.scale is None:
            return stack(X, inputs, np.float32)
        m = X.shape[1]
        Z = np.empty((len(Y), m + inputs.shape[1] + 1), np.float32)  # no copy on the way: every pass may come here
        np.subtract(np.asarray(X), self.center.astype(X.dtype), out=Z[:, :m], casting="same_kind")
        Z[:, :m] /= self.scale.astype(np.float32)
        Z[:, m:-1] = inputs
        Z[:, -1] = 1
        return Z


@dataclass(frozen=True)
class Piece:
    """Rows of one partition and fold, ready for products."""

    fold: int
    Z: Matrix
    design: Design
    Y: Codes


@dataclass(frozen=True)
class Recipe:
    """How the pieces of a partition are made, each time they are needed and not kept.

    Attributes
    ----------
    source : the partition
    key : text that names these pieces among all
    """

    source: Source
    key: str
    encoding: ResponseEncoding
    coordinates: Coordinates
    deal: Deal

    def make(self) -> list[Piece]:
        """Read the rows and put them together by fold."""
        rows = as_part(self.source).rows(self.encoding)
        fold = self.deal.fold_of(rows.ids)
        pieces = []
        for f in range(self.deal.n_folds):
            mine = np.flatnonzero(fold == f)
            for some in _cuts(mine, len(mine) if sp.issparse(rows.X) else ROWS_AT_ONCE):
                Z = self.coordinates.stack(rows.X[some], rows.Y[some])
                pieces.append(Piece(f, Z, as_design(Z), rows.Y[some]))
        return pieces


def _cuts(rows: Columns, size: int) -> list[Columns]:
    return [rows[at : at + size] for at in range(0, len(rows), max(1, size))]


@dataclass(frozen=True)
class Prepared:
    """Pieces that a worker keeps."""

    key: str
    pieces: list[Piece]


def prepare(keyed: list[Any], encoding: ResponseEncoding, coordinates: Coordinates, deal: Deal) -> Prepared:
    """Make the pieces of a partition, given as [source, key]."""
    source, key = keyed
    return Prepared(key, Recipe(source, key, encoding, coordinates, deal).make())


def opened(chunk: Prepared | Recipe) -> list[Piece]:
    """Return the pieces of a partition: those that are kept, or made anew."""
    return chunk.pieces if isinstance(chunk, Prepared) else kept(chunk.key, chunk.make)


@dataclass(frozen=True)
class Ask:
    """The columns of a pass: column c predicts `response[c]` from the rows outside of fold `fold[c]` (-1: all rows)."""

    response: Columns
    fold: Columns

    def outside(self, fold: int) -> Columns:
        """Return the columns that are fitted on the rows of a fold."""
        return np.flatnonzero(self.fold != fold)

    def inside(self, fold: int) -> Columns:
        """Return the columns that hold the rows of a fold out."""
        return np.flatnonzero(self.fold == fold)

    def take(self, columns: Columns) -> Ask:
        """Return some of the columns."""
        return Ask(self.response[columns], self.fold[columns])


@dataclass(frozen=True)
class Slopes:
    """Sums of a gradient pass, of shape (p, b): Z' residual, and the diagonal of Z' curvature Z."""

    gradient: Array
    diagonal: Array

    def __add__(self, other: Slopes) -> Slopes:
        return Slopes(self.gradient + other.gradient, self.diagonal + other.diagonal)


class _Scratch:
    """Memory that is used again for every piece: fresh memory would cost as much as the products."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self._arrays: dict[str, Array] = {}

    def get(self, name: str, rows: int, columns: int) -> Array:
        """Return an array of this shape, with anything in it."""
        if name not in self._arrays or self._arrays[name].size < rows * columns:
            self._arrays[name] = empty((rows * columns,), self.dtype)
        return self._arrays[name][: rows * columns].reshape(rows, columns)


class _Sums:
    """Sums over rows for the columns that go over one fold, in double precision."""

    def __init__(self, columns: Columns, p: int, *coefficients: Array) -> None:
        self.columns = columns
        self.coefficients = [np.ascontiguousarray(W[:, columns]) for W in coefficients]
        self.first, self.second = np.zeros((p, len(columns))), np.zeros((p, len(columns)))


def slopes(chunks: Sequence[Prepared | Recipe], W: Array, ask: Ask, token: str | None) -> Slopes:
    """Return the sums over the rows of some partitions at coefficients W.

    The precision of the arithmetic is that of W. With a `token` the curvature is remembered under it, for Hessian
    products at the same W.
    """
    sums: dict[int, _Sums] = {}
    scratch = _Scratch(W.dtype)

    def run() -> None:
        for chunk in chunks:
            pieces = opened(chunk)
            before = curvatures.pop(chunk.key, ("", [None] * len(pieces)))[1]
            remembered: list[Array | None] = []
            for piece, old in zip(pieces, before, strict=True):
                at = sums.setdefault(piece.fold, _Sums(ask.outside(piece.fold), len(W), W))
                if not len(at.columns):
                    remembered.append(None)
                    continue
                design = piece.design if W.dtype == np.float32 else as_design(piece.Z.astype(W.dtype))
                residual, curvature = _at(design, piece.Y, at.coefficients[0], ask.response[at.columns], scratch)
                part = scratch.get("part", len(W), len(at.columns))
                design.adjoint(residual, part)
                at.first += part
                design.squared_adjoint(curvature, part)
                at.second += part
                remembered.append(_copied(curvature, old) if token else None)
            if token:
                curvatures[chunk.key] = (token, remembered)

    run_all([run], side_by_side=False)
    gradient, diagonal = np.zeros_like(W), np.zeros_like(W)
    for at in sums.values():
        gradient[:, at.columns] += at.first
        diagonal[:, at.columns] += at.second
    return Slopes(gradient, diagonal)


def _at(design: Design, Y: Codes, W: Array, response: Columns, scratch: _Scratch) -> tuple[Array, Array]:
    eta, residual, curvature = (scratch.get(name, len(Y), W.shape[1]) for name in ("eta", "residual", "curvature"))
    design.product(W, eta)
    residual_and_curvature(eta, _targets(Y, response), residual, curvature)
    return residual, curvature


def _targets(Y: Codes, response: Columns) -> Codes:
    """Return the responses that the columns predict, row by row in memory (Y[:, response] is not)."""
    d = Y.shape[1]
    if len(response) % d == 0 and np.array_equal(response, np.tile(np.arange(d), len(response) // d)):
        return np.tile(Y, (1, len(response) // d))
    return np.take(Y, response, axis=1)


def _copied(values: Array, memory: Array | None) -> Array:
    """Return a copy in single precision, in memory that is there already if it fits."""
    if memory is None or memory.shape != values.shape:
        return values.astype(np.float32)
    memory[...] = values
    return memory


def hessian_products(
    chunks: Sequence[Prepared | Recipe], W: Array, D: Array, ask: Ask, columns: Columns, token: str
) -> Array:
    """Return Z' (curvature at W * (Z D)) over the rows of some partitions, in single precision, shape of D.

    `columns` are those of `ask` and W to which the columns of D belong.
    """
    part = ask.take(columns)
    W_now = np.ascontiguousarray(W[:, columns], np.float32)
    sums: dict[int, _Sums] = {}
    scratch = _Scratch(np.float32)

    def run() -> None:
        for chunk in chunks:
            known, remembered = curvatures.get(chunk.key, ("", []))
            for k, piece in enumerate(opened(chunk)):
                at = sums.setdefault(piece.fold, _Sums(part.outside(piece.fold), len(D), W_now, D))
                if not len(at.columns):
                    continue
                curvature = remembered[k] if known == token else None
                if curvature is None:
                    curvature = _at(piece.design, piece.Y, at.coefficients[0], part.response[at.columns], scratch)[1]
                elif curvature.shape[1] != len(at.columns):
                    some = np.searchsorted(ask.outside(piece.fold), columns[at.columns])
                    curvature = np.take(curvature, some, axis=1)
                along = scratch.get("along", len(piece.Y), len(at.columns))
                product = scratch.get("part", len(D), len(at.columns))
                piece.design.curved(at.coefficients[1], curvature, along, product)
                at.first += product

    run_all([run], side_by_side=False)
    out = np.zeros(D.shape, np.float32)
    for at in sums.values():
        out[:, at.columns] += at.first
    return out


def losses(chunks: Sequence[Prepared | Recipe], W: Array, ask: Ask, held_out: bool) -> Floats:
    """Return the summed loss of each column on the rows that it holds out, or on those it is fitted on, shape (b,)."""
    out = np.zeros(W.shape[1])

    def run() -> None:
        for chunk in chunks:
            for piece in opened(chunk):
                columns = ask.inside(piece.fold) if held_out else ask.outside(piece.fold)
                if not len(columns):
                    continue
                eta = np.empty((len(piece.Y), len(columns)), np.float32)
                piece.design.product(np.ascontiguousarray(W[:, columns], np.float32), eta)
                out[columns] += row_losses(eta, _targets(piece.Y, ask.response[columns])).sum(axis=0, dtype=np.float64)

    run_all([run], side_by_side=False)
    return out


def squared_rises(chunks: Sequence[Prepared | Recipe], W: Array, before: Array, ask: Ask) -> Floats:
    """Return the summed squares, over held-out rows, of how much larger the loss is at W than it was, shape (b,)."""
    out = np.zeros(W.shape[1])

    def run() -> None:
        for chunk in chunks:
            for piece in opened(chunk):
                columns = ask.inside(piece.fold)
                if not len(columns):
                    continue
                target = _targets(piece.Y, ask.response[columns])
                rise = np.zeros((len(piece.Y), len(columns)), np.float32)
                for sign, coefficients in ((1.0, W), (-1.0, before)):
                    eta = np.empty_like(rise)
                    piece.design.product(np.ascontiguousarray(coefficients[:, columns], np.float32), eta)
                    rise += np.float32(sign) * row_losses(eta, target)
                out[columns] += np.einsum("ij,ij->j", rise, rise, dtype=np.float64)

    run_all([run], side_by_side=False)
    return out


def anew(
    keyed: list[Any], encoding: ResponseEncoding, coordinates: Coordinates, deal: Deal, function: Any, *args: Any
) -> Any:
    """Return what a pass asks of one partition, given as [source, key], that is neither kept nor read from a file."""
    source, key = keyed
    return function([Recipe(source, key, encoding, coordinates, deal)], *args)
