"""Tests of attacks: probabilities of matches, and what known matches leave, by brute force."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip.errors import InputError
from anonymip.privacy import MatchGraph, consistency_graph, match_probabilities, measure_corruption
from anonymip.privacy.attacks import matches
from anonymip.privacy.graph.regularity import GraphPart
from tests.privacy.checks.test_covers import KINDS, regular_sets, ring, rows_of, tables
from tests.privacy.graph.test_regularity import assignments_of, graphs, listed, wong_figure_4


def test_ring_of_five_has_thirteen_assignments() -> None:
    """Wong Section 5.2: of the 13 assignments 5 hold the middle match, 4 each of the others."""
    found = match_probabilities(MatchGraph.of(ring(5, 3)))
    assert found.assignments == 13
    assert found.is_exact.all()
    for row in range(5):
        shares = found.of_row(row)
        assert shares[row] == shares[(row + 2) % 5] == pytest.approx(4 / 13)
        assert shares[(row + 1) % 5] == pytest.approx(5 / 13)
    assert found.largest == pytest.approx(5 / 13)


def test_rows_that_nobody_suppressed_are_not_made(write_release: Any) -> None:
    """A manifest that claims more records left out than there are is refused by their number."""
    written = write_release(
        pd.DataFrame({"x": ["a", "a", "b"]}, dtype=object), {"x": {}}, [0, 0, -1]
    )
    written.leave_out().manifest["left_out"]["suppressed"] = 2**50
    with pytest.raises(InputError, match="rows for 3 original records"):
        consistency_graph(written.original, written.release, written.manifest)


def test_concealment_is_not_anonymity() -> None:
    """Doka Fig. 3: two effective matches each, four assignments, each match in one or three."""
    rows = [[0, 1, 2, 3], [0, 1], [0, 2], [0, 3]]
    found = match_probabilities(MatchGraph.of(rows))
    assert found.assignments == len(assignments_of(rows)) == 4
    assert sorted(set(found.probability)) == [1 / 4, 3 / 4]
    assert min(side.min() for side in GraphPart(listed(rows)).effective()) == 2


@settings(max_examples=200)
@given(graphs(6))
def test_probabilities_are_those_of_brute_force(rows: list[list[int]]) -> None:
    """The share of all permutations that fit, match by match; no assignment is an error."""
    every = assignments_of(rows)
    graph = MatchGraph.of(rows)
    if not every:
        with pytest.raises(InputError):
            match_probabilities(graph)
        return
    found = match_probabilities(graph)
    assert found.assignments == len(every)
    for row in range(len(rows)):
        for record, share in found.of_row(row).items():
            assert share == sum((record, row) in one for one in every) / len(every)


@pytest.mark.parametrize("rows", [ring(9, 3), wong_figure_4(), ring(6, 4)])
def test_sampled_probabilities_estimate_the_counted_ones(
    rows: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn shares lie within five standard errors of what is counted."""
    graph = MatchGraph.of(rows)
    counted = match_probabilities(graph)
    monkeypatch.setattr(matches, "MOST_COUNTED", 1)
    drawn = match_probabilities(graph, draws=2000, seed=1)
    assert drawn.assignments is None
    assert not drawn.is_exact.any()
    assert np.abs(drawn.probability - counted.probability).max() < 5 * np.sqrt(0.25 / 2000)
    same = match_probabilities(graph, draws=2000, seed=1)
    assert (same.probability == drawn.probability).all()


def test_large_parts_are_drawn_and_small_ones_counted() -> None:
    """A ring of 30 and one of 5 side by side: estimates here, exact numbers there."""
    rows = ring(30, 3) + [[30 + record for record in records] for records in ring(5, 3)]
    found = match_probabilities(MatchGraph.of(rows), draws=200)
    assert found.assignments is None
    assert found.is_exact.tolist() == [False] * 90 + [True] * 15
    assert found.of_row(31)[32] == pytest.approx(5 / 13)
    totals = np.bincount(found.graph.rows, found.probability)
    assert totals == pytest.approx(1)


