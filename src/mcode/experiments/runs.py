"""Rows of results as arrays: runs by methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mcode._arrays import Floats


def complete_runs(
    rows: Iterable[Mapping[str, str]], methods: Sequence[str], measure: str, run: Sequence[str], **where: object
) -> Floats:
    """Return what every method reached in every run, shape (r, k): only runs in which all methods are there.

    Parameters
    ----------
    rows : rows of results
    methods : the columns of the array
    measure : the column of the rows that is wanted
    run : the columns of the rows that name a run
    where : values that other columns must have

    Examples
    --------
    >>> rows = [{"fold": "0", "method": "a", "auc": "0.5"}, {"fold": "0", "method": "b", "auc": "0.7"},
    ...         {"fold": "1", "method": "a", "auc": "0.6"}]
    >>> complete_runs(rows, ("a", "b"), "auc", ("fold",))
    array([[0.5, 0.7]])
    """
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        if all(row[name] == str(value) for name, value in where.items()):
            found.setdefault(tuple(row[name] for name in run), {})[row["method"]] = float(row[measure])
    whole = [[of[method] for method in methods] for of in found.values() if all(method in of for method in methods)]
    return np.array(whole).reshape(-1, len(methods))


def values_of(rows: Iterable[Mapping[str, str]], column: str) -> list[str]:
    """Return the different values of a column, in the order in which they come."""
    return list(dict.fromkeys(row[column] for row in rows))
