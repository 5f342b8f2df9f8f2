import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.neighbors import LocalOutlierFactor

from mcode.errors import InputError, ParameterError
from mcode.scores import neighbours
from mcode.scores.lof import LOFScore
from scores.oracles import lof_by_definition


@pytest.mark.parametrize("shape", [(300, 4), (500, 60)])
def test_without_duplicates_it_equals_scikit_learn(shape):
    rng = np.random.default_rng(0)
    M, new = rng.random(shape), rng.random((40, shape[1]))
    expected = -LocalOutlierFactor(n_neighbors=20).fit(M).negative_outlier_factor_
    np.testing.assert_allclose(LOFScore(k=20).fit_outlier_score(M), expected, rtol=0, atol=1e-6)
    expected = -LocalOutlierFactor(n_neighbors=20, novelty=True).fit(M).score_samples(new)
    np.testing.assert_allclose(LOFScore(k=20).fit(M).outlier_score(new), expected, rtol=0, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(2, 12))
def test_with_duplicates_and_ties_it_follows_the_definition(seed, k, n_different):
    rng = np.random.default_rng(seed)
    M = rng.integers(0, 3, size=(n_different, 2))[rng.integers(0, n_different, 30)].astype(float)
    new = rng.integers(0, 4, size=(5, 2)).astype(float)
    score = LOFScore(k=k).fit(M)
    np.testing.assert_allclose(score.training_score_, lof_by_definition(M, k), rtol=1e-9)
    np.testing.assert_allclose(score.outlier_score(new), lof_by_definition(M, k, new), rtol=1e-9)


def test_distinct_is_the_definition_on_each_row_once():
    rng = np.random.default_rng(0)
    base = rng.random((40, 3))
    M = np.vstack([base, base[:10], base[:5]])
    expected = lof_by_definition(base, 6)
    score = LOFScore(k=6, duplicates="distinct").fit_outlier_score(M)
    np.testing.assert_allclose(score, np.r_[expected, expected[:10], expected[:5]])


@pytest.mark.parametrize("dense_bytes", [0, 1 << 40])
def test_sparse_rows_have_the_scores_of_dense_ones(dense_bytes, monkeypatch):
    monkeypatch.setattr(neighbours, "_DENSE_BYTES", dense_bytes)
    rng = np.random.default_rng(0)
    M = rng.random((200, 30)) * (rng.random((200, 30)) < 0.2)
    dense, sparse = LOFScore(k=7).fit(M), LOFScore(k=7).fit(sp.csr_matrix(M))
    np.testing.assert_allclose(sparse.training_score_, dense.training_score_, rtol=1e-9)
    for store in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(
            sparse.outlier_score(store(M[:9] + 0.1)), dense.outlier_score(M[:9] + 0.1), rtol=1e-9
        )
        np.testing.assert_allclose(dense.outlier_score(store(M[:9] + 0.1)), dense.outlier_score(M[:9] + 0.1), rtol=1e-9)


@pytest.mark.parametrize(
    ("share", "most_bytes", "expected"), [(0.01, 1 << 20, False), (0.5, 1 << 20, True), (0.5, 9, False)]
)
def test_sparse_rows_become_dense_where_few_values_are_zero_and_memory_allows(share, most_bytes, expected, monkeypatch):
    monkeypatch.setattr(neighbours, "_DENSE_BYTES", most_bytes)
    assert neighbours._better_dense(sp.random(200, 40, share, format="csr", random_state=0)) == expected


def test_neighbours_that_are_not_kept_are_found_again(monkeypatch):
    M = np.random.default_rng(0).random((300, 3))
    expected = LOFScore(k=5).fit_outlier_score(M)
    monkeypatch.setattr(neighbours, "_KEPT_NEIGHBOURS", 10)
    monkeypatch.setattr(neighbours, "_BLOCK_BYTES", 1)
    np.testing.assert_array_equal(LOFScore(k=5).fit_outlier_score(M), expected)


