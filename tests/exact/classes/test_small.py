"""Small problems are solved exactly, and nothing is called proven that is not."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from anonymip import (
    SSE,
    Bottleneck,
    Budget,
    Classes,
    Diversity,
    Freeform,
    InputError,
    NoSolution,
    Problem,
    Stopped,
    WeightedLoss,
    census,
    class_objective,
    solve,
)
from anonymip.exact import priced_sets
from anonymip.exact.classes.best_classes import (
    CAPPED,
    INFEASIBLE,
    PROVEN,
    compiles,
    merge_types,
    nearest_duals,
    small_rules,
    solve_relaxation,
    solve_rows,
)
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.classes.set_search import SmallRules, SmallWork, new_small_work, rank_types
from anonymip.exact.classes.small import solve_small
from tests import profiles
from tests.brute_force import Column
from tests.by_hand import table_of, with_illness
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.random_problems import Case, cases, groups_of, larger_microdata, microdata, ruled_cases

MANY = 10_000_000


class Kernel(NamedTuple):
    """A problem as the kernel is called with it."""

    problem: Problem
    rules: SmallRules
    work: SmallWork

    def solve(self, chosen: NDArray[np.int64], max_nodes: int = MANY) -> int:
        """Solve some rows; the answer is in the workspace."""
        size = len(chosen)
        return int(solve_rows(self.rules, self.work, chosen, size, max_nodes))


def kernel_of(problem: Problem, most: int | None = None) -> Kernel:
    """Return what the kernel needs for sub-problems of up to `most` rows."""
    rules = small_rules(problem, np.arange(problem.n))
    work = new_small_work(rules, problem.n if most is None else most)
    return Kernel(problem, rules, work)


def assert_solves(case: Case) -> None:
    """Assert that the optimum of brute force is found and proven."""
    result = solve_small(case.problem())
    best = case.optimum()
    assert result.proven
    assert result.reason is None
    assert result.bound == result.objective
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    groups = groups_of(Classes(result.labels))
    assert case.release_loss(groups) == pytest.approx(best, rel=1e-9, abs=1e-12)


@settings(max_examples=150)
@given(cases(largest=9))
def test_equals_brute_force(case: Case) -> None:
    """Any loss with tables, hierarchies and weights, with and without suppression."""
    assert_solves(case)


@settings(max_examples=100)
@given(ruled_cases())
def test_equals_brute_force_under_rules(case: Case) -> None:
    """Diversity, limits and the largest loss of a record."""
    assert_solves(case)


@settings(max_examples=30)
@given(cases(largest=6, losses=("gcp",)), st.sampled_from([PRODUCT, SWINGING, FALLING]))
def test_equals_brute_force_beyond_monotone_tables(case: Case, loss: object) -> None:
    """Losses without tables, and losses that fall when a class grows."""
    assert_solves(replace(case, loss=loss, suppression=False))  # type: ignore[arg-type]


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_squared_errors_equal_set_partitioning(seed: int, k: int) -> None:
    """Losses of the members tier: what a set costs depends on its members."""
    rng = np.random.default_rng(seed)
    columns = [Column(tuple(rng.integers(0, most, 9).tolist())) for most in (4, 30)]
    problem = Problem(microdata(columns), k, objective=SSE())
    result = solve_small(problem)
    solution = equivalence_mip(problem, formulation="set-partition")
    assert result.proven
    assert result.objective == pytest.approx(solution.objective, rel=1e-6, abs=1e-9)


@settings(max_examples=100)
@given(st.one_of(cases(largest=9), ruled_cases()), st.integers(1, 400))
def test_a_cap_never_proves_too_much(case: Case, max_nodes: int) -> None:
    """Whatever the cap, the optimum lies between bound and objective."""
    best = case.optimum()
    try:
        result = solve_small(case.problem(), max_nodes=max_nodes)
    except NoSolution:
        assert case.rules is not None
        return
    assert result.objective >= best - case.slack(best)
    if result.bound is not None:
        assert result.bound <= best + case.slack(best)
    if result.proven:
        assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert (result.reason is None) == result.proven


def random_window(rng: np.random.Generator) -> Problem:
    """Return 9 to 20 rows: ties, repeated rows, categories; one in four with a diversity."""
    k = int(rng.integers(2, 6))
    largest = {2: 20, 3: 16, 4: 12, 5: 10}[k]
    n = int(rng.integers(9, largest + 1))
    data = larger_microdata(int(rng.integers(2**31)), 4 * n)
    order = np.lexsort(data.codes.T[::-1])
    at = int(rng.integers(0, 3 * n))
    data = data.take(np.sort(order[at : at + n]))
    objective = WeightedLoss() if rng.random() < 0.5 else None
    diversity = None
    if rng.random() < 0.25 and n <= 10:
        data = with_illness(data, rng.permutation(np.arange(n) % 3))
        diversity = Diversity(l=float(rng.choice([1.0, 1.5, 2.0])), distinct=2)
    problem = Problem(data, k, diversity=diversity)
    return problem if objective is None else problem.replace(objective=objective)


@pytest.mark.parametrize("part", [0, *profiles.thorough(*range(1, 10))])
def test_windows_equal_set_partitioning(part: int) -> None:
    """Thirty random windows of three hundred, against the model that HiGHS solves."""
    rng = np.random.default_rng(part)
    for _ in range(profiles.tried(30)):
        problem = random_window(rng)
        result = solve_small(problem)
        assert result.proven
        # The start only spares the solver classes that no better release can hold.
        start = Classes(result.labels)
        solution = equivalence_mip(problem, formulation="set-partition", start=start)
        # What the solver reports may be too coarse for a proof, but it must have come to its end.
        assert solution.status.stopped in (Stopped.OPTIMAL, Stopped.GAP)
        assert result.objective == pytest.approx(solution.objective, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("k", [4, 5])
@pytest.mark.parametrize("seed", [0, *profiles.thorough(1, 2)])
def test_long_windows_equal_set_partitioning(seed: int, k: int) -> None:
    """As many rows as the chain solves at once, from all different to all alike."""
    for n in (15, 18, 20):
        rng = np.random.default_rng(seed)
        data = larger_microdata(int(rng.integers(2**31)), 4 * n)
        order, at = np.lexsort(data.codes.T[::-1]), int(rng.integers(0, 3 * n))
        part = data.take(np.sort(order[at : at + n]))
        problem = Problem(part, k, objective=WeightedLoss())
        result = solve_small(problem)
        assert result.proven
        start = Classes(result.labels)
        solution = equivalence_mip(problem, formulation="set-partition", start=start)
        assert result.objective == pytest.approx(solution.objective, rel=1e-6, abs=1e-9)


@pytest.mark.thorough("0")
@pytest.mark.parametrize("seed", range(4))
def test_windows_equal_big_m(seed: int) -> None:
    """The paper's model knows nothing of sets."""
    problem = Problem(census(9, 3, seed=seed), 3)
    result = solve_small(problem)
    solution = equivalence_mip(problem, formulation="bigm")
    assert solution.is_optimal
    assert result.proven
    assert result.objective == pytest.approx(solution.objective, rel=1e-6)


