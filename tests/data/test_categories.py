"""Files whose responses have several values: read, read again, corrected."""

import numpy as np
import pandas as pd
import pytest

from mcode.data import read, stream
from mcode.data.changes import Changes
from mcode.data.corrected import write_corrected
from mcode.errors import DataFormatError

CSV = "patient,age,severity,grade,admitted\nA1,41,mild,2,no\nA2,67,severe,10,yes\nA3,55,none,1,no\nA4,70,mild,2,yes\n"


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text(CSV)
    return path


def test_texts_and_whole_numbers_are_categories_beside_two_values(visits):
    data = read(visits, ["severity", "grade", "admitted"], id="patient")
    assert data.label_values == (("mild", "none", "severe"), ("1", "2", "10"), ("no", "yes"))
    np.testing.assert_array_equal(data.Y, [[0, 1, 0], [2, 2, 1], [1, 0, 0], [0, 1, 1]])
    assert [data.response(1, j) for j in range(3)] == ["severe", "10", "yes"]


@pytest.mark.parametrize("suffix", ["parquet", "arff", "jsonl"])
def test_other_formats_hold_them_too(visits, tmp_path, suffix):
    frame = pd.read_csv(visits)
    path = tmp_path / f"visits.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        rows = "\n".join(",".join(map(str, row)) for row in frame.itertuples(index=False))
        path.write_text(
            "@relation v\n@attribute patient string\n@attribute age real\n@attribute severity {none,mild,severe}\n"
            f"@attribute grade {{1,2,10}}\n@attribute admitted {{no,yes}}\n@data\n{rows}\n"
        )
    data = read(path, ["severity", "grade", "admitted"], id="patient")
    assert [data.response(1, j) for j in range(3)] == ["severe", "10", "yes"]
    assert [len(values) for values in data.label_values] == [3, 3, 2]


def test_a_further_file_has_the_same_codes_and_no_other_value(visits, tmp_path):
    data = read(visits, ["severity", "grade", "admitted"], id="patient")
    more = tmp_path / "more.csv"
    more.write_text("patient,age,severity,grade,admitted\nB1,30,severe,2.0,yes\nB2,31,severe,10,no\n")
    again = read(more, like=data)
    np.testing.assert_array_equal(again.Y, [[2, 1, 1], [2, 2, 0]])
    np.testing.assert_array_equal(np.vstack([part.Y for part in stream(more, data, rows=1)]), again.Y)
    more.write_text("patient,age,severity,grade,admitted\nB1,30,fatal,2,yes\n")
    with pytest.raises(DataFormatError, match="'severity' holds 'fatal'; its values are 'mild', 'none' and 'severe'"):
        read(more, like=data)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_correction_writes_another_value(visits, tmp_path, suffix):
    source, out = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"
    if suffix == "csv":
        source.write_text(CSV)
    else:
        pd.read_csv(visits).to_parquet(source)
    data = read(source, ["severity", "grade"], id="patient", ignore="admitted")
    changes = Changes({0: {"severity": 2, "grade": 2}}, dict(zip(data.label_names, data.label_values, strict=True)))
    write_corrected(source, out, changes)
    corrected = read(out, like=data)
    assert [corrected.response(0, j) for j in range(2)] == ["severe", "10"]
    np.testing.assert_array_equal(corrected.Y[1:], data.Y[1:])
