"""Tests of releases joined with each other, against all ways that both can be true."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip.errors import InputError
from anonymip.privacy import JoinedCandidates, joined_candidates
from tests.privacy.checks.test_covers import KINDS, shows, tables

World = dict[int, int]


def join(*written: Any, **given: Any) -> JoinedCandidates:
    """Join releases in memory."""
    return joined_candidates(
        written[0].original,
        [one.release for one in written],
        [one.manifest for one in written],
        **given,
    )


def leave_out(written: Any, rows: list[int]) -> Any:
    """Take rows out of a release."""
    written.release = written.release.drop(index=rows).reset_index(drop=True)
    written.manifest["n"] = len(written.release)
    return written


def worlds(written: Any) -> list[World]:
    """Return all ways in which every row is another record's: the row of each record."""
    n, rows = len(written.original), len(written.release)
    fits = [[shows(written, row, record) for record in range(n)] for row in range(rows)]
    return [
        {record: row for row, record in enumerate(owners)}
        for owners in permutations(range(n), rows)
        if all(fits[row][record] for row, record in enumerate(owners))
    ]


def agree(one: World, other: World, both: tuple[Any, Any], names: list[str]) -> bool:
    """Return whether every record shows the same in both, and nothing occurs too often."""
    shown = [written.release[names].apply(tuple, axis=1).tolist() for written in both]
    values = []
    for record in one.keys() | other.keys():
        seen = {
            shown[side][world[record]] for side, world in enumerate((one, other)) if record in world
        }
        if len(seen) > 1:
            return False
        values += seen
    return not Counter(values) - Counter(both[0].original[names].apply(tuple, axis=1))


@st.composite
def pairs_of_releases(draw: st.DrawFn, write: Any) -> tuple[tuple[Any, Any], list[str]]:
    """Draw two releases of a table, rows of each perhaps left out, and the columns they share."""
    frame = draw(tables(5))
    n, written, kept = len(frame), [], []
    for _ in range(2):
        matching = draw(st.permutations(range(n)))
        sets = [
            sorted({record, *draw(st.lists(st.integers(0, n - 1), max_size=2))})
            for record in matching
        ]
        kept.append([name for name in ("s", "id") if draw(st.booleans())])
        one = write(
            frame, KINDS, sets, matching, order=draw(st.permutations(range(n))), keep=kept[-1]
        )
        out = draw(st.lists(st.integers(0, n - 1), max_size=min(2, n - 1), unique=True))
        written.append(leave_out(one, out))
    return (written[0], written[1]), [name for name in kept[0] if name in kept[1]]


@settings(max_examples=80)
@given(data=st.data())
def test_no_row_that_can_be_true_is_ruled_out(cover_release: Any, data: st.DataObject) -> None:
    """Exact alone, and joined where a shared column is unique; else never below the truth."""
    both, names = data.draw(pairs_of_releases(cover_release))
    n = len(both[0].original)
    found = join(*both)
    assert found.problems == ()
    assert found.linked_by == tuple(names)
    possible = [worlds(written) for written in both]
    for side, of_side in enumerate(possible):
        rows = [len({world[record] for world in of_side if record in world}) for record in range(n)]
        assert found.alone[side].tolist() == rows
    joint = [
        pair
        for pair in ((one, other) for one in possible[0] for other in possible[1])
        if not names or agree(*pair, both, names)
    ]
    for side in range(2):
        rows = [len({pair[side][r] for pair in joint if r in pair[side]}) for r in range(n)]
        left = found.left[side].tolist()
        if "id" in names:
            assert left == rows
        assert all(few <= some for few, some in zip(rows, left, strict=True))
        assert (found.left[side] <= found.alone[side]).all()
    kept = found.candidates[found.candidates > 0]
    assert found.fewer == int(np.sum(kept < found.k))
    assert found.unique == int(np.sum(kept == 1))


FOUR = pd.DataFrame(
    {
        "x": ["1", "2", "5", "6"],
        "c": list("abab"),
        "s": list("uuvv"),
        "id": ["01", "02", "03", "04"],
    },
    dtype=object,
)
BY_NUMBER = [[0, 1], [0, 1], [2, 3], [2, 3]]
BY_TEXT = [[0, 2], [1, 3], [0, 2], [1, 3]]


def two_of_four(write: Any, keep: list[str]) -> tuple[Any, Any]:
    """Return two releases, each of two classes of two: by the number, and by the text."""
    kinds = {"x": {"kind": "numeric"}, "c": {}}
    return (
        write(FOUR, kinds, [0, 0, 1, 1], keep=keep, order=[2, 0, 3, 1]),
        write(FOUR, kinds, [0, 1, 0, 1], keep=keep, order=[1, 3, 0, 2]),
    )


