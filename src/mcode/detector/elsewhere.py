"""Tables that are not in memory: who works on them instead of the code for arrays.

Imports point down, and the rooms that know other libraries' tables are floors above. So a table's library leads to
the name of such a room, which is imported when the first table of that library comes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

ROOMS = {"dask": "mcode.distributed"}

Method = TypeVar("Method", bound=Callable[..., Any])


def room_of(table: object) -> Any:
    """Return the room that works on tables of this library, None for tables in memory.

    Examples
    --------
    >>> room_of([[1.0]]) is None
    True
    """
    library = type(table).__module__.split(".", 1)[0]
    return importlib.import_module(ROOMS[library]) if library in ROOMS else None


def anywhere(method: Method) -> Method:
    """Let a detector's method also take tables that are not in memory: their room does what the method is called for.

    The room has a function `call(method, detector, X, Y, ...)`.
    """

    @wraps(method)
    def dispatch(self: Any, X: object, *args: Any, **options: Any) -> Any:
        room = room_of(X)
        if room is None:
            return method(self, X, *args, **options)
        return room.call(method.__name__, self, X, *args, **options)

    return cast(Method, dispatch)
