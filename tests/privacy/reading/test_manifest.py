"""Tests of reading manifests and schemas, digests, and caveats that are missing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonymip.errors import InputError
from anonymip.privacy import is_table_of, verify
from anonymip.privacy.reading.original import read_schema
from anonymip.privacy.reading.release_manifest import STATES, read_manifest
from anonymip.status import Stopped


def test_manifest_is_found_beside_the_release(patients: Any, tmp_path: Path) -> None:
    """The manifest's name is the release's with an ending."""
    _, release = patients.save(tmp_path)
    manifest = read_manifest(None, release)
    assert (manifest.k, manifest.n, manifest.m) == (3, 7, 3)
    assert manifest.header == ("age", "sex", "zip", "disease")


def test_layout_columns_splits_numeric_ranges_only(patients: Any) -> None:
    """Lower and upper columns stand in the place of a numeric range column."""
    patients.manifest["table"]["layout"] = "columns"
    manifest = read_manifest(patients.manifest, patients.release)
    assert manifest.header == ("age_lower", "age_upper", "sex", "zip_lower", "zip_upper", "disease")


def test_no_manifest_is_an_input_error(patients: Any, tmp_path: Path) -> None:
    """Without a manifest there is nothing to verify against."""
    _, release = patients.save(tmp_path)
    (tmp_path / "release.csv.manifest.json").unlink()
    with pytest.raises(InputError, match="no manifest"):
        read_manifest(None, release)
    with pytest.raises(InputError, match="data frame"):
        read_manifest(None, pd.DataFrame())


@pytest.mark.parametrize("text", ["{", "[]", "\xff", '{"ncp": NaN}', "3"])
def test_unreadable_manifests_are_input_errors(tmp_path: Path, text: str) -> None:
    """What is no JSON object is refused, NaN included."""
    path = tmp_path / "m.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match="JSON"):
        read_manifest(path, "release.csv")


@pytest.mark.parametrize(
    "key", ["format", "recoding", "k", "n", "objective", "ncp", "bound", "gap", "status", "columns"]
)
def test_missing_keys_are_named(patients: Any, key: str) -> None:
    """A manifest without one of its keys is refused, and the key is named."""
    del patients.manifest[key]
    with pytest.raises(InputError, match=key):
        read_manifest(patients.manifest, patients.release)


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ((), "format", "anonymip-release/9"),
        ((), "recoding", "pattern"),
        ((), "k", True),
        ((), "k", "3"),
        ((), "ncp", float("inf")),
        ((), "ncp", None),
        ((), "gap", "none"),
        ((), "bound", 3.0),
        ((), "bound", {"value": 3.0}),
        ((), "order", "random"),
        ((), "status", "near-optimal"),
        ((), "status", "heuristicx"),
        ((), "status", ""),
        ((), "columns", []),
        (("objective",), "value", None),
        (("objective",), "name", " "),
        (("table",), "layout", "rows"),
        (("table",), "separator", ", "),
        (("table", "missing"), "tokens", [1]),
        (("columns", 0), "role", "drop"),
        (("columns", 0), "kind", "hierarchical"),
        (("columns", 0), "name", "sex"),
        (("columns", 0), "domain", [3, 1]),
        (("columns", 0), "domain", ["a", "b"]),
        (("columns", 1), "integer", True),
        (("columns", 1), "publish", "range"),
        (("columns", 1), "domain", []),
        (("columns", 1), "publish", "node"),
        ((), "diversity", 2),
        ((), "diversity", {"l": 0.5, "distinct": 1}),
        ((), "diversity", {"l": 2, "distinct": 1.5}),
        ((), "ncp", 10**400),
        ((), "diversity", {"l": 10**400, "distinct": 1}),
        ((), "checked", 5),
        ((), "assumed", "Ann is row 1"),
        ((), "assumed", [["Ann"]]),
        ((), "versions", {"python": ["Ann"]}),
        ((), "limits", {}),
        ((), "limits", [{"attribute": "disease", "rule": "apart"}]),
        ((), "limits", [{"attribute": "age", "rule": "cap"}]),
        ((), "limits", [{"attribute": "age", "rule": "floor", "most": 3}]),
    ],
)
def test_misused_keys_are_input_errors(
    patients: Any, where: tuple[str | int, ...], key: str, value: object
) -> None:
    """A key with a value of the wrong form is refused, with a remedy."""
    place: Any = patients.manifest
    for step in where:
        place = place[step]
    place[key] = value
    with pytest.raises(InputError) as caught:
        read_manifest(json.loads(json.dumps(patients.manifest)), patients.release)
    assert caught.value.remedy


def test_all_that_stops_a_method_with_a_release_is_a_status() -> None:
    """The verifier's words, which it has by itself, are those that releases have."""
    assert {*STATES, "infeasible"} == {one.value for one in Stopped}


