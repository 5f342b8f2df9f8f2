"""The real server in a process of its own, as `mcode review` starts it."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import mcode

SOURCES = os.path.dirname(os.path.dirname(mcode.__file__))


def start(*arguments):
    """Start `mcode review` and return the process and the address that it prints."""
    path = os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "mcode", "review", *map(str, arguments), "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "300"},
    )
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, f"no address: {line!r}"
    return process, found[0]


def stop(process, how=signal.SIGTERM):
    process.send_signal(how)
    process.wait(30)
    process.stdout.close()


@contextlib.contextmanager
def serving(*arguments):
    """Give the address of a running server."""
    process, address = start(*arguments)
    try:
        yield address
    finally:
        stop(process)
