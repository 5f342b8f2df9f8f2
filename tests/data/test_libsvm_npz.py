import numpy as np
import pytest
import scipy.sparse as sp

from mcode.data import read
from mcode.errors import DataFormatError


def test_libsvm_rows_hold_labels_and_entries(write):
    data = read(write("a.svm", "2,10 1:0.5 3:1\n 2:7\n10 1:1 # comment\n\n"))
    assert data.label_names == ("2", "10")
    assert data.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert data.feature_names == ("1", "2", "3")
    assert data.X.tolist() == [[0.5, 0, 1], [0, 7, 0], [1, 0, 0]]


def test_libsvm_may_count_from_zero_and_state_its_size(write):
    assert read(write("a.svm", "a 0:1 2:1\nb 1:1\n")).feature_names == ("0", "1", "2")
    stated = read(write("b.svm", "2 5 2\na 0:1\nb 3:1\n"))
    assert stated.X.shape == (2, 5)


def test_a_further_libsvm_file_has_the_features_of_the_first(write):
    first = read(write("a.svm", "a,b 1:1 4:1\nb 2:1\n"))
    later = read(write("b.svm", "b 2:3\n"), like=first)
    assert later.X.shape == (1, 4)
    assert later.Y.tolist() == [[0, 1]]
    with pytest.raises(DataFormatError, match="index 5 is not among the 4 known features"):
        read(write("c.svm", "b 5:3\n"), like=first)
    with pytest.raises(DataFormatError, match="label 'z' is not known"):
        read(write("d.svm", "z 2:3\n"), like=first)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a 1:x", "line 1: '1:x' is not index:value"),
        ("a 1:1 hello", "line 1: 'hello' is not index:value"),
        ("a -1:2", "line 1: '-1:2' has an index that is not from 0 to"),
        ("a 1:nan", "line 1: '1:nan' has a value that is not finite"),
        ("a 2000000000:1", "line 1: '2000000000:1' has an index that is not from 0 to"),
        ("a 1:1 1:2", "line 1: an index is given twice"),
        ("1:1\n2:1", "no row has a label"),
        ("# nothing", "it holds no rows"),
    ],
)
def test_libsvm_at_fault_is_named_with_its_line(write, text, sentence):
    with pytest.raises(DataFormatError) as caught:
        read(write("a.svm", text))
    assert sentence in str(caught.value)


def test_npz_is_read_as_it_was_written(tmp_path):
    X = sp.random(20, 8, density=0.1, format="csr", random_state=0, dtype=np.float32)
    Y = np.random.default_rng(0).integers(0, 2, (20, 3)).astype(np.uint8)
    parts = {"x_data": X.data, "x_indices": X.indices, "x_indptr": X.indptr, "x_shape": np.array(X.shape)}
    np.savez(tmp_path / "a.npz", **parts, Y=Y, label_names=np.array(["a", "b", "c"]))
    data = read(tmp_path / "a.npz")
    assert data.label_names == ("a", "b", "c")
    assert data.feature_names == tuple("01234567")
    assert abs(data.X - X).max() == 0
    assert np.array_equal(read(tmp_path / "a.npz", like=data).Y, Y)
    assert np.array_equal(read(tmp_path / "a.npz", labels=["c", "a"]).Y, Y[:, [0, 2]])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": np.ones((2, 2))}, "the array 'Y' is missing"),
        ({"Y": np.ones((2, 2))}, "the array 'x_data' is missing"),
        ({"X": np.ones((2, 2)), "Y": np.ones((3, 1))}, "X has 2 rows, Y has 3"),
        ({"X": np.ones((2, 2)), "Y": np.full((2, 1), 5)}, "holds 5; each response may have two values"),
        ({"X": np.full((2, 2), np.nan), "Y": np.ones((2, 1))}, "X: row 0, column 0 is NaN"),
        ({"X": np.ones((2, 2)), "Y": np.array([["a"], ["b"]])}, "Y holds values of type"),
        ({"X": np.ones((2, 2)), "Y": np.ones((2, 1)), "feature_names": np.array(["a"])}, "1 names for 2 columns"),
        ({"X": np.ones((2, 2)), "Y": np.ones((2, 1)), "feature_names": np.array(["a", "a"])}, "two columns are named"),
        (
            {
                "x_data": np.ones(1),
                "x_indices": np.array([9]),
                "x_indptr": np.array([0, 1]),
                "x_shape": np.array([1, 2]),
            }
            | {"Y": np.ones((1, 1))},
            "it is not one of our npz files, or damaged",
        ),
    ],
)
def test_npz_at_fault_is_named(tmp_path, arrays, sentence):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataFormatError) as caught:
        read(tmp_path / "a.npz")
    assert sentence in str(caught.value)
