"""What all tests share: small tables with dependent responses, and the real ones where they are installed."""

import importlib.util
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

settings.register_profile("mcode", deadline=None, derandomize=True)
settings.load_profile("mcode")

DATA = Path(os.environ.get("MCODE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def real_data():
    """Return a function that reads a real table by its name; sparse where it is stored so."""

    def read(name):
        path = DATA / f"{name}.npz"
        if not path.exists():
            if os.environ.get("CI") == "true":
                pytest.fail(f"{name}.npz is missing; set MCODE_DATA to the directory that holds it")
            pytest.skip(f"{name}.npz is not there; MCODE_DATA names its directory")
        with np.load(path, allow_pickle=False) as file:
            if "X" in file:
                return file["X"], file["Y"]
            X = sp.csr_matrix((file["x_data"], file["x_indices"], file["x_indptr"]), shape=tuple(file["x_shape"]))
            return X, file["Y"]

    return read


@pytest.fixture(scope="module")
def chromium():
    """Return a running Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    missing = path is None or importlib.util.find_spec("playwright") is None
    if missing and os.environ.get("CI") == "true":
        pytest.fail("Chromium or playwright is not installed")
    if missing:
        pytest.skip("Chromium or playwright is not installed")
    sync_api = importlib.import_module("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
