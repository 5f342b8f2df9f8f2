"""Tables in partitions on a local Dask cluster: memory, cost against rows and against the fit in memory, traffic.

Every table is generated: normal features, responses that depend on them and on the response before. Two workers of one
thread each, with memory limits. Penalties are given, not searched, so that every size does the same work; the agreement
with the fit in memory is reported beside its cost.

    python benchmarks/scale.py [PART ...] [--quick] [--rows N ...] [--table FOLDER] [--workers N] ...

growth    0.25 to 4 million rows x 50 features x 20 responses: seconds, exponent, bytes per pass; scale_growth.csv
ratio     1 million rows: the Dask path against the plain path in memory; scale_ratio.csv
make      a Parquet folder at least 4 times the sum of the workers' memory limits
fit, audit, score
          that folder, through the command line's own functions, by default with the default model and score; peak
          memory of the workers; scale_large.csv
plot      scale.png, from the stored rows
estimate  1 billion rows x 500 features x 100 responses on 64 workers, from the stored rows; scale_estimate.csv

Each row is stored as soon as it is measured, in place of an earlier one of the same size or step.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
import pyarrow as arrow
import pyarrow.parquet as parquet

import mcode
from datasets import RESULTS, read_csv, write_csv
from distributed import Client, LocalCluster, wait
from mcode.distributed import Cluster, open_folder
from mcode.distributed.audit import audit_table, write_audit
from mcode.distributed.fit import fit
from mcode.distributed.objective import Passes
from mcode.distributed.pieces import Ask
from mcode.distributed.results import check_finished
from mcode.distributed.score import write_scores
from mcode.distributed.table import from_dask
from mcode.models import BatchLogistic, DependentRelevance, as_model

PARTS = ("growth", "ratio", "make", "fit", "audit", "score", "plot", "estimate")
SIZES = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
FEATURES, RESPONSES, FOLDS, WORKERS = 50, 20, 5, 2
PENALTY = 10.0
CHUNK = 62_500


@dataclass(frozen=True)
class Large:
    """The table that does not fit: its size, and the workers and the memory limit of each in megabytes."""

    rows: int = 2_800_000
    features: int = 500
    responses: int = 5
    workers: int = 2
    limit: int = 700

    @property
    def bytes(self) -> int:
        """Size in memory, in single precision."""
        return self.rows * (4 * self.features + self.responses)


QUICK = Large(30_000, 100, 5, limit=800)


def rows_of(n: int, m: int, d: int, seed: int) -> tuple[Any, Any]:
    """Return some rows; the coefficients are those of all tables, the rows those of the seed."""
    effect = np.random.default_rng(0).normal(size=(m, d)).astype(np.float32) / np.sqrt(m) * 2
    rng = np.random.default_rng(1000 + seed)
    X = rng.standard_normal((n, m), np.float32)
    eta = X @ effect
    noise = rng.logistic(size=(n, d)).astype(np.float32)
    Y = np.zeros((n, d), np.uint8)
    for j in range(d):
        Y[:, j] = eta[:, j] + (1.5 * (2.0 * Y[:, j - 1] - 1.0) if j else 0.0) + noise[:, j] > 0
    return X, Y


def block(k: int, n: int, which: int) -> Any:
    """Return the context (0) or the responses (1) of one partition."""
    return rows_of(n, FEATURES, RESPONSES, k)[which]


def dask_table(client: Any, n: int) -> tuple[Any, Any]:
    """Return a table that was generated on the workers and stays there."""
    lengths = [min(CHUNK, n - a) for a in range(0, n, CHUNK)]
    made = dask.delayed(block)
    tables = []
    for which, (width, dtype) in enumerate(((FEATURES, np.float32), (RESPONSES, np.uint8))):
        blocks = [da.from_delayed(made(k, c, which), (c, width), dtype) for k, c in enumerate(lengths)]
        tables.append(da.concatenate(blocks))
    X, Y = client.persist(tables)
    wait([X, Y])
    return X, Y


def model() -> DependentRelevance:
    return DependentRelevance(BatchLogistic(penalty=PENALTY, scale=True))


def detector() -> mcode.MCODE:
    return mcode.MCODE(model(), "complement", folds=FOLDS)


@contextmanager
def local(memory: str, workers: int = WORKERS) -> Iterator[Client]:
    """Give a client of a local cluster of processes."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.ERROR}
    with LocalCluster(n_workers=workers, memory_limit=memory, **options) as cluster, Client(cluster) as client:
        yield client


