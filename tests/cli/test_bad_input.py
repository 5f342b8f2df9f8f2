"""Every mistake is one sentence on stderr and exit code 2, and leaves no file behind."""

import gzip

import pytest

from cli.runner import run

HEADER = "id,age,dx_a,dx_b\n"
GOOD = HEADER + "".join(f"{i},{20 + i % 50},{i % 2},{(i // 2) % 2}\n" for i in range(60))


def refused(result, *words):
    """Check that a command was refused in one sentence that holds the words."""
    assert result.exit_code == 2, result.stdout + result.stderr
    assert result.stdout == ""
    sentence = result.stderr.strip()
    assert sentence.startswith("error: ")
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    for word in words:
        assert word in sentence


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


TABLES = {
    "an empty file": ("t.csv", "", []),
    "a header only": ("t.csv", HEADER, ["no rows"]),
    "a ragged file": ("t.csv", GOOD + "1,2\n", []),
    "the wrong encoding": ("t.csv", GOOD.replace("age", "âge").encode("latin-1"), ["utf-8"]),
    "duplicate columns": ("t.csv", GOOD.replace("age", "id"), ["id"]),
    "a label of many values": ("t.csv", HEADER + "".join(f"{i},1,{i},0\n" for i in range(40)), ["dx_a", "40"]),
    "a label of text": ("t.csv", HEADER + "".join(f"{i},1,word{i},0\n" for i in range(9)), ["dx_a"]),
    "a missing label": ("t.csv", GOOD + "61,30,,1\n", ["dx_a", "60"]),
    "a truncated gzip": ("t.csv.gz", gzip.compress(GOOD.encode())[:60], []),
    "a truncated Parquet": ("t.parquet", b"PAR1" + b"x" * 50, []),
    "an unknown format": ("t.xyz", GOOD, ["format"]),
    "undeclared values": ("t.arff", "@relation t\n@attribute x numeric\n@attribute dx_a {0,1}\n@data\n1,maybe\n", []),
    "an npz that is none": ("t.npz", b"PK\x03\x04 nothing", []),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_that_cannot_be_read_is_refused_in_one_sentence(tmp_path, case):
    name, content, words = TABLES[case]
    path = written(tmp_path, name, content)
    out = tmp_path / "out.csv"
    refused(run("audit", path, "--labels", "dx_*", "--csv", out), name, *words)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_missing_file_is_refused(tmp_path):
    refused(run("audit", tmp_path / "no.csv", "-l", "dx_*"), "no.csv", "no such file")


def test_a_directory_is_refused(tmp_path):
    refused(run("audit", tmp_path, "-l", "dx_*"), "directory")


def test_xml_with_entities_is_refused(tmp_path):
    path = written(tmp_path, "t.csv", GOOD)
    bomb = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaa">]><labels><label name="&a;"></label></labels>'
    refused(run("audit", path, "-l", written(tmp_path, "l.xml", bomb)), "l.xml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-l", "rx_*"], ["rx_*", "no column matches"]),
        ([], ["which columns are labels"]),
        (["-l", "dx_*", "--id", "nobody"], ["nobody"]),
        (["-l", "dx_*", "--ignore", "zz"], ["zz"]),
        (["-l", "dx_*", "--fdr", "2"], ["--fdr", "between 0 and 1"]),
        (["-l", "dx_*", "--fdr", "nan"], ["--fdr"]),
        (["-l", "dx_*", "--top", "0"], ["--top", "at least 1"]),
        (["-l", "dx_*", "--rate", "-1"], ["--rate"]),
        (["-l", "dx_*", "--top", "3", "--rate", "0.1"], ["--top and --rate"]),
        (["-l", "dx_*", "--fail-above", "7"], ["--fail-above"]),
        (["-l", "dx_*", "--model", "dbrr"], ["dbrr", "Did you mean 'dbr'?"]),
        (["-l", "dx_*", "--score", "learnt"], ["learnt", "learned"]),
        (["-l", "dx_*", "--folds", "1"], ["folds"]),
        (["-l", "dx_*", "--encoding", "klingon"], ["klingon"]),
        (["-l", "dx_*", "--csv", "out.xlsx"], ["out.xlsx", ".csv"]),
        (["-l", "dx_*", "--csv", "no/such/folder/out.csv"], ["does not exist"]),
        (["-l", "dx_*", "--report", "out.pdf"], ["out.pdf", ".html"]),
        (["-l", "a.xml,b.xml", "-l", "c.xml"], ["one XML file"]),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(tmp_path, arguments, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(run("audit", written(tmp_path, "t.csv", GOOD), *arguments), *words)


def test_a_result_never_overwrites_its_table(tmp_path):
    path = written(tmp_path, "t.csv", GOOD)
    refused(run("audit", path, "-l", "dx_*", "--csv", path), "file that is read")
    assert path.read_text() == GOOD


def test_a_result_is_not_written_over_a_directory(tmp_path):
    (tmp_path / "out.csv").mkdir()
    refused(run("audit", written(tmp_path, "t.csv", GOOD), "-l", "dx_*", "--csv", tmp_path / "out.csv"), "directory")


def test_a_model_file_changed_in_one_byte_is_refused(model, visits, tmp_path):
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    changed = written(tmp_path, "changed.mcode", bytes(content))
    refused(run("score", changed, visits, "-o", tmp_path / "out.csv"), "changed.mcode", "damaged")
    refused(run("info", changed), "damaged")
    refused(run("explain", changed, visits, "--row", "V000001"), "damaged")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"cos\nsystem\n(S'true'\ntR.", b"mcode model 99\nabc\n"])
def test_what_is_no_model_is_refused(tmp_path, content):
    refused(run("info", written(tmp_path, "m.mcode", content)), "m.mcode")


def test_a_table_without_the_models_columns_is_refused(model, tmp_path):
    refused(run("score", model, written(tmp_path, "t.csv", GOOD), "-o", tmp_path / "out.csv"), "t.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_row_that_is_not_there_is_refused(model, visits):
    refused(run("explain", model, visits, "--row", "V999999"), "V999999", "400 rows")


def test_a_traceback_is_shown_only_on_request(tmp_path):
    result = run("audit", tmp_path / "no.csv", "-l", "dx_*", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_a_defect_is_told_from_bad_input(visits, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("boom")

    monkeypatch.setattr("mcode.cli.audit.run_audit", broken)
    result = run("audit", visits, "-l", "dx_*")
    assert result.exit_code == 3
    assert "defect of mcode (RuntimeError: boom)" in result.stderr
    assert "Traceback" not in result.stderr


def test_control_characters_of_data_do_not_reach_the_terminal(tmp_path):
    path = written(tmp_path, "t.csv", GOOD.replace("age", "a\x1b[31mge"))
    result = run("audit", path, "-l", "nothing_*")
    assert "\x1b[31m" not in result.stderr
    assert "\\x1b[31m" in result.stderr
