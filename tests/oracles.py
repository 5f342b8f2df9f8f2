"""Slow, obvious versions of what the engine computes."""

import itertools

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression


def stacked(X, parents):
    """Z = [X | parents | 1] as an ordinary array."""
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.hstack([X, parents, np.ones((len(parents), 1))]).astype(np.float64)


def logistic_value(Z, t, w, penalty, weight=None):
    """Penalised loss of one column; the last coefficient is the intercept, and free of penalty."""
    eta = Z @ w
    loss = np.logaddexp(0.0, eta) - t * eta
    return float(np.sum(loss if weight is None else weight * loss) + 0.5 * penalty * np.sum(w[:-1] ** 2))


def logistic_gradient(Z, t, w, penalty, weight=None):
    residual = expit(Z @ w) - t
    gradient = Z.T @ (residual if weight is None else weight * residual)
    gradient[:-1] += penalty * w[:-1]
    return gradient


def logistic_hessian(Z, w, penalty, weight=None):
    p = expit(Z @ w)
    curvature = p * (1.0 - p)
    H = Z.T @ ((curvature if weight is None else weight * curvature)[:, None] * Z)
    H[np.arange(len(w) - 1), np.arange(len(w) - 1)] += penalty
    return H


def fit_label_by_label(X, parents, target, free, penalty, weight=None):
    """Return coefficients of [X | parents | 1], one column after the other by scikit-learn; forbidden ones are 0."""
    Z = stacked(X, parents)
    m, k = Z.shape[1] - 1 - parents.shape[1], parents.shape[1]
    W = np.zeros((Z.shape[1], target.shape[1]))
    penalty = np.broadcast_to(penalty, (target.shape[1],))
    for c in range(target.shape[1]):
        rows = np.arange(len(Z)) if weight is None else np.flatnonzero(weight[:, c] > 0)
        t = target[rows, c]
        inputs = np.concatenate([np.arange(m), m + np.flatnonzero(free[:, c])]) if k else np.arange(m)
        if t.min() == t.max():
            W[-1, c] = np.log(t.sum() + 0.5) - np.log(len(t) - t.sum() + 0.5)
            continue
        sample_weight = None if weight is None else weight[rows, c]
        solver = "newton-cholesky" if len(inputs) <= 200 else "newton-cg"
        model = LogisticRegression(C=1.0 / penalty[c], solver=solver, tol=1e-10, max_iter=1000)
        model.fit(Z[np.ix_(rows, inputs)], t, sample_weight=sample_weight)
        W[inputs, c], W[-1, c] = model.coef_[0], model.intercept_[0]
    return W


def log_likelihoods(Z, W, target):
    """log P of the observed target in each cell."""
    eta = Z @ W
    return -np.logaddexp(0.0, np.where(target == 1, -eta, eta))


def all_vectors(d):
    """Every vector of d responses, shape (2 ** d, d)."""
    return np.array(list(itertools.product([0, 1], repeat=d)), dtype=np.uint8)


def both_directions(model, Y, known=1.0):
    """log P of each response by the rise of the log pseudo-likelihood were it different, one response at a time.

    `model` is fitted without context; only `known` responses count.
    """
    nothing = np.zeros((len(Y), 0))
    now = (model.log_proba(nothing, Y) * known).sum(axis=1)
    out = np.empty(Y.shape)
    for j in range(Y.shape[1]):
        other = Y.copy()
        other[:, j] = 1 - other[:, j]
        out[:, j] = -np.logaddexp(0.0, (model.log_proba(nothing, other) * known).sum(axis=1) - now)
    return out


def held_out_losses(X, parents, target, free, grid, fold_of_row):
    """Summed held-out log-loss of each penalty and column, every cell by its own scikit-learn fit."""
    loss = np.zeros((len(grid), target.shape[1]))
    Z = stacked(X, parents)
    for f in range(fold_of_row.max() + 1):
        out, rest = fold_of_row == f, fold_of_row != f
        for g, penalty in enumerate(grid):
            W = fit_label_by_label(X[rest], parents[rest], target[rest], free, penalty)
            loss[g] -= log_likelihoods(Z[out], W, target[out]).sum(axis=0)
    return loss


def mean_product_over_sets(odds, k):
    """Mean over all sets of k entries of the product of their odds."""
    return np.mean([np.prod(odds[list(chosen)]) for chosen in itertools.combinations(range(len(odds)), k)])


def benjamini_hochberg(p_values, level):
    """Which hypotheses fall under the line, by looking for the largest such rank."""
    p = np.asarray(p_values)
    ordered = np.sort(p)
    passed = [p_k for k, p_k in enumerate(ordered, start=1) if p_k <= level * k / len(p)]
    return p <= max(passed) if passed else np.zeros(len(p), bool)
