"""Newton's method once more, for tables in memory: the iteration of `newton` as one compiled call for each block.

`newton.minimise` knows an objective by three verbs only, so that anything can stand in for it. On small tables its own
steps, in Python, take longer than the sums they ask for, and threads that solve blocks side by side spend their time
handing over the interpreter's lock. Here the same steps, by the same kernels and with the same numbers, run without
it (benchmarks/fused.py measures both). Only logistic objectives over one design in single precision come this way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  np.dot in compiled code calls it; loaded before threads are counted
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.solvers import newton
from mcode.solvers.design import DenseDesign, SparseDesign
from mcode.solvers.kernels import (
    add_penalty,
    column_dots,
    conjugate_step,
    gather,
    gather_curved,
    gather_tiles,
    residual_and_curvature,
)
from mcode.solvers.newton import (
    CLOSE,
    LANES,
    LEFT_OVER,
    LOOSEST,
    MAX_CONJUGATE_STEPS,
    MAX_ITER,
    MAX_SHORTER_STEPS,
    MOST_SLOW,
    SHRINK_AT,
    SLOW,
    Solution,
    change_lengths,
    whole_lanes,
)
from mcode.solvers.objective import SMALLEST_CURVATURE, LogisticPoint

Array = NDArray[Any]

DENSE_PARTS = 3  # what a dense design is known by: Z, its transpose and the mean squares of its columns
MOST_TURNED = 2**23  # entries of a dense design that are stored both ways; a larger one has long products anyway


def minimise(start: LogisticPoint, scale: Floats, tolerance: Floats, max_iter: int = MAX_ITER) -> Solution:
    """Minimise each column as `newton.minimise` does, in one compiled call where there is one."""
    objective = start.objective
    parts = _parts(objective.design)
    if parts is None or objective.dtype != np.float32:
        return newton.minimise(start, scale, tolerance, max_iter)
    weight = start.eta[:0] if objective.weight is None else objective.weight
    problem = (objective.target, weight, objective.penalty, objective.free)
    point = (start.W, start.curvature, start.gradient)
    W, n_iter, relative = _minimise(parts, problem, point, scale, tolerance, max_iter)
    return Solution(W, n_iter, relative * scale, relative <= tolerance)


def _parts(design: Any) -> tuple[Any, ...] | None:
    """Return the arrays of a design for the compiled functions, or None where they do not know it."""
    if isinstance(design, DenseDesign) and design.Z.size <= MOST_TURNED:
        return design.Z, design.transposed, design.mean_square
    if isinstance(design, SparseDesign):
        return *design.rows, *design.columns, design.squared, design.height
    return None


# The verbs of a design, chosen by the number of its parts when the code that uses them is compiled.
def _product(design: Any, D: Array, out: Array) -> None:
    """Write Z @ D."""


def _adjoint(design: Any, R: Array, out: Array) -> None:
    """Write Z' @ R."""


def _curved(design: Any, D: Array, curvature: Array, along: Array, out: Array) -> None:
    """Write along = curvature * (Z @ D), and Z' @ along."""


def _squared_adjoint(design: Any, H: Array, out: Array) -> None:
    """Write what `Design.squared_adjoint` does."""


def _is_dense(design: Any) -> bool:
    return len(design.types) == DENSE_PARTS


@overload(_product)
def _choose_product(design: Any, D: Any, out: Any) -> Any:
    def dense(design: Any, D: Any, out: Any) -> None:
        np.dot(design[0], D, out)

    def sparse(design: Any, D: Any, out: Any) -> None:
        gather(design[0], design[1], design[2], D, out)

    return dense if _is_dense(design) else sparse


@overload(_adjoint)
def _choose_adjoint(design: Any, R: Any, out: Any) -> Any:
    def dense(design: Any, R: Any, out: Any) -> None:
        np.dot(design[1], R, out)

    def sparse(design: Any, R: Any, out: Any) -> None:
        gather_tiles(design[3], design[4], design[5], design[7], R, out)

    return dense if _is_dense(design) else sparse


