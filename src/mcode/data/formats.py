"""Which format a file has: by its name, else by how it begins."""

from __future__ import annotations

from pathlib import Path

from mcode.data.opening import is_gzip, open_bytes
from mcode.errors import DataFormatError, UnknownNameError

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arff": "arff",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
}
TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")
BEGINNINGS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz"}
COMPRESSIBLE = ("csv", "tsv", "jsonl", "arff", "libsvm")


def format_of(path: Path, stated: str | None = None) -> str:
    """Return the format of a file.

    Examples
    --------
    >>> format_of(Path("visits.csv.gz"))
    'csv'
    """
    if stated is not None:
        if stated not in FORMATS.values():
            raise UnknownNameError("format", stated, set(FORMATS.values()))
        return stated
    suffix = path.with_suffix("").suffix if is_gzip(path) else path.suffix
    found = FORMATS.get(suffix.lower()) or _by_beginning(path)
    if is_gzip(path) and found not in COMPRESSIBLE:
        raise DataFormatError(path, reason=f"a {found} file is not read through gzip; unpack it first")
    return found


def _by_beginning(path: Path) -> str:
    with open_bytes(path) as file:
        start = file.read(4096)
    for beginning, name in BEGINNINGS.items():
        if start.startswith(beginning):
            return name
    if b"@relation" in start.lower():
        return "arff"
    known = ", ".join(sorted(FORMATS))
    raise DataFormatError(
        path, reason=f"the format is not known by its name; known are {known} (some also .gz), or say format='csv'"
    )
