"""Column generation equals brute force and the models, and claims no more than it proves."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    SSE,
    Bottleneck,
    Budget,
    Diversity,
    InputError,
    Microdata,
    NoSolution,
    Problem,
    Solution,
    UnsupportedObjective,
    census,
    load_instance,
)
from anonymip.enumeration.cluster_sets import Columns
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.classes.small import solve_small
from anonymip.exact.column_generation import improving_releases, proving
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.column_generation.conditions import column_rules
from anonymip.exact.column_generation.run import Run
from anonymip.exact.column_generation.settings import WORK
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.exact.trust import is_too_fine
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.recodings import KK, EquivalenceClasses, Freeform
from anonymip.runtime.budget import Progress
from anonymip.status import Stopped
from tests import profiles
from tests.brute_force import Column
from tests.by_hand import table_of
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.member_losses import MemberCase, member_cases
from tests.random_problems import (
    Case,
    Loss,
    cases,
    larger_microdata,
    ruled_cases,
    without_diversity,
)


def assert_equals(solution: Solution, best: float) -> None:
    """Assert that a solution has the least loss and says so, where solvers can tell it."""
    scale = max(1.0, abs(best))
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert solution.bound is not None
    assert solution.bound.value <= best + 1e-6 * scale
    fine = best == 0 or is_too_fine(solution.problem, best, by_cells=False)
    assert solution.is_optimal or fine


@settings(max_examples=80)
@given(case=cases())
def test_classes_equal_brute_force(case: Case) -> None:
    """All kinds of columns and objectives, ties and copies, with and without suppression."""
    problem = case.problem()
    assume(problem.compiled.superadditive)
    assert_equals(column_generation(problem), case.optimum())


@settings(max_examples=60)
@given(case=cases(suppression=False, largest=6))
def test_covers_equal_brute_force(case: Case) -> None:
    """All kinds of columns and objectives that are monotone, ties and copies."""
    problem = case.problem().replace(recoding=Freeform())
    assume(problem.compiled.monotone)
    assert_equals(column_generation(problem), case.cover_optimum())


@settings(max_examples=60)
@given(case=ruled_cases())
def test_rules_are_kept(case: Case) -> None:
    """Limits and diversity, under which classes of 2k records and more may be needed."""
    plain = replace(case, worst=False)
    problem = plain.problem()
    assume(problem.compiled.superadditive)
    assert_equals(column_generation(problem), plain.optimum())


@settings(max_examples=40)
@given(case=ruled_cases(largest=6))
def test_covers_keep_limits(case: Case) -> None:
    """Where limits leave no cover, there is no solution."""
    limited = without_diversity(replace(case, worst=False, suppression=False))
    problem = limited.problem().replace(recoding=Freeform())
    assume(problem.compiled.monotone)
    best = limited.cover_optimum()
    if math.isinf(best):
        with pytest.raises(NoSolution):
            column_generation(problem)
    else:
        assert_equals(column_generation(problem), best)


def test_diversity_may_need_larger_classes() -> None:
    """Half of every class is a: of aaabbb with k = 3 no two classes can be made, but one of 2k."""
    data = table_of({"a": [1, 2, 3, 7, 8, 9], "s": list("aaabbb")}, "s")
    solution = column_generation(Problem(data, 3, diversity=Diversity(l=2)))
    assert solution.is_optimal
    assert solution.sizes.tolist() == [6]


@pytest.mark.crossed
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 3])
def test_classes_equal_the_model(seed: int, k: int) -> None:
    """Set partitioning in a solver has the same optimum, with and without suppression."""
    recoding = EquivalenceClasses(suppression=seed % 2 == 1)
    problem = Problem(larger_microdata(seed, 13), k, recoding)
    own = column_generation(problem)
    model = equivalence_mip(problem, formulation="set-partition")
    assert own.objective == pytest.approx(model.objective, rel=1e-6)
    assert own.is_optimal == model.is_optimal or own.is_optimal


def test_rows_that_are_left_out_are_no_classes() -> None:
    """At most three classes of 4 fit into 14 records; those left out come on top of them."""
    problem = Problem(larger_microdata(1148, 14), 4, EquivalenceClasses(suppression=True))
    best = solve_small(problem, seed=0)
    assert best.proven
    assert column_generation(problem).objective == pytest.approx(best.objective)
    assert len(set(best.labels.tolist()) - {-1}) + (best.labels == -1).sum() > 14 // 4


@pytest.mark.crossed
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 3])
def test_covers_equal_the_model(seed: int, k: int) -> None:
    """Set covering in a solver has the same optimum."""
    problem = Problem(larger_microdata(seed, 13), k, Freeform())
    own = column_generation(problem)
    model = freeform_mip(problem, formulation="set-cover")
    assert own.objective == pytest.approx(model.objective, rel=1e-6)
    assert own.is_optimal


@settings(max_examples=30)
@given(member_cases(40, 900))
def test_losses_of_members_equal_brute_force(case: MemberCase) -> None:
    """Squared errors, and a function of the members that is declared superadditive."""
    solution, best = column_generation(case.problem()), case.optimum()
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert solution.bound is None or solution.bound.value <= best + 1e-9 * max(1.0, best)
    assert solution.is_optimal


@pytest.mark.parametrize(("n", "most"), [(9, 40), (12, 1000), (20, 1000), (25, 1000)])
def test_heavy_tails_hide_no_optimum(n: int, most: int) -> None:
    """What a table is spread over blurs the differences that a solver sees; branches see them."""
    draw = np.random.default_rng(n)
    numbers = {"x": draw.integers(0, 10, n), "y": draw.choice([0, 0, 1, most], n)}
    data = table_of(numbers)
    assert column_generation(Problem(data, k=3, objective=SSE("none"))).is_optimal


def test_columns_that_duals_undercut_by_rounding_hold_nothing_up() -> None:
    """An exact search that ends with many columns does not end with known ones in each round."""
    draw = np.random.default_rng(15)
    far = draw.choice([0, 0, 0, 1, 2, 1e6], 15)
    numbers = {
        "a": far,
        "b": np.round(draw.lognormal(2, 2, 15), 1),
        "c": draw.integers(0, 1000, 15),
    }
    data = table_of(numbers)
    assert column_generation(Problem(data, 8, objective=SSE("none"))).is_optimal


def test_a_dear_suppression_hides_no_optimum() -> None:
    """What no cheaper release can pay for is no column beside those of a small loss."""
    draw = np.random.default_rng(61)
    numbers = {"a": draw.choice([0, 0, 1, 40], 24), "b": np.round(draw.lognormal(2, 2, 24), 1)}
    data = table_of(numbers)
    recoding = EquivalenceClasses(suppression_price=1e5)
    assert column_generation(Problem(data, 4, recoding, SSE())).is_optimal


def test_squared_errors_of_more_records_take_cuts_and_dives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of tables beyond the few that heuristics leave alone, a proof ends with the optimum."""
    monkeypatch.setattr(proving, "CUTTING", replace(proving.CUTTING, few=-1))
    points = np.random.default_rng(2).lognormal(size=(75, 3))
    data = table_of(pd.DataFrame(points, columns=["a", "b", "c"]))
    problem = Problem(data, 3, objective=SSE())
    solution = column_generation(problem)
    assert solution.is_optimal
    assert solution.objective <= local_search(problem).objective * (1 + 1e-9)
    assert any("cuts in" in remark for remark in solution.trace)


