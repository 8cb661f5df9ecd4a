"""Tests of disjoint assignments and effective matches, against brute force."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.privacy.graph import consistency, regularity
from anonymip.privacy.graph.consistency import GraphWork, MatchGraph, PublishedMatches
from anonymip.privacy.graph.regularity import GraphPart, disjoint_assignments
from anonymip.privacy.reading.cell_grammar import Cell
from anonymip.privacy.reading.manifest_entries import Column
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable

Edges = frozenset[tuple[int, int]]


@dataclass
class ListedMatches:
    """Records and rows of which each is a type, and their matches, record after record."""

    record_units: NDArray[np.int64]
    row_units: NDArray[np.int64]
    first_records: NDArray[np.int64]
    first_rows: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]

    def rows_of(self, records, limit=None):
        """Return the matches of some records, the first `limit` of each."""
        place = np.arange(len(self.source)) - np.searchsorted(self.source, self.source)
        asked = np.isin(self.source, records) & (True if limit is None else place < limit)
        return self.source[asked], self.target[asked]

    def records_of(self, rows):
        """Return all matches of some rows."""
        asked = np.isin(self.target, rows)
        return self.source[asked], self.target[asked]


def listed(rows: list[list[int]]) -> ListedMatches:
    """Return the graph of which the records of each published row are given, each a type."""
    graph = MatchGraph.of(rows)
    order = np.argsort(graph.records, kind="stable")
    ones, places = np.ones(graph.n, np.int64), np.arange(graph.n)
    return ListedMatches(ones, ones, places, places, graph.records[order], graph.rows[order])


def edges_of(rows: list[list[int]]) -> Edges:
    """Return the matches (record, row) of a graph."""
    return frozenset((record, row) for row, records in enumerate(rows) for record in records)


def assignments_of(rows: list[list[int]]) -> list[Edges]:
    """Return all assignments, by trial of all permutations."""
    edges = edges_of(rows)
    everyone = (frozenset(enumerate(one)) for one in permutations(range(len(rows))))
    return [assignment for assignment in everyone if assignment <= edges]


def most_disjoint(rows: list[list[int]]) -> int:
    """Return the largest number of disjoint assignments, by trial."""

    def most(left: list[Edges]) -> int:
        if not left:
            return 0
        first = left[0]
        without = most(left[1:])
        return max(without, 1 + most([one for one in left[1:] if not one & first]))

    return most(assignments_of(rows))


@st.composite
def graphs(draw: st.DrawFn, largest: int = 5) -> list[list[int]]:
    """Draw the records that each of up to five rows can be."""
    n = draw(st.integers(1, largest))
    density = draw(st.integers(0, 3))
    cells = st.integers(0, 3).map(lambda roll: roll >= density)
    return [[record for record in range(n) if draw(cells)] for _ in range(n)]


@settings(max_examples=300)
@given(graphs(), st.integers(1, 4), st.booleans())
def test_disjoint_assignments_are_those_of_brute_force(
    rows: list[list[int]], claimed: int, narrow: bool
) -> None:
    """The number is right, and a set that is named as deficient is so, whatever part is first."""
    graph = listed(rows)
    with pytest.MonkeyPatch.context() as patch:
        if narrow:
            patch.setattr(regularity, "WORK", GraphWork(fewest_matches=1, first_matches=0, wider=2))
        reached, deficiency = disjoint_assignments(graph, claimed)
    assert reached == min(claimed, most_disjoint(rows))
    assert (deficiency is None) == (reached == claimed)
    if deficiency is not None:
        assert deficiency.needed == claimed * deficiency.size > deficiency.available
        assert is_deficient(rows, deficiency, claimed)


def is_deficient(rows: list[list[int]], found: regularity.Deficiency, k: int) -> bool:
    """Return whether some set of the named size holds the example and has too few matches."""
    edges = edges_of(rows)
    here = 0 if found.side == "records" else 1
    for chosen in product([False, True], repeat=len(rows)):
        if sum(chosen) != found.size or not chosen[found.example]:
            continue
        leaving = [edge[1 - here] for edge in edges if chosen[edge[here]]]
        room = sum(min(k, leaving.count(partner)) for partner in set(leaving))
        if room < found.needed:
            return True
    return False


@settings(max_examples=300)
@given(graphs(), st.integers(1, 4) | st.none(), st.booleans())
def test_effective_matches_are_those_of_brute_force(
    rows: list[list[int]], least: int | None, narrow: bool
) -> None:
    """Exact numbers, or exact below what was asked for and never too large above."""
    graph = listed(rows)
    with pytest.MonkeyPatch.context() as patch:
        if narrow:
            patch.setattr(regularity, "WORK", GraphWork(fewest_matches=1, first_matches=0))
        found = GraphPart(graph).effective(least)
    assignments = assignments_of(rows)
    if not assignments:
        assert found is None
        return
    effective = frozenset().union(*assignments)
    for place, side in enumerate(found):
        for node, number in enumerate(side.tolist()):
            exact = sum(edge[place] == node for edge in effective)
            bar = exact if least is None else min(exact, least)
            assert bar <= number <= exact


@settings(max_examples=200)
@given(graphs(), st.integers(1, 4), st.booleans())
def test_degrees_are_exact_below_k(rows: list[list[int]], k: int, narrow: bool) -> None:
    """Numbers of matches below k are the true ones, those above are never too large."""
    with pytest.MonkeyPatch.context() as patch:
        if narrow:
            patch.setattr(regularity, "WORK", GraphWork(fewest_matches=1, first_matches=0))
        found = GraphPart(listed(rows)).degrees(k)
    edges = edges_of(rows)
    for place, side in enumerate(found):
        for node, number in enumerate(side.tolist()):
            exact = sum(edge[place] == node for edge in edges)
            assert min(exact, k) <= number <= exact


def test_two_matches_each_are_not_two_anonymous() -> None:
    """Wong Table 4: every record and every row has two matches, but records 2 to 4 are known."""
    rows = [[0, 1, 2, 3, 4], [1, 2], [2, 3], [2, 3], [0, 1, 2, 3, 4]]
    graph = listed(rows)
    assert min(side.min() for side in GraphPart(graph).degrees(2)) >= 2
    reached, deficiency = disjoint_assignments(graph, 2)
    assert reached == 1
    assert deficiency is not None
    assert [side.tolist() for side in GraphPart(graph).effective()] == [[2, 1, 2, 2, 2]] * 2


def test_three_effective_matches_are_not_three_anonymous() -> None:
    """Wong Fig. 4: three effective matches each, and every assignment has one of two matches."""
    rows = wong_figure_4()
    assert all(edge & {(0, 0), (4, 5)} for edge in assignments_of(rows))
    assert min(side.min() for side in GraphPart(listed(rows)).effective()) >= 3
    assert disjoint_assignments(listed(rows), 3)[0] == 2


def wong_figure_4() -> list[list[int]]:
    """Return the graph as the text describes it: an arrow from i to j if row j can be record i."""
    # Complete graphs on records 2 to 4 and 6 to 8, counted from 1. Record 1 leads to the first
    # only, which leads on to record 5; from there one arrow leads to the second, and that to 1.
    arrows = {
        0: [1, 2],
        1: [2, 3],
        2: [1, 3, 4],
        3: [1, 2, 4],
        4: [3, 5],
        5: [6, 7],
        6: [5, 7, 0],
        7: [5, 6, 0],
    }
    return [[row, *(one for one, to in arrows.items() if row in to)] for row in range(8)]


def test_broken_graphs_are_refused() -> None:
    """A graph names every match once, and only records that there are."""
    for rows in ([[0, 0], [1]], [[2], [0]], [[-1], [0]]):
        with pytest.raises(InputError):
            MatchGraph.of(rows)
    with pytest.raises(InputError):
        MatchGraph(np.array([0, 2]), np.array([0]))


def test_long_chain_needs_every_match() -> None:
    """Two records short of a row at far ends of a chain are found through its whole length."""
    n = 3000
    rows = [[row, (row + 1) % n] for row in range(n)]
    assert disjoint_assignments(listed(rows), 2) == (2, None)
    rows[n // 2] = [n // 2]
    reached, deficiency = disjoint_assignments(listed(rows), 2)
    assert (reached, deficiency.size) == (1, 1)
    assert deficiency.example in (n // 2, n // 2 + 1)


def test_blurred_columns_answer_where_every_record_has_enough_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A column that is looked up by buckets asks nothing again where the limit is filled."""
    monkeypatch.setattr(consistency, "WORK", GraphWork(buckets=2))
    column = Column("age", "quasi-identifier", "numeric", "range")
    levels, n = np.arange(8.0), 8
    original = Original((column,), (levels,), np.arange(n, dtype=np.int32)[:, None], {}, levels)
    cells = tuple(Cell(0.0, 7.0 + row) for row in range(n))
    published = PublishedTable((column,), (cells,), original.codes, {})
    graph = PublishedMatches(original, published)
    source, target = graph.rows_of(np.arange(n), 1)
    assert sorted(source.tolist()) == list(range(n))
    assert len(target) == n
    assert all(len(found) == 0 for found in graph.records_of(np.empty(0, np.int64)))
