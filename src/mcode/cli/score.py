"""`mcode score`: score what comes in, part by part, whatever its size."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from mcode._optional import require
from mcode.cli import options as o
from mcode.cli.audit import check_fail_above
from mcode.cli.cluster import score_on_cluster
from mcode.cli.console import FOUND, session
from mcode.cli.model_file import load_model
from mcode.cli.scoring import score_part
from mcode.cli.writing import WRITERS, ParquetWriter, check_output, writing
from mcode.data import stream
from mcode.errors import ParameterError
from mcode.report.table import Table, id_column
from mcode.report.words import count_of


def score(
    model: o.ModelFile,
    file: o.File,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", "--csv", metavar="OUT", help="The result: .csv, .parquet, .json or .jsonl."),
    ],
    explain_above: Annotated[
        float,
        typer.Option(
            "--explain-above",
            metavar="PROBABILITY",
            help="Explain rows that are wrong with at least this probability.",
        ),
    ] = 0.5,
    chunk: Annotated[int, typer.Option("--chunk", metavar="ROWS", help="Rows that are in memory together.")] = 50_000,
    cluster: o.Cluster = None,
    drop_missing_labels: o.DropMissing = False,
    encoding: o.Encoding = "utf-8",
    fail_above: Annotated[
        float | None,
        typer.Option(
            "--fail-above",
            metavar="PROBABILITY",
            help="Exit with code 1 if any row is wrong with more than this probability.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Score the rows of a file with a fitted model.

    The file may be larger than memory: it is read part by part, and a row's score does not depend on the other rows.
    The result has one line per row in the order of the file; `rank` says which is the most suspicious.

    Example: mcode score visits.mcode visits_today.csv -o scored.csv --fail-above 0.9
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        check_fail_above(fail_above)
        if not 0.0 <= explain_above <= 1.0:
            raise ParameterError("--explain-above", explain_above, "a probability, from 0 to 1")
        if cluster is not None:
            score_on_cluster(screen, cluster, model, file, out, explain_above, fail_above, drop_missing_labels)
            return
        check_output(out, inputs=(model, file), suffixes=tuple(WRITERS))
        with screen.progress():
            saved = load_model(model)
            parts = (
                score_part(saved.detector, data, explain_above)
                for data in stream(
                    file,
                    saved.schema,
                    rows=chunk,
                    missing_labels="drop" if drop_missing_labels else "refuse",
                    encoding=encoding,
                )
            )
            n_rows, worst = write_ranked(out, parts, id_column(saved.schema.id_name))
        screen.say(f"{count_of(n_rows, 'row')} scored; the most suspicious is wrong with probability {worst:.3f}.")
        screen.emit({"rows": n_rows, "largest_error_probability": worst, "out": str(out)})
        screen.note(f"written: {out}")
        if fail_above is not None and worst > fail_above:
            raise typer.Exit(FOUND)


def write_ranked(out: Path, parts: Iterator[Table], id_name: str) -> tuple[int, float]:
    """Write scored parts with their rank among all rows; return the number of rows and the largest probability.

    A rank is known when the last row is. So the parts wait in a temporary file; only their scores stay in memory.
    """
    scores: list[NDArray[Any]] = []
    worst, whole = 0.0, True
    with tempfile.TemporaryDirectory(prefix=".mcode-", dir=out.parent) as folder:
        waiting = Path(folder) / "parts.parquet"
        spool = ParquetWriter(waiting)
        try:
            for part in parts:
                # Ids of a later part may be of another type than those of the first, so they wait as texts.
                whole = whole and all(isinstance(cell, int) for cell in part[id_name])
                spool.write({**part, id_name: [str(cell) for cell in part[id_name]]})
                scores.append(np.asarray(part["score"]))
                worst = max(worst, *part["error_probability"])
        finally:
            spool.close()
        rank = ranks(np.concatenate(scores))
        with writing(out) as writer:
            for table in ranked_parts(waiting, rank):
                writer.write({**table, id_name: [int(cell) for cell in table[id_name]]} if whole else table)
    return len(rank), worst


def ranked_parts(waiting: Path, rank: NDArray[np.intp]) -> Iterator[Table]:
    """Yield the waiting parts, each row with its rank."""
    parquet = require("pyarrow.parquet", extra="cli")
    start = 0
    with parquet.ParquetFile(waiting) as file:
        for batch in file.iter_batches():
            table: Table = batch.to_pydict()
            table["rank"] = rank[start : start + batch.num_rows].tolist()
            start += batch.num_rows
            yield table


def ranks(scores: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rank of each score, 1 = largest.

    Examples
    --------
    >>> ranks(np.array([0.5, 2.0, 1.0]))
    array([3, 1, 2])
    """
    rank = np.empty(len(scores), np.intp)
    rank[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return rank
