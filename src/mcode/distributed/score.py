"""Score a folder of Parquet files with a fitted detector, partition by partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np

from mcode.detector import MCODE
from mcode.distributed.audit import Written
from mcode.distributed.cluster import Cluster, current
from mcode.distributed.folder import Folder
from mcode.distributed.lines import Lines, merged
from mcode.distributed.look import check_two_values
from mcode.distributed.methods import as_fixed, slim
from mcode.distributed.results import begin, discard, finish, write_part
from mcode.distributed.table import as_part
from mcode.ranking import conformal_p_value, percentile_rank


def score_folder(detector: MCODE, folder: Folder, out: Any, *, explain_above: float = 0.5) -> dict[str, Any]:
    """Score the rows of a folder into another folder; return what its manifest says.

    Parameters
    ----------
    detector : MCODE, fitted
    folder : Folder, from `open_folder`
    out : str or path, the folder for the result
    explain_above : float, default=0.5
        Rows that are wrong with at least this probability are explained.
    """
    with current() as cluster:
        return write_scores(cluster, detector, folder, Path(out), explain_above).about


def write_scores(
    cluster: Cluster, detector: MCODE, folder: Folder, out: Path, explain_above: float, show: int = 0
) -> Written:
    """Score all rows and write them; the manifest comes last."""
    check_two_values(detector.encoding_)
    fixed = slim(as_fixed(cluster, detector, folder.table))
    begin(out)
    try:
        keyed = [[source, k] for k, source in enumerate(folder.table.sources)]
        parts = cluster.compute(_write, keyed, fixed, str(out.resolve()), explain_above, show)
        lines = cluster.gather(parts, "score rows")
        reference = fixed.reference_score_
        manifest = {
            "kind": "score",
            "largest_error_probability": max(line["largest_error_probability"] for line, _ in lines),
            "explained": sum(line["explained"] for line, _ in lines),
            "explained_above": explain_above,
            "reference_rows": 0 if reference is None else len(reference),
        }
        finish(out, [line for line, _ in lines], manifest)
    except BaseException:
        discard(out)
        raise
    rows = sum(line["rows"] for line, _ in lines)
    return Written({**manifest, "rows": rows}, merged([first for _, first in lines], show))


def _write(keyed: list[Any], detector: MCODE, out: str, explain_above: float, show: int) -> Any:
    source, number = keyed
    rows = as_part(source).rows(detector.encoding_)
    X, Y = rows.X, detector.encoding_.decode(rows.Y)
    with joblib.parallel_config(backend="sequential"):
        score = detector.outlier_score(X, Y)
        error, blame = detector._errors(X, Y)
        lines = Lines.of(rows, detector.encoding_, detector.transform(X, Y), error[:, None] * blame)
        at = np.flatnonzero(error >= explain_above)
        if len(at):
            features = None if rows.data is None else rows.data.features
            lines.explain(at, detector.explain(X[at], Y[at], features=features, ids=rows.ids[at]))
    reference = detector.reference_score_
    assert reference is not None, "the detector was given a reference of its own"
    columns = {
        lines.id_name: lines.ids,
        "score": score,
        "percentile_rank": percentile_rank(score, reference),
        "p_value": conformal_p_value(score, reference),
        "error_probability": error,
        **lines.columns(),
    }
    line = {**write_part(out, number, columns), "explained": len(at), "largest_error_probability": float(error.max())}
    return line, lines.first(at, np.zeros(len(score), np.intp), score, error, show)
