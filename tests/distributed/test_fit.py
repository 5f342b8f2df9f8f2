"""Fits on a cluster of processes agree with fits in memory."""

import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

import mcode
from distributed import wait
from mcode.distributed import Cluster, Deal
from mcode.distributed.pieces import Ask, Coordinates, prepare, squared_rises
from mcode.models import BatchLogistic, BinaryRelevance, DependentRelevance, PerLabel
from mcode.models.encoding import ResponseEncoding
from mcode.spaces.rho import RhoSpace
from tables import dependent_table, sparse_table

N, M, D = 2400, 5, 4


def table(n=N, m=M, d=D, seed=0):
    X, Y = dependent_table(n, m, d, seed)
    return X * np.array([1.0, 30.0, 0.2, 1.0, 1.0])[:m] + np.array([0.0, 500.0, 0.0, 3.0, 0.0])[:m], Y


def as_dask(X, Y, cuts=(700, 500)):
    return da.from_array(X, chunks=(cuts[0], 3)), da.from_array(Y, chunks=(cuts[1], Y.shape[1]))


def in_memory(model, X, Y, folds=5, seed=0):
    """Return the same fit in memory: the same folds, the same penalties."""
    return RhoSpace(model).fit(X, Y, Deal(folds, seed).fold_of(np.arange(len(Y))), final=True)


@pytest.mark.parametrize("model", [BinaryRelevance, DependentRelevance])
def test_coefficients_and_rho_agree_with_the_fit_in_memory(model, small_sample):
    X, Y = table()
    learner = BatchLogistic(penalty=0.7, scale=True)
    detector = mcode.MCODE(model(learner), "complement").fit(*as_dask(X, Y))
    plain = in_memory(model(learner), X, Y).models["model"].conditionals_
    ours = detector.model_.conditionals_
    np.testing.assert_allclose(ours.features, plain.features, atol=1e-4)
    np.testing.assert_allclose(ours.intercept, plain.intercept, atol=1e-4)
    if plain.responses is not None:
        np.testing.assert_allclose(ours.responses, plain.responses, atol=1e-4)
    np.testing.assert_allclose(detector.transform(X, Y), np.exp(plain.log_proba(X, Y)), atol=1e-4)


def test_features_of_any_unit_and_offset_agree_without_scaling(small_sample):
    X, Y = table()
    learner = BatchLogistic(penalty=2.0)
    detector = mcode.MCODE(DependentRelevance(learner), "complement").fit(*as_dask(X, Y))
    plain = in_memory(DependentRelevance(learner), X, Y).models["model"].conditionals_
    np.testing.assert_allclose(detector.model_.conditionals_.features, plain.features, atol=1e-4)
    np.testing.assert_allclose(detector.transform(X, Y), np.exp(plain.log_proba(X, Y)), atol=1e-4)


def test_models_of_folds_agree_with_exact_fits_on_the_other_rows(small_sample):
    X, Y = dependent_table(N, M, D)
    learner = BatchLogistic(penalty=1.0, scale=False)
    detector = mcode.MCODE(DependentRelevance(learner), "complement").fit(*as_dask(X, Y))
    fold = Deal(5).fold_of(np.arange(N))
    for f, ours in enumerate(detector.space_.cross["model"].folds):
        exact = DependentRelevance(learner).fit(X[fold != f], Y[fold != f])
        rho, expected = np.exp(ours.log_proba(X, Y)), np.exp(exact.log_proba(X, Y))
        np.testing.assert_allclose(rho, expected, atol=1e-4)


def test_the_penalty_of_a_long_table_is_searched_on_the_sample(monkeypatch):
    X, Y = table()
    walked = mcode.MCODE("dbr", "complement").fit(*as_dask(X, Y)).model_.conditionals_
    monkeypatch.setattr("mcode.distributed.logistic.MOST_SEARCHED", 2000)
    monkeypatch.setattr("mcode.distributed.logistic.ENOUGH_TO_SEARCH", 500)
    with dask.config.set({"mcode.sample-rows": 1500}):
        detector = mcode.MCODE("dbr", "complement").fit(*as_dask(X, Y))
    ours = detector.model_.conditionals_
    exact = DependentRelevance(BatchLogistic(penalty=ours.penalty, scale=True)).fit(X, Y)
    np.testing.assert_allclose(detector.transform(X, Y), np.exp(exact.log_proba(X, Y)), atol=1e-4)
    assert (np.abs(np.log10(ours.penalty / walked.penalty)) < 2).all()


