"""`mcode fit`, `audit` and `score` on a cluster."""

import json

import pytest

import mcode
from cli.runner import run
from distributed_tables import folder_of
from mcode.distributed import read_results


@pytest.fixture
def address(client):
    return client.scheduler.address


def test_a_folder_goes_through_all_three_commands(tmp_path, address):
    folder, frame, _ = folder_of(tmp_path, 600)
    reading = ("--labels", "dx_*", "--id", "visit", "--score", "norm")
    model, found, scored = tmp_path / "m.mcode", tmp_path / "found", tmp_path / "scored"
    done = run("fit", folder, *reading, "-o", model, "--cluster", address)
    assert done.exit_code == 0, done.output
    assert "600 rows of table" in done.output
    done = run("audit", folder, *reading, "-o", found, "--top", 5, "--cluster", address, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["summary"]["flagged"] == 5
    assert [finding["rank"] for finding in said["findings"]] == [1, 2, 3, 4, 5]
    assert read_results(found)["visit"].to_pylist() == frame["visit"].tolist()
    done = run("score", model, folder, "-o", scored, "--cluster", address, "--fail-above", 0)
    assert done.exit_code == 1, done.output
    data = mcode.read(frame, like=mcode.read(frame, "dx_*", id="visit"))
    assert read_results(scored).num_rows == len(data)


def test_processes_of_this_machine_are_a_cluster_too(tmp_path):
    folder, _, _ = folder_of(tmp_path, 200, 1)
    reading = ("--labels", "dx_*", "--score", "norm", "--model", "br")
    done = run("audit", folder, *reading, "-o", tmp_path / "found", "--cluster", "local:1", "--rate", 0.01)
    assert done.exit_code == 0, done.output
    assert "2 rows flagged" in done.output


def test_what_is_wrong_is_one_sentence_and_exit_code_2(tmp_path, address):
    folder, _, _ = folder_of(tmp_path, 100, 1)
    for arguments, sentence in (
        (("audit", folder, "--labels", "dx_*", "--cluster", address), "--out must be a folder"),
        (("audit", folder, "--labels", "no_*", "--cluster", address, "-o", tmp_path / "o"), "no column matches"),
        (("audit", tmp_path / "no", "--labels", "dx_*", "--cluster", address, "-o", tmp_path / "o"), "no such folder"),
        (("audit", folder, "--cluster", "tcp://127.0.0.1:9", "-o", tmp_path / "o"), "No Dask scheduler answers"),
        (("audit", folder, "--labels", "dx_*", "--cluster", address, "--report", "r.html"), "left out"),
    ):  # fmt: skip
        done = run(*arguments)
        assert done.exit_code == 2, done.output
        assert sentence in " ".join(done.output.split())
    assert not (tmp_path / "o").exists()
