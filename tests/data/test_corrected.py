"""A corrected copy equals its source but for the corrected cells, in every format."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcode.data import read
from mcode.data.changes import Changes
from mcode.data.corrected import write_corrected
from mcode.errors import DataFormatError

ZERO_ONE = ("0", "1")
FLU = {"flu": ZERO_ONE}


def corrected(source, changes, **options):
    out = source.with_name(f"out_{source.name}")
    write_corrected(source, out, changes, **options)
    return out.read_bytes()


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("age,flu\n41,0\n67,1\n", "age,flu\n41,1\n67,1\n"),
        ("flu,age\r\n0,41\r\n1,67\r\n", "flu,age\r\n1,41\r\n1,67\r\n"),
        ('age;flu\n\n41;"0"\n67;"1"', 'age;flu\n\n41;"1"\n67;"1"'),
        ('note,flu\n"a,\n ""b""",0\n5" pipe,1\n', 'note,flu\n"a,\n ""b""",1\n5" pipe,1\n'),
        ("age,flu\n41,0.0\n67,1.0\n", "age,flu\n41,1.0\n67,1.0\n"),
        ("\ufeffflu,name\n0,Zoë\n1,Ωx\n", "\ufeffflu,name\n1,Zoë\n1,Ωx\n"),
    ],
)
def test_only_the_cell_changes_in_a_csv_file(tmp_path, before, after):
    path = write(tmp_path, "visits.csv", before)
    assert corrected(path, Changes({0: {"flu": 1}}, FLU)) == after.encode()


def test_true_and_false_keep_their_case(tmp_path):
    path = write(tmp_path, "visits.tsv", "age\tflu\n4\tFalse\n6\tTrue\n")
    changes = Changes({0: {"flu": 1}, 1: {"flu": 0}}, {"flu": ("false", "true")})
    assert corrected(path, changes) == b"age\tflu\n4\tTrue\n6\tFalse\n"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_the_encoding_stays(tmp_path, encoding):
    path = write(tmp_path, "visits.csv", "grüße,flu\nä,0\nö,1\n".encode(encoding))
    changes = Changes({1: {"flu": 0}}, FLU)
    assert corrected(path, changes, encoding=encoding).decode(encoding) == "grüße,flu\nä,0\nö,0\n"


def test_gzip_stays_gzip(tmp_path):
    path = write(tmp_path, "visits.csv.gz", gzip.compress(b"age,flu\n41,0\n67,1\n"))
    assert gzip.decompress(corrected(path, Changes({0: {"flu": 1}}, FLU))) == b"age,flu\n41,1\n67,1\n"


def test_tags_stay_in_their_column(tmp_path):
    path = write(tmp_path, "visits.csv", "age,tags\n1,flu; cough\n2,\n3,cough\n")
    changes = Changes({0: {"flu": 0, "fever": 1}, 1: {"fever": 1}, 2: {"cough": 0}}, {}, "tags", ";")
    assert corrected(path, changes) == b"age,tags\n1,cough; fever\n2,fever\n3,\n"


def test_json_lines_keep_their_spacing_numbers_and_order(tmp_path):
    lines = '{"age": 41.50, "flu":false,"n": {"a": [1]}}\n\n{"flu": true, "age": 1e3}\n'
    path = write(tmp_path, "visits.jsonl", lines)
    changes = Changes({1: {"flu": 0}}, {"flu": ("false", "true")})
    assert corrected(path, changes).decode() == lines.replace('{"flu": true', '{"flu": false')


def test_json_lists_of_tags(tmp_path):
    path = write(tmp_path, "visits.jsonl", '{"a": 1, "tags": ["flu", "x"]}\n{"a": 2, "tags": []}\n')
    changes = Changes({0: {"flu": 0}, 1: {"flu": 1}}, {}, "tags")
    assert [json.loads(line)["tags"] for line in corrected(path, changes).splitlines()] == [["x"], ["flu"]]


ARFF = """% made by hand
@relation visits
@attribute age numeric
@attribute 'the flu' {NO,YES}
@attribute kind {a,'b c'}
@data
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("41, NO, 'b c'\n67,YES,a % x\n".replace(" % x", ""), "41, YES, 'b c'\n67,YES,a\n"),
        ("{0 41, 2 'b c'}\n{1 YES}\n", "{0 41, 1 YES, 2 'b c'}\n{1 YES}\n"),
        ("{1 NO, 0 3}\n\n% c\n{1 YES}\n", "{0 3, 1 YES}\n\n% c\n{1 YES}\n"),
        ("41,NO,a,{2}\n1,NO,a\n", "41,YES,a,{2}\n1,NO,a\n"),
    ],
)
def test_arff_dense_and_sparse(tmp_path, before, after):
    path = write(tmp_path, "visits.arff", ARFF + before)
    changes = Changes({0: {"the flu": 1}}, {"the flu": ("NO", "YES")})
    assert corrected(path, changes).decode() == ARFF + after


def test_a_sparse_arff_row_leaves_its_first_value_out(tmp_path):
    path = write(tmp_path, "visits.arff", ARFF + "{0 41, 1 YES}\n")
    changes = Changes({0: {"the flu": 0}}, {"the flu": ("NO", "YES")})
    assert corrected(path, changes).decode() == ARFF + "{0 41}\n"