@pytest.mark.parametrize(
    ("keep", "fewer", "unique"), [(["id"], 4, 4), (["s"], 4, 4), ([], 0, 0), (["s", "id"], 4, 4)]
)
def test_classes_that_cross(write_release: Any, keep: list[str], fewer: int, unique: int) -> None:
    """Each record is alone in the class that two classes have in common, where a column links."""
    found = join(*two_of_four(write_release, keep))
    assert (found.fewer, found.unique, found.k) == (fewer, unique, 2)
    assert found.ok == (fewer == 0)
    assert (found.alone == 2).all()
    told = found.summary()
    assert f"{fewer} of 4 records have fewer than k = 2 rows left" in told
    assert ("Nothing links rows" in told) == (not keep)
    assert found.to_dict()["unique"] == unique


def test_the_same_classes_twice(write_release: Any) -> None:
    """Nothing is lost, however the rows are linked, unless more than k is asked for."""
    one, _ = two_of_four(write_release, ["id"])
    assert join(one, one).ok
    assert join(one, one, one).candidates.tolist() == [2, 2, 2, 2]
    assert join(one, one, k=3).fewer == 4


def test_kept_order_links_rows(write_release: Any) -> None:
    """Rows in the same place are of one record, though nobody knows whose."""
    kinds = {"x": {"kind": "numeric"}, "c": {}}
    one = write_release(FOUR, kinds, [0, 0, 1, 1])
    other = write_release(FOUR, kinds, [0, 1, 0, 1])
    found = join(one, other)
    assert found.unique == 4
    assert "by their order" in found.summary()
    other.manifest["order"] = "shuffled"
    assert join(one, other).ok


def test_what_one_release_generalizes_and_another_keeps(write_release: Any) -> None:
    """A quasi-identifier of one is known of everybody, so that the other gives it away."""
    one = write_release(FOUR, {"x": {"kind": "numeric"}}, [0, 0, 1, 1], order=[0, 1, 2, 3])
    other = write_release(FOUR, {"c": {}}, [0, 1, 0, 1], keep=["x"], order=[0, 1, 2, 3])
    found = join(one, other)
    assert found.alone.tolist() == [[2, 2, 2, 2], [1, 1, 1, 1]]
    assert found.unique == 4


def test_records_left_out(write_release: Any) -> None:
    """Who has no row at all is not counted; rows of others still count for her where they fit."""
    one, other = two_of_four(write_release, ["id"])
    leave_out(one, [1, 3])
    leave_out(other, [0, 1, 2, 3])
    found = join(one, other)
    assert found.left.tolist() == [[0, 0, 2, 2], [0, 0, 0, 0]]
    assert found.candidates.tolist() == [0, 0, 2, 2]
    assert found.ok


def test_what_is_no_release_of_the_table(write_release: Any, tmp_path: Path) -> None:
    """Values or rows that the original does not have, cells that fit nobody: nothing is counted."""
    one, other = two_of_four(write_release, ["id"])
    other.release.loc[0, "id"] = "01"
    found = join(one, other)
    assert found.problems == (
        "Release 2 shows sensitive or kept values that the original does not have.",
    )
    assert not found.ok
    assert "cannot be joined" in found.summary()
    one, other = two_of_four(write_release, ["id"])
    other.release["x"] = "1"
    assert join(one, other).problems == ("Release 2 has no row of its own for every record.",)
    one, other = two_of_four(write_release, ["id"])
    other.release["id"] = ["03", "04", "01", "02"]
    assert join(one, other).problems == ("The releases contradict each other.",)
    one.manifest["table"]["sha256"] = "0" * 64
    original, path = one.save(tmp_path)
    found = joined_candidates(original, [path, path])
    assert found.problems[0] == "Release 1 is not the table that its manifest was written for."


def test_what_cannot_be_joined_is_refused(write_release: Any) -> None:
    """A single release, manifests that are missing, other records left out by the policy."""
    one, other = two_of_four(write_release, ["id"])
    with pytest.raises(InputError, match="1 releases cannot be joined"):
        join(one)
    with pytest.raises(InputError, match="1 manifests for 2 releases"):
        joined_candidates(FOUR, [one.release, other.release], [one.manifest])
    gaps = FOUR.assign(x=["", "2", "5", "6"])
    one.manifest["table"]["missing"] = {"policy": "drop", "tokens": [""], "label": "missing"}
    other.manifest["columns"] = [c for c in other.manifest["columns"] if c["name"] != "x"]
    other.manifest["m"] = 1
    with pytest.raises(InputError, match="leave out different records"):
        joined_candidates(
            gaps, [one.release, other.release.drop(columns="x")], [one.manifest, other.manifest]
        )


def test_escaped_formulas_are_what_they_stand_for(write_release: Any) -> None:
    """Values of which one release escapes formulas are linked to those of the other."""
    one, other = two_of_four(write_release, ["id"])
    original = FOUR.assign(id="=A" + FOUR["id"])
    one.release["id"] = "'=A" + one.release["id"]
    one.manifest["table"]["formulas"] = "escaped"
    other.release["id"] = "=A" + other.release["id"]
    found = joined_candidates(
        original, [one.release, other.release], [one.manifest, other.manifest]
    )
    assert (found.problems, found.unique) == ((), 4)
