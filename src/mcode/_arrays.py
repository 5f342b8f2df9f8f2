"""Anything that holds a table -> canonical arrays, once, at the public door. Code behind the door trusts them.

Canonical: a C-contiguous float32 or float64 array, or a CSR matrix with sorted indices and no repeated entries.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
TableLike: TypeAlias = object  # NumPy or SciPy sparse matrix, nested lists, pandas, polars or Arrow table
Matrix: TypeAlias = "NDArray[np.floating[Any]] | sp.csr_matrix"


def column_names(table: object) -> list[str] | None:
    """Names of the columns of a pandas, polars or Arrow table; None where a table has no names.

    Examples
    --------
    >>> column_names(np.zeros((2, 2))) is None
    True
    """
    arrow = hasattr(table, "schema") and hasattr(table, "column_names")  # its `columns` are the values
    names = getattr(table, "column_names" if arrow else "columns", None)
    return None if names is None else [str(name) for name in names]


def _place(row: int, column: int, names: list[str] | None) -> str:
    return f"row {row}, column {names[column]!r}" if names else f"row {row}, column {column}"


def _as_float(array: NDArray[Any], name: str) -> NDArray[np.floating[Any]]:
    if np.iscomplexobj(array):
        raise InputError(name, "Complex data not supported", "give real numbers")
    if array.dtype.kind == "f" and array.dtype.itemsize in (4, 8):
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        bad = next((v for v in array.ravel() if not _is_number(v)), array.dtype)
        raise InputError(
            name, f"the value {bad!r} is not a number", "encode text and dates as numbers first"
        ) from error


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _check_values(values: NDArray[Any], locate: Any, name: str, names: list[str] | None, largest: float) -> None:
    """Refuse what is no finite number, or too large; their sum of squares is a quick look at both."""
    flat = values.ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.dot(flat, flat))
    if np.isfinite(squares) and squares <= largest**2:
        return
    if not np.isfinite(flat).all():
        at = int(np.flatnonzero(~np.isfinite(flat))[0])
        row, column = locate(at)
        what = "NaN" if np.isnan(flat[at]) else "infinity"
        raise InputError(name, f"{_place(row, column, names)} is {what}", "fill or drop missing values first")
    top = float(np.abs(flat).max())
    if top > largest:
        raise InputError(name, f"it holds {top:.1e}", f"numbers up to {largest:.0e} are accepted; rescale the column")


def check_matrix(
    table: object, name: str = "X", *, min_rows: int = 1, min_columns: int = 0, largest: float = np.inf
) -> Matrix:
    """Return `table` as a finite two-dimensional float array or CSR matrix; the input is never modified.

    Parameters
    ----------
    table : array-like, sparse matrix or data frame of shape (n, m)
    name : str
        How errors call it.
    min_rows, min_columns : int
        The fewest rows and columns that make sense.
    largest : float
        The largest number that is accepted, whatever its sign.

    Examples
    --------
    >>> check_matrix([[1, 2], [3, 4]]).dtype
    dtype('float64')
    >>> check_matrix([[1.0], [float("nan")]])
    Traceback (most recent call last):
    mcode.errors.InputError: X: row 1, column 0 is NaN; fill or drop missing values first.
    """
    names = column_names(table)
    if sp.issparse(table):
        matrix: Matrix = _check_sparse(table, name, largest)
    else:
        array = table_to_array(table, name)
        if array.ndim != 2:
            raise InputError(
                name,
                f"it has {array.ndim} dimension(s)",
                "a table with rows and columns is expected; reshape(-1, 1) makes a single column one. "
                "Expected 2D array",
            )
        array = np.ascontiguousarray(_as_float(array, name))
        n_columns = array.shape[1]
        _check_values(array, lambda at: divmod(at, n_columns), name, names, largest)
        matrix = array
    n, m = matrix.shape
    if n < min_rows or m < min_columns:
        what = "row(s)" if n < min_rows else "column(s)"
        few = n if n < min_rows else m
        least = min_rows if n < min_rows else min_columns
        noun = "sample(s)" if n < min_rows else "feature(s)"
        raise InputError(
            name,
            f"it has {few} {what} (shape=({n}, {m}))",
            f"{few} {noun} while a minimum of {least} is required",
        )
    return matrix


def table_to_array(table: object, name: str) -> NDArray[Any]:
    """Return what holds a table as an array of any type and dimension, or say that its rows differ in length."""
    to_numpy = getattr(table, "to_numpy", None)
    try:
        return np.asarray(to_numpy() if to_numpy is not None else table)
    except ValueError as error:
        raise InputError(name, "its rows differ in length", "a table with rows and columns is expected") from error


def _check_sparse(table: Any, name: str, largest: float) -> sp.csr_matrix:
    matrix = sp.csr_matrix(table)
    data = _as_float(matrix.data, name)
    if data is not matrix.data:
        matrix = sp.csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    # asked of the caller's matrix, which remembers the answer
    if not (table if table.format == "csr" else matrix).has_canonical_format:
        matrix = matrix.copy()  # it may share its arrays with the caller's
        matrix.sum_duplicates()

    def locate(at: int) -> tuple[int, int]:
        row = int(np.searchsorted(matrix.indptr, at, side="right") - 1)
        return row, int(matrix.indices[at])

    _check_values(matrix.data, locate, name, None, largest)
    return matrix


def dense(matrix: Matrix) -> NDArray[np.floating[Any]]:
    """Return `matrix` as an array, whatever its storage."""
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
