"""Tests of readers of files, and of data frames of other libraries."""

from __future__ import annotations

import datetime
import decimal
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    InputError,
    Microdata,
    Problem,
    Schema,
    TableFormat,
    anonymize,
    publish,
    read_table,
    solve,
    verify,
)
from anonymip.experiments.records import sets_of
from anonymip.instances.readers import as_pandas
from anonymip.privacy.reading.text_tables import read_table as read_to_verify

Columns = dict[str, list[Any]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a test writes its table."""
    return tmp_path / "table.csv"


def read(file: Path, text: str | bytes, **options: Any) -> Columns:
    """Write a file and return its columns."""
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(file, TableFormat(**options)).to_dict("list")


def test_cells_come_as_they_are_written(file: Path) -> None:
    """Leading zeros, blanks, and texts that pandas takes for null survive."""
    columns = read(file, "zip,note\n02138, x \n10001,NA\n,nan\n")
    assert columns == {"zip": ["02138", "10001", ""], "note": [" x ", "NA", "nan"]}


@pytest.mark.parametrize(
    ("separator", "text"),
    [
        (";", "a;b\n1;x y\n"),
        ("; ", "a; b\n1; x y\n"),
        (", ", 'a, b\n1, "x y"\n'),
        ("\t", "a\tb\n1\tx y\n"),
        ("|", "a|b\n1|x y\n"),
        (" ", 'a b\n1 "x y"\n'),
    ],
)
def test_separators(file: Path, separator: str, text: str) -> None:
    """A separator with a blank behind it skips blanks after each separator."""
    assert read(file, text, separator=separator) == {"a": ["1"], "b": ["x y"]}


@pytest.mark.parametrize(
    "text",
    [
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\n1,2\n3,4",
        "\n\na,b\n\n1,2\n\n3,4\n\n",
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
        '"a","b"\n"1","2"\n"3","4"\n',
    ],
    ids=["crlf", "no end of line", "blank lines", "byte order mark", "quotes"],
)
def test_variants_of_one_file_are_read_alike(file: Path, text: str | bytes) -> None:
    """Line ends, blank lines, a byte order mark and quotes change nothing."""
    assert read(file, text) == {"a": ["1", "3"], "b": ["2", "4"]}


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf_8"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(file: Path, encoding: str) -> None:
    """UTF-8 is recognised by all its names."""
    assert list(read(file, b"\xef\xbb\xbfa,b\n1,2\n", encoding=encoding)) == ["a", "b"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_other_encodings_can_be_named(file: Path, encoding: str) -> None:
    """Accents arrive when the encoding is declared."""
    assert read(file, "a\né\n".encode(encoding), encoding=encoding) == {"a": ["é"]}


def test_a_file_without_header_is_named_by_the_schema(file: Path) -> None:
    """Without a header the first line is the first record."""
    columns = read(file, "1,2\r\n3,4\r\n", header=False, columns=("p", "q"))
    assert columns == {"p": ["1", "3"], "q": ["2", "4"]}


def test_quoted_cells_may_hold_separators_quotes_and_line_ends(file: Path) -> None:
    """Quoting follows RFC 4180."""
    columns = read(file, 'a,b\n"x,y","say ""no"""\n"two\nlines",2\n')
    assert columns == {"a": ["x,y", "two\nlines"], "b": ['say "no"', "2"]}


def test_very_long_cells_are_read(file: Path) -> None:
    """Cells beyond the csv module's usual limit pass, in the header and below."""
    name, cell = "n" * 200_000, "c" * 200_000
    assert read(file, f"{name},b\n1,{cell}\n") == {name: ["1"], "b": [cell]}


def test_a_header_alone_is_a_table_without_rows(file: Path) -> None:
    """The reader returns it; microdata refuse it."""
    assert read(file, "a,b\n") == {"a": [], "b": []}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        ("\n\n", {}, "is empty"),
        ("a,b,a\n1,2,3\n", {}, "duplicate column names"),
        ("1,2\n", {"header": False, "columns": ("p", "p")}, "duplicate column names"),
        ("1,2\n", {"header": False, "columns": ("p",)}, "has 2 columns, the schema names 1"),
        ("1,2\n", {"header": False}, "has 2 columns, the schema names 0"),
        (b"a\n\xe9\n", {}, "is not text in the encoding utf-8"),
        (b"a\n" + b"1\n" * 100_000 + b"\xe9\n", {}, "is not text in the encoding utf-8"),
        ("a\n1\n", {"encoding": "nonsense"}, "is no encoding of texts"),
        ("a\n1\n", {"encoding": "base64"}, "is no encoding of texts"),
        ("a\n1\n", {"encoding": "utf-16"}, "is not text in the encoding utf-16"),
        ('a,b\n"x,2\n3,4\n', {}, "cannot be read as a table"),
        ('a,b\n"x"y,2\n', {}, "cannot be read as a table"),
    ],
)
def test_what_is_no_table_is_refused(
    file: Path, text: str | bytes, options: dict[str, Any], message: str
) -> None:
    """The message names the file and what to do; there is no traceback."""
    with pytest.raises(InputError, match=message) as caught:
        read(file, text, **options)
    assert str(file) in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("rows", "offender", "cells"),
    [
        (["1,2,3", "4,5"], 1, 3),
        (["1,2,", "4,5,"], 1, 3),
        (["1,2,3", "4,5,6"], 1, 3),
        (["1,2", "4,5,6"], 2, 3),
        (["1,2", "", "4"], 2, 1),
        (["1", "4,5"], 1, 1),
    ],
)
@pytest.mark.parametrize("header", [True, False])
def test_ragged_rows_are_refused(
    file: Path, rows: list[str], offender: int, cells: int, header: bool
) -> None:
    """A row with too many or too few cells is named; none is cut off or filled up silently."""
    if header:
        text, options, message = "a,b\n", {}, f"data row {offender} has {cells} cells"
    else:
        text, options = "", {"header": False, "columns": ("a", "b")}
        message = f"data row {offender} has {cells} cells"
        if offender == 1:
            message = f"has {cells} columns, the schema names 2"
    with pytest.raises(InputError, match=message) as caught:
        read(file, text + "\n".join(rows) + "\n", **options)
    assert caught.value.remedy


