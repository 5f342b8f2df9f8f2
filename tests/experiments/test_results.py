"""Rows that survive a stopped run."""

import pytest

from mcode.experiments.results import OtherSettingsError, Results, keep_settings


def rows_of(name):
    return [{"data": name, "method": method, "auc": 0.1} for method in "ab"]


def new(path):
    return Results(path, ("data", "method"), ("auc",))


def test_rows_are_there_again_after_a_restart(tmp_path):
    new(tmp_path / "r.csv").append(rows_of("yeast"))
    again = new(tmp_path / "r.csv")
    assert again.has(data="yeast", method="b")
    assert not again.has(data="yeast", method="c")
    assert again.rows()[0] == {"data": "yeast", "method": "a", "auc": "0.100000"}


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_file_cut_anywhere_ends_with_the_same_bits(tmp_path, cut):
    order = [{"data": name, "method": method} for name in ("x", "y") for method in "ab"]
    whole = new(tmp_path / "whole.csv")
    for name in ("x", "y"):
        whole.append(rows_of(name))
    whole.finish(order)
    torn = tmp_path / "torn.csv"
    torn.write_bytes((tmp_path / "whole.csv").read_bytes()[:-cut])
    results = new(torn)
    for name in ("y", "x"):  # in another order
        results.append([row for row in rows_of(name) if not results.has(data=name, method=row["method"])])
    results.finish(order)
    assert torn.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_dropped_rows_are_gone_from_the_file(tmp_path):
    results = new(tmp_path / "r.csv")
    results.append(rows_of("yeast"))
    results.drop(method="a")
    assert [row["method"] for row in new(tmp_path / "r.csv").rows()] == ["b"]


def test_other_columns_are_refused(tmp_path):
    new(tmp_path / "r.csv").append(rows_of("yeast"))
    with pytest.raises(OtherSettingsError, match="name another folder"):
        Results(tmp_path / "r.csv", ("data",), ("auc",))


def test_other_settings_are_refused(tmp_path):
    keep_settings(tmp_path, {"seed": 0})
    keep_settings(tmp_path, {"seed": 0})
    with pytest.raises(OtherSettingsError, match=r"seed 0; now seed 1"):
        keep_settings(tmp_path, {"seed": 1})


def test_rows_whose_key_is_a_share_are_found_again(tmp_path):
    path = tmp_path / "rows.csv"
    Results(path, ("data", "share"), ("auc",)).append([{"data": "a", "share": s, "auc": 0.5} for s in (0.05, 0.02)])
    again = Results(path, ("data", "share"), ("auc",))
    assert again.has(data="a", share=0.02)
    again.finish([{"data": "a", "share": 0.02}, {"data": "a", "share": 0.05}])
    assert [row["share"] for row in again.rows()] == ["0.020000", "0.050000"]
    again.drop(share=0.02)
    assert not again.has(data="a", share=0.02)
