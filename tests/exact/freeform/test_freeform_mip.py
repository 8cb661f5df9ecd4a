"""The MIP of freeform generalization equals brute force, whatever choices, notion and rules."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Budget,
    InputError,
    InvalidAssignment,
    NoSolution,
    Problem,
    Solution,
    UnsupportedObjective,
    adopt,
    build,
    census,
    class_objective,
    load_instance,
    solve_model,
)
from anonymip.assignments import Cover
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.exact.trust import is_too_fine
from anonymip.recodings import KK, Freeform, KConcealment, KOne, OneK
from anonymip.status import Stopped
from tests.brute_force import Column
from tests.by_hand import table_of
from tests.cover_brute_force import (
    concealment_optimum,
    one_sided_optimum,
    reciprocal_covers,
    regular_optimum,
)
from tests.exact.classes.test_formulations import RULES, mixed
from tests.hard_losses import FALLING
from tests.random_problems import LOSSES, Case, cases, ruled_cases, without_diversity

#: All choices of the model.
CHOICES = st.fixed_dictionaries(
    {
        "own_record": st.sampled_from(["fixed", "free"]),
        "ranges": st.sampled_from(["bounds", "gaps"]),
        "strengthened": st.booleans(),
        "integer_ends": st.booleans(),
        "warm_start": st.sampled_from(["best", "none", "ring"]),
    }
)
ONE_SIDED = {
    OneK(): {"rows": False, "columns": True},
    KOne(): {"rows": True, "columns": False},
    KK(): {"rows": True, "columns": True},
}


def freeform_optimum(case: Case) -> float:
    """Return the least loss of a cover of one degree; larger ones count where they may matter."""
    if case.rules is None or not case.rules.sensitive:
        return case.cover_optimum()
    return min(case.cover_optimum([degree] * case.n) for degree in range(case.k, case.n + 1))


def assert_proves(case: Case, problem: Problem, best: float, **choices: Any) -> None:
    """Assert that the method finds the optimum and proves it; or that nothing is allowed."""
    if best == math.inf:
        with pytest.raises(NoSolution, match="no release"):
            freeform_mip(problem, **choices)
        return
    solution = freeform_mip(problem, **choices)
    resolved = best == 0 or not is_too_fine(problem, best, by_cells=True)
    assert solution.is_optimal or not resolved
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert isinstance(solution.assignment, Cover)
    losses = [case.set_loss(solution.assignment.of_record(i).tolist()) for i in range(case.n)]
    total = max(losses) if case.worst else sum(losses)
    assert total == pytest.approx(solution.objective, rel=1e-9, abs=1e-9)
    assert solution.bound is not None
    assert solution.bound.value <= best + 1e-6 * max(1.0, abs(best))


@settings(max_examples=40)
@given(case=cases(largest=6, suppression=False), choices=CHOICES)
def test_equals_brute_force(case: Case, choices: dict[str, Any]) -> None:
    """All kinds of attributes and losses, k from 2 to n, every choice of the model."""
    problem = case.problem().replace(recoding=Freeform())
    best = case.cover_optimum()
    assert_proves(case, problem, best, formulation="freeform", **choices)
    assert best <= case.optimum() + case.slack(best)


@settings(max_examples=40)
@given(case=ruled_cases(largest=6), choices=CHOICES)
def test_equals_brute_force_under_rules(case: Case, choices: dict[str, Any]) -> None:
    """Diversity, limits, the largest loss: sets larger than k are found where they are needed."""
    case = replace(case, suppression=False)
    try:
        problem = case.problem().replace(recoding=Freeform())
    except InputError:
        return
    assert_proves(case, problem, freeform_optimum(case), formulation="freeform", **choices)


@pytest.mark.crossed
@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("k", [2, 3])
def test_every_rule_on_every_solver(solver: str, rules: str, k: int) -> None:
    """Numeric, categorical and hierarchical attributes, with weights, under every rule."""
    case = mixed("weighted", k=k, rules=RULES[rules])
    problem = case.problem().replace(recoding=Freeform())
    best = freeform_optimum(case)
    assert_proves(case, problem, best, solver=solver, formulation="freeform")


@pytest.mark.crossed
@pytest.mark.parametrize(
    ("solver", "ranges"),
    [
        *(("highs", "bounds"), ("highs", "gaps"), ("cbc", "bounds")),
        pytest.param("cbc", "gaps", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("loss", ["curved", "hierarchy", "leaning"])
@pytest.mark.parametrize("worst", [False, True])
def test_every_objective_on_every_solver(solver: str, ranges: str, loss: str, worst: bool) -> None:
    """Curved losses, levels, offsets; summed, and the largest of them."""
    case = mixed(loss, k=3, worst=worst)
    problem = case.problem().replace(recoding=Freeform())
    best = case.cover_optimum()
    assert_proves(case, problem, best, solver=solver, ranges=ranges, formulation="freeform")


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (3, 1), (4, 2), (5, 3), (7, 4)])
def test_equals_brute_force_on_seven_records(k: int, seed: int) -> None:
    """One record more, with a set and a range."""
    rng = np.random.default_rng(seed)
    columns = (
        Column(tuple(rng.integers(0, 30, 7).tolist()), integer=True),
        Column(tuple(rng.choice(list("pqrs"), 7)), False, as_set=True),
    )
    case = Case(columns, k, LOSSES["gcp"])
    problem = case.problem().replace(recoding=Freeform())
    assert_proves(case, problem, case.cover_optimum(), formulation="freeform")


@pytest.mark.thorough
@settings(max_examples=30)
@given(case=cases(largest=6, suppression=False, attributes=2), data=st.data())
def test_degrees_of_their_own(case: Case, data: st.DataObject) -> None:
    """Adaptive anonymity: every record its own degree; what no graph has is proven to be none."""
    some = st.lists(st.integers(case.k, case.n), min_size=case.n, max_size=case.n)
    degrees = tuple(data.draw(some))
    problem = case.problem().replace(recoding=Freeform(degrees=degrees))
    best = case.cover_optimum(degrees)
    ranges = data.draw(st.sampled_from(["bounds", "gaps"]))
    assert_proves(case, problem, best, formulation="freeform", ranges=ranges)


@settings(max_examples=25)
@given(case=cases(largest=6, suppression=False, attributes=2), gaps=st.booleans())
def test_reciprocal_sets(case: Case, gaps: bool) -> None:
    """Symmetric generalization; with n odd and k even the least sets have k + 1 records."""
    covers = [
        sum(case.set_loss(one) for one in sets)
        for degree in range(case.k, case.n + 1)
        for sets in reciprocal_covers(case.n, degree)
    ]
    problem = case.problem().replace(recoding=Freeform(reciprocal=True))
    assert_proves(case, problem, min(covers), ranges="gaps" if gaps else "bounds")


@pytest.mark.parametrize("recoding", ONE_SIDED, ids=lambda recoding: recoding.name)
@settings(max_examples=30)
@given(case=ruled_cases(largest=5, attributes=2), gaps=st.booleans())
def test_one_sided_notions(recoding: Any, case: Case, gaps: bool) -> None:
    """(1,k), (k,1) and (k,k)-anonymity with relaxed numbers of matches, under limits."""
    case = without_diversity(replace(case, suppression=False))
    problem = case.problem().replace(recoding=recoding)
    try:
        best = one_sided_optimum(
            case.n, case.k, case.set_loss, worst=case.worst, **ONE_SIDED[recoding]
        )
    except KeyError:
        best = math.inf
    assert_proves(case, problem, best, ranges="gaps" if gaps else "bounds")


@settings(max_examples=25)
@given(case=cases(largest=4, suppression=False, attributes=2))
def test_concealment(case: Case) -> None:
    """The flow counts exactly the matches that lie in some assignment."""
    problem = case.problem().replace(recoding=KConcealment())
    assert_proves(case, problem, concealment_optimum(case.n, case.k, case.set_loss))


def test_concealment_of_four_records() -> None:
    """Weaker than freeform, stronger than (1,k)-anonymity."""
    case = Case((Column((0, 1, 5, 20), integer=True),), 2, LOSSES["gcp"])
    best = concealment_optimum(4, 2, case.set_loss)
    assert_proves(case, case.problem().replace(recoding=KConcealment()), best)
    one_sided = one_sided_optimum(4, 2, case.set_loss, rows=False, columns=True)
    assert one_sided <= best <= case.cover_optimum()


def test_concealment_refuses_large_tables() -> None:
    """Beyond what a flow of solvers' tolerances resolves, the message names the limit."""
    values = tuple(range(61))
    problem = Case((Column(values, integer=True),), 2, LOSSES["gcp"]).problem()
    with pytest.raises(InputError, match=r"61 records; the limit is 60") as caught:
        freeform_mip(problem.replace(recoding=KConcealment()))
    assert "Freeform" in (caught.value.remedy or "")


