"""What judges the rows of a partition: by models that never saw them. It is made once and goes to every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcode._arrays import Floats
from mcode.detector.judged import Judged, Typical, explain, judges_of_folds
from mcode.detector.reading import (
    apply_score,
    assumed_error_rate,
    companions_of,
    fit_score,
    posterior,
    ratio_score,
    response_blame,
)
from mcode.detector.redraw import ordinary_scores
from mcode.distributed.deal import Deal
from mcode.distributed.space import Cast, fit_space
from mcode.distributed.table import Rows
from mcode.models import as_model
from mcode.models.encoding import ResponseEncoding
from mcode.models.learners import CrossFit
from mcode.models.panel import Panel
from mcode.ranking import conformal_p_value, percentile_rank
from mcode.scores.learned import LearnedScore
from mcode.scores.names import as_score
from mcode.spaces.rho import RhoSpace


@dataclass(frozen=True)
class Verdict:
    """What is said of the rows of a partition; `mcode.Audit` says what the arrays are."""

    outlier_score: Floats
    percentile_rank: Floats
    p_value: Floats
    error_probability: Floats
    rho: Floats
    response_error_probability: Floats
    panel: Panel
    space: RhoSpace


@dataclass(frozen=True)
class Auditor:
    """The models of all folds, the score, and the samples that p-values and ranks refer to.

    Attributes
    ----------
    space : RhoSpace with the models of the folds
    score, ratio : the fitted score, and what makes error probabilities
    error_rate : float
    ordinary : scores of rows in which nothing is wrong: contexts of the sample with responses drawn anew
    reference : out-of-fold scores of the sample itself
    reference_log_rho : (k, d) array, sorted: log rho of the sample
    """

    space: RhoSpace
    score: Any
    ratio: Any
    error_rate: float
    ordinary: Floats
    reference: Floats
    reference_log_rho: Floats
    encoding: ResponseEncoding
    typical: Typical
    deal: Deal

    @classmethod
    def of(cls, cast: Cast, model: Any, score: Any, error_rate: Any, random_state: int) -> Auditor:
        """Fit the models of the folds on the table, everything else on the sample."""
        fitted, rows = as_score(score), cast.rows
        space = fit_space(cast, as_model(model), companions_of(fitted), folds=True, final=False)
        panel = space.out_of_fold(rows.X, rows.Y)
        fit_score(fitted, panel, lambda Yc, at: space.out_of_fold(rows.X[at], Yc, at), cast.fold_of_row)
        ratio = ratio_score(fitted, panel)
        ordinary = ordinary_scores(space, fitted, rows.X, rows.Y, np.random.default_rng(random_state))
        return cls(
            space,
            fitted,
            ratio,
            assumed_error_rate(error_rate, ratio),
            np.sort(ordinary),
            np.sort(apply_score(fitted, panel)),
            np.sort(panel.views["model"], axis=0),
            cast.known.encoding,
            cast.known.typical,
            cast.deal,
        )

    @property
    def cut_by_p_value(self) -> bool:
        """Whether a row has to pass by its p-value too: a learned score has seen errors in rows of this very table."""
        return not isinstance(self.score, LearnedScore)

    def judge(self, rows: Rows) -> Verdict:
        """Read rows by the models of the folds that did not see them."""
        space = RhoSpace(self.space.model, self.space.companions)
        fold = self.deal.fold_of(rows.ids)
        space.models, space.remembered = self.space.models, self.space.remembered
        space.cross = {name: CrossFit(fold, cross.folds) for name, cross in self.space.cross.items()}
        panel = space.out_of_fold(rows.X, rows.Y)
        scores = apply_score(self.score, panel)
        learned = isinstance(self.score, LearnedScore)
        log_ratio = self.score.against_right_rows(scores) if learned else self.ratio.log_likelihood_ratio(panel)
        probability = posterior(log_ratio, self.error_rate)
        return Verdict(
            scores,
            percentile_rank(scores, self.reference),
            conformal_p_value(scores, self.ordinary),
            probability,
            panel.rho,
            probability[:, None] * response_blame(self.ratio, panel),
            panel,
            space,
        )

    def explain(self, rows: Rows, verdict: Verdict, at: Any, rank: Any, **options: Any) -> list[Any]:
        """Return the findings of some rows of a partition; `rank` holds their places among all rows of the table."""
        log_rho = verdict.panel.views["model"][at]
        columns = [conformal_p_value(-log_rho[:, j], -self.reference_log_rho[:, j]) for j in range(log_rho.shape[1])]
        judged = Judged(
            row=np.asarray(at),
            X=rows.X[at],
            codes=rows.Y[at],
            encoding=self.encoding,
            typical=self.typical,
            score=verdict.outlier_score[at],
            p_value=verdict.p_value[at],
            error_probability=verdict.error_probability[at],
            rank=np.asarray(rank),
            rho=verdict.rho[at],
            response_error_probability=verdict.response_error_probability[at],
            response_p_value=np.column_stack(columns),
            judges=judges_of_folds(verdict.space, np.asarray(at)),
        )
        return list(explain(judged, **options))
