"""All methods of the clean protocol: each is fitted on a table, scores its rows out of fold, and scores other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np

from mcode._arrays import Floats
from mcode._optional import require
from mcode.detector import MCODE, SongCAD
from mcode.detector.reading import apply_score, companions_of, fit_score
from mcode.experiments.methods import NEIGHBOURS, NU, robust
from mcode.experiments.seen import DEFAULT_MODEL, Reads, Rows, Table
from mcode.models.base_rate import smoothed_base_rate
from mcode.models.encoding import Codes
from mcode.scores import ForeignScore, LOFScore, NormScore, OneClassScore, as_score
from mcode.scores.foreign import BatchDependenceWarning
from mcode.scores.learned import LearnedScore

DEFAULT = "mcode default"
NO_MODEL: Reads = {}
BY_BR: Reads = {"BR": ()}
BY_DBR: Reads = {"DBR": ()}
CopiesAre = Literal["alone", "among", "none"]


class Method(Protocol):
    """A way to score rows, larger = more outlying.

    `copies` says how an audit scores a row of its table had it been recorded with an error: "alone" by `score`, since
    what was fitted without the row does not change with it; "among" by a fit on the very rows that are ranked, since
    such a method has no other; "none" not at all. `reads` are the models that it looks through, by name, each with the
    companions that it wants to see beside it.
    """

    copies: CopiesAre
    reads: Reads
    whole_batch: bool  # whether a row's score depends on the rows it is scored with

    def fit(self, table: Table) -> Floats:
        """Learn from a table; return the scores of its own rows, each by models that never saw it."""

    def score(self, rows: Rows) -> Floats:
        """Return the scores of rows, those of the table itself by what was fitted without them."""


class Among(Method, Protocol):
    """A method that is fitted on the rows it ranks."""

    def fit_among(self, rows: Rows) -> Floats:
        """Fit on some rows and return their own scores."""


class OverRho:
    """A score over rho of one model, or over its panel, that looks at one row at a time."""

    copies: CopiesAre = "alone"
    whole_batch = False

    def __init__(self, model: str, score: Callable[[], Any]) -> None:
        self.model, self._make = model, score
        self.reads: Reads = {model: companions_of(score())}

    def fit(self, table: Table) -> Floats:
        """Fit on the out-of-fold panel of the table."""
        self._score = self._make()
        return fit_score(self._score, table.own.panel(self.model), table.reread(self.model), table.folds)

    def score(self, rows: Rows) -> Floats:
        """Score the panel of rows; a learned score has contrasts for each fold of its own rows."""
        panel, folds = rows.panel(self.model), rows.folds
        if folds is not None and isinstance(self._score, LearnedScore):
            return self._score.own_outlier_score(panel, folds)
        return apply_score(self._score, panel)


class OverMatrix:
    """A score over a matrix: rho of a model, [x, y], or y alone. Nothing but the matrix is fitted, on all its rows."""

    copies: CopiesAre = "among"

    def __init__(
        self,
        matrix: Callable[[Rows], Any],
        score: Callable[[Any], Any],
        *,
        reads: Reads = NO_MODEL,
        whole_batch: bool = False,
    ) -> None:
        self._matrix, self._make, self.reads, self.whole_batch = matrix, score, reads, whole_batch

    def fit(self, table: Table) -> Floats:
        """Fit on the rows of the table."""
        return self.fit_among(table.own)

    def fit_among(self, rows: Rows) -> Floats:
        """Fit on some rows and return their own scores."""
        M = self._matrix(rows)
        self._score = self._make(M)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BatchDependenceWarning)  # known, and dealt with by `whole_batch`
            return np.asarray(self._score.fit_outlier_score(M))

    def score(self, rows: Rows) -> Floats:
        """Score rows by what was fitted."""
        return np.asarray(self._score.outlier_score(self._matrix(rows)))


class Cleanlab:
    """One of cleanlab's own scorers of multi-label data, on one-vs-rest probabilities."""

    copies: CopiesAre = "alone"
    whole_batch = False
    reads = BY_BR

    def __init__(self, method: str, aggregator: dict[str, Any]) -> None:
        self._options = {"method": method, "aggregator_kwargs": aggregator}

    def fit(self, table: Table) -> Floats:
        """Nothing is learned; the rows of the table are scored."""
        return self.score(table.own)

    def score(self, rows: Rows) -> Floats:
        """Return the opposite of the label quality."""
        cleanlab = require("cleanlab.multilabel_classification", extra="experiments")
        present = [np.flatnonzero(y).tolist() for y in rows.Y]
        return -np.asarray(cleanlab.get_label_quality_scores(present, rows.probability, **self._options))


class Song:
    """The conditional rival of the paper's related work: mapped mixtures (Song et al. 2007)."""

    copies: CopiesAre = "none"
    whole_batch = False
    reads = NO_MODEL

    def fit(self, table: Table) -> Floats:
        """Fit on each fold's other rows and on all rows."""
        self._detector = SongCAD().fit(table.X, table.Y)
        assert self._detector.reference_score_ is not None
        return self._detector.reference_score_

    def score(self, rows: Rows) -> Floats:
        """Return -log f(y | x) of other rows."""
        return self._detector.outlier_score(rows.X, rows.Y)


class BaseRate:
    """-log P(y) with independent responses: the context is ignored."""

    copies: CopiesAre = "alone"
    whole_batch = False
    reads = NO_MODEL

    def fit(self, table: Table) -> Floats:
        """Count how often each response is present."""
        self._rate = smoothed_base_rate(table.Y)
        return self.score(table.own)

    def score(self, rows: Rows) -> Floats:
        """Return the improbability of each label set."""
        return np.asarray(-(rows.Y @ np.log(self._rate) + (1.0 - rows.Y) @ np.log1p(-self._rate)))


