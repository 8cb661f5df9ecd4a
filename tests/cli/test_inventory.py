"""Tests of the commands about what there is: lists, leaderboard, losses, warm-up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anonymip import (
    INSTANCES,
    METHODS,
    Freeform,
    Problem,
    __version__,
    census,
    publish,
    solve,
    solver_names,
)
from anonymip.instances.library import catalogue
from anonymip.publishing.manifest import versions
from anonymip.solvers import Availability


def test_methods_are_listed(shell: Any) -> None:
    """Each method has a line with its recoding, role, needs, source and options."""
    result = shell("methods")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    for spec in METHODS.values():
        assert spec.recoding in lines[spec.name]
        assert spec.role in lines[spec.name]
        assert spec.source in lines[spec.name]
        for option in spec.options:
            assert f"{option.name}={option.default}" in lines[spec.name]


@pytest.mark.parametrize("name", ["greedy", "sort-greedy"])
def test_methods_say_that_they_follow_the_program(shell: Any, name: str) -> None:
    """Where the default is the authors' program and not the paper's text the list says so."""
    lines = {line.split()[0]: line for line in shell("methods").out.splitlines()}
    assert "authors' program" in lines[name]


@pytest.mark.thorough
def test_listing_methods_imports_none_of_them() -> None:
    """The registry is data: its listing loads no heuristic, no model and no solver."""
    code = (
        "import sys; from anonymip.cli.app import run; run(['methods'])\n"
        "rooms = ('anonymip.heuristics', 'anonymip.exact', 'anonymip.models', 'pyomo')\n"
        "print(*[name for name in sys.modules if name.startswith(rooms)], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "greedy-search" in ended.stdout
    assert ended.stderr == "\n"


def test_solvers_are_listed(shell: Any) -> None:
    """Each solver has a line; those of the default installation have full licences."""
    result = shell("solvers")
    assert result.code == 0
    lines = {line.split()[0]: line.split() for line in result.out.splitlines()}
    assert set(solver_names()) <= set(lines)
    assert lines["highs"][1:3] == ["yes", "full"]
    assert lines["cbc"][1:3] == ["yes", "full"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Availability(False, False, None, "Install it"), "no -"),
        (Availability(True, False, "9", "x", "none"), "yes none"),
        (
            Availability(True, False, "9", "x", "size-limited", 2000, 1500),
            "yes size-limited (2000 variables, 1500 rows)",
        ),
    ],
)
def test_licences_are_told(
    shell: Any, monkeypatch: pytest.MonkeyPatch, found: Availability, text: str
) -> None:
    """A licence for small models is reported with its limits, and a missing one too."""
    monkeypatch.setattr("anonymip.solvers.availability", lambda name: found)
    lines = [" ".join(line.split()) for line in shell("solvers").out.splitlines()]
    assert [line for line in lines if line.startswith(f"gurobi {text} ")]


def test_instances_are_listed(shell: Any) -> None:
    """Each named instance has a line with its source; built-in ones are here."""
    result = shell("instances")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert {*INSTANCES, "census:n,m,seed"} <= set(lines)
    assert lines["health-records"].split()[1] == "yes"
    assert INSTANCES["health-records"].source in lines["health-records"]


def test_absent_data_are_told(shell: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the data folder an instance of it is marked, and asking for it is bad input."""
    monkeypatch.setenv("ANONYMIP_DATA", str(tmp_path / "nowhere"))
    result = shell("instances")
    assert result.code == 0
    (line,) = [line for line in result.out.splitlines() if line.startswith("census-1k ")]
    assert "no (ANONYMIP_DATA)" in line
    refused = shell("solve", "census-1k", "-k", 3)
    assert refused.code == 2
    assert "ANONYMIP_DATA" in refused.err


def test_versions_are_told(shell: Any) -> None:
    """The versions of the package, what it depends on, and the solvers are printed."""
    result = shell("versions")
    assert result.code == 0
    found = re.findall(r"^(solver \S+|\S+) (.+)$", result.out, re.MULTILINE)
    assert len(found) == len(result.out.splitlines())
    lines = dict(found)
    assert lines["anonymip"] == __version__
    assert versions().items() <= lines.items()
    assert {f"solver {name}" for name in solver_names()} <= set(lines)


def test_a_function_of_a_file_without_a_table(shell: Any) -> None:
    """The attributes it reads make a table, and the answer says so."""
    result = shell("objective", "mine.py:protect_age", "--json", "-")
    (record,) = result.records()
    assert record["instance"] is None
    assert record["attributes"] == {"age": "numeric", "sex": "numeric"}
    assert (record["tier"], record["monotone"]) == ("affine", "proven")
    assert record["suppression_price"] == 5
    assert record["methods"]["equivalence-mip"] is None
    assert "made-up table" in result.err


def test_on_a_table(shell: Any) -> None:
    """With a table the kinds are the table's, and nothing is made up."""
    result = shell("objective", "mine.py:protect_age", "people.csv", *shell.roles)
    assert result.code == 0
    assert "made-up" not in result.out
    assert "affine" in result.out
    assert "proven" in result.out