@settings(max_examples=150)
@given(graphs(6), st.data())
def test_what_known_matches_leave_is_that_of_brute_force(
    rows: list[list[int]], data: st.DataObject
) -> None:
    """What is possible given the known matches is what some assignment with them has."""
    every = assignments_of(rows)
    assume(every)
    n, record_of = len(rows), {row: record for record, row in data.draw(st.sampled_from(every))}
    known, seed = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, 99))
    found = measure_corruption(
        MatchGraph.of(rows), known, truth=[record_of[row] for row in range(n)], draws=1, seed=seed
    )
    told = np.random.default_rng(seed).choice(n, known, replace=False).tolist()
    matches = {(record_of[row], row) for row in told}
    possible = frozenset().union(*(one for one in every if matches <= one))
    others = [row for row in range(n) if row not in told]
    of_rows = [sum(edge[1] == row for edge in possible) for row in others]
    of_records = [sum(edge[0] == record_of[row] for edge in possible) for row in others]
    assert found.least == min(of_rows + of_records)
    assert found.mean == pytest.approx(np.mean(of_records))


@st.composite
def classes_or_reciprocal(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    """Draw classes, or a graph in which i can be l if l can be i, and its least degree."""
    n = draw(st.integers(2, 8))
    if draw(st.booleans()):
        label = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
        rows = [[other for other in range(n) if label[other] == label[row]] for row in range(n)]
    else:
        pairs = {(row, row) for row in range(n)}
        for row in range(n):
            for other in draw(st.sets(st.integers(0, n - 1), max_size=3)):
                pairs |= {(row, other), (other, row)}
        rows = [[other for other in range(n) if (row, other) in pairs] for row in range(n)]
    return rows, min(map(len, rows))


@settings(max_examples=150)
@given(classes_or_reciprocal(), st.integers(0, 3))
def test_classes_and_reciprocal_graphs_lose_one_identity_a_match(
    drawn: tuple[list[list[int]], int], known: int
) -> None:
    """Doka Section 2.2: c known matches of the identity leave k - c to everybody else."""
    rows, k = drawn
    assume(known < len(rows))
    found = measure_corruption(MatchGraph.of(rows), known, truth=range(len(rows)), draws=20)
    assert found.before == k
    assert found.least.min() >= min(k, max(1, k - known))
    assert found.beyond == 0 or k - known < 1


def test_one_known_match_undoes_a_ring_of_pairs() -> None:
    """In a ring with k = 2 whoever knows one match knows all, as in classes nobody would."""
    found = measure_corruption(MatchGraph.of(ring(7, 2)), 1)
    assert (found.before, found.least.max(), found.beyond) == (2, 1, 0)
    assert found.mean.max() == 1
    pairs = [[row // 2 * 2, row // 2 * 2 + 1] for row in range(8)]
    classes = measure_corruption(MatchGraph.of(pairs), 1)
    assert classes.mean.min() > 1.5
    assert "1 known matches leave 1 of 2 identities" in classes.summary()


def test_reciprocal_graphs_lose_more_along_a_drawn_assignment() -> None:
    """What is proven along the identity is not of others: two known matches of k = 4 leave one.

    Rows 1, 2 and 4 share records 1, 2 and 4, so that row 5 is record 3.
    """
    graph = MatchGraph.of(
        [
            [0, 3, 6, 7],
            [1, 2, 4, 5],
            [1, 2, 4, 5],
            [0, 3, 5, 7],
            [1, 2, 4, 6],
            [1, 2, 3, 5],
            [0, 4, 6, 7],
            [0, 3, 6, 7],
        ]
    )
    along_identity = measure_corruption(graph, 2, truth=range(8))
    assert along_identity.least.min() == 2
    swapped = measure_corruption(graph, 2, truth=[0, 1, 2, 5, 4, 3, 6, 7])
    assert swapped.least.min() == 1


def test_more_is_lost_where_graphs_are_not_reciprocal() -> None:
    """Two pairs of equal rows linked by two others: one known match tells who the other link is."""
    rows = [[0, 3, 4], [1, 2, 5], [1, 2, 5], [0, 3, 4], [1, 2, 4], [0, 3, 5]]
    graph = MatchGraph.of(rows)
    assert GraphPart(listed(rows), 3).find_deficiency(3) is None
    # If row 4 has record 4, then rows 0 and 3 have the records 0 and 3, and row 5 has neither.
    measured = measure_corruption(graph, 1, truth=range(6), draws=50)
    assert (measured.before, measured.beyond) == (3, 1)


def test_corruption_is_repeatable_and_refuses_nonsense() -> None:
    """Equal seeds, equal draws; counts out of range and false truths are errors."""
    graph = MatchGraph.of(ring(12, 4))
    first, second = (measure_corruption(graph, 2, draws=30, seed=5) for _ in range(2))
    assert (first.least == second.least).all()
    assert (first.mean == second.mean).all()
    assert first.least.max() <= 4
    for known, draws in ((12, 5), (-1, 5), (2, 0)):
        with pytest.raises(InputError):
            measure_corruption(graph, known, draws=draws)
    for truth in ([1] * 12, range(11), [*range(1, 12), 0][::-1]):
        with pytest.raises(InputError):
            measure_corruption(graph, 2, truth=truth)
    with pytest.raises(InputError):
        match_probabilities(graph, draws=0)


@settings(max_examples=60)
@given(st.data())
def test_releases_are_read_as_they_are_verified(cover_release: Any, data: st.DataObject) -> None:
    """The graph of a release has the records that the texts of each row's cells contain."""
    frame = data.draw(tables())
    k, sets, matching = data.draw(regular_sets(len(frame)))
    order = data.draw(st.permutations(range(len(frame))))
    written = cover_release(frame, KINDS, sets, matching, k=k, order=order, sensitive=["s"])
    graph = consistency_graph(frame, written.release, written.manifest)
    assert [
        graph.records[graph.start[row] : graph.start[row + 1]].tolist() for row in range(graph.n)
    ] == rows_of(written)
    assert match_probabilities(graph).largest <= 1


def test_broken_releases_are_refused(cover_release: Any) -> None:
    """A release that cannot be read, or lacks rows, has no graph."""
    frame = pd.DataFrame({"x": list("0123")}, dtype=object)
    written = cover_release(frame, {"x": {"kind": "numeric"}}, ring(4, 2), range(4))
    with pytest.raises(InputError, match="3 rows"):
        consistency_graph(frame, written.release.iloc[:3], written.manifest)
    with pytest.raises(InputError, match="column"):
        consistency_graph(frame, written.release.rename(columns={"x": "y"}), written.manifest)
    written.release.loc[0, "x"] = "[1..0]"
    with pytest.raises(InputError, match="row 1"):
        consistency_graph(frame, written.release, written.manifest)


def test_records_and_rows_of_one_kind_are_listed_one_by_one(cover_release: Any) -> None:
    """Ties among records and rows multiply matches, in every order."""
    frame = pd.DataFrame({"x": list("1001")}, dtype=object)
    sets = [[0, 3], [1, 2], [0, 1], [2, 3]]
    for order in permutations(range(4)):
        written = cover_release(frame, {"x": {}}, sets, [0, 1, 2, 3], order=order)
        graph = consistency_graph(frame, written.release, written.manifest)
        of_row = {0: [0, 3], 1: [1, 2], 2: [0, 1, 2, 3], 3: [0, 1, 2, 3]}
        for place, row in enumerate(order):
            some = slice(graph.start[place], graph.start[place + 1])
            assert graph.records[some].tolist() == of_row[row]
