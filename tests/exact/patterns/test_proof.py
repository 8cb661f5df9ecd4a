"""Pattern problems are solved component by component, to the optimum and with a proof of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonymip.exact.patterns.components as pattern_components
from anonymip import (
    InputError,
    Mask,
    NoSolution,
    PatternGuided,
    Patterns,
    Problem,
    SolverError,
    Stopped,
    Suppressions,
)
from anonymip.bounds.patterns.pattern_duals import loss_of, pattern_duals, pattern_program
from anonymip.exact.patterns.components import components_of, greedy_amounts
from anonymip.exact.patterns.group_master import (
    GroupPrices,
    PartNumbers,
    RestrictedAnswer,
    triple_bound,
)
from anonymip.exact.patterns.pattern_ilp import pattern_ilp
from anonymip.exact.patterns.proof import fill_relaxed_pattern, prove
from anonymip.exact.set_partitioning import restricted_master
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.exact.trust import trusted_bound
from anonymip.heuristics.patterns.pattern_greedy import pattern_greedy
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverResult, availability
from tests.bounds.patterns.pattern_references import hard_pattern_problem, lettered
from tests.by_hand import by_patterns
from tests.random_patterns import PatternCase, pattern_cases


def plain(case: PatternCase) -> PatternCase:
    """Return the case without rules that the components do not know."""
    return replace(case, single_use=False, diversity=None)


@settings(max_examples=60, deadline=None)
@given(pattern_cases(most_records=7, ruled=True).map(plain))
def test_proves_what_brute_force_finds(case: PatternCase) -> None:
    """With and without suppression, with and without stars only, for all masks."""
    best = case.optimum()
    if best is None:
        with pytest.raises(NoSolution):
            prove(case.problem())
        return
    found = prove(case.problem())
    assert found.objective == best
    assert found.is_optimal
    assert found.bound is not None
    assert found.bound.value == best


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(pattern_cases(most_records=7).map(plain), st.integers(1, 3))
def test_small_kernels_and_batches_change_nothing(case: PatternCase, size: int) -> None:
    """Restricted MIPs that begin with a few pairs grow until nothing better can be left out."""
    best = case.optimum()
    if best is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        few = PartNumbers(direct=size, first=size, batch=1)
        patch.setattr(pattern_components, "PARTS", few)
        found = prove(case.problem())
    assert found.objective == best
    assert found.is_optimal


def test_one_outlier_needs_companions_under_stars_only() -> None:
    """Parts leave one record alone; a row with a record to spare gives it away."""
    problem = Problem(
        lettered(["xx"] * 3 + ["yy"] * 2 + ["uv"]),
        2,
        PatternGuided(Mask(suppress_at_most=0, allow_all_stars=True)),
    )
    found = prove(problem)
    assert found.objective == 4
    assert found.is_optimal
    assert any("stars only" in remark for remark in found.trace)


def test_companions_come_from_where_they_cost_least() -> None:
    """Two of a row of four cells under one star, not the whole of another row."""
    problem = Problem(
        lettered(["xxa", "xxb", "xxc", "yya", "yyb", "uvw"]),
        2,
        PatternGuided(Mask(patterns=(("c",),), allow_all_stars=True)),
    )
    components = components_of(pattern_duals(program := pattern_program(problem), program.cheapest))
    before = sum(component.upper for component in components)
    fill_relaxed_pattern(components, 2)
    taken = [component.amounts for component in components if component.amounts is not None]
    assert problem.n - sum(int(own.sum()) for own in taken) == 2
    assert sum(component.upper for component in components) == before + 2
    assert prove(problem).objective == before + 2


@settings(max_examples=40, deadline=None)
@given(pattern_cases(most_records=6))
def test_greedy_and_its_repair_obey_the_rules(case: PatternCase) -> None:
    """Rows have none or k records, row types no more than they have; k are under stars only."""
    case = replace(case, mask=replace(case.mask, allow_all_stars=True))
    program = pattern_program(case.problem())
    duals = pattern_duals(program, program.cheapest)
    components = components_of(duals)
    amounts = greedy_amounts(duals)
    assert amounts is not None
    assert sum(component.upper for component in components) <= loss_of(duals, amounts)
    fill_relaxed_pattern(components, case.k)
    left = program.records
    for component in components:
        own = component.amounts
        assert own is not None
        held = np.bincount(component.duals.pair_rows, weights=own, minlength=1)
        assert ((held == 0) | (held >= case.k)).all()
        given_ = np.bincount(
            component.duals.pair_types, weights=own, minlength=len(component.types)
        )
        assert (own >= 0).all()
        assert (given_ <= component.duals.program.counts).all()
        left -= int(own.sum())
    assert left >= case.k


def test_a_start_that_the_row_bound_proves_is_kept() -> None:
    """Nothing is solved."""
    problem = Problem(
        lettered(["xx", "xy", "yx", "yy"]), 2, PatternGuided(Mask(suppress_at_most=1))
    )
    column = problem.recoding.stars(problem).tolist().index([True, False])  # type: ignore[attr-defined]
    start = Patterns(np.full(4, column))
    found = pattern_ilp(problem, start=start, formulation="parts")
    assert found.is_optimal
    assert found.objective == 4
    assert found.solver is None
    assert found.bound is not None
    assert found.bound.method == "pattern rows"


def test_without_time_the_start_and_an_argument_are_returned() -> None:
    """The bound is that of the row bound at least; nothing is called optimal."""
    problem = hard_pattern_problem()
    stars = problem.recoding.stars(problem)  # type: ignore[attr-defined]
    start = by_patterns(problem, np.full(problem.n, len(stars) - 1))
    budget = Budget()
    budget.interrupt()
    found = prove(problem, Mip(budget=budget), start)
    assert found.objective <= start.objective
    assert not found.is_optimal
    assert found.bound is not None
    assert found.bound.proof == "argument"


def test_prices_solve_no_hard_problem_alone_but_the_restricted_mip_does() -> None:
    """Random records under all patterns; the proof is the solver's."""
    found = prove(hard_pattern_problem())
    assert found.is_optimal
    assert found.bound is not None
    assert found.bound.proof == "solver"
    assert found.solver is not None
    assert (found.sizes >= 2).all()


