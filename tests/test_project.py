"""The project as a whole: what it loads, who imports whom, its names, its files.

One file, since its tests share what they read of all files, once.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import anonymip

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "anonymip"
SOURCES = sorted(PACKAGE.rglob("*.py"))
FACE = PACKAGE / "__init__.py"
INSIDE = [path for path in SOURCES if path != FACE]
PACKAGES = sorted(path.parent for path in SOURCES if path.name == "__init__.py")
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))

HEAVY = {
    "dask",
    "distributed",
    "fsspec",
    "fastapi",
    "highspy",
    "matplotlib",
    "narwhals",
    "nicegui",
    "numba",
    "pandas",
    "polars",
    "pulp",
    "pyarrow",
    "pyomo",
    "rich",
    "rustworkx",
    "scipy",
    "typer",
}

# From the ground up; the modules of one entry may import each other.
ROOMS = (
    ("_version", "errors", "tolerances", "status", "effort", "files", "extensions", "runtime"),
    ("instances",),
    ("assignments",),
    ("graphs",),
    ("objectives",),
    ("recodings",),
    ("problem",),
    ("certificates",),
    ("solution",),
    ("orders",),
    ("enumeration",),
    ("solvers",),
    ("bounds",),
    ("heuristics",),
    ("models",),
    ("exact",),
    ("methods",),
    ("privacy",),
    ("solving",),
    ("publishing",),
    ("scale",),
    ("anonymization", "estimator"),
    ("experiments",),
    ("warm_up",),
    ("cli", "app"),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}

# The wings of a room from the ground up. Wings that are not named lie on the top floor; no wing
# imports another of its own floor.
WINGS: dict[str, tuple[tuple[str, ...], ...]] = {
    "exact": (
        ("set_partitioning",),
        ("classes", "freeform", "patterns", "full_domain"),
        ("column_generation",),
        ("split_carry",),
    ),
    "experiments": (("running",),),
    "heuristics": (("growing",),),
    "heuristics.freeform": (("rounds",),),
    "instances": (("hierarchies",),),
    "models": (("parts",),),
    "objectives": (("language",), ("losses", "kernels")),
    "privacy": (("reading",), ("graph",), ("checks", "attacks")),
    "recodings": (("rules",),),
}

MACHINE_PATH = re.compile(rb"(?<![\w.:-])/(?:root/|(?:home|Users|mnt)/\w)|[A-Z]:\\Users\\")
MEGABYTE = 1_000_000
#: A function of the package that is named, to be loaded on use.
LAZY = re.compile(r"anonymip(\.\w+)*:\w+")
#: Names heuristics of every wing as starts, and loads the one that is asked for.
NAMES_STARTS = ("heuristics", "local_search", "starts")
#: Lines of a file that needs no reason, and the words that give one.
LONGEST, REASON = 600, "One file, since"


def label(path: Path) -> str:
    """Return the path of a file of the project from the repository's top."""
    return path.relative_to(REPOSITORY).as_posix()


@cache
def text_of(path: Path) -> str:
    """Return what a file of the project holds."""
    return path.read_text(encoding="utf-8")


def absolute_name(node: ast.ImportFrom, path: Path) -> str:
    """Return the dotted name of the module that a `from` statement in `path` names."""
    if node.level == 0:
        return node.module or ""
    package = path.parent.relative_to(REPOSITORY).parts
    base = package[: len(package) - node.level + 1]
    return ".".join((*base, node.module) if node.module else base)


@cache
def imported_modules(path: Path, source: str) -> list[tuple[int, str]]:
    """Return line and dotted name of everything that a file imports, type checking included."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = absolute_name(node, path)
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found


def functions_named(source: str) -> list[tuple[int, str]]:
    """Return line and dotted name of the package's functions that a file loads by their names."""
    if not LAZY.search(source):
        return []
    named = [
        (node.lineno, str(node.value).replace(":", "."))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and LAZY.fullmatch(str(node.value))
    ]
    return sorted(named)


