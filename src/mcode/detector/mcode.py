"""The detector of the paper, and beyond it."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags, TransformerTags

from mcode._arrays import Floats, Matrix, TableLike
from mcode.detector.base import DetectorBase, Reference
from mcode.detector.elsewhere import anywhere
from mcode.detector.judged import Judged, Typical, explain, judges_of_all
from mcode.detector.reading import (
    apply_score,
    assumed_error_rate,
    check_error_rate,
    companions_of,
    fit_score,
    posterior,
    ratio_score,
    response_blame,
)
from mcode.errors import InputError
from mcode.models.conditional import ConditionalModel
from mcode.models.encoding import Codes
from mcode.models.folds import check_folds, stratified_folds
from mcode.models.names import as_model
from mcode.models.panel import Panel, Reread
from mcode.ranking import conformal_p_value, own_p_value
from mcode.scores.names import as_score
from mcode.spaces.rho import RhoSpace


class MCODE(DetectorBase):
    """Find rows whose responses are unusual given their context (Hong & Hauskrecht 2015).

    Fitted on past rows, it scores new ones: (X, Y) -> rho, the probability of each observed response given the context
    and the other responses -> one score per row -> its rank among reference rows. The rows it was fitted on look more
    ordinary to it than they are, since its models have seen them: `audit` is for these.

    Parameters
    ----------
    model : "dbr", "chain", "br", "tree", "chain-ensemble", "mixture" or a ConditionalModel, default="dbr"
        How the responses depend on the context and on each other.
    score : "learned", "noise", "complement", "norm", "robust", "lof", "ocsvm", a score, or a scikit-learn or PyOD
        detector, default="learned"
    reference : "cross-fit", "holdout" or "batch", default="cross-fit"
        Where the score learns what is normal: from the training rows, each read by models that never saw it; from a
        half of them that the model does not see (the paper's way for one-class scores); or from the rows being scored
        (the paper's way for robust distance and LOF). Except with "batch", a row's score does not depend on the rows it
        is scored with.
    folds : int, default=5
        Folds of the cross-fit, which are also those of the search for the penalty.
    error_rate : "auto" or float, default="auto"
        Share of wrong rows that error probabilities assume; "auto" is what the learned score finds in the reference
        rows, and 2 % with other scores.
    alarm_rate : float, default=0.01
        The share of normal rows that `predict` may call outliers.
    random_state : int, default=0
        Seed of folds and of halves. (A learned score has a seed of its own.)

    Attributes
    ----------
    model_ : the fitted ConditionalModel
    score_ : the fitted score
    error_rate_ : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] > 0])
    >>> detector = MCODE().fit(X, Y)
    >>> new_X, new_Y = np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([[1, 1, 1], [1, 0, 1]])
    >>> detector.predict(new_X, new_Y)
    array([ 1, -1])
    >>> detector.response_error_probability(new_X, new_Y)[1].argmax()
    np.int64(1)
    """

    def __init__(
        self,
        model: str | ConditionalModel = "dbr",
        score: Any = "learned",
        *,
        reference: Reference = "cross-fit",
        folds: int = 5,
        error_rate: Literal["auto"] | float = "auto",
        alarm_rate: float = 0.01,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.score = score
        self.reference = reference
        self.folds = folds
        self.error_rate = error_rate
        self.alarm_rate = alarm_rate
        self.random_state = random_state

    accepts_missing = True

    def __sklearn_tags__(self) -> Tags:
        """Say what is accepted, and that rows are transformed: into rho."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    @anywhere
    def fit(self, X: TableLike, Y: TableLike) -> Self:
        """Learn from past rows: context X of shape (n, m), responses Y of shape (n, d), assumed mostly right."""
        features, codes = self._open(X, Y)
        check_error_rate(self.error_rate)
        check_folds(self.folds)
        self.score_ = as_score(self.score)
        self.space_ = RhoSpace(as_model(self.model), companions_of(self.score_), self.n_values_)
        if self.reference == "batch":
            self.space_.fit(features, codes, None, final=True)
            self.reference_score_ = None
        else:
            panel, reread, folds = self._read_reference(features, codes)
            self.reference_score_ = fit_score(self.score_, panel, reread, folds)
            self._calibrate(panel)
        self.model_ = self.space_.models["model"]
        self.typical_ = Typical.of(features, codes, self.n_values_)
        return self

    def _read_reference(self, X: Matrix, Y: Codes) -> tuple[Panel, Reread, NDArray[np.intp] | None]:
        """Fit the models; read the reference rows by models that did not see them."""
        rng = np.random.default_rng(self.random_state)
        if self.reference == "holdout":
            if len(Y) < 2 * self.folds:
                allowed = (
                    f"half of them are held out, and {self.folds} folds of the others need {2 * self.folds} in all"
                )
                raise InputError("X", f"it has {len(Y)} row(s) (n_samples={len(Y)})", allowed)
            half = stratified_folds(Y, 2, rng)
            mine, held = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
            self.space_.fit(X[mine], Y[mine], None, final=True)
            Xh = X[held]
            return self.space_.panel(Xh, Y[held]), lambda Yc, rows: self.space_.panel(Xh[rows], Yc), None
        folds = stratified_folds(Y, self.folds, rng)
        self.space_.fit(X, Y, folds, final=True)
        out_of_fold = self.space_.out_of_fold
        return out_of_fold(X, Y), lambda Yc, rows: out_of_fold(X[rows], Yc, rows), folds

    def _calibrate(self, panel: Panel) -> None:
        """Learn from the reference rows the share of wrong rows and what each response's rho is like."""
        self.ratio_score_ = ratio_score(self.score_, panel)
        self.error_rate_ = assumed_error_rate(self.error_rate, self.ratio_score_)
        self.reference_log_rho_ = np.sort(panel.views["model"], axis=0)

    def _outlier_score(self, X: Matrix, Y: Codes) -> Floats:
        panel = self.space_.panel(X, Y)
        if self.reference == "batch":
            return fit_score(self.score_, panel, lambda Yc, rows: self.space_.panel(X[rows], Yc), None)
        return apply_score(self.score_, panel)

    @anywhere
    def transform(self, X: TableLike, Y: TableLike) -> Floats:
        """Return rho, the probability of each observed response, shape (n, d): the paper's equation (5)."""
        features, codes = self._check(X, Y)
        return self.space_.panel(features, codes).rho

    @anywhere
    def error_probability(self, X: TableLike, Y: TableLike) -> Floats:
        """Return the probability that each row is wrong, shape (n,).

        sigmoid(logit(error_rate_) + log likelihood ratio); a score that is no likelihood ratio borrows that of
        `NoiseScore`.
        """
        return self._errors(X, Y)[0]

    @anywhere
    def response_error_probability(self, X: TableLike, Y: TableLike) -> Floats:
        """Return the probability that each response is wrong, shape (n, d)."""
        row, blame = self._errors(X, Y)
        return row[:, None] * blame

    @anywhere
    def response_p_value(self, X: TableLike, Y: TableLike) -> Floats:
        """Return the conformal p-value of each response, shape (n, d): small = rarely was rho so small there."""
        features, codes = self._check(X, Y)
        log_rho = self.space_.panel(features, codes).views["model"]
        reference = log_rho if self.reference == "batch" else self.reference_log_rho_
        columns = [conformal_p_value(-log_rho[:, j], -reference[:, j]) for j in range(log_rho.shape[1])]
        return np.column_stack(columns)

    def _errors(self, X: TableLike, Y: TableLike) -> tuple[Floats, Floats]:
        features, codes = self._check(X, Y)
        panel = self.space_.panel(features, codes)
        if self.reference == "batch":
            fit_score(self.score_, panel, lambda Yc, rows: self.space_.panel(features[rows], Yc), None)
            self._calibrate(panel)
        row = posterior(self.ratio_score_.log_likelihood_ratio(panel), self.error_rate_)
        return row, response_blame(self.ratio_score_, panel)

    @anywhere
    def explain(self, X: TableLike, Y: TableLike, **options: Any) -> Any:
        """Return a `Finding` for each row: which response, why, and what it should have been.

        Parameters
        ----------
        X, Y : context and responses
        features : sequence of m descriptions, optional
            Where each feature comes from: (source column, category or None), or the features of a `Dataset`.
        ids : identifiers of the rows, optional
        """
        features, codes = self._check(X, Y)
        scores = self._outlier_score(features, codes)
        row, blame = self._errors(X, Y)
        order = np.argsort(-scores, kind="stable")
        rank = np.empty(len(scores), np.intp)
        rank[order] = np.arange(1, len(scores) + 1)
        panel = self.space_.panel(features, codes)
        judged = Judged(
            row=np.arange(len(scores)),
            X=features,
            codes=panel.Y,
            encoding=self.encoding_,
            typical=self.typical_,
            score=scores,
            p_value=own_p_value(scores) if self.reference_score_ is None else self._p_value_of(scores),
            error_probability=row,
            rank=rank,
            rho=panel.rho,
            response_error_probability=row[:, None] * blame,
            response_p_value=self.response_p_value(X, Y),
            judges=judges_of_all(self.space_, len(scores)),
            known=panel.known,
        )
        return explain(judged, **options)
