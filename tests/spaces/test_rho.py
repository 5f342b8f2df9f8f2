import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from mcode.models import BatchLogistic, BinaryRelevance, ClassifierChain, DependentRelevance, PerLabel
from mcode.models.alike import RememberedRows
from mcode.models.folds import stratified_folds
from mcode.spaces.rho import LOG_LARGEST, LOG_SMALLEST, RhoSpace, floored
from oracles import all_vectors, both_directions
from tables import dependent_table

ALL = ("br", "chain", "prior", "others")
LEARNED_BY_NOBODY = ("pairs", "rate", "prototypes", "company")  # counted or averaged: no penalty, no own learner


def test_rho_is_never_0_and_never_1():
    np.testing.assert_array_equal(
        floored(np.array([-np.inf, -1e9, -1.0, 0.0])), [LOG_SMALLEST] * 2 + [-1.0, LOG_LARGEST]
    )
    assert 0.0 < np.exp(LOG_SMALLEST) < 1e-11
    assert np.exp(LOG_LARGEST) < 1.0


def test_the_panel_holds_what_each_model_says():
    X, Y = dependent_table()
    learner = BatchLogistic(2.0)
    space = RhoSpace(DependentRelevance(learner), ALL).fit(X, Y, None, final=True)
    panel = space.panel(X, Y)
    expected = {
        "model": DependentRelevance(learner).fit(X, Y).log_proba(X, Y),
        "br": BinaryRelevance(learner).fit(X, Y).log_proba(X, Y),
        "chain": ClassifierChain(learner=learner).fit(X, Y).log_proba(X, Y),
        "prior": ClassifierChain(learner=learner).fit(X[:, :0], Y).log_proba(X[:, :0], Y),
        "others": DependentRelevance(learner).fit(X[:, :0], Y).log_proba(X[:, :0], Y),
    }
    expected["mutual"] = both_directions(DependentRelevance(learner).fit(X[:, :0], Y), Y)
    assert set(panel.views) == set(expected)
    for name, log_rho in expected.items():
        np.testing.assert_allclose(panel.views[name], log_rho, atol=1e-5)
    np.testing.assert_allclose(panel.rho, np.exp(panel.views["model"]))


@pytest.mark.parametrize("name", ["prior", "others", "mutual"])
def test_some_views_do_not_look_at_the_context(name):
    X, Y = dependent_table()
    space = RhoSpace(DependentRelevance(BatchLogistic(2.0)), ALL).fit(X, Y, None, final=True)
    views, elsewhere = space.panel(X, Y).views, space.panel(X + 1.0, Y).views
    np.testing.assert_array_equal(views[name], elsewhere[name])
    assert (views["chain"] != elsewhere["chain"]).any()


@pytest.mark.parametrize("name", ["chain", "prior"])
def test_a_chain_among_the_companions_is_a_proper_joint(name):
    X, Y = dependent_table()
    space = RhoSpace(DependentRelevance(BatchLogistic(2.0)), ALL).fit(X, Y, None, final=True)
    panel = space.panel(np.repeat(X[[3]], 16, axis=0), all_vectors(4))
    assert np.exp(panel.views[name].sum(axis=1)).sum() == pytest.approx(1.0, abs=1e-5)


def test_companions_take_over_the_penalties_found_for_the_model():
    X, Y = dependent_table(n=200)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    space = RhoSpace(DependentRelevance(), ALL).fit(X, Y, folds, final=True)
    found = space.models["model"].conditionals_.penalty
    for name in ALL:
        np.testing.assert_array_equal(space.models[name].conditionals_.penalty, found)
        scaled = space.models[name].conditionals_.scaling.mean is not None
        assert scaled == (name not in ("prior", "others")) or space.models[name].conditionals_.scaling.mean.size == 0
    for f, fold in enumerate(space.cross["model"].folds):
        for name in ALL:
            np.testing.assert_array_equal(space.cross[name].folds[f].penalty, fold.penalty)


def test_companions_of_any_classifier_use_that_classifier():
    X, Y = dependent_table()
    space = RhoSpace(BinaryRelevance(PerLabel(GaussianNB(), n_jobs=1)), ALL).fit(X, Y, None, final=True)
    assert isinstance(space.models["chain"].conditionals_.classifiers[0], GaussianNB)
    views = space.panel(X, Y).views
    assert np.isfinite(views["prior"]).all()
    np.testing.assert_array_equal(views["mutual"], views["others"])  # only logistic regressions are asked both ways


def test_out_of_fold_rows_are_read_by_models_that_never_saw_them():
    X, Y = dependent_table(n=150)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    companions = (*ALL, *LEARNED_BY_NOBODY)
    space = RhoSpace(DependentRelevance(BatchLogistic(1.0)), companions).fit(X, Y, folds, final=False)
    panel = space.out_of_fold(X, Y)
    for f in range(3):
        mine, rest = folds == f, folds != f
        alone = RhoSpace(DependentRelevance(BatchLogistic(1.0)), companions).fit(X[rest], Y[rest], None, final=True)
        for name, log_rho in alone.panel(X[mine], Y[mine]).views.items():
            np.testing.assert_allclose(np.exp(panel.views[name][mine]), np.exp(log_rho), atol=5e-3)


def test_some_rows_can_be_read_again_with_other_responses():
    X, Y = dependent_table(n=90)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    space = RhoSpace(DependentRelevance(BatchLogistic(1.0)), ALL).fit(X, Y, folds, final=False)
    rows = np.array([80, 3, 44])
    again = space.out_of_fold(X[rows], Y[rows], rows)
    np.testing.assert_allclose(again.rho, space.out_of_fold(X, Y).rho[rows], atol=1e-6)
    flipped = Y[rows].copy()
    flipped[:, 2] ^= 1
    np.testing.assert_allclose(space.out_of_fold(X[rows], flipped, rows).rho[:, 2], 1.0 - again.rho[:, 2], atol=1e-6)


def test_rows_that_are_alike_are_remembered_where_a_score_asks_for_them():
    X, Y = dependent_table(n=150)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    space = RhoSpace(DependentRelevance(BatchLogistic(1.0)), ("br", "rate", "alike")).fit(X, Y, folds, final=True)
    own = space.out_of_fold(X, Y)
    kept = RememberedRows.of(own.views["br"], Y, folds)
    new_X, new_Y = dependent_table(n=20, seed=1)
    new = space.panel(new_X, new_Y)
    for name in ("alike", "twins"):
        expected = kept.views(own.views["br"], own.views["rate"], Y, folds)[name]
        np.testing.assert_allclose(own.views[name], expected, atol=1e-4)
        expected = kept.views(new.views["br"], new.views["rate"], new_Y)[name]
        np.testing.assert_allclose(new.views[name], expected, atol=1e-4)
    without = RhoSpace(DependentRelevance(BatchLogistic(1.0)), ("br",)).fit(X, Y, folds, final=True)
    assert without.remembered is None
    assert set(without.panel(new_X, new_Y).views) == {"model", "br"}


def test_the_given_model_stays_unfitted():
    X, Y = dependent_table()
    model = DependentRelevance(BatchLogistic(1.0))
    RhoSpace(model).fit(X, Y, None, final=True)
    assert not hasattr(model, "conditionals_")
