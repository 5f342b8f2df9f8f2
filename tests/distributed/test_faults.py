"""What goes wrong on a cluster is either made good, or one sentence."""

import gc
import logging
import subprocess
import sys
import time

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

import mcode
from distributed import Client, LocalCluster
from distributed_tables import MODEL, Killer, folder_of, wrong_table
from mcode.distributed import ClusterError, audit_folder, connect, fit_folder, open_folder, read_results, score_folder
from mcode.distributed.audit import audit_table, write_audit
from mcode.distributed.cluster import Cluster
from mcode.errors import DataFormatError, InputError, ParameterError


def parts(n=900):
    X, Y, _ = wrong_table(n)
    return da.from_array(X, chunks=(150, 4)), da.from_array(Y, chunks=(150, 3))


def test_a_fit_survives_the_death_of_a_worker(killer, small_sample):
    whole = mcode.MCODE(MODEL, "norm").fit(*parts())
    death = killer("fit the folds")
    with mcode.reporting(death):
        fitted = mcode.MCODE(MODEL, "norm").fit(*parts())
    assert death.killed
    np.testing.assert_allclose(fitted.model_.conditionals_.features, whole.model_.conditionals_.features, atol=1e-5)
    np.testing.assert_allclose(fitted.reference_score_, whole.reference_score_, atol=1e-4)


def test_a_fit_survives_the_death_of_the_only_worker(small_sample):
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=1, **options) as alone, Client(alone, set_as_default=False) as client:
        death = Killer(client, "fit the folds")
        with client.as_current(), mcode.reporting(death):
            fitted = mcode.MCODE(MODEL, "norm").fit(*parts())
    assert death.killed
    plain = mcode.MCODE(MODEL, "norm").fit(*wrong_table()[:2])
    np.testing.assert_allclose(fitted.model_.conditionals_.features, plain.model_.conditionals_.features, atol=1e-4)


def test_audit_and_score_survive_the_death_of_a_worker(tmp_path, killer, small_sample):
    folder, _, _ = folder_of(tmp_path, files=6)
    opened = open_folder(folder, "dx_*", id="visit")
    audit_folder(opened, tmp_path / "whole", model=MODEL, score="noise")
    death = killer("write the result")
    with mcode.reporting(death):
        audit_folder(opened, tmp_path / "audited", model=MODEL, score="noise")
    assert death.killed
    same(read_results(tmp_path / "audited"), read_results(tmp_path / "whole"))
    detector = fit_folder(mcode.MCODE(MODEL, "noise"), opened)
    score_folder(detector, opened, tmp_path / "scored whole")
    death = killer("score rows")
    with mcode.reporting(death):
        score_folder(detector, opened, tmp_path / "scored")
    assert death.killed
    same(read_results(tmp_path / "scored"), read_results(tmp_path / "scored whole"))


def same(ours, expected):
    ours, expected = ours.to_pandas(), expected.to_pandas()
    assert ours["visit"].tolist() == expected["visit"].tolist()
    for column in ("score", "p_value", "error_probability"):
        np.testing.assert_allclose(ours[column], expected[column], atol=1e-4)
    assert ours["sentence"].tolist() == expected["sentence"].tolist()


