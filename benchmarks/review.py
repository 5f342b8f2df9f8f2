"""The review page: how cost grows with the number of findings, what a server sustains, and what re-ranking finds.

growth    the queue page, a page of the list and the next-row call on 2,000 and on 200,000 findings: ratio in one run
load      sustained requests per second and latencies by wrk, 8 connections, on 200,000 findings
rerank    wrong rows found per 100 reviewed rows, with and without re-ranking, on tables whose errors are known

Results: benchmarks/results/review_growth.csv, review_load.csv, review_rerank.csv
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import uvicorn
from starlette.testclient import TestClient

import mcode
from datasets import load, write_csv
from mcode.corruption import Flip
from mcode.data import read
from mcode.data.synthetic import clinic_visits
from mcode.own_words import named_responses
from mcode.web import tables as t
from mcode.web.app import create_app
from mcode.web.database import Database, to_json
from mcode.web.project import Project, add_rows, write_fact
from mcode.web.queue_filling import count_anew
from mcode.web.reranking import Judged, reranked
from mcode.web.review import Review
from mcode.web.security import Guard
from mcode.web.server import Door, listen

TOKEN = "benchmark"
N_RESPONSES = 16
SIZES = (2_000, 200_000)
TIMES = 60
FEW = "-few"  # after the name of a table: its errors are mostly in three responses


def made_project(path: Path, n: int) -> Project:
    """Return a project with n made-up findings, as an audit of a table with 16 responses would leave them."""
    database = Database(path)
    t.metadata.create_all(database.engine)
    draw = random.Random(0)
    names = [f"dx_{j}" for j in range(N_RESPONSES)]
    health = {
        "name": "",
        "present": 0.2,
        "predictable": 0.5,
        "suspicious": 9.0,
        "flagged": 3,
        "reliable": 0.4,
        "likely": [],
    }
    with database.write() as connection:
        for name, value in {
            "format": t.FORMAT, "source": {"path": "visits.csv", "sha256": "", "reading": {}, "auditing": {}},
            "id_name": "visit_id", "n_rows": 10 * n, "columns": ["age", "reason"], "outside": 1.0, "queue_size": n,
            "ranking": {"number": 1}, "summary": {"source": "visits.csv", "model": "dbr", "score": "learned"},
        }.items():  # fmt: skip
            write_fact(connection, name, value)
        responses = ({"place": j, "name": name, "choices": '["0","1"]', "health": to_json(health)}
                     for j, name in enumerate(names))  # fmt: skip
        add_rows(connection, t.responses, responses)
        add_rows(connection, t.findings, (finding(row, n, draw) for row in range(n)))
        add_rows(connection, t.details, (detail(row) for row in range(n)))
        count_anew(connection)
    return Project(database)


def finding(row: int, n: int, draw: random.Random) -> dict[str, object]:
    return {
        "row": row, "id": f"V{row:06d}", "position": row + 1, "score": float(n - row), "p_value": 0.001,
        "error_probability": 1.0 - row / n, "response": draw.randrange(N_RESPONSES), "observed": 0, "expected": 1,
        "probability": 0.01, "kind": draw.choice(["missing", "added", "several"]),
        "sentence": "`dx_1` is absent (1 % likely) although `age = 61` and `dx_2` are present.",
        "status": "open", "latest": 0, "held_by": None, "held_until": None,
    }  # fmt: skip


def detail(row: int) -> dict[str, object]:
    evidence = [[False, f"feature {k}", 1.5, 2.0 - k / 5] for k in range(10)]
    responses = [[j, 0, int(j == 0), 0.5, 0.1, 0.2, *([evidence, "why"] if j < 3 else [])] for j in range(N_RESPONSES)]
    body = {"responses": responses, "repair": [[0, 1]], "odds": [1e-6, 0.4]}
    cells = [["age", 20 + row % 60], ["reason", f"cough for {row % 40} days"]]
    return {"row": row, "body": to_json(body), "context": to_json(cells), "words": f"age {20 + row % 60} cough"}


def app_of(project: Project):
    guard = Guard(frozenset({"127.0.0.1"}), token=TOKEN)
    return create_app(Review(project, guard))


def client_of(project: Project) -> TestClient:
    return TestClient(app_of(project), base_url="http://127.0.0.1")


def growth(folder: Path) -> None:
    """Time the same calls on both sizes, in turn, and write medians and their ratio."""
    clients = {n: client_of(made_project(folder / f"{n}.review", n)) for n in SIZES}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    filtered = {"filter": {"response": 3, "kind": "missing"}}
    calls = {
        "queue page": lambda client: client.get("/", headers=headers),
        "project and counts": lambda client: client.get("/api/project", headers=headers),
        "page of the list": lambda client: client.get("/api/rows?limit=50", headers=headers),
        "far down the list": lambda client: client.get("/api/rows?limit=50&after=1900.1899", headers=headers),
        "next row": lambda client: client.post("/api/next", json={}, headers=headers),
        "next row of a filter": lambda client: client.post("/api/next", json=filtered, headers=headers),
    }
    rows = []
    for name, call in calls.items():
        taken: dict[int, list[float]] = {n: [] for n in SIZES}
        for _ in range(TIMES):
            for n, client in clients.items():
                start = time.perf_counter()
                answer = call(client)
                taken[n].append(time.perf_counter() - start)
                assert answer.status_code == 200, answer.text
        small, large = (statistics.median(taken[n]) for n in SIZES)
        medians = {f"ms_{n}": round(1e3 * statistics.median(taken[n]), 2) for n in SIZES}
        rows.append({"call": name, **medians, "ratio": round(large / small, 2)})
    write("review_growth", rows)


LUA = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer benchmark"
"""
VERDICT = """
local thread = 0
function setup(t) t:set("id", thread); thread = thread + 1 end
function init() n = 0; math.randomseed(id) end
function request()
  n = n + 1
  local row = math.random(0, 199999)
  local body = string.format('{"key": "wrk-%d-%09d", "kind": "keep", "next": {}}', id, n)
  return wrk.format("POST", "/api/rows/" .. row .. "/verdicts", nil, body)
end
"""


