"""`mcode experiment` from the command line, on small tables."""

import json

import pytest

from cli.runner import run
from experiments.conftest import save
from tables import dependent_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets")
    save(path / "genbase.npz", *dependent_table(n=120, m=3, d=5, seed=1))
    return path


def test_experiment_prints_its_table_and_names_its_files(folder, tmp_path):
    out = tmp_path / "out"
    result = run("experiment", "1", "--quick", "--data", folder, "--sets", "genbase", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "| Genbase |" in result.stdout
    assert "table (md, csv, tex)" in " ".join(result.stderr.split())
    again = run("experiment", "1", "--quick", "--data", folder, "--sets", "genbase", "--out", out, "--json")
    files = json.loads(again.stdout)["files"]
    before = (out / "table.md").read_bytes()
    (out / "table.md").unlink()
    assert run("experiment", "1", "--only-tables", "--out", out, "--quiet").exit_code == 0
    assert (out / "table.md").read_bytes() == before
    assert str(out / "table.tex") in files
    assert all((out / name).exists() for name in ("rows.csv", "times.csv", "bars.svg", "comparison.md"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["3"], "WHICH must be one of"),
        (["1", "--sets", "genbse"], "Did you mean 'genbase'?"),
        (["1", "--sets", "yeast"], "is missing"),
    ],
)
def test_bad_requests_are_one_sentence(folder, tmp_path, arguments, sentence):
    result = run("experiment", *arguments, "--data", folder, "--out", tmp_path)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_results_of_another_seed_are_refused(folder, tmp_path):
    base = ["experiment", "1", "--quick", "--data", folder, "--sets", "genbase", "--out", tmp_path, "--quiet"]
    assert run(*base).exit_code == 0
    result = run(*base, "--seed", "1")
    assert result.exit_code == 2
    assert "other settings" in result.stderr
