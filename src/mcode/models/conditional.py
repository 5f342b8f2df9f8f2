"""The conditional models: which responses each response sees, and a learner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mcode._arrays import Floats, Matrix, TableLike, check_matrix
from mcode.errors import InputError
from mcode.models import parents as see
from mcode.models.categorical import CategoricalConditionals
from mcode.models.encoding import MISSING, Codes, ResponseEncoding, one_valued
from mcode.models.folds import stratified_folds
from mcode.models.indicators import NumberOfValues, several
from mcode.models.learner_names import as_learner
from mcode.models.learners import Conditionals, CrossFit, Learner
from mcode.models.logistic import BatchLogistic, LinearConditionals
from mcode.models.missing import fill_for_training, has_missing, log_proba_of_known

LARGEST = 1e18  # of a feature: its square is still a number in single precision
LEAST_SETTLED = 0.01  # the weakest penalty that other models of the same rows take over


class ConditionalModel(BaseEstimator, ABC):
    """A model of P(y_j | x, the responses that j may see) for every response j.

    Because a *given* y is scored, nothing here is sequential, not even a chain.

    Attributes
    ----------
    parents_ : (d, d) boolean array: parents_[j, k] where the model of j uses k
    conditionals_ : the fitted conditionals
    encoding_ : ResponseEncoding
    n_features_in_, n_responses_ : int
    n_values_ : tuple of int, how many values each response has; None where all have two
    one_valued_ : list of str
        Responses that had one value only in training: they are scored by their smoothed base rate.
    """

    def __init__(self, learner: Learner | str | None = None) -> None:
        self.learner = learner

    @abstractmethod
    def _choose_parents(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None) -> see.Parents: ...

    def fit(self, X: TableLike, Y: TableLike, *, n_values: NumberOfValues = None) -> Self:
        """Fit on context X of shape (n, m) and responses Y of shape (n, d).

        `n_values` is given where Y holds codes already: how many values each response has.
        """
        features, codes, known = self._open(X, Y, None, n_values)
        self.conditionals_: Conditionals | None = self._learner().fit(features, codes, self.parents_, **known)
        return self

    def cross_fit(
        self,
        X: TableLike,
        Y: TableLike,
        fold_of_row: NDArray[np.intp],
        *,
        final: bool = True,
        n_values: NumberOfValues = None,
    ) -> CrossFit:
        """Fit every fold, and all rows as well where `final` asks for it; return the models of the folds."""
        folds = np.asarray(fold_of_row)
        features, codes, known = self._open(X, Y, folds, n_values)
        learner = self._learner()
        cross, self.conditionals_ = learner.cross_fit(features, codes, self.parents_, folds, final=final, **known)
        return cross

    def log_proba(self, X: TableLike, Y: TableLike) -> Floats:
        """Return log P(y_j | x, parents of j) of what was observed, shape (n, d)."""
        check_is_fitted(self, "conditionals_")
        features, codes = check_rows(X, Y, self.encoding_, self.n_features_in_)
        if self.conditionals_ is None:
            raise NotFittedError("This model was cross-fitted with final=False: it has no model for new rows.")
        return log_proba_of_known(self.conditionals_, features, codes)

    def _open(
        self, X: TableLike, Y: TableLike, fold_of_row: NDArray[np.intp] | None, n_values: NumberOfValues
    ) -> tuple[Matrix, Codes, dict[str, Any]]:
        """Return X, the responses with missing ones filled, and what a learner is told of them.

        That is which are known, where some are not, and how many values each has, where some have more than two.
        """
        features, codes = self._encode(X, Y, n_values)
        known: dict[str, Any] = {} if self.n_values_ is None else {"n_values": self.n_values_}
        if has_missing(codes):
            folds = stratified_folds(codes, 5, np.random.default_rng(0)) if fold_of_row is None else fold_of_row
            there = codes != MISSING
            codes = fill_for_training(as_learner(self.learner), features, codes, folds, self.n_values_)
            known["known"] = there
        self.parents_ = self._choose_parents(features, codes, fold_of_row)
        return features, codes, known

    def _encode(self, X: TableLike, Y: TableLike, n_values: NumberOfValues) -> tuple[Matrix, Codes]:
        self.encoding_ = ResponseEncoding.of(Y) if n_values is None else ResponseEncoding.of_codes(n_values)
        self.n_values_ = several(self.encoding_.n_values)
        features, codes = check_rows(X, Y, self.encoding_)
        self.n_features_in_, self.n_responses_ = features.shape[1], codes.shape[1]
        self.one_valued_ = one_valued(codes, self.encoding_.names)
        return features, codes

    def _learner(self) -> Learner:
        return as_learner(self.learner)

    def settled_learner(self, fitted: Conditionals | None, folds: Sequence[Conditionals] = ()) -> Learner:
        """Return the learner for another model of the same rows: penalties that were found are not searched again.

        A very weak one suits the model that found it, not others: at 1e-4 the chain of medical predicts held-out rows
        worse than binary relevance, at LEAST_SETTLED better.

        Parameters
        ----------
        fitted : conditionals of all rows, or None where there are only those of folds
        folds : conditionals of the folds of a cross-fit
        """
        learner: Any = clone(as_learner(self.learner))
        if not isinstance(learner, BatchLogistic):
            return cast(Learner, learner)
        least = LEAST_SETTLED if isinstance(learner.penalty, str) else 0.0
        of_all, of_folds = (
            [
                np.maximum(one.penalty, least)
                for one in some
                if isinstance(one, LinearConditionals | CategoricalConditionals)
            ]
            for some in ([fitted], folds)
        )
        if of_all or of_folds:
            penalty = of_all[0] if of_all else np.exp(np.log(of_folds).mean(axis=0))
            learner.set_params(penalty=penalty, fold_penalty=of_folds or None, scale=learner.scales())
        return learner


def check_rows(X: Any, Y: Any, encoding: ResponseEncoding, n_features: int | None = None) -> tuple[Matrix, Codes]:
    """Return X and Y as canonical arrays of equal length, or say what does not fit."""
    features, codes = check_matrix(X, "X", largest=LARGEST), encoding.encode(Y)
    if features.shape[0] != len(codes):
        raise InputError(
            "X and Y", f"they have {features.shape[0]} and {len(codes)} rows", "each row of X belongs to one row of Y"
        )
    if n_features is not None and features.shape[1] != n_features:
        raise InputError(
            "X", f"it has {features.shape[1]} columns (features)", f"the model was fitted on {n_features} features"
        )
    return features, codes


class BinaryRelevance(ConditionalModel):
    """Each response given the context alone: P(y_j | x).

    Parameters
    ----------
    learner : Learner or "logistic", "svm", "naive-bayes", "boosting", default=BatchLogistic(penalty="cv")

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); Y = X > 0
    >>> np.exp(BinaryRelevance().fit(X, Y).log_proba([[3.0, -3.0]], [[True, True]])).round(2)
    array([[1., 0.]])
    """

    def _choose_parents(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None) -> see.Parents:
        return see.none(Y.shape[1])


class DependentRelevance(ConditionalModel):
    """Each response given the context and all other responses: P(y_j | x, y without j).

    The product over j is a pseudo-likelihood, not a probability (Montanes et al. 2014). The model of the paper.

    Parameters
    ----------
    learner : Learner or "logistic", "svm", "naive-bayes", "boosting", default=BatchLogistic(penalty="cv")

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first = rng.random(200) < 0.5
    >>> model = DependentRelevance().fit(np.zeros((200, 0)), np.column_stack([first, first]))
    >>> (np.exp(model.log_proba(np.zeros((1, 0)), [[1, 0]])) < 0.1).all()
    np.True_
    """

    def _choose_parents(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None) -> see.Parents:
        return see.all_others(Y.shape[1])


class ClassifierChain(ConditionalModel):
    """Each response given the context and the responses before it: a proper joint P(y | x) = prod_j P(y_j | x, ...).

    Parameters
    ----------
    order : sequence of int or None, default=None
        The order of the responses; None takes a random one.
    learner : Learner or "logistic", "svm", "naive-bayes", "boosting", default=BatchLogistic(penalty="cv")
    random_state : int, default=0
        Seed of the random order.

    Attributes
    ----------
    order_ : list of int

    Examples
    --------
    >>> Y = np.array([[0, 0], [1, 1]] * 20)
    >>> ClassifierChain(order=[1, 0]).fit(np.zeros((40, 0)), Y).parents_.astype(int)
    array([[0, 1],
           [0, 0]])
    """

    def __init__(
        self, order: Sequence[int] | None = None, *, learner: Learner | str | None = None, random_state: int = 0
    ) -> None:
        super().__init__(learner)
        self.order = order
        self.random_state = random_state

    def _choose_parents(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None) -> see.Parents:
        rng, n_responses = np.random.default_rng(self.random_state), Y.shape[1]
        order = rng.permutation(n_responses) if self.order is None else self.order
        self.order_ = [int(j) for j in order]
        return see.chain(self.order_, n_responses)
