"""Ways through the readers that ordinary files do not take."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mcode.data import arrow_columns, read, stream, table
from mcode.errors import DataFormatError, ParameterError


@pytest.mark.parametrize("late", ["7", "300", "2.5", "-129", "", "17000001", "true", "blue", "2024-01-01", "1e39"])
@pytest.mark.parametrize("early", ["{0}", "{0}.5", "w{0}", "2023-03-0{0}"])
def test_a_file_read_in_blocks_is_read_as_if_in_one(write, monkeypatch, early, late):
    lines = [f"{early.format(1 + i % 9)},{i},{i % 2}\n" for i in range(400)] + [f"{late},1,1\n"]
    path = write("a.csv", "x,y,dx\n" + "".join(lines))
    usual = read(path, "dx")
    monkeypatch.setattr(table, "SMALL_BLOCK", 256)
    monkeypatch.setattr(arrow_columns, "CELLS_AT_ONCE", 64)
    blocks = read(path, "dx")
    assert blocks.X.dtype == usual.X.dtype
    assert np.array_equal(blocks.X, usual.X)
    assert blocks.feature_names == usual.feature_names
    assert [blocks.cell(i, "x") for i in (0, 399, 400)] == [usual.cell(i, "x") for i in (0, 399, 400)]


def test_a_row_longer_than_a_block_is_read(write, monkeypatch):
    monkeypatch.setattr(table, "SMALL_BLOCK", 256)
    data = read(write("a.csv", "t,x,dx\n" + "a,1,0\n" * 100 + "b" * 5000 + ",2,1\n"), "dx")
    assert data.cell(100, "t") == "b" * 5000


@pytest.mark.parametrize(
    ("cell", "values", "code"),
    [
        ("yes", ("no", "yes"), 1),
        ("no", ("no", "yes"), 0),
        ("blue", ("blue", "not blue"), 0),
        ("false", ("false", "true"), 0),
    ],
)
def test_a_label_with_one_value_only_is_kept(write, cell, values, code):
    data = read(write("a.csv", f"x,dx\n1,{cell}\n2,{cell}\n"), "dx")
    assert data.label_values == (values,)
    assert data.Y.tolist() == [[code], [code]]


def test_numeric_labels_of_two_values_keep_their_meaning_in_parts(write):
    first = read(write("a.csv", "x,dx\n1,-1\n2,1\n3,1\n"), "dx")
    assert first.label_values == (("-1", "1"),)
    assert first.Y.tolist() == [[0], [1], [1]]
    assert [part.Y.tolist() for part in stream(write("b.csv", "x,dx\n1,1\n2,-1\n"), first, rows=1)] == [[[1]], [[0]]]


def test_formats_without_parts_are_streamed_from_memory(write):
    text = (
        "@relation 'r: -C 1'\n@attribute a {0,1}\n@attribute x real\n@attribute c {u,v,w}\n@data\n1,2,u\n0,3,v\n1,4,w\n"
    )
    first = read(write("a.arff", text))
    parts = list(stream(write("b.arff", text), like=first, rows=2))
    assert [len(part) for part in parts] == [2, 1]
    assert parts[1].row_ids.tolist() == [2]
    assert np.array_equal(np.vstack([part.X for part in parts]), first.X)
    with pytest.raises(ParameterError, match="rows must be"):
        next(stream("b.arff", like=first, rows=0))


def test_a_stream_without_rows_is_refused(write):
    first = read(write("a.csv", "x,dx\n1,0\n2,1\n"), "dx")
    with pytest.raises(DataFormatError, match="it has a header but no rows"):
        list(stream(write("b.csv", "x,dx\n"), like=first))


def test_unusual_arrow_types_become_numbers_texts_and_dates():
    table = pa.table(
        {
            "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")]),
            "at": pa.array([datetime.time(1, 0), datetime.time(2, 30), None]),
            "took": pa.array([datetime.timedelta(minutes=1), None, datetime.timedelta(seconds=5)]),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "code": pa.array([3, 4, 3]).dictionary_encode(),
            "text": pa.array(["u", "v", None], pa.large_string()),
            "day": pa.array([datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3)], pa.date64()),
            "seen": pa.array([datetime.datetime(2024, 1, 1, 5, tzinfo=datetime.UTC)] * 3),
            "dx": [True, False, True],
        }
    )
    data = read(table, "dx")
    assert [data.cell(0, name) for name in ("price", "at", "took", "kind", "code", "text")] == [
        1.5,
        3600,
        60,
        "a",
        3,
        "u",
    ]
    assert data.cell(2, "day") == datetime.date(2024, 1, 3)
    assert np.isfinite(data.X).all()
    assert np.array_equal(read(table, like=data).X, data.X)


@pytest.mark.parametrize("column", [pa.array([b"\xff", b"b"]), pa.array([{"a": 1}, {"a": 2}])])
def test_bytes_and_structures_are_refused(column):
    with pytest.raises(DataFormatError, match="column 'x' holds"):
        read(pa.table({"x": column, "dx": [0, 1]}), "dx")


def test_tags_may_be_numbers(write):
    assert read(write("a.csv", "x,tags\n1,7\n2,\n3,12\n"), tags_column="tags").label_names == ("12", "7")


def test_no_tag_at_all(write):
    with pytest.raises(DataFormatError, match="column 'tags' holds no tag"):
        read(write("a.csv", "x,tags\n1,;\n2,\n"), tags_column="tags")


def test_ids_may_be_numbers_and_labels_may_be_named_in_any_order(tmp_path):
    frame = pd.DataFrame({"id": [10, 20], "x": [1.0, 2.0], "b": [0, 1], "a": [1, 0]})
    data = read(frame, labels=["a", "b"], id="id")
    assert data.row_ids.tolist() == [10, 20]
    assert data.label_names == ("b", "a")
    assert len(data) == 2


@pytest.mark.parametrize(
    ("line", "name"),
    [("@attribute a{0,1}", "a"), ('@attribute\t"a b"\treal', "a b"), ("@attribute a date 'yyyy'", "a")],
)
def test_attributes_are_read_however_they_are_spaced(write, line, name):
    rows = "".join(f"{i % 2},{i % 2}\n" for i in range(4))
    data = read(write("a.arff", f"@relation r\n{line}\n@attribute dx {{0,1}}\n@data\n{rows}"), "dx")
    assert data.context_columns == (name,)


def test_parquet_named_gz_is_refused(write):
    with pytest.raises(DataFormatError, match="not read through gzip"):
        read(write("a.parquet.gz", b"x"), "dx")
