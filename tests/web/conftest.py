"""A project made once by a real audit of clinic visits with errors; each test gets its own copy."""

import shutil
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

from cli.runner import run
from mcode.cli.auditing import run_audit
from mcode.cli.cut import CutRequest
from mcode.cli.reviewing import make_project
from mcode.data import read
from mcode.data.synthetic import clinic_visits
from mcode.web.app import create_app
from mcode.web.database import Database
from mcode.web.project import Project, copy_project
from mcode.web.review import Review
from mcode.web.security import Guard
from web import hostile
from web.postgres import new_database, running_server

LABELS = ["dx_diabetes", "dx_hypertension", "dx_copd", "rx_metformin", "rx_bronchodilator", "rx_ace_inhibitor"]
COLUMNS = ["visit_id", "age", "sex", "smoker", "systolic", "hba1c", "oxygen", *LABELS]
TOKEN = "a-token-of-the-tests"
HOST = "127.0.0.1"
QUEUE = 120


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return the folder with visits.csv and the project that an audit of it made."""
    folder = tmp_path_factory.mktemp("made")
    path = folder / "visits.csv"
    visits = clinic_visits(400, error_rate=0.05, random_state=1)
    visits.to_pandas()[COLUMNS].to_csv(path, index=False)
    data = read(path, labels=["dx_*", "rx_*"], id="visit_id")
    audited = run_audit(data, CutRequest.of(None, 20, None), model="dbr", score="noise")
    auditing = {"model": "dbr", "score": "noise", "folds": 5, "random_state": 0}
    database = Database(folder / "visits.review")
    make_project(audited, database, path, reading={"encoding": "utf-8"}, auditing=auditing, queue=QUEUE)
    database.close()
    return folder


@pytest.fixture(scope="session")
def truth():
    """Return what is wrong in the visits."""
    return clinic_visits(400, error_rate=0.05, random_state=1).truth


@pytest.fixture
def project_file(made, tmp_path):
    """Return the path of an own copy of the project; its source is beside it."""
    for name in ("visits.review", "visits.csv"):
        shutil.copy(made / name, tmp_path / name)
    return tmp_path / "visits.review"


@pytest.fixture
def project(project_file):
    opened = Project(Database(project_file))
    yield opened
    opened.database.close()


@pytest.fixture(scope="session")
def postgres():
    """Return the address of a PostgreSQL server that runs as long as the tests do."""
    with running_server("-c", "fsync=off") as address:  # durability has a server of its own
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request, project):
    """Return the project in a SQLite file, and in PostgreSQL."""
    if request.param == "sqlite":
        yield project
        return
    target = Database(new_database(request.getfixturevalue("postgres")))
    copy_project(project, target)
    yield Project(target)
    target.close()


def guard(**options):
    return Guard(frozenset({HOST, "localhost"}), reviewer="anna", token=TOKEN, cookie="mcode_test", **options)


@dataclass
class Api:
    """The API as a program uses it, for one reviewer."""

    client: TestClient
    who: str = "anna"

    def ask(self, method, path, body=None, status=200):
        headers = {"Authorization": f"Bearer {TOKEN}", "X-Reviewer": self.who}
        answer = self.client.request(method, f"/api{path}", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.ask("POST", path, body, **options)

    def next(self, **options):
        return self.post("/next", options)["row"]

    def judge(self, row, kind, key, **options):
        status = options.pop("status", 200)
        body = {"key": key, "kind": kind, "seen": row["latest"], **options}
        return self.post(f"/rows/{row['row']}/verdicts", body, status=status)


def client_of(project, **options):
    app = create_app(Review(project, options.pop("guard", None) or guard(), **options))
    return TestClient(app, base_url=f"http://{HOST}:8642", raise_server_exceptions=False)


@pytest.fixture
def api(project):
    return Api(client_of(project))


@pytest.fixture
def either_api(either):
    return Api(client_of(either))


@pytest.fixture(scope="session")
def model(made):
    """Return the path of a model fitted on the visits."""
    path = made / "visits.mcode"
    options = ["--labels", "dx_*,rx_*", "--id", "visit_id", "--score", "noise", "-o", path]
    result = run("fit", made / "visits.csv", *options)
    assert result.exit_code == 0, result.stderr
    return path


@pytest.fixture(scope="session")
def hostile_project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "a <b>table.parquet"
    hostile.hostile_frame().to_parquet(path)
    data = read(path, labels=hostile.LABELS, id="id")
    audited = run_audit(data, CutRequest.of(None, 5, None), model="dbr", score="noise")
    project = make_project(
        audited, Database(folder / "x.review"), path, reading={}, auditing={"score": "noise"}, queue=90
    )
    yield project
    project.database.close()
