"""The compiled iteration does what the one in Python does: the same steps, so nearly the same numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

from mcode.solvers import design as designs
from mcode.solvers import in_memory, newton
from mcode.solvers.design import DenseDesign, SparseDesign, as_design, stack
from mcode.solvers.objective import LogisticObjective

COLUMNS = 40  # rare and frequent ones, so that they leave the batch one after the other


@pytest.fixture(params=["dense", "sparse", "tiles"])
def kind(request, monkeypatch):
    if request.param == "tiles":
        monkeypatch.setattr(designs, "TILE", 64)
    return "dense" if request.param == "dense" else "sparse"


def make_objective(kind, weighted=False, dtype=np.float32, n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)) * (rng.random((n, 12)) < (0.1 if kind == "sparse" else 1.0))
    logits = 2.0 * X @ rng.normal(size=(12, COLUMNS)) + np.linspace(-4.0, 1.0, COLUMNS)
    Y = (rng.random((n, COLUMNS)) < 1.0 / (1.0 + np.exp(-logits))).astype(np.uint8)
    Y[0], Y[1] = 0, 1
    parents = Y[:, :6] * (rng.random((n, 6)) < 0.5) if kind == "sparse" else Y[:, :6]
    design = as_design(stack(sp.csr_matrix(X) if kind == "sparse" else X, parents, dtype))
    assert isinstance(design, SparseDesign if kind == "sparse" else DenseDesign)
    free = np.ones((6, COLUMNS))
    free[np.arange(6), np.arange(6)] = 0.0
    weight = (rng.random((n, COLUMNS)) < 0.8).astype(dtype) if weighted else None
    penalty = 10.0 ** rng.uniform(-2, 1, COLUMNS)
    return LogisticObjective(design, Y.astype(dtype), penalty.astype(dtype), free.astype(dtype), weight)


def solve(minimise, objective, start=0.0, tolerance=1e-4, **options):
    W = np.full((objective.design.shape[1], COLUMNS), start, objective.dtype)
    W[12:18] *= objective.free
    scale = np.linalg.norm(objective.at(np.zeros_like(W)).gradient, axis=0).astype(np.float64)
    return minimise(objective.at(W), scale, np.full(COLUMNS, tolerance), **options)


@pytest.fixture
def no_python(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("the iteration in Python was asked")

    monkeypatch.setattr(newton, "minimise", refuse)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("start", [0.0, 8.0, -8.0])
def test_it_arrives_where_the_iteration_in_python_does(kind, weighted, start):
    objective = make_objective(kind, weighted)
    expected = solve(newton.minimise, objective, start, tolerance=1e-5)
    found = solve(in_memory.minimise, objective, start, tolerance=1e-5)
    assert expected.converged.all()
    assert found.converged.all()
    assert len(np.unique(found.n_iter)) > 1  # columns did leave the batch at different times
    np.testing.assert_allclose(objective.at(found.W).value(), objective.at(expected.W).value(), rtol=1e-5)
    if not start:  # far starts are cut short where rounding decides, and go other ways from there
        np.testing.assert_allclose(found.W, expected.W, atol=1e-4, rtol=1e-3)
        assert np.abs(found.n_iter - expected.n_iter).max() <= 1


def test_it_is_compiled_as_a_whole(kind, no_python):
    assert solve(in_memory.minimise, make_objective(kind)).converged.all()


def test_what_it_is_given_is_left_as_it_is(kind):
    objective = make_objective(kind, weighted=True)
    start = objective.at(np.zeros((objective.design.shape[1], COLUMNS), np.float32))
    arrays = [start.W, start.eta, start.curvature, start.gradient, objective.target, objective.weight, objective.free]
    before = [array.copy() for array in arrays]
    in_memory.minimise(start, np.full(COLUMNS, 10.0), np.full(COLUMNS, 1e-4))
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_columns_that_run_out_of_steps_say_so():
    found = solve(in_memory.minimise, make_objective("dense"), max_iter=1, tolerance=1e-7)
    assert not found.converged.any()
    assert (found.n_iter == 1).all()


def test_what_it_does_not_know_goes_to_the_iteration_in_python(monkeypatch):
    asked = []
    monkeypatch.setattr(newton, "minimise", lambda start, *_: asked.append(start.objective.dtype))
    solve(in_memory.minimise, make_objective("dense", dtype=np.float64))
    monkeypatch.setattr(in_memory, "MOST_TURNED", 100)
    solve(in_memory.minimise, make_objective("dense"))
    assert asked == [np.float64, np.float32]


def test_the_same_block_gives_the_same_bits():
    one, again = (solve(in_memory.minimise, make_objective("dense", weighted=True)) for _ in range(2))
    np.testing.assert_array_equal(one.W, again.W)
