"""What a conditional model asks of the thing that learns P(y_j | x, parents of j) for all j."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.models.encoding import Codes
from mcode.models.indicators import NumberOfValues
from mcode.models.parents import Parents


class Conditionals(Protocol):
    """d fitted conditional distributions."""

    def log_proba(self, X: Matrix, Y: Codes) -> Floats:
        """Return log P(y_j | x, parents of j) of what was observed, shape (n, d)."""


@dataclass(frozen=True)
class CrossFit:
    """Conditionals of every fold: each row is judged by those that never saw it.

    Attributes
    ----------
    fold_of_row : (n,) array: the fold in which each training row was held out
    folds : the conditionals of each fold, fitted on the rows of the other folds
    """

    fold_of_row: NDArray[np.intp]
    folds: Sequence[Conditionals]

    def log_proba(self, X: Matrix, Y: Codes, rows: NDArray[np.intp] | None = None) -> Floats:
        """Return the out-of-fold log-probability of the responses Y of the training rows, shape (n, d).

        Y may be what was recorded or what might have been: rows `rows` of the training data (all by default), in the
        order of X and Y.
        """
        out = np.empty(Y.shape)
        for mine, conditionals in self.parts(rows):
            out[mine] = conditionals.log_proba(X[mine], Y[mine])
        return out

    def fold_of(self, rows: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Return the fold of training rows, all or `rows` of them."""
        return self.fold_of_row if rows is None else self.fold_of_row[rows]

    def parts(self, rows: NDArray[np.intp] | None = None) -> Iterator[tuple[NDArray[np.intp], Conditionals]]:
        """Deal training rows (all, or `rows` of them) to the conditionals that never saw them.

        Yields places in `rows` and their conditionals, but for folds of which no row is there.
        """
        fold = self.fold_of(rows)
        for f, conditionals in enumerate(self.folds):
            mine = np.flatnonzero(fold == f)
            if len(mine):
                yield mine, conditionals


class Learner(Protocol):
    """Learns all conditionals of a model.

    A learner that is fitted on responses with more than two values is told how many each has (`n_values`).
    """

    def fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        *,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> Conditionals:
        """Fit each response on all rows where it is known; None knows all."""

    def cross_fit(
        self,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        fold_of_row: NDArray[np.intp],
        *,
        final: bool,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> tuple[CrossFit, Conditionals | None]:
        """Fit every fold, and all rows where `final` asks for it."""


def fit_each_fold(
    fold_of_row: NDArray[np.intp], fit: Callable[[NDArray[np.intp]], Conditionals], *, final: bool
) -> tuple[CrossFit, Conditionals | None]:
    """Fit the other rows of every fold, and all rows where `final` asks for it, one after the other."""
    folds = [fit(np.flatnonzero(fold_of_row != f)) for f in range(int(fold_of_row.max()) + 1)]
    return CrossFit(fold_of_row, folds), fit(np.arange(len(fold_of_row))) if final else None


class FoldByFold:
    """For learners that count: every fold is one more fit to some of the rows, and nothing is searched."""

    def cross_fit(
        self: Learner,
        X: Matrix,
        Y: Codes,
        parents: Parents,
        fold_of_row: NDArray[np.intp],
        *,
        final: bool,
        known: NDArray[np.bool_] | None = None,
        n_values: NumberOfValues = None,
    ) -> tuple[CrossFit, Conditionals | None]:
        """Fit the other rows of every fold, and all rows where `final` asks for it."""

        def fit(rows: NDArray[np.intp]) -> Conditionals:
            there = None if known is None else known[rows]
            return self.fit(X[rows], Y[rows], parents, known=there, n_values=n_values)

        return fit_each_fold(fold_of_row, fit, final=final)
