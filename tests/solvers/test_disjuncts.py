"""Tests of Disjuncts as rows that hold only where a binary variable is 1."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunct, Disjunction

from anonymip.errors import InputError, NoSolution
from anonymip.solvers import (
    SolverOptions,
    availability,
    compile_standard_form,
    get_solver,
    solve_model,
    solver_names,
)
from anonymip.status import Stopped


def two_ways() -> pyo.ConcreteModel:
    """Return x in [0, 10] that is at least 4 one way, between 2 and 3 the other, which costs 5."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10))
    model.way = Disjunct([0, 1])
    model.way[0].low = pyo.Constraint(expr=model.x >= 4)
    model.way[1].range = pyo.Constraint(expr=(2, model.x, 3))
    first, second = (model.way[j].binary_indicator_var for j in range(2))
    model.one = pyo.Constraint(expr=first + second >= 1)
    model.cost = pyo.Objective(expr=model.x + 5 * second)
    return model


def components(model: pyo.ConcreteModel) -> list[tuple[str, Any, bool]]:
    """Return name, type and activity of all components."""
    return [
        (component.name, component.ctype, getattr(component, "active", True))
        for component in model.component_objects(descend_into=(pyo.Block, Disjunct))
    ]


def test_rows_have_their_indicator() -> None:
    """Constraints of a Disjunct carry the column of its binary, others -1; nothing changes."""
    model = two_ways()
    before = components(model)
    form = compile_standard_form(model)
    names = [variable.name for variable in form.variables]
    found = {
        (constraint.name, None if column < 0 else names[column])
        for constraint, column in zip(form.constraints, form.indicators().tolist(), strict=True)
    }
    assert found == {
        ("one", None),
        ("way[0].low", "way[0].binary_indicator_var"),
        ("way[1].range", "way[1].binary_indicator_var"),
    }
    assert form.has_indicators
    assert len(form.constraints) == 4
    assert components(model) == before
    assert list(model.component_objects(Disjunct)) == [model.way]


def test_model_is_given_back_after_an_error() -> None:
    """A constraint that is not linear leaves the Disjuncts what they were."""
    model = two_ways()
    model.way[0].curve = pyo.Constraint(expr=model.x**2 >= 4)
    before = components(model)
    with pytest.raises(InputError, match=r"curve.*nonlinear"):
        compile_standard_form(model)
    assert components(model) == before


@pytest.mark.parametrize(
    ("x", "first", "second", "feasible"),
    [
        (4.0, 1, 0, True),
        (2.5, 0, 1, True),
        (2.5, 1, 0, False),
        (1.0, 0, 1, False),
        (2.5, 1e-7, 1 - 1e-7, True),
        (3.5, 0, 0, False),  # the ordinary row
        (5.0, 1, 1, False),
    ],
)
def test_violation_looks_at_the_indicator(
    x: float, first: float, second: float, feasible: bool
) -> None:
    """A row counts exactly where its indicator rounds to 1."""
    model = two_ways()
    form = compile_standard_form(model)
    value = {"x": x, "way[0].binary_indicator_var": first, "way[1].binary_indicator_var": second}
    point = np.array([value[variable.name] for variable in form.variables])
    assert (form.violation(point) is None) is feasible


def test_indicator_that_nothing_else_uses_is_a_column() -> None:
    """A binary in no row and no cost is still decided."""
    model = two_ways()
    model.del_component(model.one)
    model.cost.set_value(model.x)
    form = compile_standard_form(model)
    assert {variable.name for variable in form.variables} == {
        "x",
        "way[0].binary_indicator_var",
        "way[1].binary_indicator_var",
    }
    assert form.matrix.shape[1] == len(form.cost) == 3


def test_fixed_indicators() -> None:
    """Rows of an indicator fixed at 1 always hold, those of one fixed at 0 vanish."""
    model = two_ways()
    model.way[0].indicator_var.fix(False)
    model.way[1].indicator_var.fix(True)
    form = compile_standard_form(model)
    assert [constraint.name for constraint in form.constraints] == ["way[1].range"] * 2
    assert not form.has_indicators


