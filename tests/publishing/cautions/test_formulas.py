"""Tests of texts that a spreadsheet would run: found, reported, escaped, and read back."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import anonymize, verify
from anonymip.errors import ReleaseWarning
from anonymip.privacy import read_release
from anonymip.publishing.cautions.formulas import is_formula

RUN = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "--", "-inf", "-1e999"]
HARMLESS = ["-5", "+5", "-2.5e3", "-.5", "", "-", "=", "@", "5-", "a=b", " =1", "'=1", "[-5..3]"]


def people(notes: list[Any], name: str = "note") -> pd.DataFrame:
    """Return as many persons as there are notes."""
    return pd.DataFrame({"age": range(30, 30 + len(notes)), name: notes})


@pytest.mark.parametrize("text", RUN)
def test_what_is_run(text: str) -> None:
    """Texts behind a sign are formulas."""
    assert is_formula(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_not_run(text: str) -> None:
    """Plain numbers, signs alone and signs inside are none."""
    assert not is_formula(text)


@pytest.mark.parametrize("role", ["sensitive", "keep", "quasi-identifier"])
def test_formulas_bring_a_warning(role: str) -> None:
    """A column with such cells is named, with their number and the option; no cell is shown."""
    frame = people(["=1+1", "-5", "=1+1", "x"])
    identifiers = ["age", "note:categorical"] if role == "quasi-identifier" else ["age"]
    roles = {} if role == "quasi-identifier" else {role: ["note"]}
    # Two classes that agree on the note: exact cells of a quasi-identifier are published as well.
    frame = pd.concat([frame] * 2, ignore_index=True)
    with pytest.warns(ReleaseWarning, match="column 'note' has 4 cells") as result:
        anonymize(frame, identifiers, 2, method="greedy-search", **roles)  # type: ignore[arg-type]
    assert any("escape_formulas=True" in str(one.message) for one in result)
    assert not any("=1+1" in str(one.message) for one in result)


def test_plain_numbers_bring_none() -> None:
    """Negative numbers, as numbers or as texts, are nothing to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        anonymize(people([-5, -5.5, -5, -5]), ["age"], 2, method="initial", keep=["note"])
        anonymize(people(["-5", "+5", "-5", "-5"]), ["age"], 2, method="initial", keep=["note"])


def test_names_of_columns_bring_a_warning() -> None:
    """The first line of a file is run as well."""
    with pytest.warns(ReleaseWarning, match="column '=note' has a name that a spreadsheet"):
        anonymize(people([1, 1, 2, 2], "=note"), ["age"], 2, method="initial", keep=["=note"])


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("layout", ["cells", "columns"])
def test_escaped_releases_are_read_back(ending: str, layout: str, tmp_path: Path) -> None:
    """Cells and names have their apostrophe in the file, and are read as what they were."""
    notes = [*RUN, *HARMLESS, "''", "'"]
    frame = people(notes, "=note").rename(columns={"age": "@age"})
    frame["sign"] = ["=F", "=F"] * (len(notes) // 2)
    frame["far"] = [float("-inf"), -1.0] * (len(notes) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        warnings.filterwarnings("ignore", ".*nearly unique.*", ReleaseWarning)
        release = anonymize(
            frame,
            ["@age", "sign"],
            2,
            method="initial",
            keep=["=note", "far"],
            escape_formulas=True,
            keep_order=True,
            layout=layout,
        )
    table, manifest = release.write(tmp_path / f"release{ending}")
    assert verify(frame, table).ok
    assert release.verify().ok
    assert json.loads(manifest.read_text())["table"]["formulas"] == "escaped"
    shown = release.frame
    assert [name for name in shown if is_formula(name)] == []
    assert "'=note" in shown
    assert shown["'=note"].tolist() == [
        f"'{note}" if is_formula(note) or note.startswith("'") else note for note in notes
    ]
    assert set(shown["sign"]) == {"'=F"}
    read = read_release(table, manifest)
    assert read.untouched["=note"].texts.tolist() == notes
    assert read.cells[1][0].members == ("=F",)


@pytest.mark.parametrize(
    ("written", "instead", "words"),
    [
        ("'=1+1", "=1+1", "should have an apostrophe"),
        ("x", "'x", "escapes nothing"),
        ("'=1+1", "'-5", "escapes nothing"),
        ("'=1+1", "''=1+1", "more often than in the original"),
    ],
)
def test_apostrophes_that_are_wrong(written: str, instead: str, words: str, tmp_path: Path) -> None:
    """A formula left, or an apostrophe that tells rows apart, fails the verification."""
    frame = people(["=1+1", "x", "=1+1", "x"])
    release = anonymize(frame, ["age"], 2, method="initial", keep=["note"], escape_formulas=True)
    table, _ = release.write(tmp_path / "release.csv")
    text = table.read_text()
    assert f",{written}\n" in text
    table.write_text(text.replace(f",{written}\n", f",{instead}\n", 1))
    found = verify(frame, table)
    assert not found.ok
    assert words in " ".join(found.problems)


def test_apostrophes_without_the_option_are_texts(tmp_path: Path) -> None:
    """A table that holds texts with apostrophes is published as it is."""
    frame = people(["'=1", "'x", "'=1", "'x"])
    release = anonymize(frame, ["age"], 2, method="initial", keep=["note"])
    assert "formulas" not in release.manifest["table"]
    table, _ = release.write(tmp_path / "release.csv")
    assert verify(frame, table).ok


TEXTS = st.lists(st.text("=-+@'1.e\t\r\nx", max_size=4), min_size=4, max_size=4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_any_texts_survive(notes: list[str], jobs: list[str]) -> None:
    """Escaped texts are what they were, whatever signs and apostrophes they are made of."""
    frame = people(notes).assign(job=jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        release = anonymize(
            frame,
            ["age", "job:categorical"],
            2,
            method="initial",
            keep=["note"],
            missing="category",
            escape_formulas=True,
            keep_order=True,
        )
    assert release.frame["note"].map(is_formula).sum() == 0
    assert release.frame["job"].map(is_formula).sum() == 0
    read = read_release(release.frame, release.manifest)
    assert read.untouched["note"].texts.tolist() == notes
