"""A tree over the responses: each sees the context and at most one other response."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.errors import InputError
from mcode.models import parents as see
from mcode.models.arborescence import best_arborescence
from mcode.models.conditional import ConditionalModel
from mcode.models.encoding import Codes
from mcode.models.folds import stratified_folds
from mcode.models.learners import CrossFit, Learner
from mcode.models.pair_gains import pair_gains

LARGEST_LOGIT = 30.0


class TreeRelevance(ConditionalModel):
    """Each response given the context and at most one other response: P(y | x) = prod_j P(y_j | x, y_parent(j)).

    The conditional tree-structured Bayesian network of Batal, Hong & Hauskrecht (2013): a proper joint. Every response
    is first predicted from the context alone, out of fold; `gain_[i, j]` is the held-out log-likelihood that response i
    gains when the value of j may shift its logits; the tree is the arborescence of the largest total gain (Chu-Liu,
    Edmonds). Then the conditionals of the chosen tree are fitted, with the penalties found for the context alone.

    Parameters
    ----------
    learner : Learner or "logistic", "svm", "naive-bayes", "boosting", default=BatchLogistic(penalty="cv")
    folds : int, default=5
        Folds of the held-out likelihoods when the model is fitted on its own. A detector brings its own folds.
    random_state : int, default=0
        Seed of those folds.

    Attributes
    ----------
    parent_of_ : (d,) array, the response that each response sees, or -1
    gain_ : (d, d) array

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, first = rng.normal(size=(300, 2)), rng.random(300) < 0.5
    >>> second, third = first ^ (rng.random(300) < 0.1), first ^ (rng.random(300) < 0.2)
    >>> tree = TreeRelevance().fit(X, np.column_stack([first, second, third]))
    >>> (tree.parent_of_ >= 0).sum()  # a tree of three has two arcs; their directions are as good either way
    np.int64(2)
    """

    def __init__(self, learner: Learner | str | None = None, *, folds: int = 5, random_state: int = 0) -> None:
        super().__init__(learner)
        self.folds = folds
        self.random_state = random_state

    def _choose_parents(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None) -> see.Parents:
        if self.n_values_ is not None:
            raise InputError(
                "Y",
                "some of its responses have more than two values",
                "a tree is found among responses of two values; take the model dbr, chain, br or chain-ensemble",
            )
        if fold_of_row is None:
            fold_of_row = stratified_folds(Y, self.folds, np.random.default_rng(self.random_state))
        alone, _ = super()._learner().cross_fit(X, Y, see.none(Y.shape[1]), fold_of_row, final=False)
        self.gain_ = pair_gains(_log_odds(alone, X, Y), Y, fold_of_row)
        self.parent_of_ = best_arborescence(self.gain_)
        self._settled: Any = self.settled_learner(None, alone.folds)
        return see.tree(self.parent_of_)

    def _learner(self) -> Learner:
        settled: Learner = self._settled
        return settled


def _log_odds(alone: CrossFit, X: Matrix, Y: Codes) -> Floats:
    """Return log P(1) - log P(0) of each response, whatever was observed."""
    log_one = alone.log_proba(X, np.ones_like(Y))
    log_zero = alone.log_proba(X, np.zeros_like(Y))
    return np.clip(log_one - log_zero, -LARGEST_LOGIT, LARGEST_LOGIT)
