"""Tests of formats that are found from files."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import InputError, TableFormat, inspect, read_table
from anonymip.instances.readers import detect_format

ROWS = ["Name;Größe;Datum", "Ann;1,5;01.02.2024", "Bea;1,75;03.02.2024", '"Cy;d";2;04.02.2024']


def write(folder: Path, raw: bytes) -> Path:
    """Write a file of these bytes."""
    path = folder / "table.csv"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
def test_encodings_are_found(tmp_path: Path, encoding: str, found: str) -> None:
    """By the mark at the beginning, by zeros, or by what the bytes are text in."""
    path = write(tmp_path, "\n".join(ROWS).encode(encoding))
    form = detect_format(path)
    assert (form.separator, form.encoding, form.header) == (";", found, True)
    assert read_table(path, form).iloc[:, 0].tolist() == ["Ann", "Bea", "Cy;d"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", ", "])
def test_separators_are_found(tmp_path: Path, separator: str) -> None:
    """Among them a comma with a blank behind it."""
    lines = ["a|b|c", "x|1|y z", "u|2|v"]
    path = write(tmp_path, "\n".join(line.replace("|", separator) for line in lines).encode())
    assert detect_format(path) == TableFormat(separator)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("age,sex\n35,F\n36,M\n", True),
        ("35,F\n36,M\n37,F\n", False),
        ("F,flu\nM,flu\nF,gout\n", False),  # its cells are values below
        ("sex,ill\nF,flu\nM,flu\nsex,ill\nF,gout\n", True),  # two files in one
        ("id,2019,2020,2021\na,1,2,3\nb,4,5,6\n", True),  # years are names
        ("01.02.2024,x\n02.02.2024,y\n", False),
        ("name\n", True),
    ],
)
def test_a_missing_header_is_seen(tmp_path: Path, text: str, header: bool) -> None:
    """Else values of the first person would be told as names of columns."""
    path = write(tmp_path, text.encode())
    form = detect_format(path)
    assert form.header is header
    if not header:
        assert form.columns == ("column_1", "column_2")
        assert len(read_table(path, form)) == len(text.splitlines())


@settings(max_examples=120)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=80).map(str.encode)))
def test_no_bytes_break_it(raw: bytes) -> None:
    """Some format is found for any file; reading it may refuse the table, and says why."""
    with TemporaryDirectory() as folder:
        path = write(Path(folder), raw)
        assert isinstance(detect_format(path), TableFormat)
        with suppress(InputError):
            inspect(path)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(*[st.text("abcäé 1.,;|'\"\n", min_size=1, max_size=5)] * 3),
        min_size=2,
        max_size=8,
    ),
    st.sampled_from([";", "\t", "|", ","]),
    st.sampled_from(["utf-8", "cp1252", "utf-16"]),
)
def test_quoted_tables_come_back(
    rows: list[tuple[str, ...]], separator: str, encoding: str
) -> None:
    """With all cells in quotes nothing is ambiguous, whatever the cells hold."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with path.open("w", encoding=encoding, newline="") as stream:
            writer = csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL)
            writer.writerows([("one", "two", "three"), *rows])
        frame = read_table(path, detect_format(path))
        assert [tuple(row) for row in frame.to_numpy()] == rows


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """As everywhere, and for the inspection too."""
    with pytest.raises(InputError, match="cannot be read"):
        detect_format(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="there is no file"):
        inspect(tmp_path / "nothing.csv")
