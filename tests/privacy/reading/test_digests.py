"""Tests of the digest that ties a manifest to its table, and of caveats that are missing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from anonymip.privacy import is_table_of, verify


def with_digest(patients: Any, folder: Path, name: str = "release.csv") -> tuple[Path, Path]:
    """Write original, release and a manifest with the digest of the release."""
    original, release = patients.save(folder, name)
    patients.manifest["table"]["sha256"] = hashlib.sha256(release.read_bytes()).hexdigest()
    beside = folder / f"{name}.manifest.json"
    beside.write_text(json.dumps(patients.manifest), encoding="utf-8")
    return original, release


@pytest.mark.parametrize("name", ["release.csv", "release.parquet"])
def test_a_table_is_that_of_its_manifest(patients: Any, tmp_path: Path, name: str) -> None:
    """The digest of the table's bytes in the manifest says that they belong together."""
    original, release = with_digest(patients, tmp_path, name)
    found = verify(original, release)
    assert found.ok, found.problems
    assert "The table is the one that the manifest was written for." in found.checks
    assert is_table_of(release) is True


def test_another_table_is_reported_without_the_original(patients: Any, tmp_path: Path) -> None:
    """A table that would keep every promise of the manifest, and is not its own, fails."""
    original, release = with_digest(patients, tmp_path)
    lines = release.read_bytes().splitlines(keepends=True)
    release.write_bytes(b"".join([lines[0], *reversed(lines[1:])]))
    assert is_table_of(release) is False
    found = verify(original, release)
    assert [problem[:60] for problem in found.problems] == [
        "The table is not the one that the manifest was written for: "
    ]


def test_what_cannot_be_said_is_not_claimed(patients: Any, tmp_path: Path) -> None:
    """Without digest, or without file, the verifier says that it did not check."""
    original, release = patients.save(tmp_path)
    unsaid = "Not checked: that the table is the one that the manifest was written for, since "
    assert is_table_of(release) is None
    assert f"{unsaid}the manifest has no table.sha256." in verify(original, release).checks
    with_digest(patients, tmp_path)
    assert is_table_of(patients.release, patients.manifest) is None
    assert f"{unsaid}a data frame has no digest." in patients.verify().checks


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ("", ""),
        ("limits", "limits: no limit as promised"),
        (
            "left_out limits",
            "left_out and no limits: no record is taken as left out and no limit as promised",
        ),
        ("diversity", "diversity: no diversity as promised"),
    ],
)
def test_keys_that_a_manifest_may_lack_are_named(patients: Any, lacking: str, said: str) -> None:
    """A reader learns which promises the manifest leaves out, and as what that was read."""
    patients.leave_out()
    patients.manifest["left_out"]["suppressed"] = 0
    patients.manifest.update(limits=[], diversity=None)
    for key in lacking.split():
        del patients.manifest[key]
    told = [check for check in patients.verify().checks if check.startswith("Not said")]
    assert told == ([f"Not said: the manifest has no {said}."] if said else [])
    if "limits" in said:
        patients.manifest["limits"] = None
        assert patients.verify().checks.count(told[0]) == 1


@pytest.mark.parametrize("key", ["assumed", "checked", "method", "options", "solver", "versions"])
def test_missing_caveats_are_reported(patients: Any, key: str) -> None:
    """A manifest that does not say what it assumes, or how it was made, does not pass."""
    assert patients.verify().ok
    del patients.manifest[key]
    found = patients.verify()
    assert found.problems == (f"Caveats are missing: the manifest has no {key}.",)
