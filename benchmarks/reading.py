"""Reading a table as large as imdb: peak memory against the size of the data set that comes out, for each format.

Each file is read by a process of its own, which has read a small file of the same format before, so that only memory
that grows with the file is counted. The peak is the highest resident size while reading, less the one before. It is
compared with the data set, which is sparse, and with the table as the format holds it: all cells as 4-byte numbers, or
for ARFF, libsvm and npz those that are not 0.

Results: benchmarks/results/reading.csv
"""

from __future__ import annotations

import argparse
import csv
import gc
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

import mcode
from datasets import load, write_csv

FORMATS = ("csv", "parquet", "arff", "svm", "npz")
LABEL = "label_"


def write_table(path: Path, X: sp.csr_matrix, Y: np.ndarray) -> None:
    """Write a table in the format that the name says; numbers as short as they can be written."""
    kind = path.name.split(".", 1)[1]
    names = [f"x{j}" for j in range(X.shape[1])] + [f"{LABEL}{j}" for j in range(Y.shape[1])]
    if kind == "npz":
        parts = {"x_data": X.data, "x_indices": X.indices, "x_indptr": X.indptr, "x_shape": np.array(X.shape)}
        np.savez(path, Y=Y, feature_names=names[: X.shape[1]], label_names=names[X.shape[1] :], **parts)
    elif kind == "arff":
        write_arff(path, X, Y, names)
    elif kind == "svm":
        with path.open("w") as out:
            for i in range(len(Y)):
                labels = ",".join(str(j) for j in np.flatnonzero(Y[i]))
                out.write(f"{labels} {' '.join(f'{j + 1}:{value:g}' for j, value in entries(X, i))}\n")
    elif kind == "parquet":
        with pq.ParquetWriter(path, schema_of(X, Y, names)) as out:
            for part in tables(X, Y, names, 1 << 15):
                out.write_table(part)
    elif kind == "arrow":
        with pa.ipc.new_file(path, schema_of(X, Y, names)) as out:
            for part in tables(X, Y, names, 1 << 12):
                out.write_table(part)
    else:
        write_text(path, kind, X, Y, names)


def entries(X: sp.csr_matrix, i: int):
    """Return the non-zero cells of a row: column, value."""
    part = slice(X.indptr[i], X.indptr[i + 1])
    return zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)


def write_arff(path: Path, X: sp.csr_matrix, Y: np.ndarray, names: list[str]) -> None:
    """Write sparse ARFF, the labels last, and say how many there are as MEKA does."""
    with path.open("w") as out:
        out.write(f"@relation 'large: -C -{Y.shape[1]}'\n")
        out.writelines(f"@attribute {name} {'{0,1}' if name.startswith(LABEL) else 'numeric'}\n" for name in names)
        out.write("@data\n")
        for i in range(len(Y)):
            cells = [f"{j} {value:g}" for j, value in entries(X, i)]
            cells += [f"{X.shape[1] + j} 1" for j in np.flatnonzero(Y[i])]
            out.write("{" + ",".join(cells) + "}\n")


def tables(X: sp.csr_matrix, Y: np.ndarray, names: list[str], rows: int):
    """Yield the rows as Arrow tables: whole numbers as such, labels as bytes."""
    schema = schema_of(X, Y, names)
    for start in range(0, len(Y), rows):
        cells = X[start : start + rows].toarray()
        columns = [*cells.T, *Y[start : start + rows].T]
        yield pa.table([pa.array(c, f.type, safe=False) for c, f in zip(columns, schema, strict=True)], schema=schema)


def schema_of(X: sp.csr_matrix, Y: np.ndarray, names: list[str]) -> pa.Schema:
    """Return the types of the columns."""
    number = pa.int64() if np.array_equal(X.data, np.round(X.data)) else pa.float64()
    return pa.schema([(name, pa.uint8() if name.startswith(LABEL) else number) for name in names])


def write_text(path: Path, kind: str, X: sp.csr_matrix, Y: np.ndarray, names: list[str]) -> None:
    """Write CSV, compressed or not, or JSON lines."""
    with gzip.open(path, "wt", compresslevel=1) if kind.endswith("gz") else path.open("w", newline="") as out:
        if kind.startswith("csv"):
            csv.writer(out).writerow(names)
        for part in tables(X, Y, names, 1 << 12):
            for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
                if kind == "jsonl":
                    out.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")
                else:
                    out.write(",".join(map(str, row)) + "\n")


def size_of(data: mcode.data.Dataset) -> int:
    """Return the bytes of a data set."""
    X = data.X
    arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    return sum(array.nbytes for array in (*arrays, data.Y, data.row_ids))


def resident(what: str) -> int:
    """Return bytes of this process: VmRSS now, VmHWM at the highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) * 1024


def measure(small: Path, path: Path) -> dict[str, float]:
    """Read a file in this process; return sizes in MB and seconds."""
    labels = None if path.suffix in (".svm", ".npz", ".arff") else f"{LABEL}*"
    mcode.read(small, labels)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the highest begins anew
    before = resident("VmRSS")
    start = time.perf_counter()
    data = mcode.read(path, labels)
    seconds = time.perf_counter() - start
    peak, size = resident("VmHWM") - before, size_of(data)
    holds_all_cells = path.suffix not in (".svm", ".npz", ".arff")
    table = 4 * len(data) * (data.X.shape[1] + data.Y.shape[1]) if holds_all_cells else size
    return {
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "data_set_mb": round(size / 1e6, 1),
        "peak_mb": round(peak / 1e6, 1),
        "peak_over_data_set": round(peak / size, 2),
        "peak_over_table": round(peak / table, 2),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--table", default="imdb")
    parser.add_argument("--folder", type=Path, help="where the files are made, and kept")
    parser.add_argument("--measure", type=Path, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*given.measure)))
        return
    X, Y = load(given.table)
    X, Y = sp.csr_matrix(X), np.asarray(Y, np.uint8)
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        folder.mkdir(exist_ok=True)
        for kind in given.formats.split(","):
            small, path = folder / f"small.{kind}", folder / f"{given.table}.{kind}"
            for file, n in ((small, 500), (path, len(Y))):
                if not file.exists():
                    write_table(file, X[:n], Y[:n])
            command = [sys.executable, __file__, "--measure", str(small), str(path)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            rows.append({"format": kind, "rows": len(Y), "columns": X.shape[1] + Y.shape[1], **json.loads(said)})
            print(rows[-1], flush=True)
            if given.folder is None:
                path.unlink()
    write_csv("reading", rows)


if __name__ == "__main__":
    main()
