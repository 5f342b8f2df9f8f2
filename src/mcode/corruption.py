"""Kinds of error: what each does to the responses, and how probable what was recorded is under it.

A score against a stated kind of error is a likelihood ratio LR = P(recorded y | the error happened) / P(y | x). A kind
is one object that knows both ways to it: how it corrupts a table (a learned score compares corrupted with clean rows)
and, where one exists, the closed form over rho (a noise score needs no training).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.errors import ParameterError
from mcode.models.encoding import Codes
from mcode.models.indicators import NumberOfValues, other_value
from mcode.models.panel import Views

MOST_IN_A_ROW = 6  # times that `Several` puts an error into a row


def log_odds_against(log_rho: Floats, n_values: Sequence[int] | NDArray[np.intp] | None = None) -> Floats:
    """Return log((1 - rho) / rho) of each response: how much likelier it is that the other value is right.

    Of a response with K values any of the K - 1 others may have been replaced by the recorded one, all alike: what was
    recorded then has probability (1 - rho) / (K - 1) where an error happened.

    Examples
    --------
    >>> log_odds_against(np.log([[0.5, 0.1]])).round(3)
    array([[0.   , 2.197]])
    """
    odds = np.asarray(np.log(np.maximum(np.expm1(-log_rho), 1e-15)))  # where rho is 1 there are no odds
    return odds if n_values is None else odds - np.log(np.asarray(n_values) - 1.0)


def log_sum_exp(values: Floats) -> Floats:
    """Return log(sum(exp(values))) of each row."""
    top = values.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(values - top).sum(axis=1)) + top[:, 0])


class ErrorKind(ABC):
    """A way in which recorded responses go wrong.

    `needs` names the views of its closed form: "model" is the detector's own model, "br", "chain" and "prior" are
    binary relevance, a chain and the same chain without the context. `n_values` is how many values each response has;
    None where all have two.
    """

    needs: tuple[str, ...] = ("model",)

    @abstractmethod
    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Return a copy of Y with this error in every row that can have it."""

    def log_ratio(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return log LR of each row, shape (n,)."""
        raise NotImplementedError(f"{self!r} has no closed form; use score='learned'.")

    def share_of_blame(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return P(response j is wrong | this error happened in the row, what was recorded), shape (n, d)."""
        raise NotImplementedError(f"{self!r} has no closed form; use score='learned'.")

    def log_normaliser(self, n_responses: int) -> float:
        """Return what to add to `log_ratio` so that it is a ratio of probabilities; 0 for most kinds."""
        return 0.0


def corrupted_by(kind: ErrorKind, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues) -> Codes:
    """Return Y corrupted; a kind that knows two values only is not told of others where there are none."""
    return kind.corrupt(Y, rng) if n_values is None else kind.corrupt(Y, rng, n_values)


@dataclass(frozen=True)
class Flip(ErrorKind):
    """Exactly k responses of the row are recorded wrong, each set of k equally likely.

    A response with several values is replaced by another of its values, all others alike.

    For k = 1, LR = mean_j (1 - rho_j) / rho_j, exact where the model is a proper joint. For larger k the sum over sets
    factorises only where responses are independent; it is approximated by powers of the odds (Newton's identities).

    Examples
    --------
    >>> Flip().log_ratio({"model": np.log([[0.5, 0.5]])}).round(6)
    array([0.])
    """

    k: int = 1

    def __post_init__(self) -> None:
        if not (isinstance(self.k, int | np.integer) and self.k >= 1):
            raise ParameterError("k", self.k, "a whole number of at least 1")

    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Change k responses, or all of them where there are fewer."""
        k = min(self.k, Y.shape[1])
        chosen = np.argpartition(rng.random(Y.shape), k - 1, axis=1)[:, :k]
        out = Y.copy()
        rows = np.arange(len(Y))[:, None]
        out[rows, chosen] = other_value(Y, n_values, rng)[rows, chosen]
        return out

    def log_ratio(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return the log mean over sets of k responses of the product of their odds."""
        return self._log_mean_products(log_odds_against(views["model"], n_values))

    def _log_mean_products(self, log_odds: Floats) -> Floats:
        n, d = log_odds.shape
        k = min(self.k, d)
        top = log_odds.max(axis=1)
        scaled = np.exp(log_odds - top[:, None])
        sums = np.zeros((k + 1, n))  # sums[r]: elementary symmetric polynomial of order r, over mean products
        sums[0] = 1.0
        for j in range(d):
            for r in range(min(k, j + 1), 0, -1):
                sums[r] += scaled[:, j] * sums[r - 1]
        n_sets = np.prod([(d - r) / (r + 1) for r in range(k)])
        return np.asarray(np.log(np.maximum(sums[k], 1e-300)) + k * top - np.log(n_sets))

    def share_of_blame(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return the odds of each response as a share of the row's, k in all."""
        log_odds = log_odds_against(views["model"], n_values)
        odds = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
        return np.asarray(np.minimum(1.0, self.k * odds / odds.sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class Noise(ErrorKind):
    """Each response is wrong independently with odds `e`.

    log LR = sum_j log(1 + e (1 - rho_j) / rho_j). At e = 1 this is the paper's complement score; for e -> 0 it orders
    rows as one flip does: one dial from dense to sparse errors. A response with K values is replaced by any of its
    other values, so e is divided by K - 1 there.

    Examples
    --------
    >>> rho = np.array([[0.9, 0.5]])
    >>> Noise(1.0).log_ratio({"model": np.log(rho)}) + np.log(rho).sum()
    array([0.])
    """

    e: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.e < np.inf:
            raise ParameterError("e", self.e, "a positive number")

    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Change each response with probability e / (1 + e), and at least one in each row."""
        wrong = rng.random(Y.shape) < self.e / (1.0 + self.e)
        spared = np.flatnonzero(~wrong.any(axis=1))
        wrong[spared, rng.integers(Y.shape[1], size=len(spared))] = True
        if n_values is None:
            return np.asarray(Y ^ wrong.view(np.uint8))
        return np.where(wrong, other_value(Y, n_values, rng), Y).astype(np.uint8)

    def log_ratio(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return the sum over responses of log(1 + e * odds)."""
        log_rho = views["model"]
        if self.e == 1.0 and n_values is None:
            return np.asarray(-log_rho.sum(axis=1))
        return np.asarray(np.log1p(self._of_each(n_values) * np.expm1(-log_rho)).sum(axis=1))

    def _of_each(self, n_values: NumberOfValues) -> float | Floats:
        """Return the odds with which a response is replaced by one certain other value."""
        return self.e if n_values is None else self.e / (np.asarray(n_values) - 1.0)

    def share_of_blame(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return e * odds / (1 + e * odds)."""
        odds = self._of_each(n_values) * np.expm1(-views["model"])
        return np.asarray(odds / (1.0 + odds))

    def log_normaliser(self, n_responses: int) -> float:
        """Return d * log P(a response is right)."""
        return float(-n_responses * np.log1p(self.e))


@dataclass(frozen=True)
class Mismatch(ErrorKind):
    """The whole y belongs to another row.

    LR = P(y) / P(y | x), both from a chain, once without the context: a rare y that fits its context is not flagged.
    """

    needs = ("br", "chain", "prior")

    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Give each row the responses of another one, with a different y where there is one to be had."""
        n = len(Y)
        donor = (np.arange(n) + rng.integers(1, max(n, 2), size=n)) % n
        for _ in range(5):
            same = np.flatnonzero((Y[donor] == Y).all(axis=1))
            donor[same] = rng.integers(n, size=len(same))
        return np.ascontiguousarray(Y[donor])

    def log_ratio(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return log P(y) - log P(y | x)."""
        return np.asarray(views["prior"].sum(axis=1) - views["chain"].sum(axis=1))

    def share_of_blame(self, views: Views, n_values: NumberOfValues = None) -> Floats:
        """Return P(the right value differs from the recorded one | x)."""
        return np.asarray(-np.expm1(views["br"]))


class _OneByBaseRate(ErrorKind):
    """Shared by the kinds that add or remove one present response.

    A response with several values is neither present nor absent. In a share of the rows as large as that of such
    responses, one of them is replaced by another of its values instead, drawn by how often each occurs.
    """

    @staticmethod
    def _add(Y: Codes, out: Codes, rng: np.random.Generator, n_values: NumberOfValues) -> None:
        weight = np.where(Y == 0, Y.mean(axis=0) + 1e-9, 0.0)
        if n_values is not None:
            weight[:, np.asarray(n_values) > 2] = 0.0
        rows = np.flatnonzero(weight.any(axis=1))
        cumulated = weight[rows].cumsum(axis=1)
        drawn = rng.random((len(rows), 1)) * cumulated[:, -1:]
        out[rows, np.minimum((cumulated < drawn).sum(axis=1), Y.shape[1] - 1)] = 1

    @staticmethod
    def _drop(Y: Codes, out: Codes, rng: np.random.Generator, n_values: NumberOfValues) -> None:
        there = Y if n_values is None else Y * (np.asarray(n_values) == 2)
        rows = np.flatnonzero(there.any(axis=1))
        keys = np.where(there[rows] == 1, rng.random((len(rows), Y.shape[1])), -1.0)
        out[rows, keys.argmax(axis=1)] = 0

    @staticmethod
    def _replace(Y: Codes, out: Codes, rng: np.random.Generator, n_values: NumberOfValues) -> None:
        if n_values is None:
            return
        several = np.flatnonzero(np.asarray(n_values) > 2)
        rows = np.flatnonzero(rng.random(len(Y)) < len(several) / Y.shape[1])
        out[rows] = Y[rows]
        response = several[rng.integers(len(several), size=len(rows))]
        for j in several:
            mine = rows[response == j]
            weight = np.tile(np.bincount(Y[:, j], minlength=n_values[j]) + 1e-9, (len(mine), 1))
            weight[np.arange(len(mine)), Y[mine, j]] = 0.0
            cumulated = weight.cumsum(axis=1)
            drawn = rng.random((len(mine), 1)) * cumulated[:, -1:]
            out[mine, j] = np.minimum((cumulated <= drawn).sum(axis=1), n_values[j] - 1)


@dataclass(frozen=True)
class Add(_OneByBaseRate):
    """One absent response is recorded as present, drawn by how often each is present.

    Examples
    --------
    >>> Add().corrupt(np.array([[0, 1], [0, 1]], dtype=np.uint8), np.random.default_rng(0))
    array([[1, 1],
           [1, 1]], dtype=uint8)
    """

    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Add one response to every row that lacks one."""
        out = Y.copy()
        self._add(Y, out, rng, n_values)
        self._replace(Y, out, rng, n_values)
        return out


@dataclass(frozen=True)
class Drop(_OneByBaseRate):
    """One present response is not recorded.

    Examples
    --------
    >>> Drop().corrupt(np.array([[0, 1], [0, 0]], dtype=np.uint8), np.random.default_rng(0))
    array([[0, 0],
           [0, 0]], dtype=uint8)
    """

    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Remove one response from every row that has one."""
        out = Y.copy()
        self._drop(Y, out, rng, n_values)
        self._replace(Y, out, rng, n_values)
        return out


@dataclass(frozen=True)
class Swap(_OneByBaseRate):
    """One present response is recorded as another, absent one.

    Examples
    --------
    >>> Swap().corrupt(np.array([[0, 1], [1, 0]], dtype=np.uint8), np.random.default_rng(0))
    array([[1, 0],
           [0, 1]], dtype=uint8)
    """

    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Move one response in every row that has one and lacks one."""
        out = Y.copy()
        self._drop(Y, out, rng, n_values)
        self._add(Y, out, rng, n_values)
        two = Y if n_values is None else Y[:, np.asarray(n_values) == 2]
        unchanged = two.all(axis=1) | ~two.any(axis=1)
        out[unchanged] = Y[unchanged]
        self._replace(Y, out, rng, n_values)
        return out


@dataclass(frozen=True)
class Several(ErrorKind):
    """A kind of error happens to the same row twice or more often.

    Twice with probability 1/2, three times with 1/4, and so on, at most MOST_IN_A_ROW times. One may undo another.

    Examples
    --------
    >>> Several(Drop()).corrupt(np.ones((1, 8), dtype=np.uint8), np.random.default_rng(0)).sum() <= 6
    np.True_
    """

    kind: ErrorKind

    def __post_init__(self) -> None:
        if not isinstance(self.kind, ErrorKind) or isinstance(self.kind, Several):
            raise ParameterError("kind", self.kind, "a kind of error such as Flip() or Add()")

    def corrupt(self, Y: Codes, rng: np.random.Generator, n_values: NumberOfValues = None) -> Codes:
        """Put the error into every row again and again, and leave each row as it is after its number of times."""
        times = np.minimum(1 + rng.geometric(0.5, size=len(Y)), MOST_IN_A_ROW)
        out = Y
        for done in range(MOST_IN_A_ROW):
            goes_on = (times > done)[:, None]
            if goes_on.any():
                out = np.where(goes_on, corrupted_by(self.kind, out, rng, n_values), out)
        return np.ascontiguousarray(out)
