import threading
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mcode.solvers.threads import one_blas_thread, run_all


def test_results_come_back_in_the_order_of_the_calls():
    assert run_all([partial(pow, k, 2) for k in range(50)]) == [k**2 for k in range(50)]


def test_no_calls_give_no_results():
    assert run_all([]) == []


def test_an_error_in_one_call_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        run_all([partial(divmod, 1, 1), partial(divmod, 1, 0)])


def test_a_single_call_runs_in_the_callers_thread():
    assert run_all([threading.get_ident]) == [threading.get_ident()]


def test_matrix_products_side_by_side_do_not_disturb_each_other():
    A = np.random.default_rng(0).normal(size=(80, 80))
    products = run_all([partial(np.matmul, A, k * A) for k in range(8)])
    for k, product in enumerate(products):
        np.testing.assert_allclose(product, k * (A @ A), atol=1e-10)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_blas_thread_ends_with_the_last_who_asked_for_it():
    before = blas_threads()
    with one_blas_thread():
        assert run_all([blas_threads, blas_threads]) == [[1] * len(before)] * 2
        assert blas_threads() == [1] * len(before)
    assert blas_threads() == before


def test_one_blas_thread_ends_with_an_error_too():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == before