@settings(max_examples=20)
@given(case=cases(suppression=False, largest=6), freeform=st.booleans())
def test_losses_without_tables_equal_brute_force(case: Case, freeform: bool) -> None:
    """A loss that looks at several attributes at once, declared monotone."""
    general = replace(case, loss=PRODUCT)
    problem = general.problem()
    if freeform:
        solution = column_generation(problem.replace(recoding=Freeform()))
        best = general.cover_optimum()
    else:
        solution, best = column_generation(problem), general.optimum()
    assert solution.objective == pytest.approx(best, rel=1e-6)
    assert solution.bound is not None
    assert solution.bound.value <= best * (1 + 1e-9)
    assert solution.is_optimal


@pytest.mark.parametrize("loss", [FALLING, SWINGING])
@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
def test_a_loss_without_the_property_is_refused(
    loss: Loss, recoding: EquivalenceClasses | Freeform
) -> None:
    """The refusal names two sets of records that show it, which the loss confirms."""
    columns = (Column((1, 2, 3, 7, 8, 9, 20)), Column((1, 5, 2, 8, 1, 3, 4)))
    case = Case(columns, 2, loss)
    with pytest.raises(UnsupportedObjective) as caught:
        column_generation(case.problem().replace(recoding=recoding))
    named = re.findall(r"\{([\d, ]+)\}", caught.value.message)
    first, second = ([int(record) - 1 for record in one.split(",")] for one in named)
    if isinstance(recoding, Freeform):
        assert set(first) < set(second)
        assert case.set_loss(first) > case.set_loss(second)
    else:
        assert not set(first) & set(second)
        cost = [len(one) * case.set_loss(one) for one in (first, second, first + second)]
        assert cost[0] + cost[1] > cost[2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"recoding": KK()}, "classes and freeform covers"),
        ({"recoding": Freeform(reciprocal=True)}, "reciprocal"),
        ({"recoding": Freeform(degrees=(3,) * 11 + (4,))}, "differ in size"),
        ({"objective": Bottleneck(GCP())}, "the largest of a record"),
    ],
)
def test_other_problems_are_refused(change: dict[str, Any], reason: str) -> None:
    """What columns do not model is told, with a remedy."""
    problem = Problem(census(12, 3, 0), 3).replace(**change)
    with pytest.raises((InputError, UnsupportedObjective), match=reason) as caught:
        column_generation(problem)
    assert caught.value.remedy