@pytest.mark.parametrize("worst", [False, True])
def test_one_workspace_serves_all_windows(worst: bool) -> None:
    """Earlier calls, larger and smaller ones, leave nothing behind; rows come in any order."""
    rng = np.random.default_rng(5)
    problem = Problem(larger_microdata(3, 200), 3)
    if worst:
        problem = problem.replace(objective=Bottleneck(WeightedLoss()))
    assert compiles(problem)
    kernel = kernel_of(problem, most=15)
    for _ in range(20 if profiles.NAME == "ci" else 60):
        chosen = rng.choice(200, int(rng.integers(3, 16)), replace=False)
        assert kernel.solve(chosen) == PROVEN
        labels = kernel.work.labels[: len(chosen)]
        first = [labels.tolist().index(label) for label in range(labels.max() + 1)]
        assert all(one < other for one, other in pairwise(first))
        part = problem.replace(microdata=problem.microdata.take(chosen))
        alone = solve_small(part)
        assert kernel.work.result[0] == pytest.approx(alone.objective, rel=1e-9, abs=1e-12)
        assert kernel.work.result[1] == kernel.work.result[0]
        again = kernel_of(problem, most=15)
        again.solve(chosen)
        assert (again.work.labels[: len(chosen)] == labels).all()


def test_too_few_rows_are_infeasible() -> None:
    """Fewer than k rows, and rows that lack the diversity as a whole."""
    data = with_illness(larger_microdata(8, 12), ["x"] * 6 + ["y"] * 6)
    kernel = kernel_of(Problem(data, 3, diversity=Diversity(distinct=2)))
    assert kernel.solve(np.array([0, 7])) == INFEASIBLE
    assert kernel.solve(np.arange(6)) == INFEASIBLE
    assert kernel.solve(np.array([0, 1, 7])) == PROVEN


