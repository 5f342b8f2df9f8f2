import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from mcode.errors import InputError, ParameterError, UnknownNameError
from mcode.models import (
    BatchLogistic,
    BinaryRelevance,
    ClassifierChain,
    DependentRelevance,
    PerLabel,
    as_model,
)
from mcode.models.names import MODELS as MODEL_NAMES
from oracles import all_vectors
from tables import dependent_table, sparse_table

MODELS = [BinaryRelevance, ClassifierChain, DependentRelevance]
GIVEN = BatchLogistic(penalty=1.0)


@pytest.mark.parametrize("make", [BinaryRelevance, ClassifierChain])
@pytest.mark.parametrize("d", [1, 3, 8, 10])
def test_probabilities_over_all_response_vectors_sum_to_1(make, d):
    X, Y = dependent_table(d=d)
    model = make(learner=GIVEN).fit(X, Y)
    vectors = all_vectors(d)
    for row in range(2 if d == 10 else 8):
        log_p = model.log_proba(np.repeat(X[[row]], len(vectors), axis=0), vectors).sum(axis=1)
        assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-5)


def test_a_chain_of_any_classifier_is_a_proper_joint_too():
    X, Y = dependent_table(d=4)
    model = ClassifierChain(order=[3, 1, 0, 2], learner=PerLabel(GaussianNB(), n_jobs=1)).fit(X, Y)
    vectors = all_vectors(4)
    log_p = model.log_proba(np.repeat(X[[0]], 16, axis=0), vectors).sum(axis=1)
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-5)


def test_dependent_relevance_is_no_joint():
    X, Y = dependent_table(d=4)
    model = DependentRelevance(GIVEN).fit(X, Y)
    log_p = model.log_proba(np.repeat(X[[0]], 16, axis=0), all_vectors(4)).sum(axis=1)
    assert abs(np.exp(log_p).sum() - 1.0) > 1e-3


@settings(max_examples=10)
@given(st.integers(0, 10**6))
@pytest.mark.parametrize("make", MODELS)
def test_flipping_one_response_turns_its_own_rho_around(make, seed):
    X, Y = dependent_table(n=60, seed=seed)
    model = make(learner=GIVEN).fit(X, Y)
    rho = np.exp(model.log_proba(X, Y))
    for j in range(4):
        flipped = Y.copy()
        flipped[:, j] ^= 1
        after = np.exp(model.log_proba(X, flipped))
        np.testing.assert_allclose(after[:, j], 1.0 - rho[:, j], atol=1e-6)
        unaffected = ~model.parents_[:, j]
        unaffected[j] = False
        np.testing.assert_allclose(after[:, unaffected], rho[:, unaffected], atol=1e-12)
        if make is DependentRelevance:
            assert (after[:, model.parents_[:, j]] != rho[:, model.parents_[:, j]]).any()


@pytest.mark.parametrize("make", [BinaryRelevance, DependentRelevance])
def test_permuting_the_responses_permutes_rho(make):
    X, Y = dependent_table()
    order = np.array([2, 0, 3, 1])
    rho = make(GIVEN).fit(X, Y).log_proba(X, Y)
    np.testing.assert_allclose(make(GIVEN).fit(X, Y[:, order]).log_proba(X, Y[:, order]), rho[:, order], atol=1e-6)


def test_swapping_the_two_values_of_every_response_leaves_rho_without_parents():
    X, Y = dependent_table()
    one, other = BinaryRelevance(GIVEN).fit(X, Y), BinaryRelevance(GIVEN).fit(X, 1 - Y)
    np.testing.assert_allclose(one.log_proba(X, Y), other.log_proba(X, 1 - Y), atol=1e-6)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("learner", [GIVEN, BatchLogistic()], ids=["given", "cv"])
def test_dense_and_sparse_rows_give_the_same_rho(make, learner):
    X, Y = sparse_table()
    if learner.penalty == "cv":
        learner = clone(learner).set_params(scale=False)
    one, other = make(learner=learner).fit(X, Y), make(learner=learner).fit(X.toarray(), Y)
    np.testing.assert_allclose(np.exp(one.log_proba(X, Y)), np.exp(other.log_proba(X, Y)), atol=1e-4)


@pytest.mark.parametrize("make", MODELS)
def test_single_precision_features_give_nearly_the_same_rho(make):
    X, Y = dependent_table()
    one, other = make(learner=GIVEN).fit(X, Y), make(learner=GIVEN).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(np.exp(one.log_proba(X, Y)), np.exp(other.log_proba(X.astype(np.float32), Y)), atol=1e-4)


