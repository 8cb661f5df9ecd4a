"""What all formulations by pairs of records keep: truth, relaxations in order, refusals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunct, Disjunction

from anonymip import (
    Classes,
    InputError,
    Problem,
    Solution,
    Stopped,
    UnsupportedObjective,
    build,
    census,
    load_instance,
    read,
    set_start,
    solve_model,
)
from anonymip.exact.trust import largest_effect
from anonymip.models import model_size
from anonymip.solvers import SolverResult, availability
from anonymip.tolerances import FINE_LOSS
from tests.brute_force import Column, Rules
from tests.hard_losses import FALLING, PRODUCT
from tests.models.pair_formulations import PAIR_FORMULATIONS, relaxation_bound, violations
from tests.random_problems import LOSSES, Case, cases, ruled_cases

#: What is asked of a formulation: plain tables, or also diversity, limits and the largest loss.
ASKED = {"plain": cases, "ruled": ruled_cases}


def solved(model: pyo.ConcreteModel, formulation: str) -> SolverResult:
    """Solve a model; indicators by SCIP, and where it is absent as big-M rows made by Pyomo."""
    solver = "highs"
    if formulation == "indicator":
        if availability("scip").installed:
            solver = "scip"
        else:
            model.apart = Disjunct(model.pairs)
            model.choice = Disjunction(
                model.pairs, rule=lambda m, i, other: [m.share[i, other], m.apart[i, other]]
            )
            pyo.TransformationFactory("gdp.bigm").apply_to(model)
    return solve_model(model, solver)


@pytest.mark.crossed
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS)
@settings(max_examples=20)
@given(data=st.data(), integer_ends=st.booleans())
def test_every_release_is_a_point_of_the_model(
    formulation: str, asked: str, data: st.DataObject, integer_ends: bool
) -> None:
    """Each allowed release keeps all rows, costs its loss, and is read back."""
    case = data.draw(ASKED[asked](largest=5))
    problem = case.problem()
    model = build(problem, formulation, integer_ends=integer_ends)
    for groups in case.releases():
        classes = Classes.from_groups(groups, case.n)
        set_start(model, classes)
        assert violations(model) == []
        loss = case.release_loss(groups)
        assert pyo.value(model.loss) == pytest.approx(loss, rel=1e-9, abs=1e-9)
        found = read(model)
        assert isinstance(found, Classes)
        assert sorted(found.sizes) == sorted(classes.sizes)
        assert Solution.of(problem, found, method="read").objective == pytest.approx(loss)
        if formulation != "strengthened":
            assert found.labels.tolist() == classes.labels.tolist()


def assert_finds_the_optimum(case: Case, formulation: str) -> None:
    """Assert that a solver finds the optimum of brute force in a formulation."""
    problem = case.problem()
    model = build(problem, formulation)
    result = solved(model, formulation)
    best = case.optimum()
    assert result.bound is not None
    # Solvers keep rows to their tolerances, which a fine loss does not stand out from.
    scale = max(largest_effect(problem), abs(best), 1e-6)
    found = Solution.of(problem, read(model), method="read")
    assert found.objective >= best - 1e-9 * max(1.0, abs(best))
    assert found.objective <= best + 1e-5 * scale
    assert result.bound <= best + 1e-5 * scale
    if abs(best) >= FINE_LOSS * largest_effect(problem):
        assert result.stopped is Stopped.OPTIMAL
        assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.crossed
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS)
@settings(max_examples=20)
@given(data=st.data())
def test_equals_brute_force(formulation: str, asked: str, data: st.DataObject) -> None:
    """All kinds of attributes, losses and rules."""
    assert_finds_the_optimum(data.draw(ASKED[asked](largest=7)), formulation)


@pytest.mark.parametrize("asked", ASKED)
@settings(max_examples=20)
@given(data=st.data())
def test_relaxations_are_ordered(asked: str, data: st.DataObject) -> None:
    """Indicator <= big-M <= hull <= strengthened <= set partitioning <= optimum."""
    case = data.draw(ASKED[asked](largest=6))
    problem = case.problem()
    best = case.optimum()
    bounds = [relaxation_bound(problem, formulation) for formulation in PAIR_FORMULATIONS]
    bounds += [relaxation_bound(problem, "set-partition"), best]
    slack = 1e-6 * max(largest_effect(problem), abs(best), 1e-3)
    for weaker, stronger in pairwise(bounds):
        assert weaker <= stronger + slack


@settings(max_examples=25)
@given(cases(largest=6, suppression=False))
def test_relaxation_is_no_weaker_than_publishing_exactly(case: Case) -> None:
    """Cells cover the record's own value even in the weakest relaxation."""
    alone = case.release_loss(tuple((record,) for record in range(case.n)))
    bound = relaxation_bound(case.problem(), "indicator")
    assert bound >= alone - 1e-6 * max(1.0, abs(alone))


