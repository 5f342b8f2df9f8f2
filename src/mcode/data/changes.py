"""What is to be changed in a file: which response of which row, and how its new value is written there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcode.data.columns import TRUE_FALSE
from mcode.data.labels import OwnValues
from mcode.errors import DataFormatError


@dataclass(frozen=True)
class Changes:
    """Corrected responses of one file.

    Attributes
    ----------
    cells : dict, place of a row in the file, from 0 -> response -> its new code
    values : dict, response -> how its codes are written
    tags_column : str or None, the column of delimited tags that the responses came from
    separator : str, what delimits the tags
    """

    cells: Mapping[int, Mapping[str, int]]
    values: Mapping[str, OwnValues]
    tags_column: str | None = None
    separator: str = ";"

    def columns(self, names: list[str], source: object) -> dict[str, int]:
        """Return the columns that change and their places among all columns of the file."""
        changed = {name for cells in self.cells.values() for name in cells}
        wanted = sorted(changed) if self.tags_column is None else [self.tags_column] if changed else []
        place = {name: at for at, name in enumerate(names)}
        missing = [name for name in wanted if name not in place]
        if missing:
            raise DataFormatError(source, reason=f"there is no column {missing[0]!r}; the file was changed since")
        return {name: place[name] for name in wanted}

    def new_text(self, row: int, column: str, old: str) -> str:
        """Return what a cell of a changed row becomes."""
        if self.tags_column is not None:
            return self.separator.join(self.new_tags(row, old.split(self.separator) if old.strip() else []))
        cells = self.cells[row]
        return spelled(old, self.values[column], cells[column]) if column in cells else old

    def new_tags(self, row: int, tags: list[str]) -> list[str]:
        """Return the tags of a changed row: the others stay as and where they are, new ones come last.

        Examples
        --------
        >>> Changes({0: {"a": 0, "c": 1}}, {}, "tags").new_tags(0, ["a", " b"])
        ['b', ' c']
        """
        cells = self.cells[row]
        spaced = any(tag.startswith(" ") for tag in tags)
        kept = [tag for tag in tags if cells.get(tag.strip(), 1) == 1]
        if kept and not tags[0].startswith(" "):
            kept[0] = kept[0].lstrip(" ")
        there = {tag.strip() for tag in kept}
        for tag in sorted(name for name, code in cells.items() if code == 1 and name not in there):
            kept.append(f" {tag}" if spaced and kept else tag)
        return kept

    def check_done(self, n_rows: int, source: object) -> None:
        """Refuse a file that is shorter than the one that was reviewed."""
        last = max(self.cells, default=-1)
        if last >= n_rows:
            raise DataFormatError(
                source, reason=f"it has {n_rows:,} rows and row {last:,} was reviewed; the file was changed since"
            )


def spelled(old: str, values: OwnValues, code: int) -> str:
    """Return the new value of a cell, spelled as the file spells such values.

    Examples
    --------
    >>> spelled("0", ("0", "1"), 1), spelled("0.0", ("0", "1"), 1), spelled("False", ("false", "true"), 1)
    ('1', '1.0', 'True')
    """
    bare, new = old.strip(), values[code]
    if bare in values:
        pass
    elif values == TRUE_FALSE:
        new = str(code) if bare in ("0", "1") else _in_case_of(bare, new)
    elif "." in bare and "." not in new and not bare.partition(".")[2].strip("0"):
        new = f"{new}.{bare.partition('.')[2]}"
    before, _, after = old.partition(bare) if bare else ("", "", "")
    return f"{before}{new}{after}"


def _in_case_of(old: str, new: str) -> str:
    return new.upper() if old.isupper() else new.capitalize() if old[:1].isupper() else new