def test_schema_gives_roles_domains_and_the_format_of_the_original(tmp_path: Path) -> None:
    """What the verifier needs is taken from the schema, the rest is left alone."""
    path = tmp_path / "schema.toml"
    path.write_text(
        """
        [attributes.AGE]
        kind = "numeric"
        domain = [1, 100]
        weight = 2.0
        [attributes.SEX]
        [table]
        separator = ", "
        columns = ["AGE", "SEX", "NAME"]
        missing = "?"
        drop = ["NAME"]
        """,
        encoding="utf-8",
    )
    schema = read_schema(path)
    assert schema is not None
    assert schema.roles["AGE"] == schema.roles["SEX"] == "quasi-identifier"
    assert schema.roles["NAME"] == "drop"
    assert "other" not in schema.roles
    assert schema.domains == {"AGE": [1, 100]}
    assert schema.columns == ("AGE", "SEX", "NAME")
    assert (schema.separator, schema.tokens) == (", ", ("?",))
    assert read_schema(None) is None


def test_names_in_a_schema_are_ignored_where_the_file_has_a_header(tmp_path: Path) -> None:
    """A schema may name columns although the file has a header."""
    path = tmp_path / "schema.toml"
    path.write_text('[table]\nheader = true\ncolumns = ["a"]\n', encoding="utf-8")
    schema = read_schema(path)
    assert schema is not None
    assert schema.columns is None


@pytest.mark.parametrize("text", ["[table", "attributes = 3", "[table]\nkeep = [1]", "table = 1"])
def test_broken_schemas_are_input_errors(tmp_path: Path, text: str) -> None:
    """What is no schema is refused."""
    path = tmp_path / "schema.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        read_schema(path)
    with pytest.raises(InputError):
        read_schema(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("once", "twice", "key"),
    [
        ('"k": 3', '"k": 3, "k": 2', "k"),
        ('"k": 3', '"k": 3, "k": 3', "k"),
        ('"policy"', '"policy": "drop", "policy"', "policy"),
    ],
)
def test_repeated_keys_are_refused(
    patients: Any, tmp_path: Path, once: str, twice: str, key: str
) -> None:
    """An object with a key twice means one thing to one reader and another to the next."""
    _, release = patients.save(tmp_path)
    path = tmp_path / "release.csv.manifest.json"
    text = path.read_text(encoding="utf-8")
    assert text.count(once) == 1
    path.write_text(text.replace(once, twice), encoding="utf-8")
    with pytest.raises(InputError, match=f"manifest's {key} stands there twice"):
        read_manifest(None, release)


@pytest.mark.parametrize("digest", ["", "A" * 64, "a" * 63, 5, ["a" * 64]])
def test_digests_have_one_form(patients: Any, digest: object) -> None:
    """What is no SHA-256 in small hexadecimal digits is refused."""
    patients.manifest["table"]["sha256"] = digest
    with pytest.raises(InputError, match=r"table\.sha256 is not 64"):
        read_manifest(patients.manifest, patients.release)


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
