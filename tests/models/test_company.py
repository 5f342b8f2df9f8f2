import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from mcode.models import DependentRelevance
from mcode.models import parents as see
from mcode.models.base_rate import rate_of_recorded, smoothed_base_rate
from mcode.models.company import Company


def without_context(n):
    return np.empty((n, 0), np.float64)


def table(n, d, seed, values=2):
    rng = np.random.default_rng(seed)
    common = rng.random((n, 1)) < 0.5
    return np.where(rng.random((n, d)) < 0.6, common, rng.integers(0, values, (n, d))).astype(np.uint8)


def by_hand(new, Y, parents):
    """One response of one row after the other, against one row after the other."""
    weight = np.log((len(Y) + 1) / (Y.sum(axis=0) + 1))
    out = np.empty(new.shape)
    for i, y in enumerate(new):
        for j in range(Y.shape[1]):
            seen = y * weight * parents[j]  # what j may see of the row that is compared
            lengths = np.linalg.norm(seen) * np.linalg.norm(Y * weight, axis=1)
            alike = (Y * weight) @ seen / np.maximum(lengths, 1e-300)
            rate = (Y[:, j].sum() + 0.5) / (len(Y) + 1)
            mean = (alike[Y[:, j] == 1].sum() + alike.mean()) / (Y[:, j].sum() + 1)
            logit = np.log(rate / (1 - rate)) + (np.log(mean / alike.mean()) if alike.mean() > 0 else 0.0)
            out[i, j] = np.log(expit(logit if y[j] else -logit))
    return out


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 6))
def test_a_response_is_likelier_the_more_the_others_are_like_those_of_its_rows(seed, n, d):
    Y, new = table(n, d, seed), table(5, d, seed + 1)
    fitted = Company().fit(without_context(n), Y, see.all_others(d))
    found = fitted.log_proba(without_context(5), new)
    np.testing.assert_allclose(found, by_hand(new, Y, see.all_others(d)), atol=2e-4)


@pytest.mark.parametrize("parents", [see.none(4), see.chain([2, 0, 3, 1], 4)])
def test_it_sees_its_parents_alone(parents):
    Y, new = table(40, 4, 0), table(9, 4, 1)
    found = Company().fit(without_context(40), Y, parents).log_proba(without_context(9), new)
    np.testing.assert_allclose(found, by_hand(new, Y, parents), atol=2e-4)
    if not parents.any():
        np.testing.assert_allclose(np.exp(found), rate_of_recorded(new, smoothed_base_rate(Y)))


def test_what_is_said_of_a_response_does_not_depend_on_it():
    Y, new = table(60, 5, 2), table(20, 5, 3)
    fitted = DependentRelevance(Company()).fit(without_context(60), Y).conditionals_
    for j in range(5):
        other = new.copy()
        other[:, j] ^= 1
        both = (np.exp(fitted.log_proba(without_context(20), rows)[:, j]) for rows in (new, other))
        np.testing.assert_allclose(sum(both), 1.0, atol=1e-6)


def test_two_rows_are_enough_to_know_the_company_of_a_rare_response():
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 30)) < 0.05).astype(np.uint8)
    Y[:, 0] = 0
    Y[:2] = 0
    Y[:2, :4] = 1
    fitted = DependentRelevance(Company()).fit(without_context(300), Y).conditionals_
    new = np.zeros((2, 30), np.uint8)
    new[0, :3] = 1
    new[1, [0, 10, 20]] = 1
    here, elsewhere = np.exp(fitted.log_proba(without_context(2), new))[:, 0]
    assert here > 5 * elsewhere


def test_rows_of_a_fold_are_judged_by_the_others_alone_or_together_and_the_input_is_untouched():
    Y, folds = table(45, 4, 4), np.arange(45) % 3
    before, everybody = Y.copy(), see.all_others(4)
    cross, whole = Company().cross_fit(without_context(45), Y, everybody, folds, final=True)
    found = cross.log_proba(without_context(45), Y)
    for f in range(3):
        mine, rest = folds == f, folds != f
        np.testing.assert_allclose(found[mine], by_hand(Y[mine], Y[rest], everybody), atol=2e-4)
    together = whole.log_proba(without_context(45), Y)
    np.testing.assert_allclose(together, by_hand(Y, Y, everybody), atol=2e-4)
    alone = np.vstack([whole.log_proba(without_context(1), Y[[i]]) for i in range(45)])
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(Y, before)
    assert Company().cross_fit(without_context(45), Y, everybody, folds, final=False)[1] is None


def test_what_a_row_does_not_say_of_a_response_is_no_absence():
    Y = table(30, 3, 5)
    known = np.ones(Y.shape, bool)
    known[Y[:, 0] == 0, 0] = False
    fitted = Company().fit(without_context(30), Y, see.all_others(3), known=known)
    every = Company().fit(without_context(30), Y, see.all_others(3))
    np.testing.assert_array_equal(fitted.among_its_rows, every.among_its_rows)  # the same rows have the response
    count = Y[:, 0].sum()
    rate = (count + 0.5) / (count + 1.0)  # of the rows that say something of it, all have it
    assert fitted.rate[0] == pytest.approx(np.log(rate / (1 - rate)))
    assert fitted.rate[1] == every.rate[1]


def test_values_of_a_response_are_compared_value_by_value():
    rng = np.random.default_rng(6)
    Y = np.column_stack([rng.integers(0, 3, 80), rng.integers(0, 2, 80), rng.integers(0, 4, 80)]).astype(np.uint8)
    fitted = Company().fit(without_context(80), Y, see.all_others(3), n_values=(3, 2, 4))
    for j, k in enumerate((3, 2, 4)):
        total = 0.0
        for value in range(k):
            rows = Y.copy()
            rows[:, j] = value
            total = total + np.exp(fitted.log_proba(without_context(80), rows)[:, j])
        np.testing.assert_allclose(total, 1.0, atol=1e-6)
    # a response whose values always come with those of another is foretold by it
    Y[:, 2] = Y[:, 0]
    joined = Company().fit(without_context(80), Y, see.all_others(3), n_values=(3, 2, 4))
    assert np.exp(joined.log_proba(without_context(80), Y)[:, 0]).mean() > 0.5
