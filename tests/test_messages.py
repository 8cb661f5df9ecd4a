"""What messages call things: options on the command line, arguments in Python; names much alike."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

import anonymip
from anonymip import AnonymipError, InputError, Problem, load_instance
from anonymip.cli.app import app, run
from anonymip.errors import argument, did_you_mean, naming_options, unknown_name
from anonymip.experiments import Experiment
from tests import profiles

PACKAGE = Path(anonymip.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
#: Where people type.
TYPED = sorted((PACKAGE / "cli").rglob("*.py"))
#: An option as one types it; other commands may have some.
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[a-z])(?![\w-])")
COMMAND = re.compile(r"'anonymip [^']*'|'cbc [^']*'|ulimit -[a-z]")
#: An argument as one writes it in Python; options of methods are given so in both.
ARGUMENT = re.compile(r"\b[a-z]+(_[a-z]+)*=(?!=)")
TYPED_VALUE = re.compile(r"--[a-z-]+ \S+")
PROBLEM = Problem(load_instance("health-records"), 3)


def texts_in(node: ast.AST) -> Iterator[str]:
    """Yield the texts of an expression that are written out in it; calls of `argument` are none."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
        return
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "argument":
        return
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.JoinedStr):
        known = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
        yield "".join(map(str, known))
        parts = [part for part in parts if not isinstance(part, ast.Constant)]
    for child in parts:
        yield from texts_in(child)


def sentences(node: ast.AST) -> Iterator[str]:
    """Yield all texts of a file that have several words and are no docstring: what may be read."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for part in ast.walk(node):
        if isinstance(part, described) and ast.get_docstring(part) is not None:
            part.body = part.body[1:]
    yield from (text for text in texts_in(node) if " " in text.strip())


@cache
def spoken(path: Path) -> list[str]:
    """Return what a file of the package may say."""
    return list(sentences(ast.parse(path.read_text(encoding="utf-8"))))


def calls_of_argument() -> list[ast.Call]:
    """Return all places where a message names an argument."""
    return [
        node
        for path in SOURCES
        if "argument(" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "argument"
        if node.args and isinstance(node.args[0], ast.Constant)
    ]


@cache
def options() -> set[str]:
    """Return the options of all commands."""
    commands: Any = typer.main.get_command(app)
    return {
        option
        for command in commands.commands.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


@cache
def parameters() -> set[str]:
    """Return the parameters of the public functions and classes, and of their methods."""
    found: set[str] = set()
    values = [getattr(anonymip, name) for name in anonymip.__all__] + [Experiment]
    for value in [one for one in values if callable(one)]:
        members = [one for _, one in inspect.getmembers(value, inspect.isfunction)]
        for one in (value, *members):
            try:
                found |= set(inspect.signature(one).parameters)
            except ValueError:
                continue
    return found


def test_messages_of_the_library_name_no_options() -> None:
    """Outside the command line's own room, options are named by `argument` alone."""
    files = [path for path in SOURCES if path not in TYPED]
    if profiles.NAME != "thorough":  # where no option stands, none is said
        files = [
            path for path in files if OPTION.search(path.read_text("utf-8").replace("\\n", " "))
        ]
    texts = [text for path in files for text in spoken(path)]
    assert len(texts) > 1_000 or profiles.NAME != "thorough"
    assert [text for text in texts if OPTION.search(COMMAND.sub("", text))] == []


def test_messages_of_the_command_line_name_no_arguments() -> None:
    """The command line says nothing in Python's words; what follows an option is typed."""
    texts = [TYPED_VALUE.sub("", text) for path in TYPED for text in spoken(path)]
    assert len(texts) > 100
    assert [text for text in texts if ARGUMENT.search(text)] == []


def test_the_search_sees_options_and_arguments() -> None:
    """Options in texts are found, in and behind brackets; dashes and commands are let pass."""
    for text in ("Add --keep", "leave it out (--drop)", "Name one (-q, or a schema)"):
        assert OPTION.search(text)
    for text in ("a k-member", "from 1 - 2", "'anonymip leaderboard --known' lists all"):
        assert not OPTION.search(COMMAND.sub("", text))
    source = (
        'raise Wrong(f"a {x} {y or "it is"}", remedy=f"Use {argument(\'k\', option=\'-k 1\')}")'
    )
    found = list(sentences(ast.parse(source.replace('"it is"', "'it is'"))))
    assert found == ["a {} {}", "it is", "Use {}"]
    assert ARGUMENT.search("give drop=...")


