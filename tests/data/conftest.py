"""Files to read: real ones from MCODE_DATA, small ones written on the spot."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("MCODE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


@pytest.fixture
def real_file():
    """Return the path of a real data file, or skip; where CI=true a missing file is a failure."""

    def find(name):
        path = DATA / name
        if not path.exists():
            if os.environ.get("CI") == "true":
                pytest.fail(f"{name} is missing; set MCODE_DATA to the directory that holds it")
            pytest.skip(f"{name} is not there; MCODE_DATA names its directory")
        return path

    return find


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and gives its path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file
