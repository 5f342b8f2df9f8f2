"""The paper's fifth score: one-class support vector machine."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.svm import OneClassSVM

from mcode._arrays import Floats, Matrix, dense
from mcode.errors import InputError, ParameterError
from mcode.scores.base import ScoreBase
from mcode.scores.distinct import DistinctRows, distinct_rows
from mcode.scores.kernel_features import NystroemFeatures, gaussian_kernel
from mcode.scores.linear_one_class import fit_linear_one_class
from mcode.scores.products import squared_lengths

_BLOCK = 4_096  # rows scored at once
_WIDTHS = {"wide": 0.1, "scale": 1.0}  # times the rule of scikit-learn
_TOLERANCE = 1e-5  # of LIBSVM: at its usual 1e-3 the order of the rows still shows in the scores


class OneClassScore(ScoreBase):
    """Depth outside the region that a one-class support vector machine learns, the paper's Score_5.

    score(i) = s - w'phi(v_i),  positive outside the region; with phi the features of the Gaussian kernel
    exp(-gamma |u - v|^2), and w, s the solution of

    minimise  |w|^2 / 2 - s + sum_i max(0, s - w'phi(v_i)) / (nu n).

    The paper scores w'phi - s, which is large for *normal* rows; the sign is turned here. Equal rows are merged and
    weighted. Up to `exact_limit` distinct rows the solution is exact (LIBSVM); above it, phi is replaced by Nystroem
    features and the cost is linear in the rows. `exact_` says which it was.

    Parameters
    ----------
    nu : float, default=0.01
        Share of the fitted rows that may lie outside, above 0 and below 1.
    gamma : float, "wide" or "scale", default="wide"
        Width of the kernel. "scale" is 1 / (m * variance of all values), with m columns, as in scikit-learn; "wide" is
        a tenth of it, which detected more in rho space and which Nystroem features follow closely (docs/scores.md).
    exact_limit : int, default=20000
        Number of distinct rows up to which the exact solution is computed.
    n_components : int, default=200
        Number of landmark rows of the Nystroem features.
    random_state : int, default=0
        Seed of the choice of landmarks. It does not depend on the order of the rows.

    Attributes
    ----------
    exact_ : bool
        Whether the exact solution was computed.
    gamma_ : float
        The width used.
    offset_ : float
        s, the value of w'phi on the border.
    n_distinct_ : int
        Number of distinct rows.

    References
    ----------
    Schoelkopf, Platt, Shawe-Taylor, Smola & Williamson 2001, "Estimating the support of a high-dimensional
    distribution"; Williams & Seeger 2001, "Using the Nystroem method to speed up kernel machines".

    Examples
    --------
    >>> M = np.linspace(0.0, 1.0, 50)[:, None]
    >>> score = OneClassScore(nu=0.1).fit(M)
    >>> score.outlier_score([[0.5], [3.0]]) > 0
    array([False,  True])
    """

    accepts_sparse: ClassVar[bool] = True

    def __init__(
        self,
        nu: float = 0.01,
        gamma: float | Literal["wide", "scale"] = "wide",
        exact_limit: int = 20_000,
        n_components: int = 200,
        random_state: int = 0,
    ) -> None:
        self.nu = nu
        self.gamma = gamma
        self.exact_limit = exact_limit
        self.n_components = n_components
        self.random_state = random_state

    def _fit(self, M: Matrix) -> None:
        self._check_parameters()
        if M.shape[0] < 2:
            raise InputError("M", "it has 1 row", "a region needs at least 2")
        table = distinct_rows(M)
        self.n_distinct_ = table.counts.size
        self.gamma_ = _WIDTHS[self.gamma] * _scale_rule(table) if isinstance(self.gamma, str) else float(self.gamma)
        self.exact_ = self.n_distinct_ <= self.exact_limit
        if self.exact_:
            self._fit_exact(table)
        else:
            self._fit_features(table)

    def _fit_exact(self, table: DistinctRows) -> None:
        machine: Any = OneClassSVM(nu=self.nu, gamma=self.gamma_, tol=_TOLERANCE).fit(
            table.rows, sample_weight=table.counts
        )
        # LIBSVM's multipliers have the sum nu * n; divided by it, scores of both ways are on one scale.
        total = float(machine.dual_coef_.sum())
        self.support_rows_: Matrix = table.rows[machine.support_]
        self.weights_ = np.asarray(dense(machine.dual_coef_), dtype=np.float64).ravel() / total
        self.offset_ = float(machine.offset_[0]) / total

    def _fit_features(self, table: DistinctRows) -> None:
        rng = np.random.default_rng(self.random_state)
        chosen = np.sort(rng.choice(self.n_distinct_, min(self.n_components, self.n_distinct_), replace=False))
        self.features_ = NystroemFeatures.of(table.rows[chosen], self.gamma_)
        F = self.features_.transform(table.rows, np.float32)
        self.weights_, self.offset_ = fit_linear_one_class(F, table.counts, self.nu)

    def _outlier_score(self, M: Matrix) -> Floats:
        blocks = [self._inside(M[at : at + _BLOCK]) for at in range(0, M.shape[0], _BLOCK)]
        return self.offset_ - np.concatenate(blocks)

    def _inside(self, M: Matrix) -> Floats:
        if not self.exact_:
            return np.asarray(self.features_.transform(_stored_like(M, self.features_.landmarks)) @ self.weights_)
        M = _stored_like(M, self.support_rows_)
        return gaussian_kernel(M, self.support_rows_, self.gamma_) @ self.weights_

    def _check_parameters(self) -> None:
        if not 0 < self.nu < 1:
            raise ParameterError("nu", self.nu, "above 0 and below 1")
        named = isinstance(self.gamma, str) and self.gamma in _WIDTHS
        if not named and not (isinstance(self.gamma, Real) and 0 < self.gamma < np.inf):
            raise ParameterError("gamma", self.gamma, "a number above 0, 'wide' or 'scale'")
        if self.n_components < 1:
            raise ParameterError("n_components", self.n_components, "at least 1")


def _stored_like(M: Matrix, other: Matrix) -> Matrix:
    if isinstance(other, np.ndarray):
        return np.asarray(dense(M), dtype=np.float64)
    return sp.csr_matrix(M, dtype=np.float64)


def _scale_rule(table: DistinctRows) -> float:
    """1 / (m * variance of all values); 1 where nothing varies, since any width is then as good."""
    share = table.counts / (table.total * table.rows.shape[1])
    mean = float((share @ table.rows).sum())
    if isinstance(table.rows, np.ndarray):
        variance = float(share @ np.square(table.rows - mean).sum(axis=1))
    else:
        variance = float(share @ squared_lengths(table.rows)) - mean**2
    return 1.0 / (table.rows.shape[1] * variance) if variance > 0 else 1.0
