"""The conditional rival: anomaly detection by two mapped mixtures (Song et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from mcode._arrays import Floats, Matrix, TableLike
from mcode.detector.base import DetectorBase, Reference
from mcode.errors import ParameterError, UnknownNameError
from mcode.models.components import Covariance
from mcode.models.encoding import Codes
from mcode.models.folds import stratified_folds
from mcode.models.indicators import indicators
from mcode.models.song import MappedMixtures, Plan, ResponseKind, Variant, fit_song


@dataclass(frozen=True)
class Axes:
    """Rows in a few columns of unit variance: principal axes where there are more columns than wanted."""

    center: Floats
    basis: Floats | None
    scale: Floats

    @classmethod
    def of(cls, M: Matrix, most: int, seed: int) -> Axes:
        """Measure a table; a sparse one is not centred before its axes are sought."""
        if sp.issparse(M):
            center, spread = np.zeros(M.shape[1]), np.ones(M.shape[1])
        else:
            center = M.mean(axis=0, dtype=np.float64)
            spread = _spread(M - center)
        basis = None
        if M.shape[1] > most:
            rows = M if sp.issparse(M) else (M - center) / spread
            n_axes = min(most, *M.shape)
            basis = randomized_svd(rows, n_axes, random_state=seed)[2].T / spread[:, None]
        draft = cls(center, basis, np.ones(M.shape[1] if basis is None else basis.shape[1]))
        return cls(center, basis, _spread(draft.apply(M)))

    def apply(self, M: Matrix) -> Floats:
        """Return the rows in these axes."""
        if sp.issparse(M):
            rows = np.asarray(M.toarray() if self.basis is None else M @ self.basis, dtype=np.float64)
        else:
            rows = np.asarray(M, dtype=np.float64) - self.center
            rows = rows if self.basis is None else rows @ self.basis
        return np.asarray(rows / self.scale)


def _spread(rows: Any) -> Floats:
    deviation = np.asarray(rows.std(axis=0, dtype=np.float64))
    return np.where(deviation > 1e-12, deviation, 1.0)


@dataclass(frozen=True)
class SongDensity:
    """The fitted density f(y | x), and how context and responses are brought to it."""

    axes: Axes
    response_axes: Axes | None  # None where responses are taken as 0 and 1
    mixtures: MappedMixtures

    def outlier_score(self, X: Matrix, Y: Codes) -> Floats:
        """Return -log f(y | x) of each row."""
        return -self.mixtures.log_density(self.axes.apply(X), _responses(self.response_axes, Y))


def _responses(axes: Axes | None, Y: Codes) -> Floats:
    cells = Y.astype(np.float64)
    return cells if axes is None else axes.apply(cells)


class SongCAD(DetectorBase):
    """Conditional anomaly detection by mapped Gaussian mixtures (Song, Wu, Jermaine & Ranka 2007).

    A mixture of contexts, a mixture of responses, and the probability with which each context component goes with each
    response component; a row's score is -log f(y | x). The one earlier method that, like `MCODE`, tells context and
    responses apart.

    Parameters
    ----------
    variant : "full", "split" or "direct", default="full"
        "full" fits all parameters together; "split" fits both mixtures apart and then the mapping alone; "direct" fits
        one mixture to context and responses together, takes its marginals, and then fits the mapping alone.
    context_components, response_components : int, default=10
        Components of the two mixtures; "direct" has as many of both, `context_components`.
    covariance : "diagonal" or "full", default="diagonal"
    responses : "bernoulli" or "gaussian", default="bernoulli"
        Components of the responses. The paper's are Gaussian; for responses of two values Bernoulli ones are natural.
    max_axes : int, default=50
        A context with more columns is reduced to this many principal axes.
    restarts : int, default=3
        Fits from different starts, of which the likeliest is kept.
    max_iter : int, default=200
        The most iterations of a fit.
    tolerance : float, default=1e-4
        A fit ends when an iteration adds less than this to the mean log-likelihood of a row.
    reference : "cross-fit", "holdout" or "batch", default="cross-fit"
        Whose scores are taken as normal: training rows scored by densities fitted without them; a half of the training
        rows that the density does not see; or the rows being scored, to which it is fitted then.
    folds : int, default=5
        Folds of the cross-fit.
    alarm_rate : float, default=0.01
        The share of normal rows that `predict` may call outliers.
    random_state : int, default=0
        Seed of starts, folds and halves.

    Attributes
    ----------
    score_ : the fitted density
    log_likelihood_ : list of float, after each iteration of the fit that was kept

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); Y = X > 0
    >>> song = SongCAD(context_components=4, response_components=4).fit(X, Y)
    >>> normal, odd = song.outlier_score([[2.0, 2.0], [2.0, 2.0]], [[1, 1], [0, 0]])
    >>> bool(odd > normal)
    True
    """

    def __init__(
        self,
        variant: Variant = "full",
        *,
        context_components: int = 10,
        response_components: int = 10,
        covariance: Covariance = "diagonal",
        responses: ResponseKind = "bernoulli",
        max_axes: int = 50,
        restarts: int = 3,
        max_iter: int = 200,
        tolerance: float = 1e-4,
        reference: Reference = "cross-fit",
        folds: int = 5,
        alarm_rate: float = 0.01,
        random_state: int = 0,
    ) -> None:
        self.variant = variant
        self.context_components = context_components
        self.response_components = response_components
        self.covariance = covariance
        self.responses = responses
        self.max_axes = max_axes
        self.restarts = restarts
        self.max_iter = max_iter
        self.tolerance = tolerance
        self.reference = reference
        self.folds = folds
        self.alarm_rate = alarm_rate
        self.random_state = random_state

    def fit(self, X: TableLike, Y: TableLike) -> Self:
        """Learn from past rows, assumed mostly right."""
        features, codes = self._open(X, Y)
        rng = np.random.default_rng(self.random_state)
        self.reference_score_ = None
        codes = indicators(codes, self.n_values_)
        if self.reference == "holdout":
            half = stratified_folds(codes, 2, rng)
            mine, held = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
            self.score_ = self._density(features[mine], codes[mine])
            self.reference_score_ = self.score_.outlier_score(features[held], codes[held])
            return self._remember()
        if self.reference == "cross-fit":
            fold = stratified_folds(codes, self.folds, rng)
            self.reference_score_ = np.empty(len(codes))
            for f in range(self.folds):
                mine, held = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
                density = self._density(features[mine], codes[mine])
                self.reference_score_[held] = density.outlier_score(features[held], codes[held])
        self.score_ = self._density(features, codes)
        return self._remember()

    def _remember(self) -> Self:
        self.log_likelihood_ = self.score_.mixtures.history
        return self

    def _density(self, X: Matrix, Y: Codes) -> SongDensity:
        axes = Axes.of(X, self.max_axes, self.random_state)
        response_axes = None if self.responses == "bernoulli" else Axes.of(Y.astype(np.float64), Y.shape[1], 0)
        k = min(self.context_components, X.shape[0]), min(self.response_components, X.shape[0])
        plan = Plan(self.variant, *k, self.covariance, self.responses, self.restarts, self.max_iter, self.tolerance)
        rng = np.random.default_rng(self.random_state)
        return SongDensity(axes, response_axes, fit_song(axes.apply(X), _responses(response_axes, Y), plan, rng))

    def _outlier_score(self, X: Matrix, Y: Codes) -> Floats:
        Y = indicators(Y, self.n_values_)
        return (self._density(X, Y) if self.reference == "batch" else self.score_).outlier_score(X, Y)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, allowed in (
            ("variant", ("full", "split", "direct")),
            ("covariance", ("diagonal", "full")),
            ("responses", ("bernoulli", "gaussian")),
        ):
            if getattr(self, name) not in allowed:
                raise UnknownNameError(name, getattr(self, name), allowed, or_instance=False)
        for name in ("context_components", "response_components", "max_axes", "restarts", "max_iter"):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= 1):
                raise ParameterError(name, value, "a whole number of at least 1")
