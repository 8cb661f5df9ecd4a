"""The bounds above nearest neighbours: feasible duals, never above an optimum."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, islice, pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from anonymip import (
    KK,
    Attribute,
    Bottleneck,
    Bound,
    Freeform,
    KOne,
    Microdata,
    Problem,
    census,
    lower_bound,
    nearest_neighbour_bound,
    objective,
    solve,
)
from anonymip.bounds import ladder
from anonymip.bounds.ladder import Ladder, PairSums, bounds_by_pairs, guided_ascent, ladder_bound
from anonymip.bounds.near_program import NearProgram, SetProgram
from anonymip.bounds.near_search import NearLists, gather_near, sort_by_loss
from anonymip.bounds.nearest_neighbour import nearest_neighbour_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.bounds.slack_search import least_slack_by_boxes
from anonymip.effort import EFFORTS
from anonymip.exact.column_generation.column_generation import relaxation_bound
from anonymip.heuristics.classes.mondrian import mondrian
from anonymip.objectives.kernels.growing_sets import GrowingSets
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped
from benchmarks.shapes import amounts, answers, coordinates, mixed, numbers
from tests import profiles
from tests.brute_force import Column, record_loss
from tests.by_hand import table_of
from tests.hard_losses import PRODUCT
from tests.random_problems import LOSSES, Case, cases, larger_problems, ruled_cases
from tests.runtime.counted_budget import CountedBudget


def bound_of(
    problem: Problem, effort: str | None = "normal", budget: Budget | None = None
) -> Bound:
    """Return a bound that is there."""
    bound = ladder_bound(problem, effort=effort, budget=budget)
    assert bound is not None
    return bound


@settings(max_examples=60)
@given(cases(largest=8))
def test_never_above_the_optimum(case: Case) -> None:
    """No release loses less, with and without suppression."""
    best = case.optimum()
    for effort in ("quick", "normal", "thorough"):
        assert bound_of(case.problem(), effort).value <= best + case.slack(best)


@settings(max_examples=40)
@given(cases(largest=7, suppression=False))
def test_never_above_the_freeform_optimum(case: Case) -> None:
    """Nor does any cover by sets of k records, of which each record lies in k."""
    problem, best = case.problem().replace(recoding=Freeform()), case.cover_optimum()
    for effort in ("quick", "normal", "thorough"):
        assert bound_of(problem, effort).value <= best + case.slack(best)


@settings(max_examples=60)
@given(ruled_cases())
def test_holds_under_rules_and_for_the_largest_loss(case: Case) -> None:
    """Diversity and limits only raise the optimum; the largest loss is bounded by k-sets."""
    best = case.optimum()
    assert bound_of(case.problem()).value <= best + case.slack(best)


@settings(max_examples=40)
@given(
    larger_problems(6, 12),
    st.sampled_from([1.3, 2.5, 6.0]),
    st.sampled_from([3, 40, 100_000]),
)
def test_no_set_undercuts_its_duals(problem: Problem, factor: float, each: int) -> None:
    """The duals of any k or more records add up to no more than these cost, however much is cut."""
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), 1e9, Budget())
    duals.raise_to_k_sets()
    assert duals.ascend(factor, each)
    assert least_left(problem, duals.terms()) >= -1e-12


@settings(max_examples=40)
@given(larger_problems(6, 12, 6))
def test_no_set_undercuts_its_pairs(problem: Problem) -> None:
    """Half of what each row loses with its nearest, of losses scaled so that pairs bound sets."""
    duals = duals_of(problem)
    if not bounds_by_pairs(duals.search.rows.tables):
        assert problem.objective.name == "leaning"
        return
    sums = PairSums(duals.search, problem.k)
    sums.go_on(Budget())
    assert sums.complete
    duals.duals = sums.duals
    assert least_left(problem, duals.terms()) >= -1e-12


def test_pairs_by_hand() -> None:
    """With k = 4 four gaps pass a middle: 0, 0, 1, 1 lose all that their pairs do."""
    problem = Case((Column((0.0, 0.0, 1.0, 1.0)),), 4, LOSSES["gcp"]).problem()
    sums = PairSums(duals_of(problem).search, 4)
    sums.go_on(Budget())
    # Two of the three nearest lie on the other side; two distinct rows, 4 / 2 times 2 / 4.
    assert sums.duals.tolist() == [1.0, 1.0]


def test_pairs_prove_more_where_columns_are_many() -> None:
    """Of thirty answers a record, where sets of ten are far more than their furthest pair."""
    table = answers().head(150)
    attributes = tuple(Attribute(name, "numeric") for name in table)
    problem = Problem(Microdata(table, attributes), 10)
    bound = next(
        one for one in Ladder(problem, "quick", Budget())._steps() if one and "pairs" in one.method
    )
    nearest = nearest_neighbour_bound(problem)
    assert nearest is not None
    assert bound.value > 1.5 * nearest.value
    assert bound.value < mondrian(problem).objective


@settings(max_examples=40)
@given(larger_problems(6, 12))
def test_k_sets_are_the_least_losses(problem: Problem) -> None:
    """A record's term is the least loss of the sets of k that hold it, by looking at all."""
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), 1e9, Budget())
    assert duals.raise_to_k_sets()
    sets = np.array(list(combinations(range(problem.n), problem.k)))
    losses = problem.compiled.class_losses(sets) / problem.k
    least = [losses[(sets == i).any(axis=1)].min() for i in range(problem.n)]
    assert duals.terms() == pytest.approx(least, abs=1e-7)


