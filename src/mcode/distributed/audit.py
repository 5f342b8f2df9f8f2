"""`mcode.audit` on a table in partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import dask.array as da
import joblib
import numpy as np
import pyarrow as arrow
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.distributed.auditor import Auditor, Verdict
from mcode.distributed.cluster import Cluster, current
from mcode.distributed.cut import RANKED, Cut, Tally, cut_at, cut_top
from mcode.distributed.deal import Deal
from mcode.distributed.fit import meet, sample_rows
from mcode.distributed.folder import Folder
from mcode.distributed.lines import Lines, merged
from mcode.distributed.results import begin, discard, finish, write_part
from mcode.distributed.table import Rows, Source, Table, as_part, from_dask, lazily
from mcode.errors import InputError
from mcode.models.folds import default_folds


@dataclass(frozen=True)
class DistributedAudit:
    """What an audit of a table in partitions found; the attributes are those of `mcode.Audit`, as Dask arrays.

    They are computed when they are asked for. `flagged` goes through the table, `explain_rows` reads the rows it
    is asked for, `write` puts everything into a folder.

    Attributes
    ----------
    outlier_score, p_value, error_probability : Dask arrays of n
    rho, response_error_probability : Dask arrays of n x d
    error_rate : float, the share of wrong rows that the probabilities assume
    one_valued : list of str: responses with one value only
    auditor : Auditor
    table : Table
    """

    table: Table = field(repr=False)
    auditor: Auditor = field(repr=False)
    one_valued: list[str]

    @property
    def error_rate(self) -> float:
        """The share of wrong rows that the probabilities assume."""
        return self.auditor.error_rate

    def _lazily(self, name: str, columns: int | None = None) -> da.Array:
        return lazily(_one_array, self.table, self.auditor, name, columns=columns)

    @property
    def outlier_score(self) -> da.Array:
        """Larger = more outlying."""
        return self._lazily("outlier_score")

    @property
    def percentile_rank(self) -> da.Array:
        """Share of the sample's rows with a smaller score."""
        return self._lazily("percentile_rank")

    @property
    def p_value(self) -> da.Array:
        """The share of ordinary rows that are at least as outlying."""
        return self._lazily("p_value")

    @property
    def error_probability(self) -> da.Array:
        """How likely each row is wrong."""
        return self._lazily("error_probability")

    @property
    def rho(self) -> da.Array:
        """Probability of each observed response."""
        return self._lazily("rho", self.table.n_responses)

    @property
    def response_error_probability(self) -> da.Array:
        """How likely each response is wrong."""
        return self._lazily("response_error_probability", self.table.n_responses)

    def flagged(self, fdr: float = 0.1) -> NDArray[np.intp]:
        """Return the most suspicious rows, of which an expected share of at most `fdr` is right after all."""
        with current() as cluster:
            cut = cut_at(self._tally(cluster), fdr, by_p_value=self.auditor.cut_by_p_value)
            parts = cluster.gather(cluster.compute(_flagged, self.table.sources, self.auditor, cut), "flag rows")
        row = np.concatenate([part[0] for part in parts])
        score = np.concatenate([part[1] for part in parts])
        return np.asarray(row[np.argsort(-score, kind="stable")])

    def explain(self, row: int, **options: Any) -> Any:
        """Return the `Finding` of one row; see `explain_rows`."""
        return self.explain_rows([row], **options)[0]

    def explain_rows(self, rows: Sequence[int] | NDArray[np.intp], **options: Any) -> list[Any]:
        """Return a `Finding` for each of some rows, counted from 0 over all partitions."""
        wanted = np.asarray(rows, np.intp)
        ends = np.cumsum(self.table.lengths)
        if wanted.ndim != 1 or ((wanted < 0) | (wanted >= ends[-1])).any():
            raise InputError("rows", f"it holds {rows!r}", f"rows are counted from 0 to {ends[-1] - 1}")
        home = np.searchsorted(ends, wanted, side="right")
        found: dict[int, Any] = {}
        with current() as cluster:
            tally = self._tally(cluster)
            for part in np.unique(home):
                mine = np.flatnonzero(home == part)
                at = wanted[mine] - (ends[part] - self.table.lengths[part])
                handle = cluster.compute(_explained, [self.table.sources[part]], self.auditor, at, tally, options)
                for place, finding in zip(mine, cluster.gather(handle, "explain rows")[0], strict=True):
                    found[int(place)] = finding
        return [found[k] for k in range(len(wanted))]

    def write(self, folder: Any, *, fdr: float = 0.1) -> dict[str, Any]:
        """Write all rows, with the findings of the flagged ones, into a folder; return what the manifest says."""
        with current() as cluster:
            return write_audit(cluster, self, Path(folder), "fdr", fdr).about

    def _tally(self, cluster: Cluster, most: int = RANKED) -> Tally:
        found: Tally = cluster.total(cluster.compute(_tally, self.table.sources, self.auditor, most), "score rows")
        return found


