"""What it costs that the iteration knows the objective by three verbs only, against one fused kernel.

Both sides run the same number of conjugate-gradient steps on the same block of columns, one thread. The fused kernel is
the whole loop - sparse products, curvature, penalty, mask, dot products, updates, stopping rule - in a single compiled
function, into which the compiler may inline every part. Beside it a whole fit from nothing: by the iteration in Python,
which knows the verbs only, and by its compiled form for tables in memory (`solvers/in_memory.py`).

    python benchmarks/fused.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from datasets import load, write_csv
from mcode.solvers import in_memory, newton
from mcode.solvers.design import SparseDesign, stack
from mcode.solvers.kernels import add_penalty, conjugate_step, gather_curved
from mcode.solvers.objective import LogisticObjective

STEPS = 12
STEPS_BEFORE = newton.MAX_CONJUGATE_STEPS, newton.SHRINK_AT
PENALTY = 1.0
TOLERANCE = 1e-3
SIDES = {"python": newton.minimise, "compiled": in_memory.minimise}


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def fused_steps(
    rows: Any,
    columns: Any,
    height: int,
    curvature: Any,
    free: Any,
    residual: Any,
    diagonal: Any,
    penalty: Any,
    steps: int,
) -> Any:
    """Run `steps` conjugate-gradient steps for all columns in one function, with the stopping rule that ours has."""
    p, b = residual.shape
    step, D = np.zeros_like(residual), residual * diagonal
    along, HD = np.empty_like(curvature), np.empty_like(residual)
    rz, rr = np.zeros(b), np.zeros(b)
    for i in range(p):
        for c in range(b):
            rz[c] += D[i, c] * residual[i, c]
            rr[c] += residual[i, c] * residual[i, c]
    live, target = np.ones(b, np.bool_), 1e-60 * rr
    for _ in range(steps):
        gather_curved(rows[0], rows[1], rows[2], columns[0], columns[1], columns[2], height, D, curvature, along, HD)
        along_step = add_penalty(HD, D, penalty, free)
        if conjugate_step(step, D, HD, along_step, residual, diagonal, rz, rr, live, target) == 0:
            break
    return step


def compare(name: str, width: int) -> dict[str, Any]:
    X, Y = load(name)
    n = min(len(Y), 3000)
    X, Y = sp.csr_matrix(X[:n]), Y[:n]
    chosen = np.argsort(-Y.sum(axis=0))[:width]
    free = np.ones((Y.shape[1], len(chosen)), dtype=bool)
    free[chosen, np.arange(len(chosen))] = False
    design = SparseDesign(stack(X, Y, np.float32))
    penalty = np.full(len(chosen), PENALTY, np.float32)
    objective = LogisticObjective(design, Y[:, chosen].astype(np.float32), penalty, free.astype(np.float32))
    start = np.zeros((design.shape[1], len(chosen)), np.float32)
    point = objective.at(start)
    never = np.full(len(chosen), 1e-30)
    moving = np.ones(len(chosen), dtype=bool)
    scale = np.linalg.norm(point.gradient, axis=0).astype(np.float64)
    fit = (point, scale, np.full(len(chosen), TOLERANCE))
    whole = {side: fastest(partial(minimise, *fit)) for side, minimise in SIDES.items()}
    newton.MAX_CONJUGATE_STEPS, newton.SHRINK_AT = STEPS, 0.0

    def ours() -> Any:
        return newton.conjugate_gradients(point, never, moving)

    def fused() -> Any:
        residual, diagonal = np.negative(point.gradient), point.inverse_diagonal()
        blocks = (design.rows, design.columns, design.height, point.curvature, objective.free)
        return fused_steps(*blocks, residual, diagonal, penalty, STEPS)

    difference = np.abs(ours() - fused()).max() / np.abs(fused()).max()
    seconds = {"ours": fastest(ours), "fused": fastest(fused)}
    newton.MAX_CONJUGATE_STEPS, newton.SHRINK_AT = STEPS_BEFORE
    return {
        "data": name,
        "columns": len(chosen),
        "ours_ms": 1e3 * seconds["ours"],
        "fused_ms": 1e3 * seconds["fused"],
        "cost_of_abstraction": seconds["ours"] / seconds["fused"] - 1,
        "relative_difference": float(difference),
        "fit_python_ms": 1e3 * whole["python"],
        "fit_compiled_ms": 1e3 * whole["compiled"],
    }


def fastest(call: Callable[[], Any]) -> float:
    """Return the seconds of the fastest of 40 calls, after one that compiles."""
    call()
    best = np.inf
    for _ in range(40):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    rows = [compare(name, width) for name, width in (("medical", 32), ("corel5k", 64), ("bibtex", 64), ("enron", 48))]
    for row in rows:
        print(
            "{data:10} {columns:3} columns: three verbs {ours_ms:7.2f} ms, fused {fused_ms:7.2f} ms, "
            "cost {cost_of_abstraction:+.1%} (steps differ by {relative_difference:.1e}); "
            "a whole fit in Python {fit_python_ms:7.1f} ms, compiled {fit_compiled_ms:7.1f} ms".format(**row)
        )
    write_csv("fused", rows)


if __name__ == "__main__":
    main()