def test_arguments_that_messages_name_exist() -> None:
    """Each is a parameter of something public, and an option of some command."""
    calls = calls_of_argument()
    assert len(calls) > 20
    for call in calls:
        name = ast.literal_eval(call.args[0])
        assert name in parameters() | {"search"}, name
        option = next((word.value for word in call.keywords if word.arg == "option"), None)
        with naming_options():
            if option is None:
                text = argument(name)
            elif isinstance(option, ast.Constant):
                text = str(option.value)
            else:
                continue
        found = OPTION.findall(text)
        assert found or name == "search", text
        assert set(found) <= options(), text


def test_an_argument_is_said_in_two_ways() -> None:
    """In Python as it is written there, on the command line as an option, with its value."""
    assert argument("time_limit") == "time_limit"
    assert argument("drop", ...) == "drop=..."
    assert argument("missing", "drop") == "missing='drop'"
    assert argument("resume", True) == "resume=True"
    with naming_options():
        assert argument("time_limit") == "--time-limit"
        assert argument("drop", ...) == "--drop"
        assert argument("missing", "drop") == "--missing drop"
        assert argument("resume", True) == "--resume"
        assert argument("attributes", ..., option="-q") == "-q"
    assert argument("drop", ...) == "drop=..."


def test_one_mistake_is_told_in_both_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same missing value is refused with the option, or with the argument."""
    table = tmp_path / "people.csv"
    frame = pd.DataFrame({"age": [34, None, 36], "sex": ["F", "M", "F"]})
    frame.to_csv(table, index=False)
    assert run(["solve", str(table), "-k", "2", "-q", "age:numeric", "-q", "sex"]) == 2
    assert "--missing drop" in capsys.readouterr().err
    with pytest.raises(InputError) as caught:
        anonymip.anonymize(frame, ["age:numeric", "sex"], 2)
    assert "missing='drop'" in str(caught.value)
    assert "--" not in str(caught.value)


def test_options_are_named_only_while_a_command_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a command ends with, Python's messages are Python's afterwards."""
    assert run(["solve", "nowhere.csv", "-k", "2"]) == 2
    assert run(["--version"]) == 0
    capsys.readouterr()
    assert argument("drop", ...) == "drop=..."


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: anonymip.solve(PROBLEM, "mondrain"), "mondrian"),
        (lambda: anonymip.solve(PROBLEM, "Mondrian"), "mondrian"),
        (lambda: anonymip.solve(PROBLEM, solver="hihgs"), "highs"),
        (lambda: anonymip.solve(PROBLEM, effort="thorougher"), "thorough"),
        (lambda: anonymip.solve(PROBLEM, "hilbert", options={"celsl": "fixed"}), "cells"),
        (lambda: anonymip.compare(PROBLEM, [2], ["k-menber"]), "k-member"),
        (lambda: PROBLEM.replace(recoding="freefrom"), "freeform"),
        (lambda: PROBLEM.replace(objective="set_gcp"), "set-gcp"),
        (lambda: anonymip.load_objective("leafloss"), "leaf-loss"),
        (lambda: anonymip.build(PROBLEM, "big-m"), "bigm"),
        (lambda: anonymip.load_instance("health-record"), "health-records"),
        (lambda: anonymip.load_instance("library:census-1k-1-k5"), "census"),
        (lambda: anonymip.Attribute("age", "numerical"), "numeric"),
        (lambda: anonymip.publish(anonymip.solve(PROBLEM), layout="cell"), "cells"),
    ],
)
def test_names_much_alike_are_offered(call: Any, meant: str) -> None:
    """Who mistypes a name reads which one is meant."""
    with pytest.raises(InputError, match=rf"Did you mean .*{meant}.*\?"):
        call()


def test_names_like_none_get_the_list() -> None:
    """A name that is like none is answered by all names there are."""
    assert did_you_mean("xyzzy", ["mondrian", "hilbert"], "Ask") == "Ask"
    error = unknown_name("method", "xyzzy", ["mondrian", "hilbert"], more=", or none")
    assert str(error) == "unknown method 'xyzzy'. Use mondrian, hilbert, or none"
    assert str(unknown_name("method", 3, [])) == "unknown method 3. There is none"
    assert isinstance(error, AnonymipError)