def save(name: str, key: str, row: dict[str, Any]) -> None:
    """Store a row at once, in place of an earlier one with the same key."""
    others = [old for old in read_csv(name) if old[key] != str(row[key])]
    write_csv(name, [*others, row])


def growth(sizes: list[int], keep: bool) -> None:
    """Fit tables of several sizes."""
    with local("6GB") as client:
        for n in (20_000, *sizes):  # the first compiles
            X, Y = dask_table(client, n)
            ours = Cluster(client)
            source, meter = from_dask(ours, X, Y), PassMeter(ours, idle_bytes_per_second())
            start = time.perf_counter()
            with mcode.reporting(meter), meter.counting():
                fit(ours, detector(), source)
            seconds = time.perf_counter() - start
            row = {
                "rows": n,
                "seconds": seconds,
                "microseconds_per_row": 1e6 * seconds / n,
                "passes": ours.passes,
                "solver_passes": meter.passes,
                "solver_seconds": meter.seconds,
                "bytes_per_solver_pass": meter.bytes / max(1, meter.passes),
                "columns_per_solver_pass": meter.columns / max(1, meter.passes),
                "bytes_per_column_and_pass": meter.bytes / max(1, meter.columns),
                "idle_bytes_per_second": meter.idle,
            }
            print(row, flush=True)
            if keep and n in sizes:
                save("scale_growth", "rows", row)
            del X, Y, source


class PassMeter:
    """Counts passes, seconds and bytes of the solver; what surrounds it moves samples too.

    All parts of a local cluster talk over the loopback interface, whose counter gives the bytes. What they say to each
    other while nothing is to be done, at `idle` bytes per second, is no part of a pass. Columns that have converged
    are in no further pass, so that passes differ in size: `columns` counts those of all passes.
    """

    def __init__(self, cluster: Cluster, idle: float) -> None:
        self.cluster, self.idle, self.passes, self.seconds, self._from = cluster, idle, 0, 0.0, (0, 0, 0.0)
        self.all_bytes, self.columns = 0, 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note where the counters stand when a fit begins and ends."""
        if stage not in ("fit the folds", "fit all rows"):
            return
        now = (loopback_bytes(), self.cluster.passes, time.perf_counter())
        if done == 0:
            self._from = now
        elif done == total:
            self.all_bytes += now[0] - self._from[0]
            self.passes += now[1] - self._from[1]
            self.seconds += now[2] - self._from[2]

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the columns of each pass."""
        total = Passes.total

        def counted(passes: Passes, function: Any, *args: Any) -> Any:
            asked = next(value for value in args if isinstance(value, Ask))
            chosen = [len(value) for value in args if isinstance(value, np.ndarray) and value.ndim == 1]
            self.columns += chosen[0] if chosen else len(asked.response)
            return total(passes, function, *args)

        Passes.total = counted  # type: ignore[method-assign]
        try:
            yield
        finally:
            Passes.total = total  # type: ignore[method-assign]

    @property
    def bytes(self) -> float:
        """What the passes themselves moved."""
        return self.all_bytes - self.idle * self.seconds


