import importlib
import pkgutil

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from scipy.special import expit

import mcode.solvers
from mcode.solvers.kernels import (
    add_penalty,
    add_present,
    column_dots,
    conjugate_step,
    gather,
    log_likelihood,
    residual_and_curvature,
)

PRECISION = {np.float32: 3e-6, np.float64: 1e-13}
both_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])

LOGITS = np.concatenate(
    [np.linspace(-50, 50, 1001), [-1e4, -750.0, -708.0, -87.5, -1e-8, 0.0, 1e-8, 87.5, 708.0, 750.0, 1e4]]
)


@pytest.mark.parametrize("index", [np.uint32, np.uint64])
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 40), st.integers(1, 70))
def test_gather_is_a_sparse_product(index, seed, n, p, b):
    rng = np.random.default_rng(seed)
    A = sp.random(n, p, rng.random(), "csr", random_state=rng)
    D, out = rng.normal(size=(p, b)), np.full((n, b), np.nan)
    gather(A.indptr.astype(index), A.indices.astype(index), A.data, D, out)
    np.testing.assert_allclose(out, A.toarray() @ D, atol=1e-12)


def test_gather_sums_a_long_row_to_single_precision():
    """One running sum of 100,000 entries would be off by a hundred times as much."""
    rng = np.random.default_rng(0)
    n, ones = 100_000, np.ones(100_000, np.float32)
    D, out = (rng.random((n, 3)) + 1.0).astype(np.float32), np.empty((1, 3), np.float32)
    gather(np.array([0, n], np.uint32), np.arange(n, dtype=np.uint32), ones, D, out)
    np.testing.assert_allclose(out[0], D.sum(axis=0, dtype=np.float64), rtol=3e-7)


@given(st.integers(0, 10**6), st.integers(0, 20), st.integers(0, 30), st.integers(0, 40), st.floats(0, 1))
def test_add_present_is_a_product_with_zeros_and_ones(seed, n, k, b, share):
    rng = np.random.default_rng(seed)
    Y, rows = (rng.random((n, k)) < share).astype(np.uint8), rng.normal(size=(k, b))
    constant, out = rng.normal(size=b), rng.normal(size=(n, b))
    expected = out + Y @ rows + constant
    add_present(Y, rows, constant, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)


@both_precisions
@pytest.mark.parametrize("n_columns", [1, 3, 8, 16, 100])
def test_a_row_has_the_same_bits_alone_and_in_a_block(dtype, n_columns):
    rng = np.random.default_rng(n_columns)
    eta, target = rng.normal(0, 5, (40, n_columns)).astype(dtype), np.zeros((40, n_columns), dtype)
    together, alone = np.empty((2, *eta.shape), dtype), np.empty((2, *eta.shape), dtype)
    residual_and_curvature(eta, target, *together)
    for i in range(40):
        residual_and_curvature(eta[i : i + 1], target[:1], *alone[:, i : i + 1])
    np.testing.assert_array_equal(alone, together)


@both_precisions
def test_residual_and_curvature_are_those_of_the_logistic_loss(dtype):
    eta = np.repeat(LOGITS[:, None], 2, axis=1).astype(dtype)
    target = np.tile(np.array([0, 1], dtype), (len(eta), 1))
    residual, curvature = np.empty_like(eta), np.empty_like(eta)
    residual_and_curvature(eta, target, residual, curvature)
    p = expit(eta.astype(np.float64))
    np.testing.assert_allclose(residual, p - target, atol=PRECISION[dtype])
    np.testing.assert_allclose(curvature, p * expit(-eta.astype(np.float64)), atol=PRECISION[dtype])


@both_precisions
@pytest.mark.parametrize("copies", [0, 1, 5, 400])
def test_log_likelihood_keeps_its_relative_precision(dtype, copies):
    eta = np.repeat(LOGITS[:, None], 2 * copies, axis=1).astype(dtype)
    target = np.tile(np.array([0, 1], dtype), (len(eta), copies))
    out = np.empty_like(eta)
    log_likelihood(eta, target, out)
    sign = np.where(target == 1, 1.0, -1.0)
    expected = -np.logaddexp(0.0, -sign * eta.astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=PRECISION[dtype], atol=1e-37 if dtype is np.float32 else 1e-300)


@both_precisions
@pytest.mark.parametrize("n", [1, 127, 128, 129, 1000])
def test_column_dots_are_inner_products_of_columns(dtype, n):
    rng = np.random.default_rng(n)
    A, B = rng.normal(size=(2, n, 5)).astype(dtype)
    np.testing.assert_allclose(column_dots(A, B), (A.astype(np.float64) * B).sum(axis=0), atol=n * PRECISION[dtype])


