"""The command `mcode` and its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer

import mcode
from mcode.cli.apply import apply
from mcode.cli.audit import audit
from mcode.cli.demo import demo
from mcode.cli.experiment import experiment
from mcode.cli.explain import explain
from mcode.cli.fit import fit
from mcode.cli.info import info
from mcode.cli.review import review
from mcode.cli.score import score

ABOUT = """Find rows whose responses do not fit their context: which one is wrong, why, and what it should have been.

Begin with: mcode audit visits.csv --labels 'dx_*' --report report.html
Or see it at work on a generated table: mcode demo

Exit codes: 0 done, 1 findings above --fail-above, 2 bad input, 3 a defect of mcode itself.
"""

app = typer.Typer(
    name="mcode",
    help=ABOUT,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mcode {mcode.__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """Take what stands before the command; the help text is that of the app."""


start.__doc__ = ABOUT
for command in (audit, review, apply, fit, score, explain, info, demo, experiment):
    app.command()(command)