@overload(_curved)
def _choose_curved(design: Any, D: Any, curvature: Any, along: Any, out: Any) -> Any:
    def dense(design: Any, D: Any, curvature: Any, along: Any, out: Any) -> None:
        np.dot(design[0], D, along)
        _multiply(along, curvature)
        np.dot(design[1], along, out)

    def sparse(design: Any, D: Any, curvature: Any, along: Any, out: Any) -> None:
        gather_curved(
            design[0], design[1], design[2], design[3], design[4], design[5], design[7], D, curvature, along, out
        )

    return dense if _is_dense(design) else sparse


@overload(_squared_adjoint)
def _choose_squared_adjoint(design: Any, H: Any, out: Any) -> Any:
    def dense(design: Any, H: Any, out: Any) -> None:
        total = np.zeros(H.shape[1], H.dtype)
        for i in range(H.shape[0]):
            for c in range(H.shape[1]):
                total[c] += H[i, c]
        for k in range(out.shape[0]):
            for c in range(out.shape[1]):
                out[k, c] = design[2][k] * total[c]

    def sparse(design: Any, H: Any, out: Any) -> None:
        gather_tiles(design[3], design[4], design[6], design[7], H, out)

    return dense if _is_dense(design) else sparse


@njit(cache=True, nogil=True, error_model="numpy")
def _minimise(
    design: Any, problem: Any, point: Any, scale: Floats, tolerance: Floats, max_iter: int
) -> tuple[Array, NDArray[np.intp], Floats]:
    """Return coefficients, Newton steps and relative gradients; the steps are numbered as in `newton.minimise`."""
    target, weight, penalty, free = problem
    W, curvature, gradient = point
    found, b = W.copy(), W.shape[1]
    n_iter, slow, batch = np.zeros(b, np.intp), np.zeros(b, np.intp), np.arange(b)
    relative, before = np.full(b, np.inf), np.full(b, np.inf)
    for _ in range(max_iter + 1):
        # 1. columns that are done leave the batch
        now, moving = column_dots(gradient, gradient), np.empty(len(batch), np.bool_)
        n_moving = 0
        for c in range(len(batch)):
            j = batch[c]
            now[c] = np.sqrt(now[c]) / scale[j]
            relative[j] = now[c]
            slow[j] = slow[j] + 1 if now[c] > SLOW * before[c] and before[c] < CLOSE else 0
            moving[c] = now[c] > tolerance[j] and slow[j] < MOST_SLOW and n_iter[j] < max_iter
            n_moving += moving[c]
        if not n_moving:
            break
        keep = whole_lanes(moving, now)
        if len(keep) < len(batch):
            _put(found, batch, W)
            batch, moving, now = _some(batch, keep), _some(moving, keep), _some(now, keep)
            target, weight = _take(target, keep), _take(weight, keep)
            penalty, free = _some(penalty, keep), _take(free, keep)
            W, curvature, gradient = _take(W, keep), _take(curvature, keep), _take(gradient, keep)
        # 2. the Newton direction
        before, forcing = np.empty(len(batch)), np.empty(len(batch))
        for c in range(len(batch)):
            before[c] = now[c] if moving[c] else 0.0
            forcing[c] = min(LOOSEST, max(np.sqrt(now[c]), LOOSEST * tolerance[batch[c]] / max(now[c], 1e-30)))
        step = _conjugate_gradients(design, penalty, free, curvature, gradient, forcing, moving)
        # 3. the length of the step
        W, curvature, gradient = _walk(design, (target, weight, penalty, free), W, gradient, step)
        for c in range(len(batch)):
            n_iter[batch[c]] += moving[c]
    _put(found, batch, W)
    return found, n_iter, relative


@njit(cache=True, nogil=True)
def _some(a: Array, keep: NDArray[np.intp]) -> Array:
    out = np.empty(len(keep), a.dtype)
    for c in range(len(keep)):
        out[c] = a[keep[c]]
    return out


@njit(cache=True, nogil=True)
def _take(A: Array, keep: NDArray[np.intp]) -> Array:
    out = np.empty((A.shape[0], len(keep)), A.dtype)
    for i in range(A.shape[0]):
        for c in range(len(keep)):
            out[i, c] = A[i, keep[c]]
    return out


@njit(cache=True, nogil=True)
def _put(A: Array, places: NDArray[np.intp], part: Array) -> None:
    for i in range(A.shape[0]):
        for c in range(len(places)):
            A[i, places[c]] = part[i, c]


