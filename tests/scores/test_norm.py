import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcode.errors import ParameterError
from mcode.scores import NormScore

rhos = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.floats(1e-12, 1.0))
orders = pytest.mark.parametrize("r", [1, 1.5, 2, 7.0, np.inf])


@orders
@given(rhos)
def test_it_is_the_norm_of_what_is_missing_to_certainty(r, rho):
    missing = 1.0 - rho
    expected = missing.max(axis=1) if r == np.inf else (missing**r).sum(axis=1) ** (1.0 / r)
    np.testing.assert_allclose(NormScore(r).fit_outlier_score(rho), expected, rtol=1e-9, atol=1e-12)


@orders
@given(rhos, st.integers(0, 10**6), st.floats(0.0, 0.999))
def test_lowering_one_rho_never_lowers_the_score(r, rho, seed, factor):
    rng = np.random.default_rng(seed)
    row, column = rng.integers(rho.shape[0]), rng.integers(rho.shape[1])
    lower = rho.copy()
    lower[row, column] *= factor
    score = NormScore(r).fit(rho)
    assert score.outlier_score(lower)[row] >= score.outlier_score(rho)[row] - 1e-12


def test_by_default_the_least_likely_response_decides():
    np.testing.assert_allclose(NormScore().fit_outlier_score([[0.9, 0.2], [0.5, 0.5]]), [0.8, 0.5])


@pytest.mark.parametrize("r", [0.5, 0, -1, np.nan, "2", None])
def test_an_order_below_1_is_refused(r):
    with pytest.raises(ParameterError, match=r"r must be a number of at least 1, or infinity; got"):
        NormScore(r).fit([[0.5]])
