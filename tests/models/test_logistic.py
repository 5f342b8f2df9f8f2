import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mcode.errors import NotConvergedWarning, ParameterError
from mcode.models import BatchLogistic
from mcode.models import parents as see
from mcode.models.folds import stratified_folds
from mcode.models.logistic import Scaling, _finish, _task
from oracles import fit_label_by_label, log_likelihoods, stacked
from tables import dependent_table, sparse_table

MASKS = {"br": see.none, "chain": lambda d: see.chain([2, 0, 3, 1], d), "dbr": see.all_others}


def expected_log_proba(X, Y, parents, penalty, rows=slice(None)):
    free = parents.T
    W = fit_label_by_label(X[rows], Y[rows], Y[rows], free, penalty)
    return log_likelihoods(stacked(X, Y), W, Y)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("make", [dependent_table, sparse_table])
def test_rho_agrees_with_scikit_learn_label_by_label(mask, make):
    X, Y = make()
    parents = MASKS[mask](4)
    fitted = BatchLogistic(penalty=0.7).fit(X, Y, parents)
    expected = expected_log_proba(X, Y, parents, 0.7)
    np.testing.assert_allclose(np.exp(fitted.log_proba(X, Y)), np.exp(expected), atol=1e-4)
    assert fitted.converged.all()
    assert fitted.n_iter.min() > 0


@pytest.mark.parametrize("make", [dependent_table, sparse_table])
def test_a_model_at_a_searched_penalty_is_the_exact_one_at_that_penalty(make):
    X, Y = make(n=200)
    parents = see.all_others(4)
    fitted = BatchLogistic().fit(X, Y, parents)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0) if make is dependent_table else X
    expected = expected_log_proba(scaled, Y, parents, fitted.penalty)
    np.testing.assert_allclose(np.exp(fitted.log_proba(X, Y)), np.exp(expected), atol=1e-4)


def test_fold_models_are_fitted_without_their_rows():
    X, Y = dependent_table(n=150)
    parents = see.all_others(4)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    cross, final = BatchLogistic(penalty=2.0).cross_fit(X, Y, parents, folds, final=True)
    out_of_fold = cross.log_proba(X, Y)
    for f in range(3):
        expected = expected_log_proba(X, Y, parents, 2.0, rows=folds != f)
        np.testing.assert_allclose(np.exp(out_of_fold[folds == f]), np.exp(expected[folds == f]), atol=2e-3)
    alone = BatchLogistic(penalty=2.0).fit(X, Y, parents)
    np.testing.assert_allclose(final.log_proba(X, Y), alone.log_proba(X, Y), atol=1e-5)


def test_some_rows_can_be_judged_with_other_responses_by_the_models_that_never_saw_them():
    X, Y = dependent_table(n=90)
    folds = stratified_folds(Y, 3, np.random.default_rng(0))
    cross, final = BatchLogistic(penalty=1.0).cross_fit(X, Y, see.all_others(4), folds, final=False)
    assert final is None
    rows = np.array([5, 80, 41])
    np.testing.assert_allclose(cross.log_proba(X[rows], Y[rows], rows), cross.log_proba(X, Y)[rows], atol=1e-5)
    assert (cross.log_proba(X[rows], 1 - Y[rows], rows) != cross.log_proba(X, Y)[rows]).any()


def test_a_searched_penalty_does_not_depend_on_the_units_of_dense_features():
    X, Y = dependent_table(n=200)
    parents = see.all_others(4)
    units = np.array([1e-3, 1.0, 1e4, 7.0, 0.1])
    one, other = BatchLogistic().fit(X, Y, parents), BatchLogistic().fit(X * units + 5.0, Y, parents)
    np.testing.assert_array_equal(one.penalty, other.penalty)
    np.testing.assert_allclose(one.log_proba(X, Y), other.log_proba(X * units + 5.0, Y), atol=1e-3)


