"""A table ready for an audit, with everything needed to speak of it in the user's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mcode._arrays import Matrix
from mcode.data.columns import ArrowTable
from mcode.data.features import Feature
from mcode.data.labels import OwnValues
from mcode.data.vectorise import Vectoriser
from mcode.models.encoding import Codes


@dataclass(frozen=True)
class Schema:
    """What is needed to read a further file as the same features and responses.

    Attributes
    ----------
    label_names : tuple of str
    label_values : tuple of tuples, how the codes 0, 1, ... of each response are written
    vectoriser : Vectoriser, fitted on the first file
    id_name : str or None
    tags_column : str or None, the column of delimited tags that the responses came from
    separator : str
    """

    label_names: tuple[str, ...]
    label_values: tuple[OwnValues, ...]
    vectoriser: Vectoriser
    id_name: str | None = None
    tags_column: str | None = None
    separator: str = ";"


@dataclass(frozen=True)
class Dataset:
    r"""Context X and responses Y of a table.

    Attributes
    ----------
    X : (n, m) float array or CSR matrix without missing values
    Y : (n, d) array of 0 and 1, or of codes 0, 1, 2, ... where a response has several values
    row_ids : (n,) array: the values of the id column, or the rows' places in the file, from 0
    schema : Schema, with which `mcode.read(other, like=...)` gives the same features
    source : str, the file
    texts : Arrow table or None: the context columns that are not numbers, as they were
    filled : (n, m) sparse matrix of bool or None: where X holds a typical value because the cell was empty
    places : (n,) array or None: each row's place in the file, from 0; None where every row of the file was read

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mcode.data import read
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "visits.csv"
    >>> _ = path.write_text("patient,age,sex,dx_flu\nA1,41,F,0\nA2,67,M,1\n")
    >>> visits = read(path, labels="dx_*", id="patient")
    >>> visits.feature_names, visits.label_names
    (('age', 'sex=F', 'sex=M'), ('dx_flu',))
    >>> visits.say(1, 0), visits.cell(1, "sex"), visits.row_ids[1]
    ('age = 67', 'M', 'A2')
    """

    X: Matrix
    Y: Codes
    row_ids: NDArray[Any]
    schema: Schema
    source: str = "a table"
    texts: ArrowTable = field(default=None, repr=False)
    filled: sp.csr_matrix | None = field(default=None, repr=False)
    places: NDArray[np.intp] | None = field(default=None, repr=False)

    @property
    def features(self) -> tuple[Feature, ...]:
        """What each column of X is in the user's own words."""
        return self.schema.vectoriser.features

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return tuple(feature.name for feature in self.features)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the responses."""
        return self.schema.label_names

    @property
    def label_values(self) -> tuple[OwnValues, ...]:
        """How the codes 0, 1, ... of each response are written."""
        return self.schema.label_values

    @property
    def id_name(self) -> str | None:
        """Name of the id column, None where rows are counted."""
        return self.schema.id_name

    @property
    def vectoriser(self) -> Vectoriser:
        """What turned the context columns into X."""
        return self.schema.vectoriser

    @property
    def context_columns(self) -> tuple[str, ...]:
        """The user's context columns, in the order of the file."""
        return self.schema.vectoriser.columns

    def __len__(self) -> int:
        return len(self.Y)

    def cell(self, row: int, column: str) -> object:
        """Return what the user's table holds in a context column; None where it is empty."""
        if self.texts is not None and column in self.texts.column_names:
            value: object = self.texts[column][row].as_py()
            return value.date() if isinstance(value, datetime) and value.time() == time() else value
        at = next(
            (j for j, f in enumerate(self.features) if f.column == column and f.kind in ("number", "boolean")), None
        )
        if at is None or (self.filled is not None and self.filled[row, at]):
            return None
        number, feature = float(self.X[row, at]), self.features[at]
        if feature.kind == "boolean":
            return feature.no_yes[int(number)]
        return int(number) if number.is_integer() else float(f"{number:.7g}")

    def context(self, row: int) -> dict[str, object]:
        """Return the context of a row as the user's table has it."""
        return {column: self.cell(row, column) for column in self.context_columns}

    def say(self, row: int, feature: int) -> str:
        """Return the value of a feature of a row as a phrase about the user's own column."""
        about = self.features[feature]
        if self.filled is not None and self.filled[row, feature]:
            return f"{about.column} is missing"
        return about.say(float(self.X[row, feature]))

    def response(self, row: int, label: int) -> str:
        """Return a response as the user's table writes it."""
        return self.label_values[label][int(self.Y[row, label])]

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Dataset:
        """Return a data set of some of the rows."""
        at = np.arange(len(self))[np.asarray(rows)]
        return replace(
            self,
            X=self.X[at],
            Y=self.Y[at],
            row_ids=self.row_ids[at],
            texts=None if self.texts is None else self.texts.take(at),
            filled=None if self.filled is None else self.filled[at],
            places=at if self.places is None else self.places[at],
        )
