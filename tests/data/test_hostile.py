"""Input that is wrong or means harm: each gets one sentence that names the file and what is wrong."""

import gzip
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from mcode.data import read, stream
from mcode.errors import DataFormatError, McodeError, ParameterError

ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
BILLION_LAUGHS = (
    f'<?xml version="1.0"?><!DOCTYPE labels [<!ENTITY e0 "ha">{ENTITIES}]><labels><label name="&e11;"/></labels>'
)
OUTSIDE = '<!DOCTYPE labels [<!ENTITY e SYSTEM "file:///etc/passwd">]><labels><label name="x"/>&e;</labels>'


def sentence_of(call):
    with pytest.raises(DataFormatError) as caught:
        call()
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def test_missing_file(tmp_path):
    assert sentence_of(lambda: read(tmp_path / "no.csv", "dx")) == f"{tmp_path / 'no.csv'}: there is no such file."


def test_null_character_in_the_path():
    sentence_of(lambda: read("a\0b.csv", "dx"))


def test_directory(tmp_path):
    assert "it is a directory; name one file" in sentence_of(lambda: read(tmp_path, "dx"))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_file_that_may_not_be_read(write):
    path = write("a.csv", "x,dx\n1,0\n")
    path.chmod(0)
    assert "Permission denied" in sentence_of(lambda: read(path, "dx"))


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "a.parquet", "a.arrow", "a.jsonl", "a.arff", "a.svm", "a.npz"]
)
def test_empty_file(write, name):
    assert "the file is empty" in sentence_of(lambda: read(write(name, ""), "dx"))


def test_empty_gzip(write):
    sentence_of(lambda: read(write("a.csv.gz", gzip.compress(b"")), "dx"))


def test_unknown_format(write):
    assert "the format is not known by its name" in sentence_of(lambda: read(write("a.xyz", "hello"), "dx"))


def test_header_only(write, tmp_path):
    assert "it has a header but no rows" in sentence_of(lambda: read(write("a.csv", "x,dx\n"), "dx"))
    pd.DataFrame({"x": [], "dx": []}).to_parquet(tmp_path / "a.parquet")
    assert "it has a header but no rows" in sentence_of(lambda: read(tmp_path / "a.parquet", "dx"))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_ragged_csv(write, name):
    text = b"x,y,dx\n1,2,0\n1,1\n3,4,1\n"
    path = write(name, gzip.compress(text) if name.endswith("gz") else text)
    assert "line 3: the row has 2 cells; the header has 3" in sentence_of(lambda: read(path, "dx"))


def test_ragged_csv_in_a_stream(write):
    first = read(write("a.csv", "x,dx\n1,0\n2,1\n"), "dx")
    path = write("b.csv", "x,dx\n1,0\n1,2,3\n")
    assert "the row has 3 cells" in sentence_of(lambda: list(stream(path, like=first)))


@pytest.mark.parametrize("text", ["naïve,dx\n1,0\n2,1\n", "x,dx\nnaïve,0\nb,1\n"])
def test_wrong_encoding(write, text):
    assert "encoding='latin-1'" in sentence_of(lambda: read(write("a.csv", text.encode("latin-1")), "dx"))


def test_utf_16(write):
    path = write("a.csv", "x,dx\n1,0\n2,1\n".encode("utf-16"))
    assert "say encoding='utf-16'" in sentence_of(lambda: read(path, "dx"))
    assert read(path, "dx", encoding="utf-16").Y.tolist() == [[0], [1]]


def test_wrong_encoding_of_arff(write):
    text = "@relation r\n@attribute größe real\n@data\n".encode("latin-1")
    assert "line 2: the text is not in the encoding 'utf-8'" in sentence_of(lambda: read(write("a.arff", text), "dx"))


def test_duplicate_column_names(write):
    assert "two columns are named 'x'" in sentence_of(lambda: read(write("a.csv", "x,x,dx\n1,2,0\n"), "dx"))


def test_label_pattern_that_matches_nothing(write):
    path = write("a.csv", "x,dx_a\n1,0\n")
    assert "no column matches the label pattern 'rx_*'; the columns are" in sentence_of(lambda: read(path, "rx_*"))
    assert "did you mean 'dx_a'?" in sentence_of(lambda: read(path, "dx_b"))
    assert "no column matches the ignore pattern" in sentence_of(lambda: read(path, "dx_*", ignore="z*"))
    assert "there is no id column 'z'" in sentence_of(lambda: read(path, "dx_*", id="z"))
    assert "there is no tags column 'z'" in sentence_of(lambda: read(path, tags_column="z"))


def test_no_label_named(write):
    assert "name them with labels='dx_*'" in sentence_of(lambda: read(write("a.csv", "x,dx\n1,0\n")))


