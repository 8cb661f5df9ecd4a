"""An installed package: what it registers is known to every command."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import (
    Classes,
    InputError,
    InvalidAssignment,
    Problem,
    Solution,
    load_instance,
    load_objective,
)
from anonymip.cli.app import run as run_command
from anonymip.methods import registry as methods
from anonymip.models import formulations
from anonymip.objectives.losses import loading as objectives
from anonymip.recodings import registry as recodings
from anonymip.recodings.registry import find_recoding
from anonymip.solvers import registry as solvers
from tests import profiles

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
Ended = subprocess.CompletedProcess[str]
Run = Callable[..., Ended]


@contextmanager
def installed(place: Path) -> Iterator[None]:
    """Let the packages of a folder be installed in this process, none of them imported yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(place))
        importlib.invalidate_caches()
        for room in (methods, objectives, recodings, formulations, solvers):
            outside = room._OUTSIDE
            patch.setattr(outside, "_found", {})
            patch.setitem(vars(outside), "_entries", None)
            patch.delitem(vars(outside), "_entries")
        patch.setattr(methods, "_methods", dict(methods._methods))
        before = set(sys.modules)
        try:
            yield
        finally:
            for name in set(sys.modules) - before:
                if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(place):
                    del sys.modules[name]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in a folder of its own, with packages "installed"."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, place: Path = HERE) -> Ended:
        capsys.readouterr()
        with installed(place):
            code = run_command(list(arguments))
        written = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, written.out, written.err)

    return call


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Return a function that does the same in a process of its own, for any code."""

    def call(*arguments: str, installed: Path = HERE) -> Ended:
        paths = os.pathsep.join((str(REPOSITORY), str(installed)))
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )

    return call


def records(ended: Ended) -> list[dict[str, Any]]:
    """Return the JSON that a command printed."""
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found


def install(folder: Path, name: str, entry_points: str, **modules: str) -> Path:
    """Lay a package of some modules and its metadata into a folder."""
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    for module, content in modules.items():
        (folder / f"{module}.py").write_text(content)
    return folder


def test_methods_are_listed(run: Run) -> None:
    """Both ways to register a method, a decorated function and a spec, are in the list."""
    ended = run("methods")
    assert ended.returncode == 0
    assert ended.stderr == ""
    lines = {line.split()[0]: line for line in ended.stdout.splitlines()}
    assert "reverse=False" in lines["lexicographic"]
    assert lines["fixed-size-cut"].split()[1:3] == ["fixed-size", "heuristic"]


def test_a_built_in_method_imports_no_package(python: Run) -> None:
    """Looking up what is built in leaves other packages alone; a spec imports no method."""
    code = (
        "import sys, anonymip\n"
        "loaded = lambda: sorted(n for n in sys.modules if n.startswith('anonymip_example'))\n"
        "from anonymip.methods import find_method\n"
        "from anonymip.recodings.registry import find_recoding\n"
        "find_method('mondrian'), anonymip.load_objective('gcp'), find_recoding('classes')\n"
        "problem = anonymip.Problem(anonymip.load_instance('health-records'), 3)\n"
        "anonymip.build(problem, 'bigm'), anonymip.solve(problem, 'mondrian')\n"
        "assert loaded() == [], loaded()\n"
        "find_method('fixed-size-cut')\n"
        "assert loaded() == ['anonymip_example', 'anonymip_example.specs'], loaded()\n"
    )
    if profiles.NAME == "thorough":
        ended = python("-c", code)
        assert ended.returncode == 0, ended.stderr
    else:
        with installed(HERE):
            exec(code, {})


def test_compare_takes_part(run: Run) -> None:
    """A method from outside is among the heuristics that are compared by default."""
    found = records(run("compare", "health-records", "-k", "3", "--json", "-"))
    methods = [record["method"] for record in found]
    assert "lexicographic" in methods
    assert "mondrian" in methods
    assert "fixed-size-cut" not in methods
    assert all(record["bound"] <= record["objective"] for record in found)


def test_solve_with_options_and_objective(run: Run) -> None:
    """Options of a method from outside are read, and an objective is found by its name."""
    (found,) = records(
        run(
            *("solve", "health-records", "-k", "3", "--json", "-"),
            *("--method", "lexicographic", "--option", "lexicographic.reverse=yes"),
            *("--objective", "squared_spread"),
        )
    )
    assert found["objective_name"] == "squared_spread"
    # Sorted by age; cut from the oldest, the remainder lies with the youngest.
    assert found["groups"] == [0, 0, 0, 0, 1, 1, 1]
    assert 0 < found["bound"] <= found["objective"] < found["ncp"]


@pytest.mark.parametrize("named", [(), ("--recoding", "fixed-size")])
def test_anonymize_with_a_recoding(run: Run, tmp_path: Path, named: tuple[str, ...]) -> None:
    """A method brings its recoding; its release verifies and says what was not verified."""
    table = tmp_path / "people.csv"
    table.write_text("age,sex\n" + "".join(f"{20 + i * i},{'FM'[i % 2]}\n" for i in range(8)))
    (found,) = records(
        run(
            *("anonymize", "people.csv", "-q", "age", "-q", "sex", "-k", "3"),
            *("--method", "fixed-size-cut", *named, "-o", "release.csv", "--json", "-"),
        )
    )
    assert found["recoding"] == "fixed-size"
    assert found["groups"] == [0, 0, 0, 1, 1, 1, 1, 1]
    verified = run("verify", "people.csv", "release.csv", "-k", "3")
    assert verified.returncode == 0, verified.stderr
    manifest = json.loads((tmp_path / "release.csv.manifest.json").read_text())
    assert manifest["recoding"] == "classes"
    assert any("fixed-size" in line for line in manifest["assumed"])


def test_the_rules_of_the_recoding_are_checked(run: Run) -> None:
    """What breaks the recoding's own rule is no solution of it, and others refuse it."""
    with installed(HERE):
        fixed = find_recoding("fixed-size")
        problem = Problem(load_instance("census:8,2,1"), 2, recoding=fixed)
        good = Classes(np.array([0, 0, 1, 1, 2, 2, 2, 2]))
        Solution.of(problem, good, method="hand")
        bad = Classes(np.array([0, 0, 0, 1, 1, 1, 2, 2]))
        with pytest.raises(InvalidAssignment, match="second class of other than 2"):
            Solution.of(problem, bad, method="hand")
    other = run(
        *("solve", "health-records", "-k", "3"),
        *("--recoding", "fixed-size", "--method", "mondrian"),
    )
    assert other.returncode == 2
    assert "Use fixed-size-cut" in other.stderr
    starred = run(
        *("solve", "health-records", "-k", "3", "--suppression"), *("--method", "fixed-size-cut")
    )
    assert starred.returncode == 2
    assert "fixed-size does not suppress" in starred.stderr


