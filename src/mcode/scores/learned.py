"""Likelihood ratios against stated kinds of error, learned by contrast with errors put into the data itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mcode._arrays import Floats
from mcode._progress import advance
from mcode.corruption import Add, Drop, ErrorKind, Flip, Mismatch, Several, Swap, corrupted_by, log_sum_exp
from mcode.errors import InputError
from mcode.models.encoding import MISSING, Codes
from mcode.models.panel import Panel, Reread
from mcode.scores.blame import Blame, Singles, cell_features, sample_rows
from mcode.scores.noise import Errors, weighted
from mcode.scores.row_features import NAMES, row_features, spread
from mcode.solvers.fit import Array, Task, fit_all, fit_of
from mcode.solvers.threads import one_blas_thread, run_all

# Kinds that are hard to tell from right rows have more; the others lose little by having less. Between one error and
# many there must be no gap: recorded rows that are wrong in a way that none of the kinds comes near are taken for
# examples of right ones. How all of this was chosen: docs/scores.md and benchmarks/shares.py.
DEFAULT_ERRORS: dict[ErrorKind, float] = {
    Flip(): 4,
    Flip(3): 2,
    Add(): 1,
    Drop(): 1,
    Swap(): 1,
    Mismatch(): 2,
    Several(Flip()): 1,
    Several(Add()): 0.5,
    Several(Drop()): 0.5,
}
# How much more these kinds count for which response is named: rows with one wrong response have one right answer, and
# flips ask it of all responses alike.
NAMED_BY: dict[ErrorKind, float] = {Flip(): 4, Add(): 2, Drop(): 2}
FEWEST_OF_SEVERAL = 200  # rows: several errors are seen easily, and learned from half of the rows
CERTAIN = float(np.log(40.0))  # a recorded row with this log ratio is about as likely wrong as right if 2 % of them are
CERTAIN_OF_SEVERAL = float(np.log(25.0))  # many kinds in one: rows of one of them reach a part of the ratio
ROUNDS = 8  # of taking such rows out, at most: each lets others be seen that they had hidden
SURPRISE = NAMES.index("model: sum of -log rho")
# `_drastic` rows: the share of the most drastic kind's that are as surprising, and the least and the largest share of
# the recorded ones that they are where they matter; fewer are right rows that are outlying in a way of their own.
DRASTIC, FEWEST_DRASTIC, MOST_DRASTIC = 0.3, 0.0125, 0.05
ROUGHLY = 3e-3  # tolerance of a fit that only says which rows they are
TOLERANCE = 2e-5
STAYING = 0.5  # of the wrong recorded rows, those that are not certain enough to leave the contrasts, roughly
LEAST_ROOM = 0.3  # of 1 - c R; both were chosen with CAREFUL_BY
SMALLEST_SHARE, LARGEST_SHARE = 1e-3, 0.3
CAREFUL_BY = 1.25  # standard errors of a count; how it was chosen: docs/explaining.md
CELLS_TOGETHER = 2**20  # of several kinds of error that are read in one go, which saves time on small tables
CELLS_AT_ONCE = 2**21  # of copies, a dozen views of each are in memory together
FEWEST_CAUGHT = 0.1  # share of errors above a threshold from which on it says something


class LearnedScore(BaseEstimator):
    """Log likelihood ratio of "an error happened" against "nothing did", learned from errors made on purpose.

    Rows of the data are corrupted by each stated kind of error; both the recorded and the corrupted rows are read by
    models that never saw them; a logistic regression tells the two apart by a few dozen sums and maxima of their
    surprises (`mcode.scores.row_features`). Its log odds *are* the log likelihood ratio of that kind, and

        score(i) = log sum_h share_h * LR_h(i).

    Parameters
    ----------
    errors : list of ErrorKind, or mapping of ErrorKind to its share, or None
        None is one flip (4), three flips (2), one response added (1), dropped (1) or replaced by another (1), the y of
        another row (2), and several flips (1), additions (1/2) or drops (1/2) in a row.
    penalty : float, default=3.0
        L2 penalty of the contrasts, on standardised features.
    max_rows : int, default=10000
        The most rows that are corrupted for each kind.
    random_state : int, default=0
        Seed of the corruption.

    Attributes
    ----------
    kinds_ : list of ErrorKind
        The stated kinds that can change these rows at all.
    shares_ : (n_kinds,) array
    contrast_ : the fitted regressions of rows
    blame_ : the fitted regression of cells
    contamination_ : float
        The largest share of wrong rows that the recorded rows can hold (see `largest_share`).
    training_score_ : (n,) array
        Scores of the rows it was fitted on, each by contrasts that were fitted without that row.
    """

    needs = ("br", "chain", "others", "alike", "pairs", "rate", "prototypes", "company")

    def __init__(
        self,
        errors: Errors | None = None,
        *,
        penalty: float = 3.0,
        max_rows: int = 10_000,
        random_state: int = 0,
    ) -> None:
        self.errors = errors
        self.penalty = penalty
        self.max_rows = max_rows
        self.random_state = random_state

    @one_blas_thread()
    def fit(self, panel: Panel, reread: Reread, fold_of_row: NDArray[np.intp] | None = None) -> Self:
        """Learn the ratios.

        Parameters
        ----------
        panel : Panel of the reference rows, read by models that never saw them
        reread : callable (Y, rows) -> Panel
            Reads rows of the reference with other responses, by the same models.
        fold_of_row : (n,) array of integers or None
            Folds for `training_score_`; None makes five.
        """
        if not isinstance(panel, Panel):
            raise InputError(
                "M", "it is a plain matrix", "the learned score needs a Panel; use it inside MCODE or audit"
            )
        kinds, shares = weighted(self.errors, DEFAULT_ERRORS)
        rng = np.random.default_rng(self.random_state)
        n = len(panel.Y)
        if fold_of_row is None:
            fold_of_row = rng.permutation(n) % min(5, n)
        rows = np.sort(rng.permutation(n)[: self.max_rows])
        clean = row_features(panel)
        corrupted, cells, possible = [], [], []
        for together in _read_together(_copies_of_each(kinds, panel, rows, rng)):
            advance("learn what errors look like", together[0].kind, len(kinds))
            for c, features, of_cells in _look_at(together, reread):
                corrupted.append((features, c.rows))
                cells.append((of_cells, c.wrong))
                possible.append(c.kind)
        if not possible:
            raise InputError("Y", "no stated kind of error can change any row", "give other errors or another score")
        self.kinds_ = [kinds[h] for h in possible]
        self.shares_ = shares[possible] / shares[possible].sum()
        certain = [CERTAIN_OF_SEVERAL if isinstance(kind, Several) else CERTAIN for kind in self.kinds_]
        self.contrast_ = _Contrast.fit(clean[rows], rows, corrupted, fold_of_row, self.penalty, certain)
        named = np.array([share * NAMED_BY.get(kind, 1) for kind, share in zip(self.kinds_, self.shares_, strict=True)])
        self.blame_ = Blame.fit(cells, named)
        self.training_score_ = self._combine(self.contrast_.own_log_ratios(clean, fold_of_row))
        made_wrong = [self._combine(self.contrast_.own_log_ratios(F, fold_of_row[at])) for F, at in corrupted]
        self.contamination_ = largest_share(self.training_score_, made_wrong, self.shares_)
        advance("learn what errors look like", len(kinds), len(kinds))
        return self

    def fit_outlier_score(self, panel: Panel, reread: Reread, fold_of_row: NDArray[np.intp] | None = None) -> Floats:
        """Fit, and return the scores of the same rows, each by contrasts fitted without it."""
        return self.fit(panel, reread, fold_of_row).training_score_

    def outlier_score(self, panel: Panel) -> Floats:
        """Return the log likelihood ratio of each row."""
        check_is_fitted(self, "contrast_")
        return self._combine(self.contrast_.log_ratios(row_features(panel)))

    def own_outlier_score(self, panel: Panel, fold_of_row: NDArray[np.intp]) -> Floats:
        """Return the scores of fitted rows with other responses, each by contrasts that were fitted without its fold.

        Parameters
        ----------
        panel : Panel of these rows, read by models that never saw them
        fold_of_row : (n,) array, the fold of each
        """
        check_is_fitted(self, "contrast_")
        return self._combine(self.contrast_.own_log_ratios(row_features(panel), fold_of_row))

    def log_likelihood_ratio(self, panel: Panel) -> Floats:
        """Return the log likelihood ratio of "an error happened" against a right row."""
        return self.against_right_rows(self.outlier_score(panel))

    def against_right_rows(self, scores: Floats) -> Floats:
        """Turn scores, which are ratios against *recorded* rows, into ratios against right ones.

        Of the recorded rows in the contrasts a share c = STAYING * `contamination_` is wrong itself, so that their
        ratio R is never above 1 / c, and LR = R (1 - c) / (1 - c R).
        """
        share = STAYING * self.contamination_
        room = 1.0 - share * np.exp(np.minimum(scores, 700.0))
        return np.asarray(scores + np.log1p(-share) - np.log(np.maximum(room, LEAST_ROOM)))

    def response_blame(self, panel: Panel) -> Floats:
        """Return P(response j is wrong | an error happened in the row), shape (n, d)."""
        check_is_fitted(self, "blame_")
        return self.blame_.probability(panel)

    def _combine(self, log_ratios: Floats) -> Floats:
        return log_sum_exp(log_ratios + np.log(self.shares_))


def largest_share(recorded: Floats, made_wrong: Sequence[Floats], shares: Floats) -> float:
    """Return the largest share of wrong rows that is compatible with the recorded scores.

    Above any threshold t, recorded rows are wrong or right ones: P(recorded > t) >= c * P(wrong > t). So c is at most
    the smallest quotient of the two, and about that where right rows do not reach. In a small table few rows are above
    it, and too large a share makes right rows look wrong: their count is taken CAREFUL_BY standard errors lower.

    Examples
    --------
    >>> largest_share(np.r_[np.zeros(90), np.full(10, 9.0)], [np.full(50, 8.0)], np.ones(1)).__round__(3)
    0.068
    """
    wrong = np.concatenate(made_wrong)
    weight = np.concatenate(
        [np.full(len(part), share / len(part)) for part, share in zip(made_wrong, shares, strict=True)]
    )
    order = np.argsort(-wrong)
    caught = np.cumsum(weight[order])
    ordered = np.sort(recorded)
    above = len(recorded) - np.searchsorted(ordered, wrong[order], side="left")
    careful = above + 1.0 - CAREFUL_BY * np.sqrt(above + 1.0)
    quotient = careful / (len(recorded) + 1.0) / caught
    return float(np.clip(quotient[caught >= FEWEST_CAUGHT].min(), SMALLEST_SHARE, LARGEST_SHARE))


@dataclass(frozen=True)
class _Copies:
    """Rows of the reference with one kind of error in each."""

    kind: int  # its place among those stated
    Y: Codes
    rows: NDArray[np.intp]
    looked_at: NDArray[np.intp]  # those whose cells teach which response is to blame, in order
    wrong: NDArray[np.bool_]  # their wrong responses


def _copies_of_each(
    kinds: Sequence[ErrorKind], panel: Panel, rows: NDArray[np.intp], rng: np.random.Generator
) -> Iterator[_Copies]:
    """Put each kind of error into the rows; a kind that can change none of them is left out."""
    for h, kind in enumerate(kinds):
        mine = rows
        if isinstance(kind, Several):
            mine = np.sort(rng.permutation(rows)[: max(FEWEST_OF_SEVERAL, len(rows) // 2)])
        Y = panel.only_known(corrupted_by(kind, panel.Y, rng, panel.n_values)[mine], mine)
        wrong = (panel.Y[mine] != Y) & (Y != MISSING)
        changed = np.flatnonzero(wrong.any(axis=1))
        if len(changed):
            looked_at = sample_rows(len(changed), Y.shape[1], rng)
            yield _Copies(h, Y[changed], mine[changed], looked_at, wrong[changed[looked_at]])


def _read_together(copies: Iterable[_Copies]) -> Iterator[list[_Copies]]:
    """Deal the copies into lists with at most CELLS_TOGETHER responses, or with one kind alone."""
    together: list[_Copies] = []
    for c in copies:
        if together and sum(other.Y.size for other in together) + c.Y.size > CELLS_TOGETHER:
            yield together
            together = []
        together.append(c)
    if together:
        yield together


def _look_at(together: Sequence[_Copies], reread: Reread) -> Iterator[tuple[_Copies, Floats, Singles]]:
    """Have copies read, and return the features of their rows and of the cells that are looked at."""
    Y, rows = (np.concatenate(parts) for parts in zip(*((c.Y, c.rows) for c in together), strict=True))
    starts = np.cumsum([0, *(len(c.rows) for c in together)])
    looked_at = np.concatenate([start + c.looked_at for start, c in zip(starts[:-1], together, strict=True)])
    features, of_cells = np.empty((len(rows), len(NAMES))), []
    at_once = max(1, CELLS_AT_ONCE // Y.shape[1])
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        seen = reread(Y[part], rows[part])
        features[part] = row_features(seen)
        of_cells.append(cell_features(seen[looked_at[(looked_at >= start) & (looked_at < start + at_once)] - start]))
    cells = np.concatenate(of_cells)
    for c, start, end in zip(together, starts, starts[1:], strict=False):
        first, last = np.searchsorted(looked_at, (start, end))
        yield c, features[start:end], cells[first:last]


@dataclass(frozen=True)
class _Contrast:
    """One regression of corrupted against recorded rows for each kind, and for each kind and fold.

    Those of one kind are columns of one batched solve: a column's row weights say which rows it may see.
    """

    center: Floats
    scale: Floats
    W: Floats  # (n_features + 1, n_kinds * (1 + n_folds)): first those on all rows, then fold by fold
    n_kinds: int

    @classmethod
    def fit(
        cls,
        clean: Floats,
        clean_rows: NDArray[np.intp],
        corrupted: list[tuple[Floats, NDArray[np.intp]]],
        fold_of_row: NDArray[np.intp],
        penalty: float,
        certain: Sequence[float],
    ) -> _Contrast:
        """Fit all regressions, then again without the recorded rows that are certainly wrong themselves.

        Two in a hundred recorded rows that look like a kind of error keep its ratio below fifty for all that look so,
        while a right row that is outlying in a way of its own has no such limit. A row leaves the contrast of the kind
        that it looks like where its log ratio is above that kind's `certain`, by regressions fitted without it. The
        first of these do not see drastic rows at all.
        """
        n_kinds, n_blocks = len(corrupted), int(fold_of_row.max()) + 2
        F = np.vstack([clean] + [features for features, _ in corrupted])
        center, scale = F.mean(axis=0), spread(F)
        drastic = _drastic(clean[:, SURPRISE], [features[:, SURPRISE] for features, _ in corrupted])

        def one(features: Floats, rows: NDArray[np.intp], bar: float) -> Floats:
            Z = ((np.vstack([clean, features]) - center) / scale).astype(np.float32)
            fold = fold_of_row[np.concatenate([clean_rows, rows])]
            return _fit_kind(Z, drastic, fold, n_blocks, penalty, bar)

        calls = [partial(one, features, rows, bar) for (features, rows), bar in zip(corrupted, certain, strict=True)]
        W = np.stack(run_all(calls), axis=2)
        return cls(center, scale, W.reshape(len(W), n_blocks * n_kinds), n_kinds)

    def log_ratios(self, F: Floats) -> Floats:
        """Return log LR of each kind, shape (n, n_kinds)."""
        return self._apply(F, 0)

    def own_log_ratios(self, F: Floats, fold_of_row: NDArray[np.intp]) -> Floats:
        """Return log LR of the rows it was fitted on, each by the regressions that were fitted without it."""
        out = np.empty((len(F), self.n_kinds))
        for f in range(int(fold_of_row.max()) + 1):
            mine = fold_of_row == f
            out[mine] = self._apply(F[mine], f + 1)
        return out

    def _apply(self, F: Floats, block: int) -> Floats:
        W = self.W[:, block * self.n_kinds : (block + 1) * self.n_kinds]
        return np.asarray(((F - self.center) / self.scale) @ W[:-1] + W[-1])


def _drastic(recorded: Floats, made_wrong: Sequence[Floats]) -> NDArray[np.bool_]:
    """Return which recorded rows are as surprising, in the sum, as few of the rows with the most drastic error.

    Rows that are farther out than any stated kind would teach the regressions that to be far out is right.
    """
    bar = max(float(np.quantile(part, 1.0 - DRASTIC)) for part in made_wrong)
    found = recorded > max(bar, float(np.quantile(recorded, 1.0 - MOST_DRASTIC)))
    return np.asarray(found if found.mean() >= FEWEST_DRASTIC else np.zeros_like(found))


def _fit_kind(
    Z: Array, drastic: NDArray[np.bool_], fold: NDArray[np.intp], n_blocks: int, penalty: float, certain: float
) -> Floats:
    """Return the coefficients of one kind's regressions, (n_features + 1, n_blocks), its rows after recorded ones."""
    n = len(drastic)
    weight = (fold[:, None] != np.arange(-1, n_blocks - 1)).astype(np.float32)
    target = np.repeat((np.arange(len(Z)) >= n)[:, None], n_blocks, axis=1).astype(np.uint8)
    nothing = np.empty((len(Z), 0), np.uint8)
    task = Task(Z, nothing, target, np.ones((0, n_blocks), bool), weight)
    fit, penalties, W = fit_of(task, slice(None), np.float32), np.full(n_blocks, penalty), None
    everyone, own = weight[:n].copy(), fold[:n, None] + 1

    def leave_out(rows: NDArray[np.bool_]) -> None:
        weight[:n] = np.where(rows[:, None], np.float32(0), everyone)
        fit.weigh(weight)

    left = np.zeros(n, bool)
    for done in range(ROUNDS):
        out = left if done else drastic
        leave_out(out)
        W = fit_all(task, penalties, W, ROUGHLY, fit).W
        rough = _without_our_share(W, weight, target)
        left = left | (np.take_along_axis(Z[:n] @ rough[:-1] + rough[-1], own, axis=1)[:, 0] > certain)
        if (left == out).all():
            break
    leave_out(left)
    return _without_our_share(fit_all(task, penalties, W, TOLERANCE, fit).W, weight, target)


def _without_our_share(W: Array, weight: Array, target: Array) -> Floats:
    """Return the coefficients with the share of corrupted rows in the contrast, which is ours, out of the log odds."""
    out = W.astype(np.float64)
    corrupt = (weight * target).sum(axis=0, dtype=np.float64)
    whole = weight.sum(axis=0, dtype=np.float64) - corrupt
    smooth = np.where((corrupt == 0) | (whole == 0), 0.5, 0.0)  # as the solver does: such a column has log LR = 0
    out[-1] -= np.log((corrupt + smooth) / (whole + smooth))
    return out
