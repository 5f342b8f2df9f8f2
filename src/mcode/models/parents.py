"""Which responses each response may see: the one thing in which the conditional models differ.

`parents[j, k]` is True where the model of response j uses response k as an input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcode.errors import ParameterError

Parents: TypeAlias = NDArray[np.bool_]


def none(n_responses: int) -> Parents:
    """Nobody sees anybody: binary relevance.

    Examples
    --------
    >>> none(2).any()
    np.False_
    """
    return np.zeros((n_responses, n_responses), dtype=bool)


def all_others(n_responses: int) -> Parents:
    """Everybody sees everybody else: dependent binary relevance.

    Examples
    --------
    >>> all_others(2).astype(int)
    array([[0, 1],
           [1, 0]])
    """
    return ~np.eye(n_responses, dtype=bool)


def chain(order: Sequence[int], n_responses: int) -> Parents:
    """Each response sees those before it in `order`: a classifier chain, a proper joint distribution.

    Examples
    --------
    >>> chain([1, 0], 2).astype(int)  # 1 comes first, so 0 sees 1
    array([[0, 1],
           [0, 0]])
    """
    if sorted(order) != list(range(n_responses)):
        missing = sorted(set(range(n_responses)) - set(order))
        lacks = f", without {missing}" if missing else ""
        raise ParameterError("order", list(order), f"a list of each response from 0 to {n_responses - 1} once{lacks}")
    place = np.empty(n_responses, dtype=np.intp)
    place[np.asarray(order)] = np.arange(n_responses)
    return place[None, :] < place[:, None]


def tree(parent_of: NDArray[np.intp]) -> Parents:
    """Each response sees its parent, or nobody where that is -1.

    Examples
    --------
    >>> tree(np.array([-1, 0])).astype(int)
    array([[0, 0],
           [1, 0]])
    """
    sees = none(len(parent_of))
    children = np.flatnonzero(parent_of >= 0)
    sees[children, parent_of[children]] = True
    return sees


def is_acyclic(parents: Parents) -> bool:
    """Whether the responses can be put in an order in which each sees only earlier ones.

    Examples
    --------
    >>> is_acyclic(chain([1, 0], 2)), is_acyclic(all_others(2))
    (True, False)
    """
    left = np.ones(len(parents), dtype=bool)
    while left.any():
        ready = left & ~(parents & left).any(axis=1)
        if not ready.any():
            return False
        left &= ~ready
    return True