def test_reasons_are_printed(shell: Any) -> None:
    """A refuted loss names the attribute, and each method that refuses it says why."""
    shell.write("bad.py", "def fall(record):\n    return -record.width['age']\n")
    result = shell("objective", "bad.py:fall", "people.csv", "--schema", "roles.toml")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines() if line}
    assert "refuted" in lines["monotone"]
    assert "'age'" in lines["monotone"]
    assert lines["bigm"].split()[1] == "no"
    assert "monotone" in lines["bigm"]
    assert lines["set-partition"].split()[1] == "yes"
    assert lines["mondrian"].split()[1] == "yes"
    assert lines["bound"].split()[1] == "none"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), ("unknown objective 'nothing'",)),
        (("absent.py:f",), ("there is no file",)),
        (("mine.py:protect_age", "health-records"), ("'age'",)),
        (("mine.py:nobody",), ("nobody",)),
    ],
)
def test_bad_input(shell: Any, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    """The message says what is wrong."""
    result = shell("objective", *arguments)
    assert result.code == 2
    for word in words:
        assert word in result.err


def test_a_file_that_is_run_is_named_once(shell: Any) -> None:
    """Whoever gives a file of Python, or a specification that names one, hears that it is run."""
    spec = (
        'name = "small"\nk = [2]\nbound = false\nobjective = "mine.py:protect_age"\n'
        'tables = [{instance = "people.csv", quasi_identifiers = ["age", "sex"],'
        ' drop = ["name", "zip", "disease", "visit"]}]\n[[methods]]\nmethod = "initial"\n'
    )
    shell.write("small.toml", spec)
    own = ("--objective", "mine.py:protect_age")
    for arguments in (
        ("objective", "mine.py:protect_age", "--json", "-"),
        ("solve", "people.csv", *shell.roles, "-k", 3, *own, "--method", "initial", "--json", "-"),
        ("compare", "people.csv", *shell.roles, "-k", "3", *own, "--methods", "initial,nh"),
        ("experiment", "small.toml", "--json", "-"),
    ):
        result = shell(*arguments)
        assert result.code == 0, result
        assert result.err.count("mine.py is run as Python code") == 1
        assert "Python code" not in result.out
    assert "Python code" not in shell("solve", "people.csv", *shell.roles, "-k", 3).err


def fresh(cache: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which has compiled nothing, with its own cache."""
    return subprocess.run(
        [sys.executable, "-m", "anonymip", *command],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        },
        check=True,
        capture_output=True,
        text=True,
    )


@pytest.mark.thorough
def test_what_commands_compile_is_told_once_and_warm_up_spares_it(tmp_path: Path) -> None:
    """Several methods and a bound: a pipe reads one line of all their kernels, then none.

    A warm-up says in one line what is ready and where; a second time nothing is compiled.
    """
    cache, written = tmp_path / "kernels", tmp_path / "done.json"
    command = ("compare", "census:40,3,1", "-k", "3", "--methods", "ordered-cut,initial")
    cold, warm = fresh(cache, *command), fresh(cache, *command)
    told = r"compiling about \d+ kernels, once; about \d+ s\n"
    assert re.fullmatch(told, cold.stderr), cold.stderr
    assert warm.stderr == ""
    first = fresh(cache, "warm-up", "hilbert", "--json", str(written))
    (record,) = json.loads(written.read_text(encoding="utf-8"))
    assert record["compiled"] >= 1
    assert record["folder"] == str(cache)
    ready = f"{record['kernels']} of {record['total']} kernels ready, with those they call"
    assert ready in first.stdout
    assert ": for hilbert; " in first.stdout
    assert record["total"] > 10 * record["kernels"]
    assert record["purpose"] == "hilbert"
    assert f"kept in {cache}" in first.stdout
    second = fresh(cache, "warm-up", "hilbert", "--json", "-")
    (again,) = json.loads(second.stdout)
    assert (again["compiled"], again["kernels"]) == (0, record["kernels"])
    assert ready in second.stderr


def test_warm_up_refuses_what_it_does_not_know(shell: Any) -> None:
    """A method that does not exist, as everywhere."""
    result = shell("warm-up", "mondrain")
    assert result.code == 2
    assert "unknown method 'mondrain'" in result.err


def test_publishing_a_cover_says_what_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk that draws an assignment takes seconds to compile, after the method has ended."""
    told: list[str] = []

    @contextmanager
    def announcing(left: Any) -> Iterator[None]:
        told.append("begins")
        assert left() is not None
        yield
        told.append("ends")

    monkeypatch.setattr("anonymip.publishing.release.announcing_compilation", announcing)
    problem = Problem(census(20, 2, seed=0), 2, Freeform())
    publish(solve(problem, "reassign"))
    assert told == ["begins", "ends"]


@pytest.fixture
def own_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the papers' tables that the command reads and writes, one figure worse."""
    folder = tmp_path / "library"
    folder.mkdir()
    file = folder / "papers.toml"
    entries = [
        replace(entry, loss=15.0, loss_by="luck") if entry.name == "person20-k3" else entry
        for entry in catalogue.read_family(catalogue.FOLDER / "papers.toml")
    ]
    file.write_text("# Tables.\n", encoding="utf-8")
    file.write_text(catalogue.family_text(file, entries), encoding="utf-8")
    monkeypatch.setattr(catalogue, "FOLDER", folder)
    catalogue.library.cache_clear()
    yield file
    catalogue.library.cache_clear()


def test_what_is_known_is_printed_without_a_run(shell: Any) -> None:
    """Every entry has a line."""
    result = shell("leaderboard", "--known")
    assert result.code == 0
    assert len(result.out.splitlines()) == 1 + len(catalogue.library())
    lines = {line.split()[0]: line.split()[1:8] for line in result.out.splitlines()}
    assert lines["person20-k3"] == ["20", "3", "classes", "gcp", "13.5", "13.49999", "proven"]


def test_methods_are_run_and_written(shell: Any) -> None:
    """The table of methods, the page, the records."""
    asked = ("--instance", "person20-k3", "--method", "mondrian", "--method", "hp")
    result = shell("leaderboard", *asked, "-o", "board.md", "--json", "-")
    assert result.code == 0, result.err
    one, two = result.records()
    assert {one["method"], two["method"]} == {"mondrian", "hp"}
    for record in (one, two):
        assert record["optimum"] == pytest.approx(13.5)
        assert record["distance"] == pytest.approx(record["objective"] / 13.5 - 1)
    assert "| classes | mondrian | 1 |" in shell.read("board.md")
    assert "mondrian" in result.err


def test_a_release_is_handed_in_and_kept(shell: Any, own_library: Path) -> None:
    """`solve` writes it, the library takes it if it is better, and says so once."""
    name = "library:person20-k3"
    solved = shell("solve", name, "-k", 3, "--method", "local-search", "--json", "mine.json")
    assert solved.code == 0, solved.err
    result = shell("leaderboard", "--check", "mine.json", "--json", "-")
    assert result.code == 0, result.err
    assert result.records()[0]["better"] is True
    assert "the best known was 15 " in result.err
    before = catalogue.read_family(own_library)
    assert shell("leaderboard", "--check", "mine.json", "--update").code == 0
    changed = [
        (old, new)
        for old, new in zip(before, catalogue.read_family(own_library), strict=True)
        if old != new
    ]
    assert [(old.loss, new.name, new.loss) for old, new in changed] == [
        (15.0, "person20-k3", pytest.approx(13.5))
    ]
    catalogue.library.cache_clear()
    again = shell("leaderboard", "--check", "mine.json")
    assert "no better than the best known, 13.5" in again.out
    kept = catalogue.release_file("person20-k3")
    assert kept.parent.parent == own_library.parent
    again = shell("leaderboard", "--check", str(kept))
    assert "no better than the best known, 13.5" in again.out


def test_what_a_run_finds_is_kept(shell: Any, own_library: Path) -> None:
    """The release lies beside the figure, and is of who found it; others are not written."""
    asked = ("--instance", "person20-k3", "--instance", "person20-k4", "--method", "local-search")
    assert shell("leaderboard", *asked, "--update").code == 0
    catalogue.library.cache_clear()
    assert [path.name for path in (own_library.parent / "releases").iterdir()] == [
        "person20-k3.json"
    ]
    (record,) = json.loads(catalogue.release_file("person20-k3").read_text(encoding="utf-8"))
    entry = catalogue.find_entry("person20-k3")
    assert entry.loss_by == f"{record['method']}, AnonyMIP {record['versions']['anonymip']}"
    assert entry.loss_by.startswith("local-search, ")


def test_a_release_that_is_not_allowed_fails_its_check(shell: Any, own_library: Path) -> None:
    """Exit code 1, as of any verification: the file, the entry's rule, and what to hand in."""
    name = "library:person20-k3"
    assert shell("solve", name, "-k", 3, "--method", "mondrian", "--json", "mine.json").code == 0
    (record,) = json.loads(shell.read("mine.json"))
    before = own_library.read_bytes()
    for groups in (list(range(20)), [0] * 19, [-5] * 20):
        shell.write("mine.json", json.dumps([{**record, "groups": groups}]))
        result = shell("leaderboard", "--check", "mine.json", "--update")
        assert result.code == 1, result
        assert "mine.json holds no release that its entry allows" in result.err
        assert "anonymip solve --json" in result.err
    shell.write("mine.json", json.dumps([{**record, "groups": [2**40] * 20}]))
    assert shell("leaderboard", "--check", "mine.json").code == 2
    assert own_library.read_bytes() == before


def test_what_cannot_be_checked_is_bad_input(shell: Any) -> None:
    """No file, no JSON, several releases; nothing is written."""
    shell.write("text.json", "hello")
    shell.write("two.json", json.dumps([{}, {}]))
    for file, words in (
        ("nowhere.json", "no JSON"),
        ("text.json", "no JSON"),
        ("two.json", "does not hold one record"),
    ):
        result = shell("leaderboard", "--check", file, "--update")
        assert result.code == 2
        assert words in result.err
    result = shell("leaderboard", "--instance", "nothing")
    assert result.code == 2
    assert "no entry 'nothing'" in result.err
