"""What a detector hands to whoever explains its rows, and the hook through which it asks for an explanation.

Imports point down, and explanations are made a floor above: `mcode.explain` registers itself here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.models.encoding import MISSING, Codes, ResponseEncoding
from mcode.models.indicators import Indicators, NumberOfValues
from mcode.models.learners import Conditionals
from mcode.spaces.rho import RhoSpace


@dataclass(frozen=True)
class Typical:
    """What the rows of a table are like, as the background of an explanation.

    Attributes
    ----------
    features : (m,) array, the mean of each feature; zeros where the context is sparse
    binary : (m,) boolean array, features that hold nothing but 0 and 1
    responses : (d,) array, how often each response is present
        Where some have several values, how often each of the columns is 1 that they become
        (`mcode.models.indicators`).
    """

    features: Floats
    binary: NDArray[np.bool_]
    responses: Floats

    @classmethod
    def of(cls, X: Matrix, Y: Codes, n_values: NumberOfValues = None) -> Typical:
        """Measure a table.

        Examples
        --------
        >>> Typical.of(np.array([[0.0, 2.0], [1.0, 4.0]]), np.array([[0], [1]], dtype=np.uint8))
        Typical(features=array([0.5, 3. ]), binary=array([ True, False]), responses=array([0.5]))
        """
        known = Y != MISSING
        times_known = np.maximum(known.sum(axis=0), 1)
        if n_values is None:
            responses = np.where(known, Y, 0).sum(axis=0, dtype=np.float64) / times_known
        else:
            layout = Indicators(n_values)
            there = layout.of(Y) * known[:, layout.response]
            responses = there.sum(axis=0, dtype=np.float64) / times_known[layout.response]
        if sp.issparse(X):
            other = np.bincount(X.indices, weights=(X.data != 1) & (X.data != 0), minlength=X.shape[1])
            return cls(np.zeros(X.shape[1]), other == 0, responses)
        binary = np.array([bool(((column == 0) | (column == 1)).all()) for column in X.T], bool)
        return cls(X.mean(axis=0, dtype=np.float64), binary, responses)


@dataclass(frozen=True)
class Judged:
    """Some rows with everything a detector knows of them: one entry per row, in the same order everywhere.

    Attributes
    ----------
    row : (n,) array, place of each row in the table it came from
    X, codes : context and responses
    encoding : ResponseEncoding
    typical : Typical of the table that the models were fitted on
    score, p_value, error_probability : (n,) arrays
    rank : (n,) array, 1 = most suspicious
    rho, response_error_probability, response_p_value : (n, d) arrays
    judges : list of pairs (places in these arrays, conditionals by name)
        Which models judged which rows; those of an audit never saw the rows they judge.
    known : (n, d) boolean array, or None where no response is missing
    """

    row: NDArray[np.intp]
    X: Matrix
    codes: Codes
    encoding: ResponseEncoding
    typical: Typical
    score: Floats
    p_value: Floats
    error_probability: Floats
    rank: NDArray[np.intp]
    rho: Floats
    response_error_probability: Floats
    response_p_value: Floats
    judges: Sequence[tuple[NDArray[np.intp], Mapping[str, Conditionals]]]
    known: NDArray[np.bool_] | None = None


# Makes one finding of each judged row; keyword options say how features and rows are called.
Explainer: TypeAlias = "Callable[..., Any]"

_explainers: list[Explainer] = []


def register_explainer(explainer: Explainer) -> None:
    """Make `explainer` the one that detectors ask."""
    _explainers[:] = [explainer]


def explain(judged: Judged, **options: Any) -> Any:
    """Ask the registered explainer: `mcode.explain.explain_rows`, whose room registers itself when it is imported."""
    if not _explainers:
        importlib.import_module("mcode.explain")
    return _explainers[0](judged, **options)


def known_of(codes: Codes) -> NDArray[np.bool_] | None:
    """Return which responses are known, or None where all are."""
    known = codes != MISSING
    return None if known.all() else known


def judges_of_folds(
    space: RhoSpace, rows: NDArray[np.intp]
) -> list[tuple[NDArray[np.intp], Mapping[str, Conditionals]]]:
    """Return the models that never saw the training rows `rows`, fold by fold."""
    fold_of_row = space.cross["model"].fold_of_row[rows]
    return [
        (np.flatnonzero(fold_of_row == f), {name: cross.folds[f] for name, cross in space.cross.items()})
        for f in np.unique(fold_of_row)
    ]


def judges_of_all(space: RhoSpace, n: int) -> list[tuple[NDArray[np.intp], Mapping[str, Conditionals]]]:
    """Return the models fitted on all training rows, as the judges of n other rows."""
    fitted = {name: model.conditionals_ for name, model in space.models.items() if model.conditionals_ is not None}
    return [(np.arange(n), fitted)]
