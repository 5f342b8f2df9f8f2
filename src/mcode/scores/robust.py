"""The paper's second score: robust Mahalanobis distance."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from mcode._arrays import Floats, Matrix, dense
from mcode.errors import InputError, ParameterError
from mcode.scores.base import ScoreBase
from mcode.scores.columns import Columns
from mcode.scores.concentration import Concentrated, concentrate, consistency_factor, reweight
from mcode.scores.distinct import DistinctRows, distinct_rows
from mcode.scores.products import inner_products, squared_lengths
from mcode.scores.scatter import DualRows, DualScatter, PrimalRows, PrimalScatter, Shift
from mcode.scores.starts import dual_starts, primal_starts
from mcode.solvers.threads import one_blas_thread

_SMALL_WORK = 1e9  # rows * columns^2 up to which one BLAS thread is faster than several that wait for each other
_BLOCK = 2_000  # rows scored at once in the dual, where each costs as many numbers as there are support rows


class RobustScore(ScoreBase):
    """Squared robust Mahalanobis distance, the paper's Score_2.

    score(i) = (v_i - mu)' K^-1 (v_i - mu)

    with mu and K the centre and covariance of the half of the rows whose covariance has the smallest determinant (the
    minimum covariance determinant, MCD), then of all rows within the 97.5 % point of chi-square. The starts are
    deterministic: no seed, and the result does not depend on the order of the rows. Where the covariance of that half
    is singular or ill conditioned, which in rho space is the rule, it is mixed with the identity, on columns of unit
    standard deviation, until its condition number is `max_condition`. With more columns than distinct rows the same
    numbers come from the n x n Gram matrix, which also serves sparse input, and the second estimate is left out.

    The distance is two-sided: a response that is *more* certain than usual counts as well.

    Parameters
    ----------
    center : {"robust", "mean"}, default="robust"
        Distance from the robust centre, or from the plain mean of the rows, as the paper's formula has it.
    support_fraction : float, default=None
        Share of the rows that the covariance is taken from, above 0 and at most 1. None takes (n + m + 1) / 2 rows, at
        most three quarters of them.
    space : {"auto", "rho", "log"}, default="auto"
        Work on the values as they are, or on their logarithm. "auto" takes logarithms if all values that it is fitted
        on lie in (0, 1]; on real rho the logarithm detected more on every data set (see docs/scores.md).
    max_condition : float, default=50
        Largest condition number of K, above 1. Infinity never regularises and then needs a covariance of full rank.

    Attributes
    ----------
    ridge_ : float
        Share of the identity in K; 0 where K is the plain covariance.
    space_ : str
        What "auto" became.
    n_support_ : int
        Number of rows in the half sample.
    n_distinct_ : int
        Number of distinct rows.
    n_constant_ : int
        Number of columns without variation. A departure from such a value counts as one in the direction of least
        variance, in the median standard deviation of the other columns.
    n_steps_ : int
        Number of C-steps from the best start.
    dual_ : bool
        Whether the Gram matrix was used.

    References
    ----------
    Rousseeuw & Van Driessen 1999, "A fast algorithm for the minimum covariance determinant estimator"; Hubert,
    Rousseeuw & Verdonck 2012, "A deterministic algorithm for robust location and scatter"; Boudt, Rousseeuw, Vanduffel
    & Verdonck 2020, "The minimum regularized covariance determinant estimator".

    Examples
    --------
    >>> M = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.5], [9.0, 9.0]]
    >>> RobustScore().fit_outlier_score(M).argmax()
    np.int64(5)
    """

    accepts_sparse: ClassVar[bool] = True

    def __init__(
        self,
        center: Literal["robust", "mean"] = "robust",
        support_fraction: float | None = None,
        space: Literal["auto", "rho", "log"] = "auto",
        max_condition: float = 50.0,
    ) -> None:
        self.center = center
        self.support_fraction = support_fraction
        self.space = space
        self.max_condition = max_condition

    def _fit(self, M: Matrix) -> None:
        self._check_parameters()
        if M.shape[0] < 2:
            raise InputError("M", "it has 1 row", "a covariance needs at least 2")
        self.space_ = _resolved(self.space, M)
        table = distinct_rows(_in_space(M, self.space_))
        self.columns_ = Columns.of(table)
        n_columns = int(np.count_nonzero(self.columns_.varies))
        self.n_distinct_, self.n_constant_ = table.counts.size, M.shape[1] - n_columns
        self.n_support_ = _support_size(self.support_fraction, table.total, max(n_columns, 1))
        self.ridge_, self.n_steps_, self.dual_ = 0.0, 0, n_columns > self.n_distinct_
        self.scatter_: PrimalScatter | DualScatter | None = None
        if n_columns:
            small = table.counts.size * n_columns**2 < _SMALL_WORK
            with one_blas_thread() if small else nullcontext():
                found: Concentrated[PrimalScatter] | Concentrated[DualScatter] = (
                    self._fit_dual(table) if self.dual_ else self._fit_primal(table)
                )
            self.scatter_, self.n_steps_, self.ridge_ = found.scatter, found.n_steps, found.scatter.ridge

    def _fit_primal(self, table: DistinctRows) -> Concentrated[PrimalScatter]:
        rows = PrimalRows(np.asarray(dense(self.columns_.standardise(dense(table.rows)))), self.max_condition)
        inflation = consistency_factor(rows.n_columns, self.n_support_ / table.total)
        starts = primal_starts(rows.rows, table.counts, self.n_support_)
        found = reweight(rows, table.counts, concentrate(rows, table.counts, starts, inflation))
        if self.center == "mean":
            found = replace(
                found, scatter=replace(found.scatter, center=np.zeros(rows.n_columns))
            )  # columns have mean 0
        return found

    def _fit_dual(self, table: DistinctRows) -> Concentrated[DualScatter]:
        Z = self.columns_.standardise(dense(table.rows) if self.columns_.far_from_zero else table.rows)
        rows = DualRows(inner_products(Z, Z), Z.shape[1], self.max_condition)
        inflation = consistency_factor(Z.shape[1], self.n_support_ / table.total)
        # No reweighting: with fewer rows than columns distances are far from chi-square, as in MRCD.
        starts = dual_starts(rows.gram, table.counts, self.n_support_)
        found = concentrate(rows, table.counts, starts, inflation)
        self.support_rows_ = Z[found.scatter.used]
        self.delta_ = None
        if self.center == "mean":
            apart = table.counts / table.total - found.weights / found.weights.sum()
            self.delta_ = np.asarray(Z.T @ apart).ravel()
        return found

    def _outlier_score(self, M: Matrix) -> Floats:
        V = _in_space(M, self.space_)
        departure = self.columns_.squared_departure(V)
        if self.scatter_ is None:
            return departure
        apart = departure / self.scatter_.least_variance
        if isinstance(self.scatter_, PrimalScatter):
            return apart + self.scatter_.distances(np.asarray(self.columns_.standardise(dense(V)), dtype=np.float64))
        blocks = [self._dual_distances(V[at : at + _BLOCK]) for at in range(0, V.shape[0], _BLOCK)]
        return apart + np.concatenate(blocks)

    def _dual_distances(self, V: Matrix) -> Floats:
        assert isinstance(self.scatter_, DualScatter)
        Z = self.columns_.standardise(dense(V) if isinstance(self.support_rows_, np.ndarray) else sp.csr_matrix(V))
        products = inner_products(Z, self.support_rows_)
        return self.scatter_.distances(products, squared_lengths(Z), self._shift(Z))

    def _shift(self, Z: Matrix) -> Shift | None:
        if self.delta_ is None:
            return None
        assert isinstance(self.scatter_, DualScatter)
        with_support = np.asarray(self.support_rows_ @ self.delta_).ravel()
        of_center = float(self.scatter_.share @ with_support)
        square = float(self.delta_ @ self.delta_)
        return Shift(with_support - of_center, of_center, square, np.asarray(Z @ self.delta_).ravel())

    def _check_parameters(self) -> None:
        if self.center not in ("robust", "mean"):
            raise ParameterError("center", self.center, "'robust' or 'mean'")
        if self.space not in ("auto", "rho", "log"):
            raise ParameterError("space", self.space, "'auto', 'rho' or 'log'")
        if self.support_fraction is not None and not 0 < self.support_fraction <= 1:
            raise ParameterError("support_fraction", self.support_fraction, "above 0 and at most 1, or None")
        if not self.max_condition > 1:
            raise ParameterError("max_condition", self.max_condition, "a number above 1")


def _resolved(space: Literal["auto", "rho", "log"], M: Matrix) -> Literal["rho", "log"]:
    if space == "auto":
        return "log" if M.min() > 0 and M.max() <= 1 else "rho"
    return space


def _in_space(M: Matrix, space: Literal["rho", "log"]) -> Matrix:
    if space == "rho":
        return M
    values = np.asarray(dense(M), dtype=np.float64)
    if values.min() <= 0:
        row, column = (int(at) for at in np.argwhere(values <= 0)[0])
        raise InputError(
            "M",
            f"row {row}, column {column} is {values[row, column]:g}",
            "the log space needs values above 0: space='rho'",
        )
    return np.log(values)


def _support_size(fraction: float | None, n: int, n_columns: int) -> int:
    wanted = min((n + n_columns + 1) / 2, 0.75 * n) if fraction is None else fraction * n
    return min(n, max(2, int(np.ceil(wanted))))
