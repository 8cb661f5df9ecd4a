"""The command that says what a loss can be used with."""

from __future__ import annotations

from typing import Any

import pytest


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
