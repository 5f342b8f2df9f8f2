"""What readers through pyarrow share: their options, types by name, and their errors as one sentence of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcode._optional import require
from mcode.data.opening import first_sentence, not_in_encoding
from mcode.errors import DataFormatError, McodeError

BLOCK = 1 << 23  # bytes that pyarrow reads at once
SMALL_BLOCK = 1 << 18  # the same where memory counts


@dataclass(frozen=True)
class TableOptions:
    """How to read a table.

    Attributes
    ----------
    delimiter : str or None, what separates cells of a CSV file; None looks at the header
    encoding : str
    types : dict, column -> name of an Arrow type, where it is known before reading
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    types: Mapping[str, str] = field(default_factory=dict)

    def arrow_types(self) -> dict[str, Any]:
        """Return the known types as Arrow has them."""
        arrow = require("pyarrow", extra="tables")
        return {name: arrow_type(arrow, kind) for name, kind in self.types.items()}


def arrow_type(arrow: Any, kind: str) -> Any:
    """Return the Arrow type of this name, time zone included."""
    unit, _, zone = kind.removeprefix("timestamp[").removesuffix("]").partition(", tz=")
    return arrow.timestamp(unit, zone or None) if kind.startswith("timestamp[") else arrow.type_for_alias(kind)


@contextmanager
def arrow_errors(path: object) -> Iterator[None]:
    """Turn what pyarrow raises over a damaged file into one sentence of ours."""
    arrow = require("pyarrow", extra="tables")
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataFormatError(path, reason=not_in_encoding(error.encoding)) from error
    except (arrow.ArrowException, OSError, ValueError, TypeError, OverflowError, EOFError, KeyError) as error:
        if isinstance(error, McodeError):
            raise
        raise DataFormatError(path, reason=f"it cannot be read ({first_sentence(error)})") from error