def test_sets_see_more_than_pairs() -> None:
    """Values 0, 1, 2, 10, 11, 12 with k = 3: both triples pay in full, which pairs do not see."""
    problem = Case((Column((0.0, 1.0, 2.0, 10.0, 11.0, 12.0)),), 3, LOSSES["gcp"]).problem()
    assert bound_of(problem).value == pytest.approx(1.0)
    pairs = nearest_neighbour_bound(problem)
    assert pairs is not None
    assert pairs.value == pytest.approx(10 / 12)


@pytest.mark.parametrize("k", [3, *profiles.thorough(5)])
def test_each_rung_is_above_the_last(k: int) -> None:
    """Nearest, pairs, ascent: more work never proves less, and the names say where it stands."""
    problem = Problem(census(200, 5, seed=4), k)
    pairs = nearest_neighbour_bound(problem)
    bounds = [bound_of(problem, effort) for effort in ("quick", "normal", "thorough")]
    assert pairs is not None
    values = [bound.value for bound in (pairs, *bounds)]
    assert values == sorted(values)
    assert values[0] < 0.9 * values[1] < 0.9 * values[2]
    guided = "column generation, dual ascent"
    assert [bound.method for bound in bounds] == ["dual ascent", guided, guided]
    assert values[-1] <= solve(problem, "local-search").objective


def test_same_effort_same_bound_whatever_the_steps() -> None:
    """Work is counted, never seconds: all bits are the same in every run."""
    problem = Problem(census(150, 5, seed=7), 4)
    limited = bound_of(problem, "normal", Budget.of(600))
    assert limited.value == bound_of(problem, "normal").value


@settings(max_examples=15)
@given(larger_problems(8, 25, 6), st.integers(1, 9))
def test_goes_on_where_a_budget_ended_it(problem: Problem, asked: int) -> None:
    """Climbed in parts, every effort comes to the same bound, and none on the way is lower."""
    highest = -np.inf
    # A thorough climb begins with those of the others; longer parts are fewer.
    efforts, longer = (EFFORTS, 1) if profiles.NAME == "thorough" else (("quick", "thorough"), 8)
    for effort in efforts:
        whole = bound_of(problem, effort)
        assert whole.value >= highest
        climb, highest, parts = Ladder(problem, effort, Budget()), -np.inf, 0
        while not climb.ended:
            bound = climb.climb(CountedBudget(asked + longer * parts, Stopped.TIME))
            assert bound is not None
            assert bound.value >= highest
            highest, parts = bound.value, parts + 1
        assert (highest, climb.best and climb.best.method) == (whole.value, whole.method)


