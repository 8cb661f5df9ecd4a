"""Tests of reading a release back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip.errors import InputError
from anonymip.privacy import read_release


@pytest.fixture
def mixed(write_release: Any) -> Any:
    """Six records, the last one suppressed, in file order."""
    original = pd.DataFrame(
        {
            "age": ["1", "3", "5", "5", "9", "7"],
            "town": ["a", "b", "c", "c", "c", "d"],
            "steps": ["1", "2", "4", "1", "1", "8"],
        },
        dtype=object,
    )
    kinds = {
        "age": {"kind": "numeric"},
        "town": {},
        "steps": {"kind": "numeric", "publish": "set"},
    }
    return write_release(original, kinds, [0, 0, 1, 1, 1, -1])


def test_published_table_gives_ends_counts_and_stars(mixed: Any) -> None:
    """Lower, upper, count and suppressed describe every cell."""
    table = read_release(mixed.release, mixed.manifest)
    assert (table.n, table.m, table.names) == (6, 3, ("age", "town", "steps"))
    nan = np.nan
    np.testing.assert_array_equal(table.lower[:, 0], [1, 1, 5, 5, 5, nan])
    np.testing.assert_array_equal(table.upper[:, 0], [3, 3, 9, 9, 9, nan])
    np.testing.assert_array_equal(table.lower[:, 1], [nan] * 6)
    np.testing.assert_array_equal(table.upper[:, 2], [2, 2, 4, 4, 4, nan])
    assert table.count.tolist() == [[0, 2, 2]] * 2 + [[0, 1, 2]] * 3 + [[0, 0, 0]]
    assert table.suppressed.tolist() == [[False] * 3] * 5 + [[True] * 3]
    assert [*table.cell(0, 1).members] == ["a", "b"]
    assert len(set(table.classes().tolist())) == 3


@pytest.mark.parametrize("layout", ["cells", "columns"])
@pytest.mark.parametrize("name", ["release.csv", "release.parquet"])
def test_layouts_and_files_say_the_same(
    write_release: Any, tmp_path: Path, layout: str, name: str
) -> None:
    """Both layouts, as CSV and as Parquet, read back to one table."""
    original = pd.DataFrame({"x": ["1", "2.5", "4", "4"], "c": ["u", "v", "w", "w"]}, dtype=object)
    kinds = {"x": {"kind": "numeric"}, "c": {}}
    written = write_release(original, kinds, [0, 0, 1, 1], layout=layout)
    _, path = written.save(tmp_path, name)
    table = read_release(path)
    assert table.lower[:, 0].tolist() == [1, 1, 4, 4]
    assert table.upper[:, 0].tolist() == [2.5, 2.5, 4, 4]


def test_numeric_columns_of_a_frame_may_hold_numbers(write_release: Any) -> None:
    """Columns of numbers in a data frame need not be spelled as text."""
    original = pd.DataFrame({"x": ["1", "2.5"]}, dtype=object)
    written = write_release(original, {"x": {"kind": "numeric"}}, [0, 0], layout="columns")
    table = read_release(written.release.astype(float), written.manifest)
    assert table.upper[:, 0].tolist() == [2.5, 2.5]


def test_broken_releases_are_input_errors(mixed: Any) -> None:
    """The first offence is named, with row and column and without the value."""
    mixed.release.loc[3, "town"] = "{c|b}"
    with pytest.raises(InputError, match="'town', published row 4") as caught:
        read_release(mixed.release, mixed.manifest)
    assert "{c" not in str(caught.value)
    with pytest.raises(InputError, match="lacks the column 'age'"):
        read_release(mixed.release.drop(columns="age"), mixed.manifest)
