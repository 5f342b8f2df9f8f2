"""Song's density against its formulas written out, and against what made the data."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mcode.models.components import Bernoullis, DiagonalGaussians, FullGaussians, gaussians
from mcode.models.song import MappedMixtures, Mixture, Plan, fit_mixture, fit_song
from oracles import all_vectors

VARIANTS = ("full", "split", "direct")


def table(n=300, seed=0):
    """Return context A, responses B and the context component of each row: three groups, each with its own y."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    A = rng.normal(size=(n, 2)) * 0.5 + np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])[group]
    rate = np.array([[0.9, 0.9, 0.1, 0.1], [0.1, 0.9, 0.9, 0.1], [0.1, 0.1, 0.1, 0.9]])[group]
    return A, (rng.random((n, 4)) < rate).astype(float), group


def plan(variant="full", covariance="diagonal", responses="bernoulli", **other):
    options = {"n_context": 3, "n_response": 3, "restarts": 2, "max_iter": 60, "tolerance": 1e-9, **other}
    return Plan(variant=variant, covariance=covariance, responses=responses, **options)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("responses", ["bernoulli", "gaussian"])
def test_the_likelihood_never_decreases(variant, covariance, responses):
    A, B, _ = table()
    found = fit_song(A, B, plan(variant, covariance, responses), np.random.default_rng(0))
    assert len(found.history) > 3
    assert (np.diff(found.history) > -1e-8 * abs(found.history[0])).all()


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_the_likelihood_of_an_ordinary_mixture_never_decreases(covariance):
    A, _, _ = table()
    found = fit_mixture(A, gaussians(5, 2, covariance), 5, plan(), np.random.default_rng(1))
    assert (np.diff(found.history) > -1e-8 * abs(found.history[0])).all()


def any_mixtures(seed=0):
    rng = np.random.default_rng(seed)
    u = DiagonalGaussians(rng.normal(size=(2, 2)), rng.uniform(0.5, 2, size=(2, 2)))
    v = Bernoullis(rng.uniform(0.1, 0.9, size=(3, 4)))
    return MappedMixtures(Mixture(np.array([0.3, 0.7]), u), v, rng.dirichlet(np.ones(3), size=2))


def densities(m, A, B):
    """f(x_k | U_i) p(U_i) and f(y_k | V_j), by scipy and by a product."""
    u = m.context.components
    f = [multivariate_normal(u.mean[i], np.diag(u.variance[i])).pdf(A) * m.context.share[i] for i in range(2)]
    g = [np.prod(np.where(B == 1, m.response.rate[j], 1 - m.response.rate[j]), axis=1) for j in range(3)]
    return np.array(f).T, np.array(g).T


def test_the_density_is_that_of_the_paper():
    A, B, _ = table(n=20)
    m = any_mixtures()
    f, g = densities(m, A, B)
    expected = [
        sum(f[k, i] / f[k].sum() * sum(g[k, j] * m.mapping[i, j] for j in range(3)) for i in range(2))
        for k in range(20)
    ]
    np.testing.assert_allclose(np.exp(m.log_density(A, B)), expected, rtol=1e-10)


def test_one_step_is_that_of_the_paper():
    A, B, _ = table(n=40)
    m = any_mixtures()
    f, g = densities(m, A, B)
    b = f[:, :, None] * m.mapping[None] * g[:, None, :]
    b /= b.sum(axis=(1, 2), keepdims=True)
    better, _ = m.improved(A, B, everything=True)
    np.testing.assert_allclose(better.mapping, b.sum(axis=0) / b.sum(axis=(0, 2))[:, None], rtol=1e-8)
    np.testing.assert_allclose(better.context.share, b.sum(axis=(0, 2)) / len(A), rtol=1e-8)
    for i in range(2):
        weight = b.sum(axis=2)[:, i]
        mean = np.average(A, axis=0, weights=weight)
        np.testing.assert_allclose(better.context.components.mean[i], mean, rtol=1e-8)
        scatter = np.average((A - mean) ** 2, axis=0, weights=weight)
        np.testing.assert_allclose(better.context.components.variance[i], scatter, rtol=1e-8)
    for j in range(3):
        rate = np.average(B, axis=0, weights=b.sum(axis=1)[:, j])
        np.testing.assert_allclose(better.response.rate[j], rate, rtol=1e-8)
    only, _ = m.improved(A, B, everything=False)
    np.testing.assert_allclose(only.mapping, better.mapping)
    assert only.response is m.response


def test_full_gaussians_are_those_of_scipy():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 3))
    fitted = FullGaussians(np.zeros((1, 3)), np.eye(3)[None]).fitted(M, np.ones((30, 1)))
    np.testing.assert_allclose(fitted.mean[0], M.mean(axis=0))
    expected = multivariate_normal(fitted.mean[0], fitted.covariance[0]).logpdf(M)
    np.testing.assert_allclose(fitted.log_density(M)[:, 0], expected, rtol=1e-8)
    part = fitted.part(slice(1, 3))
    np.testing.assert_allclose(part.covariance[0], fitted.covariance[0][1:, 1:])


@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_over_all_response_vectors_sum_to_1(variant):
    A, B, _ = table()
    found = fit_song(A, B, plan(variant), np.random.default_rng(0))
    vectors = all_vectors(4).astype(float)
    assert np.exp(found.log_density(np.repeat(A[:1], 16, axis=0), vectors)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("responses", ["bernoulli", "gaussian"])
def test_the_groups_that_made_the_data_are_found(variant, responses):
    A, B, group = table(n=600)
    found = fit_song(A, B, plan(variant, responses=responses, restarts=5), np.random.default_rng(0))
    parts = found.context.log_parts(A).argmax(axis=1)
    agree = max(
        np.mean(np.array(order)[parts] == group)
        for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])
    )
    assert agree > 0.97
