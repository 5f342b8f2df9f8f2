"""New rows scored with a saved model: the same server watches incoming data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcode._optional import require
from mcode.data import Schema, read
from mcode.detector import MCODE
from mcode.own_words import explain_new


@dataclass(frozen=True)
class Scorer:
    """A fitted detector, and how rows are read for it."""

    detector: MCODE
    schema: Schema

    def score(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the finding of each row, in the order of the rows."""
        pandas = require("pandas", extra="cli")
        columns = list(dict.fromkeys(name for row in rows for name in row))
        # Every column as objects: what a value is, the schema decides, as it does for files.
        frame = pandas.DataFrame(
            {name: pandas.Series([row.get(name) for row in rows], dtype=object) for name in columns}
        )
        data = read(frame, like=self.schema)
        return [_finite(finding.to_dict()) for finding in explain_new(self.detector, data)]


def _finite(value: Any) -> Any:
    """Return nested values that JSON can hold."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