def audit(
    X: Any,
    Y: Any,
    *,
    model: Any = "dbr",
    score: Any = "learned",
    folds: int | None = None,
    error_rate: Literal["auto"] | float = "auto",
    random_state: int = 0,
) -> DistributedAudit:
    """Score every row of two Dask arrays or dataframes by models that never saw it; see `mcode.audit`."""
    with current() as cluster:
        return audit_table(cluster, from_dask(cluster, X, Y), model, score, folds, error_rate, random_state)


def audit_table(
    cluster: Cluster, table: Table, model: Any, score: Any, folds: int | None, error_rate: Any, random_state: int
) -> DistributedAudit:
    """Fit the models of all folds on a table, and everything that judges its rows."""
    n_folds = default_folds(table.n_rows) if folds is None else folds
    cast = meet(cluster, table, Deal(n_folds, random_state))
    return DistributedAudit(table, Auditor.of(cast, model, score, error_rate, random_state), cast.known.one_valued)


@dataclass(frozen=True)
class Written:
    """A result in a folder.

    Attributes
    ----------
    about : what the manifest says beside its parts
    first : the first findings, most suspicious first
    """

    about: dict[str, Any]
    first: list[dict[str, Any]]


def write_audit(
    cluster: Cluster, found: DistributedAudit, folder: Path, kind: str, level: float, about: Any = None, show: int = 10
) -> Written:
    """Make the cut over the whole table and write all rows, flagged ones explained; the manifest comes last."""
    n = found.table.n_rows
    rows = int(level) if kind == "top" else max(1, round(level * n)) if kind == "rate" else 0
    tally = found._tally(cluster, max(RANKED, rows))
    cut = cut_at(tally, level, by_p_value=found.auditor.cut_by_p_value) if kind == "fdr" else cut_top(tally, rows)
    begin(folder)
    try:
        keyed = [[source, k] for k, source in enumerate(found.table.sources)]
        parts = cluster.compute(_write, keyed, found.auditor, cut, tally, str(folder.resolve()), show)
        lines = cluster.gather(parts, "write the result")
        manifest = {
            "kind": "audit",
            "score": type(found.auditor.score).__name__,
            "model": type(found.auditor.space.model).__name__,
            "cut": {"kind": kind, "level": level},
            "flagged": sum(line["flagged"] for line, _ in lines),
            "error_rate": found.error_rate,
            "one_valued": found.one_valued,
            "sample_rows": sample_rows(),
            "ordinary_rows": len(found.auditor.ordinary),
            "largest_error_probability": max(line["largest_error_probability"] for line, _ in lines),
            "expected_false_alarms": _false_alarms(tally, cut, lines),
            **(about or {}),
        }
        finish(folder, [line for line, _ in lines], manifest)
    except BaseException:
        discard(folder)
        raise
    return Written({**manifest, "rows": tally.n_rows}, merged([first for _, first in lines], show))


