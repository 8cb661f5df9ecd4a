"""The method pattern-ilp equals brute force, whatever formulation, rules, start and second goal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Budget,
    Diversity,
    EquivalenceClasses,
    InputError,
    InvalidAssignment,
    Mask,
    NoSolution,
    PatternGuided,
    Problem,
    Solution,
    Stopped,
    Suppressions,
    load_instance,
    solve,
)
from anonymip.assignments import SUPPRESSED, Patterns
from anonymip.exact.patterns.pattern_ilp import columns_within, pattern_ilp
from anonymip.exact.patterns.pattern_pairs import pattern_pairs
from anonymip.models.patterns.pattern_columns import pattern_columns
from tests.bounds.patterns.pattern_references import lettered
from tests.random_patterns import PatternCase, every_case, pattern_cases

CHOICES = st.fixed_dictionaries(
    {
        "formulation": st.sampled_from(["auto", "pattern", "pattern-strong"]),
        "warm_start": st.sampled_from(["greedy", "search", "none"]),
    }
)


def assert_proves(case: PatternCase, **choices: Any) -> None:
    """Assert that the optimum is found and proven, or that nothing is allowed."""
    problem, best = case.problem(), case.optimum()
    if best is None:
        with pytest.raises(NoSolution):
            pattern_ilp(problem, **choices)
        return
    assert_finds(best, pattern_ilp(problem, **choices))


def assert_finds(best: float, solution: Solution) -> None:
    """Assert that a solution has the optimal loss and proves it."""
    assert solution.objective == best
    assert solution.is_optimal
    assert solution.method == "pattern-ilp"


@settings(max_examples=220)
@given(case=every_case, choices=CHOICES)
def test_equals_brute_force(case: PatternCase, choices: dict[str, Any]) -> None:
    """Masks of rules and of patterns, costs of columns; single use, suppression, diversity."""
    assert_proves(case, **choices)


@settings(max_examples=40)
@given(case=pattern_cases(ruled=True))
def test_parts_equal_brute_force(case: PatternCase) -> None:
    """Parts for what they know; what they do not know they refuse."""
    case = replace(case, single_use=False, diversity=None)
    assert_proves(case, formulation="parts")
    with pytest.raises(InputError, match="neither single use nor diversity"):
        pattern_ilp(replace(case, single_use=True).problem(), formulation="parts")


def assert_no_worse_than_without(case: PatternCase, method: str, found: Solution) -> None:
    """Assert that who may suppress records loses no more than who may not."""
    try:
        bare = solve(replace(case, suppression=False, most=None, price=None).problem(), method)
    except NoSolution:
        return
    assert found.objective <= bare.objective


METHODS = ("pattern-ilp", "pattern-fpt", "pattern-greedy", "pattern-search", "auto")
PAIRS = "pattern-pairs"  # of k = 2, without single use and diversity


@settings(max_examples=120)
@given(
    every_case,
    st.sampled_from([0, 1, 2, 3, None]),
    st.sampled_from([None, 0.0, 1.0, 4.0]),
    st.sampled_from(["auto", "pattern", "pattern-strong", "parts"]),
)
def test_a_limit_of_suppression_equals_brute_force(
    case: PatternCase, most: int | None, price: float | None, formulation: str
) -> None:
    """Never more than asked; the models prove it, nothing else is below or claims too much."""
    case = replace(case, suppression=True, most=most, price=price)
    if formulation == "parts":
        case = replace(case, single_use=False, diversity=None)
    starred = any(map(all, case.patterns))
    if starred and price is not None:
        with pytest.raises(InputError, match=r"rows of stars only|no release can have"):
            case.problem()
        case = replace(case, price=None)
    best = case.optimum()
    try:
        problem = case.problem()
    except InputError:
        # Whoever stays lacks the diversity, whatever few may go.
        assert case.diversity is not None
        assert best is None
        return
    methods = METHODS[: 1 if case.diversity is not None else None]
    if case.k == 2 and not case.single_use and case.diversity is None:
        methods = (*methods, PAIRS)
    for method in methods:
        options = {"formulation": formulation} if method == "pattern-ilp" else {}
        exact = formulation != "parts" if method == "pattern-ilp" else method == "pattern-fpt"
        try:
            found = solve(problem, method, options=options)
        except NoSolution:
            assert not exact or best is None
            continue
        assert best is not None
        assert most is None or found.assignment.suppressed <= most
        assert found.objective >= best
        assert found.bound is None or found.bound.value <= best + 1e-9
        assert not (exact or found.is_optimal) or found.objective == best
        if most is not None and method in ("pattern-greedy", "pattern-search"):
            assert_no_worse_than_without(case, method, found)


@pytest.mark.parametrize("method", [partial(pattern_ilp, formulation="parts"), pattern_pairs])
def test_a_start_within_a_limit_is_kept_when_time_has_ended(
    method: Callable[..., Solution],
) -> None:
    """Two rows of a kind, and one that is like no other."""
    rows = (("x", "x"),) * 2 + (("y", "y"),) * 2 + (("z", "z"),)
    case = PatternCase(rows, ("p",) * 5, 2, Mask(), (1, 1), suppression=True, most=1)
    start, ended = Patterns(np.array([0, 0, 0, 0, SUPPRESSED])), Budget()
    ended.interrupt()
    found = method(case.problem(), start=start, budget=ended)
    assert found.objective == case.optimum() == 2
    with pytest.raises(InvalidAssignment):
        method(case.problem(), start=Patterns(np.full(5, SUPPRESSED)))


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"single_use": True},
        {"suppression": True},
        {"suppression": True, "diversity": Diversity(l=2)},
        {"suppression": True, "diversity": Diversity(distinct=2)},
    ],
    ids=str,
)
def test_every_rule_on_every_solver(rule: dict[str, Any]) -> None:
    """Six rows of two columns, in both formulations."""
    rows = (("x", "x"), ("x", "x"), ("x", "y"), ("y", "y"), ("y", "y"), ("z", "y"))
    case = replace(PatternCase(rows, tuple("pqpqpp"), 2, Mask(), (1, 2)), **rule)
    best, problem = case.optimum(), case.problem()
    assert best is not None
    for solver in ("highs", "cbc"):
        for formulation in ("pattern", "pattern-strong"):
            choices = {"solver": solver, "formulation": formulation, "warm_start": "none"}
            assert_finds(best, pattern_ilp(problem, **choices))


def most_rows(case: PatternCase) -> tuple[float, int]:
    """Return the least loss, and the most output rows of a release of it, by trying all."""
    choices = [*case.patterns, *([None] if case.suppression else [])]
    found = []
    for given_out in product(choices, repeat=len(case.rows)):
        if case.allows(given_out):
            shown = {
                tuple("*" if star else cell for cell, star in zip(row, stars, strict=True))
                for row, stars in zip(case.rows, given_out, strict=True)
                if stars is not None
            }
            found.append((case.loss(given_out), -len(shown)))
    loss, rows = min(found)
    return loss, -rows


@settings(max_examples=80)
@given(case=pattern_cases(ruled=True), data=st.data())
def test_second_goal_equals_brute_force(case: PatternCase, data: st.DataObject) -> None:
    """The most output rows of all releases of the least loss; columns may cost nothing."""
    costs = data.draw(st.lists(st.integers(0, 1), min_size=len(case.costs), max_size=9))
    case = replace(case, costs=tuple(costs[: len(case.costs)]))
    problem = case.problem()
    if case.optimum() is None:
        return
    solution = pattern_ilp(problem, second_goal="rows")
    assert (solution.objective, len(solution.sizes)) == most_rows(case)
    assert solution.is_optimal
    assert "the most" in solution.trace[-1]


@settings(max_examples=60)
@given(case=pattern_cases(ruled=True), above=st.integers(0, 2))
def test_pricing_keeps_what_releases_use(case: PatternCase, above: int) -> None:
    """Every release up to the loss uses columns that are left; the bound is below the optimum."""
    problem, best = case.problem(), case.optimum()
    if best is None:
        return
    columns = pattern_columns(problem, keep_equal=True)
    left, bound = columns_within(columns, best + above, Budget())
    assert bound.value <= best
    pairs = set(
        zip(left.first[left.types].tolist(), left.patterns[left.rows].tolist(), strict=True)
    )
    stars = problem.recoding.stars(problem)  # type: ignore[attr-defined]
    choices = [*range(len(stars)), *([-1] if case.suppression else [])]
    for index in product(choices, repeat=len(case.rows)):
        chosen_patterns = [None if j < 0 else tuple(stars[j].tolist()) for j in index]
        if case.allows(chosen_patterns) and case.loss(chosen_patterns) <= best + above:
            for record, pattern in enumerate(index):
                row_type = columns.program.type_of[record]
                row = columns.asked[pattern, row_type]
                if pattern >= 0 and columns.patterns[row] == pattern:
                    assert (int(columns.first[row_type]), pattern) in pairs


def test_costs_of_patterns_and_fractions() -> None:
    """Costs beyond any grid of decimals: the optimum is proven within rounding."""
    data = load_instance("health-records")
    names = data.names
    costs = {name: 1 / (3 + at) for at, name in enumerate(names)}
    problem = Problem(data, 2, PatternGuided(), Suppressions(costs, {names[:2]: 0.123456789}))
    found = [
        pattern_ilp(problem, formulation=form)
        for form in ("pattern", "pattern-strong", "parts", "auto")
    ]
    assert all(one.is_optimal for one in found)
    assert len({round(one.objective, 9) for one in found}) == 1


def test_options_are_checked_and_told() -> None:
    """Unknown words are refused; the rest stands in the solution."""
    problem = Problem(load_instance("aggarwal-4"), 2, PatternGuided())
    for option in ("formulation", "second_goal", "warm_start"):
        with pytest.raises(InputError, match=r"unknown .* 'magic'"):
            pattern_ilp(problem, **cast(dict[str, Any], {option: "magic"}))
    with pytest.raises(InputError, match="asks for classes"):
        pattern_ilp(problem.replace(recoding=EquivalenceClasses()))
    solution = pattern_ilp(problem, formulation="pattern", second_goal="rows", seed=3)
    assert solution.options["formulation"] == "pattern"
    assert solution.options["second_goal"] == "rows"
    assert solution.seed == 3


def test_nodes_that_end_it_promise_no_effort() -> None:
    """It takes none: no other effort would go on until the proof."""
    letters = np.random.default_rng(2).choice(list("abc"), (30, 4))
    patterns = PatternGuided(Mask(suppress_at_most=3))
    problem = Problem(lettered(["".join(row) for row in letters]), 3, patterns)
    found = solve(problem, "pattern-ilp", options={"nodes": 1, "formulation": "pattern-strong"})
    assert found.status.stopped is Stopped.NODES
    assert "stopped after 1 nodes" in found.trace


def test_logs_and_own_options_are_one_call(tmp_path: Path) -> None:
    """The strong model is solved at once; the bound of a solver with own options is not used."""
    problem = Problem(load_instance("aggarwal-4"), 2, PatternGuided())
    log = tmp_path / "solver.log"
    solution = pattern_ilp(problem, log=log, warm_start="none")
    assert solution.options["formulation"] == "pattern-strong"
    assert log.exists()
    own = pattern_ilp(problem, solver_options={"mip_rel_gap": 0.5}, warm_start="none")
    assert "its bound is not relied on" in " ".join(own.trace)
    with pytest.raises(InputError, match="takes no log"):
        pattern_ilp(problem, log=log, formulation="parts")


def test_starts_are_kept_or_improved() -> None:
    """A start is never made worse, and an interrupt leaves it."""
    problem = Problem(load_instance("aggarwal-4"), 2, PatternGuided())
    worst = Patterns(np.full(problem.n, len(problem.recoding.stars(problem)) - 1))  # type: ignore[attr-defined]
    best = pattern_ilp(problem, start=worst)
    assert best.is_optimal
    assert best.objective < problem.n * problem.m
    budget = Budget()
    budget.interrupt()
    kept = pattern_ilp(problem, start=worst, budget=budget, formulation="pattern-strong")
    assert kept.objective <= problem.n * problem.m
    assert kept.bound is not None
    assert kept.bound.value <= best.objective


def test_second_goal_finds_what_greedy_orders_hide() -> None:
    """Nine combinations twice, k = 6: columns of two and of three values may both be hidden."""
    rows = tuple(product("xyz", "xyz", "xy"))
    case = PatternCase(rows, ("p",) * 18, 6, Mask(suppress_at_most=2), (1, 1, 1))
    plain = pattern_ilp(case.problem())
    finer = pattern_ilp(case.problem(), second_goal="rows")
    # One star leaves three alike at most, two stars six or nine.
    assert plain.objective == finer.objective == 36
    assert len(finer.sizes) == 3
    assert "the most that k records each allow" in finer.trace[-1]


def test_no_time_to_build_keeps_the_start() -> None:
    """What is known stays, with the bound of duals."""
    rows = tuple(product("xyz", "xyz", "xyz"))
    case = PatternCase(rows, ("p",) * 27, 2, Mask(), (2, 3, 4), single_use=True)
    problem = case.problem()
    start = Patterns(np.full(27, 7))
    for formulation in ("pattern", "pattern-strong"):
        budget = Budget.of(1e-6)
        kept = pattern_ilp(problem, start=start, budget=budget, formulation=formulation)
        assert kept.objective == 27 * 9
        assert "the start is kept" in kept.trace[-1]
        assert kept.bound is not None
        assert kept.bound.value <= pattern_ilp(problem, start=start).objective


@settings(max_examples=60)
@given(
    case=pattern_cases(ruled=True),
    costs=st.lists(st.sampled_from([1, 2000, 10**6, 10**9]), min_size=3, max_size=3),
    choices=CHOICES,
)
def test_costs_of_different_sizes(
    case: PatternCase, costs: list[int], choices: dict[str, Any]
) -> None:
    """Beyond what a solver tells apart the bound is lowered, and nothing false is proven."""
    case = replace(case, costs=tuple(costs[: len(case.costs)]))
    best = case.optimum()
    if best is None:
        return
    solution = pattern_ilp(case.problem(), **choices)
    assert solution.bound is not None
    assert solution.bound.value <= best
    assert best <= solution.objective <= best + 1e-5 * max(costs) * len(case.rows)
    assert solution.is_optimal == (solution.bound.value >= solution.objective * (1 - 1e-6))


@settings(max_examples=30)
@given(case=pattern_cases(ruled=True), scale=st.sampled_from([1e-9, 1e-4, 1 / 3, 1e7]))
def test_the_unit_of_the_loss_does_not_matter(case: PatternCase, scale: float) -> None:
    """Tiny and huge units: the optimum stays proven."""
    best = case.optimum()
    if best is None:
        return
    problem = case.problem()
    costs = {name: cost * scale for name, cost in zip(case.names, case.costs, strict=True)}
    solution = pattern_ilp(problem.replace(objective=Suppressions(costs)), warm_start="none")
    assert solution.objective == pytest.approx(best * scale, rel=1e-9)
    assert solution.is_optimal


def test_unknown_warm_start_is_refused_beside_a_start_too() -> None:
    """A misspelt name is an error, although the start that is given takes its place."""
    problem = Problem(load_instance("health-records"), 3, PatternGuided(), Suppressions())
    start = pattern_ilp(problem).assignment
    with pytest.raises(InputError, match="unknown warm start 'greddy'"):
        pattern_ilp(problem, start=start, warm_start="greddy")
