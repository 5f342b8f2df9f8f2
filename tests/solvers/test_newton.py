from dataclasses import dataclass

import numpy as np
import pytest

from mcode.solvers.design import as_design, stack
from mcode.solvers.newton import conjugate_gradients, minimise
from mcode.solvers.objective import LogisticObjective
from oracles import fit_label_by_label, logistic_gradient, logistic_hessian, stacked
from tables import dependent_table

PENALTY = np.array([0.5, 1.0, 2.0, 4.0])


def make_objective(n=80, rows=slice(None), dtype=np.float64):
    X, Y = dependent_table(n=n)
    free = ~np.eye(4, dtype=bool)
    design = as_design(stack(X[rows], Y[rows], dtype))
    return LogisticObjective(design, Y[rows].astype(dtype), PENALTY.astype(dtype), free), X, Y, free


def solve(objective, start=None, tolerance=1e-9, **options):
    p = objective.design.shape[1]
    zero = objective.at(np.zeros((p, 4), objective.dtype))
    scale = np.linalg.norm(zero.gradient, axis=0).astype(np.float64)
    return minimise(zero if start is None else objective.at(start), scale, np.full(4, tolerance), **options)


def test_every_column_reaches_its_minimum():
    objective, X, Y, free = make_objective()
    solution = solve(objective)
    assert solution.converged.all()
    np.testing.assert_allclose(solution.W, fit_label_by_label(X, Y, Y, free, PENALTY), atol=1e-6)


def test_the_report_holds_the_norm_of_the_gradient_where_it_stopped():
    objective, X, Y, free = make_objective()
    solution = solve(objective, max_iter=1)
    Z = stacked(X, Y)
    for c in range(4):
        gradient = logistic_gradient(Z, Y[:, c], solution.W[:, c], PENALTY[c])
        gradient[X.shape[1] : -1][~free[:, c]] = 0.0
        assert solution.gradient_norm[c] == pytest.approx(np.linalg.norm(gradient), rel=1e-6)


def test_columns_that_run_out_of_steps_say_so():
    objective, *_ = make_objective()
    solution = solve(objective, max_iter=1)
    assert not solution.converged.any()
    assert (solution.n_iter == 1).all()


def test_a_start_at_the_minimum_takes_no_step_and_is_left_as_it_is():
    objective, *_ = make_objective()
    start = solve(objective, tolerance=1e-10).W
    kept = start.copy()
    again = solve(objective, start=start, tolerance=1e-6)
    assert (again.n_iter == 0).all()
    np.testing.assert_array_equal(start, kept)
    np.testing.assert_array_equal(again.W, kept)


@pytest.mark.parametrize("far", [-10.0, 10.0])
def test_a_start_far_away_still_arrives(far):
    objective, *_ = make_objective()
    start = np.full((objective.design.shape[1], 4), far)
    start[-5:-1][np.eye(4, dtype=bool)] = 0.0
    solution = solve(objective, start=start)
    assert solution.converged.all()
    np.testing.assert_allclose(solution.W, solve(objective).W, atol=1e-5)


def test_single_precision_comes_as_close_as_its_rounding_allows():
    rough, *_ = make_objective(dtype=np.float32)
    exact, *_ = make_objective()
    solution = solve(rough, tolerance=1e-5)
    assert solution.W.dtype == np.float32
    np.testing.assert_allclose(solution.W, solve(exact).W, atol=1e-4)


def test_conjugate_gradients_solve_the_newton_equations():
    objective, X, Y, free = make_objective()
    W = np.zeros((objective.design.shape[1], 4))
    point = objective.at(W)
    step = conjugate_gradients(point, np.full(4, 1e-10), np.array([True, True, False, True]))
    Z = stacked(X, Y)
    for c in (0, 1, 3):
        mask = np.ones(len(W), bool)
        mask[X.shape[1] : -1] = free[:, c]
        H = logistic_hessian(Z, W[:, c], PENALTY[c])[np.ix_(mask, mask)]
        np.testing.assert_allclose(step[mask, c], np.linalg.solve(H, -point.gradient[mask, c]), atol=1e-6)
        assert (step[~mask, c] == 0.0).all()
    assert (step[:, 2] == 0.0).all()


@dataclass(frozen=True)
class ChunkedPoint:
    """The sum of the same point over chunks of rows; the penalty is counted once."""

    objective: "ChunkedObjective"
    W: np.ndarray
    parts: list

    @property
    def gradient(self):
        return sum(part.gradient for part in self.parts)

    def columns(self, keep):
        chunks = ChunkedObjective([part.columns(keep).objective for part in self.parts])
        return ChunkedPoint(chunks, np.ascontiguousarray(self.W[:, keep]), [part.columns(keep) for part in self.parts])

    def value(self):
        return sum(part.value() for part in self.parts)

    def hessian_product(self, D, out):
        out[:] = 0.0
        curvature = np.zeros(D.shape[1])
        for part in self.parts:
            one = np.empty_like(out)
            curvature += part.hessian_product(D, one)
            out += one
        return curvature

    def inverse_diagonal(self):
        return 1.0 / sum(1.0 / part.inverse_diagonal() for part in self.parts)


@dataclass(frozen=True)
class ChunkedObjective:
    chunks: list

    @property
    def dtype(self):
        return np.dtype(np.float64)

    def at(self, W):
        return ChunkedPoint(self, W, [chunk.at(W) for chunk in self.chunks])


def test_a_constant_is_looked_at_without_the_product():
    objective, *_ = make_objective()
    intercept = np.array([-1.0, 0.0, 0.5, 2.0])
    W = np.zeros((objective.design.shape[1], 4))
    W[-1] = intercept
    short, long = objective.at_constant(intercept), objective.at(W)
    np.testing.assert_array_equal(short.W, W)
    np.testing.assert_allclose(short.gradient, long.gradient, atol=1e-12)
    np.testing.assert_allclose(short.value(), long.value(), rtol=1e-12)


def test_a_sum_over_chunks_of_rows_can_stand_in_for_the_objective():
    whole, *_ = make_objective()
    chunks = []
    for start in (0, 30, 60):
        chunk, *_ = make_objective(rows=slice(start, start + 30))
        share = PENALTY if start == 0 else np.zeros(4)
        chunks.append(LogisticObjective(chunk.design, chunk.target, share, chunk.free))
    summed = ChunkedObjective(chunks)
    W = np.random.default_rng(0).normal(size=(10, 4))
    np.testing.assert_allclose(summed.at(W).gradient, whole.at(W).gradient, atol=1e-10)
    np.testing.assert_allclose(summed.at(W).value(), whole.at(W).value(), rtol=1e-12)
    scale = np.linalg.norm(whole.at(np.zeros((10, 4))).gradient, axis=0)
    found = minimise(summed.at(np.zeros((10, 4))), scale, np.full(4, 1e-9))
    assert found.converged.all()
    np.testing.assert_allclose(found.W, solve(whole).W, atol=1e-6)