def _false_alarms(tally: Tally, cut: Cut, lines: Sequence[Any]) -> float:
    """Return how many of the flagged rows ordinary rows would make up: n times the largest p-value among them."""
    flagged = sum(line["flagged"] for line, _ in lines)
    worst = max((line["largest_flagged_p_value"] for line, _ in lines), default=0.0)
    return float(min(flagged, tally.n_rows * worst))


def _judged(source: Source, auditor: Auditor) -> tuple[Rows, Verdict]:
    rows = as_part(source).rows(auditor.encoding)
    with joblib.parallel_config(backend="sequential"):  # a worker's threads are busy with other partitions
        return rows, auditor.judge(rows)


def _one_array(source: Source, auditor: Auditor, name: str) -> Floats:
    return np.asarray(getattr(_judged(source, auditor)[1], name))


def _tally(source: Source, auditor: Auditor, most: int) -> Tally:
    verdict = _judged(source, auditor)[1]
    return Tally.of(verdict.outlier_score, verdict.p_value, verdict.error_probability, len(auditor.ordinary), most)


def _flagged(source: Source, auditor: Auditor, cut: Cut) -> tuple[NDArray[np.intp], Floats]:
    rows, verdict = _judged(source, auditor)
    at = np.flatnonzero(cut.flags(verdict.outlier_score, verdict.p_value, verdict.error_probability))
    return rows.ids[at], verdict.outlier_score[at]


def _explained(source: Source, auditor: Auditor, at: NDArray[np.intp], tally: Tally, options: Any) -> list[Any]:
    rows, verdict = _judged(source, auditor)
    rank = tally.rank(verdict.outlier_score[at])
    return auditor.explain(rows, verdict, at, rank, **{"ids": rows.ids[at], **options})


def _write(keyed: list[Any], auditor: Auditor, cut: Cut, tally: Tally, folder: str, show: int) -> Any:
    source, number = keyed
    rows, verdict = _judged(source, auditor)
    flagged = cut.flags(verdict.outlier_score, verdict.p_value, verdict.error_probability)
    at = np.flatnonzero(flagged)
    rank = tally.rank(verdict.outlier_score)
    lines = Lines.of(rows, auditor.encoding, verdict.rho, verdict.response_error_probability)
    if len(at):
        features = None if rows.data is None else rows.data.features
        lines.explain(at, auditor.explain(rows, verdict, at, rank[at], features=features, ids=rows.ids[at]))
    columns = {
        lines.id_name: lines.ids,
        "rank": arrow.array(rank, mask=rank == 0),
        "score": verdict.outlier_score,
        "percentile_rank": verdict.percentile_rank,
        "p_value": verdict.p_value,
        "error_probability": verdict.error_probability,
        **lines.columns(),
        "flagged": flagged,
    }
    line = {
        **write_part(folder, number, columns),
        "flagged": len(at),
        "largest_error_probability": float(verdict.error_probability.max()),
        "largest_flagged_p_value": float(verdict.p_value[at].max(initial=0.0)),
    }
    return line, lines.first(at, rank, verdict.outlier_score, verdict.error_probability, show)


def audit_folder(folder: Folder, out: Any, *, fdr: float = 0.1, **options: Any) -> dict[str, Any]:
    """Audit a folder of Parquet files into another folder; return what its manifest says.

    Parameters
    ----------
    folder : Folder, from `open_folder`
    out : str or path, the folder for the result
    fdr : float, default=0.1
    options : model, score, folds, error_rate, random_state, as of `mcode.audit`
    """
    asked = {"model": "dbr", "score": "learned", "folds": None, "error_rate": "auto", "random_state": 0, **options}
    with current() as cluster:
        return write_audit(cluster, audit_table(cluster, folder.table, **asked), Path(out), "fdr", fdr).about
