"""Tests of bad input, case by case: the message, the exit code, and that nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.bad_input import AGE_SEX, CASES, OBJECTIVES, PEOPLE, Case, K

RUNS = [
    pytest.param(case, command, id=f"{command}: {case.name}")
    for case in CASES
    for command in case.commands
]


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (("-o", "-"), ("manifest", "cannot go to standard output", "-o release.csv")),
        (("-o", "release.csv", "--report", "report.pdf"), ("report.pdf", "ends in .html")),
    ],
)
def test_outputs_of_another_kind(
    shell: Any, targets: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """No file is called - or promises a format that it has not."""
    shell.write("people.csv", PEOPLE)
    before = shell.files()
    result = shell("anonymize", "people.csv", *AGE_SEX, *K, *targets)
    assert (result.code, result.out) == (2, "")
    for word in words:
        assert word in result.err
    assert shell.files() == before


@pytest.mark.parametrize(("case", "command"), RUNS)
def test_bad_input(shell: Any, case: Case, command: str) -> None:
    """Bad input ends with exit code 2 and a message with remedy; nothing is written or shown."""
    (shell.folder / "mine.py").unlink()
    shell.write("people.csv", case.table)
    for name, text in case.files.items():
        shell.write(name, text)
    shell.write("release.csv", "an older release")
    shell.write("release.csv.manifest.json", "its manifest")
    before = shell.files()
    output = ("-o", "release.csv") if command == "anonymize" else ()
    result = shell(command, case.instance, *case.arguments, *output)
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    for word in case.words:
        assert word in result.err
    assert shell.files() == before
    if case.secret is not None:
        assert case.secret not in result.err
        shown = shell(command, case.instance, *case.arguments, *output, "--show-values")
        assert shown.code == 2
        assert case.secret in shown.err


@pytest.mark.parametrize("command", ["solve", "compare", "bound", "anonymize"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_that_cannot_be_used(shell: Any, name: str, command: str) -> None:
    """A user's file with a fault is the user's to mend: exit code 2, and what is wrong."""
    text, words = OBJECTIVES[name]
    shell.write("people.csv", PEOPLE)
    shell.write("mine.py", text)
    before = shell.files()
    output = ("-o", "release.csv") if command == "anonymize" else ()
    result = shell(command, "people.csv", *AGE_SEX, *K, "--objective", "mine.py:loss", *output)
    assert result.code == 2, result
    assert result.out == ""
    first, *rest = result.err.splitlines()
    assert first == "mine.py is run as Python code: it defines the objective"
    assert rest[0].startswith("error: ")
    for word in words:
        assert word in result.err
    assert shell.files() == before


def test_an_objective_that_no_model_expresses(shell: Any) -> None:
    """A formulation that needs a monotone loss refuses another, and names what takes it."""
    shell.write("fall.py", "def fall(record):\n    return -record.spread['age']\n")
    result = shell(
        *("solve", "people.csv", "--schema", "roles.toml", "-k", 3, "--objective", "fall.py:fall"),
        *("--method", "equivalence-mip", "--option", "equivalence-mip.formulation=bigm"),
    )
    assert result.code == 2
    for word in ("monotone", "'fall'", "'age'", "greedy-search", "set-partition"):
        assert word in result.err


@pytest.mark.parametrize("role", ["-q", "--sensitive", "--keep"])
def test_a_parquet_file_with_a_column_of_lists(shell: Any, role: str) -> None:
    """Cells that hold several values are bad input in every role that is published."""
    lists = pd.DataFrame({"age": [1, 2, 3, 4], "visits": [[1, 2]] * 4})
    lists.to_parquet(shell.folder / "lists.parquet")
    result = shell(
        *("anonymize", "lists.parquet", "-q", "age", role, "visits", "-k", 2, "-o", "out.csv")
    )
    assert result.code == 2, result
    assert "column 'visits'" in result.err
    assert "row 1. Write it as text" in result.err


@pytest.mark.parametrize("target", ["people.csv", "./people.csv", "link.csv", "hard.csv"])
def test_the_original_is_never_overwritten(shell: Any, target: str) -> None:
    """A release in the place of its original is refused, by whatever name it goes."""
    (shell.folder / "link.csv").symlink_to("people.csv")
    (shell.folder / "hard.csv").hardlink_to("people.csv")
    before = shell.files()
    result = shell("anonymize", "people.csv", "--schema", "roles.toml", "-k", 3, "-o", target)
    assert result.code == 2
    assert target.removeprefix("./") in result.err
    assert shell.files() == before


@pytest.mark.parametrize(
    ("target", "words"),
    [("people.csv/release.csv", "existing folder"), (".", "folder"), ("/", "folder")],
)
def test_a_place_that_cannot_be_written_to(shell: Any, target: str, words: str) -> None:
    """A file for a folder, and a folder for a file are refused."""
    before = shell.files()
    result = shell("anonymize", "people.csv", "--schema", "roles.toml", "-k", 3, "-o", target)
    assert result.code == 2
    assert words in result.err
    assert shell.files() == before


def test_a_folder_without_permission(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that the user may not write to is refused before any time is spent on solving."""

    def refuse(**arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    def never(*arguments: Any, **settings: Any) -> None:
        raise AssertionError("solved although nothing can be written")

    monkeypatch.setattr("anonymip.files.tempfile.mkstemp", refuse)
    monkeypatch.setattr("anonymip.anonymization.solve", never)
    result = shell(
        "anonymize", "people.csv", "--schema", "roles.toml", "-k", 3, "-o", "release.csv"
    )
    assert result.code == 2
    assert "cannot write release.csv: Permission denied" in result.err


def test_a_table_without_permission(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that the user may not read is bad input, for the solver and for the verifier."""
    shell("anonymize", "people.csv", "--schema", "roles.toml", "-k", 3, "-o", "release.csv")
    opened = Path.open

    def refuse(self: Path, *arguments: Any, **settings: Any) -> Any:
        if self.name == "people.csv":
            raise PermissionError(13, "Permission denied")
        return opened(self, *arguments, **settings)

    monkeypatch.setattr(Path, "open", refuse)
    for result in (
        shell("solve", "people.csv", "--schema", "roles.toml", "-k", 3),
        shell("verify", "people.csv", "release.csv"),
    ):
        assert result.code == 2
        assert "people.csv cannot be read: Permission denied" in result.err


def test_constant_columns_cost_nothing(shell: Any) -> None:
    """Columns with one value only are no error; their domain of width 0 costs 0."""
    shell.write("same.csv", "age,sex\n5,F\n5,F\n5,F\n")
    result = shell(
        *("anonymize", "same.csv", "-q", "age", "-q", "sex", "-k", 2, "-o", "release.csv"),
        *("--json", "-"),
    )
    (record,) = result.records()
    assert result.code == 0
    assert (record["objective"], record["gap"], record["status"]) == (0.0, 0.0, "optimal")
    assert shell.read("release.csv") == "age,sex\n5,F\n5,F\n5,F\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "x" * 300 + ".csv", "-k", 3),
        ("solve", "health-records", "-k", 3, "--objective", "x" * 300 + ".py:loss"),
        ("solve", "health-records", "-k", 3, "--schema", "x" * 300),
        ("verify", "people.csv", "x" * 300 + ".csv"),
    ],
    ids=["table", "objective", "schema", "release"],
)
def test_names_that_no_file_can_have(shell: Any, arguments: tuple[object, ...]) -> None:
    """An input whose name is too long for any file is not there, which is bad input."""
    result = shell(*arguments)
    assert result.code == 2, result
    assert result.err.startswith("error: ")
