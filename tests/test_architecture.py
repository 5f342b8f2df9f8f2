"""The house stands: imports point down, and every public name explains itself."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import mcode

PACKAGE = Path(mcode.__file__).parent

# Each floor may import the floors below it; rooms on one floor do not know each other.
FLOORS = (
    "__main__",
    "cli",
    "web",
    "experiments distributed",
    "own_words",
    "report data persist",
    "explain",
    "detector",
    "spaces scores ranking",
    "corruption",
    "models",
    "solvers",
    "_arrays _progress _optional",
    "errors",
)
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms.split()}

# Names without a runnable example, and why.
WITHOUT_EXAMPLE = {
    "mcode.Audit": "it is made by mcode.audit, which has one",
    "mcode.McodeError": "base class",
    "mcode.NotConvergedWarning": "given by the library, never built by a caller",
    "mcode.reporting": "its module opens with one",
    "mcode.models.ConditionalModel": "base class",
    "mcode.scores.ScoreBase": "base class",
    "mcode.scores.LearnedScore": "it needs rows read by several models; MCODE and audit, whose default it is, show it",
}

# Classes that no caller builds: their attributes are explained, their parameters need not be.
MADE_BY_THE_LIBRARY = {
    "mcode.Audit",
    "mcode.DataFormatError",
    "mcode.Dataset",
    "mcode.NotConvergedWarning",
    "mcode.ParameterError",
}


def room_of(path, package=PACKAGE):
    return path.relative_to(package).parts[0].removesuffix(".py")


def imported_rooms(source):
    """Return the rooms of mcode that a module imports."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        rooms |= {name.split(".")[1] for name in names if name.startswith("mcode.")}
    return rooms


def faults(package):
    """Return one sentence for each import that points up or sideways, and for each room without a floor."""
    found = []
    for path in sorted(package.rglob("*.py")):
        room = room_of(path, package)
        if room == "__init__":
            continue
        if room not in FLOOR:
            found.append(f"the room {room!r} has no floor")
            continue
        for other in sorted(imported_rooms(path.read_text(encoding="utf-8")) - {room}):
            if FLOOR.get(other, -1) <= FLOOR[room]:
                found.append(f"{path.relative_to(package)} is in {room!r} and may not import {other!r}")
    return found


def test_imports_point_down():
    assert not faults(PACKAGE)


@pytest.mark.parametrize(
    ("where", "line", "sentence"),
    [
        ("solvers/a.py", "from mcode.models import br", "solvers/a.py is in 'solvers' and may not import 'models'"),
        ("scores/lof.py", "import mcode.ranking", "scores/lof.py is in 'scores' and may not import 'ranking'"),
        ("spaces/rho.py", "from mcode import scores", "spaces/rho.py is in 'spaces' and may not import 'scores'"),
        ("helpers.py", "", "the room 'helpers' has no floor"),
    ],
)  # fmt: skip
def test_a_wrong_import_is_found_and_the_room_at_fault_is_named(tmp_path, where, line, sentence):
    path = tmp_path / where
    path.parent.mkdir(exist_ok=True)
    path.write_text(line, encoding="utf-8")
    assert faults(tmp_path) == [sentence]


def test_guarded_imports_are_in_one_place():
    """Optional libraries are imported by `require`, or inside the room that its extra is for."""
    guarded = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if re.search(r"except (ImportError|ModuleNotFoundError)", path.read_text(encoding="utf-8"))
    ]
    assert guarded == ["_optional.py"]


def public_names():
    for module in (mcode, mcode.models, mcode.scores):
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.ismodule(thing):
                yield f"{module.__name__}.{name}", thing


PUBLIC = dict(public_names())


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_sentence(name):
    text = vars(PUBLIC[name]).get("__doc__") if inspect.isclass(PUBLIC[name]) else PUBLIC[name].__doc__
    assert text, f"{name} has no docstring"
    assert text.split("\n\n")[0].rstrip().endswith("."), f"the docstring of {name} does not begin with a sentence"


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if inspect.isclass(thing)])
def test_every_parameter_of_a_public_class_is_explained(name):
    if name in MADE_BY_THE_LIBRARY or inspect.isabstract(PUBLIC[name]):
        return
    explain(name, PUBLIC[name], inspect.signature(PUBLIC[name].__init__))


@pytest.mark.parametrize(
    "name", [name for name, thing in PUBLIC.items() if inspect.isfunction(thing) and thing.__name__ == "audit"]
)
def test_every_parameter_of_the_audit_is_explained(name):
    explain(name, PUBLIC[name], inspect.signature(PUBLIC[name]))


def explain(name, thing, signature):
    """Fail where a parameter is not a line of the section Parameters."""
    text = inspect.getdoc(thing)
    names = [p.name for p in signature.parameters.values() if p.name not in ("self", "args", "kwargs")]
    if not names:
        return
    assert "Parameters\n----------" in text, f"{name} does not list its parameters"
    section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    listed = {word.strip() for line in section.splitlines() if re.match(r"^\w[\w, ]* :", line)
              for word in line.split(" :")[0].split(",")}  # fmt: skip
    missing = [parameter for parameter in names if parameter not in listed]
    assert not missing, f"{name} does not explain {missing}"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example_or_a_reason(name):
    has_example = ">>>" in (PUBLIC[name].__doc__ or "")
    if name in WITHOUT_EXAMPLE:
        assert not has_example, f"{name} has an example now: strike it off the list"
        return
    assert has_example, f"{name} has no example that runs"


def test_reasons_name_what_is_there():
    assert set(WITHOUT_EXAMPLE) <= set(PUBLIC)