def test_disjunct_that_is_not_active_is_left_out() -> None:
    """A deactivated Disjunct has no rows."""
    model = two_ways()
    model.way[1].deactivate()
    form = compile_standard_form(model)
    assert {constraint.name for constraint in form.constraints} <= {"one", "way[0].low"}


@pytest.mark.parametrize("vanishing", [False, True])
def test_disjunct_that_cannot_hold_is_switched_off(vanishing: bool) -> None:
    """A constraint on constants that fails forbids its Disjunct, not the model."""
    model = two_ways()
    model.fixed = pyo.Var(initialize=3.0)
    model.fixed.fix()
    nothing = model.x - model.x if vanishing else 0
    model.way[0].never = pyo.Constraint(expr=model.fixed + nothing >= 7)
    form = compile_standard_form(model)
    upper = {variable.name: high for variable, high in zip(form.variables, form.upper, strict=True)}
    assert upper["way[0].binary_indicator_var"] == 0
    assert upper["way[1].binary_indicator_var"] == 1
    assert model.way[0].never.active
    model.way[0].indicator_var.fix(True)
    with pytest.raises(NoSolution, match=r"way\[0\]"):
        compile_standard_form(model)
    model.way[0].indicator_var.fix(False)
    assert compile_standard_form(model).has_indicators


def test_disjunction_is_refused() -> None:
    """A logical constraint names the transformations; once transformed, the model is read."""
    model = two_ways()
    model.choice = Disjunction(expr=[model.way[0], model.way[1]])
    with pytest.raises(InputError, match=r"choice.*gdp\.bigm.*gdp\.hull"):
        compile_standard_form(model)
    pyo.TransformationFactory("gdp.bigm").apply_to(model)
    assert not compile_standard_form(model).has_indicators
    assert solve_model(model, "highs").objective == pytest.approx(4)


def test_nested_disjuncts_are_refused() -> None:
    """What an inner indicator means outside its Disjunct is not for us to say."""
    model = two_ways()
    model.way[0].inner = Disjunct()
    model.way[0].inner.low = pyo.Constraint(expr=model.x >= 5)
    with pytest.raises(InputError, match=r"way\[0\]\.inner lies within"):
        compile_standard_form(model)


def test_block_within_a_disjunct_belongs_to_it() -> None:
    """Constraints of a block in a Disjunct have the Disjunct's indicator."""
    model = two_ways()
    model.way[0].part = pyo.Block()
    model.way[0].part.low = pyo.Constraint(expr=model.x >= 6)
    form = compile_standard_form(model)
    named = dict(zip((row.name for row in form.constraints), form.indicators(), strict=True))
    assert named["way[0].part.low"] == named["way[0].low"] >= 0


def test_indicators_are_solved_or_refused(solver: str) -> None:
    """Solvers with indicators find the optimum, the others name those and the formulations."""
    model = two_ways()
    if not get_solver(solver).supports_indicators:
        with pytest.raises(InputError, match=r"scip, gurobi, cplex.*bigm, hull and strengthened"):
            solve_model(model, solver)
        return
    result = solve_model(model, solver)
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == pytest.approx(4)
    assert (model.way[0].indicator_var.value, model.way[1].indicator_var.value) == (True, False)
    assert model.x.value == pytest.approx(4)


def test_start_of_a_model_with_indicators(solver: str) -> None:
    """A start is taken, also where it is poor."""
    if not get_solver(solver).supports_indicators:
        pytest.skip(f"{solver} knows no indicators")
    model = two_ways()
    model.x.set_value(2.0)
    for way, value in ((0, 0), (1, 1)):
        model.way[way].binary_indicator_var.set_value(value)
    result = solve_model(model, solver, start=True)
    assert result.stopped is Stopped.OPTIMAL
    assert result.start_accepted is not False
    assert result.objective == pytest.approx(4)


