"""Selections from pools: equal to brute force, infeasible pools, targets below the optimum."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.set_partitioning import branch_and_bound
from anonymip.exact.set_partitioning.branch_and_bound import NUMBERS, PoolAnswer, solve_pool
from anonymip.exact.set_partitioning.column_pool import Pool, Relaxed, Start
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions
from anonymip.solvers.linear_programs import Basis


def columns_of(types: int, sizes: tuple[int, ...], repeat: bool = False) -> NDArray[np.int64]:
    """Return (c, t) every column of given sizes, with types repeated or not."""
    choose = combinations_with_replacement if repeat else combinations
    members = [list(s) for size in sizes for s in choose(range(types), size)]
    return np.array([np.bincount(s, minlength=types) for s in members], np.int64)


def cheapest(
    columns: NDArray[np.int64], costs: NDArray[np.float64], left: NDArray[np.int64], count: int
) -> float:
    """Return the least cost of what covers `left` exactly, by trying all; infinite if nothing."""
    if not left.any():
        return 0.0
    if count == 0:
        return np.inf
    # Some column holds the first type that is left.
    root = int(np.flatnonzero(left)[0])
    best = np.inf
    for at in np.flatnonzero((columns <= left).all(axis=1) & (columns[:, root] > 0)).tolist():
        rest = cheapest(columns, costs, left - columns[at], count - 1)
        best = min(best, costs[at] + rest)
    return best


def solve(
    columns: NDArray[np.int64],
    costs: NDArray[np.float64],
    coverage: NDArray[np.int64],
    upper_bound: float,
    seed: int = 0,
    count_limit: int | None = None,
    **options: object,
) -> PoolAnswer:
    """Return the answer, whose claims about itself are checked."""
    answer = solve_pool(
        Pool(csr_array(columns), costs, coverage, count_limit),
        upper_bound=upper_bound,
        options=SolverOptions(seed=seed),
        **options,  # type: ignore[arg-type]
    )
    assert answer.bound <= upper_bound
    if answer.chosen is not None:
        assert (columns[answer.chosen].sum(axis=0) == coverage).all()
        assert answer.value == pytest.approx(costs[answer.chosen].sum())
        assert answer.bound <= answer.value < upper_bound
    return answer


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["rows", "types", "covers"]),
    st.booleans(),
    st.sampled_from([None, 1.0, 2_000.0]),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 3.0]),
)
def test_pools_give_the_optimum_of_brute_force(
    seed: int, kind: str, ties: bool, memory: float | None, mixed: bool, lowered: float
) -> None:
    """Partitions, multisets of types and k-covers, ties, whatever memory there is, by branching.

    With mixed-integer cuts and without, and with costs below zero.
    """
    rng = np.random.default_rng(seed)
    if kind == "rows":
        columns, coverage = columns_of(8, (2, 3)), np.ones(8, np.int64)
    elif kind == "types":
        columns, coverage = columns_of(4, (2, 3), repeat=True), rng.integers(1, 4, 4)
    else:
        columns, coverage = columns_of(6, (3,)), np.full(6, 3)
    columns = columns[(columns <= coverage).all(axis=1)]
    columns = columns[rng.random(len(columns)) < 0.7]
    costs = rng.integers(1, 6, len(columns)) / 8 if ties else rng.random(len(columns)) + 0.1
    costs = costs - lowered
    count = int(coverage.sum()) // 2
    best = cheapest(columns, costs, coverage, count)
    options: dict[str, Any] = {"solver": None, "seed": seed % 7, "memory": memory}
    with pytest.MonkeyPatch.context() as patch:
        # Without any columns for a solver there are mixed-integer cuts, which are narrowed at once
        # and left again where they do not close the pool.
        numbers = replace(NUMBERS, solver_columns=0, narrowed=1.0, worth=0.0) if mixed else NUMBERS
        patch.setattr(branch_and_bound, "NUMBERS", numbers)
        answer = solve(columns, costs, coverage, 50.0, count_limit=count, **options)
    assert answer.complete
    assert answer.by_solver is None
    if best == np.inf:
        assert answer.chosen is None
        assert answer.bound == pytest.approx(50.0, rel=1e-6)
    else:
        assert answer.value == pytest.approx(best)
        assert answer.bound == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_targets_below_zero_are_reached(seed: int) -> None:
    """Columns of negative cost, whose first relaxation is fractional."""
    rng = np.random.default_rng(seed)
    columns, coverage = columns_of(9, (3, 4)), np.ones(9, np.int64)
    columns = columns[rng.random(len(columns)) < 0.6]
    costs = rng.random(len(columns)) - 2.0
    best = cheapest(columns, costs, coverage, 3)
    answer = solve(columns, costs, coverage, best + 0.01, count_limit=3, solver=None)
    assert answer.value == pytest.approx(best)
    nothing = solve(columns, costs, coverage, best, count_limit=3, solver=None)
    assert nothing.chosen is None
    assert nothing.bound == pytest.approx(best)


@pytest.mark.parametrize("solver", ["highs", None])
def test_targets_below_the_optimum_are_bounds(solver: str | None) -> None:
    """A pool that holds nothing cheaper than a target proves the target, with every way to end."""
    rng = np.random.default_rng(1)
    columns, coverage = columns_of(12, (3, 4)), np.ones(12, np.int64)
    costs = rng.random(len(columns)) + 0.1
    found = solve(columns, costs, coverage, 10.0, count_limit=4, solver=solver)
    assert found.value is not None
    target = 0.97 * found.value
    answer = solve(columns, costs, coverage, target, count_limit=4, solver=solver)
    assert answer.chosen is None
    assert answer.complete
    assert answer.bound == pytest.approx(target, rel=1e-6)
    again = solve(columns, costs, coverage, found.value, count_limit=4, solver=solver)
    assert again.chosen is None
    assert again.bound == pytest.approx(found.value, rel=1e-6)


@pytest.mark.thorough("coverage1-None")
@pytest.mark.parametrize("solver", ["highs", None])
@pytest.mark.parametrize("coverage", [[1, 1, 1, 1, 1], [3, 3, 3, 3, 3]])
def test_pools_without_a_selection_say_so(coverage: list[int], solver: str | None) -> None:
    """Pairs of five rows cover no odd number; no pool at all covers nothing."""
    columns = columns_of(5, (2,))
    costs = np.ones(len(columns))
    answer = solve(columns, costs, np.array(coverage), 9.0, solver=solver)
    assert answer.chosen is None
    assert answer.complete
    assert answer.bound == pytest.approx(9.0, rel=1e-6)
    none = solve(columns[:0], costs[:0], np.array(coverage), 9.0, solver=solver)
    assert none.complete
    assert none.chosen is None


def test_solver_and_branching_agree() -> None:
    """Where cuts leave a gap both give one value, and only one of them rests on a report."""
    columns, coverage = columns_of(9, (2, 3, 4)), np.ones(9, np.int64)
    costs = np.random.default_rng(1).random(len(columns)) + 0.5
    by_solver = solve(columns, costs, coverage, 100.0, count_limit=4)
    by_branching = solve(columns, costs, coverage, 100.0, count_limit=4, solver=None)
    assert by_branching.nodes > 0
    assert by_solver.value == pytest.approx(by_branching.value)
    assert by_solver.by_solver is not None
    assert by_branching.by_solver is None
    assert by_branching.complete
    assert by_solver.complete


def test_large_pools_of_covers_are_left_to_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branching on pairs settles no cover: a solver decides more columns, or says what is left.

    Cuts of the root may leave it nothing to decide.
    """
    columns, coverage = columns_of(19, (3,)), np.full(19, 3)
    costs = np.random.default_rng(5).random(len(columns)) + 0.5
    cut = solve(columns, costs, coverage, 30.0)
    assert cut.complete
    assert cut.by_solver is None
    monkeypatch.setattr(branch_and_bound, "NUMBERS", replace(NUMBERS, mixed_rounds=0))
    answer = solve(columns, costs, coverage, 30.0)
    assert answer.columns_left == len(columns) > NUMBERS.solver_columns
    assert answer.nodes == 0
    assert answer.complete
    assert answer.by_solver is not None
    assert answer.value == pytest.approx(cut.value)
    limited = solve(columns, costs, coverage, 30.0, max_nodes=60)
    assert limited.nodes == 0
    assert limited.bound <= answer.value