def loopback_bytes() -> int:
    """Return the bytes sent over the loopback interface so far."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def idle_bytes_per_second(seconds: float = 10.0) -> float:
    """Return what is sent while nobody works."""
    before = loopback_bytes()
    time.sleep(seconds)
    return (loopback_bytes() - before) / seconds


def ratio(n: int, keep: bool) -> None:
    """Fit the same rows with the same penalty in memory and on Dask, twice in turn."""
    parts = [rows_of(min(CHUNK, n - a), FEATURES, RESPONSES, k) for k, a in enumerate(range(0, n, CHUNK))]
    X, Y = np.vstack([x for x, _ in parts]), np.vstack([y for _, y in parts])
    del parts
    detector().fit(X[:20_000], Y[:20_000])  # compiles
    seconds: dict[str, list[float]] = {"plain": [], "dask": []}
    with local("6GB") as client:
        dX, dY = dask_table(client, n)
        detector().fit(dX[:20_000], dY[:20_000])
        for _ in range(2):
            start = time.perf_counter()
            ours = detector().fit(dX, dY)
            seconds["dask"].append(time.perf_counter() - start)
            start = time.perf_counter()
            plain = detector().fit(X, Y)
            seconds["plain"].append(time.perf_counter() - start)
            print(seconds, flush=True)
    exact, found, some = plain.model_.conditionals_, ours.model_.conditionals_, slice(0, 100_000)
    rho = [np.exp(c.log_proba(X[some], Y[some])) for c in (found, exact)]
    row = {
        "rows": n,
        "plain_s": min(seconds["plain"]),
        "dask_s": min(seconds["dask"]),
        "ratio": min(seconds["dask"]) / min(seconds["plain"]),
        "largest_coefficient_difference": float(np.abs(found.features - exact.features).max()),
        "largest_rho_difference": float(np.abs(rho[0] - rho[1]).max()),
    }
    print(row, flush=True)
    if keep:
        save("scale_ratio", "rows", row)


class Watch:
    """Highest resident memory of the worker processes, looked at 20 times a second, and whether all lived."""

    def __init__(self, client: Any) -> None:
        self.client, self.peak, self._stop = client, 0, threading.Event()

    def __enter__(self) -> Watch:
        self.pids = sorted(self.client.run(os.getpid).values())
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        processes = [psutil.Process(pid) for pid in self.pids]
        while not self._stop.wait(0.05):
            for process in processes:
                if process.is_running():
                    self.peak = max(self.peak, process.memory_info().rss)

    @property
    def restarts(self) -> int:
        """Workers that are no longer those of the beginning."""
        return len(set(self.pids) - set(self.client.run(os.getpid).values()))


def make(large: Large, scratch: Path) -> None:
    """Write the folder, in files of 40,000 rows."""
    folder = scratch / "table"
    folder.mkdir(parents=True)
    for k, a in enumerate(range(0, large.rows, 40_000)):
        X, Y = rows_of(min(40_000, large.rows - a), large.features, large.responses, k)
        columns = {f"x{j}": X[:, j] for j in range(large.features)} | {f"y{j}": Y[:, j] for j in range(large.responses)}
        path = folder / f"part-{k:04d}.parquet"
        parquet.write_table(arrow.table(columns), path, row_group_size=8000, use_dictionary=False, compression="none")


def beyond(step: str, large: Large, names: tuple[str, str], scratch: Path, keep: bool) -> None:
    """Fit, audit or score the folder with a model and a score by name, the penalty given."""
    saved = scratch / "fitted.mcode"
    chosen = as_model(names[0]).set_params(learner=BatchLogistic(penalty=PENALTY, scale=True))
    with local(f"{large.limit}MB", large.workers) as client, Watch(client) as watch:
        ours, opened = Cluster(client), open_folder(scratch / "table", "y*")
        assert opened.table.n_rows == large.rows, "the folder is that of another size: make it anew"
        limits = ours.memory()
        start = time.perf_counter()
        with mcode.reporting(say):
            if step == "fit":
                mcode.save(fit(ours, mcode.MCODE(chosen, names[1]), opened.table), saved)
            elif step == "audit":
                found = audit_table(ours, opened.table, chosen, names[1], None, "auto", 0)
                write_audit(ours, found, scratch / "audited", "fdr", 0.1)
            else:
                write_scores(ours, mcode.load(saved), opened, scratch / "scored", 0.999)
        row = {
            "step": step,
            "model": names[0],
            "score": names[1],
            "workers": large.workers,
            "rows": large.rows,
            "features": large.features,
            "responses": large.responses,
            "table_gb": large.bytes / 1e9,
            "stored_gb": sum(path.stat().st_size for path in (scratch / "table").iterdir()) / 1e9,
            "workers_memory_gb": limits / 1e9,
            "times_memory": large.bytes / limits,
            "seconds": time.perf_counter() - start,
            "passes": ours.passes,
            "peak_worker_mb": watch.peak / 1e6,
            "limit_worker_mb": limits / large.workers / 1e6,
            "workers_restarted": watch.restarts,
        }
    if step != "fit":
        manifest = check_finished(scratch / f"{step.removesuffix('e')}ed")
        assert manifest["rows"] == large.rows
        print({key: manifest.get(key) for key in ("rows", "flagged", "error_rate", "explained")})
    print(row, flush=True)
    if keep:
        save("scale_large", "step", row)


def say(stage: str, done: int, total: int) -> None:
    """Print how far a long run is, in tenths."""
    if total < 20 or done % (total // 10) == 0:
        print(f"{time.strftime('%H:%M:%S')} {stage}: {done} of {total}", flush=True)


def stored_growth() -> tuple[Any, Any, Any, float]:
    """Return rows, seconds, bytes per column and pass, and the growth exponent of what is stored."""
    stored = sorted(read_csv("scale_growth"), key=lambda row: int(row["rows"]))
    n, seconds, moved = (
        np.array([float(row[key]) for row in stored]) for key in ("rows", "seconds", "bytes_per_column_and_pass")
    )
    return n, seconds, moved, float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def plot() -> None:
    """Plot cost and traffic against rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    n, seconds, moved, exponent = stored_growth()
    figure, (cost, traffic) = plt.subplots(1, 2, figsize=(9, 3.6))
    cost.loglog(n, seconds, "o-", label=f"fit: exponent {exponent:.2f}")
    cost.loglog(n, seconds[0] * n / n[0], "--", color="grey", label="proportional to the rows")
    cost.set(xlabel="rows", ylabel="seconds", title=f"Cost of a fit ({FEATURES} features, {RESPONSES} responses)")
    cost.legend()
    traffic.semilogx(n, moved / 1e3, "o-")
    top = 1.3 * moved.max() / 1e3
    traffic.set(xlabel="rows", ylabel="kB", title="Traffic of one column in one pass", ylim=(0, top))
    for axes in (cost, traffic):
        axes.set_xticks(n, [f"{rows / 1e6:g} million" if rows == n[-1] else f"{rows / 1e6:g}" for rows in n])
        axes.minorticks_off()
    figure.tight_layout()
    figure.savefig(RESULTS / "scale.png", dpi=120)
    least, most = moved.min() / 1e3, moved.max() / 1e3
    print(f"growth exponent {exponent:.3f}; traffic of a column and pass {least:.2f} to {most:.2f} kB")


