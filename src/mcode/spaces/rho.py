"""(X, Y) -> rho, the probability of every observed response: the paper's transformation, equation (5).

rho[i, j] = P(y_j = the observed value | x, the observed values of j's parents).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mcode._arrays import Floats, Matrix
from mcode._progress import advance
from mcode.models.alike import RememberedRows, rows_to_remember
from mcode.models.categorical import likeliest_values
from mcode.models.company import Company
from mcode.models.conditional import BinaryRelevance, ClassifierChain, ConditionalModel, DependentRelevance
from mcode.models.encoding import MISSING, Codes
from mcode.models.indicators import NumberOfValues
from mcode.models.learners import Conditionals, CrossFit, Learner
from mcode.models.missing import fill, has_missing
from mcode.models.mutual import mutual_log_proba
from mcode.models.pairs import PairLifts
from mcode.models.panel import Panel
from mcode.models.prototypes import Prototypes

# No table of data supports a probability below this; and log(0) would be -infinity.
LOG_SMALLEST = float(np.log(1e-12))
LOG_LARGEST = float(np.log1p(-1e-12))
WITHOUT_CONTEXT = ("prior", "others", "pairs", "rate", "company")
COUNTED = ("pairs", "rate", "prototypes", "company")  # no regressions: they take no time, and no penalty of the model's
ALIKE = "alike"  # and "twins": no model of their own, but some training rows as binary relevance sees them


def floored(log_rho: Floats) -> Floats:
    """Keep log rho away from 0 and from minus infinity, in place: the one place where rho is floored.

    Examples
    --------
    >>> np.exp(floored(np.array([-1e9, 0.0])))
    array([1.e-12, 1.e+00])
    """
    return np.clip(log_rho, LOG_SMALLEST, LOG_LARGEST, out=log_rho)


class RhoSpace:
    """The transformation by one conditional model, and by companions of it where a score asks for them.

    Companions (see `mcode.models.panel.Panel`) take over the penalties that were found for the model itself, so they
    cost one fit each and no search, or only count and average (COUNTED). "alike" remembers some training rows instead
    (`mcode.models.alike`), gives "twins" too, and needs "br" and "rate". `n_values` is how many values each response
    has, None where all have two.
    """

    n_values: NumberOfValues = None
    remembered: RememberedRows | None = None

    def __init__(
        self, model: ConditionalModel, companions: tuple[str, ...] = (), n_values: NumberOfValues = None
    ) -> None:
        self.model, self.companions, self.n_values = model, companions, n_values

    def fit(self, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None, *, final: bool) -> Self:
        """Fit the model and its companions, on folds where they are given and on all rows where `final` asks."""
        self.models: dict[str, ConditionalModel] = {"model": clone(self.model)}
        self.cross: dict[str, CrossFit] = {}
        self._fit_one("model", X, Y, fold_of_row, final)
        further = models_among(self.companions)
        for done, name in enumerate(further):
            advance("fit the companion models", done, len(further))
            self.models[name] = self._companion(name)
            self._fit_one(name, X, Y, fold_of_row, final)
        return self.remember_rows(X, Y)

    def remember_rows(self, X: Matrix, Y: Codes) -> Self:
        """Keep some training rows where "alike" is asked for, as models see them that were fitted without them."""
        if ALIKE not in self.companions:
            return self
        rows = rows_to_remember(len(Y))
        X, Y = X[rows], Y[rows]
        if self.cross:
            filled, cross = self.filled(X, Y, rows), self.cross["br"]
            log_rho, fold = cross.log_proba(X, filled, rows), cross.fold_of(rows)
        else:
            filled, fold = fill(_fitted(self.models["model"]), X, Y), None
            log_rho = _fitted(self.models["br"]).log_proba(X, filled)
        self.remembered = RememberedRows.of(log_rho, filled, fold, self.n_values)
        return self

    def _fit_one(self, name: str, X: Matrix, Y: Codes, fold_of_row: NDArray[np.intp] | None, final: bool) -> None:
        context = context_of(name, X)
        if fold_of_row is None:
            self.models[name].fit(context, Y, n_values=self.n_values)
        else:
            model, n_values = self.models[name], self.n_values
            self.cross[name] = model.cross_fit(context, Y, fold_of_row, final=final, n_values=n_values)

    def _companion(self, name: str) -> ConditionalModel:
        main, folds = self.models["model"], self.cross["model"].folds if self.cross else ()
        return companion(name, main.settled_learner(main.conditionals_, folds))

    def panel(self, X: Matrix, Y: Codes) -> Panel:
        """Look at any rows through the models fitted on all training rows."""
        filled = fill(_fitted(self.models["model"]), X, Y)
        known = None if filled is Y else Y != MISSING
        views = {name: _fitted(model).log_proba(context_of(name, X), filled) for name, model in self.models.items()}
        if "others" in views:
            views["mutual"] = mutual_log_proba(_fitted(self.models["others"]), filled, views["others"], known)
        if self.remembered is not None:
            views |= self.remembered.views(views["br"], views["rate"], filled)
        return _panel(filled, known, views, self.n_values)

    def out_of_fold(self, X: Matrix, Y: Codes, rows: NDArray[np.intp] | None = None) -> Panel:
        """Look at training rows (all, or `rows` of them), with responses Y, through models that never saw them."""
        filled = self.filled(X, Y, rows)
        known = None if filled is Y else Y != MISSING
        views = {name: cross.log_proba(context_of(name, X), filled, rows) for name, cross in self.cross.items()}
        if "others" in views:
            views["mutual"] = self._mutual_out_of_fold(filled, views["others"], known, rows)
        if self.remembered is not None:
            views |= self.remembered.views(views["br"], views["rate"], filled, self.cross["br"].fold_of(rows))
        return _panel(filled, known, views, self.n_values)

    def _mutual_out_of_fold(
        self, Y: Codes, own: Floats, known: NDArray[np.bool_] | None, rows: NDArray[np.intp] | None
    ) -> Floats:
        out = np.empty(Y.shape)
        for mine, conditionals in self.cross["others"].parts(rows):
            there = None if known is None else known[mine]
            out[mine] = mutual_log_proba(conditionals, Y[mine], own[mine], there)
        return out

    def filled(self, X: Matrix, Y: Codes, rows: NDArray[np.intp] | None = None) -> Codes:
        """Return the responses of training rows, missing ones at their most likely value by models that saw others."""
        if not has_missing(Y):
            return Y
        out = Y.copy()
        for mine, conditionals in self.cross["model"].parts(rows):
            out[mine] = fill(conditionals, X[mine], Y[mine])
        return out

    def expected(self, X: Matrix, Y: Codes) -> Codes:
        """Return the likeliest value of each response of any rows, given all else, by models fitted on all rows."""
        fitted = _fitted(self.models["model"])
        return likeliest_values(fitted, X, fill(fitted, X, Y))

    def likeliest(self, X: Matrix, Y: Codes, rows: NDArray[np.intp]) -> Codes:
        """Return the likeliest value of each response of training rows, by models that never saw them."""
        filled, out = self.filled(X, Y, rows), np.empty_like(Y)
        for mine, conditionals in self.cross["model"].parts(rows):
            out[mine] = likeliest_values(conditionals, X[mine], filled[mine])
        return out


def models_among(companions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the companions that are models."""
    return tuple(name for name in companions if name != ALIKE)


def companion(name: str, learner: Learner) -> ConditionalModel:
    """Return the model of a companion by its name."""
    if name == "br":
        return BinaryRelevance(learner)
    if name == "pairs":
        return DependentRelevance(PairLifts())
    if name == "rate":
        return BinaryRelevance(PairLifts())
    if name == "prototypes":
        return BinaryRelevance(Prototypes())
    if name == "company":
        return DependentRelevance(Company())
    return DependentRelevance(learner) if name == "others" else ClassifierChain(learner=learner)


def _panel(filled: Codes, known: NDArray[np.bool_] | None, views: dict[str, Floats], n_values: NumberOfValues) -> Panel:
    """Return what is seen; a missing cell is certain, so that it adds nothing."""
    for view in views.values():
        if known is not None:
            view[~known] = 0.0
        floored(view)
    return Panel(filled, views, known, n_values)


def _fitted(model: ConditionalModel) -> Conditionals:
    assert model.conditionals_ is not None, "only models fitted on all rows read new rows"
    return model.conditionals_


def context_of(name: str, X: Matrix) -> Matrix:
    """Return what a model is given of the context."""
    return np.empty((X.shape[0], 0), np.float32) if name in WITHOUT_CONTEXT else X
