"""Tests of reading tables as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anonymip.errors import InputError
from anonymip.privacy.reading.stored_files import pieces_of
from anonymip.privacy.reading.text_tables import (
    MalformedTable,
    TextColumn,
    TextTable,
    aligned,
    formula_problems,
    read_table,
)


def column(*texts: str, nature: str = "text") -> TextColumn:
    """Return a column without nulls."""
    return TextColumn(np.array(texts, dtype=object), np.zeros(len(texts), bool), nature)


@pytest.mark.parametrize(
    ("header", "cells", "problem"),
    [
        ("b", ("x", "y", "=1+1"), "2, published row 3: the cell is a formula, which"),
        ("b", ("x", "'y", "'y"), "2, published row 2: the cell has an apostrophe in front that"),
        ("=b", ("x", "y", "z"), "2 is a formula, which"),
        ("b", ("'=1+1", "'" * 2 + "=1", "-3"), None),
    ],
)
def test_formulas_are_named_by_column_and_row(
    header: str, cells: tuple[str, ...], problem: str | None
) -> None:
    """The first row of a column with a formula, or with an apostrophe for nothing."""
    table = TextTable({"a": column("1", "2", "3"), header: column(*cells)}, 3)
    told = formula_problems(table)
    assert len(told) == (problem is not None)
    assert all(f"column at position {problem}" in sentence for sentence in told)


def test_separator_with_blank_skips_blanks_and_keeps_inner_ones(tmp_path: Path) -> None:
    """Files separated by comma and blank lose the blanks between cells, not within them."""
    path = tmp_path / "raw.data"
    path.write_text("39, State gov, ?\n50, Private, x\n\n", encoding="utf-8")
    table = read_table(path, separator=", ", names=["age", "work", "other"])
    assert table.rows == 2
    assert table.columns["work"].texts.tolist() == ["State gov", "Private"]


def test_plain_separator_keeps_blanks_and_quotes(tmp_path: Path) -> None:
    """Blanks, quotes, separators and line breaks of a cell survive."""
    path = tmp_path / "table.csv"
    path.write_text('a,b\n x ,"1,""2""\r\n3"\n', encoding="utf-8", newline="")
    table = read_table(path)
    assert table.columns["a"].texts.tolist() == [" x "]
    assert table.columns["b"].texts.tolist() == ['1,"2"\r\n3']


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    """A UTF-8 file may start with a byte order mark."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert list(read_table(path).columns) == ["a", "b"]


def test_empty_text_of_the_only_column_is_a_row(tmp_path: Path) -> None:
    """A quoted empty cell is a row, an empty line is none."""
    path = tmp_path / "table.csv"
    path.write_text('a\n""\n\nx\n', encoding="utf-8")
    assert read_table(path).columns["a"].texts.tolist() == ["", "x"]


def test_very_long_cells_are_read(tmp_path: Path) -> None:
    """A set may be longer than the limit of the standard reader."""
    path = tmp_path / "table.csv"
    path.write_text("a\n" + "x" * 300_000 + "\n", encoding="utf-8")
    assert len(read_table(path).columns["a"].texts[0]) == 300_000


@pytest.mark.parametrize("text", ["a,b\n1\n", "a,b\n1,2,3\n", "a,a\n1,2\n", "", 'a,b\n"1"x,2\n'])
def test_what_is_no_table_is_malformed(tmp_path: Path, text: str) -> None:
    """Ragged lines, repeated names, empty files and stray quotes are refused."""
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MalformedTable):
        read_table(path)


def test_repeated_names_are_named_by_position_only(tmp_path: Path) -> None:
    """The first line of a file without header holds values, which stay out of messages."""
    path = tmp_path / "table.csv"
    path.write_text("secret,secret\n", encoding="utf-8")
    with pytest.raises(MalformedTable) as caught:
        read_table(path)
    assert "secret" not in str(caught.value)


def test_absent_undecodable_and_broken_files_are_input_errors(tmp_path: Path) -> None:
    """A file that cannot be read is bad input, with a remedy."""
    latin, parquet = tmp_path / "latin.csv", tmp_path / "x.parquet"
    latin.write_bytes(b"a\n\xe9\n")
    parquet.write_bytes(b"no parquet")
    for path in (tmp_path / "absent.csv", latin, parquet):
        with pytest.raises(InputError) as caught:
            read_table(path)
        assert caught.value.remedy
    assert read_table(latin, encoding="latin-1").columns["a"].texts.tolist() == ["é"]


