"""Short texts -> which words they mention: features that an explanation can name."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from mcode._optional import require

WORD = re.compile(r"[^\W\d_]\w+")  # begins with a letter: "for 14 days" is about days, not about 14


class Words(TransformerMixin, BaseEstimator):
    """The most frequent words of a text column, 1 where a row mentions the word.

    skrub applies it to one column at a time. Words were preferred to skrub's own text encoders because their
    components have no name: "reason mentions 'thirst'" can be said to a person, "component 7 of reason" cannot.

    Parameters
    ----------
    max_words : int, default=100
    min_rows : int, default=5
        A word in fewer rows is left out, so identifiers and unique texts give no feature.

    Attributes
    ----------
    words_ : list of str, most frequent first
    """

    __single_column_transformer__ = True  # how skrub knows that it wants one column

    def __init__(self, max_words: int = 100, min_rows: int = 5) -> None:
        self.max_words = max_words
        self.min_rows = min_rows

    def fit(self, column: Any, y: object = None) -> Self:
        """Find the words of a pandas column."""
        self.fit_transform(column)
        return self

    def fit_transform(self, column: Any, y: object = None, **_: object) -> Any:
        """Find the words of a pandas column; return its features."""
        counts = Counter(word for words in _mentioned(column) for word in words)
        frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: self.max_words]
        self.words_ = [word for word, count in frequent if self.min_rows <= count < len(column)]
        self.name_ = str(column.name)
        return self.transform(column)

    def transform(self, column: Any) -> Any:
        """Return a table with one column of 0 and 1 per word."""
        pandas = require("pandas", extra="tables")
        return pandas.DataFrame(self._mentions(column), columns=self.get_feature_names_out(), index=column.index)

    def _mentions(self, column: Any) -> NDArray[np.float32]:
        place = {word: j for j, word in enumerate(self.words_)}
        out = np.zeros((len(column), len(place)), np.float32)
        for i, words in enumerate(_mentioned(column)):
            out[i, [place[word] for word in words if word in place]] = 1.0
        return out

    def get_feature_names_out(self, input_features: object = None) -> list[str]:
        """Return the names of the columns that `transform` gives."""
        return [f"{self.name_}_{word}" for word in self.words_]


def _mentioned(column: Any) -> list[set[str]]:
    known = column.notna().to_numpy()
    return [set(WORD.findall(str(v).lower())) if there else set() for v, there in zip(column, known, strict=True)]
