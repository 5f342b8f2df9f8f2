import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from mcode.models import DependentRelevance
from mcode.models import parents as see
from mcode.models.base_rate import rate_of_recorded, smoothed_base_rate
from mcode.models.pairs import PairLifts


def without_context(n):
    return np.empty((n, 0), np.float64)


def table(n, d, seed, values=2):
    rng = np.random.default_rng(seed)
    common = rng.random((n, 1)) < 0.5
    return np.where(rng.random((n, d)) < 0.6, common, rng.integers(0, values, (n, d))).astype(np.uint8)


def by_hand(new, Y, known=None):
    """One response after the other, against every other that is present."""
    known = np.ones(Y.shape, bool) if known is None else known
    out = np.empty(new.shape)
    for i, y in enumerate(new):
        for j in range(Y.shape[1]):
            there = Y[known[:, j], j]
            rate = (there.sum() + 0.5) / (len(there) + 1)
            logit = np.log(rate / (1 - rate))
            for k in np.flatnonzero(y):
                both = known[:, j] & known[:, k]
                chance = Y[both, j].sum() * Y[both, k].sum()
                if k != j and chance:
                    lift = (Y[both, j] * Y[both, k]).sum() * both.sum() / chance
                    logit += np.log((lift + 1) / 2)
            out[i, j] = np.log(expit(logit if y[j] else -logit))
    return out


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 6))
def test_each_other_response_that_is_present_speaks_for_itself(seed, n, d):
    Y, new = table(n, d, seed), table(5, d, seed + 1)
    fitted = PairLifts().fit(without_context(n), Y, see.all_others(d))
    np.testing.assert_allclose(fitted.log_proba(without_context(5), new), by_hand(new, Y), atol=1e-5)


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 5))
def test_a_pair_is_counted_where_both_are_known(seed, n, d):
    Y, new = table(n, d, seed), table(4, d, seed + 1)
    known = np.random.default_rng(seed).random((n, d)) < 0.7
    fitted = PairLifts().fit(without_context(n), Y, see.all_others(d), known=known)
    np.testing.assert_allclose(fitted.log_proba(without_context(4), new), by_hand(new, Y, known), atol=1e-5)


def test_without_parents_it_is_the_base_rate():
    Y = table(50, 4, 0)
    found = PairLifts().fit(without_context(50), Y, see.none(4)).log_proba(without_context(50), Y)
    np.testing.assert_allclose(np.exp(found), rate_of_recorded(Y, smoothed_base_rate(Y)))


def test_values_of_one_response_are_as_frequent_as_they_are_and_say_nothing_of_each_other():
    rng, n_values = np.random.default_rng(0), (3, 2, 4)
    Y = np.column_stack([rng.integers(0, k, 80) for k in n_values]).astype(np.uint8)
    alone = PairLifts().fit(without_context(80), Y, see.none(3), n_values=n_values)
    expected = rate_of_recorded(Y, smoothed_base_rate(Y, n_values))
    np.testing.assert_allclose(np.exp(alone.log_proba(without_context(80), Y)), expected, rtol=1e-9)
    Y[:, 2] = Y[:, 0]  # the third follows the first
    fitted = PairLifts().fit(without_context(80), Y, see.all_others(3), n_values=n_values)
    wrong = Y.copy()
    wrong[:, 2] = (Y[:, 0] + 1) % 3
    right, other = (fitted.log_proba(without_context(80), rows)[:, 2] for rows in (Y, wrong))
    assert (right > other).all()
    in_all = np.zeros((80, 4))
    for value in range(4):
        rows = Y.copy()
        rows[:, 2] = value
        in_all[:, value] = np.exp(fitted.log_proba(without_context(80), rows)[:, 2])
    np.testing.assert_allclose(in_all.sum(axis=1), 1.0)


def test_rows_of_a_fold_are_judged_by_counts_of_the_others():
    Y, folds = table(60, 4, 3), np.arange(60) % 3
    cross, whole = PairLifts().cross_fit(without_context(60), Y, see.all_others(4), folds, final=True)
    found = cross.log_proba(without_context(60), Y)
    for f in range(3):
        np.testing.assert_allclose(found[folds == f], by_hand(Y[folds == f], Y[folds != f]), atol=1e-5)
    np.testing.assert_allclose(whole.log_proba(without_context(60), Y), by_hand(Y, Y), atol=1e-5)
    assert PairLifts().cross_fit(without_context(60), Y, see.all_others(4), folds, final=False)[1] is None


def test_four_rows_are_enough_to_see_that_two_responses_go_together():
    Y = (np.random.default_rng(0).random((300, 60)) < 0.1).astype(np.uint8)
    Y[:4, :2] = 1
    Y[4:, :2] = 0
    alone = np.zeros((1, 60), np.uint8)
    alone[0, 0] = 1
    together = alone.copy()
    together[0, 1] = 1
    model = DependentRelevance(PairLifts()).fit(without_context(300), Y)
    gain = [model.log_proba(without_context(1), rows)[0, 0] for rows in (alone, together)]
    assert np.exp(gain[1] - gain[0]) > 20.0


@pytest.mark.parametrize("order", [[2, 0, 3, 1]])
def test_the_order_of_responses_and_rows_does_not_matter(order):
    Y = table(40, 4, 5)
    found = PairLifts().fit(without_context(40), Y, see.all_others(4)).log_proba(without_context(40), Y)
    turned = Y[::-1][:, order]
    again = PairLifts().fit(without_context(40), turned, see.all_others(4)).log_proba(without_context(40), turned)
    np.testing.assert_allclose(again, found[::-1][:, order], atol=1e-5)
