"""Tests of the verifier on covers: honest ones pass, those an oracle spoils fail by name."""

from __future__ import annotations

import re
from itertools import combinations, permutations
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip.privacy import verify
from tests.privacy.graph.test_regularity import assignments_of, most_disjoint

KINDS: dict[str, dict[str, Any]] = {
    "x": {"kind": "numeric", "domain": [0, 9]},
    "z": {"kind": "numeric", "publish": "set"},
    "c": {},
}
NOTIONS = ["one-k", "k-one", "k-k", "k-concealment"]


def ring(n: int, k: int) -> list[list[int]]:
    """Return the sets of k consecutive records of a ring."""
    return [[(row + step) % n for step in range(k)] for row in range(n)]


@st.composite
def tables(draw: st.DrawFn, largest: int = 6) -> pd.DataFrame:
    """Draw a table with ties, and values to publish untouched."""
    n = draw(st.integers(2, largest))
    numbers, texts = st.integers(0, 9).map(str), st.sampled_from("abc")
    values = {"x": numbers, "z": numbers, "c": texts, "s": st.sampled_from("uv"), "id": None}
    return pd.DataFrame(
        {
            name: [draw(one) if one is not None else f"{row}" for row in range(n)]
            for name, one in values.items()
        },
        dtype=object,
    )


@st.composite
def regular_sets(draw: st.DrawFn, n: int) -> tuple[int, list[list[int]], list[int]]:
    """Draw k disjoint assignments; returns k, their sets, and one of them."""
    left = [draw(st.permutations(range(n)))]
    for _ in range(draw(st.integers(1, 2))):
        fresh = [
            one
            for one in permutations(range(n))
            if all(all(a != b for a, b in zip(one, other, strict=True)) for other in left)
        ]
        if fresh:
            left.append(draw(st.sampled_from(fresh)))
    assume(len(left) > 1)
    sets = [sorted(one[row] for one in left) for row in range(n)]
    return len(left), sets, list(draw(st.sampled_from(left)))


def shows(written: Any, row: int, record: int) -> bool:
    """Return whether a published row contains a record, from the texts of its cells."""
    for name, form in KINDS.items():
        cell, value = written.release[name][row], written.original[name][record]
        if form.get("kind") == "numeric" and "publish" not in form:
            ends = [float(end) for end in cell.strip("[]").split("..")]
            inside = ends[0] <= float(value) <= ends[-1]
        else:
            inside = value in cell.strip("{}").split("|")
        if not inside:
            return False
    return True


def rows_of(written: Any) -> list[list[int]]:
    """Return the records that each row can be."""
    n = len(written.original)
    return [[record for record in range(n) if shows(written, row, record)] for row in range(n)]


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("kept", [False, True])
def test_honest_releases_pass(cover_release: Any, kept: bool, data: st.DataObject) -> None:
    """Values published along an assignment of the cover's own are what was promised."""
    frame = data.draw(tables())
    k, sets, matching = data.draw(regular_sets(len(frame)))
    order = None
    if kept:
        # Kept order ties the cells of row i to record i.
        place = {record: row for row, record in enumerate(matching)}
        sets = [sets[place[record]] for record in range(len(frame))]
        other = data.draw(st.sampled_from(assignments_of(sets)))
        matching = [record for record, _ in sorted(other, key=lambda edge: edge[1])]
    else:
        order = data.draw(st.permutations(range(len(frame))))
    written = cover_release(
        frame, KINDS, sets, matching, order=order, k=k, sensitive=["s"], keep=["id"]
    )
    found = written.verify()
    assert found.problems == ()
    assert (found.k_reached, found.classes, found.recoding) == (k, None, "freeform")
    assert f"keeps {k} effective matches" in found.summary()
    promised = f"Every record keeps k = {k} effective matches"
    assert any(check.startswith(promised) for check in found.checks)
    for notion in NOTIONS:
        written.manifest["recoding"] = notion
        found = written.verify()
        assert found.problems == ()
        assert found.k_reached == k


@settings(max_examples=80)
@given(st.data())
@pytest.mark.parametrize("recoding", ["freeform", *NOTIONS])
def test_any_sets_are_judged_as_by_brute_force(
    cover_release: Any, recoding: str, data: st.DataObject
) -> None:
    """Whatever the sets, the k that is reached is right, and a failure names a row."""
    frame = data.draw(tables(5))
    n, k = len(frame), data.draw(st.integers(2, 3))
    drawn = [data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=3)) for _ in range(n)]
    sets = [sorted({row, *members}) for row, members in enumerate(drawn)]
    written = cover_release(
        frame, KINDS, sets, range(n), recoding, k=k, order=data.draw(st.permutations(range(n)))
    )
    rows = rows_of(written)
    edges = [(record, row) for row, records in enumerate(rows) for record in records]
    if recoding == "k-concealment":
        edges = sorted(frozenset().union(*assignments_of(rows)))
    by_record = min(sum(edge[0] == one for edge in edges) for one in range(n))
    by_row = min(sum(edge[1] == one for edge in edges) for one in range(n))
    expected = {
        "freeform": lambda: most_disjoint(rows),
        "one-k": lambda: by_record,
        "k-one": lambda: by_row,
        "k-k": lambda: min(by_record, by_row),
        "k-concealment": lambda: by_record,
    }[recoding]()
    found = written.verify()
    assert found.k_reached == min(k, expected)
    assert found.ok == (expected >= k)
    if not found.ok:
        assert all(re.search(r"[Rr]ow \d", problem) for problem in found.problems)


