"""Tables in folders whose names say the values of columns, and what only some parts hold."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from pyarrow import dataset

import anonymip
from anonymip import InputError, Schema, anonymize_by_parts
from anonymip.privacy.parts import verify_parts
from tests.scale.test_running import NAMES, QUICK, people, released, small

__all__ = ["people"]


def write_by_folders(people: Path, ending: str, town: str = "town") -> pd.DataFrame:
    """Write the persons anew, in folders that say their town and, as a number, their sex."""
    frame = pd.read_parquet(people)
    frame["sex"] = (frame["sex"] == "f") * 1
    frame["town"] = frame["town"].replace("Ulm", "01").replace("Trier", "a/b=c %")
    shutil.rmtree(people)
    for (name, sex), rows in frame.groupby(["town", "sex"]):
        folder = people / f"{town}={quote(str(name), safe='')}" / f"sex={sex}"
        folder.mkdir(parents=True)
        inner = rows.drop(columns=["town", "sex"])
        if ending == "csv":
            inner.to_csv(folder / "part-0.csv", index=False)
        else:
            inner.to_parquet(folder / "part-0.parquet", index=False)
    return frame


@pytest.mark.crossed
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("role", ["quasi-identifier", "kept"])
@pytest.mark.filterwarnings("ignore")
def test_folders_that_say_values_are_columns(
    people: Path, tmp_path: Path, ending: str, role: str
) -> None:
    """Their names are read as Arrow and Dask read them: digits with a zero in front stay texts."""
    frame = write_by_folders(people, ending)
    if ending == "parquet":
        read = dataset.dataset(people, partitioning="hive").to_table().to_pandas()
        assert sorted(read["town"].unique()) == sorted(frame["town"].unique())
    names = NAMES if role == "quasi-identifier" else ["age:numeric"]
    asked: dict[str, Any] = {"engine": small(100), "sensitive": ["ill"], **QUICK}
    asked["keep"] = [] if role == "quasi-identifier" else ["sex", "town"]
    found = anonymize_by_parts(people, names, 3, tmp_path / "release", **asked)
    assert found.parts > 1
    result = verify_parts(people, tmp_path / "release", k=3)
    assert result.ok, result.problems
    whole = pd.read_parquet(tmp_path / "release")
    assert anonymip.verify(frame.astype(str), whole, found.manifest).ok
    if role == "kept":
        key = ["town", "sex", "ill"]
        shown = whole[key].astype(str).sort_values(key).to_numpy().tolist()
        assert shown == frame[key].astype(str).sort_values(key).to_numpy().tolist()
        assert pd.api.types.is_integer_dtype(whole["sex"]) == (ending == "parquet")
    plain = tmp_path / "plain"
    plain.mkdir()
    text = frame.astype(str) if ending == "csv" else frame
    text.to_parquet(plain / "0.parquet", index=False)
    other = anonymize_by_parts(plain, names, 3, tmp_path / "other", **asked)
    assert other.objective == pytest.approx(found.objective)


def test_a_folder_without_a_value_is_missing(people: Path, tmp_path: Path) -> None:
    """As Hive names it; the policy for missing values holds of it."""
    frame = pd.read_parquet(people)
    shutil.rmtree(people)
    for town, rows in frame.groupby("town"):
        said = "__HIVE_DEFAULT_PARTITION__" if town == "Ulm" else town
        (people / f"town={said}").mkdir(parents=True)
        inner = rows.drop(columns="town")
        inner.to_parquet(people / f"town={said}" / "part-0.parquet", index=False)
    with pytest.raises(InputError, match=r"column 'town' has .* missing values"):
        released(people, tmp_path / "release")
    found = released(people, tmp_path / "release", missing="drop")
    assert found.rows == (frame["town"] != "Ulm").sum()
    assert verify_parts(people, tmp_path / "release", k=5).ok


@pytest.mark.parametrize(
    ("how", "message"),
    [("twice", "has a column 'age', which its folder names"), ("some", "name other columns")],
)
def test_folders_that_contradict_files_are_refused(
    people: Path, tmp_path: Path, how: str, message: str
) -> None:
    """A column comes from the file or from its folders, and from the same in all files."""
    inner = people / ("age=7" if how == "twice" else "country=DE")
    inner.mkdir()
    shutil.move(people / "b.parquet", inner / "b.parquet")
    if how == "twice":
        shutil.move(people / "a.parquet", inner / "a.parquet")
    with pytest.raises(InputError, match=message):
        released(people, tmp_path / "release")


def test_missing_values_of_some_parts_need_no_declaration(tmp_path: Path) -> None:
    """A category that stands for them is one in every part, though the domain does not name it."""
    age = np.repeat(np.arange(20), 10)
    town = np.where((age < 5) & (np.arange(200) % 3 == 0), "", np.where(age % 2, "Bonn", "Ulm"))
    pd.DataFrame({"age": age, "town": town}).to_csv(tmp_path / "table.csv", index=False)
    known = {"town": {"domain": ["Bonn", "Ulm", "Trier"], "missing": "category"}}
    found = anonymize_by_parts(
        tmp_path / "table.csv",
        ["age", "town:categorical"],
        3,
        tmp_path / "release",
        engine=small(60),
        schema=Schema(attributes=known),
        **QUICK,
    )
    assert found.parts > 2
    assert verify_parts(tmp_path / "table.csv", tmp_path / "release", k=3).ok
