"""Tests of the cells that are published, after docs/format.md."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from anonymip import (
    Attribute,
    EquivalenceClasses,
    InputError,
    Microdata,
    Problem,
    Schema,
    TableFormat,
    anonymize,
    publish,
    solve,
    verify,
)
from anonymip.instances.scale import Scale
from anonymip.publishing.release import Release
from tests.by_hand import by_classes


def release_of(
    columns: dict[str, list[Any]], attributes: list[Attribute], labels: list[int], **settings: Any
) -> Release:
    """Publish the classes that `labels` names, in order; other columns are kept."""
    names = [attribute.name for attribute in attributes]
    data = Microdata(
        pd.DataFrame(columns),
        tuple(attributes),
        keep=tuple(set(columns) - set(names)),
        table=TableFormat(missing=()),
    )
    problem = Problem(data, 2, EquivalenceClasses(True))
    solution = by_classes(problem, labels)
    return publish(solution, **{"keep_order": True, **settings})


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        ([35, 37], "[35..37]"),
        ([35, 35], "35"),
        ([35.0, 35.5], "[35..35.5]"),
        ([-2.5, 1e300], "[-2.5..1e+300]"),
        ([0.0, -0.0], "0"),
        ([1e-05, 0.1], "[1e-05..0.1]"),
        ([-7, -3], "[-7..-3]"),
    ],
)
def test_numeric_cells(values: list[float], cell: str) -> None:
    """A number is spelled the shortest way that reads back, and a range of one is a number."""
    published = release_of({"a": values}, [Attribute("a")], [0, 0])
    assert published.frame["a"].tolist() == [cell, cell]
    assert published.verify().ok


def test_each_range_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows show it: covers have a set for every row."""
    written, text = [], Scale.text

    def noted(self: Scale, lower: float, upper: float, write: Any) -> str:
        written.append((lower, upper))
        return text(self, lower, upper, write)

    monkeypatch.setattr(Scale, "text", noted)
    values = [1.0, 2.0] * 20 + [5.0, 6.0]
    release_of({"a": values}, [Attribute("a")], np.repeat(np.arange(21), 2).tolist())
    assert sorted(written) == [(1.0, 2.0), (5.0, 6.0)]


@pytest.mark.parametrize(
    ("values", "cell"), [([9, 10], "{9|10}"), ([9, 9], "9"), ([0.5, -1], "{-1|0.5}")]
)
def test_sets_of_numbers(values: list[float], cell: str) -> None:
    """A numeric attribute published as a set shows its values in ascending order."""
    published = release_of({"a": values}, [Attribute("a", publish="set")], [0, 0])
    assert published.frame["a"].tolist() == [cell, cell]
    assert published.verify().ok


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        (["F", "M"], "{F|M}"),
        (["M", "M"], "M"),
        (["10", "9"], "{10|9}"),
        (["*", "*"], "\\*"),
        (["[x", "[x"], "\\[x"),
        (["{", "{"], "\\{"),
        (["\\x", "\\x"], "\\\\x"),
        (["a*", "a*"], "a*"),
        (["", "F"], "{|F}"),
        (["", ""], ""),
        (["a|b", "}"], "{a\\|b|\\}}"),
        (["\\", "*"], "{*|\\\\}"),
        ([" a", "a "], "{ a|a }"),
        (["é", "z"], "{z|é}"),
    ],
)
def test_text_cells(values: list[str], cell: str) -> None:
    """Texts are sorted by code points and escaped so that every cell has one meaning."""
    published = release_of({"a": values}, [Attribute("a", "categorical")], [0, 0])
    assert published.frame["a"].tolist() == [cell, cell]
    assert published.verify().ok


def test_suppressed_rows_are_stars() -> None:
    """Where it is published, a suppressed record is all stars and keeps its other columns."""
    published = release_of(
        {"a": [1, 2, 99, 0], "b": list("xxyx"), "visit": ["01", "02", "03", "04"]},
        [Attribute("a", domain=(0, 100)), Attribute("b", "categorical", domain=("x", "y"))],
        [0, 0, -1, -1],
        suppressed="starred",
    )
    assert published.frame.iloc[2].tolist() == ["*", "*", "03"]
    assert published.manifest["suppressed"] == 2
    assert published.verify().ok


