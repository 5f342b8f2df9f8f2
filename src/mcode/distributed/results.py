"""Results as a folder of Parquet files with a manifest that is written last: no manifest, no result."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet

from mcode.errors import DataFormatError

MANIFEST = "manifest.json"
FORMAT = 1


def part_name(number: int) -> str:
    """Return the file name of a part.

    Examples
    --------
    >>> part_name(7)
    'part-000007.parquet'
    """
    return f"part-{number:06d}.parquet"


def begin(folder: Path) -> None:
    """Make room for a result; an earlier one of ours is taken away, anything else is never touched."""
    if folder.exists() and not folder.is_dir():
        raise DataFormatError(folder, reason="it is a file; name a folder for the result")
    if folder.is_dir():
        ours = {MANIFEST} | {part_name(k) for k in range(len(list(folder.glob("part-*.parquet"))))}
        others = sorted(p.name for p in folder.iterdir() if p.name not in ours and not _is_leftover(p.name))
        if others:
            raise DataFormatError(folder, reason=f"it holds other files ({others[0]}); name a new folder")
        (folder / MANIFEST).unlink(missing_ok=True)  # first: from here on there is no result
        discard(folder)
        return
    if not folder.parent.is_dir():
        raise DataFormatError(folder, reason=f"the directory {str(folder.parent)!r} does not exist")
    folder.mkdir()


def _is_leftover(name: str) -> bool:
    return name.startswith("part-") or (name.startswith(".") and name.endswith(".part"))


def discard(folder: Path) -> None:
    """Remove the parts of a result that did not come to its end."""
    for path in [*folder.glob("part-*.parquet"), *folder.glob(".*.part")]:
        path.unlink(missing_ok=True)


def write_part(folder: str, number: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Write one part, whole or not at all, and return its line of the manifest. A part may be written twice."""
    path = Path(folder) / part_name(number)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    table = arrow.table(dict(columns))
    try:
        parquet.write_table(table, beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return {"name": path.name, "rows": table.num_rows, "bytes": path.stat().st_size}


def finish(folder: Path, parts: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Write the manifest: from here on the result is one."""
    content = {"format": FORMAT, **about, "rows": sum(int(part["rows"]) for part in parts), "parts": list(parts)}
    beside = folder / f".{MANIFEST}.{secrets.token_hex(4)}.part"
    with open(beside, "x", encoding="utf-8") as file:
        json.dump(content, file, indent=1, default=str)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, folder / MANIFEST)


def check_finished(folder: Any) -> dict[str, Any]:
    """Return the manifest of a finished result, or say what is missing."""
    path = Path(folder)
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        parts = {part["name"]: part["bytes"] for part in manifest["parts"]}
    except FileNotFoundError:
        raise DataFormatError(path, reason=f"it has no {MANIFEST}: the run that wrote it did not finish") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataFormatError(path / MANIFEST, reason="it is no manifest of ours") from error
    for name, size in parts.items():
        file = path / name
        if not file.is_file():
            raise DataFormatError(path, reason=f"the file {name} that its manifest names is missing")
        if file.stat().st_size != size:
            raise DataFormatError(path, reason=f"the file {name} is not as long as its manifest says")
    return manifest


def read_results(folder: Any) -> Any:
    """Return a finished result as an Arrow table, in the order of the rows; an unfinished one is refused.

    Parameters
    ----------
    folder : str or path
    """
    manifest = check_finished(folder)
    files = [Path(folder) / part["name"] for part in manifest["parts"]]
    return arrow.concat_tables([parquet.read_table(file) for file in files], promote_options="permissive")
