"""Responses that are not known."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import mcode
from mcode.errors import InputError
from mcode.models import (
    BatchLogistic,
    BinaryRelevance,
    ChainEnsemble,
    ClassifierChain,
    DependentRelevance,
    MixtureModel,
    PerLabel,
    TreeRelevance,
)
from mcode.models.encoding import MISSING
from mcode.models.missing import fill
from tables import dependent_table, sparse_table

GIVEN = BatchLogistic(penalty=1.0)


def hidden(Y, share=0.2, seed=0):
    """Return Y as numbers with a share of its cells missing."""
    gone = np.random.default_rng(seed).random(Y.shape) < share
    return np.where(gone, np.nan, Y), gone


@pytest.mark.parametrize("learner", [GIVEN, PerLabel(GaussianNB(), n_jobs=1)], ids=["logistic", "bayes"])
def test_each_response_is_fitted_on_the_rows_where_it_is_known(learner):
    X, Y = dependent_table()
    some, gone = hidden(Y)
    log_rho = BinaryRelevance(learner).fit(X, some).log_proba(X, Y)
    for j in range(Y.shape[1]):
        rows = ~gone[:, j]
        oracle = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000) if learner is GIVEN else GaussianNB()
        expected = oracle.fit(X[rows], Y[rows, j]).predict_log_proba(X)[np.arange(len(Y)), Y[:, j]]
        np.testing.assert_allclose(log_rho[:, j], expected, atol=1e-4)


def test_the_search_for_the_penalty_looks_at_known_rows_only():
    """What stands in a cell that nobody knows has no say: training fills it, and the weights leave it out."""
    X, Y = dependent_table(n=200)
    known = np.random.default_rng(0).random(Y.shape) < 0.8
    folds = np.arange(200) % 5
    none = np.zeros((4, 4), bool)
    other = np.where(known, Y, 1 - Y).astype(np.uint8)
    one, _ = BatchLogistic().cross_fit(X, Y, none, folds, final=False, known=known)
    two, _ = BatchLogistic().cross_fit(X, other, none, folds, final=False, known=known)
    np.testing.assert_allclose(one.log_proba(X, Y), two.log_proba(X, Y), atol=1e-6)


MODELS = {
    "br": BinaryRelevance(GIVEN),
    "chain": ClassifierChain(learner=GIVEN),
    "dbr": DependentRelevance(GIVEN),
    "tree": TreeRelevance(GIVEN),
    "ensemble": ChainEnsemble(2, learner=GIVEN),
    "mixture": MixtureModel([DependentRelevance(GIVEN), TreeRelevance(GIVEN)]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("table", [dependent_table, sparse_table])
def test_a_missing_cell_is_certain_and_the_others_are_judged(name, table):
    X, Y = table()
    some, gone = hidden(Y)
    model = MODELS[name].fit(X, some)
    log_rho = model.log_proba(X, some)
    assert (log_rho[gone] == 0).all()
    assert ((log_rho[~gone] < 0) & (log_rho[~gone] > -20)).all()


def test_missing_responses_are_filled_by_what_the_others_say():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, size=300).astype(np.uint8)
    X, Y = rng.normal(size=(300, 2)), np.column_stack([first, first, first])
    model = DependentRelevance(GIVEN).fit(X, hidden(Y, 0.1)[0])
    some = Y.copy()
    some[np.arange(300), rng.integers(0, 3, size=300)] = MISSING
    np.testing.assert_array_equal(fill(model.conditionals_, X, some), Y)


def test_hidden_cells_cost_little_when_the_rest_predicts():
    X, Y = dependent_table(n=800, d=6)
    whole = DependentRelevance().fit(X[:400], Y[:400]).log_proba(X[400:], Y[400:]).sum()
    some = DependentRelevance().fit(X[:400], hidden(Y[:400])[0]).log_proba(X[400:], Y[400:]).sum()
    assert some > 1.06 * whole  # log-likelihoods are negative


@pytest.mark.parametrize("score", ["learned", "noise", "complement", "lof"])
def test_a_table_with_missing_responses_is_audited(score):
    X, Y = dependent_table(n=300, d=5)
    Y[:, 1] = Y[:, 0]
    some, gone = hidden(Y)
    wrong = np.flatnonzero(~gone[:, :2].any(axis=1))[:6]
    some[wrong, 1] = 1 - some[wrong, 1]
    found = mcode.audit(X, some, score=score)
    assert np.isfinite(found.outlier_score).all()
    assert (found.rho[gone] > 1 - 1e-9).all()
    assert (found.response_error_probability[gone] == 0).all()
    if score != "lof":
        places = np.flatnonzero(np.isin(found.ranking, wrong))
        assert np.median(places) < 45  # of 300 rows, of which many are drawn at odds with the models
    finding = found.explain(int(np.flatnonzero(gone.any(axis=1))[0]))
    assert None in [response.observed for response in finding.responses]


def test_the_most_likely_value_of_a_missing_response_is_suggested():
    X, Y = dependent_table(n=300, d=5)
    Y[:, 1] = Y[:, 0]
    named = np.where(Y == 1, "yes", "no").astype(object)
    gone = np.zeros(Y.shape, bool)
    gone[::10, 1] = True
    named[gone] = None
    found = mcode.audit(X, named, score="noise").suggestions()
    assert len(found) == gone.sum()
    right = [suggestion.value == ("yes" if Y[suggestion.row, 1] else "no") for suggestion in found]
    assert np.mean(right) > 0.95
    assert found[0].response == "1"
    assert found[0].probability >= found[-1].probability > 0.5


def test_a_complete_table_has_no_suggestions():
    X, Y = dependent_table()
    assert mcode.audit(X, Y, score="complement").suggestions() == []


@pytest.mark.parametrize("reference", ["cross-fit", "holdout", "batch"])
def test_new_rows_may_lack_responses(reference):
    X, Y = dependent_table(n=200)
    detector = mcode.MCODE(score="noise", reference=reference).fit(X[:100], Y[:100])
    some, gone = hidden(Y[100:])
    assert (detector.transform(X[100:], some)[gone] > 1 - 1e-9).all()
    assert (detector.response_error_probability(X[100:], some)[gone] == 0).all()
    assert len(detector.explain(X[100:], some)) == 100


def test_a_row_of_which_nothing_is_known_is_no_outlier():
    X, Y = dependent_table(n=200)
    detector = mcode.MCODE(score="complement").fit(X, Y)
    score = detector.outlier_score(X[:1], np.full((1, 4), np.nan))
    assert score[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("detector", [mcode.JointDetector(), mcode.SongCAD()])
def test_detectors_without_a_rule_refuse_in_one_sentence(detector):
    X, Y = dependent_table()
    some, _ = hidden(Y)
    with pytest.raises(InputError, match="is missing; fill or drop rows with missing responses, or use MCODE"):
        detector.fit(X, some)
