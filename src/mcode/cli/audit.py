"""`mcode audit`: from a table to a ranked, explained list and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mcode.cli import options as o
from mcode.cli.auditing import Audited, run_audit, show, write_results
from mcode.cli.cluster import audit_on_cluster
from mcode.cli.console import FOUND, session
from mcode.cli.cut import CutRequest
from mcode.cli.reviewing import (
    QUEUE,
    SERVER,
    DatabaseUrl,
    NoOpen,
    Port,
    make_project,
    need_web,
    open_database,
    serve_project,
)
from mcode.cli.writing import WRITERS, check_output
from mcode.errors import ParameterError
from mcode.models import as_model

CUT = "The cut (one of them)"


def audit(
    file: o.File,
    labels: o.Labels = None,
    id: o.Id = None,
    ignore: o.Ignore = None,
    tags_column: o.TagsColumn = None,
    separator: o.Separator = ";",
    drop_missing_labels: o.DropMissing = False,
    max_values: o.MaxValues = 20,
    encoding: o.Encoding = "utf-8",
    fdr: Annotated[
        float | None,
        typer.Option(
            "--fdr",
            metavar="SHARE",
            help="Flag rows so that at most this share of them is right after all; 0.1 where no cut is named.",
            rich_help_panel=CUT,
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", help="Flag the N most suspicious rows.", rich_help_panel=CUT)
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="SHARE", help="Flag this share of all rows.", rich_help_panel=CUT),
    ] = None,
    model: o.Model = "dbr",
    learner: o.Learner = "logistic",
    score: o.Score = "learned",
    folds: o.AuditFolds = None,
    seed: o.Seed = 0,
    cluster: o.Cluster = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            "--csv",
            metavar="OUT",
            help="Write all rows, most suspicious first, as .csv, .parquet, .json or .jsonl; flagged ones explained.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="OUT.html",
            help="Write one self-contained page with the findings, their evidence and repair.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    show_rows: Annotated[
        int,
        typer.Option("--show", metavar="N", help="How many findings to print.", rich_help_panel=o.OUTPUT),
    ] = 10,
    fail_above: Annotated[
        float | None,
        typer.Option(
            "--fail-above",
            metavar="PROBABILITY",
            help="Exit with code 1 if any row is wrong with more than this probability: for checks of incoming data.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    review: Annotated[
        bool,
        typer.Option("--review", help="Make a review project and open its page.", rich_help_panel=SERVER),
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            metavar="PROJECT",
            help="The project's file; FILE.review in this folder by default.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    queue: Annotated[
        int,
        typer.Option(
            "--queue", metavar="N", help="How many of the most suspicious rows to review.", rich_help_panel=SERVER
        ),
    ] = QUEUE,
    database: DatabaseUrl = None,
    port: Port = None,
    no_open: NoOpen = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Find rows whose responses do not fit their context, in one table.

    Every row is scored by models that never saw it. The findings say which response looks wrong, why, and what it
    should have been.

    Example: mcode audit visits.csv --labels 'dx_*,rx_*' --id visit_id --report report.html --csv findings.csv
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        request = CutRequest.of(fdr, top, rate)
        check_fail_above(fail_above)
        if cluster is not None:
            if report is not None or review:
                raise ParameterError("--report and --review", "--cluster", "left out where --cluster is given")
            how = {
                "model": model if learner == "logistic" else as_model(model, learner),
                "score": score,
                "folds": folds,
                "random_state": seed,
            }
            where = (file, labels, id, ignore, tags_column, separator, drop_missing_labels)
            audit_on_cluster(screen, cluster, request, out, show_rows, fail_above, how, *where)
            return
        check_output(out, inputs=(file,), suffixes=tuple(WRITERS))
        check_output(report, inputs=(file,), suffixes=(".html", ".htm"))
        if queue < 1:
            raise ParameterError("--queue", queue, "a whole number of at least 1")
        place = project or Path(f"{file.name}.review")
        store = _store_of_review(place, database) if review else None
        with screen.progress():
            data = o.read_table(
                file, labels, id, ignore, tags_column, separator, drop_missing_labels, max_values, encoding
            )
            audited = run_audit(data, request, model=model, learner=learner, score=score, folds=folds, seed=seed)
            write_results(audited, out, report)
            if store is not None:
                auditing = {"model": model, "learner": learner, "score": score, "folds": folds, "random_state": seed}
                reading: dict[str, Any] = {
                    "missing_labels": "drop" if drop_missing_labels else "refuse",
                    "max_values": max_values,
                    "encoding": encoding,
                }
                reading |= {"ignore": o.split_names(ignore)}
                made = make_project(audited, store, file, reading=reading, auditing=auditing, queue=queue)
        show(screen, audited, show_rows)
        screen.emit(audited.to_dict())
        for path in (out, report):
            if path is not None:
                screen.note(f"written: {path}")
        if store is not None:
            from mcode.web.server import Door

            screen.note(f"project: {store.name}")
            serve_project(screen, made, Door(port=port), open_browser=not no_open)
        if _worst(audited) > (1.0 if fail_above is None else fail_above):
            raise typer.Exit(FOUND)


def check_fail_above(fail_above: float | None) -> None:
    """Refuse what is no probability."""
    if fail_above is not None and not 0.0 <= fail_above <= 1.0:
        raise ParameterError("--fail-above", fail_above, "a probability, from 0 to 1")


def _worst(audited: Audited) -> float:
    return float(audited.found.error_probability.max())


def _store_of_review(project: Path, url: str | None) -> Any:
    """Return where the review shall be kept, before any work is done; a project with verdicts is never replaced."""
    need_web()
    check_output(project)
    from mcode.web.project import check_free

    store = open_database(project, url)
    check_free(store)
    return store
