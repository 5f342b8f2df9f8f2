import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcode.errors import InputError
from mcode.scores import ComplementScore

rhos = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.floats(1e-12, 1.0))


@given(rhos)
def test_it_is_minus_the_log_of_the_product(rho):
    expected = [-np.sum([np.log(value) for value in row]) for row in rho]
    np.testing.assert_allclose(ComplementScore().fit_outlier_score(rho), expected, atol=1e-12)


@given(rhos)
def test_it_orders_rows_as_the_papers_score_does(rho):
    paper = 1.0 - rho.prod(axis=1)
    order = np.argsort(ComplementScore().fit_outlier_score(rho))
    assert (np.diff(paper[order]) >= -1e-15).all()


@given(rhos, st.integers(0, 10**6), st.floats(0.0, 0.999))
def test_lowering_one_rho_never_lowers_the_score(rho, seed, factor):
    rng = np.random.default_rng(seed)
    row, column = rng.integers(rho.shape[0]), rng.integers(rho.shape[1])
    lower = rho.copy()
    lower[row, column] = max(1e-12, factor * rho[row, column])
    score = ComplementScore().fit(rho)
    assert score.outlier_score(lower)[row] >= score.outlier_score(rho)[row] - 1e-12


def test_rows_that_the_papers_number_cannot_tell_apart_are_ranked():
    rho = np.full((2, 20), 1e-9)
    rho[1, 0] = 1e-10
    assert (1.0 - rho.prod(axis=1) == 1.0).all()
    below, above = ComplementScore().fit_outlier_score(rho)
    assert below < above


def test_another_number_of_columns_is_refused():
    with pytest.raises(InputError, match=r"M: it has 3 columns; the score was fitted on 2\."):
        ComplementScore().fit([[0.5, 0.5]]).outlier_score([[0.5, 0.5, 0.5]])