def test_goes_on_where_a_lower_effort_is_enough() -> None:
    """What was climbed for the sets of a normal effort is the beginning of a thorough one."""
    problem = Problem(census(200, 6, seed=2), 4)
    climb = Ladder(problem, "thorough", Budget())
    found = climb.climb(Budget(), until="normal")
    assert found is not None
    assert found.value == bound_of(problem, "normal").value
    weighed = climb.weighed
    assert weighed is not None
    assert not climb.ended
    assert climb.climb(Budget(), until="normal") == found
    whole = climb.climb(Budget())
    assert whole is not None
    assert whole.value == bound_of(problem, "thorough").value
    assert climb.ended
    assert climb.weighed is weighed


@pytest.mark.crossed
@pytest.mark.parametrize("made", [numbers, coordinates, amounts, mixed])
@pytest.mark.parametrize("scale", [0.003, 0.03])
def test_efforts_do_what_lower_ones_do_first(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[], pd.DataFrame], scale: float
) -> None:
    """Whatever an effort has work for, what it proves on its way is where a higher one begins."""
    for effort, cells in ladder.NUMBERS.cells.items():
        monkeypatch.setitem(ladder.NUMBERS.cells, effort, tuple(scale * one for one in cells))
    frame = made()[:250]
    kinds = ["numeric" if frame[name].dtype.kind in "if" else "categorical" for name in frame]
    attributes = tuple(map(Attribute, frame, kinds))
    problem = Problem(Microdata(frame, attributes), 4)
    ways = [
        [bound.value for bound in Ladder(problem, effort, Budget())._steps() if bound is not None]
        for effort in ("quick", "normal", "thorough")
    ]
    assert len(ways[0]) <= len(ways[1]) <= len(ways[2])
    assert len(ways[0]) < len(ways[2])
    for less, more in pairwise(ways):
        assert more[: len(less)] == less


def test_no_sweep_follows_where_a_program_guides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thorough climb goes on from the program of a normal one: sweeps by factors prove less."""
    swept, ascend = [], RecordDuals.ascend

    def watched(duals: RecordDuals, *settings: Any) -> bool:
        swept.append(settings)
        return ascend(duals, *settings)

    monkeypatch.setattr(RecordDuals, "ascend", watched)
    climb = Ladder(Problem(census(200, 6, seed=2), 4), "thorough", Budget())
    climb.climb(Budget(), until="normal")
    assert climb.program is not None
    before = len(swept)
    climb.climb(Budget())
    assert len(swept) == before


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 30), max_size=300),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_a_part_of_the_lists_is_sorted(losses: list[int], before: int, behind: int) -> None:
    """Equal losses stay in their order, and what lies around them stays where it is."""
    n, values = len(losses), np.array([*[-1] * before, *losses, *[-2] * behind], np.float64)
    sets = GrowingSets.of_sizes(lines=1, words=1, r=0, s=0, p=0)
    lists = NearLists.of_sizes(room=len(values), k=2, t=1, sets=sets)
    lists.losses[:], lists.types[:] = values, np.arange(len(values))
    sort_by_loss(lists, before, before + n)
    order = before + np.argsort(values[before : before + n], kind="stable")
    expected = [*range(before), *order, *range(before + n, len(values))]
    assert lists.types.tolist() == expected
    assert (lists.losses == values[expected]).all()


@pytest.mark.parametrize("cells", [3e6, 5e6, 1e7])
def test_no_work_goes_into_a_sweep_that_is_cut_short(
    monkeypatch: pytest.MonkeyPatch, cells: float
) -> None:
    """Duals are raised farther only where what is left suffices for all of them."""
    swept, ascend = [], RecordDuals.ascend

    def watched(duals: RecordDuals, *settings: Any) -> bool:
        swept.append(ascend(duals, *settings))
        return swept[-1]

    monkeypatch.setattr(RecordDuals, "ascend", watched)
    monkeypatch.setitem(ladder.NUMBERS.cells, "normal", (0.0, cells, cells))
    bound_of(_measurements())
    assert swept
    assert all(swept[1:])


@pytest.mark.parametrize(("cells", "sweeps"), [(2.4e5, False), (3e6, True)])
def test_a_sweep_needs_work_for_all(
    monkeypatch: pytest.MonkeyPatch, cells: float, *, sweeps: bool
) -> None:
    """With little for each row it would prove less than sums over pairs, which are known."""
    monkeypatch.setitem(ladder.NUMBERS.cells, "quick", (0.0, 1e5, 1e5))
    monkeypatch.setitem(ladder.NUMBERS.cells, "normal", (0.0, cells, cells))
    assert ("dual ascent" in bound_of(_measurements()).method) is sweeps


@pytest.mark.parametrize("factor", [1.1, 1.4, 1.7])
def test_a_sample_tells_what_a_sweep_takes(factor: float) -> None:
    """Within a factor of three of an ascent's work; what is left decides, and no dual moves."""
    problem = _measurements()
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), 1e12, Budget())
    before, begun = duals.duals.copy(), duals.spent
    told = duals.work_of(duals.caps_of(factor), 10**6)
    assert (duals.duals == before).all()
    assert begun < duals.spent < begun + told
    begun = duals.spent
    assert duals.ascend(factor, 10**6)
    assert told / 3 < duals.spent - begun < 3 * told
    duals.allow_more(0.5 * told)
    assert duals.work_of(duals.caps_of(factor), 10**6) == np.inf


