"""Tests of the lookup of cells that contain a value."""

from __future__ import annotations

import numpy as np

from anonymip.privacy.graph.consistency import BitTable, Containment
from anonymip.privacy.reading.cell_grammar import SUPPRESSED, Cell


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
    assert np.array_equal(
        table.containing(records[5], table.all_classes()), np.flatnonzero(expected[5])
    )
