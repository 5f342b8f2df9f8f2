"""The loops that NumPy and BLAS do not have, compiled by numba.

Every kernel works on a block of columns stored row by row, so the innermost loop runs over columns: it is the loop the
compiler turns into vector instructions. Sparse indices are unsigned because signed ones cost a test for negative
values in every access (measured: 20 instead of 9 GFlop/s).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from mcode.solvers.row_sums import make_row_sum

Array = NDArray[Any]

# Reordering sums would undo the rounding trick in the exponential, so "reassoc" is left out.
# Python's error model tests every divisor for zero, and that test keeps the loop from being vectorised.
_KEEP_ORDER = {"contract", "nnan", "ninf", "nsz", "arcp"}

CELLS_IN_A_ROW = 512  # of the pointwise loops, about
ROWS_PER_VECTOR = 16  # of numbers of single precision in the widest vector there is
PIECE = 1024  # entries of a sparse row that are summed before they join its total


def _make_gather_columns(lanes: int, row_sum: Any) -> Any:
    """Compile the sparse product for `lanes` columns from `column` on; `piece` has room for one row of `out`.

    Where `factor` has rows, the result is multiplied by it cell by cell, while it is still in cache. Each width has a
    name of its own: compiled code is linked by name, and two processes that fill one empty cache at the same time
    would otherwise put the loop of one width in the place of another, which then writes past the end of a row.
    """

    def gather_columns(
        indptr: Array, indices: Array, data: Array, D: Array, column: int, factor: Array, add: bool, out: Array,
        piece: Array,
    ) -> None:  # fmt: skip
        scaled = factor.shape[0] > 0
        for i in range(out.shape[0]):
            k, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
            if not add:
                row_sum(indices, data, k, min(k + PIECE, end), D, column, out, i)
                k += PIECE
            while k < end:
                row_sum(indices, data, k, min(k + PIECE, end), D, column, piece, 0)
                k += PIECE
                for c in range(column, column + lanes):
                    out[i, c] += piece[0, c]
            if scaled:
                for c in range(column, column + lanes):
                    out[i, c] *= factor[i, c]

    gather_columns.__name__ = gather_columns.__qualname__ = f"gather_{lanes}_columns"
    return njit(gather_columns, nogil=True, fastmath=True)


_gather_32, _gather_16, _gather_8, _gather_1 = (
    _make_gather_columns(lanes, make_row_sum(lanes)) for lanes in (32, 16, 8, 1)
)


@njit(cache=True, nogil=True, fastmath=True)
def _gather(indptr: Array, indices: Array, data: Array, D: Array, factor: Array, add: bool, out: Array) -> None:
    n_columns = D.shape[1]
    piece = np.empty((1, n_columns), D.dtype)
    column = 0
    while column + 32 <= n_columns:
        _gather_32(indptr, indices, data, D, column, factor, add, out, piece)
        column += 32
    if column + 16 <= n_columns:
        _gather_16(indptr, indices, data, D, column, factor, add, out, piece)
        column += 16
    while column + 8 <= n_columns:
        _gather_8(indptr, indices, data, D, column, factor, add, out, piece)
        column += 8
    if (
        column < n_columns and n_columns >= 8 and not add
    ):  # eight columns that overlap those before: the same sums again
        _gather_8(indptr, indices, data, D, n_columns - 8, factor, add, out, piece)
        column = n_columns
    while column < n_columns:
        _gather_1(indptr, indices, data, D, column, factor, add, out, piece)
        column += 1


@njit(cache=True, nogil=True, fastmath=True)
def gather(indptr: Array, indices: Array, data: Array, D: Array, out: Array) -> None:
    """Write A @ D into `out` for A in compressed rows and D and out in C order.

    The columns are taken 32 at a time, so that the part of D that is read over and over stays in cache. Long rows are
    summed in pieces: the intercept's row of a transposed design has an entry for every row of the table, and in single
    precision one long sum of 100,000 entries has errors as large as the gradients that a fit ends with.
    """
    _gather(indptr, indices, data, D, D[:0], False, out)


@njit(cache=True, nogil=True, fastmath=True)
def gather_tiles(starts: Array, rows: Array, data: Array, height: int, R: Array, out: Array) -> None:
    """Write Z' @ R for Z in compressed columns, cut into tiles of `height` rows (`design.SparseDesign`)."""
    for tile in range(starts.shape[0]):
        part = R[tile * height : (tile + 1) * height]
        _gather(starts[tile], rows, data, part, R[:0], tile > 0, out)


