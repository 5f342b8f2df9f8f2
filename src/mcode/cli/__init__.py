"""The command line: one file per command; `console.py` is the only one that knows rich."""

from __future__ import annotations

import sys

from mcode._optional import MissingExtraError, require


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        for module in ("typer", "rich", "pyarrow", "jinja2"):
            require(module, extra="cli")
    except MissingExtraError as error:
        sys.exit(f"error: {error}")
    from mcode.cli.app import COMMANDS, build

    build([name for name in sys.argv[1:] if name in COMMANDS][:1])()
