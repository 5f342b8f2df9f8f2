"""`mcode explain`: everything about one row."""

from __future__ import annotations

from typing import Annotated

import typer

from mcode.cli import options as o
from mcode.cli.auditing import json_ready
from mcode.cli.console import Screen, session
from mcode.cli.model_file import load_model
from mcode.data import Dataset, Schema, stream
from mcode.errors import DataFormatError
from mcode.explain.finding import Finding
from mcode.own_words import explain_new
from mcode.report.page import explained_responses
from mcode.report.words import odds, percent, value_text


def explain(
    model: o.ModelFile,
    file: o.File,
    row: Annotated[
        str, typer.Option("--row", "-r", metavar="ID", help="The row: its id, or its place counted from 0.")
    ],
    drop_missing_labels: o.DropMissing = False,
    encoding: o.Encoding = "utf-8",
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Say which responses of one row look wrong, why, and which change would make it ordinary.

    Example: mcode explain visits.mcode visits_today.csv --row V000123
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        with screen.progress():
            saved = load_model(model)
            missing = "drop" if drop_missing_labels else "refuse"
            place, found = find_row(str(file), saved.schema, row, missing, encoding)
            finding = explain_new(saved.detector, found)[0]
        screen.emit(json_ready({**finding.to_dict(), "row": place}))
        show_finding(screen, finding, f"{saved.schema.id_name or 'row'} {row}")


def find_row(path: str, schema: Schema, row: str, missing: str, encoding: str) -> tuple[int, Dataset]:
    """Return the place of a row in a file, and a data set of that row alone."""
    start = 0
    for part in stream(path, schema, missing_labels="drop" if missing == "drop" else "refuse", encoding=encoding):
        ids = part.row_ids.tolist()
        at = next((i for i, value in enumerate(ids) if str(value) == row), None)
        if at is not None:
            return start + at, part.take([at])
        start += len(part)
    called = "row" if schema.id_name is None else repr(schema.id_name)
    raise DataFormatError(path, reason=f"no row has {called} {row!r} among its {start:,} rows")


def show_finding(screen: Screen, finding: Finding, called: str) -> None:
    """Print all about a row."""
    screen.say(
        f"{called}: wrong with probability {percent(finding.error_probability)}, score {finding.score:.3f}, "
        f"p-value {finding.p_value:.2g}."
    )
    if finding.sentence:
        screen.say(finding.sentence)
    if finding.repair.changes:
        changes = ", ".join(f"{c.name} {value_text(c.before)} -> {value_text(c.after)}" for c in finding.repair.changes)
        screen.say(
            f"Repair: {changes}. All responses together: {odds(finding.repair.probability_before)} likely as "
            f"recorded, {odds(finding.repair.probability_after)} after."
        )
    else:
        screen.say("Repair: no change of the responses makes this row more ordinary.")
    evidence = [
        [f"{piece.weight:+.2f}", response.name, f"{piece.kind} {piece.name} = {value_text(piece.value)}"]
        for response in explained_responses(finding)
        for piece in response.evidence
    ]
    if evidence:
        screen.table("Evidence (log odds towards the expected value)", ["weight", "for", "from"], evidence, numbers=1)
    responses = [
        [percent(r.error_probability), percent(r.probability), r.name, value_text(r.observed), value_text(r.expected)]
        for r in finding.responses
    ]
    screen.table("Responses", ["wrong", "likely", "response", "recorded", "expected"], responses, numbers=2)