def _measurements() -> Problem:
    numbers = np.random.default_rng(1).normal(size=(200, 6)).round(3)
    frame = pd.DataFrame(numbers, columns=list("abcdef"))
    return Problem(Microdata(frame, tuple(Attribute(name) for name in "abcdef")), 4)


@pytest.mark.parametrize("cells", [1e3, 2e4, 2e5, 2e6])
def test_effort_ends_the_work_and_not_the_proof(
    monkeypatch: pytest.MonkeyPatch, cells: float
) -> None:
    """Wherever it ends, the bound holds and is no lower than nearest neighbours."""
    problem = Problem(census(120, 5, seed=5), 4)
    whole = bound_of(problem).value
    monkeypatch.setitem(ladder.NUMBERS.cells, "normal", (0.0, cells, cells))
    pairs = nearest_neighbour_bound(problem)
    assert pairs is not None
    assert pairs.value <= bound_of(problem).value <= whole


def test_no_time_leaves_what_is_there() -> None:
    """A budget that is spent gives the bound of records that are published exactly."""
    problem = Problem(census(60, 4, seed=5), 3)
    bound = bound_of(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert bound.method == "nearest-neighbour (cut short)"


@settings(max_examples=25)
@given(cases(largest=7, suppression=False))
def test_weaker_notions_take_k_sets_alone(case: Case) -> None:
    """Where records lie in sets of different sizes, what each pays by itself is all that holds."""
    for recoding in (KOne(), KK()):
        problem = case.problem().replace(recoding=recoding)
        bound = bound_of(problem, "thorough")
        assert not bound.method.startswith("dual")
        # (k,1): every record takes the cheapest set of k that holds it.
        total = sum(
            min(
                record_loss(case.columns, case.loss.naive, group)
                for group in combinations(range(case.n), case.k)
                if i in group
            )
            for i in range(case.n)
        )
        assert bound.value <= total + case.slack(total)


def test_degrees_take_k_sets_alone() -> None:
    """Records with degrees of their own lie in sets of several sizes."""
    recoding = Freeform(degrees=(2, 2, 3, 3, 3, 2, 2))
    problem = Problem(census(7, 3, seed=1), 2, recoding)
    assert bound_of(problem).method == "nearest-neighbour"


def test_the_largest_loss_takes_the_largest_term() -> None:
    """With the maximum over the records nothing is summed."""
    bound = bound_of(Problem(census(60, 4, seed=1), 3, objective=Bottleneck()))
    assert bound.method == "k-sets"


def test_losses_without_tables_stay_with_nearest_neighbours() -> None:
    """What cannot be searched by kernels has no rung here."""
    case = Case((Column((1.0, 2.0, 4.0, 9.0)), Column((1.0, 5.0, 2.0, 2.0))), 2, PRODUCT)
    assert ladder_bound(case.problem()) is None
    found = lower_bound(case.problem())
    assert found is not None
    assert found.method.startswith("nearest-neighbour")


def duals_of(problem: Problem, cells: float = 1e9) -> RecordDuals:
    """Return duals that stand at their k-set terms."""
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), cells, Budget())
    duals.raise_to_k_sets()
    return duals