def rooms_imported(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Yield line and room of every import from the package; "" stands for its face.

    Functions that are named, to be loaded on use, count as imported.
    """
    for line, name in [*imported_modules(path, source), *functions_named(source)]:
        first, _, rest = name.partition(".")
        room = rest.partition(".")[0]
        if first == "anonymip":
            yield line, room if room in FLOOR else ""


def room_of(path: Path) -> str:
    """Return the room in which a file of the package lies."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def upward_imports(path: Path, source: str) -> list[str]:
    """Return the imports of one file from rooms above its own, or from the face."""
    floor = FLOOR[room_of(path)]
    return [
        f"{label(path)}:{line} imports {room or 'the face'}"
        for line, room in rooms_imported(path, source)
        if not room or FLOOR[room] > floor
    ]


def module_of(path: Path) -> tuple[str, ...]:
    """Return the names that lead to a file from the package's top."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


MODULES = {module_of(path): path for path in INSIDE}


def modules_imported(path: Path, source: str) -> Iterator[tuple[str, ...]]:
    """Yield the modules of the package that a file imports."""
    for _, name in imported_modules(path, source):
        parts = tuple(name.split("."))
        if parts[0] == "anonymip":
            inner = parts[1:]
            found = inner if inner in MODULES else inner[:-1]
            if found in MODULES:
                yield found


def is_wing(module: tuple[str, ...]) -> bool:
    """Return whether a module is a folder."""
    return module in MODULES and MODULES[module].name == "__init__.py"


def wing_floor(room: tuple[str, ...], wing: str) -> int:
    """Return the floor of a wing in its room."""
    floors = WINGS.get(".".join(room), ())
    return next((floor for floor, names in enumerate(floors) if wing in names), len(floors))


def imports_of_sisters(path: Path, source: str) -> list[str]:
    """Return the imports of one file from wings beside its own that are not below it."""
    own, offences = module_of(path), []
    named = [] if own == NAMES_STARTS else functions_named(source)
    loaded = [tuple(name.split(".")[1:-1]) for _, name in named]
    for other in [*modules_imported(path, source), *loaded]:
        shared = 0
        while shared < min(len(own), len(other)) and own[shared] == other[shared]:
            shared += 1
        room, mine, theirs = own[:shared], own[: shared + 1], other[: shared + 1]
        if not room or mine == room or theirs == room or not (is_wing(mine) and is_wing(theirs)):
            continue
        if wing_floor(room, theirs[-1]) >= wing_floor(room, mine[-1]):
            offences.append(f"{label(path)} imports {'.'.join(other)}")
    return offences


def circles(imports: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[str]:
    """Return the modules that are left when those that import none that is left are taken out."""
    left = dict(imports)
    while True:
        ends = [module for module, others in left.items() if not others & left.keys()]
        if not ends:
            return sorted(".".join(module) for module in left)
        for module in ends:
            del left[module]


def project_files() -> list[Path]:
    """Return the files under version control and those about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs git and a clone: {error}")
    names = listing.stdout.decode().split("\0")
    return [path for name in names if name and (path := REPOSITORY / name).is_file()]


def test_importing_the_package_loads_nothing_heavy() -> None:
    """A bare `import anonymip` loads none of the large libraries."""
    code = "import sys, anonymip; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "anonymip" in loaded
    assert not loaded & HEAVY


def test_every_module_has_a_room() -> None:
    """Each file of the package lies in a room of the plan."""
    assert INSIDE
    assert {room_of(path) for path in INSIDE} <= set(FLOOR)


def test_imports_run_downwards() -> None:
    """A module imports from its own room and those below, never from the face."""
    assert [one for path in INSIDE for one in upward_imports(path, text_of(path))] == []


@pytest.mark.parametrize(
    "source",
    [
        "import anonymip.solvers.adapters.highs",
        "from anonymip.solvers import highs",
        "from anonymip import solvers",
        "from anonymip import solve",
        "import anonymip",
        "from ..solvers import highs",
        "from .. import solvers",
        "if TYPE_CHECKING:\n    from anonymip.solvers.adapters.highs import Highs",
        "def late():\n    import anonymip.solvers",
        "late = 'anonymip.solvers.adapters.highs:Highs'",
    ],
)
def test_upward_imports_are_seen(source: str) -> None:
    """The walk over the imports sees every way to import a room above."""
    assert len(upward_imports(PACKAGE / "orders" / "surrogate.py", source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import numpy\nfrom pyomo import environ",
        "from anonymip.errors import InputError",
        "from anonymip import errors",
        "from . import reading\nfrom .reading import read",
        "from ..bounds.neighbours import bound",
        "target = 'anonymip.solvers.adapters.highs:Highs'",
    ],
)
def test_downward_imports_pass(source: str) -> None:
    """Imports from the same room and those below, and lazy strings, are no offence."""
    assert upward_imports(PACKAGE / "models" / "equivalence.py", source) == []


def test_wings_import_no_sister() -> None:
    """A file imports from its own wing and those below it, from no wing beside its own."""
    assert [one for path in INSIDE for one in imports_of_sisters(path, text_of(path))] == []


def test_imports_of_sisters_are_seen() -> None:
    """The walk sees a wing that imports one beside or above it, and lets those below pass."""
    source = "from anonymip.heuristics.freeform.nh import nh"
    path = PACKAGE / "heuristics" / "classes" / "hp.py"
    assert len(imports_of_sisters(path, source)) == 1
    upwards = "from anonymip.privacy.checks import truth"
    assert len(imports_of_sisters(PACKAGE / "privacy" / "reading" / "cells.py", upwards)) == 1
    named = 'HP = "anonymip.heuristics.freeform.nh:nh"'
    assert len(imports_of_sisters(path, named)) == 1
    downwards = "from anonymip.heuristics.growing.finish import finish"
    assert imports_of_sisters(path, downwards) == []


def test_wings_of_the_plan_exist() -> None:
    """Every wing that has a floor is a folder of its room."""
    for room, floors in WINGS.items():
        for wing in (name for floor in floors for name in floor):
            assert is_wing((*room.split("."), wing)), f"{room}.{wing}"


def test_no_circle() -> None:
    """No file imports itself by way of others; what a folder offers counts as its files."""
    imports = {
        module: {
            other
            for other in modules_imported(path, text_of(path))
            if not is_wing(other) and other != module
        }
        for module, path in MODULES.items()
        if not is_wing(module)
    }
    assert circles(imports) == []


def test_circles_are_seen() -> None:
    """The search finds files that import each other, and what hangs on them."""
    one, two, three = ("one",), ("two",), ("three",)
    assert circles({one: {two}, two: {three}, three: set()}) == []
    assert circles({one: {two}, two: {one}, three: set()}) == ["one", "two"]


def test_models_are_built_and_not_solved() -> None:
    """No formulation imports a solver, ours or another's: `build` never solves."""
    solvers = {"highspy", "pulp", "scipy.optimize"}
    offenders = [
        f"{label(path)}:{line} imports {name}"
        for path in INSIDE
        if room_of(path) == "models"
        for line, name in imported_modules(path, text_of(path))
        if name.startswith("anonymip.solvers") or any(name.startswith(one) for one in solvers)
    ]
    assert offenders == []


def test_solvers_alone_call_solvers() -> None:
    """Outside the solvers' room nobody imports HiGHS, PuLP or SciPy's linear programs."""
    solvers = {"highspy", "pulp", "scipy.optimize.linprog", "scipy.optimize.milp"}
    offenders = [
        f"{label(path)}:{line} imports {name}"
        for path in INSIDE
        if room_of(path) != "solvers"
        for line, name in imported_modules(path, text_of(path))
        if any(name == one or name.startswith(f"{one}.") for one in solvers)
    ]
    assert offenders == []


def test_verification_shares_nothing_with_what_it_verifies() -> None:
    """The privacy room imports from the package only the errors and itself."""
    paths = [path for path in SOURCES if room_of(path) == "privacy"]
    assert paths
    rooms = {room for path in paths for _, room in rooms_imported(path, text_of(path))}
    assert rooms <= {"errors", "privacy"}


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_no_module_hides_behind_an_exported_name(package: Path) -> None:
    """No module bears the name of a function or class that its package re-exports.

    `from package import name` would otherwise give the module on first use.
    """
    modules = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    init = package / "__init__.py"
    dotted = ".".join(package.relative_to(REPOSITORY).parts)
    exported = set(getattr(importlib.import_module(dotted), "__all__", ()))
    themselves: set[str] = set()
    for node in ast.walk(ast.parse(text_of(init))):
        if isinstance(node, ast.ImportFrom):
            own = absolute_name(node, init) == dotted
            names = {alias.asname or alias.name for alias in node.names}
            exported |= set() if own else names
            themselves |= names if own else set()
    assert exported & modules <= themselves


def test_no_room_without_a_subject() -> None:
    """Nothing in the package is called utils."""
    names = {part for path in SOURCES for part in path.relative_to(PACKAGE).with_suffix("").parts}
    assert not names & {"utils", "util", "utilities", "helpers", "misc"}


def test_pyplot_is_never_imported() -> None:
    """Figures are drawn without pyplot, which would choose a window system and keep state."""
    offenders = [
        f"{label(path)}:{line}"
        for path in SOURCES
        for line, name in imported_modules(path, text_of(path))
        if re.match(r"matplotlib\.pyplot\b|(matplotlib\.)?pylab\b", name)
    ]
    assert offenders == []


def test_public_names_are_listed_once() -> None:
    """The face lists its names once each, among them the main functions."""
    assert len(anonymip.__all__) == len(set(anonymip.__all__))
    assert {"anonymize", "solve", "publish", "__version__"} <= set(anonymip.__all__)


@pytest.mark.parametrize("name", [name for name in anonymip.__all__ if name != "__version__"])
def test_public_names_resolve_and_are_documented(name: str) -> None:
    """Every public function, class and module exists and has a docstring of its own."""
    value = getattr(anonymip, name)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert text
        # A dataclass or named tuple without docstring gets its signature for one.
        assert not text.startswith(f"{name}(")
    else:
        assert value is not None


def test_unknown_public_names_are_refused() -> None:
    """The lazy face raises AttributeError for a name that it does not have."""
    unknown = "no_such_name"
    with pytest.raises(AttributeError, match=unknown):
        getattr(anonymip, unknown)


def test_package_is_typed() -> None:
    """The marker that lets type checkers read the package's annotations is there."""
    assert (PACKAGE / "py.typed").is_file()


def test_version_is_stated_once() -> None:
    """Package, pyproject.toml and CITATION.cff state one version; the changelog has an entry."""
    version = PYPROJECT["project"]["version"]
    assert anonymip.__version__ == version
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*(?<![\d.]){re.escape(version)}(?![\d.])", changelog, re.MULTILINE)
    assert f"\nversion: {version}\n" in text_of(REPOSITORY / "CITATION.cff")


def test_constraints_pin_every_dependency() -> None:
    """Each dependency has one exact version in constraints.txt, within its declared range."""
    text = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)
    versions = {canonicalize_name(name): version for name, version in pins.items()}
    assert len(versions) == len(lines)
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    pinned = (project["dependencies"], extras["dev"], extras["notebooks"], extras["docs"])
    for declared in chain.from_iterable(pinned):
        requirement = Requirement(declared)
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier


def test_files_name_no_machine() -> None:
    """No file of the project contains a path into somebody's home directory."""
    assert [label(p) for p in project_files() if MACHINE_PATH.search(p.read_bytes())] == []


@pytest.mark.parametrize("path", ["home/ann/data.csv", "root/x", "Users/ann", "mnt/disk"])
def test_machine_paths_are_seen(path: str) -> None:
    """The search recognizes home directories, and no web address."""
    assert MACHINE_PATH.search(f"read '/{path}' first".encode())
    assert not MACHINE_PATH.search(f"https://example.org/{path}".encode())


def test_files_are_small() -> None:
    """No file of the project is larger than one megabyte."""
    assert [label(p) for p in project_files() if p.stat().st_size > MEGABYTE] == []


def too_long(text: str) -> bool:
    """Return whether a file has more lines than a reader takes in, and does not say why."""
    if len(text.splitlines()) <= LONGEST:
        return False
    reason = ast.get_docstring(ast.parse(text)) or ""
    return REASON not in " ".join(reason.split())


def test_long_files_say_why_they_are_one() -> None:
    """A file of more than 600 lines says "One file, since ..." in its first lines."""
    modules = [path for path in project_files() if path.suffix == ".py"]
    texts = {path: text_of(path) for path in modules}
    assert [label(path) for path, text in texts.items() if too_long(text)] == []


def test_long_files_are_seen() -> None:
    """One line too many fails; a reason in the docstring excuses a file."""
    lines = "x = 1\n" * LONGEST
    assert not too_long(lines)
    assert too_long('"""Many things."""\n' + lines)
    assert not too_long('"""A table.\n\nOne file,\nsince it is one table.\n"""\n' + lines)
