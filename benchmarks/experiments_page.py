"""Puts the tables of `mcode experiment` into docs/experiments.md, and its figures into docs/images.

Between `<!-- table: 1/table.md -->` and `<!-- end -->` stands the table of benchmarks/results/experiments/1/table.md;
`images/experiments/1-bars.svg` is benchmarks/results/experiments/1/bars.svg.

    python benchmarks/experiments_page.py
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
RESULTS = PROJECT / "benchmarks" / "results" / "experiments"
PAGE = PROJECT / "docs" / "experiments.md"
IMAGES = PROJECT / "docs" / "images" / "experiments"
TABLE = re.compile(r"<!-- table: (\S+) -->\n.*?<!-- end -->", re.DOTALL)
IMAGE = re.compile(r"\(images/experiments/([a-z0-9]+)-([^)\s]+\.svg)\)")


def filled(page: str) -> str:
    """Return the page with every table as it is in the results."""

    def fill(match: re.Match[str]) -> str:
        text = (RESULTS / match[1]).read_text(encoding="utf-8")
        table = text.split("\n\n", 1)[1].strip()  # the first line is the title
        return f"<!-- table: {match[1]} -->\n{table}\n<!-- end -->"

    return TABLE.sub(fill, page)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(filled(page), encoding="utf-8")
    IMAGES.mkdir(parents=True, exist_ok=True)
    for folder, name in IMAGE.findall(page):
        shutil.copyfile(RESULTS / folder / name, IMAGES / f"{folder}-{name}")


if __name__ == "__main__":
    main()
