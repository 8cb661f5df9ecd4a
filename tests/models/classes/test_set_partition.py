"""Set partitioning: its optimum, its points, its columns, what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Apart,
    Classes,
    EquivalenceClasses,
    InputError,
    InvalidAssignment,
    Problem,
    census,
    class_objective,
    load_instance,
)
from anonymip.enumeration import enumerate_sets
from anonymip.models import build, read, set_start
from anonymip.models.parts.set_columns import set_partition_size
from anonymip.solvers import solve_model
from anonymip.status import Stopped
from tests import brute_force
from tests.brute_force import Column, Rules
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.models.pair_formulations import violations
from tests.random_problems import LOSSES, Case, cases, microdata, ruled_cases, tables


def check_optimum(problem: Problem, best: float, **choices: Any) -> None:
    """Build, solve, read, and compare with the optimum."""
    model = build(problem, "set-partition", **choices)
    result = solve_model(model)
    assert result.stopped is Stopped.OPTIMAL
    slack = 1e-6 * max(1.0, abs(best))
    assert result.objective == pytest.approx(best, abs=slack)
    classes = read(model)
    problem.recoding.check(problem, classes)
    loss = problem.compiled.total(problem.recoding.describe(problem, classes), classes)
    assert loss == pytest.approx(best, abs=slack)


@settings(max_examples=120)
@given(st.one_of(cases(largest=7), ruled_cases(largest=7)), st.booleans())
def test_optimum_of_losses_with_tables(case: Case, merge: bool) -> None:
    """The optimum equals full enumeration: suppression, diversity, limits, the largest loss."""
    check_optimum(case.problem(), case.optimum(), merge=merge)


@settings(max_examples=40)
@given(cases(largest=7), st.integers(0, 2))
def test_optimum_of_the_largest_loss_with_repeated_rows(case: Case, shift: int) -> None:
    """Rows of which there are several may lie in classes of different losses."""
    doubled = tuple(
        replace(column, values=(column.values[shift : shift + 3] * 3)[: max(case.n, 2 * case.k)])
        for column in case.columns
    )
    assume(len(doubled[0].values) >= case.k)
    worst = replace(case, columns=doubled, worst=True)
    check_optimum(worst.problem(), worst.optimum())


@settings(max_examples=40)
@given(ruled_cases(largest=6), st.sampled_from([FALLING, PRODUCT, SWINGING]), st.booleans())
def test_optimum_of_other_losses(case: Case, loss: Any, rules: bool) -> None:
    """Losses that fall and general losses, with and without rules."""
    other = replace(case, loss=loss, rules=case.rules if rules else None)
    check_optimum(other.problem(), other.optimum())


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=4, max_size=8),
    st.integers(2, 3),
)
def test_optimum_of_squared_errors(points: list[tuple[int, int]], k: int) -> None:
    """A loss of members, computed here from the points."""
    values = np.array(points, float)
    columns = tuple(Column(tuple(column), integer=True) for column in zip(*points, strict=True))

    def cost(group: tuple[int, ...]) -> float:
        part = values[list(group)]
        return float(((part - part.mean(axis=0)) ** 2).sum())

    best = brute_force.least_cost_of_classes(len(points), k, cost, Rules(), columns)
    check_optimum(Problem(microdata(columns), k, objective=SSE("none")), best)


@settings(max_examples=80)
@given(
    st.one_of(cases(largest=7), ruled_cases(largest=6)),
    st.sampled_from([None, None, PRODUCT, FALLING]),
    st.sampled_from([0.0, 0.1, 2.0]),
)
def test_upper_bound_loses_no_optimum(case: Case, loss: Any, slack: float) -> None:
    """Sets left out by the loss of a known release are in no better one, rules or not."""
    case = case if loss is None else replace(case, loss=loss)
    best = case.optimum()
    check_optimum(case.problem(), best, upper_bound=best + slack * abs(best))


def test_upper_bound_leaves_sets_out() -> None:
    """On a table of 12 records most sets go, and the optimum stays."""
    problem = Problem(census(12, 3, seed=3), 3)
    everything = build(problem, "set-partition")
    best = solve_model(everything).objective
    assert best is not None
    model = build(problem, "set-partition", upper_bound=best)
    assert len(model.chosen) < len(everything.chosen) / 4
    assert solve_model(model).objective == pytest.approx(best, abs=1e-6)


@settings(max_examples=40)
@given(ruled_cases(largest=5), st.sampled_from([None, FALLING]), st.booleans())
def test_every_release_is_a_point_of_the_model(case: Case, loss: Any, merge: bool) -> None:
    """Each allowed release keeps all rows, and its cost is its loss."""
    if loss is not None:
        case = replace(case, loss=loss)
    problem = case.problem()
    model = build(problem, "set-partition", merge=merge)
    largest = problem.recoding.max_size(problem).size or case.n
    for groups in case.releases():
        classes = Classes.from_groups(groups, case.n)
        set_start(model, classes)
        assert violations(model) == []
        cost, loss_of_groups = pyo.value(model.loss), case.release_loss(groups)
        if max((len(group) for group in groups), default=0) <= largest:
            assert cost == pytest.approx(loss_of_groups, rel=1e-9, abs=1e-9)
            if not merge:
                assert read(model).labels.tolist() == classes.labels.tolist()
        else:  # a class that is never needed is cut, at no loss
            assert cost <= loss_of_groups + case.slack(loss_of_groups)
        returned = read(model)
        problem.recoding.check(problem, returned)
        assert returned.suppressed == (
            0 if not case.suppression else case.n - sum(map(len, groups))
        )


@settings(max_examples=40)
@given(cases(largest=6))
def test_relaxation_lies_between_the_bound_of_neighbours_and_the_optimum(case: Case) -> None:
    """Every record pays its nearest-neighbour term in every set."""
    model = build(case.problem(), "set-partition")
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    root, best = solve_model(model).objective, case.optimum()
    slack = 1e-6 * max(1.0, abs(best))
    assert root is not None
    assert root <= best + slack
    assert root >= (
        brute_force.nearest_neighbour_sum(case.columns, case.k, case.loss.naive, case.suppression)
        - slack
    )


@pytest.mark.parametrize(
    ("instance", "k", "root", "optimum"),
    [
        ("health-records", 3, 0.790702, 0.955090),
        ("wong-5", 2, 5.445450, 7.103556),
        ("aggarwal-4", 2, 5.2, 5.2),
    ],
)
def test_relaxations_of_named_instances(instance: str, k: int, root: float, optimum: float) -> None:
    """The root bounds are pinned beside the optima."""
    model = build(Problem(load_instance(instance), k), "set-partition")
    assert solve_model(model).objective == pytest.approx(optimum, abs=1e-6)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    assert solve_model(model).objective == pytest.approx(root, abs=1e-6)


@settings(max_examples=40)
@given(cases(largest=6))
def test_meaning_of_the_sets(case: Case) -> None:
    """Without merging, shared classes and published ends have names."""
    problem = case.problem()
    model = build(problem, "set-partition", merge=False)
    solve_model(model)
    classes = read(model)
    cells = problem.recoding.describe(problem, classes)
    labels = classes.labels
    for i, other in model.pairs:
        alike = labels[i] == labels[other] and labels[i] >= 0
        assert pyo.value(model.equivalent[i, other]) == pytest.approx(float(alike), abs=1e-6)
    values = problem.microdata.values
    for i, j in model.lower:
        low, high = cells.lower[i, j], cells.upper[i, j]
        if labels[i] < 0:
            low = high = values[i, j]
        scale = 1e-6 * max(1.0, float(np.abs(values[:, j]).max()))
        assert pyo.value(model.lower[i, j]) == pytest.approx(low, abs=scale)
        assert pyo.value(model.upper[i, j]) == pytest.approx(high, abs=scale)


def test_constraints_of_ones_own() -> None:
    """Two records are kept apart by a row on `equivalent`, as in the other formulations."""
    problem = Problem(microdata((Column((0, 0, 0, 9, 9, 9)),)), 2)
    model = build(problem, "set-partition", merge=False)
    model.apart = pyo.Constraint(expr=model.equivalent[0, 1] + model.equivalent[0, 2] == 0)
    assert solve_model(model).objective == pytest.approx(2.0)
    labels = read(model).labels
    assert labels[0] not in (labels[1], labels[2])


def test_merged_rows_by_hand() -> None:
    """Values 1 (four times) and 5 (twice) with k = 2: one variable may take 2."""
    model = build(Problem(microdata((Column((1, 5, 1, 1, 5, 1)),)), 2), "set-partition")
    assert len(model.cover) == 2
    assert sorted(variable.ub for variable in model.chosen.values()) == [1, 1, 1, 2, 2, 2]
    assert solve_model(model).objective == pytest.approx(0.0)
    assert read(model).labels.tolist() in ([0, 1, 0, 0, 1, 0], [0, 1, 0, 2, 1, 2])
    set_start(model, Classes(np.array([0, 1, 0, 2, 1, 2], np.int32)))
    assert sorted(variable.value for variable in model.chosen.values()) == [0, 0, 0, 0, 1, 2]


@settings(max_examples=60)
@given(tables(), st.integers(2, 4), st.booleans())
def test_size_counts_the_sets(columns: tuple[Column, ...], k: int, falling: bool) -> None:
    """Without rules the estimate is the number of multisets of distinct rows."""
    case = Case(columns, k, FALLING if falling else LOSSES["gcp"])
    problem = case.problem()
    types = len(set(zip(*(column.values for column in columns), strict=True)))
    found = enumerate_sets(problem)
    if found.rows.types == types:
        assert set_partition_size(problem) == len(found)
    else:  # columns that cost nothing do not tell rows apart
        assert set_partition_size(problem) > len(found)


def test_size_of_large_tables_is_no_enumeration() -> None:
    """Tables far beyond any enumeration still have an estimate."""
    microdata = census(3000, 6, seed=1)
    assert 10**14 < set_partition_size(Problem(microdata, 3)) < math.comb(3004, 5)
    assert set_partition_size(Problem(microdata, 3, objective=FALLING.objective)) == 10**18


def test_no_release_keeps_the_limits() -> None:
    """A row that no set may hold makes the model infeasible, not wrong."""
    data = microdata((Column(("p", "q", "q"), False, as_set=True),))
    limits = (Apart("a", "p", "q"),)
    model = build(Problem(data, 2, limits=limits), "set-partition")
    assert list(model.uncovered) == [0]
    assert solve_model(model).stopped is Stopped.INFEASIBLE
    allowed = Problem(data, 2, EquivalenceClasses(suppression=True), limits=limits)
    model = build(allowed, "set-partition")
    solve_model(model)
    assert read(model).labels.tolist() == [-1, 0, 0]


def test_too_many_sets_are_refused() -> None:
    """The message says how many there may be, the cap, and what to do."""
    problem = Problem(census(30, 4, seed=0), 3)
    with pytest.raises(InputError, match=r"more than the 1,000 sets.*about .*upper_bound"):
        build(problem, "set-partition", max_sets=1000)


def test_upper_bound_must_be_a_number() -> None:
    """NaN is no bound."""
    with pytest.raises(InputError, match="upper_bound is nan"):
        build(Problem(load_instance("wong-5"), 2), "set-partition", upper_bound=math.nan)


def test_starts_worse_than_the_upper_bound_are_refused() -> None:
    """Sets that the bound left out cannot be chosen."""
    problem = Problem(microdata((Column((1, 2, 8, 9)),)), 2)
    model = build(problem, "set-partition", upper_bound=0.5)
    set_start(model, Classes(np.array([0, 0, 1, 1], np.int32)))
    assert pyo.value(model.loss) == pytest.approx(0.5)
    with pytest.raises(InputError, match="no set of the model"):
        set_start(model, Classes(np.array([0, 1, 0, 1], np.int32)))
    with pytest.raises(InvalidAssignment, match="fewer than k"):
        set_start(model, Classes(np.array([0, 1, 1, 1], np.int32)))


def test_models_without_or_with_wrong_values_cannot_be_read() -> None:
    """Reading before solving is an input error; a row taken twice is an invalid assignment."""
    model = build(Problem(load_instance("wong-5"), 2), "set-partition")
    with pytest.raises(InputError, match="no values to read"):
        read(model)
    for variable in model.chosen.values():
        variable.set_value(1)
    with pytest.raises(InvalidAssignment, match="lies in several chosen sets"):
        read(model)


def test_other_recodings_are_refused() -> None:
    """The model knows equivalence classes only."""

    class Freeform:
        name = "freeform"

    problem: Any = Problem(load_instance("wong-5"), 2).replace(recoding=Freeform())
    with pytest.raises(InputError, match="does not model the recoding freeform"):
        build(problem, "set-partition")


def test_every_component_is_documented() -> None:
    """Each set, variable, expression, constraint and objective says what it is."""
    case = Case(
        (Column((1.0, 2.0, 4.0)), Column(("p", "q", "r"), False, as_set=True)),
        2,
        LOSSES["curved"],
        suppression=True,
    )
    kinds = (pyo.Set, pyo.RangeSet, pyo.Var, pyo.Expression, pyo.Constraint, pyo.Objective)
    for problem in (case.problem(), replace(case, worst=True).problem()):
        model = build(problem, "set-partition", merge=False)
        parts = [c for c in model.component_objects(kinds) if not c.local_name.endswith("_index")]
        assert len(parts) > 8
        assert [c.name for c in parts if not c.doc] == []


def test_losses_that_fall_need_large_classes() -> None:
    """With a reward for wide classes one class of all records is best."""

    @class_objective()
    def crowd(members: Any) -> Any:
        return -float(members.rows.shape[1] ** 2) + 0.0 * members.value["a"].sum(axis=1)

    problem = Problem(microdata((Column((1, 2, 3, 4, 5)),)), 2, objective=crowd)
    check_optimum(problem, -25.0)


@pytest.mark.thorough
def test_sample_of_twenty_persons() -> None:
    """The sample of Liang & Samavi with k = 3 has 21,489 sets and the optimum 13.5."""
    problem = Problem(load_instance("person20"), 3)
    assert set_partition_size(problem) == sum(math.comb(20, size) for size in (3, 4, 5))
    model = build(problem, "set-partition", upper_bound=13.5)
    assert len(model.chosen) < set_partition_size(problem)
    assert solve_model(model).objective == pytest.approx(13.5, abs=1e-6)