def test_a_bound_on_a_recoding_from_outside(run: Run) -> None:
    """The bound on any release holds for the recoding, since it publishes classes."""
    outside = ("bound", "health-records", "-k", "3", "--json", "-")
    (found,) = records(run(*outside, "--recoding", "fixed-size"))
    (plain,) = records(run(*outside))
    # Whose classes may be larger than 2k - 1, so that no set of them is left out.
    assert 0 < found["bound"] <= plain["bound"]


def test_a_formulation_takes_part(run: Run) -> None:
    """A model from outside is built, solved and listed; what it forbids is no proof of anything.

    The first and the last record are kept together, which the best release does not do.
    """
    asked = ("solve", "health-records", "-k", "2", "--method", "equivalence-mip", "--json", "-")
    own = ("--option", "equivalence-mip.formulation=together")
    (best,) = records(run(*asked))
    (found,) = records(run(*asked, *own, "--option", "equivalence-mip.warm_start=none"))
    assert found["options"]["formulation"] == "together"
    assert found["groups"][0] == found["groups"][-1]
    assert found["objective"] > best["objective"]
    assert found["status"] != "optimal"
    assert found["bound"] <= best["objective"]
    listed = run("objective", "gcp", "health-records")
    assert "together" in listed.stdout


def test_an_infeasible_model_from_outside_proves_nothing(run: Run) -> None:
    """That a package's model has no solution does not mean that there is no release."""
    ended = run(
        *("solve", "health-records", "-k", "3", "--method", "equivalence-mip", "--json", "-"),
        *("--option", "equivalence-mip.formulation=impossible"),
    )
    (found,) = records(ended)
    assert found["objective"] > 0
    assert found["status"] != "infeasible"