def test_no_context_left(write):
    assert "no column is left as context" in sentence_of(lambda: read(write("a.csv", "dx,dy\n1,0\n0,1\n"), "d*"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            range(40),
            "has 40 different values (0, 1, 2, ...); two values or up to 20 categories are accepted, and",
        ),
        ([f"v{i:02}" for i in range(40)], "has 40 different values (v00, v01, v02, ...); two values or up to 20"),
        ([f"v{i:02}" for i in range(70)], "has 70 different values (v00, v01, v02, ...); two values or up to 20"),
        (np.linspace(0, 1, 60), "holds 60 different numbers, 0 and 0.0169492 among them; a response has two values or"),
        ([0.5, 1.5, 2.5, 0.5], "holds 3 different numbers, 0.5 and 1.5 among them; a response has two values or"),
    ],
)
def test_label_column_with_many_values(values, said):
    frame = pd.DataFrame({"x": range(len(values)), "dx": list(values)})
    text = sentence_of(lambda: read(frame, "dx"))
    assert f"label column 'dx' {said}" in text
    # up to 50 can be asked for, and the sentence says how; more are no response
    assert ("max_values=40" in text) == (len(values) == 40)
    if len(values) == 40:
        twice = pd.concat([frame, frame])
        assert len(read(twice, "dx", max_values=40).label_values[0]) == 40
        assert "another value in each of its 40 rows" in sentence_of(lambda: read(frame, "dx", max_values=40))


@pytest.mark.parametrize("most", [1, 51, "20"])
def test_max_values_out_of_range(write, most):
    with pytest.raises(ParameterError, match="max_values"):
        read(write("a.csv", "x,dx\n1,0\n0,1\n"), "dx", max_values=most)


@pytest.mark.parametrize("cells", [["1", "", "0"], ["yes", "", "no"]])
def test_rows_with_missing_labels(write, cells):
    path = write("a.csv", "x,dx\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    text = sentence_of(lambda: read(path, "dx"))
    assert "row 1, counted from 0, has no value for label 'dx'" in text
    assert "missing_labels='drop'" in text


def test_every_label_missing(write):
    path = write("a.csv", "x,dx\n1,\n2,\n")
    assert "every row lacks" in sentence_of(lambda: read(path, "dx", missing_labels="drop"))


def test_nested_json(write):
    path = write("a.jsonl", '{"x": {"y": 1}, "dx": 0}\n')
    assert "column 'x' holds values of type struct" in sentence_of(lambda: read(path, "dx"))


def test_xml_with_entity_expansion(write):
    arff = write("a.arff", "@relation r\n@attribute x real\n@attribute dx {0,1}\n@data\n1,0\n")
    for content in (BILLION_LAUGHS, OUTSIDE):
        xml = write("labels.xml", content)
        assert "the XML declares an entity, which is refused" in sentence_of(lambda xml=xml: read(arff, xml))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<labels>", "it is not well-formed XML"),
        ("<labels/>", "it names no label"),
        ("<labels><label/></labels>", "a <label> has no name"),
        ("<labels><label name='a'/><label name='a'/></labels>", "the label 'a' is named twice"),
        ("<labels><label name='zz'/></labels>", "there is no label column 'zz'"),
        ("", "the file is empty"),
    ],
)
def test_xml_at_fault(write, content, reason):
    arff = write("a.arff", "@relation r\n@attribute x real\n@attribute dx {0,1}\n@data\n1,0\n")
    assert reason in sentence_of(lambda: read(arff, write("labels.xml", content)))


@pytest.mark.parametrize("kept", [5, 30, 200])
def test_truncated_gzip(write, kept):
    rng = np.random.default_rng(0)
    whole = gzip.compress(("x,dx\n" + "".join(f"{v},1\n" for v in rng.random(500))).encode())
    text = sentence_of(lambda: read(write("a.csv.gz", whole[:kept]), "dx"))
    assert "damaged" in text or "cannot be read" in text


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_parquet_and_arrow(tmp_path, name, share):
    frame = pd.DataFrame({"x": np.arange(500.0), "dx": [0, 1] * 250})
    path = tmp_path / name
    (frame.to_parquet if name.endswith("parquet") else frame.to_feather)(path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert "cannot be read" in sentence_of(lambda: read(path, "dx"))


class Bomb:
    def __reduce__(self):
        return os._exit, (3,)


def test_npz_with_pickles(tmp_path):
    array = np.empty((1, 1), object)
    array[0, 0] = Bomb()
    np.savez(tmp_path / "a.npz", X=np.ones((1, 1)), Y=array)
    assert "it holds pickled objects" in sentence_of(lambda: read(tmp_path / "a.npz"))


def test_a_pickle_named_npz(write):
    assert "pickled" in sentence_of(lambda: read(write("a.npz", pickle.dumps(Bomb()))))


def test_errors_can_be_caught_as_ours_and_as_value_errors(tmp_path):
    for kind in (McodeError, ValueError):
        with pytest.raises(kind):
            read(tmp_path / "no.csv", "dx")


def test_errors_survive_pickling():
    error = DataFormatError("a.csv", 3, "what")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "a.csv, line 3: what."
