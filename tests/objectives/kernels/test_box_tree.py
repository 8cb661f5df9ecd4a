"""Tests of the k-d tree: it finds what a linear scan finds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Attribute, Microdata, objective
from anonymip.objectives.kernels.box_tree import (
    build_tree,
    cheapest_row,
    delete_row,
    new_tree,
    scan_cheapest_row,
)
from anonymip.objectives.kernels.class_loss import join_class, kernel_rows, new_state, open_class


@objective
def mixed(record: object) -> object:
    """Charge a range linearly, a range by its square, and a set by its values: every table."""
    widths, counts = record.width, record.distinct  # type: ignore[attr-defined]
    return widths["a"] + widths["b"] ** 2 + counts["c"] + np.sqrt(counts["d"])


def table(seed: int, spread: int) -> Microdata:
    """Return 90 records, full of ties if `spread` is small: enough for several levels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, spread, 90) for name in "abcd"})
    kinds = {"a": "numeric", "b": "numeric", "c": "categorical", "d": "categorical"}
    return Microdata(frame, tuple(Attribute(name, kinds[name]) for name in kinds))  # type: ignore[arg-type]


@given(
    st.integers(0, 2**16),
    st.sampled_from([1, 2, 4, 10, 30]),
    st.lists(st.integers(0, 89), min_size=1, max_size=60),
    st.sampled_from([1, 3]),
)
def test_tree_and_scan_find_the_same_row(
    seed: int, spread: int, joining: list[int], capacity: int
) -> None:
    """While a class grows and rows disappear, ties go to the first row in both searches."""
    data = table(seed, spread)
    tables = mixed.compile(data).tables
    rows, state = kernel_rows(data, tables, np.arange(data.n)), new_state(tables, capacity)
    tree, alive = new_tree(tables, data.n), np.ones(data.n, np.int64)
    build_tree(tree, tables, rows, alive)
    stack, bounds = np.zeros(128, np.int64), np.zeros(128)
    candidates = np.arange(data.n)
    first, *others = dict.fromkeys(joining)
    open_class(rows, state, first)
    for place, row in enumerate(others):
        found = cheapest_row(tree, tables, rows, state, alive, stack, bounds)
        assert found == scan_cheapest_row(tables, rows, state, alive, candidates, data.n)
        # Some classes grow as a heuristic would have it, others take in whatever comes.
        join_class(rows, state, found if place % 3 == 0 else row)
        for gone in {found, row}:
            if alive[gone]:
                alive[gone] = 0
                delete_row(tree, gone)
        if not alive.any():
            break


def test_an_exhausted_tree_finds_nothing() -> None:
    """When all rows are gone both searches say so."""
    data = table(1, 4)
    tables = mixed.compile(data).tables
    rows, state = kernel_rows(data, tables, np.arange(data.n)), new_state(tables, 3)
    tree, alive = new_tree(tables, data.n), np.zeros(data.n, np.int64)
    build_tree(tree, tables, rows, alive)
    open_class(rows, state, 0)
    stack, bounds = np.zeros(128, np.int64), np.zeros(128)
    assert cheapest_row(tree, tables, rows, state, alive, stack, bounds) == -1
    assert scan_cheapest_row(tables, rows, state, alive, np.arange(data.n), data.n) == -1