def test_layout_columns() -> None:
    """Ends of ranges are numbers in columns of their own, in the place of the attribute."""
    published = release_of(
        {"b": ["x", "y", "x", "y"], "a": [1.5, 2, 99, 0], "c": [3, 4, 5, 9]},
        [
            Attribute("a", domain=(0, 100)),
            Attribute("b", "categorical", domain=("x", "y")),
            Attribute("c", domain=(0, 9), publish="set"),
        ],
        [0, 0, -1, -1],
        layout="columns",
        suppressed="starred",
    )
    texts = {"b": ["{x|y}", "{x|y}", "*", "*"], "c": ["{3|4}", "{3|4}", "*", "*"]}
    assert published.frame[["b", "c"]].to_dict("list") == texts
    assert list(published.frame) == ["b", "a_lower", "a_upper", "c"]
    ends = pd.DataFrame({"a_lower": [1.5, 1.5, None, None], "a_upper": [2, 2, None, None]})
    pd.testing.assert_frame_equal(published.frame[list(ends)], ends)
    assert published.manifest["table"]["layout"] == "columns"
    assert published.verify().ok


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ends_are_numbers(library: str, ending: str, tmp_path: Path) -> None:
    """Whole ends are whole numbers in frames of any library; files read back and verify."""
    people = pd.DataFrame({"age": [34, 36, 61, 65, 99], "x": [-0.5, 1.5, 2.25, 2.25, 7]})
    table = pl.from_pandas(people) if library == "polars" else people
    table = pa.Table.from_pandas(people) if library == "arrow" else table
    asked = (Attribute("age", integer=True, domain=(0, 99)), Attribute("x", domain=(-1, 9)))
    problem = Problem(Microdata(table, asked), 2, EquivalenceClasses(True))
    found = by_classes(problem, [0, 0, 0, -1, -1])
    release = publish(found, layout="columns", keep_order=True, suppressed="starred")
    shown = release.table
    assert shown["x_lower"].dtype == np.float64
    assert shown["age_lower"].dtype == "Int64"
    assert shown["age_upper"].tolist()[:3] == [61, 61, 61]
    assert shown["x_upper"].isna().tolist() == [False] * 3 + [True] * 2
    file, _ = release.write(tmp_path / f"release.{ending}", original=table)
    assert verify(table, file).ok
    if ending == "csv":
        lines = file.read_text(encoding="utf-8").splitlines()
        assert lines[1:] == ["34,61,-0.5,2.25"] * 3 + ["*,*,*,*"] * 2


def test_ends_with_gaps_at_one_end_are_refused() -> None:
    """A star is a gap at both ends, or the release breaks the format."""
    release = release_of(
        {"a": [1, 2, 3, 9]}, [Attribute("a", domain=(0, 9))], [0, 0, 1, 1], layout="columns"
    )
    broken = release.frame.astype(float)
    broken.iloc[0, 0] = np.nan
    found = verify(pd.DataFrame({"a": [1, 2, 3, 9]}), broken, release.manifest)
    assert not found.ok
    assert "is suppressed at one end only" in found.problems[0]


N = 6


def with_column(column: Any) -> pd.DataFrame:
    """Return six persons with another column ``x``."""
    return pd.DataFrame({"age": [30, 31, 40, 41, 50, 51], "x": column})


def arrow(kind: pa.DataType, values: list[Any]) -> pd.Series:
    """Return a column of an Arrow type."""
    return pd.Series(pd.array(values, dtype=pd.ArrowDtype(kind)))


