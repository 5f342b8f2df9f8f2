"""The distribution of scores, and its drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats

BINS = 40


@dataclass(frozen=True)
class Histogram:
    """How many rows have which score.

    Attributes
    ----------
    edges : tuple of float, one more than there are bins
    counts : tuple of int, rows in each bin
    flagged : tuple of int, findings among them
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    flagged: tuple[int, ...]

    @classmethod
    def of(cls, scores: Floats, flagged: NDArray[np.intp], bins: int = BINS) -> Histogram:
        """Return the histogram of scores; infinite ones count in the outermost bins.

        Examples
        --------
        >>> Histogram.of(np.array([0.0, 1.0, 2.0, np.inf]), np.array([3]), bins=2)
        Histogram(edges=(0.0, 1.0, 2.0), counts=(1, 3), flagged=(0, 1))
        """
        finite = scores[np.isfinite(scores)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        if not high > low:
            high = low + 1.0
        within = np.clip(np.nan_to_num(scores, nan=low, posinf=high, neginf=low), low, high)
        counts, edges = np.histogram(within, bins=bins, range=(low, high))
        marked = np.histogram(within[flagged], bins=edges)[0]
        return cls(tuple(edges.tolist()), tuple(counts.tolist()), tuple(marked.tolist()))


@dataclass(frozen=True)
class Bar:
    """One bar of the drawing, in its own coordinates; y grows downwards."""

    x: float
    y: float
    width: float
    height: float
    marked_height: float
    label: str


def bars(histogram: Histogram, width: float = 640.0, height: float = 160.0) -> list[Bar]:
    """Return the bars of a histogram.

    Heights grow with log(1 + count): findings are few among many rows, and a linear scale would not show them.
    """
    step = width / len(histogram.counts)
    top = np.log1p(max(histogram.counts) or 1)
    drawn = []
    for j, (count, marked) in enumerate(zip(histogram.counts, histogram.flagged, strict=True)):
        tall = float(height * np.log1p(count) / top)
        label = f"score {histogram.edges[j]:.3g} to {histogram.edges[j + 1]:.3g}: {count:,} rows, {marked:,} flagged"
        share = marked / count if count else 0.0
        drawn.append(Bar(j * step + 1, height - tall, step - 2, tall, tall * share, label))
    return drawn
