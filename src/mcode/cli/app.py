"""The command `mcode` and its sub-commands."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer

import mcode

COMMANDS = ("audit", "review", "apply", "fit", "score", "explain", "info", "demo", "experiment")

ABOUT = """Find rows whose responses do not fit their context: which one is wrong, why, and what it should have been.

Begin with: mcode audit visits.csv --labels 'dx_*' --report report.html
Or see it at work on a generated table: mcode demo

Exit codes: 0 done, 1 findings above --fail-above, 2 bad input, 3 a defect of mcode itself.
"""


def build(needed: Collection[str] = COMMANDS) -> typer.Typer:
    """Return the command line; commands that are not `needed` are only there to be listed, and import nothing."""
    app = typer.Typer(
        name="mcode",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    app.callback()(start)
    for name in COMMANDS:
        app.command(name)(_command(name) if name in needed else _listed(name))
    return app


def __getattr__(name: str) -> Any:
    """Return `app`, the whole command line, when it is asked for."""
    if name != "app":
        raise AttributeError(name)
    return build()


def _command(name: str) -> Callable[..., None]:
    command: Callable[..., None] = getattr(importlib.import_module(f"mcode.cli.{name}"), name)
    return command


def _listed(name: str) -> Callable[[], None]:
    """Return a command that has the help text of the real one, which is read and not imported."""

    def listed() -> None: ...

    source = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    functions = [part for part in ast.parse(source).body if isinstance(part, ast.FunctionDef) and part.name == name]
    listed.__doc__ = ast.get_docstring(functions[0])
    return listed


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mcode {mcode.__version__}")
        raise typer.Exit


def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """Take what stands before the command; the help text is that of the app."""


start.__doc__ = ABOUT
