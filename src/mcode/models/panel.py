"""Rows seen through several models at once: what a score looks at when one rho is not enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.models.encoding import MISSING, Codes
from mcode.models.indicators import NumberOfValues

Views: TypeAlias = Mapping[str, Floats]  # log P of each observed response under each of several models, each (n, d)


@dataclass(frozen=True)
class Panel:
    """Responses, and how probable each of them is under each model.

    Attributes
    ----------
    Y : (n, d) codes of the responses; a missing one is at its most likely value
    views : log rho by the name of a model, each (n, d)
        "model" is the detector's own; "br", "chain" and "prior" are binary relevance, a chain, and the same chain
        without the context; "others" is each response given all others without the context, and "mutual" the same
        in both directions (`mcode.models.mutual`); "alike" is how rows that are alike answered, and "twins" how those
        did that are nearly the same (`mcode.models.alike`); "pairs" is which responses go together
        (`mcode.models.pairs`), "company" how much the other responses are like those of the rows that have a response
        (`mcode.models.company`), "prototypes" how much the context is (`mcode.models.prototypes`), and "rate" how often
        each occurs.
    known : (n, d) boolean array, or None where no response is missing
    n_values : tuple of int, how many values each response has; None where all have two
    """

    Y: Codes
    views: Views
    known: NDArray[np.bool_] | None = None
    n_values: NumberOfValues = None

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Panel:
        """Return some of the rows."""
        known = None if self.known is None else self.known[rows]
        return Panel(self.Y[rows], {name: view[rows] for name, view in self.views.items()}, known, self.n_values)

    def only_known(self, Y: Codes, rows: NDArray[np.intp]) -> Codes:
        """Return other responses Y of some rows, missing wherever those of the panel are."""
        return Y if self.known is None else np.where(self.known[rows], Y, MISSING).astype(np.uint8)

    @property
    def rho(self) -> Floats:
        """The detector's own rho, in double precision: next to 1, single precision has no numbers between."""
        return np.exp(self.views["model"], dtype=np.float64)


# (Y, rows) -> the panel of some rows of a reference, had their responses been Y
Reread: TypeAlias = Callable[[Codes, NDArray[np.intp]], Panel]