def load_test(folder: Path, seconds: int) -> None:
    """Let wrk ask a real server on 200,000 findings; write requests per second, latencies and errors."""
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed; it is one of Debian's packages")
    path = folder / f"{SIZES[1]}.review"
    project = Project(Database(path)) if path.exists() else made_project(path, SIZES[1])
    opened = listen(Door(port=0))
    address = f"http://127.0.0.1:{opened.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app_of(project), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    next_body = LUA + "wrk.body = '{}'\n"
    scripts = {
        "page of the list": ("/api/rows?limit=50", LUA.replace("POST", "GET")),
        "next row": ("/api/next", next_body),
        "verdict and next row": ("/", LUA + VERDICT),
    }
    rows = []
    for name, (where, script) in scripts.items():
        lua = folder / "script.lua"
        lua.write_text(script)
        command = ["wrk", "-t2", "-c8", f"-d{seconds}s", "--timeout", "10s", "--latency", "-s", str(lua)]
        said = subprocess.run([*command, address + where], capture_output=True, text=True, check=True).stdout
        rows.append({"request": name, "connections": 8, "seconds": seconds, **numbers(said)})
    server.should_exit = True
    thread.join(10)
    write("review_load", rows)


def numbers(said: str) -> dict[str, object]:
    """Return what wrk printed."""
    latency = dict(re.findall(r"(50|99)%\s+(\S+)", said))
    wrong = sum(int(found) for found in re.findall(r"Non-2xx or 3xx responses: (\d+)", said))
    broken = sum(int(found) for line in re.findall(r"Socket errors:.*", said) for found in re.findall(r"\d+", line))
    return {
        "requests": int(re.search(r"(\d+) requests in", said)[1]),
        "requests_per_second": float(re.search(r"Requests/sec:\s+(\S+)", said)[1]),
        "p50": latency["50"],
        "p99": latency["99"],
        "errors": wrong + broken,
    }


def tables(n_seeds: int, wanted: list[str]):
    """Yield tables whose errors are known: generated visits, and real tables with flipped responses."""
    for seed in range(n_seeds):
        for name in wanted:
            rng = np.random.default_rng(seed)
            if name == "visits":
                visits = clinic_visits(4000, error_rate=0.03, random_state=seed)
                with tempfile.TemporaryDirectory() as made:
                    visits.write_csv(Path(made) / "visits.csv")
                    data = read(Path(made) / "visits.csv", labels=["dx_*", "rx_*"], id="visit_id")
                right = np.where(visits.truth.cell_is_wrong, 1 - data.Y, data.Y)
            else:
                X, right = load(name.removesuffix(FEW))
                right = np.asarray(right, np.uint8)
                Y = right.copy()
                rows = rng.choice(len(Y), max(1, round(0.04 * len(Y))), replace=False)
                Y[rows] = flipped_in_few(right[rows], rng) if name.endswith(FEW) else Flip().corrupt(right[rows], rng)
                data = InMemory(X, Y)
            yield name, seed, data, right


