"""What can go wrong, as exceptions that build their own sentence.

`InputError` and `ParameterError` are also `ValueError`, so code written for scikit-learn catches them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class McodeError(Exception):
    """Base of every error that mcode raises on purpose."""


class InputError(McodeError, ValueError):
    """Data that cannot be used: names the argument, the place, what came and what is allowed.

    Parameters
    ----------
    argument : str
        The argument at fault, for example ``"X"``.
    came : str
        What was found, with row and column where they are known.
    allowed : str
        What is accepted instead, or the way out.

    Examples
    --------
    >>> raise InputError("Y", "row 3, column 'beach' holds 2", "each response may have two values")
    Traceback (most recent call last):
    mcode.errors.InputError: Y: row 3, column 'beach' holds 2; each response may have two values.
    """

    def __init__(self, argument: str, came: str, allowed: str) -> None:
        self.argument, self.came, self.allowed = argument, came, allowed
        super().__init__(argument, came, allowed)

    def __str__(self) -> str:
        return f"{self.argument}: {self.came}; {self.allowed}."


class ParameterError(McodeError, ValueError):
    """A parameter outside its range.

    Examples
    --------
    >>> raise ParameterError("r", 0.5, "a number of at least 1, or infinity")
    Traceback (most recent call last):
    mcode.errors.ParameterError: r must be a number of at least 1, or infinity; got 0.5.
    """

    def __init__(self, parameter: str, came: object, allowed: str) -> None:
        self.parameter, self.came, self.allowed = parameter, came, allowed
        super().__init__(parameter, came, allowed)

    def __str__(self) -> str:
        return f"{self.parameter} must be {self.allowed}; got {self.came!r}."


class UnknownNameError(ParameterError):
    """A name that stands for nothing, with the nearest one that does.

    Examples
    --------
    >>> raise UnknownNameError("score", "complment", ["complement", "norm"])
    Traceback (most recent call last):
    mcode.errors.UnknownNameError: score must be one of 'complement', 'norm' or an instance; got 'complment'. ...
    """

    def __init__(self, parameter: str, came: object, known: Iterable[str], *, or_instance: bool = True) -> None:
        self.known = sorted(known)
        names = ", ".join(repr(name) for name in self.known)
        super().__init__(parameter, came, f"one of {names}" + (" or an instance" if or_instance else ""))
        self.args = (parameter, came, self.known)

    def __str__(self) -> str:
        nearest = difflib.get_close_matches(str(self.came), self.known, n=1, cutoff=0.5)
        return super().__str__() + (f" Did you mean {nearest[0]!r}?" if nearest else "")


class NotConvergedWarning(UserWarning):
    """Some columns of a batched solve stopped before their tolerance; the sentence names them."""

    def __init__(self, columns: Sequence[str], worst: float) -> None:
        self.columns, self.worst = list(columns), worst
        super().__init__(self.columns, worst)

    def __str__(self) -> str:
        shown = ", ".join(self.columns[:5]) + (" and others" if len(self.columns) > 5 else "")
        return (
            f"{len(self.columns)} of the fitted models did not converge ({shown}): largest gradient "
            f"{self.worst:.1e}. Scale the features or raise the penalty."
        )


class DataFormatError(McodeError, ValueError):
    """A file or table that cannot be read: names it, the line where it is known, what came and what is allowed.

    Parameters
    ----------
    path : str or path
        The file, or what stands for it ("the pandas table").
    line : int or None, default=None
        Line of the file, counted from 1.
    reason : str
        What was found, and what is allowed or the way out.

    Examples
    --------
    >>> raise DataFormatError("scene.arff", line=41, reason="value 'maybe' is not among the declared values {0, 1}")
    Traceback (most recent call last):
    mcode.errors.DataFormatError: scene.arff, line 41: value 'maybe' is not among the declared values {0, 1}.
    """

    def __init__(self, path: object, line: int | None = None, reason: str = "it cannot be read") -> None:
        self.path, self.line, self.reason = str(path), line, reason
        super().__init__(self.path, line, reason)

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{place}: {self.reason}."
