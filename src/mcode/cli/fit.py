"""`mcode fit`: learn from past data and keep the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcode.cli import options as o
from mcode.cli.cluster import fit_on_cluster
from mcode.cli.console import session
from mcode.cli.model_file import facts_of, save_model
from mcode.cli.writing import check_output
from mcode.detector import MCODE
from mcode.models import as_model
from mcode.own_words import named_responses


def fit(
    file: o.File,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Where to write the model.")],
    labels: o.Labels = None,
    id: o.Id = None,
    ignore: o.Ignore = None,
    tags_column: o.TagsColumn = None,
    separator: o.Separator = ";",
    drop_missing_labels: o.DropMissing = False,
    max_values: o.MaxValues = 20,
    encoding: o.Encoding = "utf-8",
    model: o.Model = "dbr",
    learner: o.Learner = "logistic",
    score: o.Score = "learned",
    folds: o.Folds = 5,
    seed: o.Seed = 0,
    cluster: o.Cluster = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Learn from past rows, assumed mostly right, and write a model for `mcode score` and `mcode explain`.

    The model file also keeps how the table was read, so that new files become the same features.

    Example: mcode fit visits_2024.parquet --labels 'dx_*' --id visit_id -o visits.mcode
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        check_output(out, inputs=(file,))
        detector = MCODE(
            model=model if learner == "logistic" else as_model(model, learner),
            score=score,
            folds=folds,
            random_state=seed,
        )
        if cluster is not None:
            where = (file, labels, id, ignore, tags_column, separator, drop_missing_labels)
            fit_on_cluster(screen, cluster, detector, out, *where)
            return
        with screen.progress():
            data = o.read_table(
                file, labels, id, ignore, tags_column, separator, drop_missing_labels, max_values, encoding
            )
            detector.fit(data.X, named_responses(data))
            save_model(detector, data.schema, out)
        facts = facts_of(detector, data.schema)
        screen.emit({"model": str(out), **facts})
        screen.say(
            f"Fitted on {len(data):,} rows of {file.name}: {len(data.label_names)} responses, "
            f"{data.X.shape[1]} features."
        )
        screen.note(f"written: {out}")
