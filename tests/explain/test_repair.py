import numpy as np
import pytest

from mcode.detector.whole import Whole
from mcode.explain.repair import LEAST_PRICE, repair_rows
from mcode.models import ClassifierChain, DependentRelevance, PerLabel
from oracles import all_vectors
from tables import dependent_table, sparse_table


def fitted(kind=DependentRelevance, table=dependent_table, **options):
    X, Y = table(n=200, **options)
    return X, Y, {"model": kind().fit(X, Y).conditionals_, "chain": ClassifierChain().fit(X, Y).conditionals_}


@pytest.mark.parametrize("table", [dependent_table, sparse_table])
def test_the_whole_vector_is_scored_as_the_models_score_it(table):
    X, Y, models = fitted(table=table)
    rows = np.array([3, 3, 9])
    vectors = Y[[1, 2, 3]]
    expected = [np.mean([models[name].log_proba(X[rows], vectors).sum(axis=1) for name in models], axis=0)]
    np.testing.assert_allclose(Whole(models, X).log_proba(rows, vectors), expected[0], atol=1e-5)
    chain = models["chain"].log_proba(X[rows], vectors).sum(axis=1)
    np.testing.assert_allclose(Whole(models, X).joint_log_proba(rows, vectors), chain, atol=1e-5)


def test_the_whole_vector_needs_no_linear_learner():
    from sklearn.tree import DecisionTreeClassifier

    X, Y = dependent_table()
    learner = PerLabel(DecisionTreeClassifier(max_depth=3, random_state=0), n_jobs=1)
    models = {"model": DependentRelevance(learner).fit(X, Y).conditionals_}
    expected = models["model"].log_proba(X, Y).sum(axis=1)
    np.testing.assert_allclose(Whole(models, X).log_proba(np.arange(len(Y)), Y), expected, atol=1e-9)


@pytest.mark.parametrize("price", [LEAST_PRICE, 4.0])
def test_the_repair_is_the_best_of_all_vectors(price):
    X, Y, models = fitted(d=5, seed=1)
    whole = Whole(models, X)
    rows = np.arange(40)
    repaired = repair_rows(whole, Y, np.zeros(Y.shape), price).Y[rows]
    vectors = all_vectors(Y.shape[1])
    for row in rows:
        worth = whole.log_proba(np.full(len(vectors), row), vectors) - price * (vectors != Y[row]).sum(axis=1)
        mine = whole.log_proba(np.array([row]), repaired[[row]])[0] - price * (repaired[row] != Y[row]).sum()
        assert mine >= worth.max() - 1e-4


def test_two_wrong_responses_that_vouch_for_each_other_are_repaired_together():
    rng = np.random.default_rng(0)
    context = rng.normal(size=(600, 1))
    first = (context[:, 0] + 0.3 * rng.normal(size=600) > 0).astype(np.uint8)
    Y = np.column_stack([first, first])
    models = {
        "model": DependentRelevance().fit(context, Y).conditionals_,
        "chain": ClassifierChain().fit(context, Y).conditionals_,
    }
    whole = Whole(models, np.array([[2.5]]))
    wrong = np.zeros((1, 2), np.uint8)
    recorded, *singles = whole.log_proba(np.zeros(3, np.intp), np.array([[0, 0], [1, 0], [0, 1]], np.uint8))
    assert (np.array(singles) - recorded < LEAST_PRICE).all()
    repairs = repair_rows(whole, wrong, np.zeros((1, 2)))
    np.testing.assert_array_equal(repairs.Y, [[1, 1]])
    assert repairs.log_after[0] > repairs.log_before[0]


def test_a_row_is_repaired_the_same_alone_and_in_a_batch():
    X, Y, models = fitted(d=6, seed=2)
    flipped = Y.copy()
    flipped[:, 0] ^= 1
    together = repair_rows(Whole(models, X), flipped, np.zeros(Y.shape)).Y
    for row in range(5):
        alone = repair_rows(Whole(models, X[[row]]), flipped[[row]], np.zeros((1, 6))).Y
        np.testing.assert_array_equal(alone[0], together[row])
