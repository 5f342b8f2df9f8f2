"""What the command line can do is what docs/cli.md says, and every help text teaches."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from cli.runner import run
from mcode.cli.app import app, build
from mcode.report.table import COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = get_command(app).commands
OPTIONS = sorted(
    {(name, option) for name, command in COMMANDS.items() for parameter in command.params for option in parameter.opts}
)


def section(command):
    """Return the part of the page about a command."""
    return re.search(rf"^## `mcode {command}\b.*?(?=^## `mcode|\Z)", PAGE, re.DOTALL | re.MULTILINE)[0]


def shared():
    return PAGE[: PAGE.index("## `mcode audit")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command):
    assert f"## `mcode {command}" in PAGE


@pytest.mark.parametrize(("command", "option"), [pair for pair in OPTIONS if pair[1].startswith("-")])
def test_every_option_is_documented(command, option):
    assert re.search(rf"`{re.escape(option)}[` ]", section(command) + shared())


def test_no_option_is_documented_that_does_not_exist():
    known = {option for _, option in OPTIONS} | {"--help", "--version"}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= known


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_text_has_an_example_that_parses(command):
    text = COMMANDS[command].help
    example = " ".join(text[text.index("Example: ") :].split())
    assert example.startswith(f"Example: mcode {command}")
    words = set(re.findall(r"\s(--?[a-z-]+)", example))
    assert words <= {option for name, option in OPTIONS if name == command}
    assert run(command, "--help").exit_code == 0


def test_every_parameter_has_a_help_text():
    for command in COMMANDS.values():
        for parameter in command.params:
            assert parameter.help, (command.name, parameter.name)


def test_columns_and_exit_codes_are_documented():
    for column in COLUMNS:
        assert f"`{column}`" in PAGE
    for code in (0, 1, 2, 3, 130):
        assert f"\n| {code} |" in PAGE


def test_help_without_a_command_says_what_each_command_says_of_itself():
    listed = get_command(build(())).commands
    assert {name: command.help for name, command in listed.items()} == {
        name: command.help for name, command in COMMANDS.items()
    }