def test_weights_of_columns_are_paid() -> None:
    """Fractions of decimals: bounds are raised to the next possible loss."""
    costs = {"a": 0.3, "b": 1.7, "c": 0.6, "d": 1.0, "e": 0.2, "f": 0.8}
    problem = hard_pattern_problem(60)
    found = prove(problem.replace(objective=Suppressions(costs)))
    assert found.is_optimal
    tenfold = prove(
        problem.replace(objective=Suppressions({name: 10 * c for name, c in costs.items()}))
    )
    assert found.objective == pytest.approx(tenfold.objective / 10)


@pytest.mark.thorough("cbc")
@pytest.mark.parametrize("solver", ["cbc", "scip"])
def test_other_solvers_prove_the_same(solver: str) -> None:
    """CBC always, SCIP where it is installed."""
    if solver == "scip" and not availability(solver).installed:
        pytest.skip("scip is not installed")
    assert (
        prove(hard_pattern_problem(), Mip(solver)).objective
        == prove(hard_pattern_problem()).objective
    )


@pytest.mark.parametrize("k", [2, 3])
def test_no_release_is_not_a_matter_of_time(k: int) -> None:
    """Every record has companions, but not all of them at once."""
    rows = ["aa", "ab", "ba"] if k == 2 else ["aa", "ab", "ac", "ba", "ca"]
    with pytest.raises(NoSolution, match="no release keeps the mask"):
        prove(Problem(lettered(rows), k, PatternGuided(Mask(suppress_at_most=1))))


def test_a_start_contradicts_that_no_release_exists() -> None:
    """The solver errs."""
    problem = hard_pattern_problem()
    stars = problem.recoding.stars(problem)  # type: ignore[attr-defined]
    start = by_patterns(problem, np.full(problem.n, len(stars) - 1))

    def infeasible(component: pattern_components.PatternComponent, *_: object) -> str:
        component.lower = np.inf
        return "liar 1"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_components.PatternComponent, "solve", infeasible)
        with pytest.raises(SolverError, match="liar 1 calls"):
            prove(problem, start=start)


