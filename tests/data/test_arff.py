import numpy as np
import pytest
import scipy.sparse as sp

from mcode.data import read
from mcode.errors import DataFormatError

HEADER = """% a comment
@RELATION 'weather: -C 2'

@Attribute rain {0,1}
@attribute 'wind\\'s up' {no, yes}
@ATTRIBUTE temperature NUMERIC
@attribute "sky colour" {blue, 'light grey', black}
@DATA
"""


@pytest.mark.parametrize("name", ["emotions", "medical", "genbase"])
def test_mulan_files_load_identical_to_the_npz_of_the_same_name(name, real_file):
    ours = read(real_file(f"{name}.npz"))
    theirs = read(real_file(f"original/{name}.arff"), ignore="protein" if name == "genbase" else ())
    assert theirs.feature_names == ours.feature_names
    assert theirs.label_names == ours.label_names
    assert np.array_equal(theirs.Y, ours.Y)
    assert type(theirs.X) is type(ours.X)
    assert theirs.X.dtype == ours.X.dtype
    assert abs(theirs.X - ours.X).max() == 0


def test_an_identifier_names_the_rows_and_is_no_feature(real_file):
    data = read(real_file("original/genbase.arff"), labels=real_file("original/genbase.xml"), id="protein")
    assert data.row_ids[0] == "O00060"
    assert data.id_name == "protein"
    assert data.X.shape == (662, 1185)
    assert data.say(0, 0) == "PS00010 = NO"


def test_meka_counts_labels_in_the_name_of_the_relation(write):
    data = read(write("w.arff", HEADER + "1, yes, 21.5, blue\n0,no,?, 'light grey'\n"))
    assert data.label_names == ("rain", "wind's up")
    assert data.label_values == (("0", "1"), ("no", "yes"))
    assert data.Y.tolist() == [[1, 1], [0, 0]]
    assert data.cell(1, "temperature") is None
    assert data.say(0, data.feature_names.index("sky colour=blue")) == "sky colour = blue"


def test_a_negative_count_takes_the_last_attributes(write):
    data = read(write("w.arff", "@relation 'x: -C -1'\n@attribute a real\n@attribute b {0,1}\n@data\n1,0\n2,1\n"))
    assert data.label_names == ("b",)


def test_sparse_rows_mean_the_same_as_dense_rows(write):
    dense = read(write("d.arff", HEADER + "1,yes,21.5,black\n0,no,0,blue\n1,no,?,blue\n"))
    sparse = read(write("s.arff", HEADER + "{0 1, 1 yes,2 21.5, 3 'black'}\n{ }\n{0 1,2 ?}, {5}\n"))
    assert np.array_equal(dense.X, sparse.X)
    assert np.array_equal(dense.Y, sparse.Y)


def test_a_sparse_row_leaves_out_the_first_declared_value(write):
    text = "@relation r\n@attribute a {YES,NO}\n@attribute b {0,1}\n@data\n{1 1}\n{0 NO}\n"
    data = read(write("f.arff", text), labels="b")
    assert np.asarray(sp.csr_matrix(data.X).todense()).ravel().tolist() == [1.0, 0.0]


def test_whole_numbers_too_large_for_single_precision_stay_exact(write):
    text = "@relation r\n@attribute account numeric\n@attribute b {0,1}\n@data\n123456789,0\n123456790,1\n"
    data = read(write("n.arff", text), labels="b")
    assert data.cell(0, "account") == 123456789
    assert data.say(1, 0) == "account = 123456790"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("2,yes,1,blue", "line 9: value '2' is not among the declared values {0, 1} of 'rain'"),
        ("1,yes,1,pink", "line 9: value 'pink' is not among the declared values {blue, light grey, black}"),
        ("1,yes,warm,blue", "line 9: value 'warm' of 'temperature' is not a number"),
        ("1,yes,1,blue\n1,yes", "line 10: the row has 2 values; 4 attributes are declared"),
        ("{9 1}", "line 9: index 9 is not among the 4 declared attributes"),
        ("{0 1,0 1}", "line 9: index 0 is given twice"),
        ("{0 1", "line 9: a sparse row is not closed"),
        ("{0 1,x}", "line 9: 'x' is not an index and a value"),
        ("1,yes,inf,blue", "line 9: a value is infinite"),
        ("1,yes,1,'blue", "line 9: a quote is opened and not closed"),
        ("", "there is no row after @data"),
    ],
)
def test_a_row_at_fault_is_named_with_its_line(write, rows, sentence):
    with pytest.raises(DataFormatError) as caught:
        read(write("w.arff", HEADER + rows))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("@relation r\n@attribute a numeric\n", "there is no @data line"),
        ("@relation r\n@data\n1\n", "no @attribute is declared"),
        ("@relation r\n@attribute a relational\n@data\n", "line 2: attribute 'a' has the type 'relational'"),
        ("@relation r\n@attribute a {0,1\n@data\n", "line 2: the values of 'a' are not closed"),
        ("@relation r\nhello\n", "line 2: 'hello' is neither @relation"),
        ("@relation r\n@attribute a real\n@attribute a real\n@data\n1,2\n", "two columns are named 'a'"),
        ("@relation r\n@attribute a real\n@attribute b {0,1}\n@data\n1,0\n", "does not say which columns are labels"),
    ],
)
def test_a_header_at_fault_is_named_with_its_line(write, text, sentence):
    with pytest.raises(DataFormatError) as caught:
        read(write("w.arff", text))
    assert sentence in str(caught.value)


def test_an_xml_file_names_labels_in_its_own_order(write):
    write(
        "w.xml",
        '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="b"><label name="a"/></label></labels>',
    )
    path = write(
        "w.arff", "@relation r\n@attribute x real\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n1,0,1\n2,1,0\n"
    )
    data = read(path)
    assert data.label_names == ("b", "a")
    assert data.Y.tolist() == [[1, 0], [0, 1]]


def test_an_xml_file_beside_is_not_opened_when_labels_are_named(write):
    write("w.xml", "<settings>")
    path = write("w.arff", "@relation r\n@attribute x real\n@attribute a {0,1}\n@data\n1,0\n2,1\n")
    assert read(path, "a").label_names == ("a",)
