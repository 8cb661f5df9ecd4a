"""Hierarchies from nested groups, from bands of numbers, and from the entries of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymip
from anonymip import Attribute, FullDomain, Hierarchy, InputError, Microdata, Problem, read_schema
from anonymip.instances.hierarchies.hierarchy import declared_hierarchy
from anonymip.privacy.reading.hierarchies import declared_paths

LAND = {"Europe": {"North": ["SE", "NO"], "South": ["IT"]}, "Asia": ["JP"]}


@st.composite
def nested_groups(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Draw nested groups and, of each value, the groups that hold it, from the innermost."""
    count = draw(st.integers(1, 8))
    names = iter(f"group {number}" for number in range(1000))
    values = iter(f"value {number}" for number in range(1000))
    above: dict[str, list[str]] = {}

    def grow(outside: list[str], deep: int) -> Any:
        if deep and draw(st.booleans()):
            inner = {}
            for _ in range(draw(st.integers(1, 3))):
                name = next(names)
                inner[name] = grow([name, *outside], deep - 1)
            return inner
        members = [next(values) for _ in range(draw(st.integers(1, 3)))]
        above.update(dict.fromkeys(members, outside))
        return members

    groups = {}
    for _ in range(count):
        name = next(names)
        groups[name] = grow([name], 2)
    return groups, above


@given(nested_groups())
def test_values_lie_under_the_groups_that_hold_them(
    drawn: tuple[dict[str, Any], dict[str, list[str]]],
) -> None:
    """Each value's path is the groups around it; the verifier reads the same."""
    groups, above = drawn
    found = Hierarchy.from_groups(groups, root="all")
    assert {path[0]: path for path in found.paths} == {
        value: (value, *outside, "all") for value, outside in above.items()
    }
    declared = {"groups": groups, "root": "all"}
    assert declared_hierarchy(declared, Path()) == found
    assert declared_paths(declared, "town", Path("s.toml")) == [list(path) for path in found.paths]


@given(
    st.sets(st.integers(-60, 60), min_size=1, max_size=8),
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.integers(-7, 7),
)
def test_whole_numbers_lie_in_bands_of_their_width(
    numbers: set[int], factors: list[int], origin: int
) -> None:
    """A band holds its number, begins at the origin or whole widths from it, and nests."""
    widths = [int(np.prod(factors[: at + 1])) for at in range(len(factors))]
    found = Hierarchy.from_bands(sorted(numbers), widths, origin=origin, root="any")
    assert found.height == len(widths) + 1
    for path in found.paths:
        for label, width in zip(path[1:-1], widths, strict=True):
            low, high = map(int, label.split(".."))
            assert low <= int(path[0]) <= high
            assert high - low == width - 1
            assert (low - origin) % width == 0


@given(
    st.lists(st.sampled_from(["0.1", "0.3", "-2.5", "7", "7.0", "1e1", "2.25"]), min_size=1),
    st.sampled_from([(0.1, 0.5), (2.5, 5), ("0.75", 1.5, 4.5)]),
)
def test_other_numbers_lie_in_half_open_bands(numbers: list[str], widths: tuple[Any, ...]) -> None:
    """The lower end is part of the band, the upper one is not, whatever floats are rounded to."""
    found = Hierarchy.from_bands(numbers, widths)
    assert set(found.leaves) == set(numbers)
    for path in found.paths:
        for label, width in zip(path[1:-1], widths, strict=True):
            low, high = map(Fraction, label.split("..<"))
            assert low <= Fraction(path[0]) < high
            assert high - low == Fraction(str(width))


def test_bands_keep_their_width_at_the_ends() -> None:
    """Labels do not tell the lowest and the highest value."""
    found = Hierarchy.from_bands(range(17, 23), (5, 10))
    assert found.paths[0] == ("17", "15..19", "10..19", "*")
    assert found.paths[-1] == ("22", "20..24", "20..29", "*")


def test_numbers_of_a_column_make_bands() -> None:
    """What NumPy and pandas hold is written as the table will write it."""
    ages = pd.Series([31, 35, 31, 38])
    data = Microdata(
        pd.DataFrame({"age": ages}),
        (Attribute("age", "hierarchical", hierarchy=Hierarchy.from_bands(ages, (5,))),),
    )
    solution = anonymip.solve(Problem(data, 2, anonymip.EquivalenceClasses()))
    assert sorted(solution.to_frame()["age"]) == ["31", "31", "35..39", "35..39"]
    release = anonymip.publish(solution)
    assert release.verify().ok
    halves = Hierarchy.from_bands(np.array([0.5, 1.0]), (0.5, 1))
    assert halves.paths[1] == ("1.0", "1..<1.5", "1..<2", "*")