def test_a_scheduler_that_goes_away_is_one_sentence_and_no_result(tmp_path):
    folder, _, _ = folder_of(tmp_path, files=2)
    opened = open_folder(folder, "dx_*", id="visit")
    address_file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "dask", "scheduler", "--port", "0", "--no-dashboard",
               "--scheduler-file", str(address_file)]  # fmt: skip
    scheduler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    worker = None
    try:
        while not address_file.exists():
            time.sleep(0.1)
        worker = subprocess.Popen(
            [sys.executable, "-m", "dask", "worker", "--scheduler-file", str(address_file), "--no-nanny",
             "--no-dashboard", "--death-timeout", "20"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )  # fmt: skip

        def gone(stage, done, total):
            if stage == "write the result":
                scheduler.kill()

        with Client(scheduler_file=str(address_file), timeout=20, set_as_default=False) as client:
            cluster = Cluster(client)
            found = audit_table(cluster, opened.table, MODEL, "norm", 5, "auto", 0)
            client._timeout = 2  # how long it tries to reconnect
            with mcode.reporting(gone), pytest.raises(ClusterError, match="no longer answers"):
                write_audit(cluster, found, tmp_path / "out", "fdr", 0.1)
        with pytest.raises(DataFormatError, match="did not finish"):
            read_results(tmp_path / "out")
    finally:
        for process in (scheduler, worker):
            if process is not None:
                process.kill()
                process.wait()


def test_an_audit_holds_the_table_that_the_caller_no_longer_holds(client):
    found = mcode.audit(*client.persist(parts()), model=MODEL, score="norm")
    gc.collect()
    assert found.rho.compute().shape == (900, 3)


def test_a_cluster_that_lost_all_its_workers_is_one_sentence(monkeypatch):
    monkeypatch.setattr("mcode.distributed.cluster.PATIENCE_SECONDS", 0.3)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Client(empty, set_as_default=False) as client,
        pytest.raises(ClusterError, match="All workers of the cluster are gone"),
    ):
        Cluster(client).gather([client.submit(abs, 1)], "wait")


@pytest.mark.parametrize("name", ["local:0", "local:x", "ssh://a", "8786", ""])
def test_a_cluster_that_is_none_is_refused(name):
    with pytest.raises(ParameterError, match="--cluster must be"), connect(name):
        pass


def test_a_file_that_vanishes_is_named_and_nothing_is_written(tmp_path):
    folder, _, _ = folder_of(tmp_path)
    opened = open_folder(folder, "dx_*")
    (folder / "part-1.parquet").unlink()
    with pytest.raises(DataFormatError, match=r"part-1.parquet: the file is no longer there"):
        audit_folder(opened, tmp_path / "out", model=MODEL, score="norm")
    assert not (tmp_path / "out").exists()


def test_a_file_with_another_schema_is_named(tmp_path):
    folder, frame, _ = folder_of(tmp_path)
    frame.drop(columns="pulse").to_parquet(folder / "part-3.parquet")
    with pytest.raises(DataFormatError, match=r"part-3.parquet: it lacks the column 'pulse'"):
        open_folder(folder, "dx_*")
    frame.assign(pulse="fast").to_parquet(folder / "part-3.parquet")
    with pytest.raises(DataFormatError, match=r"part-3.parquet: column 'pulse' holds text and in part-0"):
        open_folder(folder, "dx_*")
    frame.assign(more=1).to_parquet(folder / "part-3.parquet", index=False)
    with pytest.raises(DataFormatError, match=r"part-3.parquet: it has a column 'more' more"):
        open_folder(folder, "dx_*")


def test_nan_in_a_file_is_named(tmp_path):
    folder, frame, _ = folder_of(tmp_path)
    broken = arrow.Table.from_pandas(frame.iloc[:50], preserve_index=False)
    at = broken.column_names.index("pulse")
    values = frame["pulse"].to_numpy()[:50].copy()
    values[17] = np.nan
    parquet.write_table(broken.set_column(at, "pulse", arrow.array(values)), folder / "part-3.parquet")
    opened = open_folder(folder, "dx_*")
    said = r"part-3.parquet: column 'pulse' is not a number .* in row 17"
    with pytest.raises(DataFormatError, match=said):
        audit_folder(opened, tmp_path / "out", model=MODEL, score="norm")
    assert not (tmp_path / "out").exists()
    (folder / "part-3.parquet").rename(tmp_path / "broken.parquet")
    detector = fit_folder(mcode.MCODE(MODEL, "norm"), open_folder(folder, "dx_*"))
    with pytest.raises(DataFormatError, match=said.replace("part-3", "broken")):
        score_folder(detector, open_folder(tmp_path / "broken.parquet", like=opened.schema), tmp_path / "scored")
    assert not list((tmp_path / "scored").glob("*"))


