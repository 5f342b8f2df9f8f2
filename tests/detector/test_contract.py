"""scikit-learn's own checks, and its rules for parameters, over every exported estimator."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import IsolationForest
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import mcode
from mcode import MCODE, JointDetector
from mcode.corruption import Flip, Mismatch
from mcode.models import BatchLogistic, ClassifierChain, DependentRelevance, PerLabel
from mcode.scores import ForeignScore, LearnedScore, NoiseScore
from tables import dependent_table


class _Bridge:
    """Lets checks that know one X only talk to a detector that needs Y beside X.

    A check's y becomes two-valued for `fit`; where a check has no y, every response is 0.
    """

    def fit(self, X, y=None):
        return super().fit(X, None if y is None else _two_valued(y))

    def fit_predict(self, X, y):
        return super().fit_predict(X, _two_valued(y))

    def predict(self, X):
        return super().predict(X, _zeros(X))

    def score_samples(self, X):
        return super().score_samples(X, _zeros(X))


class BridgedMCODE(_Bridge, MCODE):
    def transform(self, X):
        return super().transform(X, _zeros(X))

    def fit_transform(self, X, y):
        return self.fit(X, y).transform(X)


class BridgedJointDetector(_Bridge, JointDetector):
    pass


def _two_valued(y):
    y = np.asarray(y)
    return (y == y.ravel()[0]).astype(int) if y.size else y


def _zeros(X):
    return np.zeros(((X if hasattr(X, "shape") else np.asarray(X)).shape[0], 1), int)


NO_METHOD = "score is a parameter of a detector, not a method"
OWN_WORDS = "refused as asked for, in a sentence of our own that names argument, place and what is allowed"
CANNOT_APPLY = {
    "check_fit_score_takes_y": NO_METHOD,
    "check_pipeline_consistency": NO_METHOD,
    "check_estimators_empty_data_messages": "a table without features is accepted: the responses are then judged alone",
    "check_n_features_in_after_fitting": OWN_WORDS,
    "check_dtype_object": OWN_WORDS,
    "check_fit2d_predict1d": OWN_WORDS,
    "check_requires_y_none": OWN_WORDS,
}


@parametrize_with_checks(
    [
        BridgedMCODE("br", "complement"),
        BridgedMCODE("dbr", "learned"),
        BridgedJointDetector("robust"),
    ],
    expected_failed_checks=lambda estimator: (
        CANNOT_APPLY | ({"check_fit2d_1sample": OWN_WORDS} if isinstance(estimator, JointDetector) else {})
    ),
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_detectors_say_what_they_accept():
    for detector in (MCODE(), JointDetector()):
        tags = get_tags(detector)
        assert tags.input_tags.sparse
        assert tags.target_tags.required
        assert tags.target_tags.multi_output


PARAMETERS = {PerLabel: {"estimator": GaussianNB()}, ForeignScore: {"detector": IsolationForest()}}


EXPORTED = [getattr(module, name) for module in (mcode, mcode.models, mcode.scores) for name in module.__all__]
ESTIMATORS = {
    thing.__name__: thing
    for thing in EXPORTED
    if isinstance(thing, type) and issubclass(thing, BaseEstimator) and not getattr(thing, "__abstractmethods__", ())
}


def test_every_estimator_is_among_those_checked():
    assert {"MCODE", "JointDetector", "ClassifierChain", "BatchLogistic", "LearnedScore", "LOFScore"} <= set(ESTIMATORS)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_are_stored_copied_and_changed_as_they_are(name):
    make = ESTIMATORS[name]
    estimator = make(**PARAMETERS.get(make, {}))
    given = estimator.get_params(deep=False)
    copy = clone(estimator)
    assert type(copy) is make
    assert copy.get_params(deep=False).keys() == given.keys()
    for parameter, value in given.items():
        marker = object()
        assert getattr(estimator, parameter) is value
        assert make(**{**given, parameter: marker}).get_params(deep=False)[parameter] is marker  # no check before fit
        copy.set_params(**{parameter: marker})
        assert getattr(copy, parameter) is marker
    with pytest.raises(ValueError, match="Invalid parameter 'no_such_parameter'"):
        estimator.set_params(no_such_parameter=1)


def test_parameters_of_parts_are_reached_through_their_detector():
    detector = MCODE(DependentRelevance(BatchLogistic(penalty=1.0)), LearnedScore(penalty=5.0))
    detector.set_params(model__learner__penalty=3.0, score__penalty=7.0)
    assert detector.model.learner.penalty == 3.0
    assert detector.score.penalty == 7.0


@pytest.mark.parametrize(
    "detector",
    [
        MCODE(ClassifierChain([2, 0, 1, 3], learner=BatchLogistic(1.0)), NoiseScore({Flip(): 1.0, Mismatch(): 2.0})),
        MCODE(DependentRelevance(PerLabel(GaussianNB(), n_jobs=1)), "norm", folds=3, reference="holdout"),
        JointDetector("ocsvm", reference="holdout", random_state=3),
    ],
    ids=["noise", "per label", "joint"],
)  # fmt: skip
def test_a_copy_scores_like_the_original_and_fitting_leaves_the_parameters(detector):
    X, Y = dependent_table(n=80)
    before = {name: repr(value) for name, value in detector.get_params().items()}
    scores = detector.fit(X, Y).outlier_score(X, Y)
    assert {name: repr(value) for name, value in detector.get_params().items()} == before
    np.testing.assert_array_equal(clone(detector).fit(X, Y).outlier_score(X, Y), scores)
    np.testing.assert_array_equal(detector.fit(X, Y).outlier_score(X, Y), scores)
