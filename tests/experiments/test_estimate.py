"""Means with standard errors, from few slow and many cheap values."""

import numpy as np
import pytest

from mcode.experiments.estimate import mean_by_difference, mean_by_regression, mean_with_help, plain_mean

TRUTH = 0.6


def repeated(cheap_of, n_pairs, n_cheap=50, times=4000, skewed=False):
    """Return estimates and stated errors of many experiments whose exact values have the mean TRUTH."""
    rng = np.random.default_rng(0)
    means, errors = np.empty(times), np.empty(times)
    for i in range(times):
        draw = rng.exponential(size=n_cheap) - 1.0 if skewed else rng.normal(size=n_cheap)
        exact = TRUTH + 0.05 * draw
        cheap = cheap_of(exact, rng)[:, None]
        found = mean_with_help(cheap, cheap[:n_pairs], exact[:n_pairs, None])
        means[i], errors[i] = found.mean[0], found.error[0]
    return means, errors


CHEAP = {
    "nearly the same": lambda exact, rng: exact + 0.01 * rng.normal(size=len(exact)),
    "far off and steeper": lambda exact, rng: 3.0 * exact - 5.0 + 0.06 * rng.normal(size=len(exact)),
    "half of it noise": lambda exact, rng: exact + 0.05 * rng.normal(size=len(exact)),
    "all noise": lambda exact, rng: rng.normal(size=len(exact)),
    "always the same": lambda exact, rng: np.full(len(exact), 0.3),
}


@pytest.mark.parametrize("cheap", CHEAP)
@pytest.mark.parametrize("n_pairs", [4, 6, 24])
def test_mean_is_unbiased_and_its_error_is_right_whatever_the_cheap_values_are(cheap, n_pairs):
    means, errors = repeated(CHEAP[cheap], n_pairs)
    spread = means.std()
    assert means.mean() == pytest.approx(TRUTH, abs=4 * spread / np.sqrt(len(means)))
    assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=0.1)


def test_few_pairs_of_skewed_values_leave_the_mean_unbiased():
    means, errors = repeated(CHEAP["half of it noise"], 4, skewed=True)
    assert means.mean() == pytest.approx(TRUTH, abs=4 * means.std() / np.sqrt(len(means)))
    assert np.sqrt((errors**2).mean()) == pytest.approx(means.std(), rel=0.1)


@pytest.mark.parametrize("n_pairs", [6, 24])
def test_what_a_line_does_to_the_mean_of_skewed_values_is_small_beside_the_error(n_pairs):
    means, _ = repeated(CHEAP["half of it noise"], n_pairs, skewed=True)
    assert abs(means.mean() - TRUTH) < 0.2 * means.std()


def test_few_exact_values_are_worth_many_where_the_cheap_ones_follow_them():
    means, errors = repeated(CHEAP["nearly the same"], 6)
    assert means.std() < 0.5 * 0.05 / np.sqrt(6)
    assert errors.mean() < 0.5 * 0.05 / np.sqrt(6)


def test_where_all_values_are_exact_it_is_the_plain_mean():
    exact = np.random.default_rng(0).normal(size=(40, 3))
    cheap = exact + np.random.default_rng(1).normal(size=(40, 3))
    found = mean_by_regression(cheap, cheap, exact)
    np.testing.assert_allclose(found.mean, exact.mean(axis=0))
    np.testing.assert_allclose(found.error, plain_mean(exact).error, rtol=0.05)
    assert (found.exact_error <= found.error).all()


def test_the_two_estimates_agree_where_the_cheap_values_are_off_by_a_constant():
    cheap = np.random.default_rng(0).normal(size=(40, 2))
    line, difference = (by(cheap, cheap[:8], cheap[:8] + 0.5) for by in (mean_by_regression, mean_by_difference))
    np.testing.assert_allclose(line.mean, difference.mean)
    np.testing.assert_allclose(line.mean, cheap.mean(axis=0) + 0.5)


def test_the_error_of_one_value_is_not_known():
    value = np.array([[0.5, 0.6]])
    assert np.isinf(plain_mean(value).error).all()
    assert np.isinf(mean_with_help(value, value, value).error).all()
