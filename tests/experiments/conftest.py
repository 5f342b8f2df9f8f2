"""Small tables under the names of the real ones, so that an experiment runs in seconds."""

import numpy as np
import pytest
import scipy.sparse as sp

from tables import dependent_table, sparse_table


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    """Return a folder with a small dense and a small sparse table."""
    folder = tmp_path_factory.mktemp("data")
    X, Y = dependent_table(n=150, m=4, d=5, seed=1)
    save(folder / "genbase.npz", X, Y)
    X, Y = sparse_table(n=150, m=120, d=6, seed=2, density=0.03)
    save(folder / "corel5k.npz", X, Y)
    X, Y = dependent_table(n=120, m=3, d=4, seed=3)
    save(folder / "medical.npz", X, Y)
    return folder


def save(path, X, Y):
    names = {
        "feature_names": np.array([f"f{j}" for j in range(X.shape[1])]),
        "label_names": np.array([f"y{j}" for j in range(Y.shape[1])]),
    }
    if sp.issparse(X):
        parts = {"x_data": X.data.astype(np.float32), "x_indices": X.indices, "x_indptr": X.indptr.astype(np.int64)}
        np.savez_compressed(path, **parts, x_shape=np.array(X.shape), Y=Y, **names)
    else:
        np.savez_compressed(path, X=X.astype(np.float32), Y=Y, **names)
