import datetime
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import mcode
from mcode.data import read, stream
from mcode.errors import DataFormatError, InputError, ParameterError


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 120
    table = pd.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(n)],
            "age": rng.normal(50, 9, n).round(1),
            "visits": rng.integers(0, 5, n),
            "account": rng.integers(10**9, 2 * 10**9, n),
            "sex": rng.choice(["F", "M", None], n),
            "smoker": rng.choice(["yes", "no", None], n),
            "pregnant": rng.random(n) < 0.3,
            "seen": pd.date_range("2020-01-01", periods=n),
            "reason": [
                f"pain in {w} for {k} days" for w, k in zip(rng.choice(["back", "leg"], n), range(n), strict=True)
            ],
            "nothing": [None] * n,
            "dx_a": rng.integers(0, 2, n),
            "dx_b": rng.choice(["yes", "no"], n),
            "rx_c": rng.random(n) < 0.3,
            "rx_d": rng.integers(1, 3, n),
        }
    )
    table.loc[3, "age"] = np.nan
    table.loc[5, "seen"] = pd.NaT
    return table


def write_as(frame, kind, directory):
    path = directory / f"visits.{kind}"
    match kind:
        case "csv" | "csv.gz":
            frame.to_csv(path, index=False)
        case "tsv":
            frame.to_csv(path, index=False, sep="\t")
        case "parquet":
            frame.to_parquet(path, row_group_size=50)
        case "feather":
            feather.write_feather(pa.Table.from_pandas(frame), str(path))
        case "jsonl":
            frame.to_json(path, orient="records", lines=True, date_format="iso")
    return path


@pytest.fixture(scope="module")
def reference(frame):
    return read(frame, labels=["dx_*", "rx_*"], id="id")


def assert_same(one, other):
    assert one.feature_names == other.feature_names
    assert one.label_names == other.label_names
    assert one.label_values == other.label_values
    np.testing.assert_allclose(one.X, other.X, rtol=1e-6)
    assert np.array_equal(one.Y, other.Y)
    assert one.row_ids.tolist() == other.row_ids.tolist()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "feather", "jsonl"])
def test_every_format_gives_the_same_data_at_once_again_and_in_parts(frame, reference, kind, tmp_path):
    path = write_as(frame, kind, tmp_path)
    assert_same(read(path, labels=["dx_*", "rx_*"], id="id"), reference)
    assert_same(read(path, like=reference), reference)
    parts = list(stream(path, like=reference.schema, rows=50))
    assert [len(part) for part in parts] == [50, 50, 20]
    np.testing.assert_allclose(np.vstack([part.X for part in parts]), reference.X, rtol=1e-6)
    assert np.array_equal(np.vstack([part.Y for part in parts]), reference.Y)
    assert [i for part in parts for i in part.row_ids] == reference.row_ids.tolist()


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda f: pl.from_pandas(f).lazy()])
def test_tables_in_memory_are_taken_as_they_are(frame, reference, convert):
    assert_same(read(convert(frame), labels=["dx_*", "rx_*"], id="id"), reference)


def test_leading_zeros_of_an_id_are_kept(frame, tmp_path):
    assert read(write_as(frame, "csv", tmp_path), labels="dx_*", id="id").row_ids[7] == "0007"


def test_cells_come_back_as_the_user_wrote_them(reference, frame):
    context = reference.context(3)
    assert context["age"] is None
    assert context["account"] == frame["account"][3]
    assert context["seen"] == datetime.date(2020, 1, 4)
    assert context["reason"] == frame["reason"][3]
    assert reference.response(0, 1) == frame["dx_b"][0]
    assert "nothing" not in context


def test_a_dataset_goes_straight_into_an_audit(reference):
    found = mcode.audit(reference.X, reference.Y, score="complement", folds=2)
    assert found.outlier_score.shape == (120,)


def test_rows_can_be_taken(reference):
    part = reference.take([5, 3])
    assert part.row_ids.tolist() == ["0005", "0003"]
    assert part.context(0) == reference.context(5)
    assert part.cell(1, "age") is None


def test_a_file_is_recognised_by_how_it_begins(frame, reference, tmp_path):
    path = write_as(frame, "parquet", tmp_path).rename(tmp_path / "visits.data")
    assert_same(read(path, labels=["dx_*", "rx_*"], id="id"), reference)


def test_semicolons_and_a_stated_format_and_encoding(write):
    path = write("a.txt", "größe;dx\n1,5;0\n2;1\n".encode("latin-1"))
    data = read(path, "dx", format="csv", encoding="latin-1", delimiter=";")
    assert data.context_columns == ("größe",)
    assert read(write("b.csv", "a;dx\n1;0\n2;1\n"), "dx").feature_names == ("a",)


def test_cells_may_hold_line_ends_and_quotes(write):
    text = 'note,x,dx\n"two\nlines, ""quoted""",1,0\nplain,2,1\n'
    assert read(write("a.csv", text), "dx").cell(0, "note") == 'two\nlines, "quoted"'


