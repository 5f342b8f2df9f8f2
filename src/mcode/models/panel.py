"""Rows seen through several models at once: what a score looks at when one rho is not enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.models.encoding import Codes

Views: TypeAlias = Mapping[str, Floats]  # log P of each observed response under each of several models, each (n, d)


@dataclass(frozen=True)
class Panel:
    """Responses, and how probable each of them is under each model.

    Attributes
    ----------
    Y : (n, d) codes of the responses
    views : log rho by the name of a model, each (n, d)
        "model" is the detector's own; "br", "chain" and "prior" are binary relevance, a chain, and the same chain
        without the context.
    """

    Y: Codes
    views: Views

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Panel:
        """Return some of the rows."""
        return Panel(self.Y[rows], {name: view[rows] for name, view in self.views.items()})

    @property
    def rho(self) -> Floats:
        """The detector's own rho."""
        return np.exp(self.views["model"])


# (Y, rows) -> the panel of some rows of a reference, had their responses been Y
Reread: TypeAlias = Callable[[Codes, NDArray[np.intp]], Panel]