def test_a_solver_takes_part(run: Run) -> None:
    """A solver from outside solves by its name, and is listed with the others."""
    listed = run("solvers")
    assert listed.returncode == 0
    assert any(line.split()[0] == "borrowed" for line in listed.stdout.splitlines())
    (found,) = records(
        run(
            *("solve", "health-records", "-k", "3", "--method", "equivalence-mip"),
            *("--option", "equivalence-mip.formulation=bigm", "--solver", "borrowed"),
            *("--json", "-"),
        )
    )
    assert found["solver"] == "Borrowed 1.0"
    assert found["status"] == "optimal"
    unknown = run("solve", "health-records", "-k", "3", "--solver", "borowed")
    assert unknown.returncode == 2
    assert "Did you mean 'borrowed'?" in unknown.stderr


def test_what_a_method_adopts_bears_its_name(run: Run) -> None:
    """A solution is found again by the name that it was asked for by."""
    (found,) = records(
        run("solve", "health-records", "-k", "3", "--method", "adopting", "--json", "-")
    )
    assert found["method"] == "adopting"
    assert found["groups"][0] == found["groups"][-1]
    listed = run("compare", "health-records", "-k", "3", "--methods", "adopting", "--json", "-")
    assert [record["method"] for record in records(listed)] == ["adopting"]


SPEC = "from anonymip.methods import MethodSpec\nmagic = MethodSpec"
REGISTER = "from anonymip import register_method\n\n@register_method"
#: Modules that register no usable method, and the reason given.
BROKEN_METHODS = {
    "import": ("import no_such_module\n", "No module named 'no_such_module'"),
    "exit": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "nothing": ("", "AttributeError"),
    "number": ("magic = 7\n", "registers an object of type int"),
    "plain": ("def magic(problem): ...\n", "type function. Register a MethodSpec"),
    "renamed": (f"{SPEC}('other', 'classes', 'heuristic', 'a:b', 'c')\n", "calls itself 'other'"),
    "role": (f"{SPEC}('role', 'classes', 'wizard', 'a:b', 'c')\n", "unknown role 'wizard'"),
    "late": (f"{REGISTER}('late')\ndef magic(problem): ...\n1 / 0\n", "ZeroDivisionError"),
    "clash": (f"{REGISTER}('mondrian')\ndef magic(problem): ...\n", "'mondrian' already"),
}


@pytest.fixture
def broken_methods(tmp_path: Path) -> Path:
    """Return a folder with one installed package for each kind of broken method."""
    place = tmp_path / "site"
    for name, (content, _) in BROKEN_METHODS.items():
        entry = f"[anonymip.methods]\n{name} = broken_{name}:magic\n"
        install(place, f"{name}-package", entry, **{f"broken_{name}": content})
    return place


def test_broken_methods_are_left_out(run: Run, broken_methods: Path) -> None:
    """One line for each names package and reason, and all else works."""
    listed = run("methods", place=broken_methods)
    assert listed.returncode == 0
    names = {line.split()[0] for line in listed.stdout.splitlines()}
    assert "mondrian" in names
    assert not names & set(BROKEN_METHODS)
    lines = listed.stderr.splitlines()
    assert len(lines) == len(BROKEN_METHODS)
    for name, (_, reason) in BROKEN_METHODS.items():
        start = f"warning: method '{name}' of the package {name}-package is left out: "
        (line,) = [line for line in lines if line.startswith(start)]
        assert reason in line


def test_asking_for_a_broken_method(run: Run, broken_methods: Path) -> None:
    """By name it is bad input with the reason; packages not asked for are not imported."""
    asked = run(*("solve", "health-records", "-k", "3", "--method", "late"), place=broken_methods)
    assert asked.returncode == 2
    warning, error = asked.stderr.splitlines()
    assert warning.startswith("warning: method 'late' of the package late-package")
    assert error.startswith("error: method 'late' of the package late-package is left out")
    assert "ZeroDivisionError" in error