#: Columns whose values are nothing to publish.
STRUCTURED: dict[str, tuple[Callable[[], Any], str]] = {
    "lists": (lambda: pd.Series([[1, 2]] * N), "list"),
    "arrays": (lambda: pd.Series([np.arange(2)] * N), "ndarray"),
    "tuples": (lambda: pd.Series([(1, 2)] * N), "tuple"),
    "mappings": (lambda: pd.Series([{"a": 1}] * N), "dict"),
    "lists of Arrow": (lambda: arrow(pa.list_(pa.int64()), [[1, 2]] * N), "list|ndarray"),
}
DATES: dict[str, Callable[[], Any]] = {
    "moments": lambda: pd.Series(pd.date_range("2020-01-01", periods=N)),
    "moments of a zone": lambda: pd.Series(pd.date_range("2020-01-01", periods=N, tz="UTC")),
    "dates": lambda: pd.Series([dt.date(2020, 1, 1)] * N),
    "dates of Arrow": lambda: arrow(pa.date32(), [dt.date(2020, 1, 1)] * N),
    "times": lambda: pd.Series([dt.time(3)] * N),
    "durations": lambda: pd.Series(pd.to_timedelta(range(N), unit="D")),
    "periods": lambda: pd.Series(pd.period_range("2020-01", periods=N, freq="M")),
    "categories": lambda: pd.Series(pd.date_range("2020-01-01", periods=N)).astype("category"),
}
#: Columns that are published untouched.
VALUES: dict[str, Callable[[], Any]] = {
    **DATES,
    "dictionary of Arrow": lambda: pd.Series(
        pd.arrays.ArrowExtensionArray(
            pa.array(["a", "b"] * 3 + ["left out"]).dictionary_encode().slice(0, N)
        )
    ),
    "intervals": lambda: pd.cut(pd.Series(range(N)), 3),
    "complex numbers": lambda: pd.Series([1j, 2j] * 3),
    "decimals of two scales": lambda: pd.Series([Decimal("1.5"), Decimal("2")] * 3),
    "bytes": lambda: pd.Series([b"a", b"b"] * 3),
    "half precision": lambda: pd.Series([0.1, 18.4, np.nan] * 2, dtype="float16"),
    "half precision of Arrow": lambda: arrow(pa.float16(), [np.float16(0.1), None] * 3),
    "infinite numbers": lambda: pd.Series([float("inf"), -float("inf")] * 3),
}


@pytest.mark.parametrize("role", ["quasi-identifier", "sensitive", "keep"])
@pytest.mark.parametrize("name", STRUCTURED)
def test_columns_of_lists_are_refused(name: str, role: str) -> None:
    """A cell that holds several values is refused by column, role, type and row."""
    make, kind = STRUCTURED[name]
    named = {} if role == "quasi-identifier" else {role: ["x"]}
    identifiers = ["age"] if named else ["age", "x"]
    message = rf"column 'x' \({role}\) holds a ({kind}), .* data row 1\. Write it as text"
    with pytest.raises(InputError, match=message):
        anonymize(with_column(make()), identifiers, 3, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DATES)
def test_dates_are_no_categories(name: str) -> None:
    """Dates and times are refused with what to give instead, rather than published as sets."""
    are_times = name in ("times", "durations")
    what = "times of day or durations" if are_times else "dates or times"
    with pytest.raises(InputError, match=re.escape(f"column 'x' holds {what}")) as result:
        anonymize(with_column(DATES[name]()), ["age", "x:categorical"], 3)
    assert ("Give numbers" if are_times else 'kind = "date"') in str(result.value.remedy)


@pytest.mark.crossed
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("name", VALUES)
def test_untouched_columns_of_any_type(name: str, ending: str, tmp_path: Path) -> None:
    """What is published untouched survives both kinds of file, whatever its type."""
    frame = with_column(VALUES[name]())
    release = anonymize(frame, ["age"], 3, method="ordered-cut", keep=["x"])
    table, _ = release.write(tmp_path / f"release{ending}")
    assert verify(frame, table).ok
    assert release.verify().ok


