import numpy as np
from scipy.optimize import minimize

from mcode.detector.feedback import learned_shifts


def test_shifts_are_the_most_probable_ones():
    """An independent optimiser finds the same minimum of the negative log posterior."""
    rng = np.random.default_rng(0)
    log_odds, groups = rng.normal(size=60), rng.integers(0, 4, size=(60, 2))
    wrong = rng.random(60) < 0.3

    def loss(b):
        z = log_odds + b[groups].sum(axis=1)
        return np.logaddexp(0.0, z).sum() - z[wrong].sum() + 0.5 * (b**2).sum() / 0.8**2

    found = learned_shifts(log_odds, groups, wrong, 4, spread=np.full(4, 0.8))
    assert np.allclose(found, minimize(loss, np.zeros(4), tol=1e-12).x, atol=1e-4)


def test_a_group_without_verdicts_does_not_move():
    groups, wrong = np.array([[0], [0], [2]]), np.array([True, True, False])
    assert learned_shifts(np.zeros(3), groups, wrong, 4)[[1, 3]].tolist() == [0, 0]


def test_certain_rows_do_not_break_it():
    found = learned_shifts(np.array([40.0, -40.0]), np.array([[0], [0]]), np.array([False, True]), 1)
    assert np.isfinite(found).all()
