"""What the page asks is what its command asks, and what its lines of Python ask."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import InputError, solve
from anonymip.app.question import ENDINGS, RECODINGS, Asked
from anonymip.cli.app import app

PEOPLE = "age,sex,zip,ill\n" + "".join(
    f"{20 + i * 7 % 40},{'FM'[i % 2]},{i % 5},{'abc'[i % 3]}\n" for i in range(24)
)
SCHEMA = (
    '[table]\nsensitive = ["ill"]\n[attributes.age]\ndomain = [0, 99]\nweight = 2\n'
    '[attributes.sex]\ndomain = ["F", "M"]\n'
    '[attributes.zip]\nkind = "categorical"\ndomain = ["0", "1", "2", "3", "4"]\n'
)
ASKED = st.builds(
    Asked,
    k=st.integers(2, 4),
    recoding=st.sampled_from(RECODINGS),
    effort=st.sampled_from(["quick", "normal"]),
    most_suppressed=st.sampled_from([0.0, 0.5, 12.5]),
    l_diversity=st.sampled_from([None, 2, 1.5]),
    distinct_diversity=st.sampled_from([None, 2]),
    t_closeness=st.sampled_from([None, 0.9]),
    caps=st.sampled_from([{}, {"age": 60}, {"age": 30.5, "zip": 3}]),
    weighted=st.booleans(),
    ending=st.sampled_from(ENDINGS),
)


def parsed(command: str) -> dict[str, Any]:
    """Return what the command line takes from a command."""
    program, name, *words = shlex.split(command)
    assert program == "anonymip"
    group = typer.main.get_command(app)
    return dict(group.commands[name].make_context(name, words).params)


@given(ASKED, st.sampled_from(["people.csv", "-k.csv", "my people (2).csv", "it's.csv"]))
@settings(max_examples=60)
def test_the_command_asks_the_same(asked: Asked, table: str) -> None:
    """The command line reads from the command what the page hands to the same functions."""
    found = parsed(asked.command(table, "schema.toml", "release-1"))
    question = asked.question(Path("schema.toml"))
    for group in (question.table, question.allowed, question.asked.rules, question.asked.stars):
        for name, value in asdict(group).items():
            if name in found and value not in (None, [], {}):
                assert found[name] == value
            elif name in found:
                assert not found[name]
    assert found["objective"] == question.asked.objective
    assert (found["k"], found["effort"]) == (asked.k, asked.effort)
    assert found["output"] == Path(f"release-1{asked.ending}")
    assert Path(found["instance"]) == Path(table)


@given(ASKED)
@settings(max_examples=12, deadline=None)
def test_the_lines_of_python_ask_the_same(tmp_path_factory: Any, asked: Asked) -> None:
    """The problem of the lines is that of the command, or both are refused."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "schema.toml").write_text(SCHEMA)
    lines = asked.python("people.csv", "schema.toml", "release")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        names: dict[str, Any] = {}
        before = lines.partition("solution =")[0]
        question = asked.question(Path("schema.toml"))
        try:
            problem = question.problem("people.csv", asked.k, "auto")
        except InputError as error:
            with pytest.raises(InputError, match=error.message[:20]):
                exec(before, names)
            return
        exec(before, names)
    same = names["problem"]
    assert same.recoding == problem.recoding
    assert same.objective.name == problem.objective.name
    assert (same.k, same.diversity, same.limits) == (problem.k, problem.diversity, problem.limits)
    assert same.microdata.attributes == problem.microdata.attributes


@pytest.mark.thorough
def test_the_lines_of_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They write the release whose loss the question has."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    monkeypatch.chdir(tmp_path)
    asked = Asked(k=3, effort="quick")
    names: dict[str, Any] = {}
    (tmp_path / "schema.toml").write_text(SCHEMA.replace("weight = 2\n", ""))
    exec(asked.python("people.csv", "schema.toml", "release"), names)
    problem = asked.question(Path("schema.toml")).problem("people.csv", 3, "auto")
    assert names["solution"].objective == solve(problem, effort="quick").objective
    assert (tmp_path / "release.csv.manifest.json").is_file()


@pytest.mark.parametrize(
    "given",
    [
        *(None, [], {"k": "5"}, {"k": True}, {"recoding": "best"}, {"caps": {"age": "x"}}),
        *({"new": 1}, {"ending": ".exe"}, {"weighted": 1}, {"caps": [1]}, {"effort": None}),
        *({"k": float("inf")}, {"k": 5.0}, {"caps": {"age": float("nan")}}, {"t_closeness": True}),
    ],
)
def test_what_is_no_question_is_refused(given: object) -> None:
    """A project's file may be anybody's."""
    with pytest.raises(InputError, match="project"):
        Asked.of(given)


@given(ASKED)
@settings(max_examples=20)
def test_questions_are_read_back(asked: Asked) -> None:
    """What a project holds of one is the question."""
    assert Asked.of(asdict(asked)) == asked