def test_rows_that_could_be_skipped_as_blank_are_refused(file: Path) -> None:
    """A line of blanks in a table of one column is a record or none: nobody can tell."""
    with pytest.raises(InputError, match="has 3 or 2 rows") as caught:
        read(file, "a\n1\n  \n2\n")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.csv", "there is no file .*absent.csv"),
        (".", "is a folder, not a file. Name the file .* with engine=...,"),
    ],
)
def test_missing_files_and_folders_are_refused(tmp_path: Path, name: str, message: str) -> None:
    """The message names the path, and of a folder what to name."""
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n\0")),
            st.text("abc,;\" '\\|{}[]", min_size=1),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_pandas_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    """Any texts on one line come back exactly, in the same rows."""
    file = tmp_path_factory.mktemp("written") / "table.csv"
    frame = pd.DataFrame(rows, columns=["a", "b"])
    frame.to_csv(file, index=False)
    assert read_table(file).to_dict("list") == frame.to_dict("list")


@pytest.mark.parametrize("ending", ["parquet", "pq", "PARQUET"])
def test_parquet_keeps_its_types(tmp_path: Path, ending: str) -> None:
    """Numbers stay numbers, texts texts, null null."""
    frame = pd.DataFrame({"age": [1, 2], "zip": ["02138", None], "pay": [0.5, 1.0]})
    file = tmp_path / f"table.{ending}"
    frame.to_parquet(file)
    pd.testing.assert_frame_equal(read_table(file), frame)


@pytest.mark.parametrize(
    "notes",
    [
        {"index_columns": ["gone"], "columns": [], "column_indexes": []},
        {"index_columns": 7, "columns": [], "column_indexes": []},
        {"index_columns": [], "columns": None, "column_indexes": []},
        [],
    ],
)
def test_parquet_with_notes_of_another_table_is_refused(tmp_path: Path, notes: object) -> None:
    """What pandas raises there is of many kinds: none of them is an internal error of ours."""
    file = tmp_path / "table.parquet"
    table = pa.table({"a": [1, 2]})
    noted = table.replace_schema_metadata({b"pandas": json.dumps(notes).encode()})
    pq.write_table(noted, file)
    for read_either in (read_table, read_to_verify):
        with pytest.raises(InputError, match="Parquet") as caught:
            read_either(file)
        assert caught.value.remedy is not None


