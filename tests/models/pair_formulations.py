"""What the tests of the formulations by pairs of records share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunct

from anonymip import Problem, build, solve_model
from anonymip.models import relax

#: From the weakest relaxation to the strongest.
PAIR_FORMULATIONS = ("indicator", "bigm", "hull", "strengthened")


def binding_rows(model: pyo.ConcreteModel) -> Iterator[Any]:
    """Yield all constraints that must hold at the values of a model: of Disjuncts those chosen."""
    yield from model.component_data_objects(pyo.Constraint, active=True)
    for disjunct in model.component_data_objects(Disjunct, active=True):
        if disjunct.binary_indicator_var.value > 0.5:
            yield from disjunct.component_data_objects(pyo.Constraint, active=True)


def violations(model: pyo.ConcreteModel) -> list[str]:
    """Return the names of all rows, bounds and domains that the values break."""
    broken = []
    for constraint in binding_rows(model):
        body = pyo.value(constraint.body)
        lower, upper = pyo.value(constraint.lower), pyo.value(constraint.upper)
        slack = 1e-9 * max(1.0, abs(body))
        if (lower is not None and body < lower - slack) or (
            upper is not None and body > upper + slack
        ):
            broken.append(constraint.name)
    for variable in model.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        low, high = variable.bounds
        inside = (low is None or variable.value >= low) and (high is None or variable.value <= high)
        if not inside or (variable.is_integer() and variable.value != round(variable.value)):
            broken.append(variable.name)
    return broken


def relaxation_bound(problem: Problem, formulation: str, **choices: Any) -> float:
    """Return the optimum of a formulation's linear relaxation."""
    model = build(problem, formulation, **choices)
    relax(model)
    bound = solve_model(model).objective
    assert bound is not None
    return bound
