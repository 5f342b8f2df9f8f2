"""A corrected copy of a file, in its own format: everything but the corrected cells stays as it is."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

from mcode.data.changes import Changes
from mcode.data.corrected_arff import corrected_arff
from mcode.data.corrected_arrays import corrected_arrow, corrected_npz, corrected_parquet
from mcode.data.corrected_csv import corrected_csv
from mcode.data.corrected_lines import corrected_json_lines, corrected_libsvm
from mcode.data.formats import FORMATS, format_of
from mcode.data.opening import check_file, is_gzip, open_bytes
from mcode.errors import DataFormatError

TEXTS = {"arff": corrected_arff, "jsonl": corrected_json_lines, "libsvm": corrected_libsvm}
ARRAYS = {"parquet": corrected_parquet, "arrow": corrected_arrow, "npz": corrected_npz}


def write_corrected(
    source: Path, out: Path, changes: Changes, *, encoding: str = "utf-8", delimiter: str | None = None
) -> None:
    r"""Write a copy of `source` in which the changed cells have their new values.

    Parameters
    ----------
    source : path of the file that was read
    out : path of the copy, which is written whole
    changes : Changes
    encoding, delimiter : as the source was read

    Examples
    --------
    >>> import tempfile
    >>> source = Path(tempfile.mkdtemp()) / "visits.csv"
    >>> _ = source.write_text('age,dx_flu\n41,0\n"67",1\n')
    >>> out = source.with_name("corrected.csv")
    >>> write_corrected(source, out, Changes({0: {"dx_flu": 1}}, {"dx_flu": ("0", "1")}))
    >>> out.read_text()
    'age,dx_flu\n41,1\n"67",1\n'
    """
    kind = format_of(check_file(source))
    check_same_format(source, out)
    if kind in ARRAYS:
        ARRAYS[kind](source, out, changes)
        return
    with open_bytes(source) as file:
        data = file.read()
    if kind in ("csv", "tsv"):
        data = corrected_csv(source, data, changes, encoding, "\t" if kind == "tsv" else delimiter)
    else:
        data = TEXTS[kind](source, data, changes, encoding)
    out.write_bytes(_compressed(data) if is_gzip(source) else data)


def check_same_format(source: Path, out: Path) -> None:
    """Refuse a name that asks for another format than that of the source."""
    kind = format_of(source)
    bare = out.with_suffix("") if is_gzip(out) else out
    named = FORMATS.get(bare.suffix.lower(), kind)
    if named != kind or is_gzip(out) != is_gzip(source):
        packed = ", packed by gzip" if is_gzip(source) else ""
        raise DataFormatError(
            out, reason=f"the corrected table is written as its source is, {kind}{packed}; name it {source.name} or so"
        )


def _compressed(data: bytes) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:  # no time inside: equal content, equal bytes
        file.write(data)
    return packed.getvalue()
