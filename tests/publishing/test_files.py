"""Tests of releases as files: they read back, and appear whole and verified or not at all."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    InputError,
    Microdata,
    Problem,
    TableFormat,
    VerificationFailed,
    anonymize,
    publish,
    solve,
    verify,
)
from anonymip.publishing.manifest import manifest_path
from anonymip.publishing.release import Release

NASTY = "\\|}{[*]\"',; \n\r\té€0"
TEXTS = st.text(st.sampled_from(NASTY), max_size=3)
NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: round(number, 4)),
    st.sampled_from([1e15, -1e15, 1e-05, 0.1, 1 / 3, -0.0]),
)


def people() -> pd.DataFrame:
    """Return four persons."""
    return pd.DataFrame(
        {
            "age": [30, 31, 60, 61],
            "sex": ["F", "F", "M", "M"],
            "disease": ["flu", "gout", "mumps", "flu"],
            "visit": ["01", "02", "03", "04"],
        }
    )


def release(**settings: Any) -> Release:
    """Publish them with k = 2."""
    return anonymize(people(), ["age", "sex"], 2, sensitive=["disease"], keep=["visit"], **settings)


def parts(cell: str) -> set[str]:
    """Return the texts that a cell of a categorical column means, after docs/format.md."""
    if not cell.startswith("{"):
        return {cell[1:] if cell.startswith("\\") else cell}
    members, member, position = set(), "", 1
    while position < len(cell):
        sign = cell[position]
        if sign == "\\":
            position += 1
            member += cell[position]
        elif sign in "|}":
            members.add(member)
            member = ""
        else:
            member += sign
        position += 1
    return members


def ends(cell: str) -> tuple[float, float]:
    """Return the ends of a cell of a numeric column."""
    low, _, high = cell.strip("[]").partition("..")
    return float(low), float(high or low)


@pytest.mark.parametrize("name", ["release.csv", "release.parquet", "release.pq", "release"])
@pytest.mark.parametrize("layout", ["cells", "columns"])
def test_round_trip(tmp_path: Path, name: str, layout: str) -> None:
    """What is written reads back as it was published, and verifies against the original."""
    published = release(layout=layout)
    table, manifest = published.write(tmp_path / name)
    assert manifest == manifest_path(table) == tmp_path / f"{name}.manifest.json"
    read = (
        pd.read_parquet(table)
        if name.endswith(("parquet", "pq"))
        else pd.read_csv(table, dtype={"visit": str}, keep_default_na=False)
    )
    assert read.to_dict("list") == published.frame.to_dict("list")
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    form = {**published.manifest["table"], "sha256": digest}
    result = json.loads(manifest.read_text(encoding="utf-8"))
    assert result == {**published.manifest, "table": form}
    assert verify(people(), table).ok
    assert sorted(path.name for path in tmp_path.iterdir()) == [table.name, manifest.name]


def test_the_format_of_the_original_is_kept(tmp_path: Path) -> None:
    """Separator and encoding are those of the table that was read."""
    data = Microdata(
        people().assign(sex=["é", "é", "ü", "ü"]),
        (Attribute("age", integer=True), Attribute("sex", "categorical")),
        sensitive=("disease",),
        keep=("visit",),
        table=TableFormat(separator="; ", encoding="latin-1"),
    )
    table, _ = publish(solve(Problem(data, 2)), keep_order=True).write(tmp_path / "release.csv")
    first, second, *_ = table.read_bytes().splitlines()
    assert first == b"age;sex;disease;visit"
    assert second == b"[30..31];\xe9;flu;01"


def test_signs_without_code_are_refused(tmp_path: Path) -> None:
    """A table that its encoding cannot write is bad input, and the message shows no value."""
    data = Microdata(
        people().assign(sex=["é", "é", "ü", "ü"]),
        (Attribute("age", integer=True), Attribute("sex", "categorical")),
        drop=("disease", "visit"),
        table=TableFormat(encoding="ascii"),
    )
    published = publish(solve(Problem(data, 2)))
    with pytest.raises(
        InputError, match="holds characters that the encoding ascii has none for"
    ) as e:
        published.write(tmp_path / "release.csv")
    assert "é" not in str(e.value)
    assert list(tmp_path.iterdir()) == []
    published.write(tmp_path / "release.parquet")


def test_old_files_stay_if_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in the middle of the table leaves the old table and manifest, and no rest."""
    table, manifest = release().write(tmp_path / "release.csv")
    before = (table.read_bytes(), manifest.read_bytes())

    def fill(self: pd.DataFrame, path: Path, **settings: Any) -> None:
        path.write_text("age,se", encoding="utf-8")
        raise OSError(28, "No space left on device")

    published = release()
    monkeypatch.setattr(pd.DataFrame, "to_csv", fill)
    with pytest.raises(InputError, match="No space"):
        published.write(table)
    assert (table.read_bytes(), manifest.read_bytes()) == before
    assert len(list(tmp_path.iterdir())) == 2


