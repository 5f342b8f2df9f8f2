"""One table, every row scored by models that never saw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix, TableLike
from mcode._optional import require
from mcode.detector.elsewhere import room_of
from mcode.detector.judged import Judged, Typical, explain, judges_of_folds, known_of
from mcode.detector.reading import (
    assumed_error_rate,
    check_error_rate,
    companions_of,
    fit_score,
    posterior,
    ratio_score,
    response_blame,
)
from mcode.detector.redraw import ordinary_scores
from mcode.errors import InputError, ParameterError
from mcode.models.conditional import ConditionalModel, check_rows
from mcode.models.encoding import MISSING, Codes, ResponseEncoding, one_valued
from mcode.models.folds import default_folds, stratified_folds
from mcode.models.indicators import several
from mcode.models.names import as_model
from mcode.ranking import conformal_p_value, false_discovery_cut, is_share, own_p_value, posterior_cut
from mcode.scores.learned import LearnedScore
from mcode.scores.names import as_score
from mcode.spaces.rho import RhoSpace


@dataclass(frozen=True)
class Suggestion:
    """The most likely value of a response that is missing."""

    row: int
    response: str
    value: Any
    probability: float


@dataclass(frozen=True)
class Audit:
    """What an audit found: one entry per row, in the order of the table.

    Attributes
    ----------
    outlier_score : (n,) array, larger = more outlying
    error_probability : (n,) array: how likely each row is wrong
    rho : (n, d) array: probability of each observed response given the context and the other responses
    error_rate : float, the share of wrong rows that the probabilities assume
    one_valued : list of str: responses with one value only, scored by their base rate

    `p_value`, `response_error_probability` and `response_p_value` are computed when they are first asked for.
    """

    outlier_score: Floats
    error_probability: Floats
    rho: Floats
    error_rate: float
    one_valued: list[str]
    codes: Codes = field(repr=False)
    encoding: ResponseEncoding = field(repr=False)
    X: Matrix = field(repr=False)
    space: RhoSpace = field(repr=False)
    score: Any = field(repr=False)
    random_state: int = field(repr=False)

    @cached_property
    def p_value(self) -> Floats:
        """The share of ordinary rows that are at least as outlying, shape (n,).

        Ordinary rows are contexts of the table with responses drawn anew from the models.
        """
        rng = np.random.default_rng(self.random_state)
        return conformal_p_value(self.outlier_score, ordinary_scores(self.space, self.score, self.X, self.codes, rng))

    @cached_property
    def response_error_probability(self) -> Floats:
        """How likely each response is wrong, shape (n, d)."""
        return self._response_errors(np.arange(len(self.codes)))

    @cached_property
    def response_p_value(self) -> Floats:
        """The share of rows where the response was at least as improbable, shape (n, d)."""
        return np.column_stack([own_p_value(-column) for column in self.rho.T])

    def _response_errors(self, rows: NDArray[np.intp]) -> Floats:
        """Return how likely each response of some rows is wrong; no other row is read for it."""
        if "response_error_probability" in self.__dict__:
            return np.asarray(self.response_error_probability[rows])
        panel = self.space.out_of_fold(self.X[rows], self.codes[rows], rows)
        return self.error_probability[rows, None] * response_blame(ratio_score(self.score, panel), panel)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """The rows, most suspicious first."""
        return np.argsort(-self.outlier_score, kind="stable")

    def flagged(self, fdr: float = 0.1) -> NDArray[np.intp]:
        """Return the most suspicious rows, of which an expected share of at most `fdr` is right after all.

        The mean of 1 - error_probability over the flagged rows is at most `fdr`. A learned score has compared the rows
        of this very table with errors, so its probabilities decide alone. With any other score they rest on an assumed
        share of wrong rows, and a row also has to pass by its p-value (Benjamini & Hochberg 1995). Measured by
        benchmarks/cut.py.
        """
        if not is_share(fdr):
            raise ParameterError("fdr", fdr, "a number between 0 and 1")
        passed = posterior_cut(self.error_probability, fdr)
        if not isinstance(self.score, LearnedScore):
            passed &= false_discovery_cut(self.p_value, fdr)
        return self.ranking[passed[self.ranking]]

    def explain(self, row: int, **options: Any) -> Any:
        """Return the `Finding` of one row; see `explain_rows`."""
        return self.explain_rows([row], **options)[0]

    def explain_rows(self, rows: Sequence[int] | NDArray[np.intp], **options: Any) -> Any:
        """Return a `Finding` for each of some rows: which response, why, and what it should have been.

        Parameters
        ----------
        rows : places in the table
        features : sequence of m descriptions, optional
            Where each feature comes from: (source column, category or None), or the features of a `Dataset`.
        ids : identifiers of these rows, optional
        """
        at = np.asarray(rows, dtype=np.intp)
        n = len(self.codes)
        if at.ndim != 1 or ((at < 0) | (at >= n)).any():
            raise InputError("rows", f"it holds {rows!r}", f"rows are counted from 0 to {n - 1}")
        rank = np.empty(n, np.intp)
        rank[self.ranking] = np.arange(1, n + 1)
        judged = Judged(
            row=at,
            X=self.X[at],
            codes=self.space.filled(self.X[at], self.codes[at], at),
            encoding=self.encoding,
            typical=self._typical,
            score=self.outlier_score[at],
            p_value=self.p_value[at],
            error_probability=self.error_probability[at],
            rank=rank[at],
            rho=self.rho[at],
            response_error_probability=self._response_errors(at),
            response_p_value=self.response_p_value[at],
            judges=judges_of_folds(self.space, at),
            known=known_of(self.codes[at]),
        )
        return explain(judged, **options)

    def suggestions(self) -> list[Suggestion]:
        """Return the most likely value of each missing response, and how likely it is, most certain first.

        Given the context and the other responses, by models that never saw the row.
        """
        rows = np.flatnonzero((self.codes == MISSING).any(axis=1))
        filled = self.space.filled(self.X[rows], self.codes[rows], rows)
        rho = self.space.out_of_fold(self.X[rows], filled, rows).rho
        values = self.encoding.decode(filled)
        found = [
            Suggestion(int(rows[i]), self.encoding.names[j], values[i, j], float(rho[i, j]))
            for i, j in np.argwhere(self.codes[rows] == MISSING)
        ]
        return sorted(found, key=lambda suggestion: -suggestion.probability)

    def expected(self, rows: NDArray[np.intp]) -> Codes:
        """Return the likeliest value of each response of some rows, given all else, as codes of shape (len(rows), d).

        By models that never saw the row; a response that is missing has no other.
        """
        codes = self.codes[rows]
        if self.space.n_values is None:
            return np.where(self.rho[rows] < 0.5, codes ^ 1, codes).astype(np.uint8)
        return np.where(codes == MISSING, MISSING, self.space.likeliest(self.X[rows], codes, rows)).astype(np.uint8)

    @cached_property
    def _typical(self) -> Typical:
        return Typical.of(self.X, self.codes, self.space.n_values)

    def to_frame(self, top: int | None = None) -> Any:
        """Return a pandas table, most suspicious row first: which response, what was observed, what was expected.

        Columns: row, score, p_value, error_probability, label, observed, expected, probability (of what was observed).
        """
        pandas = require("pandas", extra="tables")
        rows = self.ranking[:top]
        worst = self._response_errors(rows).argmax(axis=1)
        observed = self.encoding.decode(self.codes[rows])[np.arange(len(rows)), worst]
        rho = self.rho[rows, worst]
        likelier = self.expected(rows)
        return pandas.DataFrame(
            {
                "row": rows,
                "score": self.outlier_score[rows],
                "p_value": self.p_value[rows],
                "error_probability": self.error_probability[rows],
                "label": [self.encoding.names[j] for j in worst],
                "observed": observed,
                "expected": self.encoding.decode(likelier)[np.arange(len(rows)), worst],
                "probability": rho,
            }
        )


def audit(
    X: TableLike,
    Y: TableLike,
    *,
    model: str | ConditionalModel = "dbr",
    score: Any = "learned",
    folds: int | None = None,
    error_rate: Literal["auto"] | float = "auto",
    random_state: int = 0,
) -> Audit:
    """Score every row of a table by models that never saw it.

    Parameters
    ----------
    X : context, (n, m): NumPy or SciPy sparse matrix, pandas or polars table of numbers
        Dask arrays and dataframes are audited where they are; see docs/scale.md.
    Y : responses, (n, d): booleans, 0/1, two texts, or up to 50 categories (texts or whole numbers) per column; NaN or
        None where one is missing
    model : "dbr", "chain", "br", "tree", "chain-ensemble", "mixture" or a ConditionalModel, default="dbr"
    score : "learned", "noise", "complement", "norm", "robust", "lof", "ocsvm", a score, or a scikit-learn or PyOD
        detector, default="learned"
    folds : int or None, default=None
        How many; None takes 5, or 3 where there are more than 50,000 rows.
    error_rate : "auto" or float, default="auto"
        Share of wrong rows that error probabilities assume; "auto" is what the learned score finds, and 2 % with
        other scores.
    random_state : int, default=0

    Returns
    -------
    Audit

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    >>> Y[7, 1] = 1 - Y[7, 1]
    >>> found = audit(X, Y)
    >>> found.ranking[0], found.response_error_probability[7].argmax()
    (np.int64(7), np.int64(1))
    """
    check_error_rate(error_rate)
    room = room_of(X)
    if room is not None:
        options = {"model": model, "score": score, "folds": folds, "error_rate": error_rate}
        elsewhere: Audit = room.audit(X, Y, **options, random_state=random_state)
        return elsewhere
    encoding = ResponseEncoding.of(Y)
    features, codes = check_rows(X, Y, encoding)
    fitted_score = as_score(score)
    space = RhoSpace(as_model(model), companions_of(fitted_score), several(encoding.n_values))
    n_folds = default_folds(len(codes)) if folds is None else folds
    fold_of_row = stratified_folds(codes, n_folds, np.random.default_rng(random_state))
    space.fit(features, codes, fold_of_row, final=False)
    panel = space.out_of_fold(features, codes)
    scores = fit_score(fitted_score, panel, lambda Yc, rows: space.out_of_fold(features[rows], Yc, rows), fold_of_row)
    ratio = ratio_score(fitted_score, panel)
    learned = isinstance(fitted_score, LearnedScore)
    log_ratio = fitted_score.against_right_rows(scores) if learned else ratio.log_likelihood_ratio(panel)
    rate = assumed_error_rate(error_rate, ratio)
    probability = posterior(log_ratio, rate)
    return Audit(
        outlier_score=scores,
        error_probability=probability,
        rho=panel.rho,
        error_rate=rate,
        one_valued=one_valued(codes, encoding.names),
        codes=codes.copy(),  # the table is the caller's, who may change it
        encoding=encoding,
        X=features,
        space=space,
        score=fitted_score,
        random_state=random_state,
    )
