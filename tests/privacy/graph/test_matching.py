"""Tests of the matching of records and published rows, against brute force."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymip.privacy.graph import consistency
from anonymip.privacy.graph.consistency import BitTable, Containment, GraphWork, PublishedMatches
from anonymip.privacy.graph.regularity import Deficiency, GraphPart
from anonymip.privacy.reading.cell_grammar import SUPPRESSED, Cell
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable
from tests.profiles import as_the_profile_asks


def one_to_one(contained: NDArray[np.bool_]) -> bool:
    """Return by trial of all permutations whether a perfect matching exists."""
    n = len(contained)
    return any(all(contained[i, p[i]] for i in range(n)) for p in permutations(range(n)))


def exact(value: float) -> Cell:
    """Return the cell of one number."""
    return Cell(value, value, (value,))


@st.composite
def small_problems(
    draw: st.DrawFn,
) -> tuple[list[list[float]], list[int], list[list[Cell]], list[int]]:
    """Draw up to six records and as many published rows, in up to two groups."""
    n = draw(st.integers(1, 6))
    m = draw(st.integers(1, 3))
    numbers = st.integers(0, 4).map(float)

    def cell() -> Cell:
        low, high = sorted((draw(numbers), draw(numbers)))
        if draw(st.booleans()) and low < high:
            return Cell(low, high, (low, high))
        return Cell(low, high) if low < high else draw(st.sampled_from([exact(low), SUPPRESSED]))

    records = [[draw(numbers) for _ in range(m)] for _ in range(n)]
    rows = [[cell() for _ in range(m)] for _ in range(n)]
    groups = [draw(st.integers(0, 1)) for _ in range(n)]
    return records, groups, rows, draw(st.permutations(groups))


def coded(records: list[list[float]], rows: list[list[Cell]]) -> tuple[Original, PublishedTable]:
    """Return records and rows of numeric columns as they are read."""
    n, m = len(records), len(records[0])
    record_codes, row_codes = np.empty((n, m), np.int32), np.empty((n, m), np.int32)
    all_levels, all_cells = [], []
    for attribute in range(m):
        levels, record_codes[:, attribute] = np.unique(
            [record[attribute] for record in records], return_inverse=True
        )
        cells = list(dict.fromkeys(row[attribute] for row in rows if not row[attribute].suppressed))
        row_codes[:, attribute] = [
            len(cells) if row[attribute].suppressed else cells.index(row[attribute]) for row in rows
        ]
        all_levels.append(levels)
        all_cells.append((*cells, SUPPRESSED))
    return (
        Original((), tuple(all_levels), record_codes, {}, np.arange(n)),
        PublishedTable((), tuple(all_cells), row_codes, {}),
    )


def shortage_of(
    original: Original,
    groups: NDArray[np.int64],
    published: PublishedTable,
    row_groups: NDArray[np.int64],
    first: int,
) -> Deficiency | None:
    """Return records that have too few rows of their group; None if all can have one."""
    matches = PublishedMatches(original, published, groups, row_groups, alike=True)
    part = GraphPart(matches, first=first)
    short = part.lacking(1)
    return part.deficient_records(short[0], 1) if len(short) else None


def contains(cell: Cell, value: float) -> bool:
    """Return whether a cell contains a value."""
    if cell.suppressed:
        return True
    return value in cell.members if cell.members else cell.lower <= value <= cell.upper


def allowed(
    records: list[list[float]], groups: list[int], rows: list[list[Cell]], row_groups: list[int]
) -> NDArray[np.bool_]:
    """Return (n, n), which record may go to which row."""
    return np.array(
        [
            [
                group == other and all(map(contains, row, record))
                for row, other in zip(rows, row_groups, strict=True)
            ]
            for record, group in zip(records, groups, strict=True)
        ]
    )


@pytest.mark.crossed
@pytest.mark.parametrize("edges", [1, 2, 12])
@pytest.mark.parametrize("buckets", [2, 1024])
def test_matching_agrees_with_brute_force(
    monkeypatch: pytest.MonkeyPatch, edges: int, buckets: int
) -> None:
    """A matching is found exactly where one exists, along every path of the algorithm."""
    monkeypatch.setattr(consistency, "WORK", GraphWork(buckets=buckets))

    @as_the_profile_asks
    @settings(max_examples=150)
    @given(small_problems())
    def agree(problem: tuple[list[list[float]], list[int], list[list[Cell]], list[int]]) -> None:
        records, groups, rows, row_groups = problem
        original, published = coded(records, rows)
        # Groups are numbered without gaps.
        numbers = {group: place for place, group in enumerate(sorted(set(groups)))}
        shortage = shortage_of(
            original,
            np.array([numbers[group] for group in groups]),
            published,
            np.array([numbers[group] for group in row_groups]),
            edges,
        )
        table = allowed(records, groups, rows, row_groups)
        assert (shortage is None) == one_to_one(table)
        if shortage is not None:
            assert shortage.size > shortage.available

    agree()


def test_shortage_counts_records_and_rows() -> None:
    """Three equal records with two rows to fit into are named as such."""
    records = [[1.0], [1.0], [1.0], [2.0]]
    rows = [[exact(1.0)], [exact(1.0)], [exact(2.0)], [exact(2.0)]]
    original, published = coded(records, rows)
    one_group = np.zeros(4, np.int64)
    shortage = shortage_of(original, one_group, published, one_group, 12)
    assert shortage == Deficiency("records", size=3, needed=3, available=2, example=0)


@pytest.mark.parametrize("edges", [1, 12])
def test_long_chains_of_moves_are_found(edges: int) -> None:
    """Record i fits rows i and i + 1, the last only row 0: nearly every record has to move."""
    n = 300
    levels = np.arange(n, dtype=float)
    pairs = [(0.0, n - 1.0), *((i - 1.0, float(i)) for i in range(1, n - 1))]
    cells = [*(Cell(*pair, pair) for pair in pairs), exact(n - 2.0)]
    codes = np.arange(n, dtype=np.int32)[:, None]
    group = np.zeros(n, np.int64)
    original = Original((), (levels,), codes, {}, np.arange(n))
    published = PublishedTable((), (tuple(cells),), codes[::-1].copy(), {})
    assert shortage_of(original, group, published, group, edges) is None
    broken = codes.copy()
    broken[0] = n - 1
    original = Original((), (levels,), broken, {}, np.arange(n))
    shortage = shortage_of(original, group, published, group, edges)
    assert shortage is not None
    assert shortage.size == shortage.available + 1


def test_sets_ranges_and_stars_contain_their_values() -> None:
    """A set contains its members only, a range all between, a star everything."""
    levels = np.array([1.0, 2.0, 3.0, 5.0])
    cells = [Cell(1, 3, (1.0, 3.0)), Cell(1.5, 4), SUPPRESSED, Cell(7, 9), Cell(4, 4, (4.0,))]
    containment = Containment(cells, levels)
    table = [
        containment.holds(np.arange(4), np.full(4, code)).tolist() for code in range(len(cells))
    ]
    assert table == [
        [True, False, True, False],
        [False, True, True, False],
        [True] * 4,
        [False] * 4,
        [False] * 4,
    ]
    assert np.argsort(containment.log_share()).tolist()[-1] == 2


def test_texts_are_contained_by_identity() -> None:
    """A text column has sets and stars only."""
    containment = Containment(
        [Cell(members=("a", "c")), SUPPRESSED], np.array(["a", "b"], dtype=object)
    )
    assert containment.holds(np.array([0, 1, 1]), np.array([0, 0, 1])).tolist() == [
        True,
        False,
        True,
    ]


def test_bit_table_agrees_with_pairwise_comparison() -> None:
    """Bits, buckets and the exact check after them give what comparing pair by pair gives."""
    rng = np.random.default_rng(3)
    levels = np.sort(rng.normal(size=3000))
    low, high = np.sort(rng.choice(levels, (500, 2)), axis=1).T
    cells = [Cell(a, b) if a < b else Cell(a, a, (a,)) for a, b in zip(low, high, strict=True)]
    cells[7] = SUPPRESSED
    containment = Containment(cells, levels)
    classes = np.arange(500, dtype=np.int32)[:, None]
    table = BitTable(classes, [containment])
    records = rng.integers(0, 3000, (300, 1)).astype(np.int32)
    record, found = table.first_containing(records, 10_000)
    expected = containment.holds(np.repeat(records, 500, axis=1), np.tile(classes.T, (300, 1)))
    assert np.array_equal(np.argwhere(expected), np.column_stack([record, found]))
