import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstest

from mcode.errors import ParameterError
from mcode.ranking import conformal_p_value, false_discovery_cut, own_p_value, percentile_rank
from oracles import benjamini_hochberg

scores = arrays(np.float64, st.integers(1, 20), elements=st.integers(-3, 3).map(float))


@given(scores, scores)
def test_percentile_rank_counts_smaller_scores_and_half_the_ties(mine, reference):
    expected = [np.mean((reference < s) + 0.5 * (reference == s)) for s in mine]
    np.testing.assert_allclose(percentile_rank(mine, reference), expected)


@given(scores, scores)
def test_a_conformal_p_value_counts_itself_and_all_scores_at_least_as_large(mine, reference):
    expected = [(1 + np.sum(reference >= s)) / (1 + len(reference)) for s in mine]
    np.testing.assert_allclose(conformal_p_value(mine, reference), expected)


@given(scores)
def test_the_own_p_value_is_conformal_against_all_others(mine):
    expected = [conformal_p_value(mine[[i]], np.delete(mine, i))[0] for i in range(len(mine))]
    np.testing.assert_allclose(own_p_value(mine), expected)


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)), st.floats(0.01, 0.99))
def test_the_cut_is_that_of_benjamini_and_hochberg(p_values, level):
    rejected = false_discovery_cut(p_values, level)
    np.testing.assert_array_equal(rejected, benjamini_hochberg(p_values, level))
    if rejected.any() and not rejected.all():
        assert p_values[rejected].max() <= p_values[~rejected].min()


def test_nothing_is_rejected_where_there_is_nothing():
    assert false_discovery_cut([]).shape == (0,)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 5, np.nan])
def test_a_level_out_of_range_is_refused(level):
    with pytest.raises(ParameterError, match="level must be a number between 0 and 1; got"):
        false_discovery_cut([0.5], level)


def test_p_values_of_clean_rows_are_uniform():
    p_values, of_outliers = [], []
    for seed in range(200):
        reference, new = np.split(np.random.default_rng(seed).gamma(2.0, size=200), [199])
        p_values.append(conformal_p_value(new, reference)[0])
        of_outliers.append(conformal_p_value(new + 1.0, reference)[0])
    assert kstest(p_values, "uniform").pvalue > 0.05
    assert kstest(of_outliers, "uniform").pvalue < 1e-3


def test_own_p_values_of_clean_rows_are_uniform():
    p_values = [own_p_value(np.random.default_rng(seed).gamma(2.0, size=200))[0] for seed in range(200)]
    assert kstest(p_values, "uniform").pvalue > 0.05


@pytest.mark.parametrize("level", [0.1, 0.3])
def test_the_share_of_false_discoveries_stays_below_its_level(level):
    shares, found = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = np.arange(200) < 20
        p_values = conformal_p_value(rng.normal(size=200) + 3.0 * truth, rng.normal(size=1000))
        rejected = false_discovery_cut(p_values, level)
        shares.append((rejected & ~truth).sum() / max(1, rejected.sum()))
        found.append((rejected & truth).sum() / truth.sum())
    assert np.mean(shares) <= level
    assert np.mean(found) > 0.3
