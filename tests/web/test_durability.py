"""8 clients write verdicts while the server is killed: every acknowledged one is there, and none is there twice."""

import os
import signal
import threading
import time
import uuid
from http.client import HTTPConnection, HTTPException
from json import dumps, loads
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import func, select

from mcode.web import tables as t
from mcode.web.database import Database
from mcode.web.project import Project, copy_project
from mcode.web.queue_filling import count_anew
from mcode.web.recording import as_entry
from mcode.web.replay import replay
from web.conftest import QUEUE
from web.postgres import new_database, running_server
from web.serving import start, stop

CLIENTS, KILLS = 8, 3
VERDICTS = 4000 if os.environ.get("CI") == "true" else 1000  # the whole number takes a minute


class Client(threading.Thread):
    """A reviewer who sends each verdict until it is acknowledged, with the same key."""

    def __init__(self, number, server, count, rows):
        super().__init__(name=f"client-{number}")
        self.number, self.server, self.count, self.rows = number, server, count, rows
        self.acknowledged, self.failure, self.connection = {}, None, None

    def run(self):
        try:
            for at in range(self.count):
                key = uuid.uuid4().hex
                row = self.rows[(at * CLIENTS + self.number) % len(self.rows)]
                self.acknowledged[key] = self.send(row, {"key": key, "kind": ("keep", "accept", "skip")[at % 3]})
        except Exception as error:
            self.failure = error
        finally:
            self.hang_up()

    def send(self, row, body):
        """Send a verdict, again and again, until the server says that it is recorded."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            try:
                answer, content = self.ask(row, body)
            except (OSError, HTTPException):  # the server was killed; its answer, if there was one, is lost
                self.hang_up()
                time.sleep(0.05)
                continue
            if answer == 401:  # a new server has a new token, and prints it in a moment
                self.hang_up()
                time.sleep(0.05)
                continue
            assert answer == 200, content
            return loads(content)["recorded"]["seq"]
        raise TimeoutError("never acknowledged")

    def ask(self, row, body):
        if self.connection is None:
            self.address = urlsplit(self.server["address"])
            self.connection = HTTPConnection(self.address.hostname, self.address.port, timeout=60)
        token = parse_qs(self.address.query)["token"][0]
        headers = {"Authorization": f"Bearer {token}", "X-Reviewer": self.name, "Content-Type": "application/json"}
        self.connection.request("POST", f"/api/rows/{row}/verdicts", dumps(body), headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def hang_up(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def n_verdicts(database):
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(t.verdicts)).scalar()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_acknowledged_verdict_is_lost_and_none_is_there_twice(kind, project, project_file):
    if kind == "sqlite":
        check(project.database, [project_file])
        return
    with running_server() as address:
        target = Database(new_database(address))
        copy_project(project, target)
        check(target, ["--database", target.place])
        target.close()


def check(database, arguments):
    with database.read() as connection:
        rows = connection.execute(select(t.findings.c.row).order_by(t.findings.c.position)).scalars().all()
    assert len(rows) == QUEUE
    process, address = start(*arguments)
    server = {"address": address}
    clients = [Client(number, server, VERDICTS // CLIENTS, rows) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for kill in range(1, KILLS + 1):
        deadline = time.monotonic() + 120
        while n_verdicts(database) < kill * VERDICTS // (KILLS + 1) and time.monotonic() < deadline:
            assert not any(client.failure for client in clients), [client.failure for client in clients]
            time.sleep(0.05)
        stop(process, signal.SIGKILL)
        process, server["address"] = start(*arguments)
    for client in clients:
        client.join(240)
    stop(process)
    assert [client.failure for client in clients if client.failure] == []
    acknowledged = {key: seq for client in clients for key, seq in client.acknowledged.items()}
    assert len(acknowledged) == VERDICTS
    with database.read() as connection:
        stored = connection.execute(select(t.verdicts)).all()
        statuses = dict(connection.execute(select(t.findings.c.row, t.findings.c.status)).all())
        tallies = {tuple(row)[:4] for row in connection.execute(select(t.tallies)) if row.number}
    assert {row.key: row.seq for row in stored} == acknowledged  # each there, and each once
    by_row = {}
    for row in sorted(stored, key=lambda row: row.seq):
        by_row.setdefault(row.row, []).append(as_entry(row))
    assert {row: replay(record).status for row, record in by_row.items()} == {row: statuses[row] for row in by_row}
    with database.write() as connection:
        count_anew(connection)
        recounted = {tuple(row)[:4] for row in connection.execute(select(t.tallies)) if row.number}
    assert tallies == recounted
    Project(database)