def test_old_files_stay_if_verification_fails(tmp_path: Path) -> None:
    """A release that does not hold is not put in place, not even its manifest."""
    table, manifest = release().write(tmp_path / "release.csv")
    before = (table.read_bytes(), manifest.read_bytes())
    published = release()
    published.frame.loc[0, "disease"] = "measles"
    with pytest.raises(VerificationFailed, match="Nothing was published"):
        published.write(table)
    assert (table.read_bytes(), manifest.read_bytes()) == before
    assert len(list(tmp_path.iterdir())) == 2


def test_the_original_is_a_file(tmp_path: Path) -> None:
    """A release is verified against the file it came from, and refused against another."""
    people().to_csv(tmp_path / "people.csv", index=False)
    people().assign(age=[1, 2, 3, 4]).to_csv(tmp_path / "others.csv", index=False)
    published = release()
    published.write(tmp_path / "release.csv", original=tmp_path / "people.csv")
    with pytest.raises(VerificationFailed):
        published.write(tmp_path / "again.csv", original=tmp_path / "others.csv")
    assert not (tmp_path / "again.csv").exists()


@pytest.mark.parametrize("name", ["file/release.csv", "."])
def test_places_that_cannot_be_written_to(tmp_path: Path, name: str) -> None:
    """A file for a folder and a folder for a file are bad input; a missing folder is made."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="folder"):
        release().write(tmp_path / name)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert all(path.is_file() for path in release().write(tmp_path / "new" / "release.csv"))


@settings(max_examples=40)
@given(data=st.data())
def test_nasty_tables_are_published_truly(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever texts and numbers a table holds, its release verifies and covers every record."""
    n = data.draw(st.sampled_from([4, 9]), label="n")
    columns: dict[str, list[Any]] = {
        name: data.draw(st.lists(strategy, min_size=n, max_size=n), label=name)
        for name, strategy in (("t", TEXTS), ("x", NUMBERS), ("s", TEXTS), ("v", TEXTS))
    }
    frame = pd.DataFrame(columns)
    layout = data.draw(st.sampled_from(["cells", "columns"]), label="layout")
    published = anonymize(
        frame,
        ["t:categorical", Attribute("x")],
        2,
        sensitive=["s"],
        keep=["v"],
        method=data.draw(st.sampled_from(["mondrian", "k-member"]), label="method"),
        layout=layout,
        keep_order=True,
    )
    shown = published.frame
    assert shown["s"].tolist() == columns["s"]
    assert shown["v"].tolist() == columns["v"]
    for row in range(n):
        assert columns["t"][row] in parts(shown["t"][row])
        low, high = (
            ends(shown["x"][row])
            if layout == "cells"
            else (float(shown["x_lower"][row]), float(shown["x_upper"][row]))
        )
        assert low <= columns["x"][row] <= high
    names = [name for name in shown if name not in ("s", "v")]
    assert shown.groupby(names).size().min() >= 2
    table, _ = published.write(tmp_path_factory.mktemp("nasty") / "release.csv")
    assert verify(frame, table).ok
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    if layout == "columns":
        at = [shown.columns.get_loc(name) for name in ("x_lower", "x_upper")]
        assert [[float(row[a]) for a in at] for row in rows] == shown.iloc[
            :, at
        ].to_numpy().tolist()
    else:
        assert rows == shown.astype(str).to_numpy().tolist()