@pytest.mark.thorough
def test_too_many_listed_sets_are_refused() -> None:
    """A loss without tables on a table of many records is no work for a list of all sets."""
    problem = Problem(census(60, 3, 0), 3, objective=PRODUCT.objective)
    with pytest.raises(InputError, match="more than 500,000"):
        column_generation(problem)


@pytest.mark.thorough("recoding1")
@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
def test_time_ends_it_with_release_and_bound(recoding: EquivalenceClasses | Freeform) -> None:
    """Within a short time there is a checked release; the bound is of the rounds so far."""
    problem = Problem(census(250, 6, 0), 4, recoding)
    column_generation(Problem(census(10, 6, 0), 4, recoding))
    begin = time.monotonic()
    solution = column_generation(problem, budget=Budget.of(0.6 if profiles.NAME == "ci" else 1.5))
    assert time.monotonic() - begin < 10
    assert solution.status.stopped in (Stopped.TIME, Stopped.OPTIMAL)
    assert solution.bound is None or solution.bound.value <= solution.objective


def test_an_interrupt_ends_it_with_what_is_known() -> None:
    """The release and the bound at the first interrupt are the result."""
    budget = Budget()

    def stop(message: Progress) -> None:
        if message.bound is not None:
            budget.interrupt()

    budget.progress = stop
    solution = column_generation(Problem(census(120, 6, 0), 3), budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT
    assert solution.bound is not None
    assert 0 < solution.bound.value < solution.objective


@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
def test_messages_never_contradict_each_other(recoding: EquivalenceClasses | Freeform) -> None:
    """Bounds rise, losses fall, and no bound lies above a loss."""
    told: list[Progress] = []
    solution = column_generation(
        Problem(census(40, 5, 1), 3, recoding), budget=Budget(progress=told.append)
    )
    bounds = [message.bound for message in told if message.bound is not None]
    losses = [message.incumbent for message in told if message.incumbent is not None]
    assert bounds == sorted(bounds)
    assert losses[-1] == pytest.approx(solution.objective)
    assert max(bounds) <= solution.objective * (1 + 1e-6)


@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
def test_same_seed_same_result(recoding: EquivalenceClasses | Freeform) -> None:
    """Release, bound and remarks repeat."""
    problem = Problem(census(60, 6, 0), 3, recoding)
    first, second = (column_generation(problem, seed=3, effort="quick") for _ in range(2))
    assert first.objective == second.objective
    assert first.bound is not None
    assert second.bound is not None
    assert first.bound.value == second.bound.value
    assert first.trace == second.trace


@pytest.mark.thorough
def test_little_memory_costs_proofs_and_no_truth() -> None:
    """Of fewer sets than a target has the bound still holds, and what it takes is said."""
    problem = Problem(census(40, 4, seed=3, mixed=True), 4)
    best = column_generation(problem, effort="thorough")
    short = column_generation(problem, effort="thorough", memory=0.001)
    assert best.is_optimal
    assert short.bound is not None
    assert short.bound.value <= best.objective * (1 + 1e-9)
    assert short.objective >= best.objective * (1 - 1e-9)
    assert any("columns, which 1 MB hold" in line for line in short.trace)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="memory is"):
            column_generation(problem, memory=wrong)


