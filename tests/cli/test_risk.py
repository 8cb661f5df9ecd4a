"""Tests of `risk`: a table alone, before and after, with weights and a population."""

from __future__ import annotations

from typing import Any

import pytest

import anonymip


def test_a_table_and_its_release(shell: Any) -> None:
    """The command prints what the library returns, and no value of the table in any form."""
    alone = shell("risk", "people.csv", "-q", "age", "-q", "sex", "--sensitive", "disease", "-k", 3)
    assert alone.code == 0
    assert alone.out.startswith("Who knows age, sex of a person finds her record")
    asked = anonymip.risk("people.csv", None, ["age", "sex"], sensitive=["disease"], k=3)
    assert alone.out == f"{asked}\n"
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    both = shell("risk", "people.csv", "release.csv", "--population", "people.csv")
    assert both.code == 0
    assert " before " in both.out
    assert "journalist risk, largest" in both.out
    (record,) = shell("risk", "people.csv", "release.csv", "--json", "-").records()
    assert (record["original"], record["release"]) == ("people.csv", "release.csv")
    assert (record["n"], record["m"], record["k"]) == (7, 3, 3)
    assert record["before"]["unique"] == 7
    assert record["after"]["below_k"] == 0
    assert record["after"]["prosecutor"]["largest"] <= 1 / 3
    assert record["after"]["homogeneous"].keys() == {"disease"}
    for value in ("Ann", "02138", "gout", "mumps"):
        assert value not in alone.out + both.out + str(record)


def test_schemas_named_tables_and_weights(shell: Any) -> None:
    """Roles come from a schema or a named table; a column of weights is read."""
    shell.write("w.csv", shell.read("people.csv").replace("visit", "weight"))
    weighted = shell("risk", "w.csv", "-q", "age", "--weights", "weight")
    assert weighted.code == 0
    assert "expected population uniques" in weighted.out
    assert shell("risk", "people.csv", "--schema", "roles.toml").code == 0
    named = shell("risk", "health-records", "-k", 2)
    assert named.code == 0
    assert "records in classes below k = 2" in named.out


def test_covers_show_what_known_matches_leave(shell: Any) -> None:
    """Below the table of a freeform release stands the curve, unless no draws are asked for."""
    freeform = ("--recoding", "freeform", "-o", "release.csv")
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, *freeform)
    drawn = shell("risk", "people.csv", "release.csv", "--draws", 3)
    assert "rows that can be hers" in drawn.out
    assert "1 known matches leave" in drawn.out
    assert "known matches" not in shell("risk", "people.csv", "release.csv", "--draws", 0).out


@pytest.mark.parametrize(
    "arguments",
    [
        ("people.csv",),
        ("nowhere.csv", "-q", "age"),
        ("people.csv", "nowhere.csv"),
        ("people.csv", "-q", "salary"),
        ("people.csv", "-q", "age", "--weights", "disease"),
        ("people.csv", "-q", "age", "--population", "nowhere.csv"),
        ("people.csv", "release.csv", "-q", "age"),
        ("people.csv", "-q", "age", "--json", "people.csv"),
        ("health-records", "-q", "Age"),
    ],
)
def test_what_cannot_be_measured_is_bad_input(shell: Any, arguments: tuple[str, ...]) -> None:
    """The exit code is 2, with a message and a remedy, and no file is changed."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    shell.refused("risk", *arguments)


def test_a_changed_release_is_not_measured(shell: Any) -> None:
    """Its manifest was written for another table."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    shell.write("release.csv", shell.read("release.csv").replace("mumps", "cough"))
    result = shell("risk", "people.csv", "release.csv")
    assert result.code == 2
    assert "not the one that the manifest was written for" in result.err
