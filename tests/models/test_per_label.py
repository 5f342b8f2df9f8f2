import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mcode._progress import reporting
from mcode.errors import ParameterError
from mcode.models import BatchLogistic, DependentRelevance, PerLabel
from mcode.models import parents as see
from mcode.models.folds import stratified_folds
from mcode.models.per_label import SMALLEST_PROBABILITY
from tables import dependent_table, sparse_table


@pytest.mark.parametrize("make", [dependent_table, sparse_table])
@pytest.mark.parametrize("mask", [see.none, see.all_others, lambda d: see.chain(range(d), d)])
def test_logistic_regression_for_each_label_equals_the_batched_fit(make, mask):
    X, Y = make()
    one_by_one = PerLabel(LogisticRegression(C=0.5, tol=1e-8, max_iter=1000), n_jobs=1).fit(X, Y, mask(4))
    together = BatchLogistic(penalty=2.0).fit(X, Y, mask(4))
    np.testing.assert_allclose(np.exp(one_by_one.log_proba(X, Y)), np.exp(together.log_proba(X, Y)), atol=1e-4)


def test_any_classifier_with_probabilities_serves():
    X, Y = dependent_table()
    fitted = PerLabel(GaussianNB(), n_jobs=1).fit(X, Y, see.all_others(4))
    for j in range(4):
        Z = np.hstack([X, np.delete(Y, j, axis=1)])
        positive = GaussianNB().fit(Z, Y[:, j]).predict_proba(Z)[:, 1]
        expected = np.where(Y[:, j] == 1, positive, 1.0 - positive)
        np.testing.assert_allclose(
            np.exp(fitted.log_proba(X, Y))[:, j],
            np.clip(expected, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY),
            rtol=1e-9,
        )


def test_the_estimator_itself_stays_unfitted():
    X, Y = dependent_table()
    estimator = GaussianNB()
    PerLabel(estimator, n_jobs=1).fit(X, Y, see.none(4))
    assert not hasattr(estimator, "theta_")


def test_certainty_is_kept_away_from_0_and_1():
    X, Y = dependent_table()
    fitted = PerLabel(DecisionTreeClassifier(random_state=0), n_jobs=1).fit(X, Y, see.none(4))
    rho, flipped = np.exp(fitted.log_proba(X, Y)), np.exp(fitted.log_proba(X, 1 - Y))
    np.testing.assert_allclose(rho, 1.0 - SMALLEST_PROBABILITY, rtol=1e-9)
    np.testing.assert_allclose(flipped, SMALLEST_PROBABILITY, rtol=1e-9)


def test_a_response_with_one_value_gets_its_smoothed_base_rate():
    X, Y = dependent_table()
    Y[:, 1] = 1
    fitted = PerLabel(GaussianNB(), n_jobs=1).fit(X, Y, see.none(4))
    np.testing.assert_allclose(np.exp(fitted.log_proba(X, Y))[:, 1], 120.5 / 121.0)


def test_a_response_without_inputs_gets_its_smoothed_base_rate():
    _, Y = dependent_table()
    nothing = np.empty((len(Y), 0))
    fitted = PerLabel(GaussianNB(), n_jobs=1).fit(nothing, Y, see.none(4))
    rate = (Y[:, 0].sum() + 0.5) / 121.0
    expected = np.where(Y[:, 0] == 1, rate, 1.0 - rate)
    np.testing.assert_allclose(np.exp(fitted.log_proba(nothing, Y))[:, 0], expected)


def test_folds_are_fitted_without_their_rows():
    X, Y = dependent_table()
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    learner = PerLabel(GaussianNB(), n_jobs=1)
    cross, final = learner.cross_fit(X, Y, see.all_others(4), folds, final=True)
    for f in range(3):
        alone = learner.fit(X[folds != f], Y[folds != f], see.all_others(4))
        np.testing.assert_allclose(
            cross.log_proba(X, Y)[folds == f], alone.log_proba(X[folds == f], Y[folds == f]), rtol=1e-9
        )
    np.testing.assert_allclose(final.log_proba(X, Y), learner.fit(X, Y, see.all_others(4)).log_proba(X, Y), rtol=1e-9)
    assert learner.cross_fit(X, Y, see.all_others(4), folds, final=False)[1] is None


def test_two_processes_fit_what_one_fits():
    X, Y = dependent_table(d=2)
    one, two = (PerLabel(GaussianNB(), n_jobs=n).fit(X, Y, see.none(2)).log_proba(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_inside_a_model_it_takes_sparse_rows_and_tells_how_far_it_is():
    X, Y = sparse_table()
    seen = []
    with reporting(lambda stage, done, total: seen.append((done, total))):
        model = DependentRelevance(PerLabel(LogisticRegression(), n_jobs=1)).fit(X, Y)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert model.log_proba(sp.csr_matrix(X), Y).shape == (120, 4)


def test_a_classifier_without_probabilities_is_refused():
    X, Y = dependent_table()
    with pytest.raises(ParameterError, match=r"estimator must be a classifier with predict_proba; got LinearSVC\(\)\."):
        PerLabel(LinearSVC(), n_jobs=1).fit(X, Y, see.none(4))
