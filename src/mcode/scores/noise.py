"""Likelihood ratios against stated kinds of error, in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mcode._arrays import Floats, TableLike, check_matrix, dense
from mcode.corruption import ErrorKind, Mismatch, Noise, log_sum_exp
from mcode.errors import InputError, ParameterError
from mcode.models.panel import Panel, Views

Errors = Sequence[ErrorKind] | Mapping[ErrorKind, float]

DEFAULT_ERRORS: dict[ErrorKind, float] = {Noise(0.01): 0.9, Mismatch(): 0.1}


def weighted(errors: Errors | None, default: Mapping[ErrorKind, float]) -> tuple[list[ErrorKind], Floats]:
    """Return kinds of error and their shares, which sum to 1; a plain list has equal shares."""
    if errors is None:
        errors = default
    kinds = list(errors)
    if not kinds or not all(isinstance(kind, ErrorKind) for kind in kinds):
        raise ParameterError("errors", errors, "a list of kinds of error such as [Flip(), Mismatch()], or their shares")
    shares = np.array(list(errors.values()) if isinstance(errors, Mapping) else np.ones(len(kinds)), dtype=np.float64)
    if not (np.isfinite(shares).all() and (shares > 0).all()):
        raise ParameterError("errors", errors, "kinds of error with positive shares")
    return kinds, shares / shares.sum()


class NoiseScore(BaseEstimator):
    """Log likelihood ratio of "an error happened" against "y was drawn given x", by closed form.

    score(i) = log sum_h share_h * LR_h(i) over the stated kinds of error h (`mcode.corruption`). No training, and every
    term can be explained. Larger = more outlying.

    Parameters
    ----------
    errors : list of ErrorKind, or mapping of ErrorKind to its share, or None
        None is 90 % Noise(0.01), 10 % Mismatch(). On a plain matrix of rho kinds that need more than one model, such
        as Mismatch, cannot be used: give errors=[Noise(0.01)] there, or use the score inside `MCODE`.

    Examples
    --------
    >>> from mcode.corruption import Noise
    >>> NoiseScore([Noise(1.0)]).fit([[0.9, 0.8]]).outlier_score([[0.5, 0.5]]).round(3)
    array([1.386])
    """

    def __init__(self, errors: Errors | None = None) -> None:
        self.errors = errors

    @property
    def needs(self) -> tuple[str, ...]:
        """The companion models whose rho the stated kinds need."""
        kinds, _ = weighted(self.errors, DEFAULT_ERRORS)
        return tuple(sorted({view for kind in kinds for view in kind.needs} - {"model"}))

    def fit(self, M: TableLike, y: object = None) -> Self:
        """Check the kinds of error; there is nothing to learn."""
        self.kinds_, self.shares_ = weighted(self.errors, DEFAULT_ERRORS)
        self._views(M)
        return self

    def outlier_score(self, M: TableLike) -> Floats:
        """Return the log likelihood ratio of each row of a matrix of rho, or of a `Panel`."""
        check_is_fitted(self, "kinds_")
        views, values = self._views(M), _values(M)
        ratios = [kind.log_ratio(views, *values) for kind in self.kinds_]
        return log_sum_exp(np.column_stack(ratios) + np.log(self.shares_))

    def log_likelihood_ratio(self, M: TableLike) -> Floats:
        """Return the score with every kind normalised to a probability: what an error probability is made of."""
        return log_sum_exp(self._log_ratios(self._views(M), _values(M)))

    def response_blame(self, M: TableLike) -> Floats:
        """Return P(response j is wrong | an error happened in the row), shape (n, d)."""
        views, values = self._views(M), _values(M)
        ratios = self._log_ratios(views, values)
        posterior = np.exp(ratios - log_sum_exp(ratios)[:, None])
        blame = [posterior[:, [h]] * kind.share_of_blame(views, *values) for h, kind in enumerate(self.kinds_)]
        return np.asarray(np.sum(blame, axis=0))

    def _log_ratios(self, views: Views, values: tuple[tuple[int, ...], ...]) -> Floats:
        d = views["model"].shape[1]
        ratios = [kind.log_ratio(views, *values) + kind.log_normaliser(d) for kind in self.kinds_]
        return np.column_stack(ratios) + np.log(self.shares_)

    def _views(self, M: Any) -> Views:
        if isinstance(M, Panel):
            return M.views
        missing = self.needs
        if missing:
            raise InputError(
                "M",
                f"it is one matrix of rho, and the stated errors also need {', '.join(missing)}",
                "give errors=[Noise(0.01)], or use the score inside MCODE",
            )
        rho = dense(check_matrix(M, "M", min_columns=1))
        if ((rho <= 0) | (rho > 1)).any():
            raise InputError("M", "it holds values outside (0, 1]", "give probabilities of the observed responses")
        return {"model": np.log(rho.astype(np.float64))}


def _values(M: Any) -> tuple[tuple[int, ...], ...]:
    """Return what a kind is told of the numbers of values: nothing where every response has two."""
    return (M.n_values,) if isinstance(M, Panel) and M.n_values is not None else ()
