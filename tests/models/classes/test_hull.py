"""The hull of each pair's choice: what is split, and starts that fill it."""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.gdp import Disjunct

from anonymip import Classes, Problem, build, load_instance, set_start, solve, solve_model
from anonymip.solvers.modelling.compilation import compile_standard_form


def health() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3)


def test_one_alternative_of_each_pair() -> None:
    """The indicator of sharing is `equivalent`, and the other one completes it to 1."""
    model = build(health(), "hull")
    form = compile_standard_form(model)
    assert not form.has_indicators
    assert {id(variable) for variable in form.variables} >= {
        id(variable) for variable in model.equivalent.values()
    }
    assert form.integer.sum() > len(model.pairs)
    set_start(model, Classes.from_groups([[0, 2, 4], [1, 3, 5, 6]], 7))
    for pair in model.pairs:
        assert model.equivalent[pair].value + model.apart[pair].binary_indicator_var.value == 1


def test_starts_fill_every_part() -> None:
    """No split variable is left open, so that a solver can use the start as it is."""
    problem = health()
    best = solve(problem, "equivalence-mip").assignment
    model = build(problem, "hull")
    assert isinstance(best, Classes)
    set_start(model, best)
    inside = (pyo.Block, Disjunct)
    variables = list(model.component_data_objects(pyo.Var, descend_into=inside))
    assert len(variables) > 21 * 8
    assert all(variable.value is not None for variable in variables)
    form = compile_standard_form(model)
    start = form.start_values()
    assert start is not None
    assert form.violation(start) is None
    assert solve_model(model, start=True).start_accepted
