"""The figures, as SVG files that are the same for the same results."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode._optional import require
from mcode.experiments.datasets import TITLES
from mcode.experiments.results import write_whole

GRAY, GREEN, RED = "#9a9a9a", "#2e8b57", "#c0392b"
COLOURS = ("#1f77b4", "#bcbd22", "#17becf", "#2ca02c", "#9467bd", "#d62728", "#7f7f7f", "#ff7f0e")


def bars(runs: Mapping[str, Floats], methods: Sequence[str], path: Path) -> list[Path]:
    """Draw the AUC of each method on each data set: baselines in gray, MCODE in green, deviation in red."""
    figure, axes = _panels(len(runs), 3, (4.0, 2.8))
    for axis, (name, found) in zip(axes, runs.items(), strict=False):
        colours = [GREEN if method.startswith("MCODE") else GRAY for method in methods]
        places = np.arange(len(methods))
        axis.bar(places, found.mean(axis=0), color=colours, yerr=found.std(axis=0, ddof=1), ecolor=RED, width=0.7)
        axis.set_xticks(
            places, [method.removeprefix("MCODE-") for method in methods], rotation=45, ha="right", fontsize=8
        )
        axis.set(ylim=(0.4, 1.03), ylabel="AUC", title=TITLES[name])
    return _save(figure, path)


def lines(curves: Mapping[str, Mapping[int, Floats]], methods: Sequence[str], path: Path) -> list[Path]:
    """Draw average precision against the number of outlying dimensions: baselines solid, MCODE dotted."""
    figure, axes = _panels(len(curves), 3, (4.2, 3.2))
    for axis, (name, curve) in zip(axes, curves.items(), strict=False):
        for j, method in enumerate(methods):
            style = ":" if method.startswith("MCODE") else "-"
            means = [found[:, j].mean() for found in curve.values()]
            axis.plot(
                list(curve), means, style, color=COLOURS[j % len(COLOURS)], label=method, marker="o", markersize=3
            )
        axis.set(ylim=(-0.02, 1.02), xlabel="outlying dimensions", ylabel="AUC-PR", title=TITLES[name])
    _legend_below(figure, axes[0])
    return _save(figure, path)


def critical_differences(
    names: Sequence[str], mean_rank: Floats, difference: float, title: str, path: Path, ours: str = ""
) -> list[Path]:
    """Draw methods on an axis of mean ranks; a bar joins those closer together than the critical difference."""
    order = np.argsort(mean_rank, kind="stable")
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(8.0, 0.24 * len(names) + 1.2))
    for place, j in enumerate(order):
        bold = "bold" if names[j] == ours else "normal"
        axis.plot([mean_rank[j], mean_rank[j] + difference], [place, place], color="#cccccc", linewidth=5, zorder=1)
        axis.plot(mean_rank[j], place, "o", color=GREEN if names[j] == ours else "black", zorder=2)
        axis.text(-0.01, place, f"{names[j]}  {mean_rank[j]:.2f}", ha="right", va="center", fontsize=8, weight=bold,
                  transform=axis.get_yaxis_transform())  # fmt: skip
    axis.axvline(mean_rank[order[0]] + difference, color=RED, linewidth=0.8, linestyle="--")
    axis.set(yticks=[], xlabel=f"mean rank (grey: critical difference {difference:.2f})", title=title)
    axis.invert_yaxis()
    return _save(figure, path)


def curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    xlabel: str,
    ylabel: str,
    path: Path,
    *,
    log_x: bool = False,
) -> list[Path]:
    """Draw named curves in one panel for each data set."""
    figure, axes = _panels(len(panels), 3, (4.0, 3.0))
    for axis, (title, named) in zip(axes, panels.items(), strict=False):
        for j, (name, (x, y)) in enumerate(named.items()):
            axis.plot(x, y, color=COLOURS[j % len(COLOURS)], label=name, marker="o", markersize=3)
        axis.set(xlabel=xlabel, ylabel=ylabel, title=title)
        if log_x:
            axis.set_xscale("log")
    _legend_below(figure, axes[0])
    return _save(figure, path)


def _pyplot() -> Any:
    matplotlib = require("matplotlib", extra="experiments")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "mcode"  # the same drawing gives the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: small, and it can be searched
    return require("matplotlib.pyplot", extra="experiments")


def _panels(n: int, across: int, size: tuple[float, float]) -> tuple[Any, NDArray[Any]]:
    across = min(n, across)
    down = -(-n // across)
    figure, axes = _pyplot().subplots(down, across, figsize=(size[0] * across, size[1] * down), squeeze=False)
    flat = axes.ravel()
    for axis in flat[n:]:
        axis.set_visible(False)
    return figure, flat


def _legend_below(figure: Any, axis: Any) -> None:
    """Put one legend under all panels, where it hides no curve."""
    handles, labels = axis.get_legend_handles_labels()
    across = max(1, round(figure.get_figwidth() / 1.7))
    under = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    figure.legend(handles, labels, ncol=across, fontsize=8, frameon=False, **under)


def _save(figure: Any, path: Path) -> list[Path]:
    drawn = io.StringIO()
    figure.tight_layout()
    figure.savefig(drawn, format="svg", metadata={"Date": None}, bbox_inches="tight")
    _pyplot().close(figure)
    text = "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n"
    write_whole(path, text)
    return [path]
