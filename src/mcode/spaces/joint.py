"""(X, Y) -> [X | Y]: the space of the paper's baselines, where context and responses are not told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mcode._arrays import Matrix
from mcode.models.encoding import Codes
from mcode.models.indicators import NumberOfValues, indicators


def joint(X: Matrix, Y: Codes, n_values: NumberOfValues = None) -> Matrix:
    """Return [X | Y] in the storage of X, shape (n, m + d); a response with several values has a column for each.

    Examples
    --------
    >>> joint(np.array([[0.5]]), np.array([[1, 0]], dtype=np.uint8))
    array([[0.5, 1. , 0. ]])
    """
    parts: list[Any] = [X, indicators(Y, n_values)]
    return sp.csr_matrix(sp.hstack(parts)) if sp.issparse(X) else np.hstack(parts)