def test_more_rows_than_fit_in_a_word_are_answered() -> None:
    """Beyond 62 different rows there are classes and a bound, and no proof is claimed."""
    problem = Problem(census(80, 6, seed=2), 3)
    kernel = kernel_of(problem)
    assert kernel.solve(np.arange(80)) == CAPPED
    assert 0 < kernel.work.result[1] < kernel.work.result[0]
    result = solve_small(problem, max_nodes=1000)
    assert not result.proven
    assert result.reason == "max_nodes"
    assert result.bound is not None
    assert result.bound <= result.objective


def test_losses_far_below_the_costliest_set_are_told_apart() -> None:
    """Duals that come down from large ones are rounded: what that hides is searched through."""
    column = Column(tuple(1e6 + 1e-9 * above for above in (5, 5, 6, 7, 3, 3, 2)), domain=(0.0, 2e6))
    apart = Column((1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0), domain=(0.0, 2.0))
    data = microdata([column, apart], [("2", "2", "asthma", "10", "10", "2", "10")])
    problem = Problem(data, 2, diversity=Diversity(l=1.5))
    result = solve_small(problem)
    assert result.proven
    assert groups_of(Classes(result.labels)) == ((0, 2), (1, 3), (4, 5, 6))


@pytest.mark.thorough("2")
@pytest.mark.parametrize("k", [2, 3, 4])
def test_duals_of_sets_of_k_rows_hold_for_all_sets(k: int) -> None:
    """They are worth the linear relaxation over all classes, and no class undercuts them."""
    rng = np.random.default_rng(k)
    for _ in range(6):
        n = int(rng.integers(2 * k, 10))
        data = larger_microdata(int(rng.integers(2**31)), 3 * n)
        problem = Problem(data.take(rng.choice(3 * n, n, replace=False)), k)
        kernel, every = kernel_of(problem), np.arange(n)
        work = kernel.work
        types = merge_types(kernel.rules, work, every, n)
        nearest_duals(kernel.rules, work, every, types)
        rank_types(kernel.rules, work, every, types)
        bound = solve_relaxation(kernel.rules, work, types, np.inf)
        duals = np.empty(n)
        duals[work.order] = np.repeat(work.duals[:types], np.diff(work.begin[: types + 1]))
        assert bound == pytest.approx(duals.sum(), rel=1e-9, abs=1e-12)
        sets = [np.array([*combinations(range(n), size)]) for size in range(k, 2 * k)]
        losses = np.concatenate([*map(problem.compiled.class_losses, sets)])
        holds = np.array([np.isin(every, one) for some in sets for one in some], float)
        assert (holds @ duals <= losses + 1e-12).all()
        relaxed = linprog(losses, A_eq=holds.T, b_eq=np.ones(n))
        assert bound == pytest.approx(relaxed.fun, rel=1e-7, abs=1e-9)


def test_room_for_larger_sub_problems_changes_nothing() -> None:
    """Where not all sets of k of the most rows would fit, those of fewer rows still do."""
    problem, every = Problem(census(18, 6, seed=3), 5), np.arange(18)
    own, wide = kernel_of(problem), kernel_of(problem, most=64)
    assert own.solve(every) == wide.solve(every) == PROVEN
    assert wide.work.row_sets.held[0] > 0
    assert wide.work.nodes[0] == own.work.nodes[0]
    assert wide.work.result[0] == own.work.result[0]