def test_a_given_penalty_speaks_of_the_features_as_they_are():
    X, Y = dependent_table()
    as_they_are, scaled = BatchLogistic(1.0), BatchLogistic(1.0, scale=True)
    big = 100.0 * X
    np.testing.assert_allclose(
        scaled.fit(X, Y, see.none(4)).log_proba(X, Y), scaled.fit(big, Y, see.none(4)).log_proba(big, Y), atol=1e-6
    )
    one, other = (as_they_are.fit(table, Y, see.none(4)).log_proba(table, Y) for table in (X, big))
    assert np.abs(one - other).max() > 1e-2


def test_a_model_fitted_on_dense_rows_reads_sparse_ones_and_the_other_way_round():
    X, Y = sparse_table()
    for learner in (BatchLogistic(1.0), BatchLogistic()):
        for fitted_on, read in ((X, X.toarray()), (X.toarray(), X)):
            fitted = learner.fit(fitted_on, Y, see.all_others(4))
            np.testing.assert_allclose(fitted.log_proba(read, Y), fitted.log_proba(fitted_on, Y), atol=1e-5)


def test_a_constant_feature_is_only_centred():
    X, Y = dependent_table()
    constant = np.hstack([X, np.full((len(X), 1), 4.0)])
    fitted = BatchLogistic().fit(constant, Y, see.none(4))
    assert np.isfinite(fitted.log_proba(constant, Y)).all()
    assert (fitted.features[-1] == 0.0).all()


def test_no_inputs_at_all_give_the_base_rate():
    Y = np.array([[1], [0], [0], [0]], np.uint8)
    fitted = BatchLogistic(1.0).fit(np.empty((4, 0)), Y, see.none(1))
    np.testing.assert_allclose(np.exp(fitted.log_proba(np.empty((4, 0)), Y))[:, 0], [0.25, 0.75, 0.75, 0.75], atol=1e-6)


def test_responses_that_did_not_converge_are_named():
    X, Y = dependent_table()
    Y[:, 2] = 0  # has one value only: nothing to fit, nothing to complain about
    with pytest.warns(NotConvergedWarning) as caught:
        _finish(_task(X, Y, see.all_others(4)), np.ones(4), None, Scaling(), 1e-30)
    sentence = str(caught[0].message)
    assert sentence.startswith("3 of the fitted models did not converge (response 0, response 1, response 3):")


def test_a_normal_fit_warns_of_nothing():
    X, Y = dependent_table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BatchLogistic().fit(X, Y, see.all_others(4))


@pytest.mark.parametrize("penalty", [0, -1.0, np.nan, np.inf, "cw", None, [1.0, 2.0], [1.0, 1.0, 1.0, -1.0], "1"])
def test_a_penalty_that_is_none_is_refused(penalty):
    X, Y = dependent_table()
    with pytest.raises(ParameterError, match=r"penalty must be 'cv' or a positive number.*; got"):
        BatchLogistic(penalty=penalty).fit(X, Y, see.none(4))


def test_one_penalty_for_each_response_is_taken():
    X, Y = dependent_table()
    penalty = np.array([0.1, 1.0, 10.0, 100.0])
    fitted = BatchLogistic(penalty).fit(X, Y, see.none(4))
    np.testing.assert_array_equal(fitted.penalty, penalty)
    expected = expected_log_proba(X, Y, see.none(4), penalty)
    np.testing.assert_allclose(np.exp(fitted.log_proba(X, Y)), np.exp(expected), atol=1e-4)


def test_the_real_tables_are_fitted_like_scikit_learn_fits_them(real_data):
    for name, rows in (("emotions", 300), ("medical", 300)):
        X, Y = real_data(name)
        X, Y = X[:rows], Y[:rows]
        parents = see.all_others(Y.shape[1])
        scaled = X if sp.issparse(X) else ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float64)
        fitted = BatchLogistic(penalty=5.0).fit(scaled, Y, parents)
        few = np.arange(min(6, Y.shape[1]))
        W = fit_label_by_label(scaled, Y, Y[:, few], parents.T[:, few], 5.0)
        expected = np.exp(log_likelihoods(stacked(scaled, Y), W, Y[:, few]))
        np.testing.assert_allclose(np.exp(fitted.log_proba(scaled, Y))[:, few], expected, atol=1e-4)
