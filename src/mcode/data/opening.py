"""A path -> bytes or lines, with progress, and one sentence for every way in which a file cannot be opened."""

from __future__ import annotations

import contextvars
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from mcode._progress import advance
from mcode.errors import DataFormatError, McodeError, ParameterError

AnyPath: TypeAlias = "str | os.PathLike[str]"

BROKEN_FILE = (OSError, EOFError, zlib.error)
STEP = 1 << 22  # bytes between two reports of progress


def check_file(path: AnyPath) -> Path:
    """Return `path` if it is a file that holds something."""
    file = Path(path)
    try:
        if file.is_dir():
            raise DataFormatError(file, reason="it is a directory; name one file")
        if not file.exists():
            raise DataFormatError(file, reason="there is no such file")
        if file.is_file() and file.stat().st_size == 0:
            raise DataFormatError(file, reason="the file is empty")
    except (OSError, ValueError) as error:  # ValueError: a null character in the path; our own error is one too
        if isinstance(error, McodeError):
            raise
        raise DataFormatError(file, reason=first_sentence(error)) from error
    return file


def first_sentence(error: BaseException) -> str:
    r"""Return what a library's error says, short enough to sit inside a sentence of ours.

    Examples
    --------
    >>> first_sentence(ValueError("Bad magic bytes.\nStack: ..."))
    'Bad magic bytes'
    """
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    text = "".join(c if c.isprintable() else "?" for c in text).strip().rstrip(".")
    return text if len(text) <= 200 else text[:200] + "..."


class ReportingFile(io.RawIOBase):
    """A file that tells how much of it has been read.

    A library may read from its own thread; progress still reaches whoever listened when the file was opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._size = max(1, os.fstat(self._file.fileno()).st_size)
        self._next_report = 0
        self._context = contextvars.copy_context()

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def seekable(self) -> bool:
        """Return whether the file can be read out of order."""
        return self._file.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the place in the file."""
        return self._file.tell()

    def readinto(self, buffer: object) -> int | None:
        """Fill `buffer`, and report."""
        count = self._file.readinto(buffer)  # type: ignore[arg-type]
        at = self._file.tell() if self._file.seekable() else 0
        if at >= self._next_report or not count:
            self._next_report = at + STEP
            self._context.run(advance, "read", min(at, self._size), self._size)
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def is_gzip(path: Path) -> bool:
    """Return whether the name says that the file is compressed by gzip."""
    return path.suffix.lower() == ".gz"


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressed if it ends in .gz; a damaged one becomes our own error."""
    try:
        with io.BufferedReader(ReportingFile(path), 1 << 20) as raw:
            if not is_gzip(path):
                yield cast(BinaryIO, raw)
            else:
                with gzip.open(raw) as unpacked:
                    yield cast(BinaryIO, unpacked)
    except BROKEN_FILE as error:
        raise DataFormatError(
            path, reason=f"the file is damaged or cannot be read ({first_sentence(error)})"
        ) from error


def numbered_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each line, from 1, and its text without the end of the line."""
    with open_bytes(path) as file:
        for number, raw in enumerate(file, start=1):
            try:
                text = raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise DataFormatError(path, number, not_in_encoding(encoding)) from error
            yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")


def not_in_encoding(encoding: str) -> str:
    """Return the sentence about text in another encoding."""
    return f"the text is not in the encoding {encoding!r}; name the right one, for example encoding='latin-1'"


def check_encoding(encoding: str) -> str:
    """Refuse a name that is no text encoding."""
    try:
        "".encode(encoding)
        b"".decode(encoding)
    except (LookupError, ValueError) as error:
        raise ParameterError("encoding", encoding, "the name of a text encoding, for example 'utf-8'") from error
    return encoding
