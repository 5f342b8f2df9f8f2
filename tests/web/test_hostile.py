"""Whatever a table holds appears as text, everywhere."""

import html
import json

import numpy as np
import pandas as pd
import pytest

from mcode.cli.auditing import run_audit
from mcode.cli.cut import CutRequest
from mcode.cli.reviewing import make_project
from mcode.data import read
from mcode.web.database import Database
from web.conftest import Api, client_of

SCRIPT = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
FORMULA = '=HYPERLINK("http://evil.example","x")'
MARKS = "\u202e\u2066gnirts\u2069 \x07\x1b[31m ` {{ 7*7 }} ${7*7} %00 ' \" & \u0000"
LABELS = [f"dx {SCRIPT}", f"{FORMULA}", "dx \u202e reversed"]


def hostile_frame(n=90, large=1_000_000):
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "id": [f"{SCRIPT} {FORMULA} {MARKS} {k}" for k in range(n)],
            f"age {SCRIPT}": x.round(3),
            "note": [SCRIPT, FORMULA, MARKS] * (n // 3),
            "large": [SCRIPT + "x" * (large if k < 2 else 10) for k in range(n)],
        }
    )
    for j, name in enumerate(LABELS):
        answers = np.where((x + 0.3 * rng.normal(size=n)) * (1 if j else -1) > 0, 1, 0)
        frame[name] = answers if j < 2 else np.where(answers, SCRIPT, f"no {FORMULA}")
    frame.loc[:3, LABELS[0]] = 1 - frame.loc[:3, LABELS[0]]
    return frame


@pytest.fixture(scope="session")
def hostile_project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "a <b>table.parquet"
    hostile_frame().to_parquet(path)
    data = read(path, labels=LABELS, id="id")
    audited = run_audit(data, CutRequest.of(None, 5, None), model="dbr", score="noise")
    project = make_project(
        audited, Database(folder / "x.review"), path, reading={}, auditing={"score": "noise"}, queue=90
    )
    yield project
    project.database.close()


def test_pages_hold_it_escaped(hostile_project):
    api = Api(client_of(hostile_project))
    row = api.next()
    api.judge(row, "accept" if row["repair"] else "keep", "key-of-hostile")
    for path in ("/", "/list", "/overview", "/record", "/responses/0", "/responses/1", "/responses/2"):
        text = api.client.get(path, headers={"Authorization": "Bearer a-token-of-the-tests"}).text
        assert "<script>document" not in text
        assert "<img src=x" not in text
    overview = api.client.get("/overview", headers={"Authorization": "Bearer a-token-of-the-tests"}).text
    assert SCRIPT in html.unescape(overview)


def test_large_cells_are_cut_and_can_be_had_whole(hostile_project):
    api = Api(client_of(hostile_project))
    row = api.get("/rows/0")
    place = next(at for at, cell in enumerate(row["context"]) if cell["column"] == "large")
    assert row["context"][place]["cut"]
    assert len(json.dumps(row)) < 100_000
    whole = api.get(f"/rows/0/cells/{place}")
    assert len(whole.text) == 1_000_000 + len(SCRIPT)
    assert whole.headers["content-type"].startswith("text/plain")


def test_the_patch_runs_no_formula_and_the_table_is_unchanged_elsewhere(hostile_project, tmp_path):
    api = Api(client_of(hostile_project))
    observed = next(r for r in api.get("/rows/7")["responses"] if r["place"] == 1)["observed"]
    values = [{"response": 1, "code": 1 - observed}]
    api.post("/rows/7/verdicts", {"key": "key-of-formula", "kind": "change", "seen": 10**6, "values": values})
    patch = api.get("/export/patch").text
    assert f"'{FORMULA}" in patch.replace('""', '"')
    (tmp_path / "out.parquet").write_bytes(api.get("/export/table").content)
    before, after = hostile_frame(), pd.read_parquet(tmp_path / "out.parquet")
    assert list(before.columns) == list(after.columns)
    same = [name for name in before.columns if name not in LABELS]
    pd.testing.assert_frame_equal(before[same], after[same])
    assert after.loc[7, LABELS[1]] == 1 - before.loc[7, LABELS[1]]