def test_sets_of_values_have_a_fixed_order() -> None:
    """Equal sets give equal hierarchies."""
    assert Hierarchy.from_groups({"g": {"c", "a", "b"}}).leaves == ("a", "b", "c")
    assert Hierarchy.from_groups(["x", "y"]).paths == (("x", "*"), ("y", "*"))


def cyclic() -> dict[str, Any]:
    """Return groups that hold themselves under another name each time round."""
    groups: dict[str, Any] = {}
    groups["inner"] = groups
    return groups


class Endless(Mapping[str, Any]):
    """Groups that hold groups for ever, each of another name."""

    def __init__(self, depth: int = 0) -> None:
        self.depth = depth

    def __getitem__(self, name: str) -> Any:
        return Endless(self.depth + 1)

    def __iter__(self) -> Any:
        return iter([f"g{self.depth}"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("groups", "message", "value"),
    [
        ({}, r"the group '\*' is empty", None),
        ({"a": ["x"], "b": []}, r"the group 'b' in '\*' is empty", None),
        ({"a": "x"}, "is no list of values but a str", None),
        ({"a": None}, "is no list of values but a NoneType", None),
        ({"a": [["x"]]}, "lists a group that has no name", None),
        ({"a": ["x"], "b": {"c": ["x"]}}, "in the group 'a' .* and again in 'c' in 'b'", "x"),
        ({"a": {"b": {"a": ["x"]}}}, "holds itself", "a"),
        ({"*": ["x"]}, "holds itself", "*"),
        (cyclic(), "holds itself", "inner"),
        (Endless(), "the nesting is cyclic", None),
        ({"a": {"c": ["x"]}, "b": {"c": ["y"]}}, "two different parents", "c"),
        ({"a": ["x"], "b": ["a"]}, "two different parents", "a"),
        ({"a": ["*"]}, "cyclic", None),
    ],
)
def test_groups_that_are_no_tree_are_refused(groups: Any, message: str, value: str | None) -> None:
    """Every error says where and what to do, and keeps values apart."""
    with pytest.raises(InputError, match=message) as caught:
        Hierarchy.from_groups(groups)
    assert caught.value.remedy
    assert caught.value.value == value


@pytest.mark.parametrize(
    ("values", "widths", "options", "message"),
    [
        ([], (5,), {}, "no values"),
        ([1, "x"], (5,), {}, "a value of bands is no finite number"),
        ([1, float("nan")], (5,), {}, "a value of bands is no finite number"),
        ([True], (5,), {}, "a value of bands is no finite number"),
        ("12", (5,), {}, "the values of bands are no list"),
        (7, (5,), {}, "the values of bands are no list"),
        ([1], "5", {}, "the widths of bands are no list"),
        ([1], 5, {}, "the widths of bands are no list"),
        ([1], (), {}, "widths of bands are none"),
        ([1], (0, 5), {}, "not above 0"),
        ([1], (-5,), {}, "not above 0"),
        ([1], (5, 12), {}, "width 12 are not made of whole bands of width 5: levels must nest"),
        ([1], (10, 5), {}, "levels must nest"),
        ([1], (5, 5), {}, "levels must nest"),
        ([1], (1, 5), {}, "width 1 hold one whole number"),
        ([1], (5,), {"origin": "start"}, "the origin of bands is no finite number"),
        ([1], (float("inf"),), {}, "a width of bands is no finite number"),
    ],
)
def test_bands_that_do_not_nest_are_refused(
    values: Any, widths: Any, options: dict[str, Any], message: str
) -> None:
    """Every error has a remedy."""
    with pytest.raises(InputError, match=message) as caught:
        Hierarchy.from_bands(values, widths, **options)
    assert caught.value.remedy


SCHEMA = """
[attributes.age]
hierarchy = {bands = [5, 10], domain = [15, 49], origin = 5, root = "any age"}
[attributes.town.hierarchy.groups]
Europe = {North = ["SE", "NO"], South = ["IT"]}
Asia = ["JP"]
"""


def test_a_schema_writes_out_groups_and_bands(tmp_path: Path) -> None:
    """Both kinds are read from TOML, solved, published and verified with the schema alone."""
    schema, table = tmp_path / "people.toml", tmp_path / "people.csv"
    schema.write_text(SCHEMA)
    rows = ["age,town", "17,SE", "19,NO", "22,IT", "24,IT", "31,JP", "33,JP", "38,SE", "36,NO"]
    table.write_text("\n".join(rows) + "\n")
    data = read_schema(schema).read(table)
    assert [attribute.kind for attribute in data.attributes] == ["hierarchical"] * 2
    assert data.attributes[0].hierarchy == Hierarchy.from_bands(
        range(15, 50), (5, 10), origin=5, root="any age"
    )
    assert data.attributes[1].hierarchy == Hierarchy.from_groups(LAND)
    release = anonymip.publish(anonymip.solve(Problem(data, 2), "mondrian"))
    release.write(tmp_path / "out.csv")
    assert anonymip.verify(table, tmp_path / "out.csv", schema=schema).ok
    assert set(release.frame["town"]) <= {"SE", "NO", "IT", "JP", "North", "Europe", "\\*", "Asia"}


@given(
    st.integers(-20, 20),
    st.integers(0, 15),
    st.sampled_from([[2], [5, 10], [2, 6, 12], [2.5, 5], [0.5]]),
    st.sampled_from([0, 3, -4, 0.5]),
)
def test_the_verifier_reads_the_same_bands(
    low: int, more: int, bands: list[float], origin: float
) -> None:
    """The two readers, which share no code, agree on every path."""
    declared = {"bands": bands, "domain": [low, low + more], "origin": origin}
    found = declared_hierarchy(declared, Path())
    assert declared_paths(declared, "age", Path("s.toml")) == [list(path) for path in found.paths]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("3", "attributes.age.hierarchy|age: .*"),
        ("{}", "neither a file nor a table of groups, bands or codes"),
        ('{bands = [5], domain = [0, 9], groups = {a = ["1"]}}', "neither a file nor a table"),
        ("{bands = [5]}", "no domain of a lowest and a highest whole number"),
        ("{bands = [5], domain = [9, 0]}", "no domain of"),
        ("{bands = [5], domain = [0.5, 2]}", "no domain of"),
        ("{bands = [5], domain = [0, 9], width = 3}", "bands has no 'width'"),
        ('{groups = {a = ["1"]}, origin = 3}', "groups has no 'origin'"),
        ("{bands = [5, 7], domain = [0, 9]}", "levels must nest"),
        ("{bands = [5], domain = [0, 9000000]}", "more than 1,000,000 values"),
        ("{bands = [5], domain = [0, 9], root = 3}", "root of the hierarchy is no text"),
        ("{groups = {a = []}}", r"the group 'a' in '\*' is empty"),
        ('"absent.csv"', "cannot read the hierarchy"),
    ],
)
def test_wrong_entries_name_the_schema_and_the_column(
    tmp_path: Path, entry: str, message: str
) -> None:
    """Whatever is wrong with a hierarchy of a schema, its column is named."""
    schema = tmp_path / "schema.toml"
    schema.write_text(f"[attributes.age]\nhierarchy = {entry}\n")
    with pytest.raises(InputError, match=message) as caught:
        read_schema(schema)
    assert "attributes.age" in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {},
        {"bands": [5]},
        {"bands": [], "domain": [0, 9]},
        {"bands": [0, 5], "domain": [0, 9]},
        {"bands": [5, -10], "domain": [0, 9]},
        {"bands": [5], "domain": [0, 9000000]},
        {"groups": {"a": "x"}},
        {"groups": {"a": [["x"]]}},
    ],
)
def test_the_verifier_refuses_wrong_entries_too(entry: object) -> None:
    """What is no hierarchy is an input error that names the column."""
    with pytest.raises(InputError, match=r"attributes\.age\.hierarchy") as caught:
        declared_paths(entry, "age", Path("s.toml"))
    assert caught.value.remedy


def test_a_value_without_a_path_names_column_and_row() -> None:
    """A hierarchy that is incomplete for a table names the column and the first row."""
    land = Hierarchy.from_groups(LAND)
    with pytest.raises(InputError, match=r"'town' holds a value missing .* data row 2") as caught:
        Microdata(
            pd.DataFrame({"town": ["SE", "US"]}),
            (Attribute("town", "hierarchical", hierarchy=land),),
        )
    assert caught.value.value == "US"


def test_uneven_groups_have_levels_for_all() -> None:
    """A group that is less deep ends in the root earlier."""
    data = Microdata(
        pd.DataFrame({"town": ["SE", "NO", "IT", "JP"]}),
        (Attribute("town", "hierarchical", hierarchy=Hierarchy.from_groups(LAND)),),
    )
    problem = Problem(data, 2, FullDomain(suppression=True))
    solution = anonymip.Solution.of(
        problem,
        problem.recoding.assignment(problem, [1]),  # type: ignore[attr-defined]
        method="given",
    )
    assert solution.to_frame()["town"].tolist() == ["North", "North", None, None]