@settings(max_examples=100)
@given(st.data())
def test_spoiled_releases_fail_by_name(cover_release: Any, data: st.DataObject) -> None:
    """A cell that an oracle narrows until no k disjoint assignments remain is found and named."""
    n, k = data.draw(st.integers(3, 6)), data.draw(st.integers(2, 3))
    assume(k <= n)
    frame = pd.DataFrame({"x": [str(value) for value in range(n)]}, dtype=object)
    kinds = {"x": {"kind": "numeric", "publish": "set"}}
    written = cover_release(frame, kinds, ring(n, k), range(n), k=k, order=range(n))
    assert written.verify().ok
    row = data.draw(st.integers(0, n - 1))
    members = data.draw(
        st.lists(st.sampled_from(ring(n, k)[row]), min_size=1, max_size=k - 1, unique=True)
    )
    rows = ring(n, k)
    rows[row] = members
    assume(assignments_of(rows))
    assert most_disjoint(rows) < k
    texts = [str(member) for member in sorted(members)]
    written.release.loc[row, "x"] = texts[0] if len(texts) == 1 else "{" + "|".join(texts) + "}"
    shrunk = (max(members) - min(members)) - (max(ring(n, k)[row]) - min(ring(n, k)[row]))
    written.claim_loss(written.manifest["ncp"] + shrunk / (n - 1))
    (problem,) = written.verify().problems
    lost = set(ring(n, k)[row]) - set(members)
    named = {f"Published row {row + 1} can be only {len(members)} original"}
    named |= {f"Original row {record + 1} fits into only {k - 1} published" for record in lost}
    assert any(problem.startswith(name) for name in named)


@pytest.mark.parametrize("recoding", ["freeform", *NOTIONS])
@pytest.mark.parametrize("k", [7, 2**63, 10**30])
def test_more_than_there_are_rows_is_not_reached(cover_release: Any, recoding: str, k: int) -> None:
    """A k above the number of rows, however large, fails by name, asked for or claimed."""
    frame = pd.DataFrame({"x": [str(value) for value in range(6)]}, dtype=object)
    kinds = {"x": {"kind": "numeric", "publish": "set"}}
    written = cover_release(frame, kinds, ring(6, 3), range(6), k=3, order=range(6))
    written.manifest["recoding"] = recoding
    assert written.verify().ok
    for manifest in (written.manifest, {**written.manifest, "k": k}):
        found = verify(written.original, written.release, manifest, k=k)
        assert found.k_reached == 3
        assert found.problems
        assert all(str(k) in problem for problem in found.problems)


@pytest.mark.parametrize("promise", [{"matches": 10**30}, {"distinct": 10**30}, {"l": 1e300}])
def test_diversity_of_more_than_there_are_rows_is_not_kept(
    cover_release: Any, promise: dict[str, Any]
) -> None:
    """Neither is a diversity that counts more rows than there are."""
    frame = pd.DataFrame({"x": list("012345"), "s": list("abcabc")}, dtype=object)
    kinds = {"x": {"kind": "numeric", "publish": "set"}}
    written = cover_release(
        frame, kinds, ring(6, 3), range(6), k=3, order=range(6), sensitive=["s"]
    )
    written.manifest["diversity"] = {"l": 1.5, "distinct": 1}
    assert written.verify().ok
    written.manifest["diversity"] |= promise
    assert any("'s'" in problem for problem in written.verify().problems)


def test_insisting_on_more_than_the_release_has_fails(cover_release: Any) -> None:
    """The caller's k counts beside the manifest's; what is reached is reported."""
    frame = pd.DataFrame({"x": list("01234")}, dtype=object)
    kinds = {"x": {"kind": "numeric", "publish": "set"}}
    written = cover_release(frame, kinds, ring(5, 3), range(5), k=2)
    assert written.verify().k_reached == 2
    assert written.verify(k=3).k_reached == 3
    found = written.verify(k=4)
    assert not found.ok
    assert found.k_reached == 3


