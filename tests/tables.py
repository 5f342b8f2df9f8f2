"""Small tables on which a model has something to find."""

import numpy as np
import scipy.sparse as sp


def dependent_table(n=120, m=5, d=4, seed=0):
    """Return (X, Y): normal features, responses that depend on them and on the response before."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    effect = rng.normal(size=(m, d))
    Y = np.zeros((n, d), np.uint8)
    for j in range(d):
        logit = X @ effect[:, j] + (1.5 * (2.0 * Y[:, j - 1] - 1.0) if j else 0.0)
        Y[:, j] = rng.random(n) < 1.0 / (1.0 + np.exp(-logit))
    return X, Y


def sparse_table(n=120, m=30, d=4, seed=0, density=0.1):
    """Return (X, Y) with a CSR X of counts, few entries filled."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, m, density, "csr", random_state=rng, data_rvs=lambda size: rng.integers(1, 4, size) * 1.0)
    logit = X @ rng.normal(size=(m, d)) + rng.normal(scale=0.5, size=(n, d))
    return X, (logit > np.median(logit, axis=0)).astype(np.uint8)