@pytest.mark.parametrize("encoding", ["undefined", "punycode", "utf-16", "base64", "a\0b", ""])
def test_encodings_that_the_file_is_not_in_are_input_errors(tmp_path: Path, encoding: str) -> None:
    """Whatever a manifest names as encoding, what comes of it is no error of the program."""
    path = tmp_path / "a.csv"
    path.write_text("a\nx-1\n", encoding="utf-8")
    with pytest.raises(InputError, match="is not text in the encoding") as caught:
        read_table(path, encoding=encoding)
    assert caught.value.remedy


def test_names_that_no_file_can_have_are_absent(tmp_path: Path) -> None:
    """A path that is too long for the system is that of no file."""
    with pytest.raises(InputError, match="there is no file"):
        read_table(tmp_path / ("a" * 300))


def test_a_folder_without_tables_holds_none(tmp_path: Path) -> None:
    """Where files of a folder are read together there has to be one."""
    with pytest.raises(InputError, match=r"there is no table .*, or a folder of Parquet"):
        pieces_of(str(tmp_path))


@pytest.mark.parametrize("separator", [";;", "ab"])
def test_separators_of_several_characters_are_refused(tmp_path: Path, separator: str) -> None:
    """A separator is one character, but for a blank behind it."""
    path = tmp_path / "table.csv"
    path.write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(InputError, match="separator"):
        read_table(path, separator=separator)


def test_data_frames_become_text_with_nulls_marked() -> None:
    """Every value of a data frame gets its text; null is empty and remembered."""
    frame = pd.DataFrame({"i": [1, 2], "f": [1.5, None], "t": ["x", None], "b": [True, False]})
    table = read_table(frame)
    assert table.columns["i"].texts.tolist() == ["1", "2"]
    assert table.columns["f"].texts.tolist() == ["1.5", ""]
    assert table.columns["t"].null.tolist() == [False, True]
    assert table.columns["b"].texts.tolist() == ["True", "False"]
    assert table.columns["b"].nature == "text"


def test_text_columns_are_compared_letter_by_letter() -> None:
    """A code with a leading zero is not the number without it."""
    left, right = aligned(column("02138"), column("2138"))
    assert left[0] != right[0]


def test_numbers_of_a_frame_equal_their_text() -> None:
    """A number of a data frame and its text in a CSV file are one value."""
    left, right = aligned(
        column("1.0", "-9007199254740993", "0.5", nature="number"),
        column("1", "-9007199254740993", "0.50"),
    )
    assert left.tolist() == right.tolist()


def test_moments_of_a_frame_equal_their_text() -> None:
    """A day of a data frame equals the day in a CSV file; other text stays text."""
    left, right = aligned(
        column("2024-05-01 00:00:00", "2024-05-02 00:00:00", nature="time"),
        column("2024-05-01", "soon"),
    )
    assert left[0] == right[0]
    assert right[1] == "soon"


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([0.1, 1e10, 3.0], dtype="float32"),
        pd.Series([0.1, 1e300, None]),
        pd.Series([1, 2**53 + 1, -7]),
        pd.Series([True, False, True]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.to_datetime(
            pd.Series(["2024-05-01", "2024-05-01 12:30", None], dtype=object), format="ISO8601"
        ),
        pd.Series(pd.date_range("2024-03-30", periods=3, tz="Europe/Athens")),
        pd.Series(["a", "", "b"], dtype="category"),
    ],
)
def test_untouched_columns_survive_a_file(tmp_path: Path, values: pd.Series) -> None:
    """A column of a data frame equals itself read back from CSV or Parquet."""
    frame = values.to_frame("v")
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_parquet(tmp_path / "v.parquet", index=False)
    before = read_table(frame).columns["v"]
    for name in ("v.csv", "v.parquet"):
        left, right = aligned(before, read_table(tmp_path / name).columns["v"])
        assert left.tolist() == right.tolist()
        assert len(set(left.tolist())) == values.nunique(dropna=False)
