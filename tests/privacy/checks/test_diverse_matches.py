"""Tests of the diversity of covers as docs/diversity.md defines it, against brute force."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip.errors import InputError
from anonymip.privacy.graph import regularity
from anonymip.privacy.graph.consistency import GraphWork
from anonymip.privacy.reading.release_manifest import read_manifest
from tests.privacy.checks.test_covers import KINDS, ring, rows_of, tables
from tests.privacy.graph.test_regularity import assignments_of

SETS = {"x": {"kind": "numeric", "publish": "set"}}


def has_diverse_part(
    rows: list[list[int]], own: list[str], shown: list[str], matches: int, most: int
) -> bool:
    """Return by trial whether every record has `matches` rows, at most `most` of one value."""
    n = len(rows)

    def extend(record: int, owners: list[tuple[str, ...]]) -> bool:
        if record == n:
            return all(len(values) == matches for values in owners)
        mine = [row for row in range(n) if record in rows[row] and len(owners[row]) < matches]
        for chosen in combinations(mine, matches):
            if max(Counter(shown[row] for row in chosen).values()) > most:
                continue
            if any(owners[row].count(own[record]) >= most for row in chosen):
                continue
            after = [
                (*values, own[record]) if row in chosen else values
                for row, values in enumerate(owners)
            ]
            if extend(record + 1, after):
                return True
        return False

    return extend(0, [()] * n)


def poor_records(
    rows: list[list[int]], shown: list[str], k: int, distinct: int, share: Fraction | None
) -> bool:
    """Return whether some record's possible rows show too few values, or too much of one."""
    effective = frozenset().union(*assignments_of(rows))
    for record in range(len(rows)):
        values = Counter(shown[row] for other, row in effective if other == record)
        if len(values) < distinct:
            return True
        if share is not None and not any(
            sum(min(count, size // share) for count in values.values()) >= size
            for size in range(k, len(rows) + 1)
        ):
            return True
    return False


@settings(max_examples=150)
@given(st.data())
def test_diversity_is_judged_as_by_brute_force(cover_release: Any, data: st.DataObject) -> None:
    """With K given or not, whatever the sets and values, and whatever part is looked at first."""
    frame = data.draw(tables(5))
    n = len(frame)
    values = st.sampled_from("uvw")
    frame["s"] = [data.draw(values) for _ in range(n)]
    drawn = [data.draw(st.sets(st.integers(0, n - 1), min_size=1)) for _ in range(n)]
    sets = [sorted({row, *members}) for row, members in enumerate(drawn)]
    every = assignments_of(sets)
    matching = [record for record, _ in sorted(data.draw(st.sampled_from(every)), key=second)]
    order = data.draw(st.permutations(range(n)))
    written = cover_release(
        frame, KINDS, sets, matching, "k-one", k=1, order=order, sensitive=["s"]
    )
    matches = data.draw(st.integers(1, n) | st.none())
    share = data.draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)]))
    distinct = data.draw(st.integers(1, 3))
    written.manifest["diversity"] = {"l": float(share), "distinct": distinct, "matches": matches}
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            patch.setattr(regularity, "WORK", GraphWork(fewest_matches=1, first_matches=0, wider=2))
        found = written.verify()
    told = [problem for problem in found.problems if "diversity" in problem]
    rows, shown = rows_of(written), written.release["s"].tolist()
    expected = []
    if matches is not None:
        most = min(matches // share, matches - distinct + 1)
        expected.append(not has_diverse_part(rows, frame["s"].tolist(), shown, matches, most))
    counted = share if matches is None and share > 1 else None
    expected.append(poor_records(rows, shown, 1, distinct, counted))
    assert len(told) == sum(expected)
    assert all("original row" in problem for problem in told)


def second(edge: tuple[int, int]) -> int:
    """Return the row of a match."""
    return edge[1]


def test_a_diverse_ring_published_along_a_shift_passes(cover_release: Any) -> None:
    """Six records in a ring of three, values in the same order three apart."""
    frame = pd.DataFrame({"x": list("012345"), "s": list("uvwuvw")}, dtype=object)
    shift = [(row + 1) % 6 for row in range(6)]
    written = cover_release(
        frame, SETS, ring(6, 3), shift, k=3, order=[3, 1, 5, 0, 2, 4], sensitive=["s"]
    )
    written.manifest["diversity"] = {"l": 3, "distinct": 3, "matches": 3}
    found = written.verify()
    assert found.problems == ()
    assert any("of the promised diversity" in check for check in found.checks)
    written.manifest["diversity"]["matches"] = 2
    assert any("fewer matches than k" in problem for problem in written.verify().problems)


def test_a_diverse_ring_published_otherwise_can_fail(cover_release: Any) -> None:
    """The gap of the plain construction: all sets are diverse, the rows of a record are not."""
    frame = pd.DataFrame({"x": list("012345678"), "s": list("uvwuvwuvw")}, dtype=object)
    sets = ring(9, 3)
    assert all(len({frame["s"][record] for record in records}) == 3 for records in sets)
    # Of the 78 assignments only those keep it whose values repeat with period three.
    passes, fails = 0, 0
    for assignment in assignments_of(sets):
        matching = [record for record, _ in sorted(assignment, key=second)]
        written = cover_release(frame, SETS, sets, matching, k=3, sensitive=["s"], order=range(9))
        written.manifest["diversity"] = {"l": 3, "distinct": 3, "matches": 3}
        if written.verify().ok:
            passes += 1
        else:
            fails += 1
    assert (passes, fails) == (6, 72)


def test_two_values_among_too_few_rows_are_not_the_promise(cover_release: Any) -> None:
    """Two rows of a record show two values, but it was to have three that are equally likely."""
    frame = pd.DataFrame({"x": list("012345"), "s": list("uvwuvw")}, dtype=object)
    shift = [(row + 1) % 6 for row in range(6)]
    for first, kept in ([0, 1, 2], True), ([1, 2, 3], False):
        sets = [first, *ring(6, 3)[1:]]
        written = cover_release(frame, SETS, sets, shift, k=2, order=range(6), sensitive=["s"])
        assert written.verify().ok
        written.manifest["diversity"] = {"l": 1, "distinct": 2, "matches": 3}
        problems = written.verify().problems
        assert (problems == ()) is kept
        assert all("original row 1 lack" in problem for problem in problems)


def test_several_columns_are_judged_one_by_one(cover_release: Any) -> None:
    """The problem names the column that lacks diversity, and only that."""
    frame = pd.DataFrame({"x": list("0123"), "s": list("uvuv"), "t": list("pppq")}, dtype=object)
    written = cover_release(frame, SETS, ring(4, 2), range(4), sensitive=["s", "t"], order=range(4))
    written.manifest["diversity"] = {"l": 2, "distinct": 1, "matches": 2}
    (problem,) = written.verify().problems
    assert "'t'" in problem
    written.manifest["diversity"] = {"l": 1, "distinct": 2, "matches": None}
    (problem,) = written.verify().problems
    assert "original row 2 in some assignment" in problem
    assert "'t'" in problem
    # Of records that fit into no row at all, too.
    written.manifest["diversity"]["matches"], written.release["x"] = 2, "9"
    assert "has no 2 of them" in "".join(written.verify().problems)


def test_matches_outside_the_first_part_count(
    cover_release: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record has two rows with different values, of which the first part holds one."""
    monkeypatch.setattr(regularity, "WORK", GraphWork(fewest_matches=1, first_matches=0))
    frame = pd.DataFrame({"x": list("012"), "s": list("uvu")}, dtype=object)
    sets = [[0, 1], [0, 1, 2], [1, 2]]
    written = cover_release(
        frame, SETS, sets, range(3), "k-one", k=1, order=range(3), sensitive=["s"]
    )
    written.manifest["diversity"] = {"l": 1, "distinct": 2, "matches": None}
    assert not any("diversity" in problem for problem in written.verify().problems)
    frame = pd.DataFrame({"x": list("0123"), "s": list("uvuv")}, dtype=object)
    written = cover_release(frame, SETS, ring(4, 2), range(4), sensitive=["s"], order=range(4))
    written.manifest["diversity"] = {"l": 2, "distinct": 2, "matches": 2}
    assert written.verify().problems == ()


def test_a_promise_without_sensitive_columns_fails(cover_release: Any) -> None:
    """There is nothing that could be diverse."""
    frame = pd.DataFrame({"x": list("0123")}, dtype=object)
    written = cover_release(frame, SETS, ring(4, 2), range(4))
    written.manifest["diversity"] = {"l": 2, "distinct": 1, "matches": 2}
    assert any("names no sensitive column" in problem for problem in written.verify().problems)


@pytest.mark.parametrize("matches", [0, -1, "2", 2.0, True])
def test_nonsensical_matches_are_input_errors(cover_release: Any, matches: object) -> None:
    """K is a whole number of at least 1."""
    frame = pd.DataFrame({"x": list("0123"), "s": list("uvuv")}, dtype=object)
    written = cover_release(frame, SETS, ring(4, 2), range(4), sensitive=["s"])
    written.manifest["diversity"] = {"l": 2, "distinct": 1, "matches": matches}
    with pytest.raises(InputError):
        read_manifest(written.manifest, written.release)
