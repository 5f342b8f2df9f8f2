"""What comes out of a review: the corrected table and the patch."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select

from mcode.data.changes import Changes
from mcode.data.corrected import check_same_format, write_corrected
from mcode.report.spreadsheet import neutral
from mcode.web import tables as t
from mcode.web.project import Project

PATCH_COLUMNS = ("row", "id", "response", "before", "after", "who", "when")


def changes_of(project: Project) -> Changes:
    """Return the corrections that the verdicts come to."""
    about, reading = project.about, project.source.reading
    cells: dict[int, dict[str, int]] = {}
    c = t.corrections.c
    with project.database.read() as connection:
        for row, response, after in connection.execute(select(c.row, c.response, c.after)):
            cells.setdefault(row, {})[about.names[response]] = after
    values = dict(zip(about.names, about.choices, strict=True))
    return Changes(cells, values, reading.get("tags_column"), reading.get("separator", ";"))


def write_table(project: Project, out: Path) -> int:
    """Write the source table with all corrections made, in its own format; return how many rows were corrected."""
    changes = changes_of(project)
    write_corrected(project.source_path(), out, changes, encoding=project.source.reading.get("encoding", "utf-8"))
    return len(changes.cells)


def check_table_name(project: Project, out: Path) -> None:
    """Refuse a name that asks for another format than that of the source."""
    check_same_format(project.source_path(), out)


def patch_rows(project: Project) -> Iterator[list[Any]]:
    """Yield what was corrected: row, id, response, before, after, who and when, in the order of the file."""
    about, c = project.about, t.corrections.c
    with project.database.read() as connection:
        joined = select(t.corrections, t.findings.c.id).join(t.findings, t.findings.c.row == c.row)
        for line in connection.execute(joined.order_by(c.row, c.response)):
            choices = about.choices[line.response]
            name = about.names[line.response]
            yield [line.row, line.id, name, choices[line.before], choices[line.after], line.who, line.at]


def patch_text(project: Project) -> str:
    """Return the patch as CSV, safe to open in a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PATCH_COLUMNS)
    writer.writerows([neutral(cell) for cell in row] for row in patch_rows(project))
    return out.getvalue()
