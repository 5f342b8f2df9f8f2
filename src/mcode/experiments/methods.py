"""The eight methods of the paper: three over [x, y], five over rho."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mcode._arrays import Floats, Matrix
from mcode.models.conditional import DependentRelevance
from mcode.models.encoding import Codes
from mcode.models.logistic import BatchLogistic
from mcode.scores import LOFScore, NormScore, OneClassScore, RobustScore
from mcode.scores.distinct import distinct_rows
from mcode.spaces.joint import joint
from mcode.spaces.rho import floored

NEIGHBOURS = 30
NU = 0.01
PENALTY_FOLDS = (
    3  # of the search for the penalty; five give the same log-likelihood within 0.05 and take half as long again
)


@dataclass(frozen=True)
class Trained:
    """What the training rows of a fold give, made once for all methods: a model of one half, machines of the other.

    Attributes
    ----------
    model : DependentRelevance, fitted on the first half
    X, Y : the second half
    """

    model: DependentRelevance
    X: Matrix
    Y: Codes

    @classmethod
    def on(cls, X: Matrix, Y: Codes, rng: np.random.Generator) -> Trained:
        """Fit on a random half of some rows and keep the other half."""
        order = rng.permutation(len(Y))
        seen, held = np.sort(order[: len(Y) // 2]), np.sort(order[len(Y) // 2 :])
        model = DependentRelevance(BatchLogistic(folds=PENALTY_FOLDS))
        return cls(model.fit(X[seen], Y[seen]), X[held], Y[held])

    def rho(self, X: Matrix, Y: Codes) -> Floats:
        """Return the probability of each observed response.

        Each distinct row is read once. BLAS rounds a dense row by its place in a batch, and what looks for neighbours
        would take copies of a bootstrapped row for rows of their own.
        """
        which = distinct_rows(joint(X, Y)).which
        _, first = np.unique(which, return_index=True)
        return np.asarray(np.exp(floored(self.model.log_proba(X[first], Y[first])), dtype=np.float64)[which])

    @cached_property
    def rho_machine(self) -> OneClassScore:
        """The one-class machine of the second half in rho."""
        return one_class(self.rho(self.X, self.Y))

    @cached_property
    def joint_machine(self) -> OneClassScore:
        """The one-class machine of the second half in [x, y]."""
        return one_class(joint(self.X, self.Y))


@dataclass(frozen=True)
class Case:
    """The rows that all methods of a fold score: bootstrapped, some of them made wrong."""

    trained: Trained
    X: Matrix
    Y: Codes

    @cached_property
    def rho(self) -> Floats:
        """The probability of each observed response."""
        return self.trained.rho(self.X, self.Y)

    @cached_property
    def joint(self) -> Any:
        """The rows as [x, y]."""
        return joint(self.X, self.Y)

    @cached_property
    def joint_without_empty_columns(self) -> Any:
        """The same without features that none of the rows has: distances between the rows do not see them."""
        M: Any = self.joint
        return M if isinstance(M, np.ndarray) else M[:, np.flatnonzero(M.getnnz(axis=0))]


def one_class(M: Any) -> OneClassScore:
    """Return a one-class machine as LIBSVM makes it by default: gamma = 1 / number of columns."""
    return OneClassScore(nu=NU, gamma=1.0 / M.shape[1]).fit(M)


def robust() -> RobustScore:
    """Return the robust distance of the paper's formula: from the plain mean, on the values as they are."""
    return RobustScore(center="mean", space="rho")


PAPER: dict[str, Callable[[Case], Floats]] = {
    "RD": lambda case: robust().fit_outlier_score(case.joint_without_empty_columns),
    "LOF": lambda case: LOFScore(NEIGHBOURS).fit_outlier_score(case.joint_without_empty_columns),
    "OCSVM": lambda case: case.trained.joint_machine.outlier_score(case.joint),
    "MCODE-ComP": lambda case: -np.log(case.rho).sum(axis=1),
    "MCODE-RD": lambda case: robust().fit_outlier_score(case.rho),
    "MCODE-Linf": lambda case: NormScore(np.inf).fit_outlier_score(case.rho),
    "MCODE-LOF": lambda case: LOFScore(NEIGHBOURS).fit_outlier_score(case.rho),
    "MCODE-OCSVM": lambda case: case.trained.rho_machine.outlier_score(case.rho),
}
