"""What every heuristic owes: a valid release, a loss that is true, an end in time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from anonymip import (
    Budget,
    Cap,
    Classes,
    Diversity,
    EquivalenceClasses,
    InputError,
    Microdata,
    NoSolution,
    Problem,
    Progress,
    Solution,
    Stopped,
    census,
    nearest_neighbour_bound,
)
from anonymip.bounds.combinatorial import lower_bound_of
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
from tests import profiles
from tests.brute_force import Column, Rules
from tests.by_hand import table_of
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.member_losses import MemberCase, member_cases
from tests.random_problems import LOSSES, Case, cases, groups_of, ruled_cases, tables, unit_cases

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
#: HS is a yardstick for tables without rules, and refuses them.
RULED = {label: run for label, run in FREE.items() if label != "hilbert HS"}
#: Each on a table of people, and where it keeps rules on one of patients.
EVERYWHERE = pytest.mark.parametrize(
    ("table", "label"),
    [*(("people", label) for label in RUNS), *(("patients", label) for label in RULED)],
)
#: Those whose options are tried by tests of their own.
OPTIONS_ELSEWHERE = ("split-carry", "local-search")
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
    tried: dict[str, set[str]] = {}
    for label, run in RUNS.items():
        tried.setdefault(label.partition(" ")[0], set()).update(getattr(run, "keywords", {}))
    assert tried.keys() == registered, "RUNS has other heuristics than the registry"
    for name in registered.difference(OPTIONS_ELSEWHERE):
        options = {option.name for option in METHODS[name].options}
        assert tried[name] == options, f"RUNS needs a variant of {name} for every option"


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
@EVERYWHERE
def test_expired_budget_gives_a_valid_solution(
    table: str, label: str, suppression: bool, request: pytest.FixtureRequest
) -> None:
    """A deadline in the past ends the search; the repair still makes a release that is allowed."""
    problem = request.getfixturevalue(table)
    problem = problem.replace(recoding=EquivalenceClasses(suppression=suppression))
    solution = RUNS[label](problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert solution.status.stopped is Stopped.TIME, "hand stopped=budget.stop_reason() to finish"
    assert solution.status.solution
    problem.recoding.check(problem, solution.assignment)


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


@pytest.mark.thorough("patients-split-carry")
@EVERYWHERE
def test_same_seed_same_result(table: str, label: str, request: pytest.FixtureRequest) -> None:
    """Two runs with one seed give one partition, also under rules."""
    problem = request.getfixturevalue(table)
    first, second = (RUNS[label](problem, seed=11) for _ in range(2))
    assert first.assignment.labels.tolist() == second.assignment.labels.tolist()
    assert first.objective == second.objective


@pytest.mark.parametrize("label", RUNS)
def test_a_seed_that_matters_is_told(people: Problem, label: str) -> None:
    """What differs by its seed names the seed, which `finish` does not know unless it is told."""
    runs = [RUNS[label](people, seed=seed) for seed in range(3)]
    if len({tuple(run.assignment.labels.tolist()) for run in runs}) > 1:
        assert [run.seed for run in runs] == [0, 1, 2], "hand seed=seed to finish"


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


def found_by_all(problem: Problem, *, may_fail: bool) -> Iterator[Solution]:
    """Yield what every heuristic finds; some may find none where that may be."""
    for label, run in RULED.items():
        note(label)
        try:
            solution = run(problem)
        except NoSolution:
            assert may_fail
        else:
            yield solution


def check_all(case: Case) -> None:
    """Check every heuristic against the definitions and the optimum; the case has a release."""
    problem, best = case.problem(), case.optimum()
    rules = Rules() if case.rules is None else case.rules
    bound = lower_bound_of(problem)
    # What fails must at least have a limit to fail at.
    limited = bool(rules.caps or rules.apart) and not case.suppression
    for solution in found_by_all(problem, may_fail=limited):
        groups = groups_of(solution.assignment)
        assert all(len(g) >= case.k and rules.met_by(case.columns, g) for g in groups)
        placed = sum(map(len, groups))
        assert placed == case.n or case.suppression
        assert solution.objective == pytest.approx(case.release_loss(groups), rel=1e-8, abs=1e-8)
        assert solution.objective >= best - case.slack(best)
        if bound is not None:
            assert solution.objective >= bound.value - case.slack(bound.value)


@settings(max_examples=60)
@given(ruled_cases())
def test_rules_and_the_largest_loss(case: Case) -> None:
    """Classes keep diversity and limits, and no loss is below the optimum or the bound."""
    check_all(case)


@settings(max_examples=40)
@given(unit_cases(diverse=True))
def test_units(case: Case) -> None:
    """Every class holds k different units, under limits and beside a diversity as well."""
    check_all(case)


@settings(max_examples=50)
@given(cases(losses=["gcp"]), st.sampled_from([PRODUCT, SWINGING]), st.booleans())
def test_losses_without_tables(case: Case, loss: Any, worst: bool) -> None:
    """Losses that combine attributes, monotone or not, as sums and as maxima."""
    check_all(replace(case, loss=loss, worst=worst))


@settings(max_examples=40)
@given(ruled_cases(), st.sampled_from([PRODUCT, SWINGING]))
def test_losses_without_tables_under_rules(case: Case, loss: Any) -> None:
    """Both at once."""
    check_all(replace(case, loss=loss))


@settings(max_examples=30)
@given(member_cases(rules=[Rules(), Rules(caps=((0, 6.0),))]))
def test_losses_of_members(case: MemberCase) -> None:
    """Squared errors and a function of the members, with and without a cap."""
    problem, best = case.problem(), case.optimum()
    bound = lower_bound_of(problem)
    for solution in found_by_all(problem, may_fail=bool(case.rules.caps)):
        groups = groups_of(solution.assignment)
        assert all(len(g) >= case.k and case.rules.met_by(case.columns, g) for g in groups)
        loss = sum(map(case.cost, groups))
        assert solution.objective == pytest.approx(loss, rel=1e-8, abs=1e-8)
        assert solution.objective >= best - 1e-8 * max(1.0, best)
        assert bound is None or bound.value <= best * (1 + 1e-9) + 1e-12
    assert (bound is not None) == case.squared


@pytest.mark.parametrize("label", RULED)
def test_impossible_limits_have_no_solution(label: str) -> None:
    """One value lies too far from all others: no release, or it is suppressed."""
    case = Case(
        (Column((0.0, 1.0, 2.0, 3.0, 99.0)),), 2, LOSSES["gcp"], rules=Rules(caps=((0, 10.0),))
    )
    assert case.optimum() == math.inf
    with pytest.raises(NoSolution, match="cap of 10 on 'a'"):
        RULED[label](case.problem())
    solution = RULED[label](replace(case, suppression=True).problem())
    assert solution.assignment.labels[4] == -1
    assert solution.assignment.suppressed == 1


@pytest.fixture(scope="module")
def patients() -> Problem:
    """Return a table with a sensitive column and a cap, of a hundred records."""
    data = census(100, 5, seed=4)
    frame = data.frame.copy()
    frame["illness"] = np.random.default_rng(5).choice(list("abcdef"), size=len(frame))
    name = next(a.name for a in data.attributes if a.is_numeric)
    width = float(np.ptp(frame[name].astype(float)))
    return Problem(
        Microdata(frame, data.attributes, sensitive=("illness",)),
        4,
        diversity=Diversity(l=2),
        limits=(Cap(name, 0.6 * width),),
    )


def test_almost_all_feasible_problems_are_solved() -> None:
    """Of sixty tables with hidden groups that keep the cap nine in ten are solved."""
    rng = np.random.default_rng(7)
    solved, tables = 0, 20 if profiles.NAME == "ci" else 60
    for _ in range(tables):
        centres = rng.uniform(0, 60, size=(10, 2)).repeat(3, axis=0)
        points = centres + rng.uniform(-4, 4, size=centres.shape)
        points = points[rng.permutation(len(points))]
        data = table_of(pd.DataFrame(points, columns=["a", "b"]))
        problem = Problem(data, 3, limits=(Cap("a", 8.0), Cap("b", 8.0)))
        try:
            RULED["k-member scan"](problem)
        except NoSolution:
            continue
        solved += 1
    assert solved >= 0.9 * tables


def test_all_pairs_too_far_apart_have_no_solution() -> None:
    """Where no two records may share a class nothing is found, whatever the method."""
    column = Column((0.0, 10.0, 20.0, 30.0))
    case = Case((column,), 2, LOSSES["gcp"], rules=Rules(caps=((0, 5.0),)))
    assert all(
        not case.rules.met_by(case.columns, pair)  # type: ignore[union-attr]
        for pair in combinations(range(4), 2)
    )
    for run in RULED.values():
        with pytest.raises(NoSolution):
            run(case.problem())
