"""Tests of microdata: roles of columns, missing values, codes, row types."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymip import Attribute, Hierarchy, InputError, Microdata, TableFormat
from anonymip.instances.microdata import NEARLY_UNIQUE

AGE, SEX = Attribute("age"), Attribute("sex", "categorical")


def people(**columns: Any) -> pd.DataFrame:
    """Return a table of four persons, with further columns."""
    return pd.DataFrame({"age": [34, 36, 61, 34], "sex": ["F", "F", "M", "F"], **columns})


def category(values: Sequence[Any], **parameters: Any) -> Microdata:
    """Return a table of one categorical attribute."""
    attribute = Attribute("x", "categorical", **parameters)
    return Microdata(pd.DataFrame({"x": values}), (attribute,))


def values_of(data: Microdata) -> NDArray[np.float64]:
    """Return the values; a name of its own, since pandas' attribute of that name is banned."""
    return data.values  # noqa: PD011


def test_codes_are_ranks_of_sorted_levels() -> None:
    """Levels are the sorted observed values, codes their ranks, values numbers where there are."""
    data = Microdata(people(), (AGE, SEX))
    assert [level.tolist() for level in data.levels] == [[34.0, 36.0, 61.0], ["F", "M"]]
    assert data.codes.tolist() == [[0, 0], [1, 0], [2, 1], [0, 0]]
    assert values_of(data).tolist() == [[34, 0], [36, 0], [61, 1], [34, 0]]
    assert data.codes.dtype == np.int32
    assert values_of(data).dtype == np.float64
    assert (data.n, data.m, data.names) == (4, 2, ("age", "sex"))
    assert repr(data) == "<Microdata: 4 records, quasi-identifiers age, sex>"


def test_the_table_is_frozen() -> None:
    """Neither the arrays nor the caller's later changes of the frame reach the microdata."""
    frame = people()
    data = Microdata(frame, (AGE, SEX))
    frame.loc[0, "age"] = 99
    assert data.frame["age"].tolist() == [34, 36, 61, 34]
    assert data.original["age"].tolist() == [34, 36, 61, 34]
    for array in (data.codes, values_of(data), *data.levels):
        assert not array.flags.writeable


def test_categories_that_are_numbers_are_sorted_by_number() -> None:
    """9 comes before 10, as the data of the papers are coded; mixed ones are sorted as texts."""
    assert category(["10", "9", "2"]).levels[0].tolist() == ["2", "9", "10"]
    assert values_of(category(["10", "9", "2"]))[:, 0].tolist() == [10.0, 9.0, 2.0]
    assert category([10, 9, 2]).levels[0].tolist() == ["2", "9", "10"]
    assert category(["10", "9", "b"]).levels[0].tolist() == ["10", "9", "b"]


def test_categories_keep_their_spelling() -> None:
    """Texts that are one number in two spellings are two categories."""
    assert category(["1", "1.0", "01", "1"]).codes[:, 0].tolist() == [0, 1, 2, 0]


def test_pandas_categories_are_read_as_texts() -> None:
    """A categorical column brings its observed values, not its unused ones."""
    data = category(pd.Categorical(["b", "a", "b"], categories=["b", "a", "c"]))
    assert data.levels[0].tolist() == ["a", "b"]


def test_truth_values_are_categories() -> None:
    """A column of truth values becomes the texts True and False."""
    assert category([True, False, True]).levels[0].tolist() == ["False", "True"]


