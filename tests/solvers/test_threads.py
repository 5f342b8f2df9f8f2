import threading
from functools import partial

import numpy as np
import pytest

from mcode.solvers.threads import run_all


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
