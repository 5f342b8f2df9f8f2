"""Responses with several values: the objective against finite differences, the fit against scikit-learn."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from mcode.models.folds import stratified_folds
from mcode.solvers.design import as_design
from mcode.solvers.fit import SoftmaxFit, Task, fit_all
from mcode.solvers.search import Fold, fit_folds, search
from mcode.solvers.softmax import SoftmaxObjective, logits, softmax_losses

K = 4


def a_task(storage: str, weights: bool, n: int = 300, m: int = 6, b: int = 2, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.5)
    target = np.argmax(
        X @ rng.normal(size=(m, K * b)).reshape(m, b, K).transpose(1, 0, 2).reshape(b, m, K)
        + rng.gumbel(size=(b, n, K)),
        axis=2,
    ).T.astype(np.uint8)
    weight = rng.integers(0, 3, size=(n, b)).astype(np.float32) if weights else None
    Z: Any = sp.csr_matrix(X) if storage == "sparse" else X
    return Task(Z, np.empty((n, 0), np.uint8), target, np.ones((0, b), bool), weight, n_values=K)


def of_response(W: Any, c: int) -> Any:
    """Return the (p, K) coefficients of one response, each row of them around 0."""
    part = W.reshape(-1, K, W.shape[1])[:, :, c]
    return part - part.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_fit_is_that_of_scikit_learn(storage: str, weights: bool) -> None:
    task = a_task(storage, weights)
    penalty = np.array([0.3, 5.0])
    W = fit_all(task, penalty, None, 1e-7).W
    for c in range(2):
        weight = None if task.weight is None else task.weight[:, c]
        oracle = LogisticRegression(C=1 / penalty[c], tol=1e-10, max_iter=5000).fit(
            task.X, task.target[:, c], sample_weight=weight
        )
        ours = of_response(W, c)
        np.testing.assert_allclose(ours[:-1].T, oracle.coef_, atol=1e-5)
        np.testing.assert_allclose(ours[-1], oracle.intercept_ - oracle.intercept_.mean(), atol=1e-5)
        eta = task.X @ ours[:-1] + ours[-1]
        probability = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(probability, oracle.predict_proba(task.X), atol=1e-5)


@pytest.mark.parametrize("weights", [False, True])
def test_gradient_and_hessian_are_those_of_the_value(weights: bool) -> None:
    rng = np.random.default_rng(1)
    n, p, b, d = 40, 5, 3, 2
    Z = np.hstack([rng.normal(size=(n, p - 1)), np.ones((n, 1))])
    target = rng.integers(K, size=(n, b)).astype(np.uint8)
    weight = rng.random((n, b)) if weights else None
    free = np.array([[1, 0, 1], [0, 1, 1]], float)
    seen = np.ones((K, b), bool)
    objective = SoftmaxObjective(as_design(Z), target, seen, np.array([0.5, 2.0, 3.0]), free, weight)
    mask = np.ones((p, K, b))
    mask[p - 1 - d : p - 1] = free[:, None, :]
    mask = mask.reshape(p * K, b)
    W, D = rng.normal(size=(p * K, b)) * mask, rng.normal(size=(p * K, b)) * mask
    point, h = objective.at(W), 1e-6
    slope = (objective.at(W + h * D).value() - objective.at(W - h * D).value()) / (2 * h)
    np.testing.assert_allclose((point.gradient * D).sum(axis=0), slope, rtol=1e-6)
    out = np.empty_like(D)
    dots = point.hessian_product(D, out)
    bend = (objective.at(W + h * D).gradient - objective.at(W - h * D).gradient) / (2 * h)
    np.testing.assert_allclose(out, bend, atol=1e-5)
    np.testing.assert_allclose(dots, (out * D).sum(axis=0))
    assert not point.gradient[mask == 0].any()
    kept = point.columns(np.array([2]))
    np.testing.assert_allclose(kept.gradient[:, 0], point.gradient[:, 2])
    np.testing.assert_allclose(kept.inverse_diagonal()[:, 0], point.inverse_diagonal()[:, 2])
    np.testing.assert_allclose(kept.value(), point.value()[2:])


def test_losses_of_certain_rows_are_finite() -> None:
    eta = np.array([[[0.0], [800.0], [-800.0]]])
    np.testing.assert_allclose(softmax_losses(eta, np.array([[2]], np.uint8)), [[1600.0]])


def test_search_finds_the_penalty_that_a_loop_over_scikit_learn_finds() -> None:
    task = a_task("dense", False, n=400, b=1)
    folds = stratified_folds(task.target, 5, np.random.default_rng(0))
    found = search(task, folds)

    def loss(penalty: float) -> float:
        total = 0.0
        for f in range(5):
            train, held = folds != f, folds == f
            model = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=5000).fit(task.X[train], task.target[train, 0])
            total -= model.predict_log_proba(task.X[held])[np.arange(held.sum()), task.target[held, 0]].sum()
        return total

    assert loss(float(found.penalty[0])) <= min(loss(p) for p in np.logspace(3, -3, 7)) * 1.01


def test_a_value_that_no_training_row_has_gets_its_base_rate() -> None:
    task = a_task("dense", False, b=1)
    without = np.flatnonzero(task.target[:, 0] != 2)
    fit = SoftmaxFit(task, without, np.float64)
    W = fit.widen(fit.solve(np.array([0]), np.array([1.0]), None, np.array([1e-7])).W)
    seen = np.array([True, True, False, True])[:, None]
    Z = as_design(np.hstack([task.X, np.ones((len(task.X), 1))]))
    eta = logits(Z, W, np.ones_like(seen))
    rare = np.exp(-softmax_losses(eta, np.full((len(eta), 1), 2)))
    assert 0.1 < rare.mean() * (len(without) + 1) * K < 10.0
    oracle = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(task.X[without], task.target[without, 0])
    first = np.exp(-softmax_losses(logits(Z, W, seen), np.zeros((len(eta), 1), int)))[:, 0]
    np.testing.assert_allclose(first, oracle.predict_proba(task.X)[:, 0], atol=1e-5)


def test_one_value_only_is_predicted_by_its_base_rate() -> None:
    task = a_task("dense", False, b=1)
    constant = Task(task.X, task.parents, np.zeros_like(task.target), task.free, n_values=K)
    W = fit_all(constant, np.ones(1), None, 1e-7).W.reshape(-1, K)
    assert not W[:-1].any()
    np.testing.assert_allclose(np.exp(W[-1]), [(300 + 1 / K) / 301] + [1 / K / 301] * 3, rtol=1e-6)


def test_folds_are_fitted_to_the_end() -> None:
    task = a_task("sparse", True, b=2)
    folds = stratified_folds(task.target, 3, np.random.default_rng(0))
    made = [Fold(task, folds == f, np.float32) for f in range(3)]
    fit_folds(made, np.ones(2), 1e-5)
    train = np.flatnonzero(folds != 1)
    assert task.weight is not None
    oracle = LogisticRegression(tol=1e-10, max_iter=5000).fit(
        task.X[train], task.target[train, 0], sample_weight=task.weight[train, 0]
    )
    np.testing.assert_allclose(of_response(made[1].coefficients(), 0)[:-1].T, oracle.coef_, atol=1e-3)