def test_columns_may_be_named_by_numbers() -> None:
    """Names are compared as texts: the columns of a frame without names can be used."""
    data = Microdata(pd.DataFrame([[1, "a"], [2, "a"]]), (Attribute("0"),), keep=("1",))
    assert data.frame.columns.tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("frame", "arguments", "message", "remedy"),
    [
        ([[1]], {}, "frame is a list", "data frame of pandas"),
        (people().iloc[:0], {}, "the table has no rows", "at least k rows"),
        (people(), {"attributes": ()}, "no quasi-identifiers are named", "attributes=..."),
        (people(), {"attributes": ("age",)}, "attributes holds a str", "Attribute(name"),
        (
            people(),
            {"attributes": (AGE, Attribute("agee"))},
            "unknown column 'agee' (quasi-identifier)",
            "Did you mean 'age'?",
        ),
        (people(secret1=0), {"drop": ("secret2",)}, "unknown column 'secret2'", "Check its name"),
        (people(), {"sensitive": ("ill",)}, "unknown column 'ill' (sensitive)", "Check its name"),
        (people(), {"keep": ("ill",)}, "unknown column 'ill' (keep)", "Check its name"),
        (people(), {"drop": ("ill",)}, "unknown column 'ill' (drop)", "Check its name"),
        (
            people(),
            {"sensitive": ("age",)},
            "column 'age' is quasi-identifier and sensitive",
            "Give it one role",
        ),
        (people(), {"attributes": (AGE, AGE)}, "is quasi-identifier and quasi", "one role"),
        (people(ill=0), {"keep": ("ill",), "drop": ("ill",)}, "is keep and drop", "one role"),
        (
            people().set_axis(["age", "age"], axis=1),
            {},
            "duplicate column names",
            "Rename the columns",
        ),
    ],
)
def test_wrong_roles_are_refused(
    frame: Any, arguments: dict[str, Any], message: str, remedy: str
) -> None:
    """Every column has one role and exists; the message says which column, and what to do."""
    with pytest.raises(InputError) as caught:
        Microdata(frame, **{"attributes": (AGE,), **arguments})
    assert message in caught.value.message
    assert remedy in (caught.value.remedy or "")


def test_undeclared_columns_are_listed() -> None:
    """Columns without a role are listed; they are not quasi-identifiers and not published."""
    data = Microdata(people(town=["a", "b", "b", "a"]), (AGE,), drop=("sex",))
    assert data.undeclared == ("town",)


@pytest.mark.parametrize(
    "names", [list("abcd"), [1, 2, 3, 4], [[1], [2], [3], [4]]], ids=["texts", "ints", "lists"]
)
def test_nearly_unique_undeclared_columns_are_refused(names: list[Any]) -> None:
    """What looks like an identifier must be kept, dropped or made a quasi-identifier."""
    with pytest.raises(InputError, match="column 'name' has no role and is nearly unique") as error:
        Microdata(people(name=names), (AGE, SEX))
    assert "keep=..." in (error.value.remedy or "")
    assert "drop=..." in (error.value.remedy or "")
    assert Microdata(people(name=names), (AGE, SEX), drop=("name",)).undeclared == ()
    if not isinstance(names[0], list):
        assert Microdata(people(name=names), (AGE, SEX), keep=("name",)).undeclared == ()


@pytest.mark.parametrize("distinct", [1, 44, 45])
def test_nearly_unique_means_nine_in_ten(distinct: int) -> None:
    """From 45 distinct values in 50 rows on a column looks like an identifier."""
    frame = pd.DataFrame({"x": [1, 2] * 25, "y": [str(i % distinct) for i in range(50)]})
    if distinct < NEARLY_UNIQUE * 50:
        assert Microdata(frame, (Attribute("x"),)).undeclared == ("y",)
    else:
        with pytest.raises(InputError, match="nearly unique"):
            Microdata(frame, (Attribute("x"),))


def test_missing_values_are_an_error_by_default() -> None:
    """The message counts them and names column and row, and the two policies that go on."""
    frame = people().assign(sex=["F", "", "", "M"])
    with pytest.raises(
        InputError, match="column 'sex' has 2 missing values, the first in data row 2"
    ) as caught:
        Microdata(frame, (AGE, SEX))
    assert "missing='drop' or missing='category'" in (caught.value.remedy or "")


@pytest.mark.parametrize("absent", [None, math.nan, pd.NA, pd.NaT, ""])
def test_null_of_any_kind_is_missing(absent: object) -> None:
    """Every null of pandas, and the empty text, is a missing value."""
    frame = pd.DataFrame({"x": pd.Series(["a", absent, "b"], dtype=object)})
    with pytest.raises(InputError, match="1 missing values, the first in data row 2"):
        Microdata(frame, (Attribute("x", "categorical"),))


