"""From an audit to a project, and from a project to a server: what `audit --review`, `review` and `apply` share."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from mcode._optional import require
from mcode.cli.auditing import Audited
from mcode.cli.console import Screen
from mcode.cli.model_file import load_model
from mcode.errors import ParameterError
from mcode.own_words import explain_audit

if TYPE_CHECKING:
    from mcode.web.database import Database
    from mcode.web.project import Project
    from mcode.web.server import Door

SERVER = "The server"
QUEUE = 2000

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="Keep the project in PostgreSQL, postgresql://user@host/name, instead of a file.",
        rich_help_panel=SERVER,
    ),
]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="P", help="Port of the review page; 8642 or a free one.", rich_help_panel=SERVER),
]
NoOpen = Annotated[
    bool, typer.Option("--no-open", help="Do not open a browser; the address is printed.", rich_help_panel=SERVER)
]


def need_web() -> None:
    """Say which extra the review page needs, before any work."""
    for module in ("fastapi", "uvicorn", "sqlalchemy"):
        require(module, extra="web")


def open_database(project: Path | None, url: str | None) -> Database:
    """Return the database of a project: a file, or the one that a URL names."""
    from mcode.web.database import Database

    if url is not None:
        return Database(url)
    if project is None:
        raise ParameterError("PROJECT", None, "a file that `mcode audit --review` made, or --database URL")
    return Database(project)


def open_project(project: Path | None, url: str | None) -> Project:
    """Return an existing project; a file and an empty database together mean that the project moves there."""
    from mcode.web.database import Database
    from mcode.web.project import Project, copy_project

    if project is not None and not project.is_file():
        raise ParameterError("PROJECT", str(project), "a file that `mcode audit --review` made")
    database = open_database(project, url)
    try:
        if project is not None and url is not None:
            with closing(Database(project)) as file:
                copy_project(Project(file), database)
        return Project(database)
    except BaseException:
        database.close()
        raise


def make_project(
    audited: Audited, database: Database, path: Path, *, reading: dict[str, Any], auditing: dict[str, Any], queue: int
) -> Project:
    """Explain the rows of the queue and store them as a new project."""
    from mcode.web.project import Project, Source, begin_project, write_fact
    from mcode.web.queue_filling import Ranked, fill

    begin_project(database, Source.of(path, {**reading_of(audited), **reading}, auditing), audited.data)
    with database.write() as connection:
        write_fact(connection, "queue_size", max(queue, len(audited.flagged)))
    explained = set(audited.flagged.tolist())
    more = [row for row in audited.found.ranking[:queue].tolist() if row not in explained]
    findings = [*audited.findings, *explain_audit(audited.found, audited.data, np.array(more, np.intp))]
    fill(database, Ranked(audited.data, audited.found, sorted(findings, key=lambda f: f.rank), audited.summary))
    return Project(database)


def reading_of(audited: Audited) -> dict[str, Any]:
    """Return the arguments with which `mcode.read` reads the source again as the same data set."""
    schema = audited.data.schema
    return {
        "labels": list(schema.label_names) if schema.tags_column is None else None,
        "id": schema.id_name,
        "tags_column": schema.tags_column,
        "separator": schema.separator,
    }


def serve_project(
    screen: Screen, project: Project, door: Door, *, open_browser: bool, model: Path | None = None
) -> None:
    """Serve a project until Ctrl-C; the address is the result of the command."""
    from mcode.web.scoring import Scorer
    from mcode.web.server import serve

    saved = None if model is None else load_model(model)
    scorer = None if saved is None else Scorer(saved.detector, saved.schema)

    def say(address: str) -> None:
        screen.say(f"Review: {address}")
        screen.emit({"address": address})
        screen.note("Press Ctrl-C to stop; every verdict is kept as soon as it is given.")

    serve(project, door, scorer=scorer, open_browser=open_browser, say=say)
