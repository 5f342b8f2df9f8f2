"""Find rows whose responses do not fit their context: which response is wrong, and what it should have been."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mcode._progress import reporting
from mcode.errors import DataFormatError, InputError, McodeError, NotConvergedWarning, ParameterError

if TYPE_CHECKING:
    from mcode import corruption, explain, models, scores
    from mcode.data import Dataset, read
    from mcode.detector import MCODE, Audit, JointDetector, SongCAD, audit
    from mcode.persist import load, save

__all__ = [
    "MCODE",
    "Audit",
    "DataFormatError",
    "Dataset",
    "InputError",
    "JointDetector",
    "McodeError",
    "NotConvergedWarning",
    "ParameterError",
    "SongCAD",
    "audit",
    "corruption",
    "explain",
    "load",
    "models",
    "read",
    "reporting",
    "save",
    "scores",
]

__version__ = "0.1.0"

# Where the names are that bring scikit-learn and numba along: imported when they are first asked for.
_ROOM_OF = {
    **dict.fromkeys(("MCODE", "Audit", "JointDetector", "SongCAD", "audit"), "detector"),
    **dict.fromkeys(("Dataset", "read"), "data"),
    **dict.fromkeys(("load", "save"), "persist"),
}
_ROOMS = ("corruption", "explain", "models", "scores")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in _ROOMS:
        return importlib.import_module(f"mcode.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'mcode' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"mcode.{_ROOM_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
