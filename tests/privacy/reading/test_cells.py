"""Tests of the grammar of one cell."""

from __future__ import annotations

import math

import pytest

from anonymip.privacy.reading.cell_grammar import (
    CellError,
    number_text,
    read_node_cell,
    read_number,
    read_number_set,
    read_text_cell,
)
from anonymip.privacy.reading.scales import Scale


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [("35", 35, 35), ("[35..37]", 35, 37), ("[-2.5..1e+300]", -2.5, 1e300), ("[-3..-2]", -3, -2)],
)
def test_numeric_cells_read_as_intervals(text: str, lower: float, upper: float) -> None:
    """Exact numbers and ranges give their ends."""
    cell = Scale().cell(text)
    assert (cell.lower, cell.upper) == (lower, upper)
    assert cell.is_range == (lower < upper)


def test_star_suppresses_every_kind_of_cell() -> None:
    """A star is a suppressed cell in numeric, text and paired columns."""
    assert Scale().cell("*").suppressed
    assert read_text_cell("*").suppressed
    assert Scale().pair("*", "*").suppressed
    assert math.isnan(read_text_cell("*").lower)


def test_numeric_set_lists_its_numbers() -> None:
    """A set of numbers gives all of them, and its ends."""
    cell = read_number_set("{9|10|12.5}", integer=False)
    assert cell.members == (9.0, 10.0, 12.5)
    assert (cell.lower, cell.upper) == (9.0, 12.5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "35.0",
        "+35",
        "-0",
        "035",
        " 35",
        "1_000",
        "nan",
        "inf",
        "1e999",
        "[35..35]",
        "[37..35]",
        "[35..37",
        "[35...37]",
        "[1..2..3]",
        "[35.0..37]",
        "{35|37}",
        "F",
        "٣",
    ],
)
def test_range_columns_refuse_everything_else(text: str) -> None:
    """What is no canonical number or range is refused, second spellings included."""
    with pytest.raises(CellError):
        Scale().cell(text)


@pytest.mark.parametrize(
    "text", ["{1}", "{}", "{2|1}", "{1|1}", "{1|2", "{1|2}x", "[1..2]", "{1|2.0}", "{1||2}"]
)
def test_number_sets_refuse_everything_else(text: str) -> None:
    """Sets of numbers are sorted, of several values, and closed."""
    with pytest.raises(CellError):
        read_number_set(text, integer=False)


@pytest.mark.parametrize("text", ["35.5", "[35..36.5]"])
def test_whole_number_columns_refuse_fractions(text: str) -> None:
    """An integer column shows whole numbers only."""
    assert Scale().cell(text).upper > 35
    with pytest.raises(CellError, match="fraction"):
        Scale(integer=True).cell(text)


@pytest.mark.parametrize(("lower", "upper"), [("*", "3"), ("3", "*"), ("4", "3"), ("", "")])
def test_pairs_refuse_half_stars_and_reversed_ends(lower: str, upper: str) -> None:
    """Both ends are stars or neither, and the lower is not above the upper."""
    with pytest.raises(CellError):
        Scale().pair(lower, upper)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", ("",)),
        ("F", ("F",)),
        (" F ", (" F ",)),
        ("a*|}", ("a*|}",)),
        (r"\*", ("*",)),
        (r"\[x", ("[x",)),
        (r"\{a|b}", ("{a|b}",)),
        (r"\\", ("\\",)),
        ("{F|M}", ("F", "M")),
        ("{|F}", ("", "F")),
        (r"{*|a\|b|\}}", ("*", "a|b", "}")),
        (r"{\\|{}", ("\\", "{")),
        ("{10|9}", ("10", "9")),
        ("{a\nb|é}", ("a\nb", "é")),
    ],
)
def test_text_cells_read_back(text: str, values: tuple[str, ...]) -> None:
    """Escaped, empty and odd texts come back as they were."""
    assert read_text_cell(text).members == values


@pytest.mark.parametrize(
    "text",
    ["**", "[1..2]", r"\a", "\\", "{F}", "{}", "{M|F}", "{F|F}", "{F|M", r"{F\M|N}", "{a|b}c"],
)
def test_text_cells_that_break_the_grammar_are_refused(text: str) -> None:
    """A cell that could be read in two ways, or in none, is refused."""
    with pytest.raises(CellError):
        read_text_cell(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(35.0, "35"), (-2.5, "-2.5"), (1e300, "1e+300"), (-0.0, "0"), (1e16, "1e+16"), (0.1, "0.1")],
)
def test_numbers_have_one_spelling(value: float, text: str) -> None:
    """The spelling is the shortest of the float, and reads back to it."""
    assert number_text(value) == text
    assert read_number(text) == value


BELOW = {"a": ("a",), "b": ("b",), "*": ("a", "b"), "[a..b]": ("a", "b"), "\\x": ("b",)}


@pytest.mark.parametrize(
    ("text", "node", "members"),
    [
        ("a", "a", ("a",)),
        ("\\*", "*", ("a", "b")),
        ("\\[a..b]", "[a..b]", ("a", "b")),
        ("\\\\x", "\\x", ("b",)),
    ],
)
def test_nodes_stand_for_what_is_below_them(text: str, node: str, members: tuple[str, ...]) -> None:
    """A root that is called * has a backslash; a bare star is a suppressed cell."""
    cell = read_node_cell(text, BELOW)
    assert (cell.node, cell.members, cell.suppressed, cell.is_range) == (
        node,
        members,
        False,
        False,
    )
    unknown = read_node_cell(text, None)
    assert (unknown.node, unknown.members, unknown.is_range) == (node, (), False)
    star = read_node_cell("*", BELOW)
    assert (star.suppressed, star.node) == (True, None)


@pytest.mark.parametrize("text", ["c", "", "{a|b}", "[a..b]", "\\a", "**", "\\{a|b}", " a"])
def test_what_is_no_node_is_refused(text: str) -> None:
    """Unknown labels, sets of leaves, and wrong escapes break the format."""
    with pytest.raises(CellError):
        read_node_cell(text, BELOW)