def test_libsvm_labels(tmp_path):
    path = write(tmp_path, "x.svm", "3 9 2\n1,2 1:0.5 # why\n 2:1\n2 3:1\n")
    values = {"1": ZERO_ONE, "2": ZERO_ONE}
    changes = Changes({0: {"1": 0}, 1: {"1": 1}, 2: {"2": 0}}, values)
    assert corrected(path, changes) == b"3 9 2\n2 1:0.5 # why\n1 2:1\n 3:1\n"
    with pytest.raises(DataFormatError, match="neither label nor feature"):
        corrected(write(tmp_path, "y.svm", "1\n2 1:1\n"), Changes({0: {"1": 0}}, values))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_arrow_types_and_metadata_stay(tmp_path, suffix):
    table = pa.table(
        {
            "age": pa.array([1, None, 3], pa.int16()),
            "b": pa.array([True, False, True]),
            "i": pa.array([0, 1, 0], pa.int8()),
            "f": pa.array([0.0, 1.0, 0.0], pa.float32()),
            "t": pa.array(["no", "yes", "no"]).dictionary_encode(),
        }
    ).replace_schema_metadata({"who": "us"})
    path = tmp_path / f"visits.{suffix}"
    pq.write_table(table, path, compression="gzip") if suffix == "parquet" else feather.write_feather(table, path)
    values = {"b": ("false", "true"), "i": ZERO_ONE, "f": ZERO_ONE, "t": ("no", "yes")}
    out = tmp_path / f"out.{suffix}"
    changes = Changes({2: {"b": 0, "i": 1, "t": 1}, 0: {"f": 1, "t": 1}, 1: {"t": 0}}, values)
    write_corrected(path, out, changes)
    found = pq.read_table(out) if suffix == "parquet" else feather.read_table(out)
    assert found.schema.equals(table.schema, check_metadata=True)
    assert found.column("age").to_pylist() == [1, None, 3]
    assert found.column("b").to_pylist() == [True, False, False]
    assert found.column("i").to_pylist() == [0, 1, 1]
    assert found.column("f").to_pylist() == [1.0, 1.0, 0.0]
    assert found.column("t").to_pylist() == ["yes", "no", "yes"]
    if suffix == "parquet":
        assert pq.ParquetFile(out).metadata.row_group(0).column(0).compression == "GZIP"


def test_lists_of_tags_in_parquet(tmp_path):
    table = pa.table({"x": [1, 2], "tags": [["a", "b"], None]})
    pq.write_table(table, tmp_path / "t.parquet")
    write_corrected(tmp_path / "t.parquet", tmp_path / "o.parquet", Changes({0: {"a": 0}, 1: {"b": 1}}, {}, "tags"))
    assert pq.read_table(tmp_path / "o.parquet").column("tags").to_pylist() == [["b"], ["b"]]


def test_npz_keeps_its_other_arrays(tmp_path):
    path = tmp_path / "x.npz"
    Y = np.array([[0, 1], [1, 1]], np.float32)
    np.savez_compressed(path, X=np.eye(2), Y=Y, label_names=np.array(["a", "b"]), note=np.array([7]))
    out = tmp_path / "o.npz"
    write_corrected(path, out, Changes({1: {"a": 0}}, {"a": ZERO_ONE}))
    with np.load(out) as file:
        assert file["Y"].tolist() == [[0, 1], [0, 1]]
        assert file["Y"].dtype == np.float32
        assert file["note"].tolist() == [7]


def test_another_format_is_refused_in_one_sentence(tmp_path):
    path = write(tmp_path, "visits.csv", "age,flu\n41,0\n")
    with pytest.raises(DataFormatError, match="written as its source is, csv"):
        write_corrected(path, tmp_path / "visits.parquet", Changes({}, FLU))
    with pytest.raises(DataFormatError, match="written as its source is"):
        write_corrected(path, tmp_path / "visits.csv.gz", Changes({}, FLU))


def test_a_file_that_changed_since_is_refused(tmp_path):
    path = write(tmp_path, "visits.csv", "age,flu\n41,0\n")
    with pytest.raises(DataFormatError, match="was changed since"):
        corrected(path, Changes({1: {"flu": 1}}, FLU))
    with pytest.raises(DataFormatError, match="no column 'fever'"):
        corrected(path, Changes({0: {"fever": 1}}, {"fever": ZERO_ONE}))


CELL = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(CELL, st.integers(0, 1)), min_size=1, max_size=8), st.data(), st.sampled_from([",", ";"]))
def test_whatever_stands_around_the_label_stays(tmp_path_factory, rows, data, delimiter):
    """pandas writes a table with hostile texts; the copy, read by pandas, differs in the corrected cells alone."""
    folder = tmp_path_factory.mktemp("any")
    frame = pd.DataFrame({"note": [text for text, _ in rows], "flu": [code for _, code in rows]})
    path = folder / "any.csv"
    frame.to_csv(path, index=False, sep=delimiter, lineterminator="\n")
    chosen = data.draw(st.sets(st.integers(0, len(rows) - 1)))
    changes = {row: {"flu": 1 - rows[row][1]} for row in chosen}
    out = corrected(path, Changes(changes, FLU))
    (folder / "out.csv").write_bytes(out)
    found = pd.read_csv(folder / "out.csv", sep=delimiter, keep_default_na=False, lineterminator="\n")
    expected = frame.copy()
    for row in chosen:
        expected.loc[row, "flu"] = 1 - expected.loc[row, "flu"]
    assert found["flu"].tolist() == expected["flu"].tolist()
    assert len(out) == path.stat().st_size


def test_a_dropped_row_keeps_its_place_in_the_file(tmp_path):
    path = write(tmp_path, "visits.csv", "age,flu\n" + "".join(f"{k},{'' if k == 1 else k % 2}\n" for k in range(8)))
    data = read(path, labels="flu", missing_labels="drop")
    assert data.places.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert data.take([1, 2]).places.tolist() == [2, 3]
    assert read(write(tmp_path, "all.csv", "age,flu\n1,0\n2,1\n"), labels="flu").places is None