@both_precisions
def test_a_conjugate_step_moves_the_live_columns_and_turns_the_direction(dtype):
    rng = np.random.default_rng(0)
    step, D, residual = rng.normal(size=(3, 300, 6)).astype(dtype)
    diagonal = rng.random((300, 6)).astype(dtype)
    HD = 2 * D
    HD[:, 5] *= -1  # not convex there: the column must stop instead of walking uphill
    rz, rr = rng.random(6) + 1.0, np.zeros(6)
    live = np.array([True, True, True, False, True, True])
    target = np.array([0.0, 0.0, np.inf, 0.0, 0.0, 0.0])
    alpha = np.where([True, True, True, False, True, False], rz / (2.0 * (D.astype(float) ** 2).sum(axis=0)), 0.0)
    moved, left = step + alpha * D, residual - alpha * HD
    rz_new = (left**2 * diagonal).sum(axis=0)
    beta = np.where([True, True, False, False, True, False], rz_new / rz, 0.0)
    expected_D = left * diagonal + beta * D

    curvature = column_dots(D, HD)
    assert conjugate_step(step, D, HD, curvature, residual, diagonal, rz, rr, live, target) == 3
    tolerance = 1e3 * PRECISION[dtype]
    np.testing.assert_array_equal(live, [True, True, False, False, True, False])
    np.testing.assert_allclose(step, moved, atol=tolerance)
    np.testing.assert_allclose(residual, left, atol=tolerance)
    np.testing.assert_allclose(rz, rz_new, rtol=tolerance)
    np.testing.assert_allclose(rr, (left**2).sum(axis=0), rtol=tolerance)
    np.testing.assert_allclose(D, expected_D, atol=30 * tolerance)


def test_the_penalty_spares_the_intercept_and_forbidden_entries_are_cleared():
    rng = np.random.default_rng(0)
    out, D, penalty = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.random(3)
    free = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    expected = out.copy()
    expected[:-1] += penalty * D[:-1]
    expected[4:6] *= free
    dots = add_penalty(out, D, penalty, free)
    np.testing.assert_allclose(out, expected, atol=1e-14)
    np.testing.assert_allclose(dots, (expected * D).sum(axis=0), atol=1e-13)


@pytest.mark.parametrize("D", [np.ones((8, 5)).T, np.ones((5, 16))[:, ::2], np.ones((5, 8), np.float32)])
def test_gather_refuses_what_it_would_read_wrongly(D):
    A = sp.eye_array(5, format="csr")
    with pytest.raises(TypingError, match="C order"):
        gather(A.indptr.astype(np.uint32), A.indices.astype(np.uint32), A.data, D, np.empty((5, 8)))


@both_precisions
@pytest.mark.parametrize("d", [1, 5, 28, 32, 33, 101])
def test_a_row_has_the_same_log_likelihood_wherever_it_stands(dtype, d):
    rng = np.random.default_rng(0)
    eta, target = 3 * rng.normal(size=(7, d)).astype(dtype), rng.integers(2, size=(7, d)).astype(np.uint8)
    out, alone = np.empty((7 * 150, d)), np.empty((1, d))
    log_likelihood(np.tile(eta, (150, 1)), np.tile(target, (150, 1)), out)
    assert len(np.unique(out, axis=0)) == len(np.unique(eta, axis=0))
    log_likelihood(eta[3:4], target[3:4], alone)
    np.testing.assert_array_equal(alone[0], out[3])


def test_every_kernel_is_found_again_in_the_cache():
    """numba's key of a function made by another one holds what that one compiled: new in every process."""
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(mcode.solvers.__path__, "mcode.solvers.")
    ]
    kernels = [thing for module in modules for thing in vars(module).values() if isinstance(thing, Dispatcher)]
    stored = [kernel for kernel in kernels if not isinstance(kernel._cache, NullCache)]
    assert len(stored) > 8
    assert [kernel.py_func.__name__ for kernel in stored if kernel.py_func.__closure__ is not None] == []


def test_compiled_functions_of_one_module_have_names_of_their_own():
    """Two that share a name are mixed up where processes fill one cache at the same time."""
    compiled = vars(importlib.import_module("mcode.solvers.kernels"))
    names = [thing.py_func.__qualname__ for thing in compiled.values() if isinstance(thing, Dispatcher)]
    assert len(names) == len(set(names)) > 8