@pytest.mark.parametrize("content", [b"", b"no parquet"])
def test_broken_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that only bears the ending raises a clear message."""
    file = tmp_path / "table.parquet"
    file.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as Parquet") as caught:
        read_table(file)
    assert caught.value.remedy == "Check the file"


DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3, 4, 5, 6)]
COLUMNS: dict[str, list[Any]] = {
    "age": [34, 36, 35, 61, 65, 63],
    "sex": ["F", "F", "F", "M", "M", "M"],
    "visits": [1, None, 2**60 + 1, 4, 5, 1],
    "smokes": [True, None, False, True, True, False],
    "day": DAYS,
    "at": [datetime.datetime(2024, 1, 1, hour) for hour in range(6)],
    "paid": [decimal.Decimal("1.50"), None, *[decimal.Decimal("2.25")] * 4],
    "weight": [70.5, None, 81.25, 1e-300, 2.0, 70.5],
    "code": ["007", None, "02138", "a,b", "", "x"],
}
UNTOUCHED = tuple(name for name in COLUMNS if name not in ("age", "sex"))


def polars() -> pl.DataFrame:
    """Return the table as polars has it, with categories and small numbers."""
    frame = pl.DataFrame(COLUMNS)
    return frame.with_columns(
        pl.col("age").cast(pl.Int16), pl.col("code").cast(pl.Categorical).alias("group")
    )


def arrow() -> pa.Table:
    """Return the table as Arrow has it."""
    table = pa.table(COLUMNS)
    return table.append_column("group", table["code"].dictionary_encode())


KINDS: dict[str, Callable[[], Any]] = {"polars": polars, "arrow": arrow}


def released(frame: Any, **more: Any) -> Any:
    """Return the release of the table, in its order."""
    return anonymize(frame, ["age", "sex"], 3, keep=[*UNTOUCHED, "group"], keep_order=True, **more)


def values(frame: Any, name: str) -> list[Any]:
    """Return the values of a column of any kind."""
    column = frame[name]
    return list(column.to_pylist() if isinstance(frame, pa.Table) else column.to_list())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:column")
def test_a_release_is_of_the_kind_that_came_in(kind: str) -> None:
    """Generalized columns are texts; the others hold the same values, of the same types."""
    frame = KINDS[kind]()
    release = released(frame)
    assert type(release.frame) is type(frame)
    assert values(release.frame, "age") == ["[34..36]"] * 3 + ["[61..65]"] * 3
    assert values(release.frame, "sex") == COLUMNS["sex"]
    for name in (*UNTOUCHED, "group"):
        assert values(release.frame, name) == values(frame, name), name
        if isinstance(frame, pl.DataFrame):
            assert release.frame.schema[name] == frame.schema[name], name
        elif name != "group":
            assert release.frame.schema.field(name).type == frame.schema.field(name).type, name
    assert release.verified
    assert release.verify().ok


@pytest.mark.parametrize("kind", KINDS)
def test_the_release_is_that_of_pandas(kind: str) -> None:
    """With the same seeds, what is published is the same, row by row."""
    frame = KINDS[kind]()
    schema = Schema({"age": {"kind": "numeric"}, "sex": {}}, keep=("code",), drop=UNTOUCHED[:-1])
    found = []
    for table in (frame, as_pandas(frame)):
        data = schema.apply(table)
        solution = solve(Problem(data, 3), "mondrian")
        found.append(publish(solution, np.random.default_rng(3)))
    other, plain = found
    assert isinstance(plain.frame, pd.DataFrame)
    assert plain.table is plain.frame
    for name in ("age", "sex", "code"):
        expected = [None if pd.isna(one) else one for one in plain.frame[name]]
        assert values(other.frame, name) == expected
    assert other.solution.objective == plain.solution.objective


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.filterwarnings("ignore:column")
def test_it_is_written_and_verified(kind: str, ending: str, tmp_path: Path) -> None:
    """The file holds the same, and frames of any kind are verified against each other."""
    frame = KINDS[kind]()
    release = released(frame, method="mondrian")
    table, _ = release.write(tmp_path / f"release.{ending}")
    assert verify(frame, release.frame, release.manifest).ok
    assert verify(as_pandas(frame), release.frame, release.manifest).ok
    if ending == "csv":
        assert f"{2**60 + 1}" in table.read_text()
        assert verify(frame, table).ok
    changed = pl.from_pandas(release.table.assign(sex="F"))
    assert not verify(frame, changed, release.manifest).ok


@pytest.mark.parametrize("kind", KINDS)
def test_microdata_and_a_pickle_keep_the_kind(kind: str) -> None:
    """What is made of a table knows how it came, also after a pickle and of a part of it."""
    frame = KINDS[kind]()
    data = Microdata(frame, (Attribute("age"), Attribute("sex", "categorical")), drop=UNTOUCHED)
    for one in (data, pickle.loads(pickle.dumps(data)), data.take(np.arange(6))):
        release = publish(solve(Problem(one, 3), "mondrian"))
        assert type(release.frame) is type(frame)


def test_a_part_of_a_table_is_a_table_of_its_own() -> None:
    """Its original has the records taken, numbered from 0; it is told, published and verified."""
    frame = pd.DataFrame({"age": [30, 31, None, 40, 41, 42], "id": list("abcdef")})
    data = Microdata(frame, (Attribute("age"),), keep=("id",), table=TableFormat(policy="drop"))
    records = np.array([4, 3, 2, 0])  # the third row is no record
    assert data.take(records, as_part=True).rows.tolist() == [5, 4, 3, 0]
    part = data.take(records)
    assert part.rows.tolist() == [0, 1, 2, 3]
    assert part.original["id"].tolist() == list("feda")
    solution = solve(Problem(part, 2), "mondrian")
    assert sets_of(solution)["groups"] == solution.classes.labels.tolist()
    release = publish(solution, keep_order=True)
    assert release.frame["id"].tolist() == list("feda")
    assert verify(part.original, release.frame, release.manifest).ok


@pytest.mark.parametrize("policy", ["drop", "category"])
def test_missing_values_follow_their_policy(policy: str) -> None:
    """A gap of polars is a missing value like any."""
    frame = pl.DataFrame({"sex": ["F", None, "F", "M", "M", "F"], "id": [1, 2, None, 4, 4, 4]})
    with pytest.raises(InputError, match="1 missing values, the first in data row 2"):
        anonymize(frame, ["sex"], 2, keep=["id"])
    release = anonymize(frame, ["sex"], 2, keep=["id"], missing=policy, keep_order=True)
    assert release.frame["id"].to_list() == (
        [1, None, 4, 4, 4] if policy == "drop" else [1, 2, None, 4, 4, 4]
    )


def test_categories_of_records_that_are_left_out_are_not_given_back() -> None:
    """An enumeration would tell of values that no published row has."""
    kind = pl.Enum(["rare", "b", "a"])
    wards = pl.Series("ward", ["a", "b", "a", "rare"], kind)
    frame = pl.DataFrame({"age": [1, 2, 3, None], "ward": wards})
    release = anonymize(frame, ["age"], 3, keep=["ward"], missing="drop", keep_order=True)
    assert release.frame["ward"].to_list() == ["a", "b", "a"]
    assert release.frame.schema["ward"] == pl.Categorical


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.LazyFrame({"age": [1, 2]}), r"LazyFrame, which is not computed yet.*collect"),
        ([1, 2], r"frame is a list. Give a data frame of pandas or polars"),
        (np.ones((2, 2)), r"frame is a ndarray. Give"),
        (None, r"frame is a NoneType. Give"),
        (pl.Series([1, 2]), r"frame is a Series. Give"),
        (
            pl.DataFrame({"age": [object(), 2]}, schema={"age": pl.Object}),
            r"column 'age' holds objects",
        ),
        (pl.DataFrame({"age": [[1], [2]]}), r"column 'age'.* is no single value"),
        (pl.DataFrame({"age": [datetime.time(1)]}), r"column 'age' holds times"),
        (pl.DataFrame({"age": []}), r"the table has no rows"),
        (pa.table([[1, 2], [3, 4]], names=["age", "age"]), r"duplicate column names"),
    ],
)
def test_what_is_no_table_of_ours_is_refused(frame: Any, message: str) -> None:
    """The error says what to give instead."""
    with pytest.raises(InputError, match=message):
        Microdata(frame, (Attribute("age", "categorical"),))
    with pytest.raises(InputError):
        anonymize(frame, ["age"], 2)


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(allow_nan=False, width=64),
            st.none() | st.booleans(),
            st.none() | st.text(st.characters(codec="utf-8"), max_size=4),
            st.none() | st.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1)),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_untouched_columns_come_back_as_they_went_in(rows: list[tuple[Any, ...]]) -> None:
    """Whatever polars holds, a kept column is the same afterwards."""
    kinds = {"i": pl.Int64, "f": pl.Float64, "b": pl.Boolean, "s": pl.String, "d": pl.Date}
    frame = pl.DataFrame(rows, schema=kinds, orient="row").with_columns(age=pl.lit(1))
    data = Microdata(frame, (Attribute("age"),), keep=tuple(kinds), drop=())
    release = publish(solve(Problem(data, 2), "initial"), keep_order=True)
    assert release.frame.select(*kinds).equals(frame.select(*kinds), null_equal=True)
    assert release.frame.select(*kinds).schema == frame.select(*kinds).schema
