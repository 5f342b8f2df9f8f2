import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from mcode.models import parents as see
from mcode.models.base_rate import rate_of_recorded, smoothed_base_rate
from mcode.models.prototypes import Prototypes


def table(n, m, d, seed):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, m))
    filled = rng.choice(n * m, n * m // 4, replace=False)  # a quarter of the cells
    X.flat[filled] = rng.uniform(0.5, 2.0, len(filled))
    return X, (rng.random((n, d)) < 0.4).astype(np.uint8)


def by_hand(new_X, new_Y, X, Y):
    """One pair of contexts after the other; one row like all others is added to those with the response."""
    weight = np.log((len(X) + 1) / ((X != 0).sum(axis=0) + 1))

    def cosine(a, b):
        a, b = a * weight, b * weight
        return a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-300)

    out = np.empty(new_Y.shape)
    for i, x in enumerate(new_X):
        alike = np.array([cosine(x, row) for row in X])
        for j in range(Y.shape[1]):
            rate = (Y[:, j].sum() + 0.5) / (len(Y) + 1)
            mean = (alike[Y[:, j] == 1].sum() + alike.mean()) / (Y[:, j].sum() + 1)
            logit = np.log(rate / (1 - rate)) + (np.log(mean / alike.mean()) if alike.mean() > 0 else 0.0)
            out[i, j] = np.log(expit(logit if new_Y[i, j] else -logit))
    return out


@given(st.integers(0, 10**6), st.integers(3, 20), st.integers(2, 8), st.integers(1, 4))
def test_a_response_is_likelier_the_more_its_rows_are_like_this_one(seed, n, m, d):
    X, Y = table(n, m, d, seed)
    new_X, new_Y = table(4, m, d, seed + 1)
    fitted = Prototypes().fit(sp.csr_matrix(X), Y, see.none(d))
    found = fitted.log_proba(sp.csr_matrix(new_X), new_Y)
    np.testing.assert_allclose(found, by_hand(new_X, new_Y, X, Y), atol=2e-4)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_matrix])
def test_of_contexts_that_are_not_mostly_zeros_it_says_the_base_rate(stored):
    X, Y = table(30, 5, 3, 0)
    found = Prototypes().fit(stored(X + 1.0), Y, see.none(3)).log_proba(stored(X + 1.0), Y)
    np.testing.assert_allclose(np.exp(found), rate_of_recorded(Y, smoothed_base_rate(Y)))


def test_how_contexts_are_stored_makes_no_difference():
    X, Y = table(30, 8, 3, 0)
    dense, sparse = (Prototypes().fit(rows, Y, see.none(3)).log_proba(rows, Y) for rows in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense, sparse, atol=1e-6)
    without = np.empty((30, 0))
    np.testing.assert_allclose(
        *(
            np.exp(Prototypes().fit(rows, Y, see.none(3)).log_proba(rows, Y))
            for rows in (without, sp.csr_matrix(without))
        )
    )


def test_it_knows_a_response_that_two_rows_have_by_their_words():
    rng = np.random.default_rng(0)
    X = (rng.random((200, 300)) < 0.02).astype(float)
    Y = (rng.random((200, 2)) < 0.2).astype(np.uint8)
    Y[:, 0] = 0
    Y[:2, 0] = 1
    X[:2, :12] = 1.0
    X[2:, :12] = 0.0
    new = sp.csr_matrix(np.vstack([np.r_[np.ones(8), np.zeros(292)], X[50]]))
    fitted = Prototypes().fit(sp.csr_matrix(X), Y, see.none(2))
    there, elsewhere = np.exp(fitted.log_proba(new, np.ones((2, 2), np.uint8)))[:, 0]
    assert there > 20 * elsewhere


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_rows_of_a_fold_are_judged_by_the_others_and_the_input_is_untouched(make):
    X, Y = table(45, 6, 3, 2)
    rows, folds = make(X.astype(np.float32)), np.arange(45) % 3
    before = rows.copy()
    cross, whole = Prototypes().cross_fit(rows, Y, see.none(3), folds, final=True)
    found = cross.log_proba(rows, Y)
    for f in range(3):
        mine, rest = folds == f, folds != f
        np.testing.assert_allclose(found[mine], by_hand(X[mine], Y[mine], X[rest], Y[rest]), atol=2e-4)
    np.testing.assert_allclose(whole.log_proba(rows, Y), by_hand(X, Y, X, Y), atol=2e-4)
    assert Prototypes().cross_fit(rows, Y, see.none(3), folds, final=False)[1] is None
    np.testing.assert_array_equal(rows.toarray(), before.toarray())


def test_what_a_row_does_not_say_of_a_response_is_no_absence():
    X, Y = table(30, 5, 2, 3)
    known = np.ones(Y.shape, bool)
    known[Y[:, 0] == 0, 0] = False
    fitted = Prototypes().fit(sp.csr_matrix(X), Y, see.none(2), known=known)
    every = Prototypes().fit(sp.csr_matrix(X), Y, see.none(2))
    np.testing.assert_array_equal(fitted.prototypes, every.prototypes)  # the same rows have the response
    count = Y[:, 0].sum()
    rate = (count + 0.5) / (count + 1.0)  # of the rows that say something of it, all have it
    assert fitted.rate[0] == pytest.approx(np.log(rate / (1 - rate)))
    assert fitted.rate[1] == every.rate[1]


def test_signs_are_not_looked_at_and_rows_without_features_say_nothing():
    X, Y = table(30, 5, 2, 4)
    one, other = (Prototypes().fit(sp.csr_matrix(sign * X), Y, see.none(2)) for sign in (1.0, -1.0))
    rows, responses = sp.csr_matrix(np.vstack([X[:3], np.zeros((1, 5))])), np.ones((4, 2), np.uint8)
    np.testing.assert_array_equal(one.log_proba(rows, responses), other.log_proba(-rows, responses))
    np.testing.assert_allclose(np.exp(one.log_proba(rows, responses)[3]), smoothed_base_rate(Y))


def test_values_of_a_response_are_compared_value_by_value():
    X, _ = table(60, 6, 1, 5)
    Y = np.column_stack([np.arange(60) % 3, np.arange(60) % 2]).astype(np.uint8)
    fitted = Prototypes().fit(sp.csr_matrix(X), Y, see.none(2), n_values=(3, 2))
    total = 0.0
    for value in range(3):
        rows = Y.copy()
        rows[:, 0] = value
        total = total + np.exp(fitted.log_proba(sp.csr_matrix(X), rows)[:, 0])
    np.testing.assert_allclose(total, 1.0)
