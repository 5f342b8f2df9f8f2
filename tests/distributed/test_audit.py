"""Audits on a cluster: the cut over the whole table, findings of the flagged rows, folders of Parquet files."""

import json

import dask
import dask.array as da
import numpy as np
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcode
from distributed_tables import MODEL, folder_of, wrong_table
from mcode.detector.reading import fit_score
from mcode.distributed import audit_folder, fit_folder, open_folder, read_results, score_folder
from mcode.distributed.cut import BINS, Tally, cut_at, cut_top
from mcode.distributed.deal import Deal
from mcode.models import BatchLogistic, DependentRelevance
from mcode.ranking import conformal_p_value, false_discovery_cut, posterior_cut
from mcode.scores import LearnedScore
from mcode.spaces.rho import RhoSpace


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=60),
    st.lists(st.integers(0, 40), min_size=1, max_size=30),
    st.sampled_from([0.05, 0.1, 0.5]),
)
def test_the_cut_from_sums_is_the_cut_of_all_rows(scores, reference, fdr):
    scores, reference = np.array(scores, float), np.array(reference, float)
    p = conformal_p_value(scores, reference)
    error = (scores + 0.5) / 41.0
    parts = np.array_split(np.arange(len(scores)), 3)
    tallies = [Tally.of(scores[at], p[at], error[at], len(reference), 100) for at in parts if len(at)]
    total = tallies[0]
    for other in tallies[1:]:
        total = total + other
    cut = cut_at(total, fdr)
    ours = cut.flags(scores, p, error)
    exact = false_discovery_cut(p, fdr) & posterior_cut(error, fdr)
    # rows that tie are flagged together or not at all
    ties = np.isin(error, error[exact]) & false_discovery_cut(p, fdr)
    assert (ours <= ties).all()
    if len(set(error)) == len(error):
        np.testing.assert_array_equal(ours, exact)
    np.testing.assert_array_equal(total.rank(scores), 1 + (scores[:, None] < scores).sum(axis=1))
    assert cut_top(total, 1).flags(scores, p, error).sum() == (scores == scores.max()).sum()


def test_right_probabilities_have_bins_up_to_one():
    tally = Tally.of(np.zeros(2), np.ones(2), np.array([0.0, 1.0]), 1, 5)
    assert tally.by_right[0] == tally.by_right[BINS - 1] == 1


def test_an_audit_of_dask_arrays_agrees_with_the_audit_in_memory():
    X, Y, wrong = wrong_table()
    parts = da.from_array(X, chunks=(250, 4)), da.from_array(Y, chunks=(250, 3))
    found = mcode.audit(*parts, model=MODEL, score="noise")
    plain = mcode.audit(X, Y, model=MODEL, score="noise")
    score = found.outlier_score.compute()
    assert np.corrcoef(score, plain.outlier_score)[0, 1] > 0.99
    assert found.error_rate == plain.error_rate
    assert found.rho.compute().shape == found.response_error_probability.compute().shape == Y.shape
    assert ((found.p_value.compute() > 0) & (found.p_value.compute() <= 1)).all()
    flagged = found.flagged(0.5)
    assert np.isin(flagged, wrong).mean() > 0.7
    assert np.isin(wrong, flagged).mean() > 0.7
    assert (np.diff(score[flagged]) <= 0).all()
    finding = found.explain(int(flagged[0]))
    assert (finding.rank, finding.id) == (1, flagged[0])
    assert finding.responses[0].name in ("0", "2")


def default_in_memory(X, Y, folds):
    """The default score of rows in memory, dealt into the same folds: how they are dealt changes it a little."""
    space = RhoSpace(DependentRelevance(), LearnedScore.needs).fit(X, Y, folds, final=False)
    panel, score = space.out_of_fold(X, Y), LearnedScore()
    fit_score(score, panel, lambda other, rows: space.out_of_fold(X[rows], other, rows), folds)
    return score.outlier_score(panel)


def test_the_default_score_finds_the_wrong_rows_and_the_cut_is_over_the_whole_table():
    X, Y, wrong = wrong_table(1500)
    found = mcode.audit(da.from_array(X, chunks=(500, 4)), da.from_array(Y, chunks=(500, 3)), error_rate=0.02)
    score, error = dask.compute(found.outlier_score, found.error_probability)
    assert np.corrcoef(score, default_in_memory(X, Y, Deal(5).fold_of(np.arange(1500))))[0, 1] > 0.95
    assert np.isin(np.argsort(-score)[: len(wrong)], wrong).mean() > 0.9
    flagged, expected = found.flagged(0.5), np.flatnonzero(posterior_cut(error, 0.5))
    assert np.isin(wrong, flagged).mean() > 0.9
    assert set(flagged) <= set(expected)  # the bins are on the careful side
    assert len(flagged) >= 0.9 * len(expected)