@njit(cache=True, nogil=True, fastmath=True)
def gather_curved(
    indptr: Array,
    indices: Array,
    data: Array,
    starts: Array,
    rows: Array,
    column_data: Array,
    height: int,
    D: Array,
    curvature: Array,
    along: Array,
    out: Array,
) -> None:
    """Write curvature * (Z @ D) into `along`, and Z' @ along into `out`, tile after tile.

    One call for both products: on small tables the calls would cost as much as the sums.
    """
    for tile in range(starts.shape[0]):
        first, last = tile * height, min((tile + 1) * height, along.shape[0])
        part = along[first:last]
        _gather(indptr[first : last + 1], indices, data, D, curvature[first:last], False, part)
        _gather(starts[tile], rows, column_data, part, D[:0], tile > 0, out)


def _make_series(float_type: Any, int_type: Any) -> tuple[Any, Any]:
    """Return the exponential and the logarithm of one precision, in plain Python.

    exp(-|x|) = 2^-k * exp(r) without a branch or a call: adding `magic` rounds to the integer k and leaves k in the
    lowest bits, from where it is shifted into the exponent; exp(r) is its Taylor series on |r| <= ln(2) / 2.
    """
    single = float_type is np.float32
    log2e, one, two = float_type(1.4426950408889634), float_type(1), float_type(2)
    magic = float_type(1.5 * 2**23) if single else float_type(1.5 * 2**52)
    ln2_high = float_type(0.693359375) if single else float_type(6.93147180369123816490e-01)
    ln2_low = float_type(-2.12194440e-4) if single else float_type(1.90821492927058770002e-10)
    largest = float_type(87) if single else float_type(708)
    bias, shift = (int_type(127), int_type(23)) if single else (int_type(1023), int_type(52))
    c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13 = (float_type(1 / math.factorial(k)) for k in range(2, 14))
    o3, o5, o7, o9, o11, o13, o15, o17, o19, o21, o23, o25, o27, o29, o31 = (float_type(1 / k) for k in range(3, 33, 2))

    @njit(inline="always")
    def exp_short(r: Any) -> Any:
        return one + r * (one + r * (c2 + r * (c3 + r * (c4 + r * (c5 + r * (c6 + r * c7))))))

    @njit(inline="always")
    def exp_long(r: Any) -> Any:
        tail = c8 + r * (c9 + r * (c10 + r * (c11 + r * (c12 + r * c13))))
        return one + r * (one + r * (c2 + r * (c3 + r * (c4 + r * (c5 + r * (c6 + r * (c7 + r * tail)))))))

    @njit(inline="always")
    def artanh_short(t: Any) -> Any:
        return one + t * (o3 + t * (o5 + t * (o7 + t * (o9 + t * (o11 + t * (o13 + t * o15))))))

    @njit(inline="always")
    def artanh_long(t: Any) -> Any:
        tail = o17 + t * (o19 + t * (o21 + t * (o23 + t * (o25 + t * (o27 + t * (o29 + t * o31))))))
        return one + t * (o3 + t * (o5 + t * (o7 + t * (o9 + t * (o11 + t * (o13 + t * (o15 + t * tail)))))))

    exp_series, artanh_series = (exp_short, artanh_short) if single else (exp_long, artanh_long)

    def exp_of_minus(x: Any) -> Any:
        size = min(abs(x), largest)
        power = float_type(size * log2e + magic)
        k = power - magic
        e = exp_series((k * ln2_high - size) + k * ln2_low)
        return e * int_type((bias - power.view(int_type)) << shift).view(float_type)

    def log_of_one_plus(e: Any) -> Any:
        s = e / (two + e)  # log(1 + e) = 2 artanh(e / (2 + e)), whose series converges fast on [0, 1/3]
        return two * s * artanh_series(s * s)

    return exp_of_minus, log_of_one_plus


