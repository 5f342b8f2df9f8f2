"""A fitted detector's methods on Dask's arrays and dataframes: lazily, partition by partition."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from sklearn.utils.validation import check_is_fitted

from mcode.detector import MCODE, DetectorBase
from mcode.distributed.cluster import Cluster, current
from mcode.distributed.deal import Deal
from mcode.distributed.fit import fit, learn_reference, sample_rows
from mcode.distributed.look import sample
from mcode.distributed.table import Source, Table, as_part, from_dask, lazily
from mcode.errors import InputError

BY_ROW = ("outlier_score", "percentile_rank", "p_value", "score_samples", "predict", "error_probability")
BY_RESPONSE = ("transform", "response_error_probability", "response_p_value")


def call(method: str, detector: DetectorBase, X: Any, Y: Any = None, **options: Any) -> Any:
    """Do what `detector.method(X, Y)` does in memory.

    `fit` works at once and returns the detector. The methods that give numbers return a Dask array, computed when it is
    asked for.
    """
    if not isinstance(detector, MCODE):
        raise InputError("X", f"it is a {type(X).__module__.split('.')[0]} table", "this detector needs rows in memory")
    with current() as cluster:
        table = from_dask(cluster, X, Y)
        if method in ("fit", "fit_predict"):
            fit(cluster, detector, table)
            return detector if method == "fit" else read_by(detector, table, "predict")
        if method not in BY_ROW + BY_RESPONSE:
            raise InputError(
                "X", "it is a Dask table", f"{method} looks at single rows: compute() those of interest first"
            )
        check_is_fitted(detector, "score_")
        _check_width(detector, table)
        return read_by(as_fixed(cluster, detector, table), table, method)


def _check_width(detector: MCODE, table: Table) -> None:
    for name, has, needs in (
        ("X", table.n_features, detector.n_features_in_),
        ("Y", table.n_responses, detector.n_responses_),
    ):
        if has != needs:
            raise InputError(name, f"it has {has} columns", f"the model was fitted on {needs}")


def as_fixed(cluster: Cluster, detector: MCODE, table: Table) -> MCODE:
    """Return a detector whose scores do not depend on the rows they are computed with.

    With reference="batch" the score is fitted on the rows being scored: here, on a uniform sample of them.
    """
    if detector.reference != "batch":
        return detector
    fixed = copy.copy(detector)
    fixed.score_ = copy.deepcopy(detector.score_)
    rows = sample(cluster, table, detector.encoding_, Deal(2, detector.random_state), sample_rows())
    learn_reference(fixed, rows, None)
    fixed.reference = "cross-fit"
    return fixed


def read_by(detector: MCODE, table: Table, method: str) -> Any:
    """Return what a method says of all rows, as a Dask array."""
    columns = table.n_responses if method in BY_RESPONSE else None
    dtype = np.intp if method == "predict" else np.float64
    return lazily(_read, table, slim(detector), method, columns=columns, dtype=dtype)


def slim(detector: MCODE) -> MCODE:
    """Return the detector without the models of its folds, which no new row needs."""
    slim = copy.copy(detector)
    slim.space_ = copy.copy(detector.space_)
    slim.space_.cross = {}
    return slim


def _read(source: Source, detector: MCODE, method: str) -> Any:
    rows = as_part(source).rows(detector.encoding_)
    function: Callable[..., Any] = getattr(detector, method)
    with joblib.parallel_config(backend="sequential"):  # a worker's threads are busy with other partitions
        return function(rows.X, detector.encoding_.decode(rows.Y))