def test_iterations_of_the_simplex_method_end_a_search() -> None:
    """Fewer iterations prove less, and never too much; as many as a proof takes prove it."""
    columns, coverage = columns_of(14, (4,)), np.full(14, 2)
    costs = 10.0 + 4.0 * np.random.default_rng(0).random(len(columns))
    whole = solve(columns, costs, coverage, 1e3, solver=None)
    assert whole.complete
    assert whole.value is not None
    assert whole.nodes > 3
    bounds = []
    for most in (1, whole.iterations // 2, whole.iterations):
        answer = solve(columns, costs, coverage, 1e3, solver=None, max_iterations=most)
        assert answer.nodes <= whole.nodes
        assert answer.complete == (most == whole.iterations)
        # The node that is begun is ended.
        assert answer.complete or answer.iterations >= most
        bounds.append(answer.bound)
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] == whole.bound <= whole.value


@pytest.mark.thorough("highs")
@pytest.mark.parametrize("solver", ["highs", None])
def test_work_is_counted_by_columns(solver: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of many columns, and columns that the solver is given, take more of what is allowed."""
    columns, coverage = columns_of(14, (4,)), np.full(14, 2)
    costs = 10.0 + 4.0 * np.random.default_rng(0).random(len(columns))
    best = solve(columns, costs, coverage, 1e3).value
    assert best is not None
    given: list[int] = []
    whole = branch_and_bound.solve_integer

    def counted(pool: Pool, active: NDArray[np.int64], *others: Any) -> Any:
        given.append(len(active))
        # Of many columns a presolve takes longer than the search.
        assert others[-1].options.presolve is False
        return whole(pool, active, *others)

    def limited(**numbers: Any) -> tuple[PoolAnswer, int]:
        given.clear()
        # A pool of 384 columns, of which the solver is given what the first branches leave.
        few = replace(NUMBERS, solver_entries_of_covers=0, solver_columns_of_covers=380, **numbers)
        monkeypatch.setattr(branch_and_bound, "NUMBERS", few)
        found = solve(columns, costs, coverage, 1.02 * best, max_nodes=6, solver=solver)
        assert found.bound <= best
        return found, len(given)

    monkeypatch.setattr(branch_and_bound, "solve_integer", counted)
    free, calls = limited(given_freely=10**9, light=10**9, columns_a_node=100)
    assert free.work == free.nodes
    counting, fewer = limited(given_freely=0, given_a_node=64, light=100, columns_a_node=100)
    assert counting.work >= 6
    assert not counting.complete
    if solver is None:
        assert counting.nodes < free.nodes
    else:
        assert fewer == 1 < calls


def node_limits(monkeypatch: pytest.MonkeyPatch, iterations: int | None = None) -> list[object]:
    """Return a list to which each program adds the nodes that its solver may take.

    `iterations`: that the solver says it took; None for its own.
    """
    allowed: list[object] = []
    whole = branch_and_bound.solve_integer

    def seen(*given: Any) -> Any:
        allowed.append(given[-1].options.node_limit)
        result, chosen = whole(*given)
        if iterations is not None:
            assert result.iterations > 0
            result = replace(result, iterations=iterations)
        return result, chosen

    monkeypatch.setattr(branch_and_bound, "solve_integer", seen)
    return allowed


def double_covers() -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return sets of four of 14 types, of costs that differ little, to cover each type twice."""
    columns = columns_of(14, (4,))
    costs = 10.0 + 4.0 * np.random.default_rng(0).random(len(columns))
    return columns, costs, np.full(14, 2)


def test_work_is_counted_by_what_the_solver_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program given to the solver takes as much as its iterations; of many columns, few nodes."""
    columns, costs, coverage = double_covers()
    allowed = node_limits(monkeypatch, iterations=500)
    for long_nodes, nodes in ((10**6, 100), (len(columns), 50), (len(columns) // 4, 3)):
        numbers = replace(
            NUMBERS, given_freely=0, iterations_a_node=50, long_nodes=long_nodes, given_a_node=10**9
        )
        monkeypatch.setattr(branch_and_bound, "NUMBERS", numbers)
        answer = solve(columns, costs, coverage, 1e3, max_nodes=100)
        assert allowed.pop(0) == nodes
        assert answer.work >= 10
        allowed.clear()


def test_nodes_of_another_solver_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where work is limited, so is that of a program of many columns, by its own option too."""
    allowed = node_limits(monkeypatch)
    solve(*double_covers(), 1e3, max_nodes=100, solver="cbc")
    solve(*double_covers(), 1e3, solver="cbc")
    assert allowed == [100, None]


@pytest.mark.thorough
def test_a_bound_known_in_the_middle_of_a_search_closes_nodes() -> None:
    """A search that learns the optimum from elsewhere proves it in fewer nodes, and asks once."""
    columns, coverage = columns_of(10, (3, 4)), np.ones(10, np.int64)
    costs = 10.0 + 4.0 * np.random.default_rng(0).random(len(columns))
    alone = solve(columns, costs, coverage, 1e3, solver=None)
    assert alone.complete
    assert alone.nodes > 2
    asked: list[float] = []

    def known() -> float:
        asked.append(1.0)
        assert alone.value is not None
        return alone.value

    informed = solve(columns, costs, coverage, 1e3, solver=None, known_after=(1, known))
    assert asked == [1.0]
    assert informed.complete
    assert informed.chosen is None
    assert informed.nodes < alone.nodes
    assert informed.bound == pytest.approx(alone.value)


def test_ended_time_leaves_a_valid_bound() -> None:
    """Without time nothing is claimed beyond 0."""
    columns, coverage = columns_of(9, (3,)), np.ones(9, np.int64)
    budget = Budget()
    budget.interrupt()
    answer = solve(columns, np.ones(len(columns)), coverage, 10.0, budget=budget)
    assert not answer.complete or answer.value == pytest.approx(3.0)
    assert answer.bound <= 3.0


def test_the_same_seed_gives_the_same_answer() -> None:
    """Twice the same columns, bound and cuts."""
    rng = np.random.default_rng(8)
    columns, coverage = columns_of(12, (3, 4)), np.ones(12, np.int64)
    costs = rng.random(len(columns)) + 0.5
    first, second = (
        solve(columns, costs, coverage, 9.0, count_limit=4, seed=3, solver=None) for _ in range(2)
    )
    assert first.chosen is not None
    assert second.chosen is not None
    assert (first.chosen == second.chosen).all()
    assert (first.bound, first.cuts) == (second.bound, second.cuts)


@pytest.mark.thorough
def test_a_search_that_may_hold_little_proves_as_much() -> None:
    """It goes on depth first without cuts, and says so; cut short, its bound holds."""
    rng = np.random.default_rng(4)
    columns = columns_of(20, (4,))
    columns = columns[rng.random(len(columns)) < 0.1]
    costs, coverage = rng.integers(1, 30, len(columns)) / 7 + 1, np.ones(20, np.int64)
    full = solve(columns, costs, coverage, 1e3, solver=None)
    assert full.complete
    assert full.nodes > 3
    assert not full.was_full
    short = solve(columns, costs, coverage, 1e3, solver=None, memory=1.0)
    assert short.was_full
    assert short.complete
    assert short.value == full.value
    assert short.bound == full.bound
    ended = solve(
        columns, costs, coverage, 1e3, solver=None, memory=1.0, max_nodes=short.nodes // 2
    )
    assert not ended.complete
    assert full.value is not None
    assert ended.bound <= full.value


def test_nodes_that_wait_hold_little_and_lose_nothing() -> None:
    """A bit a column, whatever the relaxation that they come from holds."""
    active = np.array([0, 3, 8, 4000])
    basis = Basis(np.ones(3, np.bool_), np.zeros(2, np.bool_))
    start = Start(np.array([1, 3]), np.array([7]), basis)
    relaxed = Relaxed(0.0, np.zeros(4), active, np.zeros(4), False, np.zeros(100_000))
    node = branch_and_bound._Node(active, frozenset({7}), relaxed, 0.5, start)
    waiting = branch_and_bound._OpenNode.of(node, 5000)
    assert waiting.columns.tolist() == active.tolist()
    assert waiting.start.columns.tolist() == [1, 3]
    assert waiting.start.rows.tolist() == [7]
    assert waiting.bytes < 5000 // 8 + 2000


@pytest.mark.parametrize("seed", [3, 250])
def test_cuts_that_are_left_again_lose_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where cuts dropped columns but too few, the search goes on, with numbers that still hold."""
    rng = np.random.default_rng(seed)
    coverage = rng.integers(1, 6, 6)
    columns = columns_of(6, (2, 3, 4), repeat=True)
    columns = columns[(columns <= coverage).all(axis=1)]
    points = np.round(rng.random((6, 3)) * 3) / 3
    costs = np.array([np.ptp(points[one > 0], axis=0).sum() * one.sum() for one in columns]) + 0.05
    plain = solve(columns, costs, coverage, 100.0, solver=None)
    assert plain.value is not None
    numbers = replace(NUMBERS, solver_columns=0, narrowed=1.0, worth=0.0)
    monkeypatch.setattr(branch_and_bound, "NUMBERS", numbers)
    for upper_bound in (100.0, 1.1 * plain.value):
        answer = solve(columns, costs, coverage, upper_bound, solver=None, seed=0)
        assert answer.complete
        assert answer.value == pytest.approx(plain.value)
