"""Cells that are safe to open in a spreadsheet."""

from __future__ import annotations

import re

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def neutral(cell: object) -> object:
    r"""Return a cell that no spreadsheet runs as a formula.

    Text that begins with = + - @, a tab or a carriage return gets an apostrophe in front, unless it is a number.

    Examples
    --------
    >>> neutral("=1+1"), neutral("-5.2"), neutral(-5.2), neutral("plain")
    ("'=1+1", '-5.2', -5.2, 'plain')
    """
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
