"""`mcode experiment`: the experiments of the paper, and the clean protocol beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mcode._optional import require
from mcode.cli import options as o
from mcode.cli.console import session
from mcode.errors import UnknownNameError
from mcode.experiments import EXPERIMENTS, run_experiment


def experiment(
    which: Annotated[
        str,
        typer.Argument(metavar="WHICH", help="1, 2, clean, likelihood or artefacts."),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="A small run of the same shape, for a first look.")] = False,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Seed of folds and errors: the same seed, the same files.")
    ] = 0,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="The folder of the data sets (.npz); MCODE_DATA where not given."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where rows, tables and figures go; build/experiment-WHICH."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--sets", metavar="NAMES", help="Only these data sets, by file name, separated by commas."),
    ] = None,
    redo: Annotated[
        list[str] | None,
        typer.Option("--redo", metavar="METHODS", help="Measure these methods again and keep the others."),
    ] = None,
    only_tables: Annotated[
        bool,
        typer.Option("--only-tables", help="Measure nothing: write the tables and figures of the rows that are there."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, metavar="N", help="Processes of the clean protocol; one for each core."),
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Repeat an experiment of the paper, or run the clean protocol; a run that was stopped goes on where it was.

    Example: mcode experiment 1 --data data --out results
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        if which not in EXPERIMENTS:
            raise UnknownNameError("WHICH", which, EXPERIMENTS, or_instance=False)
        for module in ("matplotlib", "cleanlab", "pyod"):
            require(module, extra="experiments")
        folder = Path("build") / f"experiment-{which}" if out is None else out
        with screen.progress():
            written = run_experiment(
                which,
                folder,
                data,
                quick=quick,
                seed=seed,
                sets=o.split_names(sets),
                redo=o.split_names(redo),
                only_tables=only_tables,
                jobs=jobs,
            )
        table = folder / "table.md"
        for line in table.read_text(encoding="utf-8").splitlines() if table in written else ["No complete runs yet."]:
            screen.say(line)
        screen.emit({"experiment": which, "folder": str(folder), "files": [str(path) for path in written]})
        screen.note(f"written to {folder}: {'; '.join(_by_name(written))}")


def _by_name(paths: Sequence[Path]) -> list[str]:
    """Return each name with its endings: a table is there three times, and all of a run's files would fill a screen.

    Examples
    --------
    >>> _by_name([Path("out/table.md"), Path("out/table.csv"), Path("out/bars.svg")])
    ['table (md, csv)', 'bars (svg)']
    """
    endings: dict[str, list[str]] = {}
    for path in paths:
        endings.setdefault(path.stem, []).append(path.suffix[1:])
    return [f"{name} ({', '.join(kinds)})" for name, kinds in endings.items()]