def test_rows_of_an_audit_are_read_by_models_that_never_saw_them():
    X, Y, _ = wrong_table(600)
    found = mcode.audit(da.from_array(X, chunks=(200, 4)), da.from_array(Y, chunks=(200, 3)), model=MODEL, score="norm")
    fold = Deal(5).fold_of(np.arange(600))
    rho = np.empty(Y.shape)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for f in range(5):
        exact = DependentRelevance(BatchLogistic(penalty=1.0)).fit(scaled[fold != f], Y[fold != f])
        rho[fold == f] = np.exp(exact.log_proba(scaled[fold == f], Y[fold == f]))
    np.testing.assert_allclose(found.rho.compute(), rho, atol=1e-4)


def test_a_folder_is_fitted_audited_and_scored(tmp_path):
    folder, frame, wrong = folder_of(tmp_path)
    opened = open_folder(folder, "dx_*", id="visit")
    assert (len(opened.table.sources), opened.table.n_rows) == (3, 900)
    about = audit_folder(opened, tmp_path / "found", model=MODEL, score="noise", fdr=0.5)
    table = read_results(tmp_path / "found").to_pandas()
    assert about["rows"] == len(table) == 900
    assert table["visit"].tolist() == frame["visit"].tolist()
    flagged = np.flatnonzero(table["flagged"])
    assert len(flagged) == about["flagged"]
    assert np.isin(flagged, wrong).mean() > 0.7
    assert (table["sentence"] != "").tolist() == table["flagged"].tolist()
    assert sorted(table["rank"]) == list(range(1, 901))
    assert table["score"].idxmax() == table["rank"].idxmin()

    detector = fit_folder(mcode.MCODE(MODEL, "noise"), opened)
    again = open_folder(folder, like=opened.schema)
    scored = score_folder(detector, again, tmp_path / "scored", explain_above=0.9)
    table = read_results(tmp_path / "scored").to_pandas()
    data = mcode.read(frame, like=opened.schema)
    np.testing.assert_allclose(table["score"], detector.outlier_score(data.X, data.Y), rtol=1e-6)
    np.testing.assert_allclose(table["p_value"], detector.p_value(data.X, data.Y), atol=1e-9)
    np.testing.assert_allclose(table["percentile_rank"], detector.percentile_rank(data.X, data.Y), atol=1e-9)
    assert (table["sentence"] != "").sum() == scored["explained"] == (table["error_probability"] >= 0.9).sum()


def test_files_that_do_not_fit_into_memory_are_read_anew_in_every_pass(tmp_path, monkeypatch, small_sample):
    folder, _, _ = folder_of(tmp_path)
    opened = open_folder(folder, "dx_*", id="visit")
    kept = fit_folder(mcode.MCODE(MODEL, "norm"), opened)
    monkeypatch.setattr("mcode.distributed.logistic.KEPT_SHARE", 0.0)
    anew = fit_folder(mcode.MCODE(MODEL, "norm"), opened)
    np.testing.assert_allclose(kept.model_.conditionals_.features, anew.model_.conditionals_.features, atol=1e-5)


def test_a_result_without_its_manifest_is_none(tmp_path):
    folder, _, _ = folder_of(tmp_path, 300, 1)
    out = tmp_path / "found"
    audit_folder(open_folder(folder, "dx_*"), out, model=MODEL, score="norm")
    manifest = json.loads((out / "manifest.json").read_text())
    assert [part["rows"] for part in manifest["parts"]] == [manifest["rows"]] == [300]
    (out / "manifest.json").rename(tmp_path / "kept.json")
    with pytest.raises(mcode.DataFormatError, match="did not finish"):
        read_results(out)
    (tmp_path / "kept.json").rename(out / "manifest.json")
    (out / manifest["parts"][0]["name"]).unlink()
    with pytest.raises(mcode.DataFormatError, match="is missing"):
        read_results(out)


def test_a_folder_with_other_files_is_never_written_to(tmp_path):
    folder, _, _ = folder_of(tmp_path, 300, 1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(mcode.DataFormatError, match=r"other files \(notes.txt\)"):
        audit_folder(open_folder(folder, "dx_*"), tmp_path / "mine", model=MODEL, score="norm")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_missing_cells_become_features_wherever_they_are(tmp_path):
    folder, _, _ = folder_of(tmp_path)
    last = folder / "part-2.parquet"
    part = parquet.read_table(last).to_pandas()
    part.loc[5:9, "age"] = None
    part.to_parquet(last, index=False)
    opened = open_folder(folder, "dx_*", id="visit")
    assert "age is missing" in [feature.name for feature in opened.schema.vectoriser.features]