def random_ways(seed: int) -> tuple[pyo.ConcreteModel, float | None]:
    """Return a small model with Disjuncts, and its optimum by enumeration, None if infeasible."""
    random = np.random.default_rng(seed)
    n, ways = 2, int(random.integers(1, 4))
    coefficients = random.integers(-3, 4, (ways, n))
    relations = random.integers(0, 4, ways)
    right = random.integers(-5, 6, ways)
    cost, price = random.integers(-5, 6, n), random.integers(-6, 7, ways)
    least, maximise = int(random.integers(0, ways + 1)), bool(random.integers(0, 2))
    sign = -1 if maximise else 1

    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), domain=pyo.Integers, bounds=(-3, 3))
    model.way = Disjunct(range(ways))
    for way in range(ways):
        body = sum(int(coefficients[way, j]) * model.x[j] for j in range(n)) + 0 * model.x[0]
        side = int(right[way])
        if not coefficients[way].any():
            continue
        model.way[way].row = pyo.Constraint(
            expr=(body <= side, body == side, body >= side, (side - 1, body, side + 2))[
                relations[way]
            ]
        )
    on = [model.way[way].binary_indicator_var for way in range(ways)]
    model.least = pyo.Constraint(expr=sum(on) + 0 * model.x[0] >= least)
    model.cost = pyo.Objective(
        expr=sign
        * (
            sum(int(cost[j]) * model.x[j] for j in range(n))
            + sum(int(price[way]) * on[way] for way in range(ways))
        ),
        sense=pyo.maximize if maximise else pyo.minimize,
    )
    best = None
    for point in itertools.product(range(-3, 4), repeat=n):
        gaps = coefficients @ point - right
        holds = np.where(
            relations == 0,
            gaps <= 0,
            np.where(
                relations == 1,
                gaps == 0,
                np.where(relations == 2, gaps >= 0, (gaps >= -1) & (gaps <= 2)),
            ),
        )
        holds |= ~coefficients.any(axis=1)
        for chosen in map(np.array, itertools.product((0, 1), repeat=ways)):
            if chosen.sum() >= least and holds[chosen == 1].all():
                value = int(cost @ point + price @ chosen)
                best = value if best is None else min(best, value)
    return model, None if best is None else float(sign * best)


def optimum_of_form(model: pyo.ConcreteModel) -> float | None:
    """Return the optimum of the compiled model over all integer points."""
    form = compile_standard_form(model)
    domains = [
        range(int(low), int(high) + 1)
        for low, high in zip(form.lower.tolist(), form.upper.tolist(), strict=True)
    ]
    values = [
        form.objective(np.array(point, dtype=float))
        for point in itertools.product(*domains)
        if form.violation(np.array(point, dtype=float)) is None
    ]
    if not values:
        return None
    return max(values) if form.maximize else min(values)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_compiled_disjuncts_equal_enumeration(seed: int) -> None:
    """The compiled rows with their indicators mean what the Disjuncts mean."""
    model, best = random_ways(seed)
    assert optimum_of_form(model) == best


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_solved_disjuncts_equal_enumeration(seed: int) -> None:
    """Every solver with indicators gives the optimum of enumeration."""
    usable = (name for name in solver_names() if availability(name).licence not in (None, "none"))
    able = [name for name in usable if get_solver(name).supports_indicators]
    if not able:
        pytest.skip("no solver with indicators is installed: scip, gurobi, cplex")
    for name in able:
        model, best = random_ways(seed)
        result = solve_model(model, name, SolverOptions())
        if best is None:
            assert result.stopped is Stopped.INFEASIBLE
            continue
        assert result.stopped is Stopped.OPTIMAL
        assert result.objective == pytest.approx(best, abs=1e-6)
        assert result.bound == pytest.approx(best, abs=1e-6)
