"""A table as all methods of the clean protocol see it: read once by each model, whatever is asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats, Matrix
from mcode.detector import MCODE
from mcode.detector.reading import companions_of
from mcode.models.conditional import (
    BinaryRelevance,
    ClassifierChain,
    ConditionalModel,
    DependentRelevance,
)
from mcode.models.encoding import Codes
from mcode.models.folds import stratified_folds
from mcode.models.names import as_model
from mcode.models.panel import Panel, Reread
from mcode.scores import as_score
from mcode.spaces.joint import joint
from mcode.spaces.rho import RhoSpace

Reads: TypeAlias = Mapping[str, tuple[str, ...]]  # models by name, and the companions that are wanted beside each
FOLDS = 5  # of the cross-fit and of the search for the penalty, as in `mcode.audit`
DEFAULT_MODEL = "DBR" if MCODE().model == "dbr" else "default"
# of the default's score and of the noise score, each once
COMPANIONS = tuple(dict.fromkeys(companions_of(as_score(MCODE().score)) + companions_of(as_score("noise"))))
WIDEST = 200  # features of x that PyOD's detectors are given, those of largest variance; they take dense tables only


def together(reads: Iterable[Reads]) -> Reads:
    """Return what several methods read, taken together.

    Examples
    --------
    >>> together([{"DBR": ()}, {"BR": ("rate",), "DBR": ("br",)}])
    {'DBR': ('br',), 'BR': ('rate',)}
    """
    wanted: dict[str, set[str]] = {}
    for one in reads:
        for model, companions in one.items():
            wanted.setdefault(model, set()).update(companions)
    return {model: tuple(name for name in COMPANIONS if name in names) for model, names in wanted.items()}


class Table:
    """Training rows, and the models fitted on them: BR, chain and DBR, each with a penalty and companions of its own.

    So a score over one of them is what `mcode.audit` gives whoever asks for that model and that score.

    Parameters
    ----------
    X, Y : the rows
    final : whether models on all rows are needed, for other rows than these
    reads : the companions that are wanted beside each model; None is all of them beside each
    """

    def __init__(self, X: Matrix, Y: Codes, *, final: bool, reads: Reads | None = None) -> None:
        self.X, self.Y, self._reads = X, Y, reads
        self.folds = stratified_folds(Y, FOLDS, np.random.default_rng(0))
        self._final = final
        self._spaces: dict[str, RhoSpace] = {}
        self._own_panels: dict[str, Panel] = {}

    def space(self, name: str) -> RhoSpace:
        """Return the space of a model, fitted when it is asked for the first time."""
        if name not in self._spaces:
            models = {"DBR": DependentRelevance(), "BR": BinaryRelevance(), "chain": ClassifierChain()}
            model: ConditionalModel = models[name] if name in models else as_model(MCODE().model)
            wanted = COMPANIONS if self._reads is None else self._reads[name]
            self._spaces[name] = RhoSpace(model, wanted).fit(self.X, self.Y, self.folds, final=self._final)
        return self._spaces[name]

    @property
    def own(self) -> Rows:
        """The training rows themselves, read by models that never saw them.

        What was read is kept, the rows are not: they know their table, and a table that knew them would stay in memory
        long after its last use, with the coefficients of all its models.
        """
        return Rows(self, self.X, self.Y, np.arange(len(self.Y)), self._own_panels)

    def with_responses(self, Y: Codes, rows: NDArray[np.intp]) -> Rows:
        """Return some of the training rows with other responses, read by models that never saw these rows.

        Whether a row is recorded right or wrong changes nothing in coefficients of the folds that do not hold it, at a
        given penalty, and hardly anything in that penalty, which is chosen on the losses of other rows. So what they
        say of a copy with an error in it is what they would say had the row been recorded so.
        """
        return Rows(self, self.X[rows], Y, rows)

    def reread(self, model: str) -> Reread:
        """Return a reader of training rows with other responses, by models that never saw them."""
        return lambda Y, rows: self.space(model).out_of_fold(self.X[rows], Y, rows)

    @cached_property
    def widest_features(self) -> NDArray[np.intp]:
        """The features of largest variance, at most `WIDEST`."""
        X: Any = self.X
        square = X.multiply(X) if not isinstance(X, np.ndarray) else X**2
        variance = np.asarray(square.mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
        return np.sort(np.argsort(-variance, kind="stable")[:WIDEST])


class Rows:
    """Rows to be scored: training rows read out of fold, or other ones.

    Parameters
    ----------
    table : what was fitted
    X, Y : the rows
    own : which of the training rows they are, maybe with other responses; None where they are other rows
    panels : what was read of them before
    """

    def __init__(
        self,
        table: Table,
        X: Matrix,
        Y: Codes,
        own: NDArray[np.intp] | None = None,
        panels: dict[str, Panel] | None = None,
    ) -> None:
        self.table, self.X, self.Y, self.own = table, X, Y, own
        self._panels: dict[str, Panel] = {} if panels is None else panels

    @property
    def folds(self) -> NDArray[np.intp] | None:
        """The fold of each row where they are training rows: what was fitted without it may judge it."""
        return None if self.own is None else self.table.folds[self.own]

    def panel(self, model: str) -> Panel:
        """Return the rows as a model sees them, with the companion views."""
        if model not in self._panels:
            space = self.table.space(model)
            self._panels[model] = (
                space.panel(self.X, self.Y) if self.own is None else space.out_of_fold(self.X, self.Y, self.own)
            )
        return self._panels[model]

    def rho(self, model: str) -> Floats:
        """Return the probability of every response by a model."""
        return self.panel(model).rho

    def with_copies(self, wrong: NDArray[np.bool_], copies: Rows) -> Rows:
        """Return these rows, the wrong ones among them replaced by their copies."""
        return _Mixed(self, wrong, copies)

    @property
    def probability(self) -> Floats:
        """P(response is present | x) by binary relevance, shape (n, d)."""
        rho = self.panel("BR").rho
        return np.where(self.Y == 1, rho, 1.0 - rho)

    @cached_property
    def joint(self) -> Any:
        """The rows as [x, y]."""
        return joint(self.X, self.Y)

    @cached_property
    def narrow_joint(self) -> Any:
        """The rows as [x, y], dense, with the features of largest variance."""
        part: Any = self.X[:, self.table.widest_features]
        return np.hstack([part if isinstance(part, np.ndarray) else part.toarray(), self.Y])


class _Mixed(Rows):
    """Rows some of which are replaced by copies: rho is put together from what was read, not read again."""

    def __init__(self, right: Rows, wrong: NDArray[np.bool_], copies: Rows) -> None:
        super().__init__(right.table, right.X, np.where(wrong[:, None], copies.Y, right.Y), right.own)
        self._right, self._wrong, self._copies = right, wrong, copies

    def rho(self, model: str) -> Floats:
        return np.where(self._wrong[:, None], self._copies.rho(model), self._right.rho(model))
