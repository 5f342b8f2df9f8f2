"""Whatever the bytes, a reader returns a data set or raises one of our own errors."""

import functools
import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcode.data import Dataset, read
from mcode.errors import McodeError

FAST = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
ARFF = (
    b"@relation 'r: -C 1'\n@attribute a {0,1}\n@attribute 'b c' numeric\n@attribute d {x,'y z'}\n"
    b"@data\n1,2.5,x\n0,?,'y z'\n{0 1,2 'y z'}\n"
)
CSV = b'x,s,seen,dx_a\n1,"a, b",2024-01-01,0\n2,c,,1\n3.5,c,2024-01-03,1\n'
JSON = b'{"x": 1, "s": "a", "dx_a": 0}\n{"x": 2.5, "s": null, "dx_a": 1}\n'
XML = b'<?xml version="1.0"?><labels xmlns="m"><label name="a"/></labels>'


@functools.cache
def valid(name):
    table = pa.table({"x": [1.0, 2.0, None], "s": ["a", None, "b"], "dx_a": [0, 1, 1]})
    out = io.BytesIO()
    match name:
        case "a.parquet":
            parquet.write_table(table, out)
        case "a.feather":
            feather.write_feather(table, out, compression="uncompressed")
        case "a.npz":
            np.savez(out, X=np.eye(3, 2), Y=np.eye(3, 2, dtype=np.uint8), label_names=np.array(["dx_a", "dx_b"]))
        case "a.csv.gz":
            return gzip.compress(CSV)
        case _:
            return {"a.csv": CSV, "a.tsv": CSV.replace(b",", b"\t"), "a.jsonl": JSON, "a.arff": ARFF, "a.xml": XML}.get(
                name, b"a,b 1:2 3:0.5\nb 2:1\n"
            )
    return out.getvalue()


INSERTED = [b"{", b"'", b'"', b",", b"\n", b"\0", b"\xff", b"1e999", b"?"]
FILES = ["a.csv", "a.tsv", "a.csv.gz", "a.parquet", "a.feather", "a.jsonl", "a.arff", "a.svm", "a.npz", "a.xml"]


def read_bytes(name, content):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(content)
        labels = None if name in ("a.arff", "a.svm", "a.npz") else "dx_*"
        if name == "a.xml":
            labels, path = path, path.with_name("b.arff")
            path.write_bytes(ARFF)
        try:
            data = read(path, labels)
        except McodeError:
            return
        assert isinstance(data, Dataset)
        assert np.isfinite(data.X.data if hasattr(data.X, "indptr") else data.X).all()


@pytest.mark.parametrize("name", FILES)
def test_the_unchanged_files_are_valid(name):
    read_bytes(name, valid(name))


@pytest.mark.parametrize("name", FILES)
@FAST
@given(content=st.binary(min_size=1, max_size=300))
def test_random_bytes(name, content):
    read_bytes(name, content)


@pytest.mark.parametrize("name", FILES)
@FAST
@given(data=st.data())
def test_valid_files_with_damage(name, data):
    content = bytearray(valid(name))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        match data.draw(st.sampled_from(["change", "cut", "insert", "repeat"])):
            case "change" if content:
                content[at] = data.draw(st.integers(0, 255))
            case "cut":
                del content[at : at + data.draw(st.integers(1, 20))]
            case "insert":
                content[at:at] = data.draw(st.sampled_from(INSERTED))
            case _:
                content += content[at:]
    read_bytes(name, bytes(content))


WORDS = st.sampled_from(
    ["1", "0", "?", "x", "'", '"', ",", "{", "}", " ", "\n", "%", "@data", "@attribute a {0,1}", "@relation r", "nan",
     "1e999", "-5", "a:b", "3:1", ":", "\t", "\\", "dx_a", "yes", "2024-01-01", "[", "é", "#", "99999999999999999999"]
)  # fmt: skip


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.arff", "a.svm"])
@FAST
@given(words=st.lists(WORDS, max_size=40), keep_header=st.booleans())
def test_texts_made_of_the_words_of_the_format(name, words, keep_header):
    start = valid(name)[: -len(valid(name)) // 3] if keep_header else b""
    read_bytes(name, start + "".join(words).encode() + b"\n")
