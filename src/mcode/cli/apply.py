"""`mcode apply`: what came out of a review, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcode.cli import options as o
from mcode.cli.console import session
from mcode.cli.reviewing import DatabaseUrl, need_web, open_project
from mcode.cli.writing import atomic, check_output, write_text
from mcode.errors import ParameterError
from mcode.report.words import count_of


def apply(
    project: Annotated[
        Path | None, typer.Argument(metavar="PROJECT", help="A project made by `mcode audit FILE --review`.")
    ] = None,
    database: DatabaseUrl = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT",
            help="The corrected table, in the format of its source.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    patch: Annotated[
        Path | None,
        typer.Option(
            "--patch",
            metavar="PATCH.csv",
            help="What was corrected: row, id, response, before, after, who, when.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Write the source table with the reviewers' corrections made, and a patch that lists them.

    Everything but the corrected cells stays as it is, in the source's own format and order of columns.

    Example: mcode apply visits.review -o visits-corrected.csv --patch patch.csv
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        need_web()
        from mcode.web.export import changes_of, check_table_name, patch_text, write_table

        if out is None and patch is None:
            raise ParameterError("--out", None, "a file for the corrected table, or --patch a file for the patch")
        opened = open_project(project, database)
        check_output(out, inputs=(Path(opened.source.path),))
        check_output(patch, suffixes=(".csv",))
        with screen.progress():
            if out is not None:
                check_table_name(opened, out)
                with atomic(out) as part:
                    write_table(opened, part)
            if patch is not None:
                write_text(patch, patch_text(opened))
        cells = changes_of(opened).cells
        values = sum(len(changed) for changed in cells.values())
        screen.say(f"{count_of(values, 'value')} corrected in {count_of(len(cells), 'row')}.")
        written = {"out": None if out is None else str(out), "patch": None if patch is None else str(patch)}
        screen.emit({"rows": len(cells), "values": values, **written})
        for path in (out, patch):
            if path is not None:
                screen.note(f"written: {path}")
        opened.database.close()
