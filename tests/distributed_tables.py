"""Tables with known errors, in memory and as folders of Parquet files, and what kills workers that read them."""

import os
import signal

import numpy as np
import pandas as pd

from mcode.models import BatchLogistic, DependentRelevance

MODEL = DependentRelevance(BatchLogistic(penalty=1.0, scale=True))


def wrong_table(n=900, seed=1):
    """Return a table whose responses follow the context, but for some rows, and these rows."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    Y = (np.column_stack([X[:, 0], X[:, 0] + 0.3 * X[:, 2], X[:, 1]]) > 0).astype(np.uint8)
    wrong = np.flatnonzero(np.abs(X[:, 1]) > 1.5)[::8]
    Y[wrong, 2] ^= 1
    return X, Y, wrong


def folder_of(tmp_path, n=900, files=3):
    X, Y, wrong = wrong_table(n)
    frame = pd.DataFrame(X, columns=["age", "pulse", "x2", "x3"])
    frame["ward"] = np.where(X[:, 0] > 0, "north", "south")
    frame[["dx_a", "dx_b", "dx_c"]] = Y
    frame.insert(0, "visit", [f"V{i:05d}" for i in range(n)])
    folder = tmp_path / "table"
    folder.mkdir()
    for k, part in enumerate(np.array_split(np.arange(n), files)):
        frame.iloc[part].to_parquet(folder / f"part-{k}.parquet", row_group_size=200, index=False)
    return folder, frame, wrong


class Killer:
    """Kills a worker process, without any goodbye, when the work has come to a certain stage."""

    def __init__(self, client, stage):
        self.client, self.stage, self.killed = client, stage, 0

    def __call__(self, stage, done, total):
        if self.killed or self.stage not in stage:
            return
        self.killed = next(iter(self.client.run(os.getpid).values()))
        os.kill(self.killed, signal.SIGKILL)
