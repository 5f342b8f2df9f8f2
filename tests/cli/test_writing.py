import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from mcode.cli.console import session
from mcode.cli.writing import WRITERS, check_output, neutral, write_table, writing

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_becomes_text(formula):
    assert neutral(formula) == f"'{formula}"


@pytest.mark.parametrize("cell", ["-5", "+3.2", "-1e-9", ".5", "", "a=b", -5, -0.25, None, "5 - 3"])
def test_numbers_and_plain_text_stay(cell):
    assert neutral(cell) == cell


def test_a_csv_file_neutralises_cells_and_names(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, {"=id": ["=1+1", "plain"], "score": [-1.5, 2.0]})
    with open(path, newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["'=id", "score"], ["'=1+1", "-1.5"], ["plain", "2.0"]]


def test_parquet_and_json_keep_cells_as_they_are(tmp_path):
    import pyarrow.parquet as pq

    table = {"id": ["=1+1", "-x"], "score": [-1.5, float("inf")]}
    write_table(tmp_path / "t.parquet", table)
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == table
    write_table(tmp_path / "t.json", table)
    assert json.loads((tmp_path / "t.json").read_text())[1] == {"id": "-x", "score": "inf"}


def test_mixed_values_of_a_column_become_text_in_parquet(tmp_path):
    import pyarrow.parquet as pq

    write_table(tmp_path / "t.parquet", {"observed": [0, "yes", None]})
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {"observed": ["0", "yes", None]}


@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_a_failure_halfway_leaves_the_old_file_and_nothing_else(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_text("old")

    def fail():
        with writing(path) as writer:
            writer.write({"a": [1, 2]})
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


KILLED = """
import sys, time
from pathlib import Path
from mcode.cli.console import session
from mcode.cli.writing import writing
with session() as screen, writing(Path(sys.argv[1])) as writer:
    writer.write({"a": list(range(100000))})
    print("halfway", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("how", "left"), [(signal.SIGKILL, 1), (signal.SIGTERM, 0), (signal.SIGINT, 0)])
def test_a_command_that_is_killed_halfway_leaves_no_half_written_result(tmp_path, how, left):
    path = tmp_path / "t.csv"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline().strip() == b"halfway"
        process.send_signal(how)
        process.communicate(timeout=20)
    finally:
        process.kill()
    assert not path.exists()
    # Nobody can tidy up after SIGKILL: what is left is a hidden file that no one takes for a result.
    assert [name.startswith(".t.csv.") and name.endswith(".part") for name in os.listdir(tmp_path)] == [True] * left


def test_the_place_of_a_result_is_checked_before_the_work(tmp_path):
    start = time.monotonic()
    with pytest.raises(Exception, match="does not exist"):
        check_output(tmp_path / "no" / "t.csv")
    assert time.monotonic() - start < 1.0


def test_a_session_gives_signals_back():
    before = signal.getsignal(signal.SIGTERM)
    with session(quiet=True):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
