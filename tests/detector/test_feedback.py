import numpy as np
import pytest
from scipy.optimize import minimize

from mcode.detector.feedback import _fit, learned_shifts, likeliest_spread


def test_shifts_are_the_most_probable_ones():
    """An independent optimiser finds the same minimum of the negative log posterior."""
    rng = np.random.default_rng(0)
    log_odds, groups = rng.normal(size=60), rng.integers(0, 4, size=(60, 2))
    wrong = rng.random(60) < 0.3

    def loss(b):
        z = log_odds + b[groups].sum(axis=1)
        return np.logaddexp(0.0, z).sum() - z[wrong].sum() + 0.5 * (b**2).sum() / 0.8**2

    found = learned_shifts(log_odds, groups, wrong, 4, spread=0.8)
    assert np.allclose(found, minimize(loss, np.zeros(4), tol=1e-12).x, atol=1e-4)


def test_a_group_without_verdicts_does_not_move():
    groups, wrong = np.array([[0], [0], [2]]), np.array([True, True, False])
    assert learned_shifts(np.zeros(3), groups, wrong, 4)[[1, 3]].tolist() == [0, 0]


def test_certain_rows_do_not_break_it():
    found = learned_shifts(np.array([40.0, -40.0]), np.array([[0], [0]]), np.array([False, True]), 1)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("truth", [0.1, 1.0])
def test_the_spread_is_the_one_that_the_verdicts_were_drawn_with(truth):
    rng = np.random.default_rng(3)
    n_groups = 41
    groups = np.column_stack([np.zeros(2000, int), 1 + rng.integers(0, 40, 2000)])
    shifts = np.r_[0.5, rng.normal(scale=truth, size=40)]
    log_odds = rng.normal(size=2000)
    wrong = rng.random(2000) < 1 / (1 + np.exp(-log_odds - shifts[groups].sum(axis=1)))
    assert likeliest_spread(log_odds, groups, wrong, n_groups).tolist() == [1.0] + [truth] * 40


def test_the_evidence_is_that_of_integrating_over_the_shift():
    log_odds, wrong = np.array([0.3, -0.4, 1.0, 0.2] * 10), np.array([True, False, True, True] * 10)
    groups = np.zeros((40, 1), int)
    grid = np.linspace(-6, 6, 4001)
    p = 1 / (1 + np.exp(-log_odds[:, None] - grid))
    density = np.where(wrong[:, None], p, 1 - p).prod(axis=0) * np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    assert _fit(log_odds, groups, wrong, 1, 1.0).log_evidence == pytest.approx(
        np.log(np.trapezoid(density, grid)), abs=0.02
    )
