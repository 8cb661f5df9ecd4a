"""Tests of reading the published table back, and that it carries nothing beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import Release, anonymize, verify
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
    kinds = {"age": {"kind": "numeric"}, "town": {}, "steps": {"kind": "numeric", "publish": "set"}}
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


FRAME = pd.DataFrame({"age": [1.0, 0.0, 5.0, 7.0], "ill": list("xyxy")})


def released() -> Release:
    """Return a good release of four persons."""
    return anonymize(FRAME, ["age"], 2, sensitive=["ill"], keep_order=True)


def test_row_labels_are_refused() -> None:
    """Labels of a data frame may name persons, or tell the order of the original."""
    good = released()
    assert verify(FRAME, good.frame, good.manifest).ok
    for labels in (["Ann", "Bob", "Cy", "Di"], [3, 1, 0, 2]):
        found = verify(FRAME, good.frame.set_axis(labels, axis=0), good.manifest)
        assert not found.ok
        assert "labels" in found.problems[0]


def test_labels_of_the_original_are_refused_in_another_order_alone() -> None:
    """A release in the order of the original may keep its labels: they tell no more."""
    named = FRAME.set_axis(["Ann", "Bob", "Cy", "Di"], axis=0)
    good = released()
    assert verify(named, good.frame.set_axis(named.index, axis=0), good.manifest).ok
    assert not verify(named, good.frame.set_axis(named.index[::-1], axis=0), good.manifest).ok


@pytest.mark.parametrize("name", ["name", None])
def test_an_index_in_a_parquet_file_is_refused(tmp_path: Path, name: str | None) -> None:
    """Pandas hides the index of a Parquet file from its columns; the file has it all the same."""
    good = released()
    frame = good.frame.set_axis(pd.Index(["Ann", "Bob", "Cy", "Di"], name=name), axis=0)
    frame.to_parquet(tmp_path / "release.parquet")
    found = verify(FRAME, tmp_path / "release.parquet", good.manifest)
    assert not found.ok


def test_notes_are_refused(tmp_path: Path) -> None:
    """Attributes of a data frame travel with it and with its Parquet file."""
    good = released()
    frame = good.frame.copy()
    frame.attrs["secret"] = "row 1 is Ann"
    assert not verify(FRAME, frame, good.manifest).ok
    frame.to_parquet(tmp_path / "release.parquet", index=False)
    assert not verify(FRAME, tmp_path / "release.parquet", good.manifest).ok


def test_a_minus_zero_is_refused() -> None:
    """Numbers that are equal but look different would tell rows of one class apart."""
    original = pd.DataFrame({"age": [0.0, 0.0], "ill": ["x", "y"]})
    good = anonymize(original, ["age"], 2, sensitive=["ill"], keep_order=True)
    assert verify(original, good.frame.assign(age=[0.0, 0.0]), good.manifest).ok
    assert not verify(original, good.frame.assign(age=np.array([0.0, -0.0])), good.manifest).ok


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest | {"comment": "row 1 is Ann"},
        lambda manifest: manifest | {"options": {"seed": 3}},
        lambda manifest: manifest | {"options": {"shuffle_seed": 3}},
        lambda manifest: manifest | {"objective": manifest["objective"] | {"row": 1}},
        lambda manifest: manifest | {"bound": manifest["bound"] | {"town": "Paris"}},
        lambda manifest: manifest | {"table": manifest["table"] | {"first": [30, 31]}},
        lambda manifest: (
            manifest
            | {
                "table": manifest["table"]
                | {"missing": manifest["table"]["missing"] | {"rows": [3]}}
            }
        ),
        lambda manifest: (
            manifest | {"columns": [column | {"original": [30]} for column in manifest["columns"]]}
        ),
        lambda manifest: manifest | {"diversity": {"l": 1.0, "distinct": 1, "whose": "Ann"}},
        lambda manifest: (
            manifest
            | {
                "limits": [
                    {"attribute": manifest["columns"][0]["name"], "rule": "apart", "one": "30"}
                ]
            }
        ),
    ],
)
def test_further_keys_of_the_manifest_are_refused(
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """What the format does not name may tell what nobody checked, a seed above all."""
    good = released()
    assert not verify(FRAME, good.frame, change(good.manifest)).ok
