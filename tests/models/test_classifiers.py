import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mcode
from mcode._progress import reporting
from mcode.errors import InputError, UnknownNameError
from mcode.models import (
    Boosting,
    CalibratedSVM,
    ClassifierChain,
    DependentRelevance,
    NaiveBayes,
    PerLabel,
    as_learner,
    as_model,
    classifiers,
)
from tables import dependent_table, sparse_table

NAMES = ("svm", "naive-bayes", "boosting")


def test_margins_are_calibrated_as_scikit_learn_does_it():
    X, Y = dependent_table(n=300)
    y = Y[:, 1]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    svm = make_pipeline(StandardScaler(), LinearSVC(C=0.1, dual=True, random_state=0, max_iter=20_000))
    theirs = CalibratedClassifierCV(svm, method="sigmoid", cv=folds, ensemble=False).fit(X, y)
    ours = CalibratedSVM().fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.01)


def test_more_than_two_classes_share_one_probability():
    X, _ = dependent_table(n=300)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for classifier in (CalibratedSVM(), NaiveBayes(), Boosting()):
        p = classifier.fit(X, y).predict_proba(X)
        assert p.shape == (300, 3)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
        assert (classifier.predict(X) == y).mean() > 0.7


def test_naive_bayes_is_that_of_scikit_learn_where_columns_are_of_one_sort():
    X, Y = dependent_table()
    gaussian = GaussianNB(var_smoothing=1e-3).fit(X, Y[:, 0]).predict_proba(X)
    np.testing.assert_allclose(NaiveBayes().fit(X, Y[:, 0]).predict_proba(X), gaussian, atol=1e-9)
    others = Y[:, 1:].astype(float)
    bernoulli = BernoulliNB().fit(others, Y[:, 0]).predict_proba(others)
    np.testing.assert_allclose(NaiveBayes().fit(others, Y[:, 0]).predict_proba(others), bernoulli, atol=1e-9)
    S, T = sparse_table()
    words = BernoulliNB().fit(S, T[:, 0]).predict_proba(S)
    np.testing.assert_allclose(NaiveBayes().fit(S, T[:, 0]).predict_proba(S), words, atol=1e-9)


def test_mixed_columns_multiply():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=200)
    x, b = rng.normal(size=200) + y, (rng.random(200) < 0.2 + 0.5 * y).astype(float)
    found = NaiveBayes(smallest_variance=1e-12).fit(np.column_stack([x, b]), y).predict_proba(np.array([[0.3, 1.0]]))[0]
    expected = [
        (y == c).mean()
        * norm.pdf(0.3, x[y == c].mean(), x[y == c].std())
        * (b[y == c].sum() + 1)
        / ((y == c).sum() + 2)
        for c in (0, 1)
    ]
    np.testing.assert_allclose(found, np.array(expected) / sum(expected), rtol=1e-6)


def test_boosting_is_that_of_scikit_learn_and_reads_sparse_rows():
    X, Y = sparse_table()
    options = {"max_iter": 60, "learning_rate": 0.1, "max_leaf_nodes": 15, "l2_regularization": 1.0}
    theirs = HistGradientBoostingClassifier(**options, early_stopping=False, random_state=0).fit(X.toarray(), Y[:, 0])
    np.testing.assert_array_equal(Boosting().fit(X, Y[:, 0]).predict_proba(X), theirs.predict_proba(X.toarray()))


def test_boosting_refuses_what_does_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(classifiers, "MOST_DENSE_CELLS", 100)
    with pytest.raises(InputError, match="which boosting needs dense"):
        Boosting().fit(sp.csr_matrix((20, 20)), np.arange(20) % 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_positive", [1, 2, 3])
def test_rare_responses_are_learned_without_complaint(name, n_positive):
    X, Y = dependent_table(n=60)
    Y[:, 0] = np.arange(60) < n_positive
    model = as_model("chain", name)
    model.set_params(learner=PerLabel(as_learner(name).estimator, n_jobs=1))
    assert np.isfinite(model.fit(X, Y).log_proba(X, Y)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("table", [dependent_table, sparse_table])
def test_responses_side_by_side_are_those_one_after_the_other(name, table):
    X, Y = table(n=80)
    stages = []
    with reporting(lambda stage, done, total: stages.append((stage, done, total))):
        one = ClassifierChain(learner=PerLabel(as_learner(name).estimator, n_jobs=1)).fit(X, Y)
    assert stages[-1] == ("fit the responses", 4, 4)
    two = ClassifierChain(learner=name).fit(X, Y)
    np.testing.assert_array_equal(one.log_proba(X, Y), two.log_proba(X, Y))


def test_a_learner_by_name_serves_an_audit():
    X, Y = dependent_table(n=100)
    found = mcode.audit(X, Y, model=DependentRelevance("naive-bayes"))
    assert found.explain(int(found.ranking[0])).responses


def test_a_name_that_stands_for_nothing_is_refused():
    with pytest.raises(UnknownNameError, match="learner must be one of 'boosting', 'logistic', 'naive-bayes', 'svm'"):
        DependentRelevance("forest").fit(*dependent_table())
