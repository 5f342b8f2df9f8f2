import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcode.errors import InputError
from mcode.models.encoding import MISSING, ResponseEncoding, one_valued

CODES = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=np.uint8)
TEXT = np.array(["no", "yes"])[CODES]

SAME_TABLE = {
    "uint8": CODES,
    "bool": CODES.astype(bool),
    "int64": CODES.astype(np.int64),
    "float32": CODES.astype(np.float32),
    "float64": CODES.astype(np.float64),
    "objects": CODES.astype(object),
    "nested lists": CODES.tolist(),
    "columns first": np.asfortranarray(CODES),
    "every other column": np.repeat(CODES.astype(bool), 2, axis=1)[:, ::2],
    "text": TEXT,
    "text objects": TEXT.astype(object),
    "csr floats": sp.csr_matrix(CODES.astype(np.float64)),
    "csr bool": sp.csr_matrix(CODES.astype(bool)),
    "csc integers": sp.csc_array(CODES.astype(np.int32)),
    "pandas": pd.DataFrame(CODES, columns=["a", "b", "c"]),
    "pandas bool": pd.DataFrame(CODES.astype(bool)),
    "pandas text": pd.DataFrame(TEXT),
    "pandas categories": pd.DataFrame(TEXT).astype("category"),
    "pandas mixed": pd.DataFrame({"a": CODES[:, 0], "b": TEXT[:, 1], "c": CODES[:, 2].astype(bool)}),
    "polars": pl.DataFrame(CODES, schema=["a", "b", "c"]),
    "polars text": pl.DataFrame({name: TEXT[:, j].tolist() for j, name in enumerate("abc")}),
    "polars mixed": pl.DataFrame({"a": CODES[:, 0], "b": TEXT[:, 1].tolist(), "c": CODES[:, 2].astype(bool)}),
}


@pytest.mark.parametrize("name", SAME_TABLE)
def test_every_way_to_write_two_values_gives_the_same_codes(name):
    encoding = ResponseEncoding.of(SAME_TABLE[name])
    codes = encoding.encode(SAME_TABLE[name])
    assert codes.dtype == np.uint8
    np.testing.assert_array_equal(codes, CODES)


@pytest.mark.parametrize("name", ["int64", "text", "pandas mixed"])
def test_decoding_gives_back_what_was_encoded(name):
    table = SAME_TABLE[name]
    encoding = ResponseEncoding.of(table)
    decoded = encoding.decode(encoding.encode(table))
    np.testing.assert_array_equal(decoded, table.to_numpy() if hasattr(table, "to_numpy") else table)


@given(arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.integers(0, 1)))
def test_codes_of_numbers_are_the_numbers(Y):
    encoding = ResponseEncoding.of(Y)
    np.testing.assert_array_equal(encoding.encode(Y), Y)
    np.testing.assert_array_equal(encoding.encode(Y.astype(float)), Y)
    np.testing.assert_array_equal(encoding.decode(encoding.encode(Y)), Y)


def test_columns_keep_their_names():
    assert ResponseEncoding.of(SAME_TABLE["pandas"]).names == ["a", "b", "c"]
    assert ResponseEncoding.of(SAME_TABLE["polars"]).names == ["a", "b", "c"]
    assert ResponseEncoding.of(CODES).names == ["0", "1", "2"]


def test_a_single_response_may_be_a_plain_sequence():
    for column in ([0, 1, 1], pd.Series([0, 1, 1]), pl.Series([0, 1, 1]), np.array([0, 1, 1])):
        np.testing.assert_array_equal(ResponseEncoding.of(column).encode(column), [[0], [1], [1]])


def test_a_number_seen_once_only_keeps_its_code():
    encoding = ResponseEncoding.of(np.ones((3, 1)))
    np.testing.assert_array_equal(encoding.encode(np.array([[0.0], [1.0]])), [[0], [1]])


def test_a_text_that_never_came_in_a_one_valued_column_is_the_other_value():
    encoding = ResponseEncoding.of(np.array([["x"], ["x"]]))
    np.testing.assert_array_equal(encoding.encode(np.array([["x"], ["new"]])), [[0], [1]])