@pytest.mark.parametrize("make", MODELS)
def test_the_same_data_give_the_same_bits(make):
    X, Y = dependent_table()
    one, other = make().fit(X, Y), make().fit(X, Y)
    np.testing.assert_array_equal(one.log_proba(X, Y), other.log_proba(X, Y))


@pytest.mark.parametrize("make", MODELS)
def test_permuting_the_training_rows_changes_nothing_at_a_given_penalty(make):
    X, Y = dependent_table()
    order = np.random.default_rng(0).permutation(len(X))
    one, other = make(learner=GIVEN).fit(X, Y), make(learner=GIVEN).fit(X[order], Y[order])
    np.testing.assert_allclose(one.log_proba(X, Y), other.log_proba(X, Y), atol=1e-5)


def test_a_chain_takes_its_order_or_draws_one():
    X, Y = dependent_table()
    assert ClassifierChain(order=[3, 1, 0, 2], learner=GIVEN).fit(X, Y).order_ == [3, 1, 0, 2]
    drawn = {tuple(ClassifierChain(learner=GIVEN, random_state=s).fit(X, Y).order_) for s in range(6)}
    assert len(drawn) > 1
    assert all(sorted(order) == [0, 1, 2, 3] for order in drawn)


def test_a_wrong_order_is_refused():
    X, Y = dependent_table()
    with pytest.raises(ParameterError, match="order must be a list of each response from 0 to 3 once"):
        ClassifierChain(order=[0, 1]).fit(X, Y)


@pytest.mark.parametrize("make", MODELS)
def test_a_response_with_one_value_is_reported_and_scored_by_its_base_rate(make):
    X, Y = dependent_table()
    Y[:, 2] = 0
    model = make(learner=GIVEN).fit(X, pd.DataFrame(Y, columns=["a", "b", "never", "d"]))
    assert model.one_valued_ == ["never"]
    np.testing.assert_allclose(np.exp(model.log_proba(X, Y))[:, 2], 120.5 / 121.0, rtol=1e-5)
    Y[:, 2] = 1
    np.testing.assert_allclose(np.exp(model.log_proba(X, Y))[:, 2], 0.5 / 121.0, rtol=1e-5)


@pytest.mark.parametrize("make", MODELS)
def test_cross_fitting_without_a_final_model_reads_training_rows_only(make):
    X, Y = dependent_table()
    model = make(learner=GIVEN)
    cross = model.cross_fit(X, Y, np.arange(120) % 3, final=False)
    assert cross.log_proba(X, Y).shape == (120, 4)
    with pytest.raises(NotFittedError):
        model.log_proba(X, Y)


@pytest.mark.parametrize("make", MODELS)
def test_a_model_that_was_not_fitted_says_so(make):
    with pytest.raises(NotFittedError):
        make().log_proba(np.zeros((1, 1)), np.zeros((1, 1)))


@pytest.mark.parametrize("make", MODELS)
def test_the_inputs_are_left_alone(make):
    X, Y = sparse_table()
    kept, responses = X.copy(), Y.copy()
    make(learner=GIVEN).fit(X, Y).log_proba(X, Y)
    np.testing.assert_array_equal(X.toarray(), kept.toarray())
    np.testing.assert_array_equal(Y, responses)


def test_names_stand_for_models_and_instances_for_themselves():
    assert [type(as_model(name)) for name in ("br", "chain", "dbr")] == MODELS
    model = ClassifierChain(order=[0])
    assert as_model(model) is model


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("chian", "got 'chian'. Did you mean 'chain'?"),
        ("forest", "got 'forest'."),
        (3, "got 3."),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(model, sentence):
    with pytest.raises(UnknownNameError) as caught:
        as_model(model)
    names = ", ".join(repr(name) for name in sorted(MODEL_NAMES))
    assert str(caught.value) == f"model must be one of {names} or an instance; {sentence}"


@pytest.mark.parametrize(
    ("X", "Y", "sentence"),
    [
        (np.zeros((3, 5)), np.zeros((2, 4)), "X and Y: they have 3 and 2 rows; each row of X belongs to one row of Y."),
        (np.zeros((2, 4)), np.zeros((2, 4)), "X: it has 4 columns (features); the model was fitted on 5 features."),
        (
            sp.csr_matrix((2, 6)),
            np.zeros((2, 4)),
            "X: it has 6 columns (features); the model was fitted on 5 features.",
        ),
        (np.zeros((2, 5)), np.zeros((2, 3)), "Y: it has 3 columns; the model was fitted on 4 responses."),
    ],
)
def test_rows_of_another_shape_are_refused(X, Y, sentence):
    model = DependentRelevance(GIVEN).fit(*dependent_table())
    with pytest.raises(InputError) as caught:
        model.log_proba(X, Y)
    assert str(caught.value) == sentence