@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
def test_the_bound_alone(recoding: EquivalenceClasses | Freeform) -> None:
    """The linear program alone bounds, and its duals are feasible and add up to the bound."""
    problem = Problem(census(16, 4, 0), 3, recoding)
    alone = column_generation(problem, bound_only=True)
    assert alone.bound is not None
    proof = alone.bound.duals
    assert proof is not None
    assert proof.pool is None
    assert proof.value == pytest.approx(alone.bound.value, rel=1e-7)
    assert alone.bound.value <= column_generation(problem).objective
    for size in range(proof.smallest, proof.largest + 1):
        sets = np.array(list(combinations(range(problem.n), size)))
        costs = problem.compiled.class_losses(sets) / (size if proof.weight == "one" else 1)
        reduced = costs - proof.duals[sets].sum(axis=1) + proof.count_dual
        assert reduced.min() >= -1e-9


def test_a_start_is_never_worsened() -> None:
    """With the optimum as the start the result is the optimum."""
    problem = Problem(census(30, 5, 2), 3)
    best = column_generation(problem)
    again = column_generation(problem, start=best.assignment, effort="quick", bound_only=True)
    assert again.objective == pytest.approx(best.objective)


#: Instance, n, k, optimum.
CLASSES_OF_CENSUS = [
    ("census-1k", 20, 3, 32.6157),
    ("census-1k", 50, 3, 52.3947),
    ("census-1k", 50, 5, 85.5263),
]
COVERS_OF_CENSUS = [(14, 3, 11.5503), (50, 3, 24.1588), (50, 5, 42.9735), (50, 10, 77.9118)]


def rows_of_census(name: str, n: int) -> Microdata:
    """Return some rows of an extract, drawn as in the table of optima."""
    data = load_instance(name)
    return data.take(np.random.default_rng(0).permutation(data.n)[:n])


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "n", "k", "optimum"), CLASSES_OF_CENSUS)
def test_classes_of_census(name: str, n: int, k: int, optimum: float) -> None:
    """Optima that another implementation has proven."""
    solution = column_generation(Problem(rows_of_census(name, n), k))
    assert solution.is_optimal
    assert solution.objective == pytest.approx(optimum, abs=1e-3)


@pytest.mark.shared_data
def test_mixed_classes_of_census() -> None:
    """Six attributes are categorical; their domains hold values that no record has."""
    rows = rows_of_census("census-1k-mixed", 50)
    attributes = [
        attribute
        if attribute.kind == "numeric"
        else replace(attribute, domain=(*level.tolist(), *range(1000, 1000 + size - len(level))))
        for attribute, level, size in zip(
            rows.attributes, rows.levels, (2, 0, 6, 7, 83, 0, 7, 47), strict=True
        )
    ]
    solution = column_generation(Problem(Microdata(rows.frame, tuple(attributes)), 3))
    assert solution.is_optimal
    assert solution.objective == pytest.approx(31.850, abs=1e-3)


@pytest.mark.thorough("50-5-42.9735")
@pytest.mark.shared_data
@pytest.mark.parametrize(("n", "k", "optimum"), COVERS_OF_CENSUS)
def test_covers_of_census(n: int, k: int, optimum: float) -> None:
    """Optima that another implementation has proven."""
    solution = column_generation(Problem(rows_of_census("census-10k", n), k, Freeform()))
    assert solution.is_optimal
    assert solution.objective == pytest.approx(optimum, abs=1e-3)