REFUSED = {
    "many numbers": (np.arange(51)[:, None], "Y: column '0' has 51 different values ('0', '1', '2', ...); each"),
    "infinite": (np.array([[0.0], [np.inf]]), "Y: row 1, column '0' holds inf; each response may have two values"),
    "continuous": (np.array([[0.0], [0.25]]), "Y: row 1, column '0' holds 0.25; each response may have two values"),
    "named": (pd.DataFrame({"a": [0, 1], "b": [1, 0.7]}), "Y: row 1, column 'b' holds 0.7; each response may have"),
    "many texts": (np.array([[f"v{i}"] for i in range(60)]), "Y: column '0' has 60 different values ('v0', 'v1', "),
    "mixed types": (np.array([["a"], [1]], object), "Y: column '0' mixes values of different types; each response may"),
    "three dimensions": (np.zeros((2, 2, 2)), "Y: it has 3 dimensions; a table of rows and responses is expected"),
    "no rows": (np.zeros((0, 2)), "Y: it is empty (shape (0, 2)); at least one row and one response are needed"),
    "no columns": (np.zeros((2, 0)), "Y: it is empty (shape (2, 0)); at least one row and one response are needed"),
    "sparse no rows": (sp.csr_matrix((0, 2)), "Y: it is empty (shape (0, 2)); at least one row"),
    "sparse no columns": (sp.csr_matrix((2, 0)), "Y: it is empty (shape (2, 0)); at least one row"),
    "sparse, a half": (sp.csr_matrix(np.array([[0, 0.5]])), "Y: row 0, column '1' holds 0.5; each response may have"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_in_one_sentence(name):
    table, sentence = REFUSED[name]
    with pytest.raises(InputError) as caught:
        ResponseEncoding.of(table)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("fitted", "scored", "sentence"),
    [
        (CODES, CODES[:, :2], "Y: it has 2 columns; the model was fitted on 3 responses."),
        (CODES, np.array([[0, 1, 2]], np.uint8), "Y: row 0, column '2' holds 2; its values are [0, 1]"),
        (
            np.array([[0], [2], [1]], np.uint8),
            np.array([[3]], np.uint8),
            "Y: row 0, column '0' holds 3; its values are",
        ),
        (np.array([[4], [2], [1]]), np.array([[3]]), "Y: row 0, column '0' holds 3; its values are [1, 2, 4]"),
        (
            np.array([["a"], ["b"], ["c"]]),
            np.array([["d"]]),
            "Y: row 0, column '0' holds 'd'; its values are ['a', 'b'",
        ),
        (CODES, np.array([[0.0, 1.0, 0.5]]), "Y: row 0, column '2' holds 0.5; its values are [0, 1]."),
        (CODES, np.array([["no", "no", "no"]]), "Y: column '0' mixes numbers with other values; each response may"),
        (TEXT, np.array([["no", "si", "no"]]), "Y: row 0, column '1' holds 'si'; its values are ['no', 'yes']"),
    ],
)
def test_a_value_that_was_not_there_in_training_is_refused(fitted, scored, sentence):
    encoding = ResponseEncoding.of(fitted)
    with pytest.raises(InputError) as caught:
        encoding.encode(scored)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "table",
    [
        np.array([[0.0], [np.nan], [1.0]]),
        np.array([[0], [None], [1]], object),
        np.array([["a"], [None], ["b"]], object),
        pd.DataFrame({"a": [False, None, True]}, dtype="boolean"),
        pd.DataFrame({"a": ["x", None, "y"]}, dtype="string"),
        pl.DataFrame({"a": [False, None, True]}),
        np.array([[0], [MISSING], [1]], np.uint8),
    ],
    ids=["NaN", "None among numbers", "None among texts", "pandas NA", "pandas text NA", "polars null", "codes"],
)
def test_a_missing_response_has_a_code_of_its_own(table):
    encoding = ResponseEncoding.of(table)
    codes = encoding.encode(table)
    assert codes.ravel().tolist() == [0, MISSING, 1]
    assert encoding.decode(codes)[1, 0] is None
    assert encoding.decode(codes)[0, 0] == encoding.values[0][0]


def test_a_response_that_is_never_known_is_refused():
    with pytest.raises(InputError, match="column '0' has no known value; leave the column out"):
        ResponseEncoding.of(np.array([[np.nan], [np.nan]]))


def test_responses_with_one_known_value_are_named():
    assert one_valued(np.array([[0, 1, 0], [MISSING, MISSING, 1]], np.uint8), ["a", "b", "c"]) == ["a", "b"]


@pytest.mark.parametrize("dtype", [np.uint8, int, float])
def test_codes_lie_row_by_row_however_the_table_is_stored(dtype):
    Y = np.asfortranarray(np.array([[0, 1, 1], [1, 0, 1]], dtype))
    codes = ResponseEncoding.of(Y).encode(Y)
    assert codes.flags.c_contiguous
    np.testing.assert_array_equal(codes, Y)


CATEGORIES = {
    "texts": (np.array([["mild"], ["none"], ["severe"]]), ["mild", "none", "severe"]),
    "numbers": (np.array([[3], [-1], [7]]), [-1, 3, 7]),
    "floats": (np.array([[3.0], [1.0], [0.0]]), [0, 1, 3]),
    "codes": (np.array([[2], [1], [0]], np.uint8), [0, 1, 2]),
    "pandas": (pd.DataFrame({"a": ["x", "z", "y"]}), ["x", "y", "z"]),
    "two numbers": (np.array([[1], [2], [2]]), [1, 2]),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_a_response_may_have_categories(name):
    table, values = CATEGORIES[name]
    encoding = ResponseEncoding.of(table)
    assert encoding.values[0].tolist() == values
    codes = encoding.encode(table)
    cells = np.asarray(table).ravel().tolist()
    assert codes.ravel().tolist() == [values.index(cell) for cell in cells]
    assert encoding.decode(codes).ravel().tolist() == cells
    assert encoding.n_values == (len(values),)


def test_categories_may_be_missing_and_stand_beside_two_values():
    table = pd.DataFrame({"grade": ["A", None, "C", "B"], "paid": [0, 1, 1, None]})
    encoding = ResponseEncoding.of(table)
    codes = encoding.encode(table)
    assert encoding.n_values == (3, 2)
    np.testing.assert_array_equal(codes, [[0, 0], [255, 1], [2, 1], [1, 255]])
    assert encoding.decode(codes).tolist() == [["A", 0], [None, 1], ["C", 1], ["B", None]]