def test_two_matches_each_are_not_two_anonymous(cover_release: Any) -> None:
    """Wong Table 4 is (2, 2)-anonymous, but neither 2-concealed nor 2-anonymous."""
    frame = pd.DataFrame({"x": list("12345")}, dtype=object)
    sets = [[0, 4], [1, 2], [2, 3], [2, 3], [0, 4]]
    written = cover_release(frame, {"x": {"kind": "numeric"}}, sets, range(5), "k-k")
    assert written.release["x"].tolist() == ["[1..5]", "[2..3]", "[3..4]", "[3..4]", "[1..5]"]
    assert written.verify().ok
    written.manifest["recoding"] = "k-concealment"
    (problem,) = written.verify().problems
    assert problem == "Original row 2 has only 1 effective matches, fewer than k = 2."
    written.manifest["recoding"] = "freeform"
    found = written.verify()
    assert not found.ok
    assert found.k_reached == 1


def test_values_of_another_record_are_no_assignment(cover_release: Any) -> None:
    """Payload that follows no assignment is a lie, though the cells alone keep the promise."""
    frame = pd.DataFrame({"x": list("012345"), "id": list("abcdef")}, dtype=object)
    kinds = {"x": {"kind": "numeric", "publish": "set"}}
    matching = [1, 2, 0, 4, 5, 3]
    sets = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]]
    written = cover_release(frame, kinds, sets, matching, keep=["id"])
    assert written.verify().ok
    written.release.loc[[0, 3], "id"] = ["e", "b"]
    found = written.verify()
    assert found.k_reached == 2
    assert any("fits into no published row" in problem for problem in found.problems)


def test_kept_order_ties_the_cells(cover_release: Any) -> None:
    """With kept order the cells of row i contain record i, while its values may be another's."""
    frame = pd.DataFrame({"x": list("0123"), "id": list("abcd")}, dtype=object)
    kinds = {"x": {"kind": "numeric"}}
    written = cover_release(
        frame, kinds, [[0, 1], [0, 1], [2, 3], [2, 3]], [1, 0, 2, 3], keep=["id"]
    )
    assert written.manifest["order"] == "kept"
    assert written.verify().ok
    written.release = written.release.iloc[::-1].reset_index(drop=True)
    assert any("does not contain" in problem for problem in written.verify().problems)
    written.manifest["order"] = "shuffled"
    assert written.verify().ok


def test_rows_are_missing(cover_release: Any) -> None:
    """A release of fewer rows fails, though every row is one of two records."""
    frame = pd.DataFrame({"x": list("0123")}, dtype=object)
    written = cover_release(frame, {"x": {"kind": "numeric"}}, ring(4, 2), range(4))
    found = verify(frame, written.release.iloc[:3], written.manifest)
    assert not found.ok
    assert any("3 rows for 4 original records" in one for one in found.problems)


@settings(max_examples=120)
@given(st.data())
def test_covers_of_some_are_judged_as_by_brute_force(
    cover_release: Any, data: st.DataObject
) -> None:
    """Rows that need a record which has none itself have fewer disjoint assignments than claimed.

    The k that is reached is the most that some choice of those left out leaves the others.
    """
    frame = data.draw(tables(6))
    n, k = len(frame), data.draw(st.integers(2, 3))
    gone = data.draw(st.integers(1, min(2, n - 1)))
    drawn = [data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=3)) for _ in range(n)]
    sets = [sorted({row, *members}) for row, members in enumerate(drawn)]
    written = cover_release(frame, KINDS, sets, range(n), k=k, order=range(n))
    rows = rows_of(written)[: n - gone]
    written.release = written.release.iloc[: n - gone]
    written.leave_out().manifest["left_out"]["suppressed"] = gone
    best = 0
    for kept in combinations(range(n), n - gone):
        place = {record: at for at, record in enumerate(kept)}
        best = max(best, most_disjoint([[place[r] for r in row if r in place] for row in rows]))
    found = written.verify()
    assert found.k_reached == min(k, best)
    assert any("disjoint assignments, but for" in one for one in found.checks) == (best >= k)
    assert found.left_out == gone


def test_a_record_without_a_row_is_needed(cover_release: Any) -> None:
    """A row that is taken out of a ring leaves its records a row too few, whoever was left out."""
    frame = pd.DataFrame({"x": list("0123456")}, dtype=object)
    kinds = {"x": {"kind": "numeric", "publish": "set"}}
    written = cover_release(frame, kinds, ring(7, 3), range(7), k=3, order=range(7))
    written.release = written.release.iloc[:6]
    written.leave_out().manifest["left_out"]["suppressed"] = 1
    told = "3 original records, row 1 among them, fit into fewer than 3 published rows each, and 1"
    assert any(one.startswith(told) for one in written.verify().problems)
    many = written.verify(k=10**30)
    assert any("can fit into 6 published rows at most" in one for one in many.problems)
