"""Label names from a Mulan XML file, parsed without entities: a file of 1 kB cannot become 1 GB."""

from __future__ import annotations

from collections import Counter
from xml.parsers import expat

from mcode.data.opening import AnyPath, check_file, first_sentence, open_bytes
from mcode.errors import DataFormatError, McodeError


class _EntityError(Exception):
    """Raised inside the parser when a document declares an entity."""


def read_label_names(path: AnyPath) -> list[str]:
    """Return the `name` of every `<label>`, in the order of the file, nested ones included.

    Entities are refused where they are declared, so that none is ever expanded and no other file is ever read.
    """
    file = check_file(path)
    with open_bytes(file) as stream:
        text = stream.read()
    names: list[str] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rsplit(":", 1)[-1] == "label":
            if "name" not in attributes:
                raise DataFormatError(file, parser.CurrentLineNumber, "a <label> has no name; write <label name='...'>")
            names.append(attributes["name"])

    def refuse(*_: object) -> int:
        raise _EntityError

    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(text, True)
    except _EntityError as error:
        raise DataFormatError(
            file, parser.CurrentLineNumber, "the XML declares an entity, which is refused; write the names out"
        ) from error
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, McodeError):
            raise
        raise DataFormatError(
            file, getattr(error, "lineno", None), f"it is not well-formed XML ({first_sentence(error)})"
        ) from error
    return _checked(names, file)


def _checked(names: list[str], file: AnyPath) -> list[str]:
    if not names:
        raise DataFormatError(file, reason="it names no label; write <labels><label name='...'/></labels>")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataFormatError(file, reason=f"the label {twice!r} is named twice; name each label once")
    return names
