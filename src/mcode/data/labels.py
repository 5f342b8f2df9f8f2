"""Which columns are responses, and what their values are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._optional import require
from mcode.data.columns import Columns
from mcode.data.features import NO_OF, YES_OF, as_no_yes, number_text
from mcode.errors import DataFormatError, ParameterError
from mcode.models.encoding import MOST_VALUES, Codes

MissingLabels: TypeAlias = Literal["refuse", "drop"]
OwnValues: TypeAlias = tuple[str, ...]  # how the codes 0, 1, ... of a response are written

ZERO_ONE: OwnValues = ("0", "1")
USUALLY_MOST_VALUES = 20  # more are rarely meant to be a response


@dataclass(frozen=True)
class Responses:
    """The responses of a file: codes, names, how the values of each are written, and which rows are known."""

    codes: Codes
    names: tuple[str, ...]
    values: tuple[OwnValues, ...]
    known: NDArray[np.bool_]
    columns: tuple[str, ...] = ()  # the columns that they came from, which are no context then


def as_patterns(parameter: str, patterns: object) -> list[str]:
    """Return one pattern or several as a list."""
    if isinstance(patterns, str):
        return [patterns]
    listed: list[Any] = list(patterns) if isinstance(patterns, Iterable) else [patterns]
    if not all(isinstance(pattern, str) for pattern in listed):
        raise ParameterError(parameter, patterns, "a column name, a pattern such as 'dx_*', or a list of them")
    return listed


def match_columns(source: str, names: Sequence[str], patterns: Sequence[str], role: str) -> list[str]:
    """Return the names that match any of the patterns, in the order of the file; each pattern must match something.

    Examples
    --------
    >>> match_columns("visits.csv", ["age", "dx_a", "dx_b"], ["dx_*"], "label")
    ['dx_a', 'dx_b']
    >>> match_columns("visits.csv", ["age", "dx_a"], ["rx_*"], "label")
    Traceback (most recent call last):
    mcode.errors.DataFormatError: visits.csv: no column matches the label pattern 'rx_*'; the columns are 'age', 'dx_a'.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        found = [name for name in names if name == pattern] or [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise DataFormatError(
                source, reason=f"no column matches the {role} pattern {pattern!r}; {_known(names, pattern)}"
            )
        chosen.update(found)
    return [name for name in names if name in chosen]


def _known(names: Sequence[str], wanted: str) -> str:
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.7) if len(names) <= 5000 else []
    if near:
        return f"did you mean {near[0]!r}?"
    shown = ", ".join(repr(name) for name in names[:8])
    return f"the columns are {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def check_column(source: str, names: Sequence[str], wanted: str, role: str) -> str:
    """Return `wanted` if it is a column."""
    if wanted not in names:
        raise DataFormatError(source, reason=f"there is no {role} column {wanted!r}; {_known(names, wanted)}")
    return wanted


def responses_of(
    columns: Columns,
    names: Sequence[str],
    values: Sequence[OwnValues] | None,
    missing: MissingLabels,
    max_values: int = USUALLY_MOST_VALUES,
) -> Responses:
    """Return the named columns as codes 0, 1, ...

    Parameters
    ----------
    columns : Columns
    names : list of str
    values : list of tuples or None
        The values of each response, known from earlier data; None finds them.
    missing : "refuse" or "drop"
        What to do with rows where a response is missing.
    max_values : int
        The most values that a response may have.
    """
    columns = columns.only(names)
    if sp.issparse(columns.numbers):  # columns of a CSR matrix are slow to come by, one at a time
        by_column: Any = columns.numbers.tocsc()
        columns = replace(columns, numbers=by_column)
    codes = np.zeros((columns.n_rows, len(names)), np.uint8)
    known = np.ones(columns.n_rows, bool)
    written: list[OwnValues] = []
    for j, name in enumerate(names):
        reader = _from_numbers if name in columns.number_names else _from_texts
        codes[:, j], there, pair = reader(columns, name, None if values is None else values[j], max_values)
        written.append(pair)
        if missing == "refuse" and not there.all():
            raise _missing(columns.source, name, there)
        known &= there
    if not known.any():
        raise DataFormatError(columns.source, reason="every row lacks the value of some label")
    return Responses(codes, tuple(names), tuple(written), known, tuple(names))


def _missing(source: str, name: str, there: NDArray[np.bool_]) -> DataFormatError:
    rows = np.flatnonzero(~there)
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    return DataFormatError(
        source,
        reason=f"row {rows[0]}{more}, counted from 0, has no value for label {name!r}; "
        "fill it, or leave such rows out with missing_labels='drop'",
    )


Column: TypeAlias = tuple[Codes, NDArray[np.bool_], OwnValues]


