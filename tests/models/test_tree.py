import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.naive_bayes import GaussianNB

import mcode
from mcode.models import BatchLogistic, BinaryRelevance, PerLabel, TreeRelevance, as_model
from mcode.models.arborescence import ROOT
from mcode.models.pair_gains import pair_gains
from oracles import all_vectors
from tables import dependent_table, sparse_table


def tree_table(parent_of, n=3000, m=3, strength=2.5, seed=0):
    """Return (X, Y) drawn from a tree; parents come before their children."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    effect = rng.normal(scale=0.7, size=(m, len(parent_of)))
    Y = np.zeros((n, len(parent_of)), np.uint8)
    for j, parent in enumerate(parent_of):
        logit = X @ effect[:, j]
        if parent != ROOT:
            logit += strength * (2.0 * Y[:, parent] - 1.0)
        Y[:, j] = rng.random(n) < expit(logit)
    return X, Y


def edges(parent_of):
    return {frozenset((i, int(j))) for i, j in enumerate(parent_of) if j != ROOT}


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_that_made_the_data_is_found(seed):
    """Up to the direction of its arcs: turning one around hardly changes what is predicted."""
    truth = [-1, 0, 0, 1, 1, 2, 5, 3]
    X, Y = tree_table(truth, seed=seed)
    assert edges(TreeRelevance(BatchLogistic(1.0)).fit(X, Y).parent_of_) == edges(truth)


def test_independent_responses_see_nobody():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    Y = (rng.random((2000, 5)) < expit(X @ rng.normal(size=(3, 5)))).astype(np.uint8)
    assert (TreeRelevance(BatchLogistic(1.0)).fit(X, Y).parent_of_ == ROOT).sum() >= 4


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize("learner", [BatchLogistic(1.0), PerLabel(GaussianNB(), n_jobs=1)], ids=["logistic", "bayes"])
def test_probabilities_over_all_response_vectors_sum_to_1(d, learner):
    X, Y = dependent_table(d=d)
    model = TreeRelevance(learner).fit(X, Y)
    vectors = all_vectors(d)
    for row in range(4):
        log_p = model.log_proba(np.repeat(X[[row]], len(vectors), axis=0), vectors).sum(axis=1)
        assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-5)


def test_pair_gains_agree_with_shifts_fitted_row_by_row():
    rng = np.random.default_rng(1)
    n = 1500
    logits = rng.normal(size=(n, 3))
    Y = np.zeros((n, 3), np.uint8)
    Y[:, 0] = rng.random(n) < expit(logits[:, 0])
    Y[:, 1] = rng.random(n) < expit(logits[:, 1] + 1.5 * Y[:, 0] - 0.5)
    Y[:, 2] = rng.random(n) < expit(logits[:, 2])
    folds = np.arange(n) % 5
    gain = pair_gains(logits, Y, folds)
    for i in range(3):
        for j in range(3):
            if i == j:
                assert gain[i, j] == 0.0
                continue
            expected = sum(held_out_gain(logits[:, i], Y[:, i], Y[:, j] == v, folds) for v in (0, 1))
            assert gain[i, j] == pytest.approx(expected, abs=0.02 * abs(expected) + 0.1)


def held_out_gain(logit, y, group, folds):
    def log_likelihood(rows, shift):
        return -np.logaddexp(0.0, np.where(y[rows] == 1, -1.0, 1.0) * (logit[rows] + shift)).sum()

    gained = 0.0
    for f in range(folds.max() + 1):
        train, held = group & (folds != f), group & (folds == f)
        best = minimize_scalar(
            lambda s, rows=train: 0.5 * s * s - log_likelihood(rows, s), bounds=(-20, 20), method="bounded"
        )
        gained += log_likelihood(held, best.x) - log_likelihood(held, 0.0)
    return gained


def test_it_predicts_better_than_responses_apart_where_they_depend():
    X, Y = tree_table([-1, 0, 0, 1, 1, 2], n=1000)
    tree, apart = TreeRelevance().fit(X[:500], Y[:500]), BinaryRelevance().fit(X[:500], Y[:500])
    assert tree.log_proba(X[500:], Y[500:]).sum() > apart.log_proba(X[500:], Y[500:]).sum() + 100


def test_it_reads_sparse_rows_and_serves_an_audit_with_its_default_score():
    X, Y = sparse_table(n=200)
    Y = Y.copy()
    found = mcode.audit(X, Y, model="tree")
    assert found.rho.shape == Y.shape
    assert found.explain(int(found.ranking[0])).responses
    assert isinstance(as_model("tree"), TreeRelevance)


def test_the_same_table_gives_the_same_tree():
    X, Y = dependent_table(d=6)
    one, other = TreeRelevance().fit(X, Y), TreeRelevance().fit(X, Y)
    np.testing.assert_array_equal(one.parent_of_, other.parent_of_)
    np.testing.assert_array_equal(one.log_proba(X, Y), other.log_proba(X, Y))
