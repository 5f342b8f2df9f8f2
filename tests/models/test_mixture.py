import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.naive_bayes import GaussianNB

import mcode
from mcode.detector.redraw import redraw
from mcode.errors import ParameterError
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
from mcode.models.full_conditional import full_log_proba
from mcode.models.mixture import best_weights
from oracles import all_vectors
from tables import dependent_table, sparse_table

GIVEN = BatchLogistic(penalty=1.0)
BAYES = PerLabel(GaussianNB(), n_jobs=1)


@pytest.mark.parametrize("make", [ClassifierChain, TreeRelevance, BinaryRelevance])
@pytest.mark.parametrize(
    ("learner", "table"),
    [(GIVEN, dependent_table), (BAYES, dependent_table), (GIVEN, sparse_table)],
    ids=["logistic", "bayes", "sparse"],
)
def test_full_conditionals_follow_from_the_joint_over_all_response_vectors(make, learner, table):
    X, Y = table(d=4)
    model = make(learner=learner).fit(X, Y)
    vectors = all_vectors(4)
    rows = range(6)
    found = full_log_proba(model.conditionals_, model.parents_, X[:6], Y[:6])
    for row in rows:
        context = X[[row] * 16]
        joint = np.exp(model.log_proba(context, vectors).sum(axis=1))
        for j in range(4):
            others = np.delete(vectors, j, axis=1)
            same = (others == np.delete(Y[row], j)).all(axis=1)
            observed = same & (vectors[:, j] == Y[row, j])
            assert np.exp(found[row, j]) == pytest.approx(joint[observed].sum() / joint[same].sum(), abs=1e-5)


def test_full_conditionals_of_many_certain_responses_stay_numbers():
    rng = np.random.default_rng(0)
    Y = np.repeat(rng.integers(0, 2, size=(60, 1)), 40, axis=1).astype(np.uint8)
    X = rng.normal(size=(60, 2))
    model = ClassifierChain(learner=BatchLogistic(1e-4)).fit(X, Y)
    odd = Y.copy()
    odd[:, ::2] ^= 1
    found = full_log_proba(model.conditionals_, model.parents_, X, odd)
    assert np.isfinite(found).all()
    assert (found <= 0).all()


@pytest.mark.parametrize(
    "model",
    [
        ChainEnsemble(3, learner=GIVEN),
        MixtureModel([ClassifierChain(learner=GIVEN), TreeRelevance(GIVEN), BinaryRelevance(GIVEN)]),
        MixtureModel([MixtureModel([BinaryRelevance(GIVEN)]), ClassifierChain(learner=GIVEN)], weights="equal"),
    ],
    ids=["ensemble", "mixture", "nested"],
)
def test_the_averaged_joint_sums_to_1_over_all_response_vectors(model):
    X, Y = dependent_table(d=5)
    model = model.fit(X, Y)
    vectors = all_vectors(5)
    for row in range(5):
        log_p = model.joint_log_proba(np.repeat(X[[row]], len(vectors), axis=0), vectors)
        assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-5)


def test_the_averaged_joint_is_the_mean_of_the_chains():
    X, Y = dependent_table()
    ensemble = ChainEnsemble(3, learner=GIVEN).fit(X, Y)
    chains = [ClassifierChain(learner=GIVEN, random_state=k).fit(X, Y) for k in range(3)]
    mean = np.mean([np.exp(chain.log_proba(X, Y).sum(axis=1)) for chain in chains], axis=0)
    np.testing.assert_allclose(np.exp(ensemble.joint_log_proba(X, Y)), mean, rtol=1e-6)


@pytest.mark.parametrize(
    "model", [ChainEnsemble(2, learner=GIVEN), MixtureModel([DependentRelevance(GIVEN), TreeRelevance(GIVEN)])]
)
def test_flipping_one_response_turns_its_own_rho_around(model):
    X, Y = dependent_table(n=60)
    model = model.fit(X, Y)
    rho = np.exp(model.log_proba(X, Y))
    for j in range(4):
        flipped = Y.copy()
        flipped[:, j] ^= 1
        np.testing.assert_allclose(np.exp(model.log_proba(X, flipped))[:, j], 1.0 - rho[:, j], atol=1e-6)


def test_a_mixture_of_one_model_is_that_model():
    X, Y = dependent_table()
    alone, mixed = DependentRelevance(GIVEN).fit(X, Y), MixtureModel([DependentRelevance(GIVEN)]).fit(X, Y)
    np.testing.assert_allclose(mixed.log_proba(X, Y), alone.log_proba(X, Y), atol=1e-12)


def test_weights_are_those_of_the_largest_likelihood():
    rng = np.random.default_rng(0)
    likelihood = rng.beta(2, 1, size=(3, 500))

    def loss(free):
        weights = np.exp(free - np.logaddexp.reduce(free))
        return -np.log(weights @ likelihood).sum()

    found = best_weights(np.log(likelihood))
    best = minimize(loss, np.zeros(3), tol=1e-10)
    assert -np.log(found @ likelihood).sum() == pytest.approx(best.fun, rel=1e-4)


def test_a_member_that_predicts_nothing_is_left_out():
    X, Y = dependent_table(n=400)
    noise = ClassifierChain(learner=BatchLogistic(penalty=1e6))
    mixture = MixtureModel([noise, DependentRelevance()]).fit(X, Y)
    assert mixture.weights_[1] > 0.95


def test_a_mixture_predicts_held_out_rows_at_least_as_well_as_its_members():
    X, Y = dependent_table(n=600, d=6)
    members = [DependentRelevance(), ClassifierChain(), ClassifierChain(random_state=1), TreeRelevance()]
    mixture = MixtureModel(members).fit(X[:300], Y[:300])
    whole = mixture.log_proba(X[300:], Y[300:]).sum()
    for model in mixture.models_:
        alone = full_log_proba(model.conditionals_, model.parents_, X[300:], Y[300:]).sum()
        assert whole > alone - 5.0


def test_rows_are_drawn_from_the_averaged_joint():
    rng = np.random.default_rng(0)
    X, Y = dependent_table(n=200, d=2)
    model = ChainEnsemble(2, learner=GIVEN).fit(X, Y)
    context = np.repeat(X[[0]], 20000, axis=0)
    drawn = redraw(model.conditionals_, model.parents_, context, np.zeros((20000, 2), np.uint8), rng)
    vectors = all_vectors(2)
    expected = np.exp(model.joint_log_proba(X[[0] * 4], vectors))
    share = [(drawn == vector).all(axis=1).mean() for vector in vectors]
    np.testing.assert_allclose(share, expected, atol=0.015)


@pytest.mark.parametrize("name", ["chain-ensemble", "mixture"])
def test_it_serves_an_audit_and_a_detector_with_the_default_score(name):
    X, Y = dependent_table(n=150)
    found = mcode.audit(X, Y, model=name)
    assert found.explain(int(found.ranking[0])).responses
    detector = mcode.MCODE(name, "noise").fit(X, Y)
    assert np.isfinite(detector.error_probability(X, Y)).all()
    assert detector.explain(X[:2], Y[:2])[0].repair


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (MixtureModel([]), "models must be a list of models such as"),
        (MixtureModel(["dbr"]), "models must be a list of models such as"),
        (MixtureModel(weights="mine"), "weights must be 'held-out' or 'equal'"),
        (ChainEnsemble(0), "n_chains must be a whole number of at least 1"),
        (ChainEnsemble(learner=3), "learner must be a learner such as"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(model, sentence):
    with pytest.raises(ParameterError, match=sentence):
        model.fit(*dependent_table())