def test_missing_values_outside_quasi_identifiers_do_not_matter() -> None:
    """Sensitive, kept, dropped and undeclared columns may have holes."""
    data = Microdata(people(ill=["flu", None, "", "flu"]), (AGE, SEX), sensitive=("ill",))
    assert data.frame["ill"].isna().tolist() == [False, True, False, False]


def test_dropping_leaves_incomplete_rows_out() -> None:
    """Under the policy drop, records without all quasi-identifiers leave; the original stays."""
    frame = people(visit=["v1", "v2", "v3", "v4"]).assign(
        age=[34, None, 61, 34], sex=["F", "F", "?", "M"]
    )
    form = TableFormat(policy="drop", missing=("?",))
    data = Microdata(frame, (AGE, SEX), keep=("visit",), table=form)
    assert data.frame["visit"].tolist() == ["v1", "v4"]
    assert data.frame.index.tolist() == [0, 1]
    assert values_of(data)[:, 0].tolist() == [34.0, 34.0]
    assert len(data.original) == 4


def test_dropping_all_rows_is_refused() -> None:
    """A table of which nothing is left is empty."""
    frame = people().assign(sex=None)
    with pytest.raises(InputError, match="no rows"):
        Microdata(frame, (AGE, SEX), table=TableFormat(policy="drop"))


def test_missing_values_can_be_a_category() -> None:
    """Under the policy category they are one value of their own, declared texts and null alike."""
    frame = people().assign(sex=["F", None, "?", "M"])
    form = TableFormat(policy="category", missing=("?",), label="unknown")
    data = Microdata(frame, (AGE, SEX), table=form)
    assert data.levels[1].tolist() == ["F", "M", "unknown"]
    assert data.codes[:, 1].tolist() == [0, 2, 2, 1]


def test_a_category_needs_a_label_that_is_no_value() -> None:
    """If the table holds the label itself, present and missing values would be confused."""
    frame = people().assign(sex=["F", None, "missing", "M"])
    with pytest.raises(InputError, match="column 'sex' holds the text 'missing'") as caught:
        Microdata(frame, (AGE, SEX), table=TableFormat(policy="category"))
    assert "Rename that value" in (caught.value.remedy or "")


def test_numbers_have_no_category_for_missing_values() -> None:
    """A numeric attribute cannot take the policy category; the message offers drop."""
    frame = people().assign(age=[34, None, 61, 34])
    with pytest.raises(InputError, match="column 'age' has 1 missing values") as caught:
        Microdata(frame, (AGE, SEX), table=TableFormat(policy="category"))
    assert "Use missing='drop'" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "ignore"}, "unknown policy for missing values 'ignore'"),
        ({"separator": ""}, "separator '' is not one character"),
        ({"separator": "::"}, "separator '::' is not one character"),
        ({"separator": '"'}, "is not one character that can separate"),
        ({"separator": "\n"}, "is not one character that can separate"),
        ({"separator": 5}, "separator 5 is not one character"),
        ({"header": "no"}, "header is 'no'"),
        ({"encoding": 8}, "encoding is 8"),
        ({"encoding": "punycode"}, "encoding 'punycode' is not one of tables"),
        ({"encoding": "idna"}, "encoding 'idna' is not one of tables"),
        ({"encoding": "undefined"}, "encoding 'undefined' is not one of tables"),
    ],
)
def test_wrong_table_formats_are_refused(arguments: dict[str, Any], message: str) -> None:
    """A format that cannot be meant raises at once, with a remedy."""
    with pytest.raises(InputError, match=message) as caught:
        TableFormat(**arguments)
    assert caught.value.remedy


def test_domain_bounds_are_declared_or_observed() -> None:
    """A declared domain goes before the observed ends."""
    frame = people()
    assert Microdata(frame, (AGE,)).domain_bounds(0) == (34.0, 61.0)
    assert Microdata(frame, (Attribute("age", domain=[0, 100]),)).domain_bounds(0) == (0.0, 100.0)