def least_left(problem: Problem, terms: np.ndarray) -> float:
    """Return what sets of k or more records leave at least of their cost, by looking at all."""
    least = np.inf
    for size in range(problem.k, problem.n + 1):
        sets = np.array(list(combinations(range(problem.n), size)))
        left = problem.compiled.class_losses(sets) - terms[sets].sum(axis=1)
        least = min(least, float(left.min()))
    return least


@settings(max_examples=30)
@given(larger_problems(6, 11), st.integers(0, 10**6), st.sampled_from([3, 40, 100_000]))
def test_no_set_undercuts_duals_raised_to_any_aims(problem: Problem, seed: int, each: int) -> None:
    """Whatever is aimed at, duals stay feasible, and the sets that stopped them are sets of k."""
    duals = duals_of(problem)
    random = np.random.default_rng(seed)
    for most in (1.0, 4.0):
        aims = duals.floors + random.uniform(-0.5, most, len(duals.floors)) * np.abs(duals.floors)
        complete, members = duals.ascend_to(aims, each), duals.binding_sets()
        assert complete
        assert (duals.duals <= np.maximum(aims, duals.floors) + 1e-12).all()
        assert least_left(problem, duals.terms()) >= -1e-12
        for one in members:
            assert (np.bincount(one, minlength=len(duals.counts)) <= duals.counts).all()


@pytest.mark.thorough
@settings(max_examples=40)
@given(larger_problems(6, 11), st.integers(0, 10**6), st.sampled_from([0, 20, 200, 10**9]))
def test_boxes_leave_what_the_least_set_leaves(problem: Problem, seed: int, each: int) -> None:
    """Around every record: the least slack by looking at all sets, or less where it is cut."""
    duals, k = duals_of(problem), problem.k
    random, search = np.random.default_rng(seed), duals.search
    aims = duals.floors + random.uniform(0.0, 2.0, len(duals.floors)) * np.abs(duals.floors)
    sets = np.array(list(combinations(range(problem.n), k)))
    types = duals._inverse[sets]
    slacks = problem.compiled.class_losses(sets) - k * duals._constant - aims[types].sum(axis=1)
    scale = 1.0 + float(np.abs(aims).max())
    limit, radius = 2.0 * k * scale, 10.0 * k * scale
    for row in np.flatnonzero(duals.counts < k):
        for copies in range(1, duals.counts[row] + 1):
            near = gather_near(search, duals.floors, row, radius)
            most = int(search.work[0]) + each
            found = least_slack_by_boxes(search, aims, duals.floors, near, row, copies, limit, most)
            holding = (types == row).sum(axis=1) == copies
            least = min(limit, float(slacks[holding].min(initial=np.inf)))
            assert found <= least + 1e-7 * scale
            if each == 10**9:
                assert found == pytest.approx(least, abs=1e-6 * scale)


@settings(max_examples=30)
@given(larger_problems(6, 11), st.sampled_from([1e4, 1e5, 1e9]))
def test_no_set_undercuts_the_duals_of_any_round(problem: Problem, cells: float) -> None:
    """Wherever the rounds end, no set of k or more records costs less than its duals."""
    duals = duals_of(problem, cells)
    for _ in guided_ascent(duals, NearProgram(duals, Budget())):
        assert least_left(problem, duals.terms()) >= -1e-12


