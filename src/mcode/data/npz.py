"""Our own npz: X dense or as the parts of a CSR matrix, Y, feature_names, label_names. Pickles are never opened."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix, check_matrix
from mcode._progress import advance
from mcode.data.columns import MOST_COLUMNS, Columns
from mcode.data.labels import ZERO_ONE, Responses
from mcode.data.opening import first_sentence
from mcode.errors import DataFormatError, InputError, McodeError
from mcode.models.encoding import MISSING, TWO_VALUES, Codes, ResponseEncoding

SPARSE_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")
DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, OverflowError, NotImplementedError,
           zipfile.BadZipFile, zlib.error, MemoryError, RuntimeError, SyntaxError, UnicodeError)  # fmt: skip


def read_npz(path: Path) -> tuple[Columns, Responses]:
    """Read one of our npz files."""
    try:
        arrays = _arrays(path)
        X = _matrix(path, arrays)
        Y = arrays["Y"]
        codes = ResponseEncoding.of(Y).encode(Y)
        _refuse_others(Y, codes)
    except DAMAGED as error:
        raise _sentence(path, error) from error
    features = _names(path, arrays, "feature_names", X.shape[1])
    labels = _names(path, arrays, "label_names", codes.shape[1])
    if len(codes) != X.shape[0]:
        raise DataFormatError(path, reason=f"X has {X.shape[0]} rows, Y has {len(codes)}; both need the same")
    if Y.dtype.kind not in "biuf":
        raise DataFormatError(path, reason=f"Y holds values of type {Y.dtype}; 0 and 1 are allowed")
    known = np.ones(len(codes), bool)
    return Columns(str(path), features, X, features), Responses(codes, labels, (ZERO_ONE,) * len(labels), known)


def _refuse_others(Y: NDArray[Any], codes: Codes) -> None:
    """Refuse responses other than 0 and 1: an npz file has no names for them."""
    cells = Y.reshape(len(codes), -1)
    if cells.dtype.kind in "biuf":
        odd = ~np.isin(cells, (0, 1)) & (codes != MISSING)
        if odd.any():
            row, column = (int(at[0]) for at in np.nonzero(odd))
            raise InputError("Y", f"row {row}, column '{column}' holds {cells[row, column]}", TWO_VALUES)


def _sentence(path: Path, error: BaseException) -> McodeError:
    if isinstance(error, InputError):
        return DataFormatError(path, reason=f"{error.argument}: {error.came}; {error.allowed}")
    if isinstance(error, McodeError):
        return error
    if "allow_pickle" in str(error):
        return DataFormatError(path, reason="it holds pickled objects, which could run code and are never opened")
    return DataFormatError(path, reason=f"it is not one of our npz files, or damaged ({first_sentence(error)})")


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise DataFormatError(path, reason="it is no npz archive; np.savez writes one")
        wanted = [n for n in ("X", *SPARSE_PARTS, "Y", "feature_names", "label_names") if n in file.files]
        missing = {"Y"}.difference(wanted) or (set(SPARSE_PARTS) - set(wanted) if "X" not in wanted else set())
        if missing:
            raise DataFormatError(path, reason=f"the array {min(missing)!r} is missing; X and Y are needed")
        arrays = {}
        for at, name in enumerate(wanted):
            arrays[name] = file[name]
            advance("read", at + 1, len(wanted))
        return arrays


def _matrix(path: Path, arrays: dict[str, NDArray[Any]]) -> Matrix:
    if "X" in arrays:
        return check_matrix(arrays["X"], "X")
    shape = tuple(int(side) for side in arrays["x_shape"].ravel())
    parts = tuple(arrays[name] for name in SPARSE_PARTS[:3])
    if len(shape) != 2 or min(shape) < 0 or shape[1] > MOST_COLUMNS:
        raise DataFormatError(path, reason=f"x_shape is {shape}; rows and at most {MOST_COLUMNS} columns are allowed")
    matrix = sp.csr_matrix(parts, shape=shape)
    matrix.check_format(full_check=True)
    return check_matrix(matrix, "X")


def _names(path: Path, arrays: dict[str, NDArray[Any]], key: str, count: int) -> tuple[str, ...]:
    if key not in arrays:
        return tuple(str(j) for j in range(count))
    names = tuple(str(name) for name in arrays[key].ravel())
    if len(names) != count:
        raise DataFormatError(path, reason=f"{key} has {len(names)} names for {count} columns")
    return names
