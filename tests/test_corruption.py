import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcode.corruption import (
    Add,
    Drop,
    ErrorKind,
    Flip,
    Mismatch,
    Noise,
    Several,
    Swap,
    log_odds_against,
    log_sum_exp,
)
from mcode.errors import ParameterError
from oracles import all_vectors, mean_product_over_sets

KINDS = [Flip(), Flip(3), Noise(0.1), Mismatch(), Add(), Drop(), Swap(), Several(Flip()), Several(Add())]
tables = arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=st.integers(0, 1))
seeds = st.integers(0, 10**6)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=repr)


def rhos(n=50, d=4, seed=0):
    return np.random.default_rng(seed).uniform(0.01, 0.999, size=(n, d))


@every_kind
@given(tables, seeds)
def test_corruption_leaves_its_input_alone_and_follows_its_seed(kind, Y, seed):
    kept = Y.copy()
    one = kind.corrupt(Y, np.random.default_rng(seed))
    np.testing.assert_array_equal(Y, kept)
    assert not np.shares_memory(one, Y)
    assert one.shape == Y.shape
    assert one.dtype == np.uint8
    assert one.max() <= 1
    np.testing.assert_array_equal(one, kind.corrupt(Y, np.random.default_rng(seed)))


@given(tables, seeds, st.integers(1, 8))
def test_a_flip_changes_exactly_k_responses_of_each_row(Y, seed, k):
    wrong = Flip(k).corrupt(Y, np.random.default_rng(seed)) != Y
    assert (wrong.sum(axis=1) == min(k, Y.shape[1])).all()


@given(tables, seeds, st.sampled_from([1e-6, 0.1, 1.0, 50.0]))
def test_noise_changes_at_least_one_response_of_each_row(Y, seed, e):
    assert (Noise(e).corrupt(Y, np.random.default_rng(seed)) != Y).any(axis=1).all()


def test_noise_changes_each_response_with_its_odds():
    Y = np.zeros((20_000, 8), np.uint8)
    share = Noise(0.5).corrupt(Y, np.random.default_rng(0)).mean()
    spared = (2 / 3) ** 8 / 8  # rows in which nothing would change get one change
    assert share == pytest.approx(1 / 3 + spared, abs=0.005)


@given(tables, seeds)
def test_an_addition_adds_one_response_where_one_is_absent(Y, seed):
    out = Add().corrupt(Y, np.random.default_rng(seed))
    assert (out >= Y).all()
    np.testing.assert_array_equal((out != Y).sum(axis=1), (Y == 0).any(axis=1))


@given(tables, seeds)
def test_a_drop_removes_one_response_where_one_is_present(Y, seed):
    out = Drop().corrupt(Y, np.random.default_rng(seed))
    assert (out <= Y).all()
    np.testing.assert_array_equal((out != Y).sum(axis=1), Y.any(axis=1))


@given(tables, seeds)
def test_a_swap_moves_one_response_and_keeps_their_number(Y, seed):
    out = Swap().corrupt(Y, np.random.default_rng(seed))
    np.testing.assert_array_equal(out.sum(axis=1), Y.sum(axis=1))
    possible = Y.any(axis=1) & (Y == 0).any(axis=1)
    np.testing.assert_array_equal((out != Y).sum(axis=1), 2 * possible)


def test_several_errors_are_two_or_more_each_number_half_as_likely_as_the_one_before():
    Y = np.ones((40_000, 40), np.uint8)
    lost = 40 - Several(Drop()).corrupt(Y, np.random.default_rng(0)).sum(axis=1)
    share = np.bincount(lost, minlength=7) / len(Y)
    np.testing.assert_allclose(share, [0, 0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16], atol=0.01)


@given(tables, seeds)
def test_several_additions_only_add_and_as_many_as_there_is_room_for(Y, seed):
    more = Several(Add()).corrupt(Y, np.random.default_rng(seed))
    assert (more >= Y).all()
    added, room = (more > Y).sum(axis=1), (Y == 0).sum(axis=1)
    assert ((added >= np.minimum(2, room)) & (added <= np.minimum(6, room))).all()


@given(tables, seeds)
def test_a_mismatch_gives_each_row_the_responses_of_some_row(Y, seed):
    out = Mismatch().corrupt(Y, np.random.default_rng(seed))
    assert {tuple(row) for row in out} <= {tuple(row) for row in Y}
    if len(np.unique(Y, axis=0)) == 1:
        np.testing.assert_array_equal(out, Y)


def test_a_mismatch_differs_where_another_y_is_to_be_had():
    Y = (np.random.default_rng(0).random((300, 5)) < 0.5).astype(np.uint8)
    assert (Mismatch().corrupt(Y, np.random.default_rng(1)) != Y).any(axis=1).mean() > 0.99


def test_additions_follow_how_often_each_response_is_present():
    rng = np.random.default_rng(0)
    Y = (rng.random((20_000, 3)) < [0.6, 0.3, 0.05]).astype(np.uint8)
    added = (Add().corrupt(Y, rng) != Y)[(Y == 0).all(axis=1)].mean(axis=0)
    np.testing.assert_allclose(added, Y.mean(axis=0) / Y.mean(axis=0).sum(), atol=0.02)


def test_at_odds_1_the_noise_ratio_is_minus_the_log_probability():
    rho = rhos()
    np.testing.assert_allclose(Noise(1.0).log_ratio({"model": np.log(rho)}), -np.log(rho.prod(axis=1)), rtol=1e-12)
    almost = Noise(1.0 + 1e-9).log_ratio({"model": np.log(rho)})
    np.testing.assert_allclose(almost, -np.log(rho.prod(axis=1)), rtol=1e-6)