@dataclass(frozen=True)
class Assumed:
    """What the estimate takes from elsewhere: one core per worker, its price, and what it reads from storage."""

    rows: float = 1e9
    features: int = 500
    responses: int = 100
    workers: int = 64
    dollars_per_worker_hour: float = 0.05
    read_bytes_per_second: float = 200e6


def estimate() -> None:
    """Scale the largest measured fit: work per row is inputs x columns, traffic per worker is coefficients."""
    far, row = Assumed(), max(read_csv("scale_growth"), key=lambda row: int(row["rows"]))
    passes = float(row["solver_passes"])
    inputs, near_inputs = far.features + far.responses + 1, FEATURES + RESPONSES + 1
    heavier = inputs * far.responses / (near_inputs * RESPONSES)
    core_seconds = WORKERS * float(row["seconds"]) / float(row["rows"]) * far.rows * heavier
    table = far.rows * (4.0 * far.features + far.responses)
    read = passes * table / (far.workers * far.read_bytes_per_second)
    traffic = float(row["bytes_per_solver_pass"]) / WORKERS * heavier * far.workers
    hours = (core_seconds / far.workers + read) / 3600
    found = {
        "rows": int(far.rows),
        "features": far.features,
        "responses": far.responses,
        "workers": far.workers,
        "passes": int(passes),
        "table_tb": table / 1e12,
        "work_hours": core_seconds / far.workers / 3600,
        "read_hours": read / 3600,
        "hours": hours,
        "traffic_per_pass_gb": traffic / 1e9,
        "traffic_gb": traffic * passes / 1e9,
        "dollars_per_worker_hour": far.dollars_per_worker_hour,
        "dollars": hours * far.workers * far.dollars_per_worker_hour,
    }
    print(found)
    write_csv("scale_estimate", [found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS) + " (default: all)")
    parser.add_argument("--quick", action="store_true", help="small tables; nothing is stored")
    parser.add_argument("--rows", type=int, nargs="+", help="sizes of `growth`, and the first of them of `ratio`")
    parser.add_argument("--table", type=Path, help="folder for the large table, which is then kept")
    parser.add_argument("--workers", type=int, default=WORKERS, help="for the large table, which grows with them")
    parser.add_argument("--model", default="dbr", help="for the large table")
    parser.add_argument("--score", default="learned", help="for the large table")
    options = parser.parse_args()
    parts = options.parts or [part for part in PARTS if not (options.quick and part in ("plot", "estimate"))]
    keep = not options.quick
    large = QUICK if options.quick else Large(rows=1_400_000 * options.workers, workers=options.workers)
    scratch = options.table or Path(tempfile.mkdtemp(prefix="mcode-scale-"))
    try:
        for part in parts:
            if part == "growth":
                growth(options.rows or ([10_000, 20_000] if options.quick else list(SIZES)), keep)
            elif part == "ratio":
                ratio(options.rows[0] if options.rows else 20_000 if options.quick else 1_000_000, keep)
            elif part == "make":
                make(large, scratch)
            elif part in ("fit", "audit", "score"):
                beyond(part, large, (options.model, options.score), scratch, keep)
            elif part == "plot":
                plot()
            elif part == "estimate":
                estimate()
            else:
                parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    finally:
        if options.table is None:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
