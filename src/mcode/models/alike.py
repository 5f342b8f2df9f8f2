"""What rows like this one answered: each response against those of some remembered rows.

Two rows are alike where their contexts promise the same responses and where they have the same ones. With p, the
probability that each response is present given the context, a remembered row r weighs

    w_r = exp(-|p - p_r|^2 - |y - y_r|^2),

and y_j is as probable as it is frequent among the remembered rows, its own agreement left out of their weights. No
regression is asked, so this sees what logistic regressions cannot: responses that go together in groups, or only in
some contexts.

The same is asked twice, of rows that are "alike" and of "twins", which weigh w_r^4: only those count that have nearly
the same responses in nearly the same context.

All of it is in double precision: BLAS rounds a row by its place in a batch, and the weight of the rows that differ is a
difference of sums, multiplied by e^4 for twins: in single precision that made 1e-7 into 1e-5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.models.encoding import Codes
from mcode.models.indicators import Indicators, NumberOfValues, indicators
from mcode.solvers.threads import run_all

MOST_ROWS = 1_000  # that are remembered; time grows with them
SQUARED = {"alike": 0, "twins": 2}  # how often a weight is squared
PRIOR = {"alike": 2.0, "twins": 0.02}  # rows that answer by the base rate: what there is to say where no row is alike
FAR = 200.0  # exp(-FAR) is next to nothing, and yet no number that is too small to be fast
ROWS_AT_ONCE = 1_024
SEED = 0


def rows_to_remember(n: int) -> NDArray[np.intp]:
    """Return which of n training rows are remembered: all, or a sample.

    Examples
    --------
    >>> rows_to_remember(3), len(rows_to_remember(10**6))
    (array([0, 1, 2]), 1000)
    """
    return np.sort(np.random.default_rng(SEED).permutation(n)[:MOST_ROWS])


@dataclass(frozen=True)
class RememberedRows:
    """Training rows that other rows are compared with.

    Attributes
    ----------
    p : (r, d) array: P(present | context) of each response
    Y : (r, d) codes of the responses
    fold : (r,) array: the fold of each row, or None; a row is never compared with those of its own fold
    n_values : tuple of int, how many values each response has; None where all have two
    """

    p: Floats
    Y: Codes
    fold: NDArray[np.intp] | None = None
    n_values: NumberOfValues = None

    @classmethod
    def of(
        cls, log_rho: Floats, Y: Codes, fold: NDArray[np.intp] | None = None, n_values: NumberOfValues = None
    ) -> RememberedRows:
        """Remember rows by their responses and by log P of each of these, given the context alone."""
        return cls(_probability_of_present(log_rho, Y), Y, fold, n_values)

    def views(
        self, log_rho: Floats, log_rate: Floats, Y: Codes, fold: NDArray[np.intp] | None = None
    ) -> dict[str, Floats]:
        """Return log P of each response among rows that are "alike", and among "twins", each (n, d).

        Parameters
        ----------
        log_rho : (n, d) log P of each response given the context alone
        log_rate : (n, d) log P of each response by how often it occurs
        Y : (n, d) codes
        fold : (n,) array, the folds of these rows if they are training rows; None otherwise
        """
        out = {name: np.empty(Y.shape) for name in SQUARED}
        present = indicators(self.Y, self.n_values).astype(np.float64)
        kept = _place(self.p, self.Y, self.n_values)
        size = np.square(kept).sum(axis=1)
        if fold is None or self.fold is None:
            fold_of_row, fold_of_kept, folds = np.zeros(len(Y), np.intp), np.zeros(len(kept), np.intp), np.empty(0)
        else:
            fold_of_row, fold_of_kept, folds = fold, self.fold, np.unique(self.fold)
        opposite = np.hstack([2.0 * kept, fold_of_kept[:, None] == folds]).T

        def read(rows: slice) -> None:
            place = _place(_probability_of_present(log_rho[rows], Y[rows]), Y[rows], self.n_values)
            own_fold = fold_of_row[rows, None] == folds  # columns that push rows of one fold far apart
            weight = np.hstack([place, -FAR * own_fold]) @ opposite
            weight -= size
            weight -= np.square(place).sum(axis=1)[:, None]  # and is -|place - kept|^2
            np.exp(np.minimum(weight, 0.0, out=weight), out=weight)
            rate = np.exp(log_rate[rows])
            for name, times in SQUARED.items():
                for _ in range(times):
                    np.square(weight, out=weight)
                agreeing, differing = self._votes(weight, present, Y[rows])
                # a row that differs in y_j counts against it with the weight that it has without that difference
                differing *= float(np.exp(2.0**times))
                out[name][rows] = np.log((agreeing + PRIOR[name] * rate) / (agreeing + differing + PRIOR[name]))

        starts = range(0, len(Y), ROWS_AT_ONCE)
        run_all([partial(read, slice(start, start + ROWS_AT_ONCE)) for start in starts])
        return out

    def _votes(self, weight: Floats, present: Floats, Y: Codes) -> tuple[Floats, Floats]:
        """Return the weight of the remembered rows with the same value of each response, and that of the others."""
        total, weight_of_present = weight.sum(axis=1, keepdims=True), weight @ present
        if self.n_values is None:
            is_present, there = Y == 1, weight_of_present
        else:
            several = np.asarray(self.n_values) > 2
            column = Indicators(self.n_values).starts[:-1] + np.where(several, Y, 0)
            is_present, there = several | (Y == 1), np.take_along_axis(weight_of_present, column, axis=1)
        agreeing = np.maximum(np.where(is_present, there, total - there), 0.0)
        return agreeing, np.maximum(total - agreeing, 0.0)


def _probability_of_present(log_rho: Floats, Y: Codes) -> Floats:
    rho = np.exp(log_rho, dtype=np.float64)
    return np.where(Y == 1, rho, 1.0 - rho)


def _place(p: Floats, Y: Codes, n_values: NumberOfValues) -> Floats:
    """Return [p, y] of each row: |place - place of another|^2 is how much they differ.

    Of a response with several values only y is compared, as one column for each value: two of them differ where two
    rows do, and the difference shall count once.
    """
    present = indicators(Y, n_values).astype(np.float64)
    if n_values is None:
        return np.hstack([p, present])
    count = np.asarray(n_values)
    once = np.where(count > 2, np.sqrt(0.5), 1.0)
    return np.hstack([p * (count == 2), present * once[Indicators(n_values).response]])