def test_columns_are_ignored_by_pattern(frame):
    data = read(frame, labels="dx_*", ignore=["rx_*", "reason", "id"])
    assert not {"reason", "id", "rx_c"} & set(data.context_columns)


def test_tags_in_one_column_become_responses(write):
    text = "x,tags\n1,a; b\n2,\n3,b;c;b\n"
    data = read(write("a.csv", text), tags_column="tags")
    assert data.label_names == ("a", "b", "c")
    assert data.Y.tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    again = read(write("b.csv", "x,tags\n5,c\n"), like=data)
    assert again.Y.tolist() == [[0, 0, 1]]
    with pytest.raises(DataFormatError, match="tag 'z' in 'tags' is not known"):
        read(write("c.csv", "x,tags\n5,z\n"), like=data)
    assert read(write("d.csv", text.replace(";", "|")), tags_column="tags", separator="|").Y.sum() == 4


def test_tags_may_be_lists():
    table = pa.table({"x": [1.0, 2.0], "tags": [["a", "b"], None]})
    assert read(table, tags_column="tags").Y.tolist() == [[1, 1], [0, 0]]
    with pytest.raises(DataFormatError, match="column 'tags' holds lists"):
        read(table.append_column("dx", pa.array([0, 1])), labels="dx")


def test_rows_with_missing_labels_are_dropped_on_request(write):
    path = write("a.csv", "x,dx\n1,0\n2,\n3,1\n")
    data = read(path, "dx", missing_labels="drop")
    assert data.row_ids.tolist() == [0, 2]
    assert data.X.ravel().tolist() == [1, 3]
    assert read(path, like=data, missing_labels="drop").row_ids.tolist() == [0, 2]


def test_further_files_must_have_the_columns_and_kinds_of_the_first(write):
    data = read(write("a.csv", "x,s,dx\n1,u,0\n2,v,1\n"), "dx")
    with pytest.raises(DataFormatError, match="column 's' of the first file is missing"):
        read(write("b.csv", "x,dx\n1,0\n"), like=data)
    with pytest.raises(DataFormatError, match="label column 'dx'"):
        read(write("c.csv", "x,s\n1,u\n"), like=data)
    with pytest.raises(DataFormatError, match="'warm'"):
        read(write("d.csv", "x,s,dx\nwarm,u,0\n"), like=data)
    with pytest.raises(DataFormatError, match="held numbers in the first file"):
        read(pd.DataFrame({"x": ["warm"], "s": ["u"], "dx": [0]}), like=data)
    with pytest.raises(DataFormatError, match="label 'dx' holds '7'; its values are '0' and '1'"):
        read(write("e.csv", "x,s,dx\n1,u,7\n"), like=data)
    numbers_now = read(write("f.csv", "x,s,dx\n1,3,0\n"), like=data)
    assert numbers_now.X.tolist() == [[1, 0, 0]]


def test_progress_is_reported_up_to_the_end(write):
    text = "x,dx\n" + "".join(f"{i},{i % 2}\n" for i in range(5000))
    for path in (write("a.csv", text), write("a.csv.gz", gzip.compress(text.encode()))):
        seen = []
        with mcode.reporting(lambda stage, done, total, seen=seen: seen.append((stage, done, total))):
            read(path, "dx")
        assert seen[-1][0] == "read"
        assert seen[-1][1] == seen[-1][2]


def test_wide_tables_of_zeros_are_kept_sparse(tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.random((50, 120)) < 0.05).astype(np.uint8)
    table = pd.DataFrame(X, columns=[f"w{j}" for j in range(120)]).assign(dx=rng.integers(0, 2, 50))
    table.to_parquet(tmp_path / "a.parquet")
    data = read(tmp_path / "a.parquet", "dx")
    assert data.X.format == "csr"
    assert np.array_equal(data.X.toarray(), X)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"labels": []}, "labels"),
        ({"labels": [3]}, "labels"),
        ({"labels": "dx", "tags_column": "x"}, "tags_column"),
        ({"labels": "dx", "missing_labels": "guess"}, "missing_labels"),
        ({"labels": "dx", "format": "xls"}, "format"),
        ({"labels": "dx", "encoding": "klingon"}, "encoding"),
        ({"labels": "dx", "delimiter": ",,"}, "delimiter"),
        ({"labels": "dx", "id": "dx"}, "id"),
        ({"tags_column": "x", "separator": ""}, "separator"),
    ],
)
def test_parameters_out_of_range_are_named(write, arguments, name):
    with pytest.raises(ParameterError) as caught:
        read(write("a.csv", "x,dx\n1,0\n2,1\n"), **arguments)
    assert caught.value.parameter == name


def test_what_is_neither_path_nor_table_is_refused():
    with pytest.raises(ParameterError, match="path must be a path"):
        read(42, "dx")
    with pytest.raises(DataFormatError, match="a Series is not a table"):
        read(pd.Series([1.0]), "dx")
    assert issubclass(InputError, ValueError)
