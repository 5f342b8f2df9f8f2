"""The other classifiers that the paper names, made fit for rare responses, mixed columns and sparse rows.

Each is a scikit-learn classifier with probabilities: `PerLabel(NaiveBayes())`, or by name, `learner="naive-bayes"`.
"""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.svm import LinearSVC

from mcode._arrays import Floats, Matrix
from mcode.errors import InputError

MOST_DENSE_CELLS = 500_000_000


def _is_sparse(X: object) -> bool:
    return bool(sp.issparse(X))


class CalibratedSVM(ClassifierMixin, BaseEstimator):
    """Linear support vector machine whose margins are turned into probabilities (Platt 1999).

    The margins that are calibrated come from machines that did not see the row. Dense columns are brought to unit
    variance. With more than two classes there is one machine for each, and their probabilities are normalised.

    Parameters
    ----------
    C : float, default=0.1
        Inverse strength of the penalty.
    folds : int, default=3
        Folds of the calibration; fewer where a class has fewer rows. A class with a single row gets its base rate.
    random_state : int, default=0

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> CalibratedSVM().fit(X, X[:, 0] > 9).predict_proba([[0.0], [19.0]]).round()
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, C: float = 0.1, *, folds: int = 3, random_state: int = 0) -> None:
        self.C = C
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on X of shape (n, m) and classes y of shape (n,)."""
        self.classes_ = np.unique(y)
        self.center_, self.scale_ = _columns(X)
        Z = self._scaled(X)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.machines_ = [self._fit_one(Z, np.asarray(y) == value) for value in positive]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, n_classes)."""
        Z = self._scaled(X)
        each = np.column_stack([_probability(machine, Z) for machine in self.machines_])
        if len(self.machines_) == 1:
            return np.hstack([1.0 - each, each])
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _fit_one(self, Z: Matrix, y: NDArray[np.bool_]) -> tuple[LinearSVC | None, float, float]:
        """Return a machine and the slope and intercept of its probabilities; no machine where a class has one row."""
        rarest = int(min(y.sum(), len(y) - y.sum()))
        if rarest < 2:
            rate = (y.sum() + 0.5) / (len(y) + 1.0)
            return None, 0.0, float(np.log(rate) - np.log1p(-rate))
        margin = np.empty(len(y))
        for train, held in StratifiedKFold(min(self.folds, rarest), shuffle=True, random_state=self.random_state).split(
            Z, y
        ):
            margin[held] = self._machine().fit(Z[train], y[train]).decision_function(Z[held])
        return self._machine().fit(Z, y), *_platt(margin, y)

    def _machine(self) -> LinearSVC:
        return LinearSVC(C=self.C, random_state=self.random_state, dual=True, tol=1e-3, max_iter=20_000)

    def _scaled(self, X: Any) -> Matrix:
        if _is_sparse(X):
            return cast(Matrix, X)
        return np.asarray((np.asarray(X, dtype=np.float64) - self.center_) / self.scale_)


def _columns(X: Any) -> tuple[Floats, Floats]:
    if _is_sparse(X):
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    deviation = np.std(X, axis=0, dtype=np.float64)
    return np.mean(X, axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0)


def _platt(margin: Floats, y: NDArray[np.bool_]) -> tuple[float, float]:
    """Fit P = sigmoid(slope * margin + intercept) to smoothed targets: no finite table supports certainty."""
    n_yes, n_no = y.sum(), len(y) - y.sum()
    target = np.where(y, (n_yes + 1.0) / (n_yes + 2.0), 1.0 / (n_no + 2.0))
    both = np.concatenate([margin, margin])[:, None]
    truth = np.repeat([True, False], len(y))
    fitted = LogisticRegression(C=1e6).fit(both, truth, sample_weight=np.concatenate([target, 1.0 - target]))
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def _probability(machine: tuple[LinearSVC | None, float, float], Z: Matrix) -> Floats:
    svm, slope, intercept = machine
    margin = np.zeros(Z.shape[0]) if svm is None else svm.decision_function(Z)
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(slope * margin + intercept, -30.0, 30.0))))


class NaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes with a Bernoulli distribution for columns of 0 and 1 and a Gaussian one for all others.

    Sparse rows are Bernoulli throughout: a word is there or it is not.

    Parameters
    ----------
    smoothing : float, default=1.0
        Rows of each value that every Bernoulli column is credited with.
    smallest_variance : float, default=1e-3
        Of a Gaussian column, as a share of the largest variance of all columns.

    Examples
    --------
    >>> X = np.array([[0.0, 1.5], [0.0, 1.7], [1.0, 0.2], [1.0, 0.1]])
    >>> NaiveBayes().fit(X, [0, 0, 1, 1]).predict([[0.0, 1.6]])
    array([0])
    """

    def __init__(self, smoothing: float = 1.0, *, smallest_variance: float = 1e-3) -> None:
        self.smoothing = smoothing
        self.smallest_variance = smallest_variance

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on X of shape (n, m) and classes y of shape (n,)."""
        self.classes_ = np.unique(y)
        self.binary_: NDArray[np.bool_] = (
            np.ones(X.shape[1], np.bool_) if _is_sparse(X) else ((X == 0) | (X == 1)).all(axis=0)
        )
        self.bernoulli_, self.gaussian_ = None, None
        if self.binary_.any():
            self.bernoulli_ = BernoulliNB(alpha=self.smoothing, binarize=0.0).fit(X[:, self.binary_], y)
        if not self.binary_.all():
            self.gaussian_ = GaussianNB(var_smoothing=self.smallest_variance).fit(X[:, ~self.binary_], y)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, n_classes)."""
        X = X if _is_sparse(X) else np.asarray(X)
        log_joint = np.zeros((X.shape[0], len(self.classes_)))
        if self.bernoulli_ is not None:
            log_joint += self.bernoulli_.predict_joint_log_proba(X[:, self.binary_])
        if self.gaussian_ is not None:
            log_joint += self.gaussian_.predict_joint_log_proba(X[:, ~self.binary_])
            if self.bernoulli_ is not None:  # both parts brought the prior
                log_joint -= self.bernoulli_.class_log_prior_
        return np.asarray(np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class Boosting(ClassifierMixin, BaseEstimator):
    """Gradient-boosted trees (scikit-learn's histogram ones), for sparse rows too.

    Parameters
    ----------
    max_iter : int, default=60
        Number of trees.
    learning_rate : float, default=0.1
    max_leaf_nodes : int, default=15
    random_state : int, default=0

    Examples
    --------
    >>> X = np.arange(100.0)[:, None]
    >>> Boosting().fit(X, (X[:, 0] > 30) & (X[:, 0] < 70)).predict([[10.0], [50.0], [90.0]])
    array([False,  True, False])
    """

    def __init__(
        self, max_iter: int = 60, *, learning_rate: float = 0.1, max_leaf_nodes: int = 15, random_state: int = 0
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on X of shape (n, m) and classes y of shape (n,)."""
        self.trees_ = HistGradientBoostingClassifier(
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=self.random_state,
        ).fit(_as_dense(X), y)
        self.classes_ = self.trees_.classes_
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, n_classes)."""
        return np.asarray(self.trees_.predict_proba(_as_dense(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        return np.asarray(self.trees_.predict(_as_dense(X)))


def _as_dense(X: Any) -> Any:
    if not _is_sparse(X):
        return X
    if X.shape[0] * X.shape[1] > MOST_DENSE_CELLS:
        raise InputError(
            "X",
            f"it is sparse with {X.shape[0]:,} x {X.shape[1]:,} cells, which boosting needs dense",
            "take another learner or fewer features",
        )
    return X.toarray()
