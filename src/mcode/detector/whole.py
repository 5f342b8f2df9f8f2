"""How likely a whole response vector is given its context, for many vectors of the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.models.categorical import CategoricalConditionals, likeliest_values, n_values_of
from mcode.models.encoding import Codes
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.solvers.kernels import log_likelihood
from mcode.spaces.rho import floored

# The detector's own model and a chain. Measured on yeast and bibtex, their mean names the wrong response of a row more
# often than either alone (benchmarks/blame.py): the first sees most, the second is a proper joint.
LOOKED_AT = ("model", "chain")


class Whole:
    """log P(y | x) of any y for some rows; what depends on the context alone is computed once.

    Parameters
    ----------
    models : conditionals by name; "model" must be there, "chain" is used where it is
    X : (n, m) context of the rows
    """

    def __init__(self, models: Mapping[str, Conditionals], X: Matrix) -> None:
        self._views = {name: _View(models[name], X) for name in LOOKED_AT if name in models}
        self.X, self._model = X, models["model"]

    def other_values(self, rows: NDArray[np.intp], Y: Codes) -> Codes:
        """Return the likeliest other value of each response by the detector's own model, shape (len(rows), d)."""
        return likeliest_values(self._model, self.X[rows], Y, other=True)

    def likeliest_values(self, rows: NDArray[np.intp], Y: Codes) -> Codes:
        """Return the likeliest value of each response by that model, given the context and the others of Y.

        Y itself where all responses have two values: then it is what `other_values` leaves to be chosen.
        """
        if n_values_of(self._model) is None:
            return Y
        return likeliest_values(self._model, self.X[rows], Y)

    def log_proba(self, rows: NDArray[np.intp], Y: Codes) -> Floats:
        """Return the mean over the models of log P(y | x), or of the log pseudo-likelihood, shape (len(rows),)."""
        return np.asarray(np.mean([view.log_rho(rows, Y).sum(axis=1) for view in self._views.values()], axis=0))

    def joint_log_proba(self, rows: NDArray[np.intp], Y: Codes) -> Floats:
        """Return log P(y | x) by the chain where there is one, else by the detector's own model."""
        view = self._views.get("chain", self._views["model"])
        return np.asarray(view.log_rho(rows, Y).sum(axis=1))


class _View:
    """One model: log rho of given responses of given rows."""

    def __init__(self, conditionals: Conditionals, X: Matrix) -> None:
        self.conditionals, self.X = conditionals, X
        self.context: NDArray[Any] | None = None
        if isinstance(conditionals, CategoricalConditionals):
            self.context = conditionals.context_logits(X)
        if isinstance(conditionals, LinearConditionals):
            self._responses = conditionals.responses
            self.context = conditionals.logits(X, np.zeros((X.shape[0], len(conditionals.intercept)), np.uint8))

    def log_rho(self, rows: NDArray[np.intp], Y: Codes) -> Floats:
        if self.context is None:
            return floored(self.conditionals.log_proba(self.X[rows], Y))
        if isinstance(self.conditionals, CategoricalConditionals):
            eta = self.conditionals.add_responses(self.context[rows], Y)
            return floored(self.conditionals.observed(eta, Y))
        eta = self.context[rows]
        if self._responses is not None:
            eta += Y.astype(eta.dtype) @ self._responses
        return _observed(eta, Y)


def _observed(eta: NDArray[Any], Y: Codes) -> Floats:
    out = np.empty(Y.shape)
    log_likelihood(eta, Y, out)
    return floored(out)
