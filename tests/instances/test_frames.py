"""Tests of data frames of other libraries: read exactly, and given back as they came."""

from __future__ import annotations

import datetime
import decimal
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    InputError,
    Microdata,
    Problem,
    Schema,
    anonymize,
    publish,
    solve,
    verify,
)
from anonymip.instances.readers import as_pandas

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
        (pl.DataFrame({"age": DAYS[:2]}), r"column 'age' holds dates"),
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
