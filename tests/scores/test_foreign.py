import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression, SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from mcode.errors import ParameterError
from mcode.scores import NormScore
from mcode.scores.foreign import BatchDependenceWarning, ForeignScore, wrap_detector

SCIKIT_LEARN = [
    IsolationForest(n_estimators=20, random_state=0),
    OneClassSVM(nu=0.1),
    LocalOutlierFactor(),
    LocalOutlierFactor(novelty=True),
    EllipticEnvelope(random_state=0),
    make_pipeline(StandardScaler(), IsolationForest(n_estimators=20, random_state=0)),
]


@pytest.fixture
def planted():
    """rho-like rows, the first of which is far from all others."""
    M = np.random.default_rng(0).uniform(0.8, 1.0, size=(120, 4))
    M[0] = 0.05
    return M


def pyod_detectors():
    pytest.importorskip("pyod")
    from pyod.models.copod import COPOD
    from pyod.models.ecod import ECOD
    from pyod.models.iforest import IForest
    from pyod.models.knn import KNN

    return {"ECOD": ECOD(), "COPOD": COPOD(), "IForest": IForest(n_estimators=20, random_state=0), "KNN": KNN()}


@pytest.mark.parametrize("detector", SCIKIT_LEARN, ids=lambda each: type(each).__name__)
def test_scikit_learn_detectors_have_the_sign_turned(detector, planted):
    score = wrap_detector(detector)
    assert score.fit_outlier_score(planted).argmax() == 0
    assert score.outlier_score(planted).argmax() == 0
    assert not score.batch_dependent_
    assert not hasattr(detector, "n_features_in_"), "the given detector must not be fitted"


def test_a_detector_without_score_samples_is_read_by_its_decision():
    M = np.random.default_rng(0).normal(size=(200, 2)) + 5.0
    score = wrap_detector(SGDOneClassSVM(nu=0.2, random_state=0)).fit(M)
    detector = SGDOneClassSVM(nu=0.2, random_state=0).fit(M)
    np.testing.assert_allclose(score.outlier_score(M), -detector.score_samples(M))


@pytest.mark.parametrize("name", ["IForest", "KNN"])
def test_pyod_detectors_keep_their_sign(name, planted):
    score = wrap_detector(pyod_detectors()[name])
    assert score.fit_outlier_score(planted).argmax() == 0
    assert score.outlier_score(planted).argmax() == 0
    assert not score.batch_dependent_


@pytest.mark.parametrize("name", ["ECOD", "COPOD"])
def test_a_detector_that_looks_at_the_batch_is_noticed(name, planted):
    score = wrap_detector(pyod_detectors()[name])
    with pytest.warns(BatchDependenceWarning, match=f"{name} scores a row differently alone and in a batch"):
        found = score.fit_outlier_score(planted)
    assert found.argmax() == 0
    assert score.batch_dependent_


def test_the_scores_of_fitted_rows_are_the_detectors_own(planted):
    detector = pyod_detectors()["KNN"]
    np.testing.assert_array_equal(
        ForeignScore(detector).fit_outlier_score(planted), detector.fit(planted).decision_scores_
    )
    factors = LocalOutlierFactor().fit(planted).negative_outlier_factor_
    np.testing.assert_allclose(ForeignScore(LocalOutlierFactor()).fit_outlier_score(planted), -factors)


@pytest.mark.parametrize(
    "detector", [IsolationForest(n_estimators=10, random_state=0), EllipticEnvelope(random_state=0)]
)
def test_sparse_rows_reach_every_detector(detector, planted):
    dense = wrap_detector(detector).fit(planted).outlier_score(planted)
    sparse = wrap_detector(detector).fit(sp.csr_matrix(planted)).outlier_score(sp.csr_matrix(planted))
    np.testing.assert_allclose(sparse, dense)


def test_a_score_is_left_as_it_is():
    score = NormScore()
    assert wrap_detector(score) is score


def test_one_row_can_be_fitted_where_the_detector_can():
    score = ForeignScore(IsolationForest(n_estimators=5, random_state=0)).fit([[1.0, 2.0]])
    assert np.isfinite(score.outlier_score([[1.0, 2.0]])).all()


@pytest.mark.parametrize("wrong", [LogisticRegression(), "isolation", IsolationForest])
def test_what_is_no_detector_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"^detector must be an"):
        wrap_detector(wrong)
