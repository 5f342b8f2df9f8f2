import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcode.errors import InputError, ParameterError
from mcode.models.folds import stratified_folds


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(0, 60), st.integers(1, 8))
def test_every_fold_holds_rows_and_leaves_rows(seed, n_folds, more, d):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_folds + more, d)) < rng.random(d)).astype(np.uint8)
    folds = stratified_folds(Y, n_folds, rng)
    sizes = np.bincount(folds, minlength=n_folds)
    assert len(sizes) == n_folds
    assert sizes.min() >= 1


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_a_single_rare_response_is_spread_evenly(seed, n_folds):
    rng = np.random.default_rng(seed)
    Y = np.zeros((60, 1), np.uint8)
    Y[rng.choice(60, rng.integers(1, 20), replace=False)] = 1
    folds = stratified_folds(Y, n_folds, rng)
    positives, sizes = np.bincount(folds[Y[:, 0] == 1], minlength=n_folds), np.bincount(folds, minlength=n_folds)
    assert np.ptp(positives) <= 1
    assert np.ptp(sizes) <= 1


def test_rare_responses_are_spread_better_than_by_chance():
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 20)) < 0.03).astype(np.uint8)

    def unevenness(folds):
        counts = np.array([Y[folds == f].sum(axis=0) for f in range(5)], dtype=float)
        return counts.std(axis=0).mean()

    assert unevenness(stratified_folds(Y, 5, rng)) < 0.5 * unevenness(rng.permutation(400) % 5)


def test_the_same_generator_gives_the_same_folds_and_the_table_is_left_alone():
    Y = (np.random.default_rng(0).random((50, 4)) < 0.3).astype(np.uint8)
    kept = Y.copy()
    folds = stratified_folds(Y, 3, np.random.default_rng(7))
    np.testing.assert_array_equal(folds, stratified_folds(Y, 3, np.random.default_rng(7)))
    assert (folds != stratified_folds(Y, 3, np.random.default_rng(8))).any()
    np.testing.assert_array_equal(Y, kept)


@pytest.mark.parametrize("n_folds", [1, 0, -2, 2.5, "5", None])
def test_a_number_of_folds_that_is_none_is_refused(n_folds):
    with pytest.raises(ParameterError, match="folds must be a whole number of at least 2; got"):
        stratified_folds(np.zeros((9, 1), np.uint8), n_folds, np.random.default_rng(0))


def test_fewer_rows_than_folds_are_refused():
    with pytest.raises(InputError, match=r"X: it has 3 row\(s\) .*; 5 folds need at least 5\."):
        stratified_folds(np.zeros((3, 1), np.uint8), 5, np.random.default_rng(0))
