import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from mcode import SongCAD
from mcode.errors import ParameterError, UnknownNameError
from tables import dependent_table, sparse_table


def grouped_table(n=400, seed=0):
    """Return contexts of four groups, the responses that belong to each, and which rows have those of another."""
    rng = np.random.default_rng(seed)
    group = rng.integers(4, size=n)
    centers = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [0.0, -3.0]])
    X = rng.normal(size=(n, 2)) + centers[group]
    y = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], np.uint8)
    odd = np.arange(n) >= n - 20
    said = np.where(odd, (group + 1) % 4, group)
    return X, y[said] ^ (rng.random((n, 4)) < 0.03), odd


@pytest.mark.parametrize("variant", ["full", "split", "direct"])
@pytest.mark.parametrize("responses", ["bernoulli", "gaussian"])
def test_rows_with_the_responses_of_another_group_stand_out(variant, responses):
    X, Y, odd = grouped_table()
    song = SongCAD(variant, context_components=6, response_components=6, responses=responses, alarm_rate=0.05)
    song.fit(X[~odd], Y[~odd])
    assert roc_auc_score(odd, song.outlier_score(X, Y)) > (0.97 if responses == "bernoulli" else 0.85)
    if responses == "bernoulli":  # to normal distributions a single odd response looks as strange as a whole vector
        assert (song.predict(X[odd], Y[odd]) == -1).mean() > 0.5
    assert (song.predict(X[~odd], Y[~odd]) == -1).mean() < 0.1


@pytest.mark.parametrize("reference", ["cross-fit", "holdout", "batch"])
def test_it_has_the_surface_of_a_detector(reference):
    X, Y = dependent_table()
    song = SongCAD(context_components=3, response_components=3, restarts=1, reference=reference).fit(X, Y)
    scores = song.outlier_score(X, Y)
    np.testing.assert_array_equal(song.score_samples(X, Y), -scores)
    assert ((song.p_value(X, Y) > 0) & (song.p_value(X, Y) <= 1)).all()
    assert ((song.percentile_rank(X, Y) >= 0) & (song.percentile_rank(X, Y) <= 100)).all()
    assert (np.diff(song.log_likelihood_) > -1e-6 * abs(song.log_likelihood_[0])).all()
    if reference != "batch":
        np.testing.assert_allclose(song.outlier_score(X[3:4], Y[3:4]), scores[3:4])
        order = np.random.default_rng(0).permutation(len(X))
        np.testing.assert_allclose(song.outlier_score(X[order], Y[order]), scores[order])


def test_a_wide_context_is_reduced_and_sparse_rows_are_read():
    X, Y = sparse_table(m=80)
    options = {"context_components": 3, "response_components": 3, "restarts": 1, "folds": 2}
    song = SongCAD(max_axes=10, **options).fit(X, Y)
    assert song.score_.axes.apply(X).shape == (120, 10)
    assert np.isfinite(song.outlier_score(X, Y)).all()
    dense = SongCAD(max_axes=10, **options).fit(X.toarray(), Y)
    assert dense.score_.axes.apply(X.toarray()).shape == (120, 10)
    few = SongCAD(**options).fit(sp.csr_matrix(X[:, :5]), Y)
    assert np.isfinite(few.outlier_score(X[:, :5], Y)).all()


def test_columns_that_never_change_and_more_components_than_rows_are_borne():
    X, Y = dependent_table(n=12)
    X, Y = np.hstack([X, np.ones((12, 1))]), np.hstack([Y, np.zeros((12, 1), np.uint8)])
    for responses in ("bernoulli", "gaussian"):
        song = SongCAD(context_components=20, restarts=1, folds=2, responses=responses).fit(X, Y)
        assert np.isfinite(song.outlier_score(X, Y)).all()


@pytest.mark.parametrize(
    ("song", "error", "sentence"),
    [
        (SongCAD("half"), UnknownNameError, "variant must be one of 'direct', 'full', 'split'"),
        (SongCAD(covariance="round"), UnknownNameError, "covariance must be one of 'diagonal', 'full'"),
        (SongCAD(responses="poisson"), UnknownNameError, "responses must be one of 'bernoulli', 'gaussian'"),
        (SongCAD(context_components=0), ParameterError, "context_components must be a whole number of at least 1"),
        (SongCAD(reference="mine"), UnknownNameError, "reference must be one of"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(song, error, sentence):
    with pytest.raises(error, match=sentence):
        song.fit(*dependent_table())