@pytest.mark.parametrize(
    ("instance", "k", "bounds", "optimum"),
    [
        pytest.param(
            *("health-records", 3, (0.0, 0.522350, 0.711590, 0.786720, 0.790702), 0.955090),
            marks=pytest.mark.thorough,
        ),
        ("wong-5", 2, (0.0, 3.661094, 3.717183, 5.003149, 5.445450), 7.103556),
        ("aggarwal-4", 2, (0.0, 5.107692, 5.2, 5.2, 5.2), 5.2),
        pytest.param(
            *("census:10,2,1", 3, (0.0, 2.089192, 2.128425, 3.893751, 4.317568), 4.391892),
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_relaxations_of_named_instances(
    instance: str, k: int, bounds: tuple[float, ...], optimum: float
) -> None:
    """The root bounds are pinned beside the optima: a weaker row would show here."""
    problem = Problem(load_instance(instance), k)
    formulations = (*PAIR_FORMULATIONS, "set-partition")
    found = [relaxation_bound(problem, formulation) for formulation in formulations]
    assert found == pytest.approx(bounds, abs=1e-6)
    assert found[1] < found[3]
    for formulation in formulations[1:]:
        assert solve_model(build(problem, formulation)).objective == pytest.approx(
            optimum, abs=1e-6
        )


@pytest.mark.thorough
def test_relaxations_of_the_sample_of_the_paper() -> None:
    """The 20 records of Liang & Samavi, k = 3, optimum 13.5: the rows of pairs add little."""
    problem = Problem(load_instance("person20"), 3)
    found = [relaxation_bound(problem, f) for f in (*PAIR_FORMULATIONS, "set-partition")]
    assert found == pytest.approx([0.0, 6.410932, 6.823337, 10.173840, 12.540404], abs=1e-5)


def test_integer_ends_follow_the_attributes() -> None:
    """Eq. (27): ends of whole-numbered attributes are integer variables if asked for."""
    columns = (
        Column((1, 2, 4), integer=True),
        Column((0.5, 2.0, 4.0)),
        Column((1_700_000_000, 1_700_000_009, 1_700_000_013), integer=True),
        Column((1, 9, 2_000_000_000), integer=True),
    )
    problem = Case(columns, 2, LOSSES["gcp"]).problem()

    def whole(model: pyo.ConcreteModel) -> list[bool]:
        return [model.scaled_lower[0, j].is_integer() for j in range(4)]

    assert whole(build(problem, integer_ends=True)) == [True, False, True, False]
    assert whole(build(problem, integer_ends=False)) == [False] * 4


@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS)
def test_every_component_is_documented(formulation: str) -> None:
    """Each set, variable, expression, constraint and objective says what it is."""
    columns = (
        Column((1.0, 2.0, 4.0)),
        Column(("p", "q", "r"), False, as_set=True),
        Column(("p", "q", "p"), False, as_set=True, paths=(("p", "P", "*"), ("q", "P", "*"))),
    )
    rules = Rules((("x", "y", "z"),), distinct=2, caps=((0, 3.5), (1, 3)))
    case = Case(columns, 2, LOSSES["curved"], suppression=True, rules=rules, worst=True)
    model = build(case.problem(), formulation)
    kinds = (pyo.Set, pyo.RangeSet, pyo.Var, pyo.Expression, pyo.Constraint, pyo.Objective)
    components = [
        c
        for c in model.component_objects(kinds, descend_into=False)
        if not c.local_name.endswith(("_index", "_xor"))
    ]
    assert len(components) > 20
    assert [c.name for c in components if not c.doc] == []


@pytest.mark.parametrize("offset", [0, 1_700_000_000])
def test_ends_are_read_in_the_unit_of_the_attribute(offset: int) -> None:
    """`lower` and `upper` of a solved model are what is published, scaled or not."""
    values = (3, 1, 2, 8, 9, 7)
    column = Column(tuple(offset + value for value in values), integer=True)
    model = build(Case((column,), 3, LOSSES["gcp"]).problem())
    solve_model(model)
    lower = [pyo.value(model.lower[i, 0]) - offset for i in range(6)]
    upper = [pyo.value(model.upper[i, 0]) - offset for i in range(6)]
    np.testing.assert_allclose(lower, [1, 1, 1, 7, 7, 7], atol=1e-6)
    np.testing.assert_allclose(upper, [3, 3, 3, 9, 9, 9], atol=1e-6)


@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS)
def test_objectives_that_do_not_fit_are_refused(formulation: str) -> None:
    """Falling losses and losses without tables; the messages name what accepts them."""
    problem = Case((Column((1.0, 2.0, 4.0)),), 2, FALLING).problem()
    others = "greedy-search.*set-partition"
    with pytest.raises(UnsupportedObjective, match=f"'falling' .*can fall in 'a'.*{others}"):
        build(problem, formulation)
    columns = (Column((1.0, 2.0, 4.0)), Column((3.0, 1.0, 1.0)))
    problem = Case(columns, 2, PRODUCT).problem()
    with pytest.raises(UnsupportedObjective, match=f"'product' is of the general tier.*{others}"):
        model_size(problem, formulation)


@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS)
def test_models_too_large_are_refused(formulation: str) -> None:
    """Beyond 3,000,000 rows the message gives size, limit and remedy; nothing is built."""
    with pytest.raises(InputError, match=r"3,000,000.*greedy-search"):
        build(Problem(census(2000, 8, seed=0), 3), formulation)


