"""Any scikit-learn classifier with probabilities as the learner, one copy per response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from mcode._arrays import Floats, Matrix
from mcode._progress import advance
from mcode.errors import ParameterError
from mcode.models.encoding import Codes
from mcode.models.indicators import NumberOfValues, indicators
from mcode.models.learners import CrossFit
from mcode.models.parents import Parents

# A classifier may say 0 or 1 exactly; no finite table supports such certainty.
SMALLEST_PROBABILITY = 1e-6


class PerLabel(BaseEstimator):
    """Fit a copy of a classifier for each response, in parallel.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`
    n_jobs : int, default=-1
        Processes that fit responses side by side; -1 takes all cores.

    Examples
    --------
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> X = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> Y = np.array([[0], [0], [1], [1]], dtype=np.uint8)
    >>> fitted = PerLabel(BernoulliNB(), n_jobs=1).fit(X, Y, np.zeros((1, 1), dtype=bool))
    >>> np.exp(fitted.log_proba(X, Y)).round(2).ravel()
    array([0.75, 0.75, 0.75, 0.75])
    """

    def __init__(self, estimator: Any, *, n_jobs: int = -1) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        *,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> ClassifierConditionals:
        """Fit every response on all rows where it is known."""
        return self._fit_subsets(X, Y, parents, [np.arange(len(Y))], known, n_values)[0]

    def cross_fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        fold_of_row: NDArray[np.intp],
        *,
        final: bool,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> tuple[CrossFit, ClassifierConditionals | None]:
        """Fit every fold, and all rows where `final` asks for it."""
        subsets = [np.flatnonzero(fold_of_row != f) for f in range(fold_of_row.max() + 1)]
        everything = [np.arange(len(Y))] if final else []
        fitted = self._fit_subsets(X, Y, parents, subsets + everything, known, n_values)
        return CrossFit(fold_of_row, fitted[: len(subsets)]), fitted[-1] if final else None

    def _fit_subsets(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        subsets: Sequence[NDArray[np.intp]],
        known: NDArray[np.bool_] | None,
        n_values: NumberOfValues,
    ) -> list[ClassifierConditionals]:
        if not hasattr(self.estimator, "predict_proba"):
            raise ParameterError("estimator", self.estimator, "a classifier with predict_proba")
        d = Y.shape[1]
        jobs = (
            delayed(_fit_one)(clone(self.estimator), X, Y, _where_known(subset, known, j), parents[j], j, n_values)
            for subset in subsets
            for j in range(d)
        )
        fitted = []
        for one in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            fitted.append(one)
            advance("fit the responses", len(fitted), d * len(subsets))
        return [ClassifierConditionals(fitted[k * d : (k + 1) * d], parents, n_values) for k in range(len(subsets))]


def _inputs(X: Matrix, Y: Codes, parents: NDArray[np.bool_], n_values: NumberOfValues) -> Matrix:
    seen = None if n_values is None else tuple(k for k, sees in zip(n_values, parents, strict=True) if sees)
    parts: list[Any] = [X, indicators(Y[:, parents], seen)]
    return sp.csr_matrix(sp.hstack(parts)) if sp.issparse(X) else np.hstack(parts)


def _where_known(rows: NDArray[np.intp], known: NDArray[np.bool_] | None, response: int) -> NDArray[np.intp]:
    return rows if known is None else rows[known[rows, response]]


def _fit_one(
    estimator: Any,
    X: Matrix,
    Y: Codes,
    rows: NDArray[np.intp],
    parents: NDArray[np.bool_],
    response: int,
    n_values: NumberOfValues = None,
) -> Any:
    """Return the fitted classifier, or the smoothed base rate where there is one value or no input.

    Every job gets the same X and Y: a backend that ships its arguments, be it to other processes or to a cluster, ships
    them once, and not a copy of X for each response.
    """
    Z, y = _inputs(X[rows], Y[rows], parents, n_values), Y[rows, response]
    if not len(y) or y.min() == y.max() or Z.shape[1] == 0:
        if n_values is not None:
            return (np.bincount(y, minlength=n_values[response]) + 0.5) / (len(y) + 0.5 * n_values[response])
        return (float(y.sum()) + 0.5) / (len(y) + 1.0)
    return estimator.fit(Z, y)


@dataclass(frozen=True)
class ClassifierConditionals:
    """One fitted classifier for each response, or its base rate where a classifier could not be fitted."""

    classifiers: list[Any]
    parents: Parents
    n_values: NumberOfValues = None

    def log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log P of the observed responses, shape (n, d)."""
        return np.column_stack([self.log_proba_of(j, X, Y) for j in range(len(self.classifiers))])

    def log_proba_of(self, response: int, X: Matrix, Y: Codes) -> Floats:
        """Return log P of one observed response, shape (n,)."""
        if self.n_values is not None:
            return np.asarray(self.log_proba_of_values(response, X, Y)[np.arange(len(Y)), Y[:, response]])
        classifier = self.classifiers[response]
        if isinstance(classifier, float):
            positive = np.full(len(Y), classifier)
        else:
            positive = classifier.predict_proba(_inputs(X, Y, self.parents[response], None))[:, 1]
        observed = np.where(Y[:, response] == 1, positive, 1.0 - positive)
        return np.asarray(np.log(np.clip(observed, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)))

    def log_proba_of_values(self, response: int, X: Matrix, Y: Codes) -> Floats:
        """Return log P of every value of one response, shape (n, K); a value that no training row had is improbable."""
        assert self.n_values is not None
        classifier, n_values = self.classifiers[response], self.n_values[response]
        if isinstance(classifier, np.ndarray):
            return np.tile(np.log(classifier), (len(Y), 1))
        each = np.zeros((len(Y), n_values))
        each[:, classifier.classes_] = classifier.predict_proba(_inputs(X, Y, self.parents[response], self.n_values))
        return np.asarray(np.log(np.clip(each, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)))
