import numpy as np
import pytest

import mcode
from mcode.errors import InputError, ParameterError, UnknownNameError
from mcode.models.panel import Panel
from mcode.scores import ReliabilityScore
from tables import dependent_table


def panel_of(n=200, seed=0):
    """Two responses: the first is known almost surely, the second is guessed."""
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, size=(n, 2)).astype(np.uint8)
    rho = np.column_stack([np.full(n, 0.95), rng.uniform(0.4, 0.6, size=n)])
    return Panel(Y, {"model": np.log(rho), "br": np.log(rho)})


def test_weights_are_the_shares_of_error_that_the_model_removes():
    panel = panel_of()
    score = ReliabilityScore().fit(panel)
    for j in range(2):
        y = panel.Y[:, j]
        p_one = np.where(y == 1, panel.rho[:, j], 1 - panel.rho[:, j])
        brier, base = np.mean((p_one - y) ** 2), np.mean((y.mean() - y) ** 2)
        assert score.reliability_[j] == pytest.approx(max(0.0, 1 - brier / base))
    expected = -(panel.views["model"] * score.reliability_).sum(axis=1)
    np.testing.assert_allclose(score.outlier_score(panel), expected)


def test_local_weights_follow_the_neighbours():
    """The model is good where x says yes and guesses where x says no."""
    rng = np.random.default_rng(0)
    yes = rng.random(400) < 0.5
    Y = np.column_stack([rng.random(400) < 0.5, yes]).astype(np.uint8)
    rho = np.column_stack([np.where(yes, 0.95, 0.5), np.full(400, 0.99)])
    panel = Panel(Y, {"model": np.log(rho), "br": np.log(np.column_stack([np.full(400, 0.5), np.full(400, 0.99)]))})
    weights = ReliabilityScore("local", neighbours=20, shrink=5).fit(panel).weights(panel)
    assert weights[yes, 0].min() > 0.8
    assert weights[~yes, 0].max() < 0.4
    whole = ReliabilityScore("local", neighbours=20, shrink=1e9).fit(panel)
    np.testing.assert_allclose(whole.weights(panel)[:, 0], whole.reliability_[0], rtol=1e-5)


@pytest.mark.parametrize("scope", ["global", "local"])
def test_it_serves_audits_and_detectors(scope):
    X, Y = dependent_table(n=200)
    found = mcode.audit(X, Y, score=ReliabilityScore(scope))
    assert np.isfinite(found.outlier_score).all()
    assert found.score.reliability_.shape == (4,)
    detector = mcode.MCODE(score=ReliabilityScore(scope)).fit(X, Y)
    scores = detector.outlier_score(X, Y)
    np.testing.assert_allclose(detector.outlier_score(X[5:6], Y[5:6]), scores[5:6])


def test_what_makes_no_sense_is_refused():
    panel = panel_of()
    with pytest.raises(UnknownNameError, match="scope must be one of 'global', 'local'"):
        ReliabilityScore("near").fit(panel)
    with pytest.raises(ParameterError, match="neighbours must be a whole number"):
        ReliabilityScore(neighbours=0).fit(panel)
    with pytest.raises(InputError, match="use it inside MCODE or audit"):
        ReliabilityScore().fit(panel.rho)
    with pytest.raises(ParameterError, match="this one is defined on rho alone"):
        mcode.JointDetector("reliability").fit(*dependent_table())