@pytest.mark.parametrize(
    ("attribute", "size"),
    [
        (Attribute("age"), 3),
        (Attribute("age", integer=True), 28),
        (Attribute("age", integer=True, domain=[1, 100]), 100),
        (Attribute("age", integer=True, publish="set"), 3),
        (Attribute("age", domain=[1, 100]), 3),
        (Attribute("sex", "categorical"), 2),
        (Attribute("sex", "categorical", domain=["F", "M", "X"]), 3),
    ],
)
def test_domain_sizes(attribute: Attribute, size: int) -> None:
    """Declared values count, ranges of whole numbers count every number in them, else observed."""
    assert Microdata(people(), (attribute,)).domain_size(0) == size


def test_a_part_keeps_the_domain_sizes_of_the_whole() -> None:
    """Parts of it and copies do as well, whatever order their columns have."""
    attributes = (Attribute("age"), Attribute("sex", "categorical"))
    data = Microdata(people(), attributes).with_sizes({"age": 7})
    assert [data.domain_size(a) for a in range(2)] == [7, 2]
    some = data.take(np.array([1, 0]), np.array([1, 0]))
    assert [some.domain_size(a) for a in range(2)] == [2, 7]
    assert pickle.loads(pickle.dumps(data)).domain_size(0) == 7


def test_the_leaves_of_a_hierarchy_are_its_domain() -> None:
    """A hierarchical attribute permits all leaves, observed or not."""
    tree = Hierarchy([("F", "*"), ("M", "*"), ("X", "*")])
    data = Microdata(people(), (Attribute("sex", "hierarchical", hierarchy=tree),))
    assert data.domain_size(0) == 3


def naive_row_types(data: Microdata) -> tuple[list[int], list[int], list[int]]:
    """Return the row types as pandas groups the rows."""
    codes = pd.DataFrame(data.codes)
    groups = codes.groupby(list(codes.columns), sort=True)
    firsts = [int(rows.min()) for rows in groups.indices.values()]
    sizes = [len(rows) for rows in groups.indices.values()]
    order = np.lexsort(data.codes[firsts].T[::-1])
    inverse = np.empty(data.n, np.int64)
    rows_of = list(groups.indices.values())
    for number, at in enumerate(order):
        inverse[rows_of[at]] = number
    return [firsts[at] for at in order], inverse.tolist(), [sizes[at] for at in order]


@given(st.data())
def test_row_types_are_the_groups_of_pandas(draw: st.DataObject) -> None:
    """Distinct rows, first occurrences, multiplicities and lexicographic order agree."""
    m = draw.draw(st.sampled_from([1, 2, 5]))
    rows = draw.draw(
        st.lists(st.lists(st.integers(-2, 2), min_size=m, max_size=m), min_size=1, max_size=12)
    )
    frame = pd.DataFrame(rows, columns=[f"c{a}" for a in range(m)])
    data = Microdata(frame, tuple(Attribute(name) for name in frame.columns))
    types = data.row_types()
    assert (types.first.tolist(), types.inverse.tolist(), types.counts.tolist()) == (
        naive_row_types(data)
    )


def test_row_types_survive_more_columns_than_63_bits() -> None:
    """With 30 columns of 40 values the key of a row is compressed, and types stay the same."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 40, (40, 30))
    frame = pd.DataFrame(table[rng.integers(0, 40, 300)]).add_prefix("c")
    frame.iloc[7, 29] += 100
    data = Microdata(frame, tuple(Attribute(name) for name in frame.columns))
    assert math.prod(len(level) for level in data.levels) > 2**63
    types = data.row_types()
    assert (types.first.tolist(), types.inverse.tolist(), types.counts.tolist()) == (
        naive_row_types(data)
    )


def test_row_types_of_some_columns() -> None:
    """Types may look at a part of the attributes, or at none: then all rows are of one type."""
    data = Microdata(people(), (AGE, SEX))
    assert data.row_types([1]).counts.tolist() == [3, 1]
    assert data.row_types([1]).inverse.tolist() == [0, 0, 1, 0]
    assert data.row_types([]).counts.tolist() == [4]
    assert not data.row_types().first.flags.writeable


def test_weights_without_a_sum_are_refused() -> None:
    """No mean of them could be told."""
    frame = pd.DataFrame({"a": [1, 2, 3], "w": [1e308] * 3})
    with pytest.raises(InputError, match="sum that is no number"):
        _ = Microdata(frame, (Attribute("a"),), weights="w").sampling_weights