def test_columns_that_leave_rows_uncovered_are_no_release() -> None:
    """A solver of integer programs may round costs of 1e12 away and leave a row out."""
    problem = Problem(census(6, 3, seed=1), 2)
    run = Run(problem, column_rules(problem))
    columns = Columns(np.array([0, 2, 4]), np.array([0, 1, 2, 3], np.int32), np.ones(2))
    assert not run.offer_columns(columns, np.array([1, 1]))
    assert run.incumbent is None


@pytest.mark.parametrize("seed", range(3))
def test_losses_below_the_tolerances_are_compared_exactly(seed: int) -> None:
    """Two clusters a billion apart: what their classes lose is too little for a linear program."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 1e9], 12) + rng.integers(0, 40, 12) / 8
    problem = Problem(table_of({"x": values}), 3)
    solution = column_generation(problem)
    assert solution.objective == pytest.approx(equivalence_mip(problem).objective)
    assert solution.is_optimal


def test_columns_that_were_not_all_found_are_not_said_to_be_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search for them looks at no more sets than the effort allows, and ends before."""
    work = {"quick": replace(WORK["quick"], searched=50_000)}
    monkeypatch.setattr("anonymip.exact.column_generation.column_generation.WORK", work)
    found = column_generation(Problem(census(60, 4, seed=1), 4), effort="quick")
    assert "100% of the gap: not all columns were found" in found.trace
    assert not any("more than" in remark for remark in found.trace)
    assert not found.is_optimal


@pytest.mark.thorough("cbc")
@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_efforts_limit_the_nodes_of_every_solver(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of the master's columns is not searched for good, by whatever solver."""
    allowed: list[int | None] = []

    def seen(_rules: object, _columns: object, mip: Mip, start: object = None) -> Any:
        allowed.append(mip.options.node_limit)
        return None, None

    monkeypatch.setattr(improving_releases, "solve_whole", seen)
    column_generation(Problem(census(60, 4, seed=1), 4), solver=solver)
    assert set(allowed) == {WORK["normal"].nodes}


@pytest.mark.parametrize("limit", [None, 600.0])
def test_iterations_are_counted_where_no_time_ends_pools(
    limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pools together take as many as the effort allows; where time has a limit, that ends."""
    allowed: list[int | None] = []
    search, most = proving.solve_pool, WORK["thorough"].iterations
    assert most is not None

    def seen(*args: Any, **kwargs: Any) -> Any:
        allowed.append(kwargs["max_iterations"])
        return replace(search(*args, **kwargs), iterations=most // 2 + 1)

    monkeypatch.setattr(proving, "solve_pool", seen)
    budget = Budget.of(limit)
    found = column_generation(
        Problem(census(30, 8, 1, mixed=True), 5), effort="thorough", budget=budget
    )
    assert found.is_optimal == (limit is not None)
    expected = [most, most - most // 2 - 1, *[0] * len(allowed)][: len(allowed)]
    assert len(allowed) > 1
    assert found.bound is not None
    assert found.bound.value <= found.objective
    assert allowed == (expected if limit is None else [None] * len(allowed))


def test_a_target_that_takes_too_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool is not searched in part where the last one took as much for fewer columns."""
    problem = Problem(census(30, 8, 1, mixed=True), 5)
    proven = column_generation(problem)
    assert proven.is_optimal
    search = proving.solve_pool
    searched = []

    def slower(*args: Any, **kwargs: Any) -> Any:
        answer = search(*args, **kwargs)
        searched.append(answer)
        # As much as is left to the next one; its columns are more.
        return replace(answer, work=0.5 * kwargs["max_nodes"])

    monkeypatch.setattr(proving, "solve_pool", slower)
    found = column_generation(problem)
    assert len(searched) == 1
    assert not found.is_optimal
    assert any(remark.endswith(" columns, left") for remark in found.trace)
    assert found.bound is not None
    assert proven.bound is not None
    assert searched[0].bound <= found.bound.value <= proven.bound.value