def _from_numbers(columns: Columns, name: str, values: OwnValues | None, max_values: int) -> Column:
    cells = columns.number(name)
    there = ~np.isnan(cells)
    if name in columns.no_yes and values in (None, columns.no_yes[name]):
        return np.nan_to_num(cells).astype(np.uint8), there, columns.no_yes[name]
    found = np.unique(cells[there])
    if values in (None, ZERO_ONE) and np.isin(found, (0, 1)).all():
        return np.nan_to_num(cells).astype(np.uint8), there, ZERO_ONE
    texts = [number_text(value) for value in found[: MOST_VALUES + 1]]
    if values is None and len(found) > 2 and (found != np.floor(found)).any():
        raise DataFormatError(
            columns.source,
            reason=f"label column {name!r} holds {len(found)} different numbers, {texts[0]} and {texts[1]} among them; "
            "a response has two values or categories, so leave a column of measurements in the context",
        )
    pair = _values(columns.source, name, texts, len(found), values, max_values)
    _refuse_names(columns.source, name, pair, int(there.sum()), values)
    codes = np.zeros(len(cells), np.uint8)
    for value, text in zip(found.tolist(), texts, strict=False):
        codes[cells == value] = pair.index(text)
    return codes, there, pair


def _from_texts(columns: Columns, name: str, values: OwnValues | None, max_values: int) -> Column:
    compute = require("pyarrow.compute", extra="tables")
    arrow = require("pyarrow", extra="tables")
    cells = columns.texts[name].cast(arrow.string()).combine_chunks()
    distinct = [value for value in compute.unique(cells).to_pylist() if value is not None]
    pair = _values(columns.source, name, sorted(distinct), len(distinct), values, max_values)
    there = np.asarray(cells.is_valid())
    _refuse_names(columns.source, name, pair, int(there.sum()), values)
    code = compute.fill_null(compute.index_in(cells, value_set=arrow.array(pair, arrow.string())), 0)
    return np.asarray(code).astype(np.uint8), there, pair


def _values(
    source: str, name: str, found: list[str], n_found: int, values: OwnValues | None, max_values: int
) -> OwnValues:
    """Return the values of a response, or say why it cannot be one."""
    if values is not None:
        strange = next((value for value in found if value not in values), None)
        if strange is not None:
            raise DataFormatError(source, reason=f"label {name!r} holds {strange!r}; its values are {_listed(values)}")
        return values
    if n_found > max_values:
        shown = ", ".join(found[:3])
        allowed = f"two values or up to {max_values} categories are accepted"
        way_out = f", and up to {MOST_VALUES} with max_values={n_found}" if n_found <= MOST_VALUES else ""
        raise DataFormatError(
            source, reason=f"label column {name!r} has {n_found} different values ({shown}, ...); {allowed}{way_out}"
        )
    if n_found > 2:
        return tuple(found)
    ordered = as_no_yes(tuple(found)) or tuple(found)
    if len(ordered) == 2:
        return ordered[0], ordered[1]
    return _with_other(ordered[0]) if ordered else ZERO_ONE


def _refuse_names(source: str, name: str, found: OwnValues, n_rows: int, values: OwnValues | None) -> None:
    """Refuse a column in which no value comes twice: that is a name of the row."""
    if values is None and len(found) > 2 and len(found) == n_rows:
        raise DataFormatError(
            source,
            reason=f"label column {name!r} has another value in each of its {n_rows} rows; "
            "a response has two values or categories that come again",
        )


def _listed(values: OwnValues) -> str:
    return ", ".join(map(repr, values[:-1])) + f" and {values[-1]!r}"


def _with_other(only: str) -> OwnValues:
    """Return the two values of a response of which one never occurs."""
    meaning = only.strip().lower()
    if meaning in NO_OF:
        return NO_OF[meaning], only
    return only, YES_OF.get(meaning, f"not {only}")


def tags_of(columns: Columns, column: str, separator: str, names: Sequence[str] | None) -> Responses:
    """Return one response per distinct tag of a column of delimited tags, or of lists.

    An empty or missing cell has no tag. `names` are the tags known from earlier data; None takes all there are.
    """
    cells = _tag_lists(columns, column, separator)
    found = {tag for tags in cells for tag in tags}
    if names is None:
        names = sorted(found)
    elif strange := sorted(found.difference(names)):
        raise DataFormatError(
            columns.source, reason=f"tag {strange[0]!r} in {column!r} is not known from the first file"
        )
    if not names:
        raise DataFormatError(columns.source, reason=f"column {column!r} holds no tag")
    at = {tag: j for j, tag in enumerate(names)}
    codes = np.zeros((columns.n_rows, len(names)), np.uint8)
    for i, tags in enumerate(cells):
        codes[i, [at[tag] for tag in tags]] = 1
    return Responses(codes, tuple(names), (ZERO_ONE,) * len(names), np.ones(len(codes), bool), (column,))


def _tag_lists(columns: Columns, column: str, separator: str) -> list[list[str]]:
    if not separator:
        raise ParameterError("separator", separator, "at least one character")
    if column in columns.number_names:  # tags that happen to be numbers, one per row
        return [[] if np.isnan(value) else [number_text(value)] for value in columns.number(column).tolist()]
    cells: list[Any] = columns.texts[column].to_pylist()
    split = [cell if isinstance(cell, list) else str("" if cell is None else cell).split(separator) for cell in cells]
    return [[tag for tag in (str(t).strip() for t in tags if t is not None) if tag] for tags in split]
