import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcode._arrays import check_matrix, column_names, dense
from mcode.errors import InputError

tables = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(0, 5)), elements=st.floats(-1e300, 1e300))


@given(tables)
def test_a_finite_table_is_kept_as_it_is(table):
    np.testing.assert_array_equal(check_matrix(table), table)
    np.testing.assert_array_equal(dense(check_matrix(sp.csr_matrix(table))), table)


@given(tables, st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_the_first_cell_that_is_not_finite_is_named(table, bad, data):
    if not table.size:
        return
    row, column = data.draw(st.integers(0, table.shape[0] - 1)), data.draw(st.integers(0, table.shape[1] - 1))
    table[row, column] = bad
    what = "NaN" if np.isnan(bad) else "infinity"
    for given_as in (table, sp.csr_matrix(table), sp.csc_matrix(table), table.astype(object)):
        with pytest.raises(InputError, match=f"X: row {row}, column {column} is {what}; "):
            check_matrix(given_as)


def test_huge_but_finite_numbers_are_finite():
    np.testing.assert_array_equal(check_matrix(np.full((3, 3), 1e308)), np.full((3, 3), 1e308))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_up_to_the_largest_are_accepted_however_many(make, dtype, sign):
    table = np.full((300, 300), sign * 1e18, dtype)  # their squares have no sum in single precision
    check_matrix(make(table), largest=1.1e18)
    table[7, 2] = sign * 2e18
    with pytest.raises(
        InputError, match=r"X: it holds 2.0e\+18; numbers up to 1e\+18 are accepted; rescale the column"
    ):
        check_matrix(make(table), largest=1.1e18)


@pytest.mark.parametrize(("dtype", "kept"), [(np.float32, True), (np.float64, True), (np.float16, False), (int, False)])
def test_single_and_double_precision_are_kept_and_others_become_double(dtype, kept):
    matrix = check_matrix(np.ones((2, 2), dtype))
    assert matrix.dtype == (dtype if kept else np.float64)


def test_the_result_is_contiguous_and_canonical():
    assert check_matrix(np.asfortranarray(np.ones((3, 2)))).flags.c_contiguous
    repeated = sp.csr_matrix((np.ones(3), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    matrix = check_matrix(repeated)
    assert matrix.has_canonical_format
    np.testing.assert_array_equal(matrix.toarray(), [[1.0, 2.0]])
    assert repeated.nnz == 3


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (pd.DataFrame({"a": [1], 3: [2]}), ["a", "3"]),
        (pl.DataFrame({"a": [1], "b": [2]}), ["a", "b"]),
        (pl.DataFrame({"a": [1], "b": [2]}).to_arrow(), ["a", "b"]),
        (np.zeros((1, 2)), None),
        (sp.csr_matrix((1, 2)), None),
        ([[1, 2]], None),
    ],
)
def test_columns_keep_their_names(table, names):
    assert column_names(table) == names


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"min_rows": 3}, r"X: it has 2 row\(s\) .*; 2 sample\(s\) while a minimum of 3 is required\."),
        ({"min_columns": 4}, r"X: it has 1 column\(s\) .*; 1 feature\(s\) while a minimum of 4 is required\."),
    ],
)
def test_too_few_rows_or_columns_are_refused(limits, sentence):
    with pytest.raises(InputError, match=sentence):
        check_matrix(np.zeros((2, 1)), **limits)


def test_an_arrow_table_is_a_table():
    table = pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_arrow()
    np.testing.assert_array_equal(check_matrix(table), [[1.0, 3.0], [2.0, 4.0]])
