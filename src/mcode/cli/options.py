"""Options that several commands share: one name, one meaning, one sentence of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mcode.data import Dataset, read
from mcode.errors import ParameterError

READING = "Reading"
OUTPUT = "Output"

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="CSV, TSV (also .gz), Parquet, Arrow, JSON lines, ARFF, multi-label libsvm or npz."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model written by `mcode fit`.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="PATTERN",
        help="The responses: column names or patterns such as 'dx_*', separated by commas or given several times, or a "
        "Mulan XML file. Without it the file itself must say (ARFF, libsvm, npz).",
        rich_help_panel=READING,
    ),
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COL", help="The column that names the rows.", rich_help_panel=READING),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", metavar="COL", help="Columns or patterns to leave out; may be repeated.", rich_help_panel=READING
    ),
]
TagsColumn = Annotated[
    str | None,
    typer.Option(
        "--tags-column",
        metavar="COL",
        help="A column of delimited tags; each tag becomes a response.",
        rich_help_panel=READING,
    ),
]
Separator = Annotated[
    str, typer.Option("--separator", metavar="TEXT", help="What separates the tags.", rich_help_panel=READING)
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing-labels",
        help="Leave out rows where a response is missing, instead of refusing the file.",
        rich_help_panel=READING,
    ),
]
MaxValues = Annotated[
    int,
    typer.Option(
        "--max-values",
        metavar="N",
        help="The most values that a response may have, up to 50; a column with more is refused.",
        rich_help_panel=READING,
    ),
]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="Encoding of a text file.", rich_help_panel=READING)
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="How responses depend on each other: dbr (each on all others), chain, tree (each on one other), br (not "
        "at all), chain-ensemble (five chains) or mixture (dbr, chains and a tree).",
    ),
]
Learner = Annotated[
    str,
    typer.Option(
        "--learner",
        metavar="NAME",
        help="How each response is learned: logistic (regression), svm (calibrated), naive-bayes or boosting.",
    ),
]
Score = Annotated[
    str,
    typer.Option(
        "--score",
        metavar="NAME",
        help="learned, noise, complement, reliability, norm, robust, lof or ocsvm: how rows are ranked.",
    ),
]
Folds = Annotated[int, typer.Option("--folds", metavar="N", help="Folds of the cross-fit.")]
AuditFolds = Annotated[
    int | None,
    typer.Option("--folds", metavar="N", help="Folds of the cross-fit: 5, or 3 for more than 50,000 rows."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the folds: the same seed, the same result.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on Dask: tcp://host:port of a scheduler, or local:N for N processes of this machine. FILE is then a "
        "folder of Parquet files, and the result of audit and score is a folder.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=OUTPUT)]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else.", rich_help_panel=OUTPUT)
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show tracebacks and warnings of libraries.", rich_help_panel=OUTPUT)
]


def read_table(
    path: Path,
    labels: list[str] | None,
    id_name: str | None,
    ignore: list[str] | None,
    tags_column: str | None,
    separator: str,
    drop_missing_labels: bool,
    max_values: int,
    encoding: str,
) -> Dataset:
    """Read a file as its options ask."""
    return read(
        path,
        labels=label_argument(labels),
        id=id_name,
        ignore=split_names(ignore),
        tags_column=tags_column,
        separator=separator,
        missing_labels="drop" if drop_missing_labels else "refuse",
        max_values=max_values,
        encoding=encoding,
    )


def label_argument(labels: list[str] | None) -> Any:
    """Return the labels as `mcode.read` takes them: one XML file, or names and patterns."""
    if not labels:
        return None
    if any(label.lower().endswith(".xml") for label in labels):
        if len(labels) > 1:
            raise ParameterError("--labels", labels, "one XML file, or column names and patterns")
        return labels[0]
    return split_names(labels)


def split_names(values: list[str] | None) -> list[str]:
    """Return names that were given one by one or separated by commas.

    Examples
    --------
    >>> split_names(["dx_*, rx_*", "flu"])
    ['dx_*', 'rx_*', 'flu']
    """
    return [name for value in values or [] for name in (part.strip() for part in value.split(",")) if name]
