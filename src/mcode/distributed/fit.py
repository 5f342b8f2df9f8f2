"""`MCODE.fit` on a table in partitions."""

from __future__ import annotations

from typing import Any

import dask
import joblib
import numpy as np

from mcode.detector.mcode import MCODE
from mcode.detector.reading import check_error_rate, companions_of, fit_score
from mcode.distributed.cluster import Cluster, current
from mcode.distributed.deal import Deal
from mcode.distributed.folder import Folder
from mcode.distributed.look import look, sample, stacked
from mcode.distributed.space import Cast, fit_space
from mcode.distributed.table import Rows, Source, Table, as_part
from mcode.errors import InputError, ParameterError
from mcode.models import as_model
from mcode.models.encoding import ResponseEncoding
from mcode.models.panel import Panel
from mcode.models.per_label import PerLabel
from mcode.scores.names import as_score

SAMPLE_ROWS = 20_000


def sample_rows() -> int:
    """Return how many rows a sample has: `dask.config.set({"mcode.sample-rows": N})` sets it."""
    rows = dask.config.get("mcode.sample-rows", SAMPLE_ROWS)
    if not isinstance(rows, int) or rows < 100:
        raise ParameterError("mcode.sample-rows", rows, "a whole number of at least 100")
    return rows


def meet(cluster: Cluster, table: Table, deal: Deal, fold: int | None = None) -> Cast:
    """Go through a table for the first time; the sample is of one fold or of all rows."""
    if not deal.n_folds >= 2:
        raise ParameterError("folds", deal.n_folds, "a whole number of at least 2")
    if table.n_rows < deal.n_folds:
        raise InputError("X", f"it has {table.n_rows} row(s)", f"{deal.n_folds} folds need at least {deal.n_folds}")
    known = look(cluster, table, deal)
    rows = sample(cluster, table, known.encoding, deal, sample_rows(), fold)
    return Cast(cluster, table, known, deal, rows)


def fit(cluster: Cluster, detector: MCODE, table: Table) -> MCODE:
    """Fit a detector on all rows of a table; it is then the same kind of object as one fitted in memory.

    Models are fitted on all rows. The score, the reference of ranks and p-values, and the error rate come from a
    uniform sample of `sample_rows()` rows, read by models that never saw them.
    """
    detector._check_parameters()
    check_error_rate(detector.error_rate)
    if isinstance(getattr(as_model(detector.model), "learner", None), PerLabel):
        return _fit_per_label(cluster, detector, table)
    holdout = detector.reference == "holdout"
    deal = Deal(2 if holdout else detector.folds, detector.random_state)
    cast = meet(cluster, table, deal, 1 if holdout else None)
    known = cast.known
    detector.encoding_, detector.one_valued_ = known.encoding, known.one_valued
    detector.n_features_in_, detector.n_responses_ = table.n_features, table.n_responses
    detector.score_ = as_score(detector.score)
    detector.space_ = fit_space(
        cast,
        as_model(detector.model),
        companions_of(detector.score_),
        folds=detector.reference != "batch",
        final=not holdout,
        only=1 if holdout else None,
    )
    detector.reference_score_ = None
    if detector.reference != "batch":
        learn_reference(detector, cast.rows, None if holdout else cast.fold_of_row)
    detector.model_ = detector.space_.models["model"]
    detector.typical_ = known.typical
    return detector


def learn_reference(detector: MCODE, rows: Rows, fold_of_row: Any) -> None:
    """Fit the score and calibrate on a sample of rows, read by models that never saw them."""
    space = detector.space_
    panel: Panel
    if fold_of_row is None:
        panel = space.panel(rows.X, rows.Y)
        detector.reference_score_ = fit_score(detector.score_, panel, lambda Yc, at: space.panel(rows.X[at], Yc), None)
    else:
        panel = space.out_of_fold(rows.X, rows.Y)
        detector.reference_score_ = fit_score(
            detector.score_, panel, lambda Yc, at: space.out_of_fold(rows.X[at], Yc, at), fold_of_row
        )
    detector._calibrate(panel)


def _fit_per_label(cluster: Cluster, detector: MCODE, table: Table) -> MCODE:
    """Fit any classifier for each response: such a classifier needs all rows in one place.

    The rows come together here once, and joblib's Dask backend ships X once to every worker, which then fit the
    responses side by side.
    """
    encoding = look(cluster, table, Deal(2)).encoding
    parts = cluster.gather(cluster.compute(_rows_of, table.sources, encoding), "bring the rows together")
    X, Y = stacked([rows.X for rows in parts]), np.concatenate([rows.Y for rows in parts])
    with cluster.client.as_current(), joblib.parallel_config(backend="dask"):
        detector.fit(X, Y)
    detector.encoding_ = encoding
    for model in detector.space_.models.values():
        model.encoding_ = encoding
    names = {str(j): name for j, name in enumerate(encoding.names)}
    detector.one_valued_ = [names[name] for name in detector.one_valued_]
    return detector


def _rows_of(source: Source, encoding: ResponseEncoding) -> Rows:
    return as_part(source).rows(encoding)


def fit_folder(detector: MCODE, folder: Folder) -> MCODE:
    """Fit a detector on a folder of Parquet files; see `MCODE.fit`.

    Parameters
    ----------
    detector : MCODE
    folder : Folder, from `open_folder`
    """
    with current() as cluster:
        return fit(cluster, detector, folder.table)
