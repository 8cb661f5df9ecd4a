"""The network simplex against linear programming, with ties, empty arcs and no flow at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from anonymip.errors import AnonymipError
from anonymip.graphs.weighted.network_simplex import cheapest_flow

Arcs = list[tuple[int, int, int, int]]


def incidence(nodes: int, tail: NDArray[np.int64], head: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (nodes, arcs) what leaves each node."""
    rows = np.zeros((nodes, len(tail)), np.int64)
    np.add.at(rows, (tail, np.arange(len(tail))), 1)
    np.add.at(rows, (head, np.arange(len(tail))), -1)
    return rows


@st.composite
def networks(draw: st.DrawFn) -> tuple[NDArray[np.int64], Arcs]:
    """Return supplies that add up to 0, and arcs with capacities and costs, ties among them."""
    nodes = draw(st.integers(2, 7))
    some = draw(st.lists(st.integers(-4, 4), min_size=nodes - 1, max_size=nodes - 1))
    node = st.integers(0, nodes - 1)
    arcs = st.tuples(node, node, st.integers(0, 6), st.integers(-3, 5))
    return np.array([*some, -sum(some)]), draw(st.lists(arcs, min_size=1, max_size=16))


@settings(max_examples=400)
@given(drawn=networks())
def test_equals_linear_programming(drawn: tuple[NDArray[np.int64], Arcs]) -> None:
    """The same cost, a flow that keeps all rules, and no flow exactly where there is none."""
    supply, arcs = drawn
    tail, head, capacity, cost = np.array(arcs, np.int64).T
    rows = incidence(len(supply), tail, head)
    expected = linprog(
        cost, A_eq=rows, b_eq=supply, bounds=[(0, most) for most in capacity.tolist()]
    )
    flow = cheapest_flow(supply, tail, head, capacity, cost)
    assert (flow is None) == (expected.status == 2)
    if flow is not None:
        assert ((flow >= 0) & (flow <= capacity)).all()
        assert (rows @ flow == supply).all()
        assert cost @ flow == pytest.approx(expected.fun)


def test_a_large_transport_with_ties() -> None:
    """Thirty sources, thirty sinks, few different costs: many degenerate pivots come to an end."""
    rng = np.random.default_rng(5)
    size = 30
    tail = np.repeat(np.arange(size), size)
    head = np.tile(np.arange(size), size) + size
    cost = rng.integers(0, 3, size * size)
    supply = np.concatenate([np.full(size, 4), np.full(size, -4)])
    capacity = np.full(size * size, 2)
    flow = cheapest_flow(supply, tail, head, capacity, cost)
    assert flow is not None
    expected = linprog(
        cost, A_eq=incidence(2 * size, tail, head), b_eq=supply, bounds=(0, 2), method="highs"
    )
    assert cost @ flow == pytest.approx(expected.fun)


def test_costs_beyond_64_bits_are_refused() -> None:
    """An error, not an overflow."""
    one = np.array([1])
    with pytest.raises(AnonymipError, match="too large for a flow"):
        cheapest_flow(np.array([1, -1]), one * 0, one, one, one * 2**60)
