"""A model fitted twice: the second time without the cells that the first one found most improbable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mcode._arrays import Floats, Matrix, TableLike
from mcode.errors import ParameterError
from mcode.models import parents as see
from mcode.models.conditional import ConditionalModel, DependentRelevance
from mcode.models.encoding import MISSING, Codes
from mcode.models.folds import stratified_folds
from mcode.models.indicators import NumberOfValues
from mcode.models.learners import Conditionals, CrossFit, Learner


class TrimmedModel(ConditionalModel):
    """Any model, fitted again without the training cells that look wrong: for tables that hold errors.

    The model is cross-fitted; in the `share` of rows with the largest odds against one of their responses, that
    response counts as missing (`mcode.models.missing`) and the model is fitted again. The responses that are judged are
    those that were recorded.

    Parameters
    ----------
    model : ConditionalModel, default=DependentRelevance()
    share : float, default=0.02
        Share of the rows of which one cell is left out.
    folds : int, default=5
        Folds of the first fit when the model is fitted on its own. A detector brings its own folds.
    random_state : int, default=0
        Seed of those folds.

    Attributes
    ----------
    model_ : the fitted model
    trimmed_ : (n, d) boolean array, the cells that were left out

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); Y = (X > 0).astype(int)
    >>> Y[3, 0] = 1 - Y[3, 0]
    >>> bool(TrimmedModel(share=0.01).fit(X, Y).trimmed_[3, 0])
    True
    """

    learner: Learner | str | None = None  # the model has its own

    def __init__(
        self, model: ConditionalModel | None = None, *, share: float = 0.02, folds: int = 5, random_state: int = 0
    ) -> None:
        self.model = model
        self.share = share
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: TableLike, Y: TableLike, *, n_values: NumberOfValues = None) -> Self:
        """Fit twice on context X of shape (n, m) and responses Y of shape (n, d)."""
        features, codes = self._encode(X, Y, n_values)
        folds = stratified_folds(codes, self.folds, np.random.default_rng(self.random_state))
        self._finish(features, self._trim(features, codes, folds), None, final=True)
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
        """Fit every fold twice, and all rows as well where `final` asks for it."""
        features, codes = self._encode(X, Y, n_values)
        folds = np.asarray(fold_of_row)
        cross = self._finish(features, self._trim(features, codes, folds), folds, final=final)
        assert cross is not None
        return cross

    def _trim(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp]) -> Codes:
        if not (isinstance(self.share, float | int) and 0 <= self.share < 0.5):
            raise ParameterError("share", self.share, "a number from 0 to below 0.5")
        first = self._fresh()
        cross = first.cross_fit(X, Y, fold_of_row, final=False, n_values=self.n_values_)
        improbable: Floats = -cross.log_proba(X, np.where(Y == MISSING, 0, Y).astype(np.uint8))
        improbable[Y == MISSING] = 0.0
        worst = improbable.argmax(axis=1)
        rows = np.argsort(-improbable.max(axis=1), kind="stable")[: round(self.share * len(Y))]
        self.trimmed_ = np.zeros(Y.shape, bool)
        self.trimmed_[rows, worst[rows]] = True
        # A response must keep all of its values: a rare one would lose all it is learned from.
        for j in range(Y.shape[1]):
            left = Y[~self.trimmed_[:, j], j]
            if len(np.setdiff1d(Y[:, j], left)) or len(np.unique(left[left != MISSING])) < 2:
                self.trimmed_[:, j] = False
        return np.where(self.trimmed_, MISSING, Y).astype(np.uint8)

    def _finish(self, X: Matrix, Y: Codes, folds: NDArray[np.intp] | None, *, final: bool) -> CrossFit | None:
        self.model_ = self._fresh()
        cross = None if folds is None else self.model_.cross_fit(X, Y, folds, final=final, n_values=self.n_values_)
        if folds is None:
            self.model_.fit(X, Y, n_values=self.n_values_)
        self.parents_, self.conditionals_ = self.model_.parents_, self.model_.conditionals_
        return cross

    def _fresh(self) -> ConditionalModel:
        if self.model is None:
            return DependentRelevance()
        if not isinstance(self.model, ConditionalModel):
            raise ParameterError("model", self.model, "a model such as DependentRelevance()")
        fresh: ConditionalModel = clone(self.model)
        return fresh

    def _choose_parents(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None) -> see.Parents:
        raise NotImplementedError("the model chooses its own parents")

    def settled_learner(self, fitted: Conditionals | None, folds: Sequence[Conditionals] = ()) -> Learner:
        """Return the learner of the model, with its penalties, for another model of the same rows."""
        return self.model_.settled_learner(fitted, folds)
