"""A real PostgreSQL server for the tests, started as a user who is not root."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import psycopg
import pytest


def programs():
    """Return the folder of PostgreSQL's programs, or skip; where everything must run, a missing one is a failure."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = next((folder for folder in known if (folder / "initdb").exists()), None)
    if found is None and (initdb := shutil.which("initdb")):
        found = Path(initdb).parent
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("PostgreSQL is not installed")
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    return found


def not_root():
    """Return the user that runs the server: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def free_port():
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@contextlib.contextmanager
def running_server(*settings):
    """Give the address of a server with its usual settings, which are durable, and those given."""
    folder, user, port = programs(), not_root(), free_port()
    home = Path(tempfile.mkdtemp(prefix="mcode-pg-", dir="/tmp"))
    if user is not None:
        shutil.chown(home, user)
    data = home / "data"
    options = {"user": user, "cwd": home} if user is not None else {"cwd": home}
    subprocess.run(
        [folder / "initdb", "-D", data, "-A", "trust", "-U", "reviewer", "--encoding=UTF8", "--no-instructions"],
        check=True,
        capture_output=True,
        **options,
    )
    server = subprocess.Popen(
        [folder / "postgres", "-D", data, "-p", str(port), "-k", home, "-c", "listen_addresses=127.0.0.1", *settings],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )
    address = f"postgresql://reviewer@127.0.0.1:{port}/postgres"
    try:
        wait_for(address)
        yield address
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: SIGTERM would wait for every connection
        server.wait(60)
        shutil.rmtree(home, ignore_errors=True)


def wait_for(address):
    for _ in range(200):
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(address):
            return
        time.sleep(0.1)
    raise TimeoutError("PostgreSQL did not start")


def new_database(address):
    """Return the address of a new, empty database of the server."""
    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return address.rsplit("/", 1)[0] + f"/{name}"