class NearestLabelSet:
    """Number of responses in which a row differs from the nearest label set of the training rows."""

    copies: CopiesAre = "alone"
    whole_batch = False
    reads = NO_MODEL

    def fit(self, table: Table) -> Floats:
        """Remember the label sets."""
        self._sets = np.unique(table.Y, axis=0)
        return self.score(table.own)

    def score(self, rows: Rows) -> Floats:
        """Return the distances of rows; those of the table are compared with the label sets of other folds."""
        if rows.folds is None:
            return hamming_to_nearest(rows.Y, self._sets)
        out = np.empty(len(rows.Y))
        for f in np.unique(rows.folds):
            mine = rows.folds == f
            out[mine] = hamming_to_nearest(rows.Y[mine], np.unique(rows.table.Y[rows.table.folds != f], axis=0))
        return out


def hamming_to_nearest(Y: Codes, sets: Codes) -> Floats:
    """Return the smallest number of differing responses to any of `sets`, shape (n,).

    Examples
    --------
    >>> hamming_to_nearest(np.array([[1, 1, 0]], np.uint8), np.array([[0, 0, 0], [1, 0, 0]], np.uint8))
    array([1.])
    """
    A, B = Y.astype(np.float32), sets.astype(np.float32)
    apart = A.sum(axis=1)[:, None] + B.sum(axis=1)[None, :] - 2.0 * (A @ B.T)
    return np.asarray(apart.min(axis=1), dtype=np.float64)


def _named(score: str) -> Callable[[], Any]:
    return lambda: as_score(score)


def _rho(rows: Rows) -> Any:
    return rows.rho("DBR")


def _one_class_of(M: Any) -> OneClassScore:
    return OneClassScore(nu=NU, gamma=1.0 / M.shape[1])


def _pyod(module: str, name: str, **options: Any) -> Callable[[Any], ForeignScore]:
    def make(M: Any) -> ForeignScore:
        return ForeignScore(getattr(require(f"pyod.models.{module}", extra="experiments"), name)(**options))

    return make


def _joint(rows: Rows) -> Any:
    return rows.joint


def _narrow(rows: Rows) -> Any:
    return rows.narrow_joint


def _responses(rows: Rows) -> Any:
    return rows.Y.astype(np.float64)


_EMA = {"method": "exponential_moving_average", "alpha": 0.8}
_SOFTMIN = {"method": "softmin", "temperature": 0.1}

METHODS: dict[str, Callable[[], Method]] = {
    DEFAULT: lambda: OverRho(DEFAULT_MODEL, lambda: as_score(MCODE().score)),
    "RD": lambda: OverMatrix(_joint, lambda M: robust()),
    "LOF": lambda: OverMatrix(_joint, lambda M: LOFScore(NEIGHBOURS)),
    "OCSVM": lambda: OverMatrix(_joint, _one_class_of),
    "MCODE-ComP": lambda: OverRho("DBR", _named("complement")),
    "MCODE-RD": lambda: OverMatrix(_rho, lambda M: robust(), reads=BY_DBR),
    "MCODE-Linf": lambda: OverRho("DBR", lambda: NormScore(np.inf)),
    "MCODE-LOF": lambda: OverMatrix(_rho, lambda M: LOFScore(NEIGHBOURS), reads=BY_DBR),
    "MCODE-OCSVM": lambda: OverMatrix(_rho, _one_class_of, reads=BY_DBR),
    "DBR noise": lambda: OverRho("DBR", _named("noise")),
    "chain complement": lambda: OverRho("chain", _named("complement")),
    "chain Linf": lambda: OverRho("chain", lambda: NormScore(np.inf)),
    "chain noise": lambda: OverRho("chain", _named("noise")),
    "chain learned": lambda: OverRho("chain", _named("learned")),
    "BR complement": lambda: OverRho("BR", _named("complement")),
    "BR Linf": lambda: OverRho("BR", lambda: NormScore(np.inf)),
    "BR noise": lambda: OverRho("BR", _named("noise")),
    "BR learned": lambda: OverRho("BR", _named("learned")),
    "cleanlab self-confidence": lambda: Cleanlab("self_confidence", _EMA),
    "cleanlab margin": lambda: Cleanlab("normalized_margin", _EMA),
    "cleanlab entropy": lambda: Cleanlab("confidence_weighted_entropy", _EMA),
    "cleanlab softmin": lambda: Cleanlab("self_confidence", _SOFTMIN),
    "IForest [x, y]": lambda: OverMatrix(_narrow, _pyod("iforest", "IForest", random_state=0)),
    "IForest y": lambda: OverMatrix(_responses, _pyod("iforest", "IForest", random_state=0)),
    "ECOD [x, y]": lambda: OverMatrix(_narrow, _pyod("ecod", "ECOD"), whole_batch=True),
    "ECOD y": lambda: OverMatrix(_responses, _pyod("ecod", "ECOD"), whole_batch=True),
    "base rate": BaseRate,
    "nearest label set": NearestLabelSet,
    "SongCAD": Song,
}
# A method that takes long is measured on some data sets only, without repetitions, and stands in a table of its own.
FEWER_SETS: dict[str, tuple[str, ...]] = {"SongCAD": ("emotions", "genbase", "medical", "yeast")}
PAPER_EIGHT = ("RD", "LOF", "OCSVM", "MCODE-ComP", "MCODE-RD", "MCODE-Linf", "MCODE-LOF", "MCODE-OCSVM")
CLEANLAB = tuple(name for name in METHODS if name.startswith("cleanlab"))
