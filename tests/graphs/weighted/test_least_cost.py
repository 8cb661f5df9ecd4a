"""Assignments, graphs and flows of least cost against SciPy."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog

from anonymip import Budget, Stopped
from anonymip.errors import AnonymipError
from anonymip.graphs.weighted.assignment import assign
from anonymip.graphs.weighted.degree_flow import cheapest_degrees
from anonymip.graphs.weighted.network_simplex import cheapest_flow

KINDS = {
    "real": lambda rng, n: rng.random((n, n)),
    "tied": lambda rng, n: rng.integers(0, 4, (n, n)).astype(np.float64),
    "negative": lambda rng, n: rng.integers(-30, 30, (n, n)) / 7.0,
    "line": lambda rng, n: np.abs(rng.random((n, 1)) - rng.random((1, n))),
}


def drawn_costs(kind: str, n: int, seed: int, forbidden: float = 0.0) -> np.ndarray:
    """Return costs with some pairs forbidden, such that one assignment is allowed."""
    rng = np.random.default_rng(seed)
    costs = KINDS[kind](rng, n)
    barred = rng.random((n, n)) < forbidden
    barred[np.arange(n), rng.permutation(n)] = False
    return np.where(barred, np.inf, costs)


@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.4]),
    st.booleans(),
)
def test_assignment_equals_scipy(
    kind: str, n: int, seed: int, forbidden: float, warm: bool
) -> None:
    """The total is least for costs in either precision, whatever duals it starts from."""
    given_costs = drawn_costs(kind, n, seed, forbidden)
    duals = np.random.default_rng(seed + 1).random(n) * 3 if warm else None
    for costs in (given_costs, given_costs.astype(np.float32)):
        columns, _, stopped = assign(costs, duals=duals)
        assert stopped is None
        assert sorted(columns) == list(range(n))
        exact = costs.astype(np.float64)
        rows, best = linear_sum_assignment(exact)
        assert exact[np.arange(n), columns].sum() == pytest.approx(exact[rows, best].sum())


@pytest.mark.parametrize("kind", KINDS)
def test_large_assignments_equal_scipy(kind: str) -> None:
    """Hundreds of rows, first from nothing, then from the duals of the first answer."""
    costs = drawn_costs(kind, 300, 1)
    rows, best = linear_sum_assignment(costs)
    columns, duals, _ = assign(costs)
    assert costs[np.arange(300), columns].sum() == pytest.approx(costs[rows, best].sum())
    again, _, _ = assign(costs, duals=duals)
    assert costs[np.arange(300), again].sum() == pytest.approx(costs[rows, best].sum())


def test_prices_prove_the_assignment_optimal() -> None:
    """Every row has a column of its least reduced cost."""
    costs = drawn_costs("real", 60, 3)
    columns, duals, _ = assign(costs)
    reduced = costs - duals
    assert np.allclose(reduced[np.arange(60), columns], reduced.min(axis=1), atol=1e-12)


def test_rows_without_an_assignment_are_left_out() -> None:
    """Where two rows allow one column only, one of them gets none."""
    costs = np.array([[0.0, np.inf, np.inf], [1.0, np.inf, np.inf], [2.0, 3.0, 4.0]])
    columns, _, _ = assign(costs)
    assert sorted(columns)[0] == -1
    assert len(set(columns[columns >= 0])) == 2


def test_expired_budgets_return_what_there_is() -> None:
    """No row or edge is wrong, some are missing."""
    costs = drawn_costs("line", 80, 2)
    past = Budget(deadline=time.monotonic() - 1.0)
    columns, _, stopped = assign(costs, past)
    assert stopped is Stopped.TIME
    assert (columns == -1).any()
    flow, stopped = cheapest_degrees(costs, np.full(80, 3), past)
    assert stopped is Stopped.TIME
    assert flow.lacking[0] == 0
    assert not flow.used.any()


@given(st.sampled_from(sorted(KINDS)), st.integers(2, 8), st.integers(0, 10**6), st.booleans())
def test_flow_equals_linear_programme(kind: str, n: int, seed: int, regular: bool) -> None:
    """The edges have the degrees and the least total; degrees that no graph has are found out."""
    rng = np.random.default_rng(seed)
    costs = KINDS[kind](rng, n)
    np.fill_diagonal(costs, np.inf)
    degrees = np.full(n, rng.integers(1, n)) if regular else rng.integers(1, n, n)
    flow, stopped = cheapest_degrees(costs, degrees)
    used, missing = flow.used, int(flow.lacking[0])
    assert stopped is None
    equations = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    finite = np.where(np.isinf(costs), 0.0, costs).ravel()
    bounds = [(0, 0 if i == j else 1) for i in range(n) for j in range(n)]
    answer = linprog(finite, A_eq=equations, b_eq=np.tile(degrees, 2), bounds=bounds)
    assert (missing > 0) == (answer.status == 2)
    if not missing:
        assert (used.sum(axis=0) == degrees).all()
        assert (used.sum(axis=1) == degrees).all()
        assert costs[used].sum() == pytest.approx(answer.fun, abs=1e-7)


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