_SERIES = {
    types.float32: _make_series(np.float32, np.int32),
    types.float64: _make_series(np.float64, np.int64),
}


# The compiled kernels below are chosen by precision through these names, and not made by a function for each: what is
# made by a function around compiled ones is not found again in numba's cache, and would be compiled in every process.
def _exp_of_minus(x: Any) -> Any:
    """Return exp(-|x|)."""


def _log_of_one_plus(e: Any) -> Any:
    """Return log(1 + e) for 0 <= e <= 1."""


@overload(_exp_of_minus, inline="always")
def _choose_exp(x: Any) -> Any:
    return _SERIES[x][0]


@overload(_log_of_one_plus, inline="always")
def _choose_log(e: Any) -> Any:
    return _SERIES[e][1]


@njit(cache=True, nogil=True, fastmath=_KEEP_ORDER, error_model="numpy")
def residual_and_curvature(eta: Array, target: Array, residual: Array, curvature: Array) -> None:
    """Write sigmoid(eta) - target and sigmoid(eta) * (1 - sigmoid(eta))."""
    one, zero = eta.dtype.type(1), eta.dtype.type(0)
    for i in range(eta.shape[0]):
        for c in range(eta.shape[1]):
            e = _exp_of_minus(eta[i, c])
            q = one / (one + e)
            curvature[i, c] = e * q * q
            residual[i, c] = (one - e * q if eta[i, c] >= zero else e * q) - target[i, c]


@njit(cache=True, nogil=True, fastmath=_KEEP_ORDER, error_model="numpy")
def _log_likelihood(eta: Array, target: Array, out: Array) -> None:
    """Write log P(target); short loops over a row keep their vectors whole, one loop for all would not."""
    n_columns, zero = eta.shape[1], eta.dtype.type(0)
    x, e = np.empty(n_columns, eta.dtype), np.empty(n_columns, eta.dtype)
    for i in range(eta.shape[0]):
        for c in range(n_columns):
            x[c] = eta[i, c] if target[i, c] > 0 else -eta[i, c]
        for c in range(n_columns):
            e[c] = _exp_of_minus(x[c])
        for c in range(n_columns):
            e[c] = _log_of_one_plus(e[c])
        for c in range(n_columns):
            out[i, c] = min(x[c], zero) - e[c]


def log_likelihood(eta: Array, target: Array, out: Array) -> None:
    """Write log P(target) for P(1) = sigmoid(eta), to the last digits also where it is next to 0.

    Examples
    --------
    >>> out = np.empty((1, 3))
    >>> log_likelihood(np.array([[0.0, 40.0, 40.0]]), np.array([[1, 1, 0]]), out)
    >>> out
    array([[-6.93147181e-01, -4.24835426e-18, -4.00000000e+01]])
    """
    n, n_columns = eta.shape
    # Few columns leave the vector loops half empty: several rows are taken as one, as many as fill whole vectors, so
    # that a row has the same bits wherever it stands.
    together = CELLS_IN_A_ROW // n_columns // ROWS_PER_VECTOR * ROWS_PER_VECTOR if n_columns else 0
    if together == 0 or not all(array.flags.c_contiguous for array in (eta, target, out)):
        _log_likelihood(eta, target, out)
        return
    whole = n - n % together
    _log_likelihood(*(array[:whole].reshape(-1, together * n_columns) for array in (eta, target, out)))
    if whole < n:
        rest = [np.zeros((together, n_columns), array.dtype) for array in (eta, target, out)]
        rest[0][: n - whole], rest[1][: n - whole] = eta[whole:], target[whole:]
        _log_likelihood(*(array.reshape(1, -1) for array in rest))
        out[whole:] = rest[2][: n - whole]