def test_built_in_names_win(run: Run, tmp_path: Path) -> None:
    """A package cannot replace a method, an objective or a recoding; it is not even imported."""
    place = install(
        tmp_path / "site",
        "greedy-package",
        "[anonymip.methods]\nmondrian = grabbing:it\n"
        "[anonymip.objectives]\ngcp = grabbing:it\n"
        "[anonymip.recodings]\nclasses = grabbing:it\n"
        "[anonymip.formulations]\nbigm = grabbing:it\n"
        "[anonymip.solvers]\nhighs = grabbing:it\n",
        grabbing="raise RuntimeError('imported')\n",
    )
    listed = run("methods", place=place)
    assert listed.returncode == 0
    assert listed.stdout.count("\nmondrian") == 1
    assert "greedy-package is left out: the name is that of a built-in one" in listed.stderr
    assert "imported" not in listed.stderr
    solved = run(
        *("solve", "health-records", "-k", "3", "--method", "mondrian"),
        *("--objective", "gcp", "--recoding", "classes", "--solver", "highs"),
        place=place,
    )
    assert solved.returncode == 0
    # Where its kernels are not on disk yet, it says that it compiles them.
    assert all(line.startswith("compiling ") for line in solved.stderr.splitlines())


def look_up(find: Callable[[str], Any], name: str) -> tuple[str, list[str]]:
    """Return the module of what is found, or why it is not, and the warnings."""
    with warnings.catch_warnings(record=True) as result:
        warnings.simplefilter("always")
        try:
            found = find(name).function.__module__
        except InputError as error:
            found = str(error)
    return found, [str(warning.message) for warning in result]


def test_of_two_packages_one_has_the_name(tmp_path: Path) -> None:
    """The first in the alphabet has it; the other is named in a warning."""
    place = tmp_path / "site"
    for name in ("b", "a"):
        install(
            place,
            f"{name}-package",
            f"[anonymip.objectives]\nmine = from_{name}:mine\n",
            **{f"from_{name}": f"def mine(record):\n    return {ord(name)}\n"},
        )
    with installed(place):
        found, result = look_up(load_objective, "mine")
    assert found == "from_a"
    assert result == [
        (
            "objective 'mine' of the package b-package is left out: "
            "the package a-package registers the same name"
        )
    ]


#: Modules that register no usable objective or recoding, and the reason given.
BROKEN_OTHERS = {
    "objective_number": ("objectives", "it = 7\n", "type int. Register an Objective"),
    "objective_renamed": ("objectives", "def it(record): ...\n", "calls itself 'it'"),
    "recoding_number": ("recodings", "it = 7\n", "type int, which has no "),
    "recoding_renamed": (
        "recodings",
        "from anonymip import EquivalenceClasses as it\n",
        "calls itself 'classes'",
    ),
    "formulation_number": ("formulations", "it = 7\n", "type int. Register a Formulation"),
    "formulation_renamed": (
        "formulations",
        "from anonymip.models import FORMULATIONS\nit = FORMULATIONS['bigm']\n",
        "calls itself 'bigm'",
    ),
    "solver_number": ("solvers", "it = 7\n", "type int, which has no name, capabilities"),
    "solver_missing": ("solvers", "import no_such_module\n", "ModuleNotFoundError"),
    "recoding_needy": ("recodings", "class it:\n    def __init__(self, k): ...\n", "TypeError"),
}


FINDERS: dict[str, Callable[[str], Any]] = {
    "objectives": load_objective,
    "recodings": find_recoding,
    "formulations": formulations.choices_of,
    "solvers": solvers.get_solver,
}


def test_broken_others(tmp_path: Path) -> None:
    """What is none of what its group registers is refused by name, package and reason."""
    place = tmp_path / "site"
    for name, (group, content, _) in BROKEN_OTHERS.items():
        entry = f"[anonymip.{group}]\n{name} = module_{name}:it\n"
        install(place, f"package-of-{name}", entry, **{f"module_{name}": content})
    with installed(place):
        for name, (group, _, reason) in BROKEN_OTHERS.items():
            error, result = look_up(FINDERS[group], name)
            said = f"{group[:-1]} '{name}' of the package package-of-{name} is left out: "
            assert error.startswith(said)
            assert reason in error
            (warning,) = result
            assert warning.startswith(said)
            assert reason in warning


def test_metadata_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    """A malformed file of entry points costs a warning, not the command."""
    place = install(tmp_path / "site", "bad-package", "[anonymip.methods]\nno equals sign\n")
    ended = run("methods", place=place)
    assert ended.returncode == 0
    assert "mondrian" in ended.stdout
    assert ended.stderr.count("warning: ") == 1
