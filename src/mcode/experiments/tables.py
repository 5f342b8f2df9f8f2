"""A table of results as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcode.experiments.results import write_whole

_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
          "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A text, perhaps in bold."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class TextTable:
    """Columns and rows of cells.

    Examples
    --------
    >>> table = TextTable("AUC", ("", "LOF"), ((Cell("Yeast"), Cell("0.75", bold=True)),))
    >>> print(table.markdown())
    | | LOF |
    |---|---|
    | Yeast | **0.75** |
    <BLANKLINE>
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]

    def markdown(self) -> str:
        """Return the table for Markdown."""
        lines = ["|" + "|".join(f" {_pipeless(name)} " if name else " " for name in self.columns) + "|"]
        lines.append("|" + "---|" * len(self.columns))
        for row in self.rows:
            cells = [f"**{_pipeless(cell.text)}**" if cell.bold else _pipeless(cell.text) for cell in row]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return the table as CSV; a bold cell ends in an asterisk."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([cell.text + ("*" if cell.bold else "") for cell in row] for row in self.rows)
        return out.getvalue()

    def latex(self) -> str:
        """Return a tabular environment."""
        lines = [r"\begin{tabular}{l" + "c" * (len(self.columns) - 1) + "}", r"\hline"]
        lines.append(" & ".join(_escaped(name) for name in self.columns) + r" \\ \hline")
        for row in self.rows:
            cells = [rf"\textbf{{{_escaped(cell.text)}}}" if cell.bold else _escaped(cell.text) for cell in row]
            lines.append(" & ".join(cells) + r" \\")
        return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write NAME.md, NAME.csv and NAME.tex."""
        texts = {".md": f"{self.title}\n\n{self.markdown()}", ".csv": self.csv(), ".tex": self.latex()}
        paths = []
        for ending, text in texts.items():
            paths.append(folder / f"{name}{ending}")
            write_whole(paths[-1], text)
        return paths


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _pipeless(text: str) -> str:
    return text.replace("|", r"\|")