@pytest.fixture(scope="module")
def health() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3, Freeform())


def ring_of(n: int, k: int) -> Cover:
    """Return the ring in the order of the table."""
    return Cover.of((np.arange(n)[:, None] + np.arange(k)) % n)


def test_freeform_can_beat_one_class() -> None:
    """Values 0, 1, 5 with k = 2, fewer than 2k records: 10 in units of the values, one class 15."""
    case = Case((Column((0, 1, 5), integer=True),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=Freeform())
    for formulation in ("assignment", "freeform"):
        solution = freeform_mip(problem, formulation=formulation)
        assert solution.objective == pytest.approx(10 / 5)
        assert solution.is_optimal


@pytest.mark.parametrize(
    "warm_start", ["ring", "greedy", "sort-greedy", "hungarian", "best", "none"]
)
def test_every_warm_start(health: Problem, warm_start: str) -> None:
    """The optimum does not depend on the start; the solver takes it if there is one."""
    solution = freeform_mip(health, warm_start=warm_start)
    assert solution.is_optimal
    assert solution.objective == pytest.approx(freeform_mip(health).objective)
    assert ("warm start accepted" in solution.trace) == (warm_start != "none")


def test_unknown_options_are_refused(health: Problem) -> None:
    """Each message lists what there is."""
    with pytest.raises(InputError, match=r"warm start.*ring"):
        freeform_mip(health, warm_start="initial")
    with pytest.raises(InputError, match=r"unknown formulation.*assignment, set-cover"):
        freeform_mip(health, formulation="bigm")
    with pytest.raises(InputError, match=r"ranges is 'gap'.*bounds or gaps"):
        freeform_mip(health, ranges="gap")
    with pytest.raises(InputError, match="fixed"):
        freeform_mip(health.replace(recoding=Freeform(reciprocal=True)), own_record="free")
    with pytest.raises(InputError, match="fixed"):
        freeform_mip(health.replace(recoding=KK()), own_record="free")
    with pytest.raises(InputError, match="does not model the recoding classes"):
        freeform_mip(Problem(health.microdata, 3))


def test_given_starts_are_checked(health: Problem) -> None:
    """A start that breaks a rule is an error; one with larger sets is made smaller."""
    with pytest.raises(InvalidAssignment, match="where 3 are needed"):
        freeform_mip(health, start=ring_of(7, 2))
    solution = freeform_mip(health, start=ring_of(7, 5))
    assert solution.is_optimal
    assert "warm start accepted" in solution.trace


@pytest.mark.parametrize("k", [2, 3])
def test_expired_budget_returns_the_start(health: Problem, k: int) -> None:
    """Without time left the start is the answer, and it is not called optimal."""
    start = ring_of(7, k)
    budget = Budget(deadline=time.monotonic() - 1.0)
    solution = freeform_mip(health.replace(k=k), start=start, budget=budget)
    assert solution.status.stopped is Stopped.TIME
    assert solution.objective == Solution.of(health.replace(k=k), start, method="m").objective
    with pytest.raises(NoSolution, match="time"):
        freeform_mip(health.replace(k=k), warm_start="none", budget=budget)


@pytest.mark.parametrize("formulation", ["freeform", "set-cover"])
def test_interrupt_returns_the_start(health: Problem, formulation: str) -> None:
    """A flagged interrupt ends with the start and says interrupted."""
    budget = Budget()
    budget.interrupt()
    solution = freeform_mip(health, formulation=formulation, start=ring_of(7, 3), budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT
    assert solution.objective == Solution.of(health, ring_of(7, 3), method="m").objective


def test_objectives_that_are_not_monotone_are_refused() -> None:
    """The flow model takes monotone losses alone; of many records sets are not listed either."""
    problem = Case((Column((1.0, 2.0, 4.0, 7.0)),), 3, FALLING).problem()
    with pytest.raises(UnsupportedObjective, match="monotone"):
        freeform_mip(problem.replace(recoding=Freeform()), formulation="freeform")
    many = Problem(census(40, 4, 1), 3, Freeform(), objective=SSE())
    with pytest.raises(InputError, match=r"sse.*every size from 3 to 40.* sets") as caught:
        freeform_mip(many)
    assert "reassign" in (caught.value.remedy or "")


@class_objective
def nearest_to_ten(members: Any) -> Any:
    """Charge a set the square of what its sum of ages misses ten by: it may fall and rise."""
    ages = members.value["a"]
    return (ages.sum(axis=1) - 10.0) ** 2


@pytest.mark.parametrize("loss", [SSE(), nearest_to_ten], ids=["sse", "sum"])
@pytest.mark.parametrize(("k", "seed"), [(2, 0), (2, 1), (3, 2)])
def test_losses_of_members_equal_brute_force(loss: Any, k: int, seed: int) -> None:
    """Sets of every size are compared, since larger ones may lose less; the optimum is proven."""
    values = np.random.default_rng(seed).integers(0, 7, 5)
    data = table_of({"a": values})
    problem = Problem(data, k, Freeform(), objective=loss)

    def cost(one: tuple[int, ...]) -> float:
        rows = np.array([one])
        return float(problem.compiled.class_losses(rows)[0]) / len(one)

    best = min(regular_optimum(5, [size] * 5, cost)[0] for size in range(k, 6))
    solution = freeform_mip(problem)
    assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert solution.bound is not None
    assert solution.bound.value <= best + 1e-6
    assert solution.is_optimal or best < 1e-6
    problem.recoding.check(problem, solution.assignment)


def test_a_falling_loss_takes_larger_sets() -> None:
    """Published as one whole the records of the falling loss lose nothing: that is proven."""
    problem = Case((Column((1.0, 2.0, 4.0, 7.0)),), 2, FALLING).problem()
    problem = problem.replace(recoding=Freeform())
    solution = freeform_mip(problem)
    assert solution.is_optimal
    assert isinstance(solution.assignment, Cover)
    assert solution.assignment.sizes[0] > 2
    with pytest.raises(UnsupportedObjective, match="monotone") as caught:
        build(problem, "set-cover")
    assert "freeform-mip" in (caught.value.remedy or "")


def test_adopt_a_model_with_a_constraint_of_ones_own(health: Problem) -> None:
    """A record that must not be covered by another: checked, without a bound."""
    best = freeform_mip(health)
    assert isinstance(best.assignment, Cover)
    other = next(int(one) for one in best.assignment.of_record(0) if one != 0)
    model = build(health)
    assert model.formulation == "freeform"
    model.mine = pyo.Constraint(expr=model.match[other, 0] == 0)
    solve_model(model)
    solution = adopt(health, model)
    assert solution.bound is None
    assert other not in solution.assignment.of_record(0)  # type: ignore[union-attr]
    assert solution.objective >= best.objective - 1e-9


def test_adopt_hands_sets_over_where_own_records_are_free(health: Problem) -> None:
    """Own records forced out of all sets: every set still goes to one of its records."""
    model = build(health, own_record="free")
    model.mine = pyo.Constraint(model.rows, rule=lambda model, i: model.match[i, i] == 0)
    solve_model(model)
    assert all(model.match[i, i].value < 0.5 for i in model.rows)
    solution = adopt(health, model)
    assert solution.objective <= pyo.value(model.loss) + 1e-6


def test_matches_that_stand_in_no_row_have_values() -> None:
    """Own records are given by their bounds alone: without a start they are read all the same."""
    case = Case((Column((0.3, 0.3, 0.7, 0.1)),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=KConcealment())
    bare = freeform_mip(problem, warm_start="none")
    assert bare.objective == pytest.approx(freeform_mip(problem).objective)
