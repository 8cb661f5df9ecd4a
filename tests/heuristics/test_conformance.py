"""What every heuristic owes: a valid release, a loss that is true, an end in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from anonymip import (
    Budget,
    Classes,
    EquivalenceClasses,
    InputError,
    Problem,
    Progress,
    Solution,
    Stopped,
    census,
    nearest_neighbour_bound,
)
from anonymip.exact.split_carry.split_carry import split_carry
from anonymip.heuristics.approximation.forest import forest
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.hilbert import hilbert
from anonymip.heuristics.classes.hp import hp
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.classes.k_member import k_member
from anonymip.heuristics.classes.mondrian import mondrian
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.methods import METHODS
from anonymip.orders.orders import ORDERS
from tests.brute_force import Column
from tests.random_problems import FALLING, Case, cases, groups_of, tables

ALL_ORDERS = [*ORDERS, *(f"{name}+2opt" for name in ORDERS)]
RUNS: dict[str, Callable[..., Solution]] = {
    "initial": initial,
    "initial snake+2opt": partial(initial, order="snake+2opt"),
    **{f"ordered-cut {order}": partial(ordered_cut, order=order) for order in ALL_ORDERS},
    "greedy-search tree": partial(greedy_search, search="tree"),
    "greedy-search scan": partial(greedy_search, search="scan"),
    "greedy-search hilbert": partial(greedy_search, order="hilbert"),
    "k-member tree": partial(k_member, search="tree"),
    "k-member scan": partial(k_member, search="scan"),
    "mondrian strict": mondrian,
    "mondrian relaxed": partial(mondrian, strict=False),
    "hp": hp,
    "forest": forest,
    "hilbert": hilbert,
    "hilbert HS": partial(hilbert, cells="HS"),
    "split-carry": split_carry,
    "local-search": local_search,
}
#: Those that need no monotone objective.
FREE = {label: run for label, run in RUNS.items() if not label.endswith("tree")}
#: Those whose answer carries a bound: always, or where one link holds the whole table.
PROVING = ("forest", "split-carry")
AMPLE = settings(max_examples=60)


@pytest.fixture(scope="module")
def people() -> Problem:
    """Return a table that every heuristic needs several steps for."""
    return Problem(census(120, 5, seed=3), 4)


def test_every_heuristic_of_the_registry_is_covered() -> None:
    """A heuristic that is registered but not run here fails the suite.

    Those that need a diversity, numbers or a certain k have tests of their own, as have covers.
    """
    registered = {
        spec.name
        for spec in METHODS.values()
        if spec.role == "heuristic"
        and spec.recoding == "classes"
        and not {"diversity", "numeric", "k=2", "k=3"} & set(spec.needs)
    }
    assert {label.partition(" ")[0] for label in RUNS} == registered


@AMPLE
@given(cases())
def test_feasible_and_never_below_the_optimum_nor_the_bound(case: Case) -> None:
    """Each release is allowed, its loss is true, and neither optimum nor bound is above it."""
    problem, best = case.problem(), case.optimum()
    bound = nearest_neighbour_bound(problem)
    assert bound is not None
    for label, run in RUNS.items():
        note(label)
        solution = run(problem)
        groups = groups_of(solution.assignment)
        assert all(len(group) >= case.k for group in groups)
        placed = sum(map(len, groups))
        assert placed == case.n or (case.suppression and placed < case.n)
        loss = case.release_loss(groups)
        assert solution.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)
        assert solution.objective >= best - case.slack(best)
        assert solution.objective >= bound.value - 1e-12
        if label in PROVING and solution.bound is not None:
            assert solution.bound.value <= best + case.slack(best)
            assert not solution.is_optimal or loss <= best + case.slack(best)
        else:
            assert solution.bound is None
            assert solution.status.stopped is Stopped.HEURISTIC


@settings(max_examples=20)
@given(tables(), st.sampled_from(sorted(FREE)))
def test_objectives_that_are_not_monotone(columns: tuple[Column, ...], label: str) -> None:
    """Heuristics accept an objective that rewards generalization, and stay above the optimum."""
    case = Case(columns, 2, FALLING)
    solution = FREE[label](case.problem())
    loss = case.release_loss(groups_of(solution.assignment))
    assert solution.objective == pytest.approx(loss, abs=1e-9)
    assert solution.objective >= case.optimum() - 1e-9


@pytest.mark.parametrize("suppression", [False, True])
@pytest.mark.parametrize("label", RUNS)
def test_expired_budget_gives_a_valid_solution(
    people: Problem, label: str, suppression: bool
) -> None:
    """A deadline in the past ends the work at once, with a release and the status time limit."""
    problem = people.replace(recoding=EquivalenceClasses(suppression=suppression))
    solution = RUNS[label](problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert solution.status.stopped is Stopped.TIME
    assert solution.status.solution
    assert solution.assignment.n == problem.n


@pytest.mark.parametrize("label", RUNS)
def test_interrupt_gives_a_valid_solution(people: Problem, label: str) -> None:
    """A flagged interrupt ends the work with a release and the status interrupted."""
    budget = Budget()
    budget.interrupt()
    solution = RUNS[label](people, budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT
    assert solution.assignment.sizes.min() >= people.k


@pytest.mark.parametrize("label", ["greedy-search tree", "greedy-search scan", "k-member tree"])
def test_interrupt_halfway_keeps_the_classes_made(people: Problem, label: str) -> None:
    """Classes grown before the interrupt are those of an undisturbed run."""
    budget = Budget()

    def listen(progress: Progress) -> None:
        if progress.phase == "growing classes" and progress.done:
            budget.interrupt()

    budget.progress = listen
    cut = RUNS[label](people, budget=budget)
    full = RUNS[label](people)
    assert cut.status.stopped is Stopped.INTERRUPT
    assert cut.assignment.sizes.min() >= people.k
    common = set(groups_of(cut.assignment)) & set(groups_of(full.assignment))
    assert 0 < len(common) < full.assignment.count


@pytest.mark.parametrize("label", RUNS)
def test_same_seed_same_result(people: Problem, label: str) -> None:
    """Two runs with one seed give one partition."""
    first, second = (RUNS[label](people, seed=11) for _ in range(2))
    assert first.assignment.labels.tolist() == second.assignment.labels.tolist()
    assert first.objective == second.objective


@pytest.mark.parametrize("label", RUNS)
def test_table_of_k_records_is_one_class(label: str) -> None:
    """With n = k there is one release, and all find it."""
    problem = Problem(census(6, 3, seed=0), 6)
    assert groups_of(RUNS[label](problem).assignment) == (tuple(range(6)),)


@pytest.mark.parametrize("label", RUNS)
def test_method_and_options_are_told(people: Problem, label: str) -> None:
    """The solution names its method and the options it ran with."""
    solution = RUNS[label](people)
    assert solution.method == label.partition(" ")[0]
    given_options = getattr(RUNS[label], "keywords", {})
    assert given_options.items() <= dict(solution.options).items()


@pytest.mark.parametrize("heuristic", [initial, ordered_cut, greedy_search])
@pytest.mark.parametrize("order", ["shuffled", "variance+3opt", "variance+", "2opt"])
def test_unknown_orders_are_refused(
    people: Problem, heuristic: Callable[..., Solution], order: str
) -> None:
    """An unknown order is an input error that lists the orders."""
    with pytest.raises(InputError, match="variance, cardinality, snake, hilbert, neighbour"):
        heuristic(people, order=order)


@pytest.mark.parametrize("heuristic", [greedy_search, k_member])
def test_unknown_searches_are_refused(people: Problem, heuristic: Callable[..., Solution]) -> None:
    """An unknown search is an input error that lists the searches."""
    with pytest.raises(InputError, match="auto, tree, scan"):
        heuristic(people, search="hash")


@pytest.mark.parametrize("label", FREE)
def test_classes_that_cost_more_than_stars_are_suppressed(label: str) -> None:
    """Where records may be suppressed, no class costs more than a row of stars."""
    column = Column((1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0), domain=(0.0, 100.0))
    case = Case((column,), 2, FALLING, suppression=True)
    problem = case.problem()
    solution = FREE[label](problem)
    assert isinstance(solution.assignment, Classes)
    assert solution.assignment.suppressed == problem.n
    assert solution.objective == 0.0
