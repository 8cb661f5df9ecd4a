"""Tests of `verify`: a release alone, with another manifest, with others of the same table."""

from __future__ import annotations

import json
from typing import Any

import pytest


def test_a_tampered_release_fails(shell: Any) -> None:
    """A changed cell ends verification with exit code 1 and the names of column and row."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    shell.write("release.csv", shell.read("release.csv").replace("mumps", "cough"))
    result = shell("verify", "people.csv", "release.csv")
    assert result.code == 1
    assert result.out.startswith("The release FAILS.")
    assert "PROBLEM: " in result.out
    assert "cough" not in result.out + result.err


def test_insisting_on_a_larger_k(shell: Any) -> None:
    """A release of k = 3 fails where k = 4 is insisted on."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    assert shell("verify", "people.csv", "release.csv", "-k", 3).code == 0
    assert shell("verify", "people.csv", "release.csv", "-k", 4).code == 1


def test_verification_as_json(shell: Any) -> None:
    """The findings are written as JSON, for a release that holds and for one that fails."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    (holds,) = shell("verify", "people.csv", "release.csv", "--json", "-").records()
    assert holds["ok"] is True
    assert holds["k_reached"] == 3
    assert holds["problems"] == []
    shell.write("release.csv", "\n".join(shell.read("release.csv").splitlines()[:-1]) + "\n")
    failed = shell("verify", "people.csv", "release.csv", "--json", "-")
    assert failed.code == 1
    assert failed.records()[0]["ok"] is False
    assert failed.records()[0]["problems"]


def test_another_manifest(shell: Any) -> None:
    """A manifest that lies elsewhere is named."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    (shell.folder / "release.csv.manifest.json").rename(shell.folder / "m.json")
    assert shell("verify", "people.csv", "release.csv").code == 2
    assert shell("verify", "people.csv", "release.csv", "--manifest", "m.json").code == 0


def test_a_folder_is_told_from_a_file_that_is_missing(shell: Any) -> None:
    """Whoever names a folder for the original or the release reads that it is one."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    for arguments in ((".", "release.csv"), ("people.csv", ".")):
        result = shell("verify", *arguments)
        assert result.code == 2
        assert "'.' is a folder, not a file. Name the file of the " in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("people.csv", "nowhere.csv"),
        ("nowhere.csv", "release.csv"),
        ("people.csv", "people.csv"),
        ("people.csv", "release.csv", "--schema", "nowhere.toml"),
        ("people.csv", "release.csv", "-k", "0"),
        ("people.csv", "release.csv", "--json", "people.csv"),
        ("people.csv", "release.csv", "--json", "release.csv.manifest.json"),
        ("mine.py", "release.csv"),
    ],
)
def test_what_cannot_be_verified_is_bad_input(shell: Any, arguments: tuple[str, ...]) -> None:
    """Absent or foreign files end with exit code 2, a message, and no file changed."""
    shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    shell.refused("verify", *arguments)


def test_releases_are_verified_together(shell: Any) -> None:
    """Each holds alone; where visits link them nobody has k rows left, which is exit code 1."""
    shell.write("crossed.csv", "x,town,visit\n1,a,01\n2,b,02\n5,a,03\n6,b,04\n")
    for name, identifier, other in (("one", "x", "town"), ("two", "town", "x")):
        for keep, role in (("visits", "--keep"), ("none", "--drop")):
            result = shell(
                *("anonymize", "crossed.csv", "-q", identifier, "--drop", other, role, "visit"),
                *("-k", 2, "-o", f"{name}-{keep}.csv"),
            )
            assert result.code == 0
    together = ("verify", "crossed.csv", "one-visits.csv", "--together-with", "two-visits.csv")
    result = shell(*together)
    assert result.code == 1
    assert result.out.startswith("The release keeps its promises.")
    assert (
        "4 of 4 records have fewer than k = 2 rows left that can be theirs, 4 of them" in result.out
    )
    (record,) = shell(*together, "--json", "-").records()
    assert record["ok"]
    assert record["together"]["with"] == ["two-visits.csv"]
    assert (record["together"]["fewer"], record["together"]["unique"]) == (4, 4)
    assert shell("verify", "crossed.csv", "one-none.csv", *together[3:]).code == 0
    assert shell(*together[:3], "--together-with", "one-visits.csv").code == 0
    result = shell(*together, "--together-with", "missing.csv")
    assert result.code == 2
    assert "missing.csv" in result.err
    result = shell(*together, "--json", "two-visits.csv")
    assert result.code == 2
    shell.write("one-visits.csv", shell.read("one-visits.csv").replace("01", "09"))
    result = shell(*together)
    assert result.code == 1
    assert "records have fewer" not in result.out


@pytest.mark.parametrize("name", ["person20", "clinic-12", "census:40,3,1"])
def test_verify_knows_the_names_that_anonymize_takes(shell: Any, name: str) -> None:
    """A named or generated instance can be the original, with its hierarchies."""
    assert shell("anonymize", name, "-k", 3, "-o", "x.csv", "--method", "initial").code == 0
    result = shell("verify", name, "x.csv", "--json", "-")
    assert result.code == 0
    assert json.loads(result.out)[0]["original"] == name
    assert shell("verify", "wong-5", "x.csv").code == 2
    result = shell("verify", name, "x.csv", "--schema", "roles.toml")
    assert result.code == 2
    assert "own schema" in result.err