def test_a_missing_response_in_a_file_is_named(tmp_path):
    folder, frame, _ = folder_of(tmp_path, 60, 1)
    opened = open_folder(folder, "dx_*")
    hole = frame.astype({"dx_a": "Int64"})
    hole.loc[3, "dx_a"] = pd.NA
    hole.to_parquet(folder / "part-0.parquet", index=False)
    with pytest.raises(DataFormatError, match=r"part-0.parquet: .*'dx_a'"):
        fit_folder(mcode.MCODE(MODEL, "norm"), opened)


def test_nan_in_a_block_is_named_with_its_partition():
    X, Y, _ = wrong_table(300)
    X[170, 2] = np.nan
    with pytest.raises(InputError, match="X: partition 1: row 20, column 2 is NaN"):
        mcode.MCODE(MODEL, "norm").fit(da.from_array(X, chunks=(150, 4)), da.from_array(Y, chunks=(150, 3)))


def test_a_missing_response_in_a_block_is_named_and_scored_all_the_same():
    X, Y, _ = wrong_table(300)
    holes = Y.astype(float)
    holes[170, 2] = np.nan
    dX, holed, whole = (da.from_array(T, chunks=(150, -1)) for T in (X, holes, Y))
    with pytest.raises(InputError, match=r"Y: row 170, column '2' is missing; .* fill or drop"):
        mcode.audit(dX, holed, model=MODEL, score="norm")
    detector = mcode.MCODE(MODEL, "norm").fit(dX, whole)
    ours = detector.outlier_score(dX, holed).compute()
    np.testing.assert_allclose(ours, detector.outlier_score(X, holes))


def test_tables_that_do_not_belong_together_are_refused():
    X, Y, _ = wrong_table(300)
    dX, dY = da.from_array(X, chunks=(150, 4)), da.from_array(Y, chunks=(150, 3))
    detector = mcode.MCODE(MODEL, "norm")
    with pytest.raises(InputError, match="Y: it is a ndarray; X and Y are both Dask"):
        detector.fit(dX, Y)
    with pytest.raises(InputError, match="300 and 150 rows"):
        detector.fit(dX, dY[:150])
    with pytest.raises(InputError, match="this detector needs rows in memory"):
        mcode.JointDetector().fit(dX, dY)
    detector.fit(dX, dY)
    with pytest.raises(InputError, match=r"X: it has 3 columns; the model was fitted on 4"):
        detector.outlier_score(dX[:, :3], dY)
    with pytest.raises(InputError, match="explain looks at single rows"):
        detector.explain(dX, dY)
    with pytest.raises(ParameterError, match="'dbr', 'chain', 'br' or 'tree'"):
        mcode.MCODE("mixture", "norm").fit(dX, dY)
    with pytest.raises(InputError, match="5 folds need"):
        mcode.MCODE(MODEL, "norm").fit(dX[:3], dY[:3])


def test_values_that_differ_between_partitions_and_more_than_two_are_refused(tmp_path):
    X, Y, _ = wrong_table(300)
    texts = np.where(Y == 1, "yes", "no").astype(object)
    texts[200:, 1] = "maybe"
    with pytest.raises(InputError, match="two values"):
        mcode.MCODE(MODEL, "norm").fit(da.from_array(X, chunks=(150, 4)), da.from_array(texts, chunks=(150, 3)))
    levels = Y.astype(int) + (X[:, :3] > 1)
    with pytest.raises(InputError, match="two values"):
        mcode.MCODE(MODEL, "norm").fit(da.from_array(X, chunks=(150, 4)), da.from_array(levels, chunks=(150, 3)))
    folder, frame, _ = folder_of(tmp_path, 300, 1)
    frame.assign(dx_a=np.array(["none", "mild", "severe"])[levels[:, 0]]).to_parquet(
        folder / "part-0.parquet", index=False
    )
    with pytest.raises(InputError, match=r"column 'dx_a' has 3 values; .* use one column per value"):
        fit_folder(mcode.MCODE(MODEL, "norm"), open_folder(folder, "dx_*"))
