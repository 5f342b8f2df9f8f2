"""The data sets of the experiments, read from the folder that holds them."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mcode._arrays import Matrix
from mcode.data import read
from mcode.errors import McodeError, UnknownNameError
from mcode.models.encoding import Codes

# File names, and the names in tables.
TITLES = {
    "mediamill_sample": "Mediamill",
    "bibtex": "Bibtex",
    "reuters_aligned": "Reuters",
    "corel5k": "Corel5k",
    "medical": "Medical",
    "genbase": "Genbase",
    "reuters": "Reuters as published",
    "yeast": "Yeast",
    "emotions": "Emotions",
    "enron": "Enron",
    "imdb": "IMDB",
    "delicious": "Delicious",
}


class NoDataError(McodeError):
    """A data set that is not where it was looked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(path)

    def __str__(self) -> str:
        return f"{self.path} is missing: give the folder of the data sets with --data, or in MCODE_DATA."


@dataclass(frozen=True)
class Table:
    """A data set: context X (n, m), responses Y (n, d), and its file name."""

    name: str
    X: Matrix
    Y: Codes

    def seed(self, *parts: int) -> list[int]:
        """Return a seed that no other data set shares."""
        return [zlib.crc32(self.name.encode()), *parts]


class DataFolder:
    """Where the data sets are; the one read last is kept, since units of one data set follow each other.

    Parameters
    ----------
    path : Path or None
        None is the folder named by the environment variable MCODE_DATA, else the present one.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = Path(os.environ.get("MCODE_DATA", ".")) if path is None else path
        self._last: Table | None = None

    def table(self, name: str) -> Table:
        """Read a data set by its file name, without the ending."""
        if self._last is None or self._last.name != name:
            data = read(self._file(name))
            self._last = Table(name, data.X, np.ascontiguousarray(data.Y, dtype=np.uint8))
        return self._last

    def check(self, names: tuple[str, ...]) -> None:
        """Refuse, before any long work, a folder where a data set is missing."""
        for name in names:
            self._file(name)

    def _file(self, name: str) -> Path:
        if name not in TITLES:
            raise UnknownNameError("data set", name, TITLES, or_instance=False)
        path = self.path / f"{name}.npz"
        if not path.is_file():
            raise NoDataError(path)
        return path


def sample(table: Table, most: int, seed: int) -> Table:
    """Return a table of at most `most` rows, drawn at random and kept in their order."""
    n = len(table.Y)
    if n <= most:
        return table
    rows = np.sort(np.random.default_rng(table.seed(seed)).choice(n, most, replace=False))
    return Table(table.name, table.X[rows], table.Y[rows])
