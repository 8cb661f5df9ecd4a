"""The judge of other tools: what they publish, read as cells of ours, and counted again."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import peers
from benchmarks.peers import Cells, NotReadable, Table, judged, published_rows
from tests import profiles

_FRAME = pd.DataFrame(
    {
        "age": ["20", "22", "30", "40", "44", "60"],
        "zone": ["-5", "-5", "-2.5", "0", "1", "5"],
        "status": ["Never-married", "Never", "married", "Divorced", "married", "Never"],
    }
)
_KINDS = {"age": "numeric", "zone": "numeric", "status": "categorical"}
_PATHS = [
    ["Never-married", "alone", "*"],
    ["Never", "alone", "*"],
    ["Divorced", "alone", "*"],
    ["married", "together", "*"],
]
_TABLE = Table("six", _FRAME, _KINDS, {"status": _PATHS})


@pytest.mark.parametrize(
    ("column", "style", "text", "cell"),
    [
        ("age", "texts", "22", "22"),
        ("age", "texts", "22.0", "22"),
        ("age", "texts", "20-30", "[20..30]"),
        ("age", "texts", "20.0 - 30.0", "[20..30]"),
        ("age", "texts", "*", "[20..60]"),
        ("age", "ours", "[20..30]", "[20..30]"),
        ("age", "nodes", "15 to 25", "[20..25]"),
        ("zone", "texts", "-5--2.5", "[-5..-2.5]"),
        ("zone", "texts", "-2.5-0", "[-2.5..0]"),
        ("zone", "texts", "-5", "-5"),
        ("status", "texts", "married", "married"),
        ("status", "texts", "Never,married", "{Never|married}"),
        ("status", "texts", "Never-married", "Never-married"),
        ("status", "texts", "Divorced-Never-married", "{Divorced|Never-married}"),
        ("status", "ours", "{Divorced|Never}", "{Divorced|Never}"),
        ("status", "nodes", "alone", "{Divorced|Never|Never-married}"),
        ("status", "nodes", "together", "married"),
        ("status", "nodes", "*", "{Divorced|Never|Never-married|married}"),
    ],
)
def test_cells_are_read_as_their_tool_writes_them(
    column: str, style: str, text: str, cell: str
) -> None:
    """Ranges with negative ends, sets of values that hold the sign between them, nodes, bands."""
    assert Cells(_TABLE, column, style).written(text) == cell


@pytest.mark.parametrize(
    ("column", "text"), [("age", "young"), ("age", ""), ("status", "widowed"), ("status", "")]
)
def test_what_is_no_cell_is_not_guessed(column: str, text: str) -> None:
    """A text that says no values of the column is an error, not a suppressed cell."""
    with pytest.raises(NotReadable):
        Cells(_TABLE, column, "texts").written(text)


_CLASSES = pd.DataFrame(
    {
        "age": ["20-30", "40-60"],
        "zone": ["-5--2.5", "0-5"],
        "status": ["Never,Never-married,married", "Divorced,Never,married"],
        "count": ["3", "3"],
    }
)


def test_a_release_is_judged_by_hand(tmp_path: Path) -> None:
    """Widths over 40 and 10, values over 3: the loss, which verify finds as well."""
    rows = published_rows(_TABLE, _CLASSES, "texts")
    found = judged(_TABLE, rows, 3, "tool", tmp_path)
    assert found["status"] == "verified"
    assert (found["k_reached"], found["rows_lost"]) == (3, 0)
    ncp = 3 * (10 / 40 + 2.5 / 10 + 2 / 3) + 3 * (20 / 40 + 5 / 10 + 2 / 3)
    assert found["loss"] == pytest.approx(ncp / 18, abs=1e-12)


def test_a_lost_record_costs_all_of_its_cells(tmp_path: Path) -> None:
    """Publishing nothing of three records costs 1 a cell."""
    rows = published_rows(_TABLE, _CLASSES.iloc[:1], "texts")
    found = judged(_TABLE, rows, 3, "tool", tmp_path)
    assert (found["status"], found["rows_lost"]) == ("verified", 3)
    ncp = 3 * (10 / 40 + 2.5 / 10 + 2 / 3) + 3 * 3
    assert found["loss"] == pytest.approx(ncp / 18, abs=1e-12)


@pytest.mark.parametrize(
    "cells", [{"count": ["4", "2"]}, {"age": ["20-22", "40-60"]}, {"count": ["4", "4"]}]
)
def test_false_releases_fail(cells: dict[str, list[str]], tmp_path: Path) -> None:
    """A class of two, a range that leaves out a record, more rows than records."""
    rows = published_rows(_TABLE, _CLASSES.assign(**cells), "texts")
    assert judged(_TABLE, rows, 3, "tool", tmp_path)["status"].startswith("fails: ")


def test_averages_stand_for_the_ranges_of_their_classes(tmp_path: Path) -> None:
    """A tool that publishes means says by a column which record a row is of."""
    published = pd.DataFrame(
        {
            "age": ["24.0"] * 3 + ["48.0"] * 3,
            "zone": ["-4.2"] * 3 + ["2.0"] * 3,
            "status": ["*"] * 6,
            "row": list("012345"),
        }
    )
    rows = published_rows(_TABLE, published, "nodes")
    assert set(rows["age"]) == {"[20..30]", "[40..60]"}
    assert judged(_TABLE, rows, 3, "tool", tmp_path)["status"] == "verified"


def test_bands_nest_and_hold_their_numbers() -> None:
    """Tools by levels get bands of numbers: all paths of one length, one root, whole bands."""
    paths = _TABLE.hierarchies["zone"]
    assert {len(path) for path in paths} == {5}
    assert {path[-1] for path in paths} == {"*"}
    parents: dict[str, str] = {}
    for path in paths:
        for child, parent in itertools.pairwise(path[1:]):
            assert parents.setdefault(child, parent) == parent
        for label in path[1:-1]:
            low, high = map(float, label.split(" to "))
            assert low <= float(path[0]) <= high


@pytest.mark.thorough("mondrian, no bound")
@pytest.mark.parametrize(
    "method", [peers.OURS.methods[0], *profiles.thorough(peers.OURS.methods[1])]
)
def test_ours_is_run_and_judged_as_the_others(method: str, tmp_path: Path) -> None:
    """One worker, one judge: the release of our own worker is verified, its cost measured."""
    found = peers._run(sys.executable, peers.OURS, method, 2, _TABLE, tmp_path)
    assert found["status"] == "verified"
    assert found["seconds"] >= 0
    assert found["memory_mb"] > 0
    assert ("bound" in found) == method.startswith("auto")


@pytest.mark.thorough
def test_what_a_tool_says_when_it_fails_is_told(tmp_path: Path) -> None:
    """A tool that ends in an error, or is not there, is a row with its last words."""
    gone = peers.Peer("gone", ("any",))
    found = peers._run(sys.executable, gone, "any", 2, _TABLE, tmp_path)
    assert found["status"].startswith("error: KeyError")
    assert "loss" not in found