def test_at_small_odds_the_noise_ratio_orders_rows_by_their_sum_of_odds():
    rho = rhos(n=200)
    odds = ((1 - rho) / rho).sum(axis=1)
    ratio = Noise(1e-9).log_ratio({"model": np.log(rho)})
    np.testing.assert_allclose(ratio / 1e-9, odds, rtol=1e-4)
    np.testing.assert_array_equal(np.argsort(ratio), np.argsort(odds))
    np.testing.assert_array_equal(np.argsort(Flip().log_ratio({"model": np.log(rho)})), np.argsort(odds))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_the_flip_ratio_is_the_mean_over_all_sets_of_responses(k):
    rho = rhos(n=20)
    expected = [np.log(mean_product_over_sets((1 - row) / row, min(k, 4))) for row in rho]
    np.testing.assert_allclose(Flip(k).log_ratio({"model": np.log(rho)}), expected, atol=1e-9)


@pytest.mark.parametrize("kind", [Flip(), Flip(2), Noise(0.01), Noise(1.0), Mismatch()], ids=repr)
def test_over_all_response_vectors_a_normalised_ratio_is_a_ratio_of_probabilities(kind):
    rng = np.random.default_rng(0)
    Y = all_vectors(5)
    given_x, prior = rng.uniform(0.05, 0.95, 5), rng.uniform(0.05, 0.95, 5)
    conditional, marginal = (np.log(np.where(Y == 1, p, 1 - p)) for p in (given_x, prior))
    views = {"model": conditional, "br": conditional, "chain": conditional, "prior": marginal}
    log_ratio = kind.log_ratio(views) + kind.log_normaliser(5)
    assert np.exp(conditional.sum(axis=1) + log_ratio).sum() == pytest.approx(1.0, rel=1e-9)


def test_the_noise_ratio_sums_over_what_the_right_responses_might_have_been():
    rng = np.random.default_rng(1)
    p, e, recorded = rng.uniform(0.05, 0.95, 4), 0.3, np.array([1, 0, 0, 1], np.uint8)
    total = 0.0
    for right in all_vectors(4):
        wrong = int((right != recorded).sum())
        total += np.prod(np.where(right == 1, p, 1 - p)) * e**wrong / (1 + e) ** 4
    log_rho = np.log(np.where(recorded == 1, p, 1 - p))[None]
    ratio = Noise(e).log_ratio({"model": log_rho}) + Noise(e).log_normaliser(4)
    assert ratio[0] == pytest.approx(np.log(total) - log_rho.sum(), rel=1e-9)


def test_shares_of_blame_are_probabilities():
    rho = rhos()
    views = {"model": np.log(rho), "br": np.log(rho), "chain": np.log(rho), "prior": np.log(rho)}
    for kind in (Flip(), Flip(2), Noise(0.1), Mismatch()):
        blame = kind.share_of_blame(views)
        assert blame.shape == rho.shape
        assert (blame >= 0).all()
        assert (blame <= 1).all()
    odds = (1 - rho) / rho
    np.testing.assert_allclose(Flip().share_of_blame(views), odds / odds.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(Noise(0.1).share_of_blame(views), 0.1 * odds / (1 + 0.1 * odds), rtol=1e-9)
    np.testing.assert_allclose(Mismatch().share_of_blame(views), 1 - rho, rtol=1e-9)


def test_extreme_probabilities_give_finite_ratios():
    views = {"model": np.log([[1e-12, 1 - 1e-12], [1 - 1e-12, 1 - 1e-12]])}
    for kind in (Flip(), Flip(2), Noise(0.01), Noise(1.0)):
        assert np.isfinite(kind.log_ratio(views)).all()
    assert np.isfinite(log_odds_against(np.zeros((1, 2)))).all()


def test_log_sum_exp_is_safe_for_large_numbers():
    np.testing.assert_allclose(log_sum_exp(np.array([[1000.0, 1000.0], [-1000.0, 0.0]])), [1000.0 + np.log(2), 0.0])


@pytest.mark.parametrize("kind", [Add(), Drop(), Swap(), Several(Flip())], ids=repr)
def test_a_kind_without_closed_form_points_to_the_learned_score(kind):
    for method in (kind.log_ratio, kind.share_of_blame):
        with pytest.raises(NotImplementedError, match=r"has no closed form; use score='learned'\."):
            method({"model": np.zeros((1, 2))})


def test_a_kind_of_ones_own_needs_one_method_only():
    class Nothing(ErrorKind):
        def corrupt(self, Y, rng):
            return Y.copy()

    assert Nothing().needs == ("model",)
    assert Nothing().log_normaliser(3) == 0.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Flip(0), "k must be a whole number of at least 1; got 0."),
        (lambda: Flip(1.5), "k must be a whole number of at least 1; got 1.5."),
        (lambda: Several(2), "kind must be a kind of error such as Flip() or Add(); got 2."),
        (lambda: Noise(0.0), "e must be a positive number; got 0.0."),
        (lambda: Noise(-1), "e must be a positive number; got -1."),
        (lambda: Noise(np.nan), "e must be a positive number; got nan."),
        (lambda: Noise(np.inf), "e must be a positive number; got inf."),
    ],
)
def test_a_parameter_out_of_range_is_refused(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence
