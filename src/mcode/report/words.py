"""Numbers and values as a person reads them."""

from __future__ import annotations

import math

from mcode.explain.finding import Value


def percent(share: float) -> str:
    """Return a share as percent with the digits that matter.

    Examples
    --------
    >>> percent(0.25), percent(0.031), percent(0.0004), percent(0.9999), percent(0.0)
    ('25 %', '3.1 %', '< 0.1 %', '> 99.9 %', '0 %')
    """
    if 0.0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1.0:
        return "> 99.9 %"
    digits = 0 if 0.1 <= share <= 0.9 or share in (0.0, 1.0) else 1
    return f"{100 * share:.{digits}f} %"


def odds(probability: float) -> str:
    """Return a probability that may be tiny: as percent, or as one in so many.

    Examples
    --------
    >>> odds(0.31), odds(0.00008), odds(3e-14), odds(0.0)
    ('31 %', '1 in 12,000', 'less than 1 in a trillion', 'less than 1 in a trillion')
    """
    if probability >= 0.001:
        return percent(probability)
    if probability < 1e-12:
        return "less than 1 in a trillion"
    count = 1.0 / probability
    step = 10.0 ** (math.floor(math.log10(count)) - 1)
    return f"1 in {math.floor(count / step) * step:,.0f}"


def value_text(value: Value) -> str:
    """Return a value of the user's table.

    Examples
    --------
    >>> value_text(True), value_text(None), value_text(9.100000381), value_text(3.0), value_text("F")
    ('yes', 'missing', '9.1', '3', 'F')
    """
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def count_of(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count_of(1, "row"), count_of(12000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
