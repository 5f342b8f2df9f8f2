"""Texts, categories and dates -> features through skrub's TableVectorizer, fitted once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder

from mcode._optional import require
from mcode.data.columns import ArrowTable
from mcode.data.features import DAY, Feature
from mcode.data.opening import first_sentence
from mcode.data.words import Words
from mcode.errors import DataFormatError

MAX_CATEGORIES = 40  # a text column with at least so many different values is read for its words
SECONDS_PER_DAY = 86400.0
DATE_PARTS = {"total_seconds": DAY, "day": "day of month"}


class MixedEncoder:
    """The columns that are not numbers as features.

    skrub decides what each column is: few values are categories, texts that are dates are dates, texts that are numbers
    are numbers, anything else is text. It sees the columns as c0, c1, ..., so that no name of the user's can clash.

    Attributes
    ----------
    names : list of str, the columns in the order of fitting
    features : list of Feature, one per output column
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.features: list[Feature] = []

    def fit_transform(self, texts: ArrowTable, source: str) -> NDArray[np.floating[Any]]:
        """Fit on an Arrow table of texts and dates; return its features, NaN where a number or date is missing."""
        self.names = list(texts.column_names)
        skrub = require("skrub", extra="tables")
        self.vectoriser = skrub.TableVectorizer(
            cardinality_threshold=MAX_CATEGORIES,
            # Both values of a two-valued column stay, so that each can be named, and a new value is neither.
            low_cardinality=OneHotEncoder(dtype="float32", handle_unknown="ignore", sparse_output=False),
            high_cardinality=Words(),
            datetime=skrub.DatetimeEncoder(add_weekday=True),
        )
        found = self._run(self.vectoriser.fit_transform, texts, source)
        source_of = {out: name for name, outs in self.vectoriser.input_to_outputs_.items() for out in outs}
        outputs = [(source_of[out], out) for out in found.columns]
        self.features = self._describe(outputs)
        return self._values(found)

    def transform(self, texts: ArrowTable, source: str) -> NDArray[np.floating[Any]]:
        """Return the features of further rows."""
        return self._values(self._run(self.vectoriser.transform, texts, source))

    def _run(self, method: Any, texts: ArrowTable, source: str) -> Any:
        frame = texts.select(self.names).rename_columns([f"c{j}" for j in range(len(self.names))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about columns that are constant, unparsable or dropped: all are fine
                return method(frame.to_pandas())
        except (ValueError, TypeError, OverflowError, ArithmeticError, AttributeError) as error:
            raise DataFormatError(
                source, reason=f"the columns cannot become features ({first_sentence(error)})"
            ) from error

    def _describe(self, outputs: list[tuple[str, str]]) -> list[Feature]:
        kinds = {name: kind for kind, names in self.vectoriser.kind_to_columns_.items() for name in names}
        values: dict[str, list[Any]] = {}
        for name, kind in kinds.items():
            fitted = self.vectoriser.transformers_.get(name)
            if kind == "low_cardinality":
                values[name] = list(fitted.categories_[0])
            elif kind == "high_cardinality":
                values[name] = list(fitted.words_)
        return [self._feature(name, out, kinds[name], values.get(name)) for name, out in outputs]

    def _feature(self, name: str, out: str, kind: str, values: list[Any] | None) -> Feature:
        column = self.names[int(name.removeprefix("c"))]
        if kind == "datetime":
            part = out.removeprefix(f"{name}_")
            part = DATE_PARTS.get(part, part)
            return Feature(f"{column} ({part})", column, "date", part)
        if not values:
            return Feature(column, column)
        value = values.pop(0)  # outputs of one column come in the order of its values
        if kind == "high_cardinality":
            return Feature(f"{column}: {value}", column, "word", value)
        if value is None or value != value:
            return Feature(f"{column} is missing", column, "missing")
        return Feature(f"{column}={value}", column, "category", str(value))

    def _values(self, found: Any) -> NDArray[np.floating[Any]]:
        values = np.array(found.to_numpy(dtype=np.float64, na_value=np.nan))
        days = [j for j, feature in enumerate(self.features) if feature.kind == "date" and feature.value == DAY]
        values[:, days] /= SECONDS_PER_DAY
        return values.astype(np.float32)