@pytest.mark.parametrize("seed", range(3))
def test_thirty_rows_are_proven(seed: int) -> None:
    """Two independent sets of duals lead to one optimum: here, and in the model."""
    problem = Problem(census(30, 3, seed=seed), 3)
    result = solve_small(problem)
    assert result.proven
    start = Classes(result.labels)
    solution = equivalence_mip(problem, formulation="set-partition", start=start)
    assert solution.objective == pytest.approx(result.objective, rel=1e-6)


def test_a_spent_budget_keeps_the_first_release() -> None:
    """There are classes even without time, and what kept them from a proof is reported."""
    budget = Budget.of(60)
    budget.interrupt()
    result = solve_small(Problem(census(40, 8, seed=1), 4), budget=budget, max_nodes=10)
    assert not result.proven
    assert result.reason == "interrupted"
    assert result.bound is not None
    assert math.isfinite(result.bound)


def test_refuses_what_it_does_not_solve() -> None:
    """Covers are no partitions, nothing keeps t, and no search looks at less than one node."""
    problem = Problem(census(9, 3), 3)
    data = table_of({"a": [0.0, 0.0, 1.0, 1.0], "s": ["x", "x", "y", "y"]}, "s")
    with pytest.raises(InputError, match=r"cannot keep the diversity t = 0\.1"):
        solve_small(Problem(data, 2, diversity=Diversity(t=0.1)))
    with pytest.raises(InputError, match="freeform"):
        solve_small(problem.replace(recoding=Freeform()))
    with pytest.raises(InputError, match="max_nodes"):
        solve_small(problem, max_nodes=0)


@class_objective
def _below_zero(members: Any) -> Any:
    """Lose less than nothing, neither monotone nor additive."""
    first, second = members.value["a0"], members.value["a1"]
    width = second.max(axis=1) - second.min(axis=1)
    return np.abs(first.sum(axis=1) * 7 % 13) + width - 14 * first.shape[1]


def test_losses_below_zero_without_duals() -> None:
    """Losses of sets are no bound of their covers where they are negative.

    Without time for a linear program the sets have no duals, and with huge losses no solver has.
    """
    rng = np.random.default_rng(3)
    problem = Problem(
        table_of({f"a{j}": rng.integers(0, 40, 11) for j in range(2)}), 2, objective=_below_zero
    )
    best = solve_small(problem)
    assert best.proven
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(priced_sets, "solve_linear_program", lambda *_, **__: None)
        again = solve_small(problem)
    assert again.proven
    assert again.objective == pytest.approx(best.objective)


def test_what_is_not_looked_for_is_not_proven() -> None:
    """Large losses of both signs cancel: classes that are better by less than their rounding."""
    weights = np.array([1, -1, 2, -2, 1.5, -1.5]) * 1e6
    extra = np.random.default_rng(1).integers(0, 4, 64)

    @class_objective
    def cancelling(members: Any) -> Any:
        ids = members.value["a"].astype(int)
        size, bits = ids.shape[1], (1 << ids).sum(axis=1)
        return weights[ids].sum(axis=1) + size + 0.25e-7 * extra[bits] * size + 5.0 * (size > 2)

    data = table_of({"a": np.arange(6)})
    found = solve_small(Problem(data, 2, objective=cancelling))
    assert found.bound is not None
    assert found.bound <= 6.0 < found.objective
    assert (found.proven, found.reason) == (False, "rounding")


def test_losses_below_the_rounding_of_others_are_not_proven() -> None:
    """A column lost 1 where two rows differ, the other one 1e-17: sums cannot tell these apart."""
    first = (0.7, 0.7, 0.30000000000000004, 0.3, 0.1, 0.30000000000000004)
    second = (1e-09, 1e-09, 2.0, 1e-09, 2.0, 1e-09)
    problem = Problem(microdata([Column(first, domain=(0.0, 9e15)), Column(second)]), 2)
    found = solve_small(problem)
    assert (found.proven, found.bound, found.reason) == (False, None, "rounding")
    solved = solve(problem, "equivalence-mip", options={"warm_start": "none"})
    best = solve(problem)
    assert solved.bound is None or solved.bound.value <= best.objective
    assert not solved.is_optimal or solved.objective == best.objective
