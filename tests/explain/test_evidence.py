import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logit

from mcode.detector.judged import Typical
from mcode.explain.evidence import moves
from mcode.models import BatchLogistic, BinaryRelevance, DependentRelevance
from tables import dependent_table, sparse_table


class Opaque:
    """Conditionals that hide that they are linear."""

    def __init__(self, conditionals):
        self.log_proba = conditionals.log_proba


@pytest.mark.parametrize("learner", [BatchLogistic(), BatchLogistic(penalty=1.0)], ids=["scaled", "as they are"])
@pytest.mark.parametrize("table", [dependent_table, sparse_table])
def test_exact_terms_and_scored_replacements_agree(table, learner):
    X, Y = table()
    conditionals = DependentRelevance(learner).fit(X, Y).conditionals_
    typical = Typical.of(X, Y)
    for row in (0, 7):
        exact = moves(conditionals, typical, X[row : row + 1], Y[row : row + 1], 2)
        tried = moves(Opaque(conditionals), typical, X[row : row + 1], Y[row : row + 1], 2)
        weight = np.zeros(X.shape[1])
        weight[exact.features] = exact.feature_weights
        other = np.zeros(X.shape[1])
        other[tried.features] = tried.feature_weights
        np.testing.assert_allclose(weight, other, atol=2e-3)
        np.testing.assert_allclose(exact.responses, tried.responses, atol=2e-3)


def test_the_terms_sum_to_the_distance_from_a_typical_row():
    X, Y = dependent_table()
    model = DependentRelevance().fit(X, Y)
    conditionals = model.conditionals_
    moved = moves(conditionals, Typical.of(X, Y), X[:1], Y[:1], 1)
    present = Y[:1].copy()
    present[0, 1] = 1
    log_odds = logit(np.exp(model.log_proba(X[:1], present)[0, 1]))
    base = conditionals.logits(X.mean(axis=0)[None], np.zeros_like(Y[:1]))[0, 1]
    base += Y.mean(axis=0) @ conditionals.responses[:, 1]
    assert moved.feature_weights.sum() + moved.responses.sum() == pytest.approx(log_odds - base, abs=1e-4)


def test_without_parents_other_responses_are_no_evidence():
    X, Y = dependent_table()
    moved = moves(BinaryRelevance().fit(X, Y).conditionals_, Typical.of(X, Y), X[:1], Y[:1], 0)
    assert not moved.responses.any()


def test_what_a_sparse_row_does_not_hold_is_no_evidence():
    X, Y = sparse_table()
    moved = moves(DependentRelevance().fit(X, Y).conditionals_, Typical.of(X, Y), X[:1], Y[:1], 0)
    np.testing.assert_array_equal(np.sort(moved.features), np.sort(X[:1].indices))


def test_typical_tells_yes_and_no_from_numbers():
    dense = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 1.0]])
    Y = np.array([[1], [0]], np.uint8)
    for X in (dense, sp.csr_matrix(dense)):
        np.testing.assert_array_equal(Typical.of(X, Y).binary, [True, False, True])
