"""Tables by parts in the one call for all: paths, addresses and Dask DataFrames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import anonymip
from anonymip import Attribute, Engine, InputError
from anonymip.privacy.parts import verify_parts
from tests.scale.test_engines import files_of
from tests.scale.test_running import NAMES, QUICK, people, released, small

__all__ = ["people"]
ASKED: dict[str, Any] = {"sensitive": ["ill"], "engine": small(60), **QUICK}


def test_one_call_takes_a_path(people: Path, tmp_path: Path) -> None:
    """The release is that of `anonymize_by_parts`, and declared attributes count."""
    found = anonymip.anonymize(people, NAMES, 5, output=tmp_path / "release", **ASKED)
    assert isinstance(found, anonymip.ReleaseInParts)
    released(people, tmp_path / "other")
    assert files_of(tmp_path / "release") == files_of(tmp_path / "other")
    age = Attribute("age", kind="numeric", domain=(0, 100))
    asked = {**ASKED, "schema": anonymip.Schema(drop=("ill",)), "sensitive": ()}
    declared = anonymip.anonymize(people, [age, *NAMES[1:]], 5, output=tmp_path / "new", **asked)
    assert declared.manifest["columns"][0]["domain"] == [0, 100]
    assert [one["name"] for one in declared.manifest["columns"]] == ["age", "sex", "town"]


def test_functions_of_one_table_say_how_they_take_a_release_by_parts(
    people: Path, tmp_path: Path
) -> None:
    """The folder alone is refused by what reads one file, and what the remedy names works."""
    folder, manifest = tmp_path / "release", tmp_path / "release" / "_manifest.json"
    anonymip.anonymize(people, NAMES, 5, output=folder, **ASKED)
    frame = pd.read_parquet(people)
    for given in (None, manifest):
        for function in (anonymip.verify, anonymip.risk):
            with pytest.raises(InputError, match=r"pandas.read_parquet\('.*release'\)") as caught:
                function(frame, folder, manifest=given)
            assert f"manifest={str(manifest)!r}" in str(caught.value)
    assert anonymip.verify(frame, pd.read_parquet(folder), manifest).ok
    assert anonymip.risk(frame, pd.read_parquet(folder), manifest=manifest).after


def test_losses_of_parts_are_finite_numbers(people: Path, tmp_path: Path) -> None:
    """JSON has no infinity, but digits enough for one: the manifest is refused as any other."""
    folder, manifest = tmp_path / "release", tmp_path / "release" / "_manifest.json"
    anonymip.anonymize(people, NAMES, 5, output=folder, **ASKED)
    entry = json.loads(manifest.read_text("utf-8"))
    entry["parts"]["files"][0]["ncp"] = "HERE"
    manifest.write_text(json.dumps(entry).replace('"HERE"', "1e999"), encoding="utf-8")
    with pytest.raises(InputError, match=r"parts\.files\.ncp.* is not a finite number"):
        verify_parts(people, folder, k=5)


@pytest.mark.thorough
def test_a_dask_data_frame_is_a_table(people: Path, tmp_path: Path) -> None:
    """It is written beside the output, solved as any folder, and nothing is left of it."""
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.read_parquet(people)
    table = dask.from_pandas(frame, npartitions=3)
    found = anonymip.anonymize(table, NAMES, 5, output=tmp_path / "release", **ASKED)
    assert found.parts > 2
    assert verify_parts(people, tmp_path / "release", k=5).ok
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people", "release"]
    mixed = dask.from_pandas(frame.assign(age=frame["age"].astype(object)), npartitions=1)
    mixed["age"] = mixed["age"].map(lambda age: str(age) if age > 50 else age, meta=("age", object))
    with pytest.raises(InputError, match="cannot be written as Parquet"):
        anonymip.anonymize(mixed, NAMES, 5, output=tmp_path / "new", **ASKED)
    with pytest.raises(InputError, match="a path or a Dask DataFrame is for tables"):
        anonymip.anonymize(table, NAMES, 5)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people", "release"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "local"}, "no place to write"),
        ({"output": "release"}, "output=... is for tables that are solved by parts"),
        ({}, "a path or a Dask DataFrame is for tables"),
        ({"engine": "local", "output": "release", "keep_order": True}, "keep_order is not for"),
        ({"engine": "local", "output": "release", "pseudonyms": ["ill"]}, "pseudonyms are not"),
        ({"engine": "local", "output": "release", "most_suppressed": 3}, "most_suppressed is not"),
        ({"engine": Engine(), "output": "release", "suppressed": "starred"}, "suppressed is not"),
        ({"engine": "local", "output": "release", "time_limit": 3}, "does not look at the clock"),
        ({"engine": "spark", "output": "release"}, "unknown engine"),
    ],
)
def test_what_does_not_go_together_is_refused(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Any, message: str
) -> None:
    """Before any work, with the reason; nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        anonymip.anonymize(people, NAMES, 5, **{"sensitive": [], **given})
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


def test_data_frames_have_no_engine(people: Path, tmp_path: Path) -> None:
    """A frame in memory is solved as ever."""
    frame = pd.read_parquet(people)
    with pytest.raises(InputError, match="the table is a DataFrame"):
        anonymip.anonymize(frame, NAMES, 5, output=tmp_path / "release", **ASKED)


def test_an_unknown_setting_is_told_as_its_own() -> None:
    """Not as one of the function below it."""
    frame = pd.DataFrame({"a": range(4)})
    with pytest.raises(TypeError, match=r"^anonymize\(\) got .* 'efort'$"):
        anonymip.anonymize(frame, ["a"], 2, efort="quick")
