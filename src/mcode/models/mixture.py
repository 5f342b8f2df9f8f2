"""Several models that speak with one voice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mcode._arrays import Floats, Matrix, TableLike
from mcode._progress import advance
from mcode.errors import ParameterError
from mcode.models import parents as see
from mcode.models.categorical import n_values_of
from mcode.models.conditional import ClassifierChain, ConditionalModel, DependentRelevance, check_rows
from mcode.models.encoding import MISSING, Codes
from mcode.models.folds import stratified_folds
from mcode.models.full_conditional import full_log_proba
from mcode.models.indicators import NumberOfValues
from mcode.models.learners import Conditionals, CrossFit, Learner
from mcode.models.missing import fill
from mcode.models.tree import TreeRelevance

STEPS = 200  # of expectation-maximisation, which has settled long before
SMALLEST_WEIGHT = 1e-3  # a member with a smaller weight is left out, and costs nothing any more


@dataclass(frozen=True)
class Member:
    """One fitted model of a mixture."""

    conditionals: Conditionals
    parents: see.Parents


@dataclass(frozen=True)
class MixtureConditionals:
    """The weighted mean of what several models say about each response given all others.

    Attributes
    ----------
    members : the models
    weights : (k,) array, how much each model counts; they sum to 1
    """

    members: list[Member]
    weights: Floats

    def log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log sum_k w_k P_k(y_j | x, all other responses), shape (n, d)."""
        total = np.full(Y.shape, -np.inf)
        for member, weight in zip(self.members, self.weights, strict=True):
            np.logaddexp(total, np.log(weight) + full_log_proba(member.conditionals, member.parents, X, Y), out=total)
        return np.asarray(np.minimum(total, 0.0, out=total))

    @property
    def n_values(self) -> tuple[int, ...] | None:
        """How many values each response has; None where all have two."""
        return n_values_of(self.members[0].conditionals)

    def joint_log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log sum_k w_k P_k(y | x), shape (n,)."""
        joints = [_joint(member, X, Y) + np.log(w) for member, w in zip(self.members, self.weights, strict=True)]
        return np.asarray(np.logaddexp.reduce(joints, axis=0))


def _joint(member: Member, X: Matrix, Y: Codes) -> Floats:
    if isinstance(member.conditionals, MixtureConditionals):
        return member.conditionals.joint_log_proba(X, Y)
    return np.asarray(member.conditionals.log_proba(X, Y).sum(axis=1))


class MixtureModel(ConditionalModel):
    """Several models, averaged by how well each predicts rows it has not seen.

    All members answer one question, P(y_j | x, all other responses): in a chain or a tree that follows from its joint,
    and a model in which responses see each other says it itself. The mixture's rho is the weighted mean

        rho_j = sum_k w_k P_k(y_j | x, all other responses),

    so it is a probability (those of all values of y_j sum to 1), and members of any kind can be mixed. The averaged
    joint sum_k w_k P_k(y | x), a proper one where the members are, is `joint_log_proba`.

    Parameters
    ----------
    models : list of ConditionalModel or None
        None is dependent relevance, two chains and a tree.
    learner : Learner or "logistic", "svm", "naive-bayes", "boosting", default=BatchLogistic(penalty="cv")
        The learner of those four; models that are given have their own.
    weights : "held-out" or "equal", default="held-out"
        "held-out" finds the weights that give the observed responses of held-out rows the largest likelihood
        (expectation-maximisation); a member with next to no weight is left out.
    folds : int, default=5
        Folds of the held-out rows when the model is fitted on its own. A detector brings its own folds.
    random_state : int, default=0
        Seed of those folds.

    Attributes
    ----------
    models_ : list of fitted models
    weights_ : (k,) array, in the order of `models`

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, first = rng.normal(size=(300, 2)), rng.random(300) < 0.5
    >>> Y = np.column_stack([first, first ^ (rng.random(300) < 0.1)])
    >>> from mcode.models import BinaryRelevance
    >>> mixture = MixtureModel([BinaryRelevance(), DependentRelevance()]).fit(X, Y)
    >>> mixture.weights_.round(2)  # what sees the other response predicts better
    array([0.01, 0.99])
    """

    def __init__(
        self,
        models: Sequence[ConditionalModel] | None = None,
        *,
        learner: Learner | str | None = None,
        weights: Literal["held-out", "equal"] = "held-out",
        folds: int = 5,
        random_state: int = 0,
    ) -> None:
        self.models = models
        self.learner = learner
        self.weights = weights
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: TableLike, Y: TableLike, *, n_values: NumberOfValues = None) -> Self:
        """Fit every member on context X of shape (n, m) and responses Y of shape (n, d), and weigh them."""
        features, codes = self._encode(X, Y, n_values)
        self.parents_ = see.all_others(self.n_responses_)
        if self.weights == "held-out" and len(self._members()) > 1:
            folds = stratified_folds(codes, self.folds, np.random.default_rng(self.random_state))
            self._cross_fit(features, codes, folds, final=True)
            return self
        self.models_: list[ConditionalModel] = []
        for model in self._members():
            self.models_.append(clone(model).fit(features, codes, n_values=self.n_values_))
            advance("fit the models of the mixture", len(self.models_), len(self._members()))
        self._settle(self._equal())
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
        """Fit every fold of every member, and all rows as well where `final` asks for it."""
        features, codes = self._encode(X, Y, n_values)
        self.parents_ = see.all_others(self.n_responses_)
        return self._cross_fit(features, codes, np.asarray(fold_of_row), final=final)

    def joint_log_proba(self, X: TableLike, Y: TableLike) -> Floats:
        """Return log sum_k w_k P_k(y | x) of what was observed, shape (n,): the averaged joint."""
        check_is_fitted(self, "conditionals_")
        features, codes = check_rows(X, Y, self.encoding_, self.n_features_in_)
        assert isinstance(self.conditionals_, MixtureConditionals)
        return self.conditionals_.joint_log_proba(features, fill(self.conditionals_, features, codes))

    def _cross_fit(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp], *, final: bool) -> CrossFit:
        self.models_, crosses = [], []
        for model in self._members():
            self.models_.append(clone(model))
            crosses.append(self.models_[-1].cross_fit(X, Y, fold_of_row, final=final, n_values=self.n_values_))
            advance("fit the models of the mixture", len(crosses), len(self._members()))
        by_fold = [
            [Member(cross.folds[f], model.parents_) for model, cross in zip(self.models_, crosses, strict=True)]
            for f in range(len(crosses[0].folds))
        ]
        self._settle(self._weigh(by_fold, X, Y, fold_of_row), final=final)
        return CrossFit(fold_of_row, [self._mixed(members) for members in by_fold])

    def _weigh(self, by_fold: list[list[Member]], X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp]) -> Floats:
        """Return the weights of the members, from the rows that each fold held out."""
        if self.weights == "equal" or len(self.models_) == 1:
            return self._equal()
        log_rho = np.empty((len(self.models_), *Y.shape))
        for f, members in enumerate(by_fold):
            mine = np.flatnonzero(fold_of_row == f)
            filled = fill(members[0].conditionals, X[mine], Y[mine])
            for k, member in enumerate(members):
                log_rho[k, mine] = full_log_proba(member.conditionals, member.parents, X[mine], filled)
        return best_weights(log_rho[:, Y != MISSING])

    def _settle(self, weights: Floats, *, final: bool = True) -> None:
        self.weights_ = weights
        if not final:
            self.conditionals_ = None
            return
        fitted = [
            Member(model.conditionals_, model.parents_) for model in self.models_ if model.conditionals_ is not None
        ]
        self.conditionals_ = self._mixed(fitted)

    def _mixed(self, members: list[Member]) -> MixtureConditionals:
        kept = np.flatnonzero(self.weights_ > 0)
        return MixtureConditionals([members[k] for k in kept], self.weights_[kept])

    def _equal(self) -> Floats:
        return np.full(len(self._members()), 1.0 / len(self._members()))

    def _members(self) -> list[ConditionalModel]:
        if self.weights not in ("held-out", "equal"):
            raise ParameterError("weights", self.weights, "'held-out' or 'equal'")
        if self.models is None:
            chains = [ClassifierChain(learner=self.learner, random_state=k) for k in range(2)]
            return [DependentRelevance(self.learner), *chains, TreeRelevance(self.learner)]
        allowed = "a list of models such as [DependentRelevance(), ClassifierChain()]"
        if not isinstance(self.models, list | tuple) or not self.models:
            raise ParameterError("models", self.models, allowed)
        if not all(isinstance(model, ConditionalModel) for model in self.models):
            raise ParameterError("models", self.models, allowed)
        return list(self.models)

    def _choose_parents(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None) -> see.Parents:
        return see.all_others(Y.shape[1])

    def settled_learner(self, fitted: Conditionals | None, folds: Sequence[Conditionals] = ()) -> Learner:
        """Return the learner of the first member, with its penalties, for another model of the same rows."""
        first = int(np.flatnonzero(self.weights_ > 0)[0])
        return self.models_[first].settled_learner(_first_member(fitted), [_first_member(one) for one in folds])


def _first_member(mixed: Conditionals | None) -> Any:
    return mixed.members[0].conditionals if isinstance(mixed, MixtureConditionals) else None


class ChainEnsemble(MixtureModel):
    """Classifier chains over several random orders: their averaged joint, and its full conditionals.

    One chain is a proper joint that depends on an arbitrary order; the mean over orders does so much less. Each chain
    searches for its own penalties: those of another order do not suit it.

    Parameters
    ----------
    n_chains : int, default=5
    learner : Learner or "logistic", "svm", "naive-bayes", "boosting", default=BatchLogistic(penalty="cv")
    random_state : int, default=0
        The orders are those of `ClassifierChain(random_state=random_state + k)`.

    Examples
    --------
    >>> Y = np.array([[0, 0], [1, 1]] * 20)
    >>> ensemble = ChainEnsemble(2).fit(np.zeros((40, 0)), Y)
    >>> all_y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> np.exp(ensemble.joint_log_proba(np.zeros((4, 0)), all_y)).sum().round(6)
    np.float64(1.0)
    """

    def __init__(self, n_chains: int = 5, *, learner: Learner | str | None = None, random_state: int = 0) -> None:
        self.n_chains = n_chains
        self.learner = learner
        self.random_state = random_state

    weights: Literal["held-out", "equal"] = "equal"

    def _members(self) -> list[ConditionalModel]:
        if not (isinstance(self.n_chains, int | np.integer) and self.n_chains >= 1):
            raise ParameterError("n_chains", self.n_chains, "a whole number of at least 1")
        self._learner()
        return [ClassifierChain(learner=self.learner, random_state=self.random_state + k) for k in range(self.n_chains)]


def best_weights(log_likelihood: Floats) -> Floats:
    """Return the weights of a mixture that give all cells the largest likelihood, shape (k,).

    Parameters
    ----------
    log_likelihood : (k, n) array, log P of each cell under each member

    Examples
    --------
    >>> best_weights(np.log([[0.5, 0.5], [0.9, 0.9]])).round(2)
    array([0., 1.])
    """
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
    weights = np.full(len(likelihood), 1.0 / len(likelihood))
    for _ in range(STEPS):
        before = weights
        weights = weights * (likelihood / (weights @ likelihood)).mean(axis=1)
        if np.abs(weights - before).max() < 1e-5:
            break
    weights = np.where(weights < SMALLEST_WEIGHT, 0.0, weights)
    return np.asarray(weights / weights.sum())
