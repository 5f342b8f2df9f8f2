"""Puts the tables of `mcode experiment` into docs/experiments.md, and its figures into docs/images.

Between `<!-- table: 1/table.md -->` and `<!-- end -->` stands the table of benchmarks/results/experiments/1/table.md;
`images/experiments/1-bars.svg` is benchmarks/results/experiments/1/bars.svg. The README has some rows and columns of
clean/kinds-audit.md.

    python benchmarks/experiments_page.py
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
RESULTS = PROJECT / "benchmarks" / "results" / "experiments"
PAGE, README = PROJECT / "docs" / "experiments.md", PROJECT / "README.md"
IMAGES = PROJECT / "docs" / "images" / "experiments"
TABLE = re.compile(r"<!-- table: (\S+) -->\n.*?<!-- end -->", re.DOTALL)
SHORT_TABLE = re.compile(r"<!-- kinds of error -->\n.*?<!-- end -->", re.DOTALL)
IMAGE = re.compile(r"\(images/experiments/([a-z0-9]+)-([^)\s]+\.svg)\)")

SHORT_COLUMNS = {
    "one flip": "one response flipped",
    "three flips": "three flipped",
    "one added": "one added",
    "one dropped": "one dropped",
    "y of another row": "y of another row",
}
SHORT_ROWS = {
    "mcode default": "mcode's default (DBR, learned score)",
    "MCODE-Linf": "DBR, L_inf norm (the paper's)",
    "MCODE-ComP": "DBR, complement score (the paper's)",
    "DBR noise": "DBR, noise score",
    "BR complement": "label by label, complement score",
    "cleanlab self-confidence": "cleanlab's default, label by label",
}


def filled(page: str) -> str:
    """Return the page with every table as it is in the results."""

    def fill(match: re.Match[str]) -> str:
        text = (RESULTS / match[1]).read_text(encoding="utf-8")
        table = text.split("\n\n", 1)[1].strip()  # the first line is the title
        return f"<!-- table: {match[1]} -->\n{table}\n<!-- end -->"

    return TABLE.sub(fill, page)


def with_short_table(readme: str) -> str:
    """Return the README with AUC and average precision of some methods by kind of error, the best of them bold."""
    lines = (RESULTS / "clean" / "kinds-audit.md").read_text(encoding="utf-8").splitlines()
    head, *body = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    places = [head.index(name) for name in SHORT_COLUMNS]
    by_method = {row[0]: [row[place].split(" / ")[:2] for place in places] for row in body}
    shown = {title: by_method[name] for name, title in SHORT_ROWS.items()}
    best = [[max(row[j][k] for row in shown.values()) for k in (0, 1)] for j in range(len(places))]

    def cell(values: list[str], largest: list[str]) -> str:
        bold = (f"**{v}**" if v == top else v for v, top in zip(values, largest, strict=True))
        return " / ".join(bold).replace("0.", ".")

    table = [["", *SHORT_COLUMNS.values()], ["---"] * (len(places) + 1)]
    table += [[title, *map(cell, row, best)] for title, row in shown.items()]
    text = "\n".join(("| " + " | ".join(row) + " |").replace("|  |", "| |") for row in table)
    return SHORT_TABLE.sub(lambda _: f"<!-- kinds of error -->\n{text}\n<!-- end -->", readme)


def main() -> None:
    README.write_text(with_short_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(filled(page), encoding="utf-8")
    IMAGES.mkdir(parents=True, exist_ok=True)
    for folder, name in IMAGE.findall(page):
        shutil.copyfile(RESULTS / folder / name, IMAGES / f"{folder}-{name}")


if __name__ == "__main__":
    main()
