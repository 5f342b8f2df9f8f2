"""Every score of this room in both spaces and in every reference mode."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

import mcode
from mcode.models import BatchLogistic, DependentRelevance
from mcode.scores.foreign import BatchDependenceWarning


def scores():
    yield from ["robust", "lof", "ocsvm", IsolationForest(n_estimators=20, random_state=0)]
    try:
        from pyod.models.copod import COPOD
        from pyod.models.ecod import ECOD
        from pyod.models.iforest import IForest
        from pyod.models.knn import KNN
    except ImportError:
        return
    yield from [ECOD(), COPOD(), IForest(n_estimators=20, random_state=0), KNN()]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    Y = (X @ rng.normal(size=(4, 5)) + 0.2 * rng.normal(size=(160, 5)) > 0).astype(int)
    return X, Y


@pytest.mark.parametrize("reference", ["cross-fit", "holdout", "batch"])
@pytest.mark.parametrize(
    "score", list(scores()), ids=lambda each: each if isinstance(each, str) else type(each).__name__
)
def test_scores_serve_both_spaces_in_every_reference_mode(score, reference, rows):
    X, Y = rows
    wrong = Y.copy()
    wrong[0] = 1 - wrong[0]
    model = DependentRelevance(BatchLogistic(penalty=1.0))
    for detector in (
        mcode.MCODE(model=model, score=score, reference=reference),
        mcode.JointDetector(score=score, reference=reference),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BatchDependenceWarning)
            found = detector.fit(X, Y).outlier_score(X, wrong)
        assert found.shape == (160,)
        assert np.isfinite(found).all()
        if isinstance(detector, mcode.MCODE):
            assert found[0] > np.quantile(found, 0.9)
