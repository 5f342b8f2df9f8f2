"""Inner products between rows, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Matrix


def inner_products(A: Matrix, B: Matrix) -> NDArray[Any]:
    """Return the inner product of each row of `A` with each row of `B`, as a dense array.

    Examples
    --------
    >>> inner_products(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[11.,  2.]])
    """
    products: Any = A @ B.T
    return np.asarray(products if isinstance(products, np.ndarray) else products.toarray())


def squared_lengths(A: Matrix) -> NDArray[Any]:
    """Return the squared length of each row.

    Examples
    --------
    >>> squared_lengths(np.array([[3.0, 4.0]]))
    array([25.])
    """
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", A, A))
    return np.asarray(A.multiply(A).sum(axis=1)).ravel()
