"""The values that the variables of a Pyomo model hold: cleared, and checked against the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anonymip.errors import InputError, NoSolution
from anonymip.solvers.modelling.compilation import compile_standard_form
from anonymip.tolerances import FEASIBILITY

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


def clear_values(model: ConcreteModel) -> None:
    """Take the values from all variables that are not fixed."""
    from pyomo.environ import Var

    for variable in model.component_data_objects(Var, descend_into=True):
        if not variable.fixed:
            variable.set_value(None)


def fill_values(model: ConcreteModel) -> None:
    """Give variables without a value, which stand in no row, the one next to 0 in their bounds."""
    from pyomo.environ import Var

    for variable in model.component_data_objects(Var, descend_into=True):
        if variable.value is None:
            low, high = variable.bounds
            value = 0.0 if low is None else max(0.0, low)
            variable.set_value(value if high is None else min(value, high), skip_validation=True)


def broken_by_values(model: ConcreteModel) -> str | None:
    """Return a sentence about what the values of a model's variables break, or None.

    Linear models are measured as what solvers return is. Others are measured constraint by
    constraint, relative to their bounds where those are above 1.

    Raises
    ------
    InputError
        If the model has a component that cannot be evaluated.
    """
    try:
        form = compile_standard_form(model)
    except NoSolution as error:
        return error.message
    except InputError:
        return _broken_constraint(model)
    values = form.start_values()
    if values is None:
        return "an integer variable has no value"
    held = [variable.value for variable in form.variables]
    for at, value in enumerate(held):
        if value is not None:
            values[at] = value
    return form.violation(values)


def _broken_constraint(model: ConcreteModel) -> str | None:
    """Return a sentence about the first constraint, linear or not, that does not hold."""
    from pyomo.environ import Constraint, value

    for constraint in model.component_data_objects(Constraint, active=True, descend_into=True):
        lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        held: Any = value(body, exception=False)
        if held is None:
            return f"constraint {constraint.name} has a variable without a value"
        for bound, excess in ((lower, -1.0), (upper, 1.0)):
            amount = 0.0 if bound is None else excess * (held - bound)
            if bound is not None and amount > FEASIBILITY * max(1.0, abs(bound)):
                return f"constraint {constraint.name} is violated by {amount:.3g}"
    return None
