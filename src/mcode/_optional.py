"""The only guarded import: a missing extra is one sentence that says how to get it."""

from __future__ import annotations

import importlib
from types import ModuleType

from mcode.errors import McodeError


class MissingExtraError(McodeError, ImportError):
    """A library that is not installed, and the extra that brings it."""

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(module, extra)

    def __str__(self) -> str:
        return f"This needs {self.module!r}, which is not installed: pip install 'mcode[{self.extra}]'."


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra of mcode installs it.

    Examples
    --------
    >>> require("json", extra="all").__name__
    'json'
    >>> require("no_such_library", extra="all")
    Traceback (most recent call last):
    mcode._optional.MissingExtraError: This needs 'no_such_library', which is not installed: pip install 'mcode[all]'.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(module, extra) from error
