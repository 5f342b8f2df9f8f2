"""The models of a detector, fitted on a table in partitions: what `mcode.spaces.rho.RhoSpace.fit` does in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mcode._progress import advance
from mcode.distributed.cluster import Cluster
from mcode.distributed.deal import Deal
from mcode.distributed.logistic import Fitted, fit_logistic
from mcode.distributed.look import Known
from mcode.distributed.table import Rows, Table
from mcode.errors import ParameterError
from mcode.models.conditional import ConditionalModel
from mcode.models.learners import CrossFit
from mcode.models.logistic import SEARCHED_TOLERANCE, BatchLogistic
from mcode.spaces.rho import COUNTED, WITHOUT_CONTEXT, RhoSpace, companion, context_of, models_among


@dataclass(frozen=True)
class Cast:
    """A table, what is known of it, and how its rows are dealt out.

    Attributes
    ----------
    cluster : Cluster
    table : Table
    known : Known
    deal : Deal
    rows : Rows, a uniform sample
    """

    cluster: Cluster
    table: Table
    known: Known
    deal: Deal
    rows: Rows

    @property
    def fold_of_row(self) -> NDArray[np.intp]:
        """The fold of each row of the sample."""
        return self.deal.fold_of(self.rows.ids)


def fit_space(
    cast: Cast,
    model: ConditionalModel,
    companions: tuple[str, ...],
    *,
    folds: bool,
    final: bool,
    only: int | None = None,
) -> RhoSpace:
    """Fit the model and its companions on all rows of the table.

    Parameters
    ----------
    cast : Cast
    model : ConditionalModel whose learner is BatchLogistic
    companions : names of what a score wants to see beside it; rows that are alike are those of the sample, and what is
        counted and averaged is so in the sample
    folds, final : whether the models of the folds, and those of all rows, are wanted
    only : fold whose model stands for the one of all rows, or None
    """
    if type(model).cross_fit is not ConditionalModel.cross_fit:
        raise ParameterError("model", model, "'dbr', 'chain', 'br' or 'tree' on tables in partitions")
    space = RhoSpace(model, companions)
    space.models, space.cross = {}, {}
    main: Fitted | None = None
    models = ("model", *models_among(companions))
    for done, name in enumerate(models):
        advance("fit the models", done, len(models))
        one = clone(model) if name == "model" else _companion(name, model, main)
        if name in COUNTED:
            _fit_on_sample(space, name, one, cast, folds=folds, final=final, only=only)
            continue
        learner = _learner(one)
        describe(one, cast)
        fitted = fit_logistic(
            cast.cluster,
            cast.table,
            cast.known,
            cast.deal,
            learner,
            one.parents_,
            cast.rows,
            tolerance=None if name == "model" else SEARCHED_TOLERANCE,  # nobody reads a companion's coefficients
            context=name not in WITHOUT_CONTEXT,
            folds=folds,
            final=final,
        )
        one.conditionals_ = fitted.final if only is None else fitted.folds[only]
        main = main or fitted
        space.models[name] = one
        if folds and only is None:
            space.cross[name] = CrossFit(cast.fold_of_row, fitted.folds)
    advance("fit the models", len(models), len(models))
    return space.remember_rows(cast.rows.X, cast.rows.Y)


def _fit_on_sample(
    space: RhoSpace, name: str, model: ConditionalModel, cast: Cast, *, folds: bool, final: bool, only: int | None
) -> None:
    """Fit what counts and averages: of a long table a sample says as much as all rows."""
    X, Y = context_of(name, cast.rows.X), cast.rows.Y
    if folds or only is not None:
        cross = model.cross_fit(X, Y, cast.fold_of_row, final=final)
        if only is None:
            space.cross[name] = cross
        else:
            model.conditionals_ = cross.folds[only]
    else:
        model.fit(X, Y)
    space.models[name] = model
    describe(model, cast)


def describe(model: ConditionalModel, cast: Cast) -> None:
    """Set what a fitted model says of itself. Parents that depend on the data are chosen on the sample."""
    folds = cast.fold_of_row
    model._open(cast.rows.X, cast.rows.Y, folds if folds.min() < folds.max() else None, None)
    model.encoding_ = cast.known.encoding
    model.one_valued_ = cast.known.one_valued


def _learner(model: ConditionalModel) -> BatchLogistic:
    learner = BatchLogistic() if model.learner is None else model.learner
    if not isinstance(learner, BatchLogistic):
        raise ParameterError("learner", learner, "BatchLogistic() on tables in partitions")
    return learner


def _companion(name: str, model: ConditionalModel, main: Fitted | None) -> ConditionalModel:
    """Return another model of the same rows, which takes over the penalties that were found for the first."""
    assert main is not None, "the model itself comes first"
    return companion(name, model.settled_learner(main.final, main.folds))