def test_distances_that_float32_cannot_see_are_exact():
    rng = np.random.default_rng(0)
    M = np.vstack([rng.normal(0, 1e-5, (200, 4)) + 1.0, rng.normal(0, 30.0, (200, 4))])
    expected = -LocalOutlierFactor(n_neighbors=10, algorithm="kd_tree").fit(M).negative_outlier_factor_
    np.testing.assert_allclose(LOFScore(k=10).fit_outlier_score(M), expected, rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_do_not_matter(unit):
    M = np.random.default_rng(0).random((100, 3))
    score, scaled = LOFScore(k=5).fit(M), LOFScore(k=5).fit(M * unit)
    np.testing.assert_allclose(scaled.training_score_, score.training_score_, rtol=1e-6)
    far = np.array([[1e45, 0.0, 1.0]])
    np.testing.assert_allclose(scaled.outlier_score(far * unit), score.outlier_score(far), rtol=1e-6)


def test_copies_with_different_last_bits_are_copies():
    base = np.random.default_rng(0).random((5, 4))
    M = np.repeat(base, 20, axis=0)
    shaken = M * (1 + 1e-16 * np.random.default_rng(1).integers(-2, 3, M.shape))
    np.testing.assert_array_equal(LOFScore(k=10).fit_outlier_score(shaken), np.ones(100))


def test_all_rows_equal_score_1():
    np.testing.assert_array_equal(LOFScore(k=3).fit_outlier_score(np.ones((10, 2))), np.ones(10))


def test_a_single_row_beside_many_copies_is_infinitely_outlying():
    M = np.vstack([np.zeros((10, 2)), [[1.0, 1.0]]])
    assert LOFScore(k=3).fit_outlier_score(M)[-1] == np.inf


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_scores_follow_the_order_of_the_rows_bit_by_bit(seed):
    rng = np.random.default_rng(seed)
    M = rng.random((60, 3))[rng.integers(0, 60, 90)]
    order = rng.permutation(90)
    np.testing.assert_array_equal(LOFScore(k=5).fit_outlier_score(M[order]), LOFScore(k=5).fit_outlier_score(M)[order])


def test_one_row_alone_scores_as_in_a_batch():
    rng = np.random.default_rng(0)
    score, new = LOFScore(k=5).fit(rng.random((80, 6))), rng.random((20, 6))
    alone = np.concatenate([score.outlier_score(row[None]) for row in new])
    np.testing.assert_allclose(alone, score.outlier_score(new), rtol=1e-12)


def test_float32_is_near_float64_and_the_input_stays():
    M = np.random.default_rng(0).random((100, 5))
    before = M.copy()
    near = LOFScore(k=5).fit_outlier_score(M.astype(np.float32))
    np.testing.assert_allclose(near, LOFScore(k=5).fit_outlier_score(M), rtol=1e-4)
    np.testing.assert_array_equal(M, before)
    assert clone(LOFScore(k=5, duplicates="distinct")).get_params() == {"k": 5, "duplicates": "distinct"}


def test_too_few_rows_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"it has 10 row\(s\); k=30 neighbours need at least 31; k=9 would do\."):
        LOFScore().fit(np.random.default_rng(0).random((10, 2)))
    with pytest.raises(InputError, match=r"1 distinct row\(s\); k=2 neighbours need at least 3\."):
        LOFScore(k=2, duplicates="distinct").fit(np.ones((10, 2)))
    with pytest.raises(InputError, match="NaN"):
        LOFScore(k=1).fit([[1.0], [np.nan]])


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 2.5}, {"duplicates": "epsilon"}])
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(ParameterError, match=f"^{next(iter(wrong))} must be"):
        LOFScore(**wrong).fit(np.ones((5, 1)))


def test_one_column_works_without_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LOFScore(k=2).fit_outlier_score([[0.0], [1.0], [2.0], [50.0]]).argmax() == 3
