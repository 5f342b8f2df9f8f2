"""`mcode demo`: an audit of a table whose errors are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import mcode
from mcode.cli import options as o
from mcode.cli.auditing import Audited, run_audit, show, write_results
from mcode.cli.console import session
from mcode.cli.cut import CutRequest
from mcode.cli.writing import atomic
from mcode.corruption import Noise
from mcode.data import read
from mcode.data.synthetic import Truth, clinic_visits
from mcode.own_words import named_responses
from mcode.report.words import percent
from mcode.scores import NoiseScore


def demo(
    rows: Annotated[int, typer.Option("--rows", metavar="N", help="Size of the generated table.")] = 5000,
    folder: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the table, the findings and the report go.")
    ] = Path("build/demo"),
    fdr: Annotated[float, typer.Option("--fdr", metavar="SHARE", help="As of `mcode audit`.")] = 0.1,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Generate clinic visits with known errors, audit them, and compare the findings with the truth.

    Example: mcode demo --rows 5000 --out demo
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        request = CutRequest.of(fdr, None, None)
        visits = clinic_visits(rows, random_state=seed)
        folder.mkdir(parents=True, exist_ok=True)
        table, out, report = folder / "visits.csv", folder / "findings.csv", folder / "report.html"
        with atomic(table) as part:
            visits.write_csv(part)
        screen.say(f"Generated {rows:,} clinic visits, {visits.truth.is_wrong.sum():,} of them recorded wrong: {table}")
        screen.say(f"The same by hand: mcode audit {table} --labels 'dx_*,rx_*' --id visit_id --fdr {fdr}")
        screen.say()
        with screen.progress():
            data = read(table, labels=["dx_*", "rx_*"], id="visit_id")
            audited = run_audit(data, request, model="dbr", score="learned", seed=seed)
            write_results(audited, out, report)
            alone = label_by_label(audited, seed)
        show(screen, audited, 8)
        truth = compare(audited, alone, visits.truth)
        show_comparison(screen.say, truth)
        screen.emit({**truth, "table": str(table), "findings": str(out), "report": str(report)})
        screen.say(f"Report: {report.resolve()}")


def label_by_label(audited: Audited, seed: int) -> mcode.Audit:
    """Audit the same rows without letting any response see the others, by the score that is made for single errors."""
    data = audited.data
    score = NoiseScore(errors=[Noise(0.01)])
    return mcode.audit(data.X, named_responses(data), model="br", score=score, random_state=seed)


def compare(audited: Audited, alone: mcode.Audit, truth: Truth) -> dict[str, Any]:
    """Return how many of the findings are true, with and without the other labels, at the same number of rows."""
    wrong = truth.is_wrong
    flagged, n_wrong = audited.flagged, int(wrong.sum())
    k = len(flagged)
    return {
        "wrong": n_wrong,
        "flagged": k,
        "precision": share(wrong, flagged),
        "precision_label_by_label": share(wrong, alone.ranking[:k]),
        "precision_at_wrong": share(wrong, audited.found.ranking[:n_wrong]),
        "precision_at_wrong_label_by_label": share(wrong, alone.ranking[:n_wrong]),
        "right_response_named_first": first_named(audited, truth),
    }


def share(wrong: NDArray[np.bool_], rows: NDArray[np.intp]) -> float:
    """Return the share of rows that are wrong; 0 where there are none."""
    return float(wrong[rows].mean()) if len(rows) else 0.0


def first_named(audited: Audited, truth: Truth) -> float:
    """Return, among the true findings, the share whose first-named response is really wrong."""
    place = {name: j for j, name in enumerate(audited.data.label_names)}
    true = [finding for finding in audited.findings if truth.is_wrong[finding.row]]
    hits = [bool(truth.cell_is_wrong[finding.row, place[finding.responses[0].name]]) for finding in true]
    return sum(hits) / len(hits) if hits else 0.0


def show_comparison(say: Any, truth: dict[str, Any]) -> None:
    """Print the comparison with the truth."""
    k, n = truth["flagged"], truth["wrong"]
    named = percent(truth["right_response_named_first"])
    lines = {
        f"of the {k:,} flagged rows": (truth["precision"], f"wrong; {named} of them have a wrong response named first"),
        f"of {k:,} found label by label": (truth["precision_label_by_label"], "wrong"),
        f"of the {n:,} most suspicious rows": (truth["precision_at_wrong"], "wrong"),
        f"of {n:,} found label by label": (truth["precision_at_wrong_label_by_label"], "wrong"),
    }
    say()
    say(f"Compared with the truth ({n:,} rows are wrong):")
    for what, (value, ending) in lines.items():
        say(f"  {what:<32}{percent(value):>8} are {ending}")
    say()
