import numpy as np
import pytest
import scipy.sparse as sp

from mcode.solvers.design import DenseDesign, Rotation, SparseDesign, as_design, stack
from oracles import stacked
from tables import sparse_table


def products(design, D, R):
    n, p = design.shape
    ZD, ZR, squares = np.empty((n, D.shape[1])), np.empty((p, R.shape[1])), np.empty((p, R.shape[1]))
    design.product(D, ZD)
    design.adjoint(R, ZR)
    design.squared_adjoint(R**2, squares)
    return ZD, ZR, squares


@pytest.mark.parametrize("n_columns", [3, 8, 11, 45])
@pytest.mark.parametrize("storage", ["dense", "sparse", "tiles"])
def test_a_design_multiplies_from_both_sides(storage, n_columns, monkeypatch):
    if storage == "tiles":
        monkeypatch.setattr("mcode.solvers.design.TILE", 9)
        monkeypatch.setattr("mcode.solvers.design.FEWEST_IN_A_TILE", 1)
    rng = np.random.default_rng(0)
    Z = sp.random(40, 25, 0.3, "csr", random_state=rng)
    D, R = rng.normal(size=(25, n_columns)), rng.normal(size=(40, n_columns))
    design = as_design(Z.toarray() if storage == "dense" else Z)
    assert storage == "dense" or len(design.columns[0]) == (5 if storage == "tiles" else 1)
    ZD, ZR, squares = products(design, D, R)
    np.testing.assert_allclose(ZD, Z @ D, atol=1e-12)
    np.testing.assert_allclose(ZR, Z.T @ R, atol=1e-12)
    along, out = np.empty_like(R), np.empty_like(D)
    design.curved(D, R**2, along, out)
    np.testing.assert_allclose(along, R**2 * (Z @ D), atol=1e-12)
    np.testing.assert_allclose(out, Z.T @ (R**2 * (Z @ D)), atol=1e-12)
    if storage != "dense":
        np.testing.assert_allclose(squares, Z.power(2).T @ R**2, atol=1e-12)


def test_the_dense_preconditioner_is_exact_for_equal_curvature():
    Z = np.random.default_rng(0).normal(size=(50, 4))
    H = np.full((50, 2), 0.2)
    out = np.empty((4, 2))
    DenseDesign(Z).squared_adjoint(H, out)
    np.testing.assert_allclose(out, (Z**2).T @ H, rtol=1e-12)


@pytest.mark.parametrize(("density", "kind"), [(0.05, SparseDesign), (0.9, DenseDesign)])
@pytest.mark.parametrize("given_as", [sp.csr_matrix, lambda X: X.toarray()], ids=["csr", "array"])
def test_stacking_chooses_the_storage_by_how_full_the_table_is(density, kind, given_as):
    rng = np.random.default_rng(0)
    X = sp.random(60, 20, density, "csr", random_state=rng)
    parents = (rng.random((60, 3)) < density).astype(np.uint8)
    Z = stack(given_as(X), parents, np.float64)
    assert isinstance(as_design(Z), kind)
    np.testing.assert_array_equal(Z.toarray() if sp.issparse(Z) else Z, stacked(X, parents))


def test_a_table_without_features_and_parents_has_the_intercept_alone():
    Z = stack(np.empty((4, 0)), np.empty((4, 0), np.uint8), np.float32)
    np.testing.assert_array_equal(Z.toarray() if sp.issparse(Z) else Z, np.ones((4, 1)))


def test_a_rotation_keeps_the_inner_products_of_the_rows():
    X, _ = sparse_table(n=40, m=600, density=0.02)
    rotation = Rotation.of(X)
    narrow = X @ rotation.basis
    assert narrow.shape[1] < 0.9 * X.shape[1]
    np.testing.assert_allclose((narrow @ narrow.T).toarray(), (X @ X.T).toarray(), atol=1e-12)


def test_a_rotation_has_orthonormal_columns():
    X, _ = sparse_table(n=40, m=600, density=0.02)
    basis = Rotation.of(X).basis
    np.testing.assert_allclose((basis.T @ basis).toarray(), np.eye(basis.shape[1]), atol=1e-12)


def test_a_rotation_that_saves_nothing_is_not_made():
    X, _ = sparse_table(n=200, m=20, density=0.5)
    assert Rotation.of(X) is None


def test_stored_zeros_do_not_break_a_rotation():
    X = sp.csr_matrix(([0.0, 2.0, 1.0, 1.0], ([0, 1, 2, 2], [0, 1, 2, 3])), shape=(3, 40))
    narrow = X @ Rotation.of(X).basis
    np.testing.assert_allclose((narrow @ narrow.T).toarray(), (X @ X.T).toarray(), atol=1e-12)


@pytest.mark.parametrize("shape", [(80, 6), (20, 50)], ids=["long", "wide"])
def test_principal_axes_keep_the_inner_products_of_dense_rows(shape):
    X = np.random.default_rng(0).normal(size=shape)
    rotation = Rotation.of(X)
    narrow = rotation.narrow(X, np.float64)
    assert narrow.shape[1] == min(shape)
    np.testing.assert_allclose(narrow @ narrow.T, X @ X.T, atol=1e-10)
    np.testing.assert_allclose(rotation.basis.T @ rotation.basis, np.eye(min(shape)), atol=1e-12)
