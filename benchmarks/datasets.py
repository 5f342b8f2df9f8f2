"""The real data sets of the benchmarks, read from MCODE_DATA or from ../shared/data beside the project."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROOT = Path(os.environ.get("MCODE_DATA", Path(__file__).parents[2] / "shared" / "data"))
RESULTS = Path(__file__).parent / "results"


def load(name: str) -> tuple[Any, Any]:
    """Return X, dense or CSR, and Y of a stored data set."""
    path = ROOT / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"{path} is missing: set MCODE_DATA to the folder that holds the data sets.")
    z = np.load(path, allow_pickle=False)
    if "X" in z.files:
        return z["X"], z["Y"]
    return sp.csr_matrix((z["x_data"], z["x_indices"], z["x_indptr"]), shape=tuple(z["x_shape"])), z["Y"]


def write_csv(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows of equal keys to benchmarks/results/NAME.csv."""
    RESULTS.mkdir(exist_ok=True)
    lines = [",".join(rows[0])] + [",".join(_cell(value) for value in row.values()) for row in rows]
    (RESULTS / f"{name}.csv").write_text("\n".join(lines) + "\n")


def update_csv(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows to benchmarks/results/NAME.csv, keeping the stored rows of other data sets."""
    renewed = {row["data"] for row in rows}
    write_csv(name, [row for row in read_csv(name) if row["data"] not in renewed] + rows)


def read_csv(name: str) -> list[dict[str, Any]]:
    """Return the stored rows of benchmarks/results/NAME.csv, or none."""
    path = RESULTS / f"{name}.csv"
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
