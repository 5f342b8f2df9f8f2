import json
import os
import pty
import subprocess
import sys
import warnings

from rich.progress import Progress

from mcode.cli.console import Screen, StageBars, session
from mcode.errors import NotConvergedWarning


def test_each_stage_has_one_bar_and_begins_anew_when_it_is_repeated():
    shown = Progress(disable=True)
    bars = StageBars(shown)
    for stage, done in (("read", 1), ("read", 4), ("fit", 2), ("read", 0), ("read", 3)):
        bars(stage, done, 4)
    assert {task.description: task.completed for task in shown.tasks} == {"read": 3, "fit": 2}


def test_a_person_at_a_terminal_sees_bars_with_the_time_left():
    script = (
        "import time\n"
        "from mcode._progress import advance\n"
        "from mcode.cli.console import Screen\n"
        "with Screen().progress():\n"
        "    for i in range(4):\n"
        "        advance('read the table', i, 4); time.sleep(0.2)\n"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([sys.executable, "-c", script], stderr=theirs, stdout=theirs, env=environment)
    process.wait(timeout=60)
    os.close(theirs)
    seen = os.read(ours, 65536).decode(errors="replace")
    os.close(ours)
    assert process.returncode == 0
    assert "read the table" in seen
    assert "left" in seen


def test_progress_is_not_written_into_a_file(capsys):
    with Screen().progress():
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_our_warnings_are_notes_and_those_of_libraries_are_not_shown(capsys):
    with session():
        warnings.warn_explicit(NotConvergedWarning(["a"], 0.1), None, "fit.py", 1, module="mcode.solvers.fit")
        warnings.warn_explicit("about pandas", FutureWarning, "frame.py", 1, module="pandas.core")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("note: 1 of the fitted models did not converge (a)")
    assert "pandas" not in captured.err


def test_markup_in_data_is_printed_as_it_is(capsys):
    screen = Screen()
    screen.say("[bold red]x[/]")
    screen.table("[t]", ["[/a]"], [["[/b] and more words"]])
    out = capsys.readouterr().out
    for text in ("[bold red]x[/]", "[t]", "[/a]", "[/b]"):
        assert text in out


def test_json_mode_prints_json_only(capsys):
    screen = Screen(as_json=True)
    screen.say("words")
    screen.table("t", ["a"], [["b"]])
    screen.emit({"a": 1})
    assert json.loads(capsys.readouterr().out) == {"a": 1}
