"""Releases and tables as Excel workbooks: read and written by two readers that agree."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from openpyxl import Workbook, load_workbook

from anonymip import (
    InputError,
    Microdata,
    TableFormat,
    anonymize,
    inspect,
    load_instance,
    read_table,
    verify,
)
from anonymip.instances import Schema
from anonymip.privacy.reading.text_tables import read_table as read_texts

HEADER = ("age", "zip", "seen", "lab", "note", "stay")
ROWS: list[tuple[Any, ...]] = [
    (34, "02138", dt.datetime(2020, 1, 1), 1.5, "=1+1", 35),
    (36, "02139", dt.datetime(2020, 2, 3), 2, "#N/A", 35.5),
    (61, "02138", dt.datetime(2021, 5, 5), None, "-", 36),
    (65, 2139, dt.datetime(2022, 9, 9), 4, None, 40),
]


def workbook(path: Path, rows: list[tuple[Any, ...]] = ROWS) -> Path:
    """Write a workbook whose texts are texts, whatever they begin with."""
    book = Workbook()
    sheet = book.active
    for row in [HEADER, *rows]:
        sheet.append(row)
    for row in sheet.iter_rows():
        for cell in row:
            if isinstance(cell.value, str):
                cell.data_type = "s"
    book.create_sheet("legend").append(["nobody", "reads", "this"])
    book.save(path)
    return path


def test_columns_of_a_workbook(tmp_path: Path) -> None:
    """Codes keep their zeros, dates are dates, whole numbers have gaps; mixed columns are texts."""
    frame = read_table(workbook(tmp_path / "people.xlsx"))
    assert frame["age"].tolist() == [34, 36, 61, 65]
    assert frame["zip"].tolist() == ["02138", "02139", "02138", "2139"]
    assert pd.api.types.is_datetime64_any_dtype(frame["seen"])
    assert frame["lab"].dtype == frame["stay"].dtype == "float64"
    assert frame["note"].tolist()[:3] == ["=1+1", "#N/A", "-"]
    assert frame["note"].isna().tolist() == [False, False, False, True]
    found = {one.name: one.looks for one in inspect(tmp_path / "people.xlsx").columns}
    assert found["seen"] == "dates"


@pytest.mark.parametrize("ending", ["xlsx", "csv", "parquet"])
def test_a_release_of_a_workbook(tmp_path: Path, ending: str) -> None:
    """What a workbook holds is published to any file, and verified against the workbook."""
    original = workbook(tmp_path / "people.xlsx")
    schema = Schema(
        {"age": {}, "zip": {"kind": "categorical"}, "seen": {"kind": "date", "precision": "year"}},
        keep=("lab", "note", "stay"),
        table=TableFormat(),
    )
    data = schema.read(original)
    release = anonymize_all(data)
    file, _ = release.write(tmp_path / f"release.{ending}", original=original)
    assert verify(original, file).ok
    assert verify(data.original, file).ok
    if ending == "xlsx":
        cells = [cell for row in load_workbook(file).active.iter_rows() for cell in row]
        assert {cell.data_type for cell in cells} <= {"s", "n"}
        assert "=1+1" in [cell.value for cell in cells]


def anonymize_all(data: Microdata) -> Any:
    """Return a release of k = 2."""
    from anonymip import Problem, publish, solve

    return publish(solve(Problem(data, 2)), layout="columns")


@pytest.mark.parametrize("ending", ["xlsx", "csv", "parquet"])
def test_numbers_beyond_those_that_spreadsheets_count(tmp_path: Path, ending: str) -> None:
    """Whole numbers of more than fifteen digits are those in floating point, to both readers."""
    rows = [(n, "a", None, [1e20, 2**60, 3, 1e-7][n], "b", n) for n in range(4)]
    original = workbook(tmp_path / "people.xlsx", rows)
    schema = Schema({"age": {}}, keep=("lab", "stay"), drop=("zip", "seen", "note"))
    file, _ = anonymize_all(schema.read(original)).write(
        tmp_path / f"release.{ending}", original=original
    )
    assert verify(original, file).ok


@pytest.mark.parametrize(
    "error", ["#N/A", "#DIV/0!", "#REF!", "#NAME?", "#NULL!", "#NUM!", "#VALUE!"]
)
def test_errors_are_missing_values(tmp_path: Path, error: str) -> None:
    """To both readers, whatever the role of the column, and also in a last row of nothing else."""
    book = Workbook()
    book.active.append(("age", "job", "lab", "note"))
    for row in [
        (34, "a", 1.5, "x"),
        (36, "a", error, error),
        (61, error, 2, "x"),
        (65, "b", 3, ""),
    ]:
        book.active.append(row)
    book.active.append([error] * 4)
    book.save(original := tmp_path / "people.xlsx")
    assert read_table(original).isna().sum().tolist() == [1, 2, 2, 3]
    schema = Schema(
        {"age": {"missing": "own"}, "job": {"missing": "category"}},
        sensitive=("lab",),
        keep=("note",),
    )
    for ending in ("xlsx", "csv", "parquet"):
        release = anonymize_all(schema.read(original))
        file, _ = release.write(tmp_path / f"release.{ending}", original=original)
        assert verify(original, file).ok


def test_numbers_and_dates_are_cells_of_their_kind(tmp_path: Path) -> None:
    """Ends are numbers and kept dates are dates; texts come back letter by letter."""
    frame = pd.DataFrame(
        {
            "age": [34, 36, 61, 65],
            "day": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1), dt.date(2022, 1, 1)],
            "at": pd.to_datetime(["2020-01-01T10:00Z"] * 4),
            "long": [2**60, 1, 2, 3],
            "text": [" a ", "é", "line\nline", "'x"],
            "flag": [True, False, True, True],
        }
    )
    kept = ["day", "at", "long", "text", "flag"]
    release = anonymize(frame, ["age"], 2, keep=kept, layout="columns", keep_order=True)
    file, _ = release.write(tmp_path / "release.xlsx")
    rows = list(load_workbook(file).active.iter_rows(values_only=True))
    assert rows[0] == ("age_lower", "age_upper", *kept)
    assert rows[1][:3] == (34, 36, dt.datetime(2020, 1, 1))
    assert rows[1][4] == str(2**60)
    assert [row[5] for row in rows[1:]] == frame["text"].tolist()
    assert verify(frame, file).ok


@pytest.mark.parametrize("text", ["x" * 40_000, "a\rb", "\x01"])
def test_what_no_cell_holds_is_refused(text: str, tmp_path: Path) -> None:
    """A text that a workbook would cut or change is refused, and no file is left."""
    frame = pd.DataFrame({"age": [1, 2], "note": [text, "b"]})
    release = anonymize(frame, ["age"], 2, keep=["note"])
    with pytest.raises(InputError, match="cannot be written as Excel"):
        release.write(tmp_path / "release.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_changed_cell_is_found(tmp_path: Path) -> None:
    """Verification reads workbooks: one number that is moved is told."""
    frame = pd.DataFrame({"age": [34, 36, 61, 65]})
    file, manifest = anonymize(frame, ["age"], 2, layout="columns").write(tmp_path / "r.xlsx")
    book = load_workbook(file)
    book.active["A2"] = 35
    book.save(file)
    assert not verify(frame, file, manifest).ok


@pytest.mark.parametrize(
    ("rows", "message"),
    [([], None), ([(1, 2, 3, 4, 5, 6, 7)], "the column at position 7 has no name")],
)
def test_tables_beside_the_header(
    rows: list[tuple[Any, ...]], message: str | None, tmp_path: Path
) -> None:
    """A cell outside the named columns is refused; a header alone is a table without rows."""
    file = workbook(tmp_path / "people.xlsx", rows)
    if message is None:
        assert len(read_table(file)) == read_texts(file).rows == 0
    else:
        with pytest.raises(InputError, match=message):
            read_table(file)


def test_damaged_workbooks(tmp_path: Path) -> None:
    """What is no workbook is said to be none, by both readers."""
    (tmp_path / "no.xlsx").write_bytes(b"age,zip\n1,2\n")
    for reader in (read_table, read_texts):
        with pytest.raises(InputError, match="Excel"):
            reader(tmp_path / "no.xlsx")


def test_the_package_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without openpyxl the message says how to install it, before the work."""
    file = workbook(tmp_path / "people.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    release = anonymize(pd.DataFrame({"age": [1, 2]}), ["age"], 2)
    for action in (
        lambda: read_table(file),
        lambda: load_instance(file, Schema({"age": {}})),
        lambda: release.write(tmp_path / "release.xlsx"),
    ):
        with pytest.raises(InputError, match=r"pip install 'anonymip\[excel\]'"):
            action()