def test_a_denied_release_takes_back_what_the_solver_said_of_other_parts() -> None:
    """The solver proves a part, and calls the next one infeasible, of which a release is known."""
    recoding = PatternGuided(Mask(never=("a",)), suppression=True)
    problem = hard_pattern_problem().replace(recoding=recoding)
    solve = pattern_components.PatternComponent.solve
    proven: list[bool] = []

    def deny_next(component: pattern_components.PatternComponent, mip: Mip) -> str | None:
        if not any(proven):
            named = solve(component, mip)
            proven.append(component.by_solver)
            return named
        denied = SolverResult(Stopped.INFEASIBLE, None, None, None, 0.0, "liar 1")
        patch.setattr(restricted_master, "solve_form", lambda *_, **__: denied)
        return solve(component, mip)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_components, "PARTS", PartNumbers(batch=1))
        patch.setattr(pattern_components.PatternComponent, "solve", deny_next)
        found = prove(problem)
    assert any(proven)
    assert any("liar 1 calls" in remark for remark in found.trace)
    assert found.bound is not None
    assert found.bound.proof == "argument"


def test_records_without_companions_are_proven_whatever_they_cost() -> None:
    """A third is no whole number of any unit of duals."""
    problem = Problem(
        lettered(["x", "y", "z", "u", "v"]),
        2,
        PatternGuided(),
        objective=Suppressions({"a": 1 / 3}),
    )
    found = prove(problem)
    assert found.is_optimal
    assert found.objective == pytest.approx(5 / 3)
    assert found.solver is None
    assert found.bound is not None
    assert found.bound.proof == "argument"


def test_costs_that_a_solver_does_not_see_are_not_proven_by_its_report() -> None:
    """Beside a price of 0.3 a solver takes costs of 1e-9 for nothing: its bound is no bound."""
    problem = Problem(
        lettered(["xb7", "x*7", "xb7", "yb7", "x*7", "x*7", "x*7"]),
        2,
        PatternGuided(suppression=True),
        objective=Suppressions({"a": 1e-9, "b": 1e-9, "c": 0.3}),
    )
    best = pattern_greedy(problem)
    assert best.objective == pytest.approx(3e-9)
    for start in (best, None):
        found = prove(problem, start=start)
        assert found.bound is not None
        assert found.bound.value <= best.objective
        assert not found.is_optimal
    assert prove(problem, start=best).objective == best.objective


@pytest.mark.parametrize(
    ("losses", "claimed", "objective", "trusted"),
    [
        ([0.0, 1.0], 7.0 - 1e-7, 9.0, 7.0),
        ([0.0, 1 / 3], 2.0, 3.0, 2.0),
        ([0.0, 1 / 3], 2.0 + 1e-6, 2.0, 2.0),
        ([0.0, 1 / 3], 2.0, 1.0, None),
        ([0.0, 1 / 3], 2.0, np.inf, 2.0 - 1e-5 / 3),
        ([0.0, 1 / 3], 1e-3, 2e-3, 1e-3 - 1e-5 / 3),
        ([1e-5, 1 / 3], 2.0, 3.0, 2.0 - 1e-5 / 3),
        ([1 / 3, 1 / 3 + 1e-8], 2.0, 3.0, 2.0 - 1e-5 / 3),
    ],
)
def test_what_of_a_bound_is_trusted(
    losses: list[float], claimed: float, objective: float, trusted: float | None
) -> None:
    """Whole losses raise it; fine ones, or none that are known, lower it by the tolerances."""
    found = trusted_bound(np.array(losses), claimed, objective)
    assert found == (None if trusted is None else pytest.approx(trusted, rel=1e-8))


def test_a_bound_by_triples_says_so() -> None:
    """Without time for a MIP on groups."""

    class WithoutMips(GroupPrices):
        def cheapest(self, *_: object) -> tuple[None, int]:
            return None, -1

    def without_mips(*given: Any) -> GroupPrices:
        found = triple_bound(*given)
        assert found is not None
        return WithoutMips(found.duals, found.triples, found.paid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_components, "PARTS", PartNumbers(direct=0))
        patch.setattr(pattern_components, "triple_bound", without_mips)
        patch.setattr(
            pattern_components, "solve_restricted", lambda *_: RestrictedAnswer(None, None, "none")
        )
        patch.setattr(pattern_components, "improve_nearby", lambda _, amounts, *__: amounts)
        found = prove(hard_pattern_problem())
    assert found.bound is not None
    assert found.bound.method == "pattern prices with triples"
    assert found.bound.proof == "argument"


def test_rules_that_parts_do_not_know_are_refused() -> None:
    """Single use links all rows of a pattern."""
    problem = hard_pattern_problem().replace(recoding=PatternGuided(single_use=True))
    with pytest.raises(InputError, match="single use"):
        pattern_ilp(problem, formulation="parts")
