"""Tests of formats of tables: decimal commas from the original to a verified release."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import InputError, Problem, Schema, TableFormat, publish, read_schema, solve
from anonymip.privacy import verify

COMMA = TableFormat(separator=";", decimal=",")
NUMBERS = st.lists(
    st.tuples(
        st.floats(-1e15, 1e15).map(lambda one: round(one, 6)),
        st.sampled_from(["0.5", "1", "-2.25", "1e-7"]),
    ),
    min_size=4,
    max_size=9,
)


def _release(frame: pd.DataFrame, form: TableFormat, publish_as: str, layout: str = "cells"):
    attributes = {"x": {"kind": "numeric"}, "y": {"kind": "numeric", "publish": publish_as}}
    data = Schema(attributes, table=form).apply(frame)
    return publish(solve(Problem(data, 2), "initial"), keep_order=True, layout=layout)


@settings(max_examples=30)
@given(NUMBERS, st.sampled_from(["range", "set"]), st.sampled_from(["cells", "columns"]))
def test_a_decimal_comma_changes_signs_and_nothing_else(rows, publish_as, layout) -> None:
    """The same numbers with commas make the same release with commas, and both are verified."""
    frame = pd.DataFrame([(repr(x), y) for x, y in rows], columns=["x", "y"])
    points = _release(frame, TableFormat(), publish_as, layout)
    swapped = frame.map(lambda text: text.replace(".", ","))
    commas = _release(swapped, COMMA, publish_as, layout)
    assert commas.manifest["table"]["decimal"] == ","
    assert commas.manifest["ncp"] == points.manifest["ncp"]
    back = commas.frame.map(lambda cell: cell.replace(",", ".") if isinstance(cell, str) else cell)
    pd.testing.assert_frame_equal(back, points.frame)
    assert points.verify().ok
    assert commas.verify().ok


def test_steps_and_open_groups_have_commas_too() -> None:
    """So have the ends of steps, and the beginning of an open group."""
    frame = pd.DataFrame({"x": ["1,5", "2,7", "9,9", "8"]})
    attributes = {"x": {"kind": "numeric", "precision": 0.5, "at_most": 7.5}}
    data = Schema(attributes, table=COMMA).apply(frame)
    release = publish(solve(Problem(data, 2), "initial"), keep_order=True)
    assert sorted(set(release.frame["x"])) == ["7,5+", "[1,5..3]"]
    assert release.verify().ok


@pytest.mark.parametrize("cell", ["[1.5..2.5]", "[1,,2,5]", "[1,5...2,5]", "[1,5..,5]", "1,", ",5"])
def test_the_verifier_reads_no_other_spelling(cell: str) -> None:
    """A point, or a comma that no digits surround, is no number of a table with decimal commas."""
    frame = pd.DataFrame({"x": ["1,5", "2,5", "1,5", "2,5"], "y": ["1", "1", "2", "2"]})
    release = _release(frame, COMMA, "range")
    released = release.frame.copy()
    released.loc[0, "x"] = cell
    result = verify(frame, released, release.manifest)
    assert not result.ok
    assert any("'x', published row 1" in problem for problem in result.problems)


def test_a_point_among_commas_is_refused() -> None:
    """It may separate thousands: column and row are named, and not the value."""
    frame = pd.DataFrame({"x": ["1,5", "2,5", "1.234,5"], "y": ["1", "1", "2"]})
    with pytest.raises(
        InputError, match=r"'x' is numeric with decimal commas.*data row 3"
    ) as error:
        _release(frame, COMMA, "range")
    assert "1.234" not in str(error.value)


def test_a_kind_is_found_through_decimal_commas() -> None:
    """Texts such as 1,5 are numbers where the comma is declared, and categories elsewhere."""
    frame = pd.DataFrame({"x": ["1,5", "2,5", "3"], "y": ["1", "2", "3"]})
    schema = Schema({"x": {}, "y": {}})
    assert [one.kind for one in schema.with_format(decimal=",").apply(frame).attributes] == [
        "numeric",
        "numeric",
    ]
    assert schema.apply(frame).attributes[0].kind == "categorical"


def test_a_schema_declares_the_decimal_mark(tmp_path: Path) -> None:
    """It is a key of [table], and another mark is an error."""
    file = tmp_path / "s.toml"
    file.write_text('[table]\ndecimal = ","\n')
    assert read_schema(file).table.decimal == ","
    file.write_text('[table]\ndecimal = ";"\n')
    with pytest.raises(InputError, match="unknown decimal mark ';'"):
        read_schema(file)
