"""The terminal: the only module that imports rich. Results go to stdout, everything about them to stderr."""

from __future__ import annotations

import json
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeftColumn
from rich.table import Table
from rich.text import Text

from mcode._progress import reporting
from mcode.errors import McodeError

DONE, FOUND, BAD_INPUT, DEFECT, INTERRUPTED = 0, 1, 2, 3, 130


class Screen:
    """What a command may say.

    Parameters
    ----------
    quiet : bool
        Say nothing but errors.
    as_json : bool
        Results are one JSON text on stdout, and nothing else is.
    debug : bool
        Show whole tracebacks, and warnings of libraries.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False, debug: bool = False) -> None:
        self.quiet, self.as_json, self.debug = quiet, as_json, debug
        self._out = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._err = Console(file=sys.stderr, highlight=False, soft_wrap=True)

    def say(self, line: str = "") -> None:
        """Print a line of the result, as it is: nothing in it is taken for markup."""
        if not (self.quiet or self.as_json):
            self._out.print(Text(printable(line)))

    def note(self, line: str) -> None:
        """Print a line that is not a result, to stderr."""
        if not self.quiet:
            self._err.print(Text(printable(line), style="dim"))

    def refuse(self, sentence: str) -> None:
        """Print what went wrong, to stderr."""
        self._err.print(Text.assemble(("error: ", "bold red"), printable(sentence)))

    def emit(self, result: object) -> None:
        """Print a result as JSON when it was asked for."""
        if self.as_json:
            print(json.dumps(result, indent=2, allow_nan=False, default=str), file=sys.stdout)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> None:
        """Print a table whose first `numbers` columns are numbers; the last column wraps."""
        if self.quiet or self.as_json:
            return
        drawn = Table(
            title=Text(printable(title), style="bold"),
            title_justify="left",
            box=SIMPLE_HEAD,
            pad_edge=False,
            show_header=any(columns),
        )
        for j, name in enumerate(columns):
            last = j == len(columns) - 1
            drawn.add_column(
                Text(printable(name)), justify="right" if j < numbers else "left", overflow="fold", no_wrap=not last
            )
        for row in rows:
            drawn.add_row(*(Text(printable(cell)) for cell in row))
        Console(file=sys.stdout, highlight=False).print(drawn)

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Show how far the work inside is, with the time left of each stage; only a person at a terminal sees it."""
        shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeftColumn(),
            console=self._err,
            transient=True,
            disable=self.quiet or not self._err.is_terminal,
        )
        with shown, reporting(StageBars(shown)):
            yield


class StageBars:
    """One bar per stage of the work; a stage that begins again starts its bar anew."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._bars: dict[str, TaskID] = {}
        self._done: dict[str, int] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Move the bar of `stage`."""
        if stage not in self._bars:
            self._bars[stage] = self._shown.add_task(stage, total=total)
        elif done < self._done[stage]:
            self._shown.reset(self._bars[stage], total=total)
        self._done[stage] = done
        self._shown.update(self._bars[stage], completed=done, total=total)


@contextmanager
def session(*, quiet: bool = False, as_json: bool = False, debug: bool = False) -> Iterator[Screen]:
    """Run a command: every error becomes one sentence and an exit code; tracebacks only with `debug`."""
    screen = Screen(quiet=quiet, as_json=as_json, debug=debug)
    with warnings.catch_warnings(), _terminated_like_interrupted():
        if not debug:
            warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=r"mcode\b", category=UserWarning)
        warnings.showwarning = lambda message, *_args, **_kw: screen.note(f"note: {message}")
        try:
            yield screen
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            screen.refuse("interrupted; no result was written.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if debug:
                traceback.print_exc()
            screen.refuse(sentence_of(error))
            expected = isinstance(error, McodeError | OSError | MemoryError)
            raise typer.Exit(BAD_INPUT if expected else DEFECT) from None


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Unwind on SIGTERM as on Ctrl-C, so that half-written temporary files are removed."""

    def stop(_number: int, _frame: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # signals belong to the main thread; a caller in another one keeps what it has
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def sentence_of(error: Exception) -> str:
    """Return one sentence for an error.

    Examples
    --------
    >>> sentence_of(FileNotFoundError(2, "No such file or directory", "visits.csv"))
    'visits.csv: no such file or directory.'
    """
    if isinstance(error, McodeError):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror[:1].lower()}{error.strerror[1:]}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table; `mcode fit` on a part of it and `mcode score` the rest."
    return f"this is a defect of mcode ({type(error).__name__}: {error}); run again with --debug and report it."


def printable(text: str) -> str:
    r"""Return text without control characters, which could move the cursor or recolour the terminal.

    Examples
    --------
    >>> printable("a\x1b[31mb\tc")
    'a\\x1b[31mb c'
    """
    text = text.replace("\t", " ").replace("\r", " ").replace("\n", " ")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def facts_table(screen: Screen, title: str, facts: Mapping[str, Any]) -> None:
    """Print names and values."""
    screen.table(title, ["", ""], [[name, str(value)] for name, value in facts.items()])
