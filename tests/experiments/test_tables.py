"""Tables and figures of results."""

import xml.etree.ElementTree as ET

import numpy as np

from mcode.experiments import figures, paper
from mcode.experiments.paper_tables import METHODS, auc_table, comparison, report_experiment_1, report_experiment_2
from mcode.experiments.results import Results
from mcode.experiments.tables import Cell, TextTable


def printed_runs():
    """Return 30 runs of each data set that have exactly the printed means and standard deviations."""
    noise = np.random.default_rng(0).normal(size=(30, 8))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1)
    files = ("mediamill_sample", "bibtex", "reuters_aligned", "corel5k", "medical", "genbase")
    return {file: noise * paper.SD[i] + paper.AUC[i] for i, file in enumerate(files)}


def test_table_of_the_printed_numbers_is_the_printed_table():
    table = auc_table(printed_runs())
    mediamill = [cell.text for cell in table.rows[0]]
    assert mediamill[:3] == ["Mediamill", "0.734 (0.187)", "0.820 (0.045)"]
    rank = table.rows[-1]
    assert [cell.text.split()[0] for cell in rank[1:9]] == [f"{value:.2f}" for value in paper.RANK]
    assert {METHODS[j] for j, cell in enumerate(rank[1:9]) if cell.bold} == paper.BOLD_RANK


def test_printed_numbers_agree_with_themselves():
    assert {row[-1].text for row in comparison(printed_runs()).rows} == {"agrees"}


def test_texts_are_escaped():
    table = TextTable("t", ("a_b", "c|d"), ((Cell("5 %"), Cell("x|y", bold=True)),))
    assert r"a\_b" in table.latex()
    assert r"5 \%" in table.latex()
    assert r"**x\|y**" in table.markdown()
    assert table.csv() == "a_b,c|d\n5 %,x|y*\n"


def test_reports_are_the_same_files_twice(tmp_path):
    results = Results(tmp_path / "rows.csv", ("data", "repeat", "fold", "p", "method"), ("auc", "ap"))
    for name, runs in printed_runs().items():
        for fold, run in enumerate(runs[:4]):
            key = {"data": name, "repeat": 0, "fold": fold, "p": 1}
            results.append(
                {**key, "method": m, "auc": float(v), "ap": float(v)} for m, v in zip(METHODS, run, strict=True)
            )
    for report in (report_experiment_1, report_experiment_2):
        first = {path: path.read_bytes() for path in report(results, tmp_path / "out")}
        assert first
        assert first == {path: path.read_bytes() for path in report(results, tmp_path / "out")}


def test_unfinished_results_have_no_table(tmp_path):
    results = Results(tmp_path / "rows.csv", ("data", "repeat", "fold", "p", "method"), ("auc", "ap"))
    results.append([{"data": "yeast", "repeat": 0, "fold": 0, "p": 1, "method": "LOF", "auc": 0.5, "ap": 0.5}])
    assert report_experiment_1(results, tmp_path) == []
    assert report_experiment_2(results, tmp_path) == []


def test_figures_are_drawings_with_their_names(tmp_path):
    figures.critical_differences(
        ["ours", "theirs"], np.array([1.2, 1.8]), 0.4, "ranks", tmp_path / "cd.svg", ours="ours"
    )
    figures.curves({"Yeast": {"k = 5": ([1, 2], [0.5, 0.6])}}, "copies", "AUC", tmp_path / "c.svg", log_x=True)
    for name in ("cd.svg", "c.svg"):
        assert ET.parse(tmp_path / name).getroot().tag.endswith("svg")