@njit(cache=True, nogil=True, fastmath=True)
def column_dots(A: Array, B: Array) -> NDArray[np.float64]:
    """Return sum_i A[i, c] * B[i, c] for each column, summed in double precision every 128 rows."""
    n, n_columns = A.shape
    total = np.zeros(n_columns)
    part = np.zeros(n_columns, A.dtype)
    for start in range(0, n, 128):
        part[:] = 0
        for i in range(start, min(n, start + 128)):
            for c in range(n_columns):
                part[c] += A[i, c] * B[i, c]
        for c in range(n_columns):
            total[c] += part[c]
    return total


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def conjugate_step(
    step: Array,
    D: Array,
    HD: Array,
    curvature: Array,
    residual: Array,
    diagonal: Array,
    rz: Array,
    rr: Array,
    live: Array,
    target: Array,
) -> int:
    """Move every live column one conjugate-gradient step along `D`, and turn `D` into the next direction.

    `curvature` is D'HD of each column. Updates step, D, residual, rz = r'M^-1 r, rr = r'r and live in place; a column
    stops being live when rr is at most its target or its curvature is not positive. Returns how many are live.
    """
    n, n_columns = step.shape
    alpha, beta = np.zeros(n_columns, D.dtype), np.zeros(n_columns, D.dtype)
    for c in range(n_columns):
        live[c] = live[c] and curvature[c] > 0
        if live[c]:
            alpha[c] = rz[c] / curvature[c]
    part_rz, part_rr = np.zeros(n_columns, D.dtype), np.zeros(n_columns, D.dtype)
    rz_new = np.zeros(n_columns)
    rr[:] = 0
    for start in range(0, n, 128):
        part_rz[:] = 0
        part_rr[:] = 0
        for i in range(start, min(n, start + 128)):
            for c in range(n_columns):
                step[i, c] += alpha[c] * D[i, c]
                r = residual[i, c] - alpha[c] * HD[i, c]
                residual[i, c] = r
                part_rz[c] += r * r * diagonal[i, c]
                part_rr[c] += r * r
        for c in range(n_columns):
            rz_new[c] += part_rz[c]
            rr[c] += part_rr[c]
    n_live = 0
    for c in range(n_columns):
        live[c] = live[c] and rr[c] > target[c]
        if live[c]:
            n_live += 1
            beta[c] = rz_new[c] / rz[c]
        rz[c] = rz_new[c]
    for i in range(n):
        for c in range(n_columns):
            D[i, c] = residual[i, c] * diagonal[i, c] + beta[c] * D[i, c]
    return n_live


@njit(cache=True, nogil=True, fastmath=True)
def add_penalty(out: Array, D: Array, penalty: Array, free: Array) -> NDArray[np.float64]:
    """Add penalty[c] * D[:, c] to each column but for its last row, the intercept; clear what `free` forbids.

    `free` holds 1 and 0 for the last rows before the intercept; it has no rows where nothing is forbidden. Returns the
    dot product of D and the result for each column, which costs nothing while both pass by.
    """
    p, n_columns = D.shape
    first = p - 1 - free.shape[0]
    total, part = np.zeros(n_columns), np.zeros(n_columns, D.dtype)
    for start in range(0, p - 1, 128):
        part[:] = 0
        for i in range(start, min(p - 1, start + 128)):
            if i < first:
                for c in range(n_columns):
                    value = out[i, c] + penalty[c] * D[i, c]
                    out[i, c] = value
                    part[c] += value * D[i, c]
            else:
                for c in range(n_columns):
                    value = (out[i, c] + penalty[c] * D[i, c]) * free[i - first, c]
                    out[i, c] = value
                    part[c] += value * D[i, c]
        for c in range(n_columns):
            total[c] += part[c]
    for c in range(n_columns):
        total[c] += out[p - 1, c] * D[p - 1, c]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def add_present(Y: Array, rows: Array, constant: Array, out: Array) -> None:
    """Write out += Y @ rows + constant, for Y of mostly zeros."""
    n_columns, n_parents = out.shape[1], rows.shape[0]
    present = np.empty(n_parents + 1, np.intp)
    for i in range(out.shape[0]):
        n_present = 0
        for j in range(n_parents):  # found without a branch, which nobody could predict
            present[n_present] = j
            n_present += Y[i, j] != 0
        for c in range(n_columns):
            out[i, c] += constant[c]
        for k in range(n_present):
            row = rows[present[k]]
            for c in range(n_columns):
                out[i, c] += row[c]