_HALVES = np.array([0.1, 18.4] * 3, np.float16)
_DAYS = [dt.date(2020, 1, 1), dt.date(2020, 1, 2)] * 3
_HOURS = [dt.time(1), dt.time(2)] * 3
#: Columns of Parquet files, and why they are no quasi-identifier or not published at all.
ARROW: dict[str, tuple[Callable[[], pa.Array], str, str]] = {
    "half precision": (lambda: pa.array(_HALVES), "", ""),
    "half precision with gaps": (
        lambda: pa.array([*_HALVES[:5], None], pa.float16()),
        "1 missing values",
        "",
    ),
    "half precision in a dictionary": (
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1] * 3), pa.array(_HALVES[:2])),
        "",
        "",
    ),
    "decimal": (lambda: pa.array([Decimal("1.50"), Decimal("2.25")] * 3), "", ""),
    "wide decimal": (
        lambda: pa.array([Decimal(10**35), Decimal(1)] * 3, pa.decimal256(50, 0)),
        "too large to be exact",
        "",
    ),
    "dictionary": (lambda: pa.array(["a", "b"] * 3).dictionary_encode(), "", ""),
    "large text": (lambda: pa.array(["a", "b"] * 3, pa.large_string()), "", ""),
    "view of text": (lambda: pa.array(["a", "b"] * 3, pa.string_view()), "", ""),
    "64 bits without sign": (
        lambda: pa.array([2**64 - 1, 1] * 3, pa.uint64()),
        "too large to be exact",
        "",
    ),
    "truth": (lambda: pa.array([True, False] * 3), "", ""),
    "binary": (lambda: pa.array([b"a", b"b"] * 3), "holds a bytes", ""),
    "date": (lambda: pa.array(_DAYS, pa.date64()), "", ""),
    "moment": (lambda: pa.array([0, 86400] * 3, pa.timestamp("s", "UTC")), "", ""),
    "time": (lambda: pa.array(_HOURS, pa.time32("s")), "times of day", ""),
    "duration": (lambda: pa.array([5, 6] * 3, pa.duration("s")), "times of day", ""),
    "nothing": (lambda: pa.nulls(N), "6 missing values", ""),
    "list": (lambda: pa.array([[1], [2, 3]] * 3), "holds a ndarray", "holds a ndarray"),
    "structure": (lambda: pa.array([{"a": 1}, {"a": 2}] * 3), "holds a dict", "holds a dict"),
    "mapping": (
        lambda: pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())),
        "holds a list",
        "holds a list",
    ),
}


@pytest.mark.parametrize("name", ARROW)
def test_columns_of_parquet_files(name: str, tmp_path: Path) -> None:
    """A column of any Arrow type is published and verified, or refused by its name and why."""
    make, unfit, unpublished = ARROW[name]
    file = tmp_path / "people.parquet"
    parquet.write_table(pa.table({"age": [30, 31, 40, 41, 50, 51], "x": make()}), file)
    for role, refusal in (("", unfit), ("sensitive", unpublished), ("keep", unpublished)):
        named = {role: ["x"]} if role else {}
        schema = Schema().with_roles(["age"] if role else ["age", "x"], **named)
        if refusal:
            with pytest.raises(InputError, match=f"column 'x'.*{refusal}"):
                schema.read(file)
            continue
        found = solve(Problem(schema.read(file), 3), "ordered-cut")
        for ending in (".csv", ".parquet"):
            table, _ = publish(found).write(tmp_path / f"release{ending}", original=file)
            assert verify(file, table).ok


def test_a_dictionary_tells_nothing_of_values_left_out(tmp_path: Path) -> None:
    """The dictionary of an Arrow column may hold values of no row: no file shows them."""
    frame = with_column(VALUES["dictionary of Arrow"]())
    release = anonymize(frame, ["age"], 3, method="ordered-cut", sensitive=["x"])
    table, _ = release.write(tmp_path / "release.parquet")
    assert parquet.read_table(table).column("x").to_pylist() == release.frame["x"].tolist()
    assert b"left out" not in table.read_bytes()


def test_lists_without_a_role(tmp_path: Path) -> None:
    """A column of lists that has no role is left out like any other."""
    frame = with_column(arrow(pa.list_(pa.int64()), [[1, 2]] * N))
    assert "x" not in anonymize(frame, ["age"], 3, method="ordered-cut").frame


@pytest.mark.parametrize("column", ["quasi-identifier", "sensitive"])
def test_half_surrogates_are_refused(column: str) -> None:
    """A text that no encoding can write is refused before anything is solved."""
    frame = with_column(pd.Series(["\ud800", "b"] * 3, dtype=object))
    named = ["age", "x"] if column == "quasi-identifier" else ["age"]
    with pytest.raises(InputError, match="no Unicode, first in data row 1"):
        anonymize(frame, named, 3, sensitive=[] if column == "quasi-identifier" else ["x"])


def test_sparse_columns_are_refused() -> None:
    """A sparse column is refused with the way to make it dense."""
    frame = with_column(pd.arrays.SparseArray([0, 0, 0, 0, 1, 1]))
    with pytest.raises(InputError, match=re.escape("sparse.to_dense()")):
        anonymize(frame, ["age", "x"], 3)
