"""What `import mcode` brings along."""

import subprocess
import sys

import pytest

import mcode

HEAVY = ("sklearn", "numba", "pandas", "scipy")


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_heavy_libraries_wait_until_they_are_needed():
    assert run_python(f"import mcode, sys; print([m for m in {HEAVY} if m in sys.modules])").strip() == "[]"


def test_help_imports_no_command():
    code = (
        "import sys\nfrom mcode.cli import main\nsys.argv = ['mcode', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    assert run_python(code).splitlines()[-1] == "[]"


def test_every_public_name_is_there():
    assert all(getattr(mcode, name) is not None for name in mcode.__all__)
    assert set(mcode.__all__) <= set(dir(mcode))


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="'mcode' has no attribute 'auditt'"):
        _ = mcode.auditt


def test_a_detector_imported_from_its_room_can_explain():
    code = (
        "import numpy as np\nfrom mcode.detector import audit\n"
        "X = np.random.default_rng(0).normal(size=(60, 2)); Y = (X > 0).astype(int)\n"
        "print(audit(X, Y, model='br', score='complement').explain(0).row)"
    )
    assert run_python(code).strip() == "0"