def flipped_in_few(Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Flip one response of each row, four times in five one of three: as where one source of the table is careless."""
    few = rng.choice(Y.shape[1], 3, replace=False)
    at = np.where(rng.random(len(Y)) < 0.8, rng.choice(few, len(Y)), rng.integers(Y.shape[1], size=len(Y)))
    out = Y.copy()
    out[np.arange(len(Y)), at] ^= 1
    return out


@dataclasses.dataclass(frozen=True)
class InMemory:
    """What re-ranking asks of a data set, for a table that is no file."""

    X: object
    Y: np.ndarray
    places: None = None

    @property
    def label_names(self):
        """Names of the responses."""
        return tuple(str(j) for j in range(self.Y.shape[1]))

    @property
    def label_values(self):
        """How 0 and 1 are written."""
        return (("0", "1"),) * self.Y.shape[1]

    def __len__(self):
        return len(self.Y)


def rerank(n_seeds: int, wanted: list[str], reviewed: int, step: int) -> None:
    """Review in the order of the queue with a reviewer who knows the truth; count the wrong rows found."""
    options = {"model": "dbr", "score": "learned", "folds": 5, "random_state": 0}
    rows = []
    for name, seed, data, right in tables(n_seeds, wanted):
        wrong = (right != data.Y).any(axis=1)
        found = mcode.audit(data.X, named_responses(data), **options)
        plain = found.ranking[:reviewed]
        learned = review_and_rerank(data, right, found, options, reviewed, step)
        for upto in range(step, reviewed + 1, step):
            part = slice(upto - step, upto)
            counts = {"found_without": wrong[plain[part]].sum(), "found_with": wrong[learned[part]].sum()}
            about = {"table": name, "seed": seed, "rows": len(data), "wrong": int(wrong.sum()), "reviewed": upto}
            rows.append({**about, **{key: int(count) for key, count in counts.items()}})
        print(name, seed, int(wrong[plain].sum()), int(wrong[learned].sum()), flush=True)
        write("review_rerank", rows)


def review_and_rerank(data, right, found, options, reviewed: int, step: int):
    """Return the rows in the order in which they come when the queue is re-ranked after each `step` rows."""
    done: list[int] = []
    kept: dict[str, list] = {name: [] for name in ("wrong", "error_probability", "response", "observed")}
    corrections: dict[int, dict[int, int]] = {}
    order, audit = found.ranking, found
    while len(done) < reviewed:
        for row in order[:step].tolist():
            first = int(audit.response_error_probability[row].argmax())
            differs = np.flatnonzero(data.Y[row] != right[row])
            done.append(row)
            kept["wrong"].append(len(differs) > 0)
            kept["error_probability"].append(audit.error_probability[row])
            kept["response"].append(first)
            kept["observed"].append(int(data.Y[row, first]))
            if len(differs):
                corrections[row] = {int(j): int(right[row, j]) for j in differs}
        if len(done) < reviewed:
            judged = Judged(
                np.array(done, np.intp), np.array(kept["wrong"], bool), np.array(kept["error_probability"], float),
                np.array(kept["response"], np.intp), np.array(kept["observed"], np.intp), corrections,
            )  # fmt: skip
            audit, order = reranked(data, judged, options)
    return np.array(done[:reviewed], np.intp)


def write(name: str, rows: list[dict[str, object]]) -> None:
    write_csv(name, rows)
    print(json.dumps(rows[-6:], indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["growth", "load", "rerank"])
    parser.add_argument("--seconds", type=int, default=10, help="how long wrk asks each question")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", default="visits,yeast,yeast-few,emotions,emotions-few,enron,enron-few")
    parser.add_argument("--reviewed", type=int, default=300)
    parser.add_argument("--step", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if "growth" in given.what:
            growth(Path(made))
        if "load" in given.what:
            load_test(Path(made), given.seconds)
    if "rerank" in given.what:
        rerank(given.seeds, given.tables.split(","), given.reviewed, given.step)


if __name__ == "__main__":
    main()
