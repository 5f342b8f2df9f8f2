"""How likely a whole response vector is given its context, for many vectors of the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.models.encoding import Codes
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.solvers.kernels import log_likelihood
from mcode.spaces.rho import floored

# The detector's own model and a chain. Measured on yeast and bibtex, their mean names the wrong response of a row more
# often than either alone (benchmarks/blame.py): the first sees most, the second is a proper joint.
LOOKED_AT = ("model", "chain")
CELLS_AT_ONCE = 4_000_000
CELLS_COMPARED = 6  # the most blamed responses of a row, of which the one whose change explains most is named first


class Whole:
    """log P(y | x) of any y for some rows; what depends on the context alone is computed once.

    Parameters
    ----------
    models : conditionals by name; "model" must be there, "chain" is used where it is
    X : (n, m) context of the rows
    """

    def __init__(self, models: Mapping[str, Conditionals], X: Matrix) -> None:
        self._views = {name: _View(models[name], X) for name in LOOKED_AT if name in models}
        self.X = X

    def log_proba(self, rows: NDArray[np.intp], Y: Codes) -> Floats:
        """Return the mean over the models of log P(y | x), or of the log pseudo-likelihood, shape (len(rows),)."""
        return np.asarray(np.mean([view.log_rho(rows, Y).sum(axis=1) for view in self._views.values()], axis=0))

    def joint_log_proba(self, rows: NDArray[np.intp], Y: Codes) -> Floats:
        """Return log P(y | x) by the chain where there is one, else by the detector's own model."""
        view = self._views.get("chain", self._views["model"])
        return np.asarray(view.log_rho(rows, Y).sum(axis=1))

    def gain(self, Y: Codes, candidates: NDArray[np.intp]) -> Floats:
        """Return by how much log P(y | x) rises when one response is changed, for some responses of every row.

        Parameters
        ----------
        Y : (n, d) codes
        candidates : (n, k) array of responses, others for each row

        Returns
        -------
        (n, k) array
        """
        n, k = candidates.shape
        out = np.empty((n, k))
        at_once = max(1, CELLS_AT_ONCE // (k * Y.shape[1]))
        for start in range(0, n, at_once):
            rows = np.arange(start, min(n, start + at_once))
            gains = [view.gain(rows, Y[rows], candidates[rows]) for view in self._views.values()]
            out[rows] = np.mean(gains, axis=0)
        return out


class _View:
    """One model: log rho of given responses of given rows."""

    def __init__(self, conditionals: Conditionals, X: Matrix) -> None:
        self.conditionals, self.X = conditionals, X
        self.context: NDArray[Any] | None = None
        if isinstance(conditionals, LinearConditionals):
            self._responses = conditionals.responses
            self.context = conditionals.logits(X, np.zeros((X.shape[0], len(conditionals.intercept)), np.uint8))

    def log_rho(self, rows: NDArray[np.intp], Y: Codes) -> Floats:
        if self.context is None:
            return floored(self.conditionals.log_proba(self.X[rows], Y))
        eta = self.context[rows]
        if self._responses is not None:
            eta += Y.astype(eta.dtype) @ self._responses
        return _observed(eta, Y)

    def gain(self, rows: NDArray[np.intp], Y: Codes, candidates: NDArray[np.intp]) -> Floats:
        n, k = candidates.shape
        owner, response = np.repeat(np.arange(n), k), candidates.ravel()
        changed = Y[owner]
        changed[np.arange(n * k), response] ^= 1
        if self.context is None or self._responses is None:
            before, after = self.log_rho(rows, Y), self.log_rho(rows[owner], changed)
        else:  # a changed response adds one row of coefficients: no product with all of them for each candidate
            eta = self.context[rows] + Y.astype(self.context.dtype) @ self._responses
            step = (1 - 2 * Y[owner, response].astype(np.int8))[:, None] * self._responses[response]
            before, after = _observed(eta, Y), _observed((eta[owner] + step).astype(eta.dtype), changed)
        return np.asarray(after.sum(axis=1).reshape(n, k) - before.sum(axis=1)[:, None])


def _observed(eta: NDArray[Any], Y: Codes) -> Floats:
    out = np.empty(Y.shape)
    log_likelihood(eta, Y, out)
    return floored(out)


def named_first(whole: Whole, Y: Codes, blame: Floats, n_candidates: int = CELLS_COMPARED) -> Floats:
    """Return the blame of each response, handed out so that the one whose change explains most has most of it.

    A wrong response also makes its neighbours look odd. The `n_candidates` most blamed responses of each row keep
    their set of values, given in the order of the gain in log P(y | x) when each is changed.
    """
    k = min(n_candidates, Y.shape[1])
    candidates = np.argsort(-blame, axis=1, kind="stable")[:, :k]
    by_gain = np.argsort(-whole.gain(Y, candidates), axis=1, kind="stable")
    values = np.take_along_axis(blame, candidates, axis=1)
    out = blame.copy()
    np.put_along_axis(out, np.take_along_axis(candidates, by_gain, axis=1), values, axis=1)
    return out
