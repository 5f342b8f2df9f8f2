"""Which rows of the whole table are flagged, from sums over its partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.errors import ParameterError
from mcode.ranking import is_share

BINS = 2**14  # of the probability that a row is right
RANKED = 100_000  # rows whose rank among all is known


@dataclass(frozen=True)
class Tally:
    """What has to be known of all rows to make the cut.

    Attributes
    ----------
    n_rows : int
    by_p_value : counts of the p-values k / (R + 1), k = 1 ... R + 1, for a reference of R scores
    by_right : counts of 1 - error_probability in even bins
    right : sums of 1 - error_probability in these bins
    scores : the largest scores, largest first
    most : how many of them are kept
    """

    n_rows: int
    by_p_value: NDArray[np.int64]
    by_right: NDArray[np.int64]
    right: Floats
    scores: Floats
    most: int

    @classmethod
    def of(cls, score: Floats, p_value: Floats, error_probability: Floats, n_reference: int, most: int) -> Tally:
        """Count the rows of one partition."""
        k = np.rint(p_value * (n_reference + 1)).astype(np.intp)
        right = 1.0 - error_probability
        at = bin_of(right)
        return cls(
            len(score),
            np.bincount(k, minlength=n_reference + 2),
            np.bincount(at, minlength=BINS),
            np.asarray(np.bincount(at, weights=right, minlength=BINS), np.float64),
            np.sort(score)[::-1][:most],
            most,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.n_rows + other.n_rows,
            self.by_p_value + other.by_p_value,
            self.by_right + other.by_right,
            self.right + other.right,
            np.sort(np.concatenate([self.scores, other.scores]))[::-1][: self.most],
            self.most,
        )

    def rank(self, scores: Floats) -> NDArray[np.int64]:
        """Return the place of each score among all rows, 1 = largest; 0 where it is not among the ranked ones."""
        place = 1 + np.searchsorted(-self.scores, -np.asarray(scores), side="left")
        return np.where((place <= len(self.scores)) | (len(self.scores) < self.most), place, 0)


def bin_of(right: Floats) -> NDArray[np.intp]:
    """Return the bin of a probability of being right."""
    return np.minimum((right * BINS).astype(np.intp), BINS - 1)


@dataclass(frozen=True)
class Cut:
    """A rule that says of a row by itself whether it is flagged.

    Attributes
    ----------
    largest_p_value, last_bin : flagged rows are not above either
    smallest_score : nor below this
    """

    largest_p_value: float = 1.0
    last_bin: int = BINS - 1
    smallest_score: float = -np.inf

    def flags(self, score: Floats, p_value: Floats, error_probability: Floats) -> NDArray[np.bool_]:
        """Return which rows are flagged."""
        passed = (p_value <= self.largest_p_value) & (bin_of(1.0 - error_probability) <= self.last_bin)
        return np.asarray(passed & (score >= self.smallest_score))


def cut_at(tally: Tally, fdr: float, *, by_p_value: bool = True) -> Cut:
    """Return the cut of `mcode.Audit.flagged`: by error probability, and by p-value where that is asked for too.

    By p-value it is Benjamini & Hochberg's, exactly: p-values against R reference scores have R + 1 values, and it is
    enough to count them. By error probability it is exact to one of `BINS` bins, on the careful side.
    """
    if not is_share(fdr):
        raise ParameterError("fdr", fdr, "a number between 0 and 1")
    at_most = np.cumsum(tally.by_p_value)
    value = np.arange(len(at_most)) / (len(at_most) - 1)
    passed = np.flatnonzero((value <= fdr * at_most / tally.n_rows) & (at_most > 0))
    count, wrong = np.cumsum(tally.by_right), np.cumsum(tally.right)
    likely = np.flatnonzero((wrong <= fdr * count) & (count > 0))
    if not len(likely) or (by_p_value and not len(passed)):
        return Cut(-1.0, -1)
    return Cut(float(value[passed[-1]] + 1e-12) if by_p_value else 1.0, int(likely[-1]))


def cut_top(tally: Tally, rows: int) -> Cut:
    """Return the cut that flags so many rows, or more where the last one ties with others."""
    return Cut(smallest_score=float(tally.scores[min(rows, len(tally.scores)) - 1]))
