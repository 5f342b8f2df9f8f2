"""Responses with several values as columns of 0 and 1: one column for each value; a response with two values is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mcode.models.encoding import Codes

NumberOfValues: TypeAlias = "tuple[int, ...] | None"  # of each response; None where all have two


@dataclass(frozen=True)
class Indicators:
    """The columns that responses become.

    Attributes
    ----------
    n_values : tuple of int, how many values each response has

    Examples
    --------
    >>> columns = Indicators((2, 3))
    >>> columns.of(np.array([[1, 0], [0, 2]], dtype=np.uint8))
    array([[1, 1, 0, 0],
           [0, 0, 0, 1]], dtype=uint8)
    """

    n_values: tuple[int, ...]

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The first column of each response, and after the last one the number of columns."""
        return np.concatenate([[0], np.cumsum([1 if k == 2 else k for k in self.n_values])]).astype(np.intp)

    @cached_property
    def response(self) -> NDArray[np.intp]:
        """The response of each column."""
        return np.repeat(np.arange(len(self.n_values)), np.diff(self.starts))

    def columns(self, response: int) -> slice:
        """Return the columns of one response."""
        return slice(int(self.starts[response]), int(self.starts[response + 1]))

    def of(self, Y: Codes) -> Codes:
        """Return the columns of some rows; a code that no value has, such as a missing one, has no column."""
        out = np.zeros((len(Y), int(self.starts[-1])), np.uint8)
        for j, k in enumerate(self.n_values):
            if k == 2:
                out[:, self.starts[j]] = Y[:, j]
            else:
                out[:, self.columns(j)] = Y[:, j, None] == np.arange(k)
        return out


def several(n_values: Sequence[int]) -> NumberOfValues:
    """Return the numbers of values where some response has more than two, None where none has.

    Examples
    --------
    >>> several([2, 2]), several([2, 3])
    (None, (2, 3))
    """
    return tuple(int(k) for k in n_values) if any(k > 2 for k in n_values) else None


def indicators(Y: Codes, n_values: NumberOfValues) -> Codes:
    """Return responses as columns of 0 and 1, as they are where all have two values."""
    return Y if n_values is None else Indicators(n_values).of(Y)


def other_value(Y: Codes, n_values: NumberOfValues, rng: np.random.Generator) -> Codes:
    """Return another value for each cell, all others alike.

    Examples
    --------
    >>> other_value(np.array([[0, 1]], dtype=np.uint8), None, np.random.default_rng(0))
    array([[1, 0]], dtype=uint8)
    """
    if n_values is None:
        return (1 - Y).astype(np.uint8)
    count = np.asarray(n_values)
    further = 1 + (rng.random(Y.shape) * (count - 1)).astype(np.intp)
    return np.asarray((Y + further) % count, dtype=np.uint8)
