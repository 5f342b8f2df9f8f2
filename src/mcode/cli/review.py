"""`mcode review`: the review page of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcode.cli import options as o
from mcode.cli.console import session
from mcode.cli.reviewing import SERVER, DatabaseUrl, NoOpen, Port, need_web, open_project, serve_project

BEYOND = "Beyond this machine (see docs/review.md)"


def review(
    project: Annotated[
        Path | None, typer.Argument(metavar="PROJECT", help="A project made by `mcode audit FILE --review`.")
    ] = None,
    database: DatabaseUrl = None,
    port: Port = None,
    no_open: NoOpen = False,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="A model written by `mcode fit`: POST /api/score scores new rows with it.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Address to listen on; loopback by default.", rich_help_panel=BEYOND
        ),
    ] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="A name by which browsers call this server; may be repeated.",
            rich_help_panel=BEYOND,
        ),
    ] = None,
    add_account: Annotated[
        str | None,
        typer.Option(
            "--add-account",
            metavar="NAME",
            help="Make an account, or give it a new password, which is asked for; then stop.",
            rich_help_panel=BEYOND,
        ),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option(
            "--user-header",
            metavar="HEADER",
            help="The header in which a reverse proxy names the user.",
            rich_help_panel=BEYOND,
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="Where that header is believed from; loopback by default.",
            rich_help_panel=BEYOND,
        ),
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Open the review page: judge the findings of an audit one by one, alone or as a team.

    The server listens on this machine only and prints an address that carries a secret; every verdict is on disk
    before the page goes on to the next row. With a project file and --database the project moves to PostgreSQL.

    Example: mcode review visits.review
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        need_web()
        from mcode.web.accounts import add_account as add
        from mcode.web.server import Door

        opened = open_project(project, database)
        if add_account is not None:
            add(opened.database, add_account, typer.prompt("Password", hide_input=True, confirmation_prompt=True))
            opened.database.close()
            screen.say(f"{add_account} can log in now.")
            screen.emit({"account": add_account})
            return
        door = Door(host, port, tuple(name or ()), user_header, tuple(proxy or ("127.0.0.1", "::1")))
        serve_project(screen, opened, door, open_browser=not no_open, model=model)