def test_the_searched_penalty_predicts_as_well_as_any_on_the_grid(small_sample):
    X, Y = table(1500)
    detector = mcode.MCODE("br", "complement").fit(*as_dask(X, Y))
    fold = Deal(5).fold_of(np.arange(len(Y)))

    def held_out(penalty):
        space = RhoSpace(BinaryRelevance(BatchLogistic(penalty=penalty, scale=True))).fit(X, Y, fold, final=False)
        return -space.out_of_fold(X, Y).views["model"].sum()

    found = held_out(detector.model_.conditionals_.penalty)
    assert found <= 1.001 * min(held_out(p) for p in (1e3, 1e2, 10.0, 1.0, 0.1))


def test_sparse_blocks_agree_with_the_sparse_fit_in_memory(small_sample):
    X, Y = sparse_table(1200, 40, 4)
    blocks = [da.from_array(X[a : a + 400], chunks=(400, 40), asarray=False) for a in range(0, 1200, 400)]
    learner = BatchLogistic(penalty=1.0)
    detector = mcode.MCODE(DependentRelevance(learner), "complement").fit(
        da.concatenate(blocks), da.from_array(Y, chunks=(400, 4))
    )
    plain = in_memory(DependentRelevance(learner), X, Y).models["model"].conditionals_
    np.testing.assert_allclose(detector.model_.conditionals_.features, plain.features, atol=1e-4)
    assert sp.issparse(X)
    np.testing.assert_allclose(detector.transform(X, Y), np.exp(plain.log_proba(X, Y)), atol=1e-4)


def test_dataframes_keep_names_and_texts():
    X, Y = table(600)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(M)])
    answers = pd.DataFrame(np.where(Y == 1, "yes", "no"), columns=["a", "b", "c", "d"])
    learner = BatchLogistic(penalty=1.0)
    fitted = mcode.MCODE(DependentRelevance(learner), "complement").fit(
        dd.from_pandas(frame, npartitions=3), dd.from_pandas(answers, npartitions=3)
    )
    assert fitted.encoding_.names == ["a", "b", "c", "d"]
    plain = mcode.MCODE(DependentRelevance(learner), "complement").fit(frame, answers)
    np.testing.assert_allclose(fitted.transform(frame, answers), plain.transform(frame, answers), atol=1e-4)


def test_the_cuts_of_the_table_do_not_matter():
    X, Y = table(900)
    fits = [
        mcode.MCODE(BinaryRelevance(BatchLogistic(penalty=1.0)), "complement").fit(*as_dask(X, Y, (cut, cut)))
        for cut in (900, 250)
    ]
    a, b = (fit.model_.conditionals_ for fit in fits)
    np.testing.assert_allclose(a.features, b.features, atol=1e-6)
    np.testing.assert_allclose(fits[0].reference_score_, fits[1].reference_score_, atol=1e-4)


def test_blocks_that_do_not_fit_into_memory_are_read_anew_in_every_pass(monkeypatch, small_sample):
    X, Y = table(900)
    learner = BatchLogistic(penalty=1.0)
    kept = mcode.MCODE(DependentRelevance(learner), "complement").fit(*as_dask(X, Y))
    monkeypatch.setattr("mcode.distributed.logistic.KEPT_SHARE", 0.0)
    anew = mcode.MCODE(DependentRelevance(learner), "complement").fit(*as_dask(X, Y))
    np.testing.assert_allclose(kept.model_.conditionals_.features, anew.model_.conditionals_.features, atol=1e-5)


def test_a_response_with_one_value_gets_its_base_rate_and_is_reported():
    X, Y = table(600)
    Y[:, 2] = 0
    detector = mcode.MCODE(DependentRelevance(BatchLogistic(penalty=1.0)), "complement").fit(*as_dask(X, Y))
    assert detector.one_valued_ == ["2"]
    np.testing.assert_allclose(detector.transform(X, Y)[:, 2], 1 - 0.5 / 601, atol=1e-6)


@pytest.mark.parametrize(
    ("score", "reference"), [("robust", "cross-fit"), ("robust", "holdout"), ("lof", "batch"), ("ocsvm", "cross-fit")]
)
def test_scores_rank_rows_as_they_do_in_memory(score, reference):
    X, Y = table(900)
    model = DependentRelevance(BatchLogistic(penalty=1.0))
    detector = mcode.MCODE(model, score, reference=reference).fit(*as_dask(X, Y))
    lazily = detector.outlier_score(*as_dask(X, Y))
    assert isinstance(lazily, da.Array)
    ours = lazily.compute()
    plain = mcode.MCODE(model, score, reference=reference).fit(X, Y).outlier_score(X, Y)
    ranks = [np.argsort(np.argsort(s)) for s in (ours, plain)]
    assert np.corrcoef(ranks)[0, 1] > (0.9 if reference == "holdout" else 0.995)


