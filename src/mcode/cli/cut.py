"""Which rows are findings: by false-discovery rate, by number, or by share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcode.detector import Audit
from mcode.errors import ParameterError
from mcode.ranking import is_share
from mcode.report import Cut
from mcode.report.summary import CutKind

DEFAULT_FDR = 0.1


@dataclass(frozen=True)
class CutRequest:
    """How many rows were asked for, checked before any work is done."""

    kind: CutKind
    level: float

    @classmethod
    def of(cls, fdr: float | None, top: int | None, rate: float | None) -> CutRequest:
        """Return the one cut that was asked for; a false-discovery rate of 10 % where none was.

        Examples
        --------
        >>> CutRequest.of(None, 20, None)
        CutRequest(kind='top', level=20)
        """
        given = {name: value for name, value in (("fdr", fdr), ("top", top), ("rate", rate)) if value is not None}
        if len(given) > 1:
            raise ParameterError("the cut", " and ".join(f"--{name}" for name in given), "one of --fdr, --top, --rate")
        if top is not None:
            if top < 1:
                raise ParameterError("--top", top, "a whole number of at least 1")
            return cls("top", top)
        kind: CutKind = "rate" if rate is not None else "fdr"
        level = rate if rate is not None else DEFAULT_FDR if fdr is None else fdr
        if not is_share(level):
            raise ParameterError(f"--{kind}", level, "a number between 0 and 1")
        return cls(kind, level)


def flag(found: Audit, request: CutRequest) -> tuple[NDArray[np.intp], Cut]:
    """Return the flagged rows, most suspicious first, and the cut with the false alarms to expect among them."""
    n = len(found.outlier_score)
    if request.kind == "fdr":
        rows = found.flagged(request.level)
    else:
        count = int(request.level) if request.kind == "top" else max(1, round(request.level * n))
        rows = found.ranking[:count]
    return rows, Cut(request.kind, request.level, len(rows), expected_false_alarms(found, rows))


def expected_false_alarms(found: Audit, rows: NDArray[np.intp]) -> float:
    """Return how many of the flagged rows are expected to be right: the sum of their 1 - error probability."""
    return float((1.0 - found.error_probability[rows]).sum())
