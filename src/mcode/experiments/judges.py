"""The two settings of the clean protocol: methods that were fitted once, and what they say of rows with errors.

A judge ranks some rows of a table. It knows the scores of those rows as they are, and of copies of them with errors. So
one fit serves any number of injections. Most methods look at one row at a time: a copy has the same score whoever else
is wrong. For the others the score of a copy is an approximation, and only `scores_with` is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.experiments import seen
from mcode.experiments.datasets import Table
from mcode.experiments.injection import with_errors_of_all_kinds
from mcode.experiments.rivals import METHODS, Among, Method
from mcode.experiments.stopwatch import Stopwatch
from mcode.models.encoding import Codes

Flags = NDArray[np.bool_]
Copies = list[seen.Rows]  # of all ranked rows; in several parts where several fits judge them


class Judge(Protocol):
    """Methods that were fitted, and rows that they rank.

    Attributes
    ----------
    table : Table
    ranked : (r,) array, which rows of it are ranked
    right : scores of the ranked rows as they are, by method
    """

    table: Table
    ranked: NDArray[np.intp]
    right: dict[str, Floats]

    def looks_at_one_row(self, name: str) -> bool:
        """Whether a method gives a wrong row the same score whoever else is wrong."""

    def copies(self, Y: Codes) -> Copies:
        """Return copies of the ranked rows, with responses Y."""

    def copy_scores(self, name: str, copies: Copies) -> Floats:
        """Return the score of each copy, had it alone taken the place of its row."""

    def scores_with(self, name: str, wrong: Flags, copies: Copies) -> Floats:
        """Return the scores of all ranked rows when copies took the places of the wrong ones."""


def _read_by(methods: Mapping[str, Method]) -> seen.Reads:
    return seen.together(method.reads for method in methods.values())


class Halves:
    """Methods fitted on each half of a table, which rank the other half: all rows are ranked."""

    def __init__(self, table: Table, contamination: float, seed: int, methods: Sequence[str], watch: Stopwatch) -> None:
        self.table, self.ranked, self._watch = table, np.arange(len(table.Y)), watch
        rng = np.random.default_rng(table.seed(seed, 3, round(1000 * contamination)))
        half_of_row = np.random.default_rng(table.seed(seed, 3)).permutation(len(table.Y)) % 2
        self._tests: list[NDArray[np.intp]] = []
        self._read: list[seen.Table] = []
        self._fitted: list[dict[str, Method]] = []
        for half in (0, 1):
            train = np.flatnonzero(half_of_row != half)
            Y, _ = with_errors_of_all_kinds(table.Y[train], contamination, rng)
            fitted = {name: METHODS[name]() for name in methods}
            read = seen.Table(table.X[train], Y, final=True, reads=_read_by(fitted))
            for name, method in fitted.items():
                watch(name, partial(method.fit, read))
            self._tests.append(np.flatnonzero(half_of_row == half))
            self._read.append(read)
            self._fitted.append(fitted)
        self._rows = self.copies(table.Y)
        self.right = {name: self.copy_scores(name, self._rows) for name in methods}

    def looks_at_one_row(self, name: str) -> bool:
        """Whether a method gives a wrong row the same score whoever else is wrong."""
        return not self._fitted[0][name].whole_batch

    def copies(self, Y: Codes) -> Copies:
        """Return all rows with responses Y, one half after the other."""
        return [
            seen.Rows(read, self.table.X[test], Y[test]) for test, read in zip(self._tests, self._read, strict=True)
        ]

    def copy_scores(self, name: str, copies: Copies) -> Floats:
        """Return the score of each copy, by what was fitted on the half that does not hold its row."""
        out = np.empty(len(self.ranked))
        for test, fitted, rows in zip(self._tests, self._fitted, copies, strict=True):
            out[test] = self._watch(name, partial(fitted[name].score, rows))
        return out

    def scores_with(self, name: str, wrong: Flags, copies: Copies) -> Floats:
        """Return the scores of all rows in two batches that hold the wrong ones."""
        mixed = [
            right.with_copies(wrong[test], other)
            for test, right, other in zip(self._tests, self._rows, copies, strict=True)
        ]
        return self.copy_scores(name, mixed)


class Audited:
    """Methods fitted on a table with wrong rows, which rank all its other rows out of fold.

    The rows that were wrong while the models were fitted are the contamination of the training rows. They are not
    ranked; any other row may be the wrong one that is looked for, since no coefficient that judges it was fitted on it,
    and its losses had no say in their penalty. benchmarks/audit_copies.py measures what difference is left.

    Parameters
    ----------
    table : Table as it should have been recorded
    Y : responses as they were recorded
    wrong : which rows were recorded wrong
    """

    def __init__(self, table: Table, Y: Codes, wrong: Flags, methods: Sequence[str], watch: Stopwatch) -> None:
        self.table, self.ranked, self._watch = table, np.flatnonzero(~wrong), watch
        self._fitted = {name: METHODS[name]() for name in methods}
        self.read = seen.Table(table.X, Y, final=False, reads=_read_by(self._fitted))
        self._rows = self.read.with_responses(Y[self.ranked], self.ranked)
        self.right = {name: watch(name, partial(self._fit, name)) for name in methods}

    def _fit(self, name: str) -> Floats:
        method = self._fitted[name]
        if method.copies == "among":
            return cast(Among, method).fit_among(self._rows)
        return method.fit(self.read)[self.ranked]

    def looks_at_one_row(self, name: str) -> bool:
        """Whether a method gives a wrong row the same score whoever else is wrong."""
        return self._fitted[name].copies == "alone"

    def copies(self, Y: Codes) -> Copies:
        """Return the ranked rows with responses Y, for models that never saw them."""
        return [self.read.with_responses(Y, self.ranked)]

    def copy_scores(self, name: str, copies: Copies) -> Floats:
        """Return the score of each copy, out of fold, or by a fit on the ranked rows as they are."""
        return self._watch(name, partial(self._fitted[name].score, copies[0]))

    def scores_with(self, name: str, wrong: Flags, copies: Copies) -> Floats:
        """Return the scores of a method that is fitted on the ranked rows, the wrong ones among them."""
        method = cast(Among, METHODS[name]())
        mixed = self._rows.with_copies(wrong, copies[0])
        return self._watch(f"{name}, exact", partial(method.fit_among, mixed))
