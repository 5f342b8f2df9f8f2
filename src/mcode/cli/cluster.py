"""`--cluster`: fit, audit and score a folder of Parquet files on Dask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from mcode._optional import require
from mcode.cli import options as o
from mcode.cli.auditing import json_ready
from mcode.cli.console import FOUND, Screen
from mcode.cli.cut import CutRequest
from mcode.cli.model_file import SavedModel, facts_of, load_model, save_model
from mcode.detector import MCODE
from mcode.errors import ParameterError
from mcode.report.table import id_column
from mcode.report.words import count_of, percent


@contextmanager
def cluster_of(screen: Screen, name: str) -> Iterator[Any]:
    """Give the cluster that `--cluster` names, with progress on the screen."""
    require("distributed", extra="dask")
    from mcode.distributed import Cluster, connect

    with screen.progress(), connect(name) as client, client.as_current():
        yield Cluster(client)


def open_folder(
    path: Path,
    labels: list[str] | None,
    id_name: str | None,
    ignore: list[str] | None,
    tags_column: str | None,
    separator: str,
    drop: bool,
) -> Any:
    """Open a folder as the options ask."""
    from mcode.distributed import open_folder

    return open_folder(
        path,
        o.label_argument(labels),
        id=id_name,
        ignore=o.split_names(ignore),
        tags_column=tags_column,
        separator=separator,
        drop_missing_labels=drop,
    )


def fit_on_cluster(screen: Screen, name: str, detector: MCODE, out: Path, *reading: Any) -> None:
    """Fit on a folder and write the model file."""
    with cluster_of(screen, name) as cluster:
        from mcode.distributed.fit import fit

        folder = open_folder(*reading)
        fit(cluster, detector, folder.table)
        save_model(detector, folder.schema, out)
    screen.emit({"model": str(out), **facts_of(detector, folder.schema)})
    rows, responses = f"{folder.table.n_rows:,}", folder.table.n_responses
    screen.say(
        f"Fitted on {rows} rows of {folder.path.name}: {responses} responses, {folder.table.n_features} features."
    )
    screen.note(f"written: {out}")


def audit_on_cluster(
    screen: Screen,
    name: str,
    request: CutRequest,
    out: Path | None,
    show: int,
    fail_above: float | None,
    how: dict[str, Any],
    *reading: Any,
) -> None:
    """Audit a folder into another one and print the first findings."""
    if out is None:
        raise ParameterError("--out", None, "a folder for the result, where --cluster is given")
    with cluster_of(screen, name) as cluster:
        from mcode.distributed.audit import audit_table, write_audit

        folder = open_folder(*reading)
        found = audit_table(cluster, folder.table, error_rate="auto", **how)
        written = write_audit(cluster, found, out, request.kind, request.level, {"source": folder.path.name}, show)
    about = written.about
    table = folder.table
    screen.say(
        f"{folder.path.name}: {about['rows']:,} rows, {table.n_responses} responses, {table.n_features} features "
        f"(model {about['model']}, score {about['score']})."
    )
    alarms = count_of(round(about["expected_false_alarms"]), "false alarm")
    screen.say(f"{count_of(about['flagged'], 'row')} flagged; expect at most about {alarms} among them.")
    screen.say(f"Estimated share of wrong rows: {percent(about['error_rate'])}.")
    lines = [[str(f["rank"]), percent(f["error_probability"]), f["id"], f["sentence"]] for f in written.first]
    if lines:
        columns = ["rank", "wrong", id_column(folder.schema.id_name), "what and why"]
        screen.table(f"First {len(lines)} of {about['flagged']:,} findings", columns, lines, numbers=2)
    _end(screen, written, out, fail_above)


def score_on_cluster(
    screen: Screen,
    name: str,
    model: Path,
    path: Path,
    out: Path,
    explain_above: float,
    fail_above: float | None,
    drop: bool,
) -> None:
    """Score a folder into another one."""
    with cluster_of(screen, name) as cluster:
        from mcode.distributed import open_folder
        from mcode.distributed.score import write_scores

        saved: SavedModel = load_model(model)
        folder = open_folder(path, like=saved.schema, drop_missing_labels=drop)
        written = write_scores(cluster, saved.detector, folder, out, explain_above)
    worst = written.about["largest_error_probability"]
    rows = count_of(written.about["rows"], "row")
    screen.say(f"{rows} scored; the most suspicious is wrong with probability {worst:.3f}.")
    _end(screen, written, out, fail_above)


def _end(screen: Screen, written: Any, out: Path, fail_above: float | None) -> None:
    screen.emit(json_ready({"summary": written.about, "findings": written.first, "out": str(out)}))
    screen.note(f"written: {out}")
    if fail_above is not None and written.about["largest_error_probability"] > fail_above:
        raise typer.Exit(FOUND)
