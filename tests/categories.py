"""A generated table in which responses have several values, and some of them are wrong."""

import numpy as np
import pandas as pd

SEVERITY, DRUG = ("mild", "none", "severe"), ("A", "B", "C", "D")


def clinic(n=600, seed=0):
    """Return context and responses: a severity of three, a drug of four that goes with it, and an admission."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    severity = np.argmax(
        3.0 * np.column_stack([X[:, 0], X[:, 1], -X[:, 0] - X[:, 1]]) + rng.gumbel(size=(n, 3)), axis=1
    )
    drug = np.where(rng.random(n) < 0.9, severity, rng.integers(4, size=n))
    admitted = (severity == 2) ^ (rng.random(n) < 0.05)
    Y = pd.DataFrame({"severity": np.array(SEVERITY)[severity], "drug": np.array(DRUG)[drug]})
    return X, Y.assign(admitted=admitted.astype(int))


def with_errors(Y, n_wrong=30, seed=1):
    """Return Y with one response of some rows replaced by another value, those rows, and which response it was."""
    rng = np.random.default_rng(seed)
    wrong = Y.copy().astype(object)
    rows, columns = rng.permutation(len(Y))[:n_wrong], rng.integers(3, size=n_wrong)
    for row, column in zip(rows, columns, strict=True):
        others = sorted(set(Y.iloc[:, column]) - {Y.iloc[row, column]})
        wrong.iloc[row, column] = others[rng.integers(len(others))]
    return wrong, rows, columns
