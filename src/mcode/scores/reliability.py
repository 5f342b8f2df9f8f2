"""Surprises weighted by how far each response's model can be trusted.

The idea of weighting the components of a decomposed model by their quality, globally or around the row at hand, is that
of Hong & Hauskrecht (arXiv 1612.07374); the formulas here are our own.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from mcode._arrays import Floats
from mcode.errors import InputError, ParameterError, UnknownNameError
from mcode.models.panel import Panel

SCOPES = ("global", "local")


class ReliabilityScore(BaseEstimator):
    """Sum of the surprises of a row, each weighted by the quality of the model that is surprised.

    score(i) = sum_j w_ij * -log rho_ij. The quality of response j is the share of its squared error that the model
    removes, q_j = max(0, 1 - sum (1 - rho_ij)^2 / sum (y_ij - base rate)^2) over reference rows that the model did not
    see. With scope="global", w_ij = q_j. With "local" the sums run over the K reference rows whose contexts are most
    alike, and the result is drawn towards the global one: w_ij = (K q_j(x_i) + shrink q_j) / (K + shrink). Contexts are
    alike when binary relevance expects the same responses of them.

    Parameters
    ----------
    scope : "global" or "local", default="global"
    neighbours : int, default=50
        K of the local weights.
    shrink : float, default=20.0
        How many rows the global weight counts for.

    Attributes
    ----------
    reliability_ : (d,) array, q_j: alarms on a response of small q_j rest on little

    Examples
    --------
    >>> Y = np.array([[0, 0], [1, 1]], dtype=np.uint8)
    >>> panel = Panel(Y, {"model": np.log([[0.9, 0.5], [0.9, 0.5]])})
    >>> ReliabilityScore().fit(panel).reliability_.round(2)  # the second response is guessed
    array([0.96, 0.  ])
    """

    takes_panel = True

    def __init__(
        self, scope: Literal["global", "local"] = "global", *, neighbours: int = 50, shrink: float = 20.0
    ) -> None:
        self.scope = scope
        self.neighbours = neighbours
        self.shrink = shrink

    @property
    def needs(self) -> tuple[str, ...]:
        """The companion models that are looked at."""
        return ("br",) if self.scope == "local" else ()

    def fit(self, panel: Panel) -> Self:
        """Measure the quality of each response on rows that the models did not see."""
        if self.scope not in SCOPES:
            raise UnknownNameError("scope", self.scope, SCOPES)
        if not isinstance(panel, Panel):
            raise InputError("M", "it is a plain matrix", "this score needs a Panel; use it inside MCODE or audit")
        if not (isinstance(self.neighbours, int | np.integer) and self.neighbours >= 1):
            raise ParameterError("neighbours", self.neighbours, "a whole number of at least 1")
        if panel.n_values is not None and self.scope == "local":
            raise InputError(
                "Y", "some of its responses have more than two values", "local weights need two; take scope='global'"
            )
        present = panel.Y.astype(np.float64)
        self.left_ = (1.0 - panel.rho) ** 2
        self.there_ = (present - present.mean(axis=0)) ** 2
        for j, k in enumerate(panel.n_values or ()):
            if k > 2:  # what is left to explain where the shares of the values are all that is known
                share = np.bincount(panel.Y[:, j], minlength=k) / len(present)
                self.there_[:, j] = (1.0 - share[panel.Y[:, j]]) ** 2
        self.reliability_ = _quality(self.left_.sum(axis=0), self.there_.sum(axis=0))
        if self.scope == "local":
            self.search_ = NearestNeighbors(n_neighbors=min(self.neighbours, len(present)), algorithm="brute").fit(
                _expected(panel)
            )
        return self

    def outlier_score(self, panel: Panel) -> Floats:
        """Return the weighted sum of each row."""
        check_is_fitted(self, "reliability_")
        return np.asarray((self.weights(panel) * -panel.views["model"]).sum(axis=1))

    def fit_outlier_score(self, panel: Panel) -> Floats:
        """Fit to the rows of `panel` and return their own scores."""
        return self.fit(panel).outlier_score(panel)

    def weights(self, panel: Panel) -> Floats:
        """Return the weight of each response in each row, shape (n, d)."""
        if self.scope == "global":
            return np.broadcast_to(self.reliability_, panel.Y.shape)
        out = np.empty(panel.Y.shape)
        near = self.search_.kneighbors(_expected(panel), return_distance=False)
        k = near.shape[1]
        for i, rows in enumerate(near):
            local = _quality(self.left_[rows].sum(axis=0), self.there_[rows].sum(axis=0))
            out[i] = (k * local + self.shrink * self.reliability_) / (k + self.shrink)
        return out


def _quality(left: Floats, there: Floats) -> Floats:
    return np.asarray(np.clip(1.0 - left / np.maximum(there, 1e-12), 0.0, 1.0))


def _expected(panel: Panel) -> Floats:
    """Return P(y_j = 1 | x) of each response by binary relevance, whatever was observed."""
    rho = np.exp(panel.views["br"])
    return np.where(panel.Y == 1, rho, 1.0 - rho)
