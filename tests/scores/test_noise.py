import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.exceptions import NotFittedError

from mcode.corruption import Drop, Flip, Mismatch, Noise
from mcode.errors import InputError, ParameterError
from mcode.models.panel import Panel
from mcode.scores import ComplementScore, NoiseScore

rhos = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.floats(1e-12, 1.0))


def make_panel(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    views = {name: np.log(rng.uniform(0.01, 0.99, (n, d))) for name in ("model", "br", "chain", "prior")}
    return Panel(rng.integers(0, 2, (n, d)).astype(np.uint8), views)


@given(rhos)
def test_at_odds_1_it_equals_the_complement_score(rho):
    noise, complement = NoiseScore([Noise(1.0)]), ComplementScore()
    np.testing.assert_allclose(noise.fit(rho).outlier_score(rho), complement.fit_outlier_score(rho), atol=1e-9)


def test_at_small_odds_it_orders_rows_by_their_sum_of_odds():
    rho = np.random.default_rng(0).uniform(0.001, 0.999, (200, 5))
    odds = ((1 - rho) / rho).sum(axis=1)
    np.testing.assert_array_equal(np.argsort(NoiseScore([Noise(1e-8)]).fit(rho).outlier_score(rho)), np.argsort(odds))


def test_between_1_and_0_the_odds_turn_many_small_errors_into_one_large_one():
    many, one = [0.3] * 10, [0.001] + [0.99] * 9
    dense, sparse = (NoiseScore([Noise(e)]).fit([many]).outlier_score([many, one]) for e in (1.0, 1e-4))
    assert dense[0] > dense[1]
    assert sparse[0] < sparse[1]


def test_several_kinds_are_summed_with_their_shares():
    panel = make_panel()
    kinds = {Noise(0.01): 3.0, Flip(): 1.0, Mismatch(): 4.0}
    expected = np.log(
        3 / 8 * np.exp(Noise(0.01).log_ratio(panel.views))
        + 1 / 8 * np.exp(Flip().log_ratio(panel.views))
        + 4 / 8 * np.exp(Mismatch().log_ratio(panel.views))
    )
    np.testing.assert_allclose(NoiseScore(kinds).fit(panel).outlier_score(panel), expected, rtol=1e-9)


def test_a_list_of_kinds_has_equal_shares():
    panel = make_panel()
    listed, shared = NoiseScore([Flip(), Mismatch()]), NoiseScore({Flip(): 0.5, Mismatch(): 0.5})
    np.testing.assert_array_equal(listed.fit(panel).outlier_score(panel), shared.fit(panel).outlier_score(panel))


def test_it_names_the_models_that_its_kinds_need():
    assert NoiseScore([Noise(), Flip()]).needs == ()
    assert NoiseScore().needs == ("br", "chain", "prior")


def test_the_likelihood_ratio_counts_the_probability_that_all_is_right():
    panel = make_panel()
    score = NoiseScore([Noise(0.2)]).fit(panel)
    np.testing.assert_allclose(score.log_likelihood_ratio(panel), score.outlier_score(panel) - 4 * np.log(1.2))


def test_blame_is_shared_as_the_kinds_share_it_weighted_by_how_likely_each_is():
    panel = make_panel()
    one = NoiseScore([Flip()]).fit(panel)
    np.testing.assert_allclose(one.response_blame(panel), Flip().share_of_blame(panel.views))
    both = NoiseScore([Flip(), Mismatch()]).fit(panel).response_blame(panel)
    flip, mismatch = (np.exp(kind.log_ratio(panel.views)) for kind in (Flip(), Mismatch()))
    share = (flip / (flip + mismatch))[:, None]
    expected = share * Flip().share_of_blame(panel.views) + (1 - share) * Mismatch().share_of_blame(panel.views)
    np.testing.assert_allclose(both, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("score", "M", "sentence"),
    [
        (NoiseScore(), [[0.5]], "M: it is one matrix of rho, and the stated errors also need br, chain, prior; give"),
        (NoiseScore([Noise()]), [[0.0]], "M: it holds values outside (0, 1]; give probabilities"),
        (NoiseScore([Noise()]), [[1.5]], "M: it holds values outside (0, 1]; give probabilities"),
        (NoiseScore([Noise()]), [[np.nan]], "M: row 0, column 0 is NaN"),
        (NoiseScore([]), [[0.5]], "errors must be a list of kinds of error such as [Flip(), Mismatch()]"),
        (NoiseScore([Flip]), [[0.5]], "errors must be a list of kinds of error such as [Flip(), Mismatch()]"),
        (NoiseScore({Flip(): -1.0}), [[0.5]], "errors must be kinds of error with positive shares; got"),
    ],
)
def test_what_it_cannot_use_is_refused_in_one_sentence(score, M, sentence):
    with pytest.raises((InputError, ParameterError)) as caught:
        score.fit(M)
    assert str(caught.value).startswith(sentence)


def test_a_kind_without_closed_form_is_refused():
    with pytest.raises(NotImplementedError, match="has no closed form; use score='learned'"):
        NoiseScore([Drop()]).fit([[0.5]]).outlier_score([[0.5]])


def test_a_score_that_was_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        NoiseScore([Noise()]).outlier_score([[0.5]])
