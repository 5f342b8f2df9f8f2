import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcode.models import alike
from mcode.models.alike import RememberedRows, rows_to_remember
from mcode.models.base_rate import rate_of_recorded, smoothed_base_rate


def rows(n, d, seed, n_values=None):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2 if n_values is None else np.array(n_values), (n, d)).astype(np.uint8)
    return np.log(rng.uniform(0.01, 0.99, (n, d))), Y


def log_rate(Y, kept_Y, n_values=None):
    return np.log(rate_of_recorded(Y, smoothed_base_rate(kept_Y, n_values)))


def by_hand(log_rho, Y, kept_log_rho, kept_Y, fold=None, kept_fold=None, n_values=None, power=1, prior=2.0):
    """One response of one row after the other, against one remembered row after the other."""
    two = [True] * Y.shape[1] if n_values is None else [k == 2 for k in n_values]
    base, out = smoothed_base_rate(kept_Y, n_values), np.empty(Y.shape)

    def present(log_rho, y):
        return np.exp(log_rho) if y == 1 else 1 - np.exp(log_rho)

    for i in range(len(Y)):
        for j in range(Y.shape[1]):
            rate = base[Y[i, j], j] if n_values else (base[j] if Y[i, j] else 1 - base[j])
            same, all_of_them = prior * rate, prior
            for r in range(len(kept_Y)):
                if fold is not None and fold[i] == kept_fold[r]:
                    continue
                apart = 0.0
                for k in range(Y.shape[1]):
                    if two[k]:
                        p, q = present(log_rho[i, k], Y[i, k]), present(kept_log_rho[r, k], kept_Y[r, k])
                        apart += (p - q) ** 2
                    if k != j:
                        apart += Y[i, k] != kept_Y[r, k]
                same += np.exp(-apart) ** power * (Y[i, j] == kept_Y[r, j])
                all_of_them += np.exp(-apart) ** power
            out[i, j] = np.log(same / all_of_them)
    return out


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 12), st.integers(1, 5))
def test_a_response_is_as_probable_as_it_is_frequent_among_rows_that_are_alike(seed, n, kept, d):
    log_rho, Y = rows(n, d, seed)
    others = rows(kept, d, seed + 1)
    found = RememberedRows.of(*others).views(log_rho, log_rate(Y, others[1]), Y)
    np.testing.assert_allclose(found["alike"], by_hand(log_rho, Y, *others), atol=1e-9)
    np.testing.assert_allclose(found["twins"], by_hand(log_rho, Y, *others, power=4, prior=0.02), atol=1e-9)


def test_rows_of_the_own_fold_do_not_count():
    log_rho, Y = rows(20, 4, 0)
    fold = np.arange(20) % 3
    found = RememberedRows.of(log_rho, Y, fold).views(log_rho, log_rate(Y, Y), Y, fold)
    here = log_rho, Y, log_rho, Y, fold, fold
    np.testing.assert_allclose(found["alike"], by_hand(*here), atol=1e-9)
    np.testing.assert_allclose(found["twins"], by_hand(*here, power=4, prior=0.02), atol=1e-9)


def test_responses_with_several_values_are_compared_value_by_value():
    n_values = (3, 2, 4)
    log_rho, Y = rows(9, 3, 1, n_values)
    others = rows(15, 3, 2, n_values)
    found = RememberedRows.of(*others, None, n_values).views(log_rho, log_rate(Y, others[1], n_values), Y)
    np.testing.assert_allclose(found["alike"], by_hand(log_rho, Y, *others, n_values=n_values), atol=1e-9)
    twins = by_hand(log_rho, Y, *others, n_values=n_values, power=4, prior=0.02)
    np.testing.assert_allclose(found["twins"], twins, atol=1e-9)


def test_the_order_of_rows_and_of_responses_does_not_matter():
    log_rho, Y = rows(50, 6, 0)
    kept_log_rho, kept_Y = rows(200, 6, 1)
    rate = log_rate(Y, kept_Y)
    found = RememberedRows.of(kept_log_rho, kept_Y).views(log_rho, rate, Y)
    back, columns = np.arange(200)[::-1], np.array([3, 1, 5, 0, 2, 4])
    kept = RememberedRows.of(kept_log_rho[back][:, columns], kept_Y[back][:, columns])
    again = kept.views(log_rho[:, columns], rate[:, columns], Y[:, columns])
    for name, view in found.items():
        np.testing.assert_allclose(again[name], view[:, columns], atol=1e-9)


def test_rows_alone_are_as_in_a_batch_and_the_input_is_untouched(monkeypatch):
    log_rho, Y = rows(40, 5, 0)
    before = log_rho.copy(), Y.copy()
    kept = RememberedRows.of(*rows(100, 5, 1))
    rate = log_rate(Y, kept.Y)
    whole = kept.views(log_rho, rate, Y)
    alone = [kept.views(log_rho[[i]], rate[[i]], Y[[i]]) for i in range(40)]
    monkeypatch.setattr(alike, "ROWS_AT_ONCE", 7)
    in_parts = kept.views(log_rho, rate, Y)
    for name, view in whole.items():
        np.testing.assert_allclose(np.vstack([one[name] for one in alone]), view, atol=1e-9)
        np.testing.assert_allclose(in_parts[name], view, atol=1e-9)
    np.testing.assert_array_equal(log_rho, before[0])
    np.testing.assert_array_equal(Y, before[1])


def test_it_sees_responses_of_which_an_even_number_is_always_present():
    """No logistic regression on the others does: each alone says nothing of the third."""
    first, second = np.arange(400) % 2, np.arange(400) // 2 % 2
    Y = np.column_stack([first, second, first ^ second]).astype(np.uint8)
    unknown = np.log(np.full(Y.shape, 0.5))
    wrong = Y.copy()
    wrong[:, 1] ^= 1
    kept = RememberedRows.of(unknown, Y)
    right, flipped = (kept.views(unknown, unknown, rows) for rows in (Y, wrong))
    assert np.exp(right["alike"]).min() > 0.58
    assert np.exp(flipped["alike"]).max() < 0.42
    assert np.exp(right["twins"]).min() > 0.96  # nothing but the same two others speaks of the third
    assert np.exp(flipped["twins"]).max() < 0.04


def test_where_no_row_is_alike_the_base_rate_decides():
    d = 60
    kept_Y = np.zeros((50, d), np.uint8)
    kept_Y[:10, 0] = 1
    kept = RememberedRows.of(np.log(np.full(kept_Y.shape, 0.999)), kept_Y)
    Y = np.ones((1, d), np.uint8)
    for found in kept.views(np.log(np.full(Y.shape, 0.999)), log_rate(Y, kept_Y), Y).values():
        np.testing.assert_allclose(np.exp(found[0]), smoothed_base_rate(kept_Y), rtol=1e-4)


@pytest.mark.parametrize("n", [1, 999, 1000, 1001, 5000])
def test_all_rows_are_remembered_or_a_sample_of_them(n):
    chosen = rows_to_remember(n)
    assert len(chosen) == min(n, 1000) == len(np.unique(chosen))
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, rows_to_remember(n))