def test_every_method_says_on_dask_what_it_says_in_memory():
    X, Y = table(600)
    parts = as_dask(X, Y)
    detector = mcode.MCODE(DependentRelevance(BatchLogistic(penalty=1.0)), "lof").fit(*parts)
    for method in ("outlier_score", "percentile_rank", "p_value", "score_samples", "predict", "error_probability",
                   "transform", "response_error_probability", "response_p_value"):  # fmt: skip
        ours, plain = getattr(detector, method)(*parts), getattr(detector, method)(X, Y)
        assert ours.shape == plain.shape
        np.testing.assert_allclose(ours.compute(), plain, rtol=1e-9, atol=1e-12)
    assert set(np.unique(detector.fit_predict(*parts).compute())) <= {-1, 1}


def test_a_fitted_detector_is_saved_and_loaded_like_any_other(tmp_path):
    X, Y = table(600)
    detector = mcode.MCODE(DependentRelevance(BatchLogistic(penalty=1.0)), "noise").fit(*as_dask(X, Y))
    mcode.save(detector, tmp_path / "d.mcode")
    loaded = mcode.load(tmp_path / "d.mcode")
    np.testing.assert_array_equal(loaded.outlier_score(X, Y), detector.outlier_score(X, Y))


def test_per_label_learners_are_spread_by_joblib_and_x_is_shipped_once(client):
    X, Y = dependent_table(20_000, 40, D)
    model = DependentRelevance(PerLabel(GaussianNB()))
    parts = client.persist([da.from_array(X, chunks=(10_000, 40)), da.from_array(Y, chunks=(10_000, D))])
    wait(parts)
    before = loopback_bytes()
    detector = mcode.MCODE(model, "complement").fit(*parts)
    # brought together once, and once to each of the two workers; there are 24 fits
    assert loopback_bytes() - before < 12 * X.nbytes  # others may be talking too
    plain = mcode.MCODE(model, "complement").fit(X, Y)
    np.testing.assert_allclose(detector.transform(X, Y), plain.transform(X, Y), atol=1e-9)


def loopback_bytes():
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def test_scores_that_learn_are_fitted_on_a_sample_of_stated_size(small_sample):
    X, Y = table(900)
    detector = mcode.MCODE(DependentRelevance(BatchLogistic(penalty=1.0)), "lof").fit(*as_dask(X, Y))
    assert len(detector.reference_score_) == len(detector.reference_log_rho_) == 200
    places = Deal(5).place_of(np.arange(900))
    chosen = np.sort(np.argsort(places)[:200])
    rho = detector.space_.cross["model"]
    assert np.bincount(rho.fold_of_row, minlength=5).tolist() == np.bincount(Deal(5).fold_of(chosen)).tolist()


def test_rises_of_the_loss_are_those_of_the_held_out_rows():
    X, Y = table(300)
    rng = np.random.default_rng(0)
    after, before = (rng.normal(size=(M + 1, D)).astype(np.float32) for _ in range(2))
    encoding = ResponseEncoding.of(Y)
    coordinates = Coordinates(X.mean(axis=0), X.std(axis=0), None, parents=False)
    chunk = prepare([[X, Y, 0, 0, M, list("abcd")], "k"], encoding, coordinates, Deal(3))
    ask = Ask(np.arange(D), np.full(D, 1))
    held = Deal(3).fold_of(np.arange(300)) == 1
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(300)])[held]
    loss = [np.logaddexp(0, (1 - 2.0 * Y[held]) * (Z @ W)) for W in (after, before)]
    expected = ((loss[0] - loss[1]) ** 2).sum(axis=0)
    np.testing.assert_allclose(squared_rises([chunk], after, before, ask), expected, rtol=1e-4)


def test_sums_leave_nothing_behind_on_the_workers(client):
    cluster = Cluster(client)
    parts = cluster.compute(_ones, range(30))
    held = [part.key for part in parts]
    assert cluster.total(parts).tolist() == [30.0, 30.0]
    assert not parts
    deadline = time.monotonic() + 10
    while any(client.has_what().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not set(held) & {key for keys in client.has_what().values() for key in keys}


def _ones(_):
    return np.ones(2)


def test_the_tree_and_the_learned_score_work_too():
    X, Y = table(900)
    detector = mcode.MCODE("tree").fit(*as_dask(X, Y))
    assert (detector.model_.parents_.sum(axis=1) <= 1).all()
    assert detector.outlier_score(X[:3], Y[:3]).shape == (3,)


def test_without_a_cluster_the_threads_of_this_process_do_the_work(client):
    X, Y = table(400)
    from distributed.client import _current_client, _global_clients  # the fixture's client is the current one

    clients, token = dict(_global_clients), _current_client.set(None)
    _global_clients.clear()
    try:
        detector = mcode.MCODE(BinaryRelevance(BatchLogistic(penalty=1.0)), "norm").fit(*as_dask(X, Y))
    finally:
        _global_clients.update(clients)
        _current_client.reset(token)
    assert np.isfinite(detector.transform(X, Y)).all()
