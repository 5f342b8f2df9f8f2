"""Whatever a table holds appears as text, everywhere."""

import html
import json

import pandas as pd

from web.conftest import Api, client_of
from web.hostile import FORMULA, LABELS, SCRIPT, hostile_frame


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
