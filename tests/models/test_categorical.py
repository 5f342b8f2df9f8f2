"""Responses with several values, from the solver's columns to rho, against scikit-learn response by response."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from categories import clinic
from mcode.errors import InputError
from mcode.models import (
    BatchLogistic,
    BinaryRelevance,
    ChainEnsemble,
    ClassifierChain,
    DependentRelevance,
    MixtureModel,
    PerLabel,
    TreeRelevance,
    TrimmedModel,
)
from mcode.models.categorical import likeliest_values, log_proba_of_values
from mcode.models.encoding import MISSING, ResponseEncoding
from mcode.models.folds import stratified_folds
from mcode.models.indicators import Indicators, indicators, other_value

K = (3, 4, 2)


@pytest.fixture(scope="module")
def table():
    X, Y = clinic(300)
    encoding = ResponseEncoding.of(Y)
    assert encoding.n_values == K
    return X, encoding.encode(Y)


def one_by_one(X, Y, parents, penalty=1.0, weight=None):
    """Return P of every value of each response, fitted by scikit-learn one after the other, and the coefficients."""
    probability, coefficients = [], []
    for j, k in enumerate(K):
        inputs = [np.eye(K[i])[Y[:, i]] if K[i] > 2 else Y[:, [i]] for i in np.flatnonzero(parents[j])]
        Z = np.hstack([X.toarray() if sp.issparse(X) else X, *inputs])
        rows = slice(None) if weight is None else np.flatnonzero(weight[:, j])
        fitted = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(Z[rows], Y[rows, j])
        probability.append(fitted.predict_proba(Z))
        coefficients.append(fitted.coef_ if k > 2 else fitted.coef_[0][None])
    return probability, coefficients


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(
    "make", [BinaryRelevance, DependentRelevance, lambda learner: ClassifierChain([2, 0, 1], learner=learner)]
)
def test_fit_is_that_of_scikit_learn_response_by_response(table, make, storage):
    X, Y = table
    Z = sp.csr_matrix(np.where(np.abs(X) > 1.2, X, 0.0)) if storage == "sparse" else X
    model = make(BatchLogistic(1.0)).fit(Z, Y)
    probability, coefficients = one_by_one(Z, Y, model.parents_)
    linear, layout = model.conditionals_.linear, Indicators(K)
    for j, k in enumerate(K):
        ours = np.exp(log_proba_of_values(model.conditionals_, j, k, Z, Y))
        np.testing.assert_allclose(ours, probability[j], atol=1e-4)
        np.testing.assert_allclose(linear.features[:, layout.columns(j)].T, coefficients[j][:, : X.shape[1]], atol=1e-4)
        if model.parents_[j].any():
            seen = np.isin(layout.response, np.flatnonzero(model.parents_[j]))
            block = linear.responses[:, layout.columns(j)]
            np.testing.assert_allclose(block[seen].T, coefficients[j][:, X.shape[1] :], atol=1e-4)
            assert not block[~seen].any()  # no response sees itself, nor one that it may not see
    rho = np.exp(model.log_proba(Z, Y))
    expected = np.column_stack([p[np.arange(len(Y)), Y[:, j]] for j, p in enumerate(probability)])
    np.testing.assert_allclose(rho, expected, atol=1e-4)


def test_missing_cells_have_no_weight(table):
    X, Y = table
    known = np.random.default_rng(0).random(Y.shape) > 0.2
    fitted = BatchLogistic(1.0).fit(X, Y, np.zeros((3, 3), bool), known=known, n_values=K)
    probability, _ = one_by_one(X, Y, np.zeros((3, 3), bool), weight=known)
    for j, k in enumerate(K):
        np.testing.assert_allclose(np.exp(log_proba_of_values(fitted, j, k, X, Y)), probability[j], atol=1e-4)


def test_a_missing_category_stands_at_its_likeliest_value(table):
    X, Y = table
    hidden = Y.copy()
    hidden[::5, 0] = MISSING
    model = DependentRelevance().fit(X, hidden, n_values=K)
    log_rho = model.log_proba(X, hidden)
    assert not log_rho[::5, 0].any()
    assert (log_rho[1::5] < 0).all()


def test_folds_read_rows_that_they_did_not_see(table):
    X, Y = table
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    model = DependentRelevance(BatchLogistic(2.0))
    cross = model.cross_fit(X, Y, folds)
    out = np.exp(cross.log_proba(X, Y))
    for f in range(3):
        train = DependentRelevance(BatchLogistic(2.0)).fit(X[folds != f], Y[folds != f], n_values=K)
        np.testing.assert_allclose(out[folds == f], np.exp(train.log_proba(X[folds == f], Y[folds == f])), atol=2e-3)


def test_every_value_is_spread_evenly_over_the_folds(table):
    _, Y = table
    folds = stratified_folds(Y, 5, np.random.default_rng(0))
    for j, k in enumerate(K):
        for value in range(k):
            share = np.bincount(folds[Y[:, j] == value], minlength=5)
            assert share.max() - share.min() <= 3


@pytest.mark.parametrize(
    "model",
    [
        DependentRelevance(),
        ClassifierChain(),
        ChainEnsemble(2),
        MixtureModel([DependentRelevance(), BinaryRelevance()]),
        TrimmedModel(),
        DependentRelevance("naive-bayes"),
        DependentRelevance(PerLabel(LogisticRegression(), n_jobs=1)),
    ],
    ids=["dbr", "chain", "ensemble", "mixture", "trimmed", "naive-bayes", "classifier"],
)
def test_probabilities_of_all_values_sum_to_one(table, model):
    X, Y = table
    model.fit(X, Y)
    for j, k in enumerate(K):
        each = []
        for value in range(k):
            changed = Y[:40].copy()
            changed[:, j] = value
            each.append(np.exp(model.log_proba(X[:40], changed)[:, j]))
        np.testing.assert_allclose(np.sum(each, axis=0), 1.0, atol=1e-5)


def test_a_chain_is_a_proper_joint_and_its_ensemble_answers_from_it(table):
    X, Y = table
    every = np.stack(np.meshgrid(*[np.arange(k) for k in K], indexing="ij"), axis=-1).reshape(-1, 3).astype(np.uint8)
    row = np.repeat(X[:1], len(every), axis=0)
    ensemble = ChainEnsemble(2).fit(X, Y)
    joint = np.exp(ensemble.joint_log_proba(row, every))
    assert joint.sum() == pytest.approx(1.0)
    one = ChainEnsemble(1).fit(X, Y)
    joint, full = np.exp(one.joint_log_proba(row, every)), np.exp(one.log_proba(row, every))
    for j in range(3):
        others = np.delete(every, j, axis=1)
        for y, at in zip(every[:6], range(6), strict=True):
            same = (others == np.delete(y, j)).all(axis=1)
            assert full[at, j] == pytest.approx(joint[at] / joint[same].sum(), rel=1e-4)


def test_a_tree_says_that_it_needs_two_values(table):
    X, Y = table
    with pytest.raises(InputError, match=r"more than two values; a tree is found among responses of two values"):
        TreeRelevance().fit(X, Y)


def test_a_value_that_half_of_the_rows_lack_keeps_its_code(table):
    X, Y = table
    some = np.flatnonzero(Y[:, 1] != 3)
    model = DependentRelevance().fit(X[some], Y[some], n_values=K)
    rare = Y[Y[:, 1] == 3]
    rho = np.exp(model.log_proba(X[Y[:, 1] == 3], rare))
    assert (rho[:, 1] < 0.05).all()
    assert (rho[:, 1] > 1e-6).all()


def test_likeliest_values_are_those_of_largest_probability(table):
    X, Y = table
    fitted = DependentRelevance().fit(X, Y).conditionals_
    best, other = likeliest_values(fitted, X, Y), likeliest_values(fitted, X, Y, other=True)
    for j, k in enumerate(K):
        each = log_proba_of_values(fitted, j, k, X, Y)
        np.testing.assert_array_equal(best[:, j], each.argmax(axis=1))
        assert (other[:, j] != Y[:, j]).all()
        agree = best[:, j] != Y[:, j]
        np.testing.assert_array_equal(best[agree, j], other[agree, j])


@given(st.lists(st.integers(2, 6), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_indicators_have_one_column_for_each_value(n_values, seed):
    rng = np.random.default_rng(seed)
    Y = np.column_stack([rng.integers(k, size=7) for k in n_values]).astype(np.uint8)
    layout = Indicators(tuple(n_values))
    columns = layout.of(Y)
    for j, k in enumerate(n_values):
        part = columns[:, layout.columns(j)]
        back = part[:, 0] if k == 2 else part.argmax(axis=1)
        np.testing.assert_array_equal(back, Y[:, j])
        assert k == 2 or (part.sum(axis=1) == 1).all()
    changed = other_value(Y, tuple(n_values), rng)
    assert (changed != Y).all()
    assert (changed < np.asarray(n_values)).all()


def test_two_values_are_left_as_they_are():
    Y = np.array([[0, 1]], np.uint8)
    assert indicators(Y, None) is Y


def test_text_and_codes_are_the_same_model(table):
    X, Y = table
    names = pd.DataFrame({"a": np.array(["u", "v", "w"])[Y[:, 0]], "b": np.array(list("abcd"))[Y[:, 1]], "c": Y[:, 2]})
    np.testing.assert_array_equal(
        DependentRelevance().fit(X, names).log_proba(X, names), DependentRelevance().fit(X, Y).log_proba(X, Y)
    )
