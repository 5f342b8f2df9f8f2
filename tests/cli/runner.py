"""Run `mcode` inside the tests."""

from typer.testing import CliRunner

from mcode.cli.app import app


def run(*arguments):
    """Run `mcode` and return its result; an exception that is no exit is a failure of the test."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
