"""The lines of a result: which response of each row is most likely wrong, in the user's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.distributed.table import Rows
from mcode.models.encoding import ResponseEncoding
from mcode.own_words import in_own_values, written_values
from mcode.report.table import id_column


@dataclass
class Lines:
    """Text columns of the result for the rows of a partition."""

    id_name: str
    ids: NDArray[Any]
    response: NDArray[Any]
    observed: NDArray[Any]
    expected: NDArray[Any]
    probability: Floats
    sentence: NDArray[Any]
    data: Any

    @classmethod
    def of(cls, rows: Rows, encoding: ResponseEncoding, rho: Floats, blame: Floats) -> Self:
        """Name the response of each row that is most likely wrong."""
        here, worst = np.arange(len(rows.Y)), blame.argmax(axis=1)
        code, likely = rows.Y[here, worst], rho[here, worst]
        expected = np.where(likely < 0.5, 1 - code, code)
        if rows.data is None:
            written = np.array([[str(v) for v in [*values.tolist(), None][:2]] for values in encoding.values], object)
        else:
            written = np.array([[str(v) for v in pair] for pair in written_values(encoding, rows.data)], object)
        name = id_column(None if rows.data is None else rows.data.id_name)
        names = np.array(encoding.names, object)
        ids = rows.ids if rows.ids.dtype.kind in "iu" else np.array([str(i) for i in rows.ids], object)
        empty = np.full(len(here), "", object)
        return cls(name, ids, names[worst], written[worst, code], written[worst, expected], likely, empty, rows.data)

    def explain(self, at: NDArray[np.intp], findings: Sequence[Any]) -> None:
        """Take what the findings of some rows say."""
        said = list(findings) if self.data is None else in_own_values(findings, self.data)
        for row, finding in zip(at.tolist(), said, strict=True):
            first = finding.responses[0]
            self.response[row] = first.name
            self.observed[row], self.expected[row] = str(first.observed), str(first.expected)
            self.probability[row] = first.probability
            self.sentence[row] = finding.sentence

    def columns(self) -> dict[str, Any]:
        """Return the columns about the response."""
        return {
            "response": self.response,
            "observed": self.observed,
            "expected": self.expected,
            "probability": self.probability,
            "sentence": self.sentence,
        }

    def first(self, at: NDArray[np.intp], rank: Any, score: Floats, error: Floats, most: int) -> list[dict[str, Any]]:
        """Return the most suspicious of some rows, for the screen."""
        chosen = at[np.argsort(-score[at], kind="stable")[:most]]
        return [
            {
                "rank": int(rank[row]),
                "score": float(score[row]),
                "error_probability": float(error[row]),
                "id": str(self.ids[row]),
                "sentence": str(self.sentence[row]),
            }
            for row in chosen.tolist()
        ]


def merged(lists: Sequence[list[dict[str, Any]]], most: int) -> list[dict[str, Any]]:
    """Return the most suspicious lines of all partitions.

    Examples
    --------
    >>> merged([[{"score": 1.0}], [{"score": 3.0}, {"score": 2.0}]], 2)
    [{'score': 3.0}, {'score': 2.0}]
    """
    return sorted((line for lines in lists for line in lines), key=lambda line: -line["score"])[:most]