@njit(cache=True, nogil=True, fastmath=True)
def _multiply(A: Array, B: Array) -> None:
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            A[i, c] *= B[i, c]


@njit(inline="always", error_model="numpy")
def _inverse_diagonal(design: Any, curvature: Array, penalty: Array, shape: tuple[int, int]) -> Array:
    diagonal = np.empty(shape, curvature.dtype)
    _squared_adjoint(design, curvature, diagonal)
    one, smallest = diagonal.dtype.type(1), diagonal.dtype.type(SMALLEST_CURVATURE)
    for k in range(shape[0]):
        for c in range(shape[1]):
            value = diagonal[k, c] + penalty[c] if k < shape[0] - 1 else diagonal[k, c]
            diagonal[k, c] = one / max(value, smallest)
    return diagonal


@njit(inline="always", error_model="numpy")
def _conjugate_gradients(
    design: Any,
    penalty: Array,
    free: Array,
    curvature: Array,
    gradient: Array,
    forcing: Floats,
    moving: NDArray[np.bool_],
) -> Array:
    step = np.zeros_like(gradient)
    index = np.arange(step.shape[1])
    diagonal = _inverse_diagonal(design, curvature, penalty, gradient.shape)
    part, residual, D, HD = step, np.empty_like(step), np.empty_like(step), np.empty_like(step)
    for k in range(step.shape[0]):
        for c in range(step.shape[1]):
            residual[k, c] = -gradient[k, c]
            D[k, c] = residual[k, c] * diagonal[k, c]
    along = np.empty_like(curvature)
    rz, rr = column_dots(D, residual), column_dots(residual, residual)
    target, live, n_live = np.empty(len(rr)), np.empty(len(rr), np.bool_), 0
    for c in range(len(rr)):
        target[c] = forcing[c] ** 2 * rr[c]
        live[c] = moving[c] and rr[c] > 0
        n_live += live[c]
    few = LEFT_OVER * n_live
    for _ in range(MAX_CONJUGATE_STEPS):
        _curved(design, D, curvature, along, HD)
        dots = add_penalty(HD, D, penalty, free)
        n_live = conjugate_step(part, D, HD, dots, residual, diagonal, rz, rr, live, target)
        if n_live <= few:
            break
        if n_live <= SHRINK_AT * len(index) - LANES:
            for c in range(len(rr)):
                dots[c] = rr[c] / max(target[c], 1e-300)
            keep = whole_lanes(live, dots)
            _put(step, index, part)
            index, live = _some(index, keep), _some(live, keep)
            rz, rr, target = _some(rz, keep), _some(rr, keep), _some(target, keep)
            part, D = _take(part, keep), _take(D, keep)
            residual, diagonal = _take(residual, keep), _take(diagonal, keep)
            curvature, penalty, free = _take(curvature, keep), _some(penalty, keep), _take(free, keep)
            HD, along = np.empty_like(D), np.empty_like(curvature)
    _put(step, index, part)
    return step


@njit(inline="always", error_model="numpy")
def _walk(design: Any, problem: Any, W: Array, gradient: Array, step: Array) -> tuple[Array, Array, Array]:
    target, weight, penalty, free = problem
    b = step.shape[1]
    slope = np.abs(column_dots(gradient, step))
    length, short, long = np.ones(b), np.zeros(b), np.full(b, np.inf)
    far, far_gradient = np.empty_like(W), np.empty_like(W)
    eta, residual, curvature = np.empty_like(target), np.empty_like(target), np.empty_like(target)
    for attempt in range(MAX_SHORTER_STEPS + 1):
        size = length.astype(step.dtype)
        for k in range(far.shape[0]):
            for c in range(b):
                far[k, c] = W[k, c] + size[c] * step[k, c]
        _product(design, far, eta)
        residual_and_curvature(eta, target, residual, curvature)
        if len(weight):
            _multiply(residual, weight)
            _multiply(curvature, weight)
        _adjoint(design, residual, far_gradient)
        add_penalty(far_gradient, far, penalty, free)
        if not change_lengths(slope, column_dots(far_gradient, step), length, short, long, attempt):
            break
    return far, curvature, far_gradient