@pytest.mark.parametrize("k", [3, 5])
def test_comes_near_the_linear_program(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """What plain ascents leave of the linear program over all sets is closed but for a percent."""
    problem = Problem(census(150, 5, seed=4), k)
    release = solve(problem, "ordered-cut", bound=False)
    whole, solved = relaxation_bound(problem, [release], effort="thorough", budget=Budget())
    guided = ladder_bound(problem, effort="thorough")
    never = replace(ladder.NUMBERS, guided=np.inf, guided_early=np.inf, guided_capped=np.inf)
    monkeypatch.setattr(ladder, "NUMBERS", never)
    plain = ladder_bound(problem, effort="thorough")
    assert solved
    assert whole is not None
    assert guided is not None
    assert plain is not None
    assert guided.method == "column generation, dual ascent"
    assert plain.value < 0.99 * guided.value
    assert 0.99 * whole.value < guided.value <= whole.value * (1 + 1e-9)


def test_a_round_aims_no_farther_than_there_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all can be proven, a capped round ends, and says more than one that is cut."""
    problem, proven = Problem(census(200, 8, 3), 8), {}
    for cells, capped in product((1e7,) if profiles.NAME == "ci" else (1e7, 1e9), (True, False)):
        share = 0.9 if capped else np.inf
        monkeypatch.setattr(ladder, "NUMBERS", replace(ladder.NUMBERS, fitting=share))
        duals = duals_of(problem, cells)
        rounds = iter(guided_ascent(duals, NearProgram(duals, Budget())))
        proven[cells, capped] = next(rounds), duals.value
    (cut, lower), (complete, higher) = proven[1e7, False], proven[1e7, True]
    assert (cut, complete, lower < higher) == (False, True, True)
    assert proven.get((1e9, True)) == proven.get((1e9, False))  # with work for all


@pytest.mark.parametrize("rounds", [1, 3, 9])
def test_time_ends_the_rounds_and_not_the_proof(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """With the budget spent in any round the bound is one, and no lower than that of k-sets."""
    problem, budget = Problem(census(120, 5, seed=5), 4), Budget.of(600)
    whole, sets = (ladder_bound(problem, effort=effort) for effort in ("thorough", "quick"))
    improved, calls = SetProgram.improved, iter(range(1, 1_000))

    def ending(program: SetProgram, *arguments: Any) -> np.ndarray:
        if next(calls) == rounds:
            budget.deadline = time.monotonic() - 1.0
        return improved(program, *arguments)

    monkeypatch.setattr(SetProgram, "improved", ending)
    short = ladder_bound(problem, effort="thorough", budget=budget)
    assert whole is not None
    assert sets is not None
    assert short is not None
    assert next(calls) > rounds
    assert sets.value <= short.value <= whole.value + 1e-9


def test_rounds_end_where_duals_add_up_to_nothing() -> None:
    """Beside a constant of 1e9, rounding leaves duals of both signs: no share of 0 is a gain."""

    def beside_a_constant(record: Any) -> Any:
        return 1e9 + record.spread["a"]

    table = table_of({"a": list("xxyyyy")})
    duals = duals_of(Problem(table, 3, objective=objective(beside_a_constant)))
    assert len(list(islice(guided_ascent(duals, NearProgram(duals, Budget())), 20))) < 5


def test_program_finds_the_best_duals_of_its_sets() -> None:
    """Of random sets, against a simplex method; sets that are known are not added again."""
    random = np.random.default_rng(3)
    t, k = 30, 3
    counts = random.integers(1, 3, t)
    members = np.sort(np.array([random.permutation(t)[:k] for _ in range(200)]), axis=1)
    costs = random.uniform(0.5, 2.0, len(members))
    program = SetProgram(counts, k, 0.4)
    assert program.add(members.astype(np.int32), costs) == len(np.unique(members, axis=0))
    assert program.add(members[:5].astype(np.int32), costs[:5]) == 0
    found = program.improved(np.full(t, 0.4), np.zeros(t), np.ones(t), 4_000, Budget())
    _, first = np.unique(members, axis=0, return_index=True)
    matrix = np.zeros((len(first), t))
    np.put_along_axis(matrix, members[first], 1.0, axis=1)
    exact = linprog(-counts, A_ub=matrix, b_ub=costs[first], bounds=(0, 1))
    assert found @ counts == pytest.approx(-exact.fun, rel=5e-3)
    assert (matrix @ found - costs[first]).max() <= 5e-3