@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS)
def test_estimated_size_is_no_less_than_the_rows(formulation: str) -> None:
    """The estimate, which decides about building, counts all rows."""
    columns = (
        Column((1.0, 2.0, 4.0, 7.0, 7.5)),
        Column(("p", "q", "r", "p", "q"), False, as_set=True),
        Column(
            ("p", "q", "p", "r", "s"),
            False,
            as_set=True,
            paths=(("p", "pq", "*"), ("q", "pq", "*"), ("r", "rs", "*"), ("s", "rs", "*")),
        ),
    )
    rules = Rules((("x", "y", "z", "x", "y"),), distinct=2, caps=((0, 5.0), (1, 3)))
    for ruled in (None, rules):
        problem = Case(columns, 2, LOSSES["gcp"], suppression=True, rules=ruled).problem()
        model = build(problem, formulation)
        rows = sum(1 for _ in model.component_data_objects(pyo.Constraint, active=True))
        assert rows <= model_size(problem, formulation) + 2 * problem.n
        assert model_size(problem, formulation) <= 3 * rows + 200


@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS)
def test_other_recodings_are_refused(formulation: str) -> None:
    """The models know equivalence classes only."""

    class Freeform:
        name = "freeform"

    problem: Any = Problem(load_instance("wong-5"), 2).replace(recoding=Freeform())
    with pytest.raises(InputError, match="does not model the recoding freeform"):
        build(problem, formulation)


def test_indirectly_equivalent_records_share_a_class() -> None:
    """Def. 6: binaries of a chain of pairs suffice, k = 2."""
    column = Column((1.0, 2.0, 3.0, 8.0, 9.0))
    model = build(Case((column,), 2, LOSSES["gcp"]).problem())
    for pair in model.pairs:
        model.equivalent[pair].set_value(int(pair in {(0, 1), (1, 2), (3, 4)}))
    assert read(model).labels.tolist() == [0, 0, 0, 1, 1]
