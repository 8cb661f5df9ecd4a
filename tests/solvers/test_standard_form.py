"""Tests of the compilation to matrices and of the check of a point."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.errors import InputError, NoSolution
from anonymip.solvers import StandardForm, compile_standard_form


def small() -> pyo.ConcreteModel:
    """Return a model with an equality, a range, one side, a fixed and an unused variable."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(-2, 5))
    model.y = pyo.Var(bounds=(None, 4))
    model.fixed = pyo.Var(initialize=3.0)
    model.fixed.fix()
    model.unused = pyo.Var()
    model.equal = pyo.Constraint(expr=model.x + 2 * model.y + model.fixed == 10)
    model.range = pyo.Constraint(expr=(-1, model.x - model.y, 2))
    model.side = pyo.Constraint(expr=1000 * model.x >= -500)
    model.cost = pyo.Objective(expr=3 * model.x - model.y + 2 * model.fixed + 1)
    return model


def rows(form: StandardForm) -> list[tuple[str, list[float], float, float]]:
    """Return name, coefficients and sides of each row."""
    dense = form.matrix.toarray().tolist()
    return [
        (constraint.name, dense[row], form.row_lower[row], form.row_upper[row])
        for row, constraint in enumerate(form.constraints)
    ]


def test_small_model_by_hand() -> None:
    """Every array is what one writes down by hand."""
    model = small()
    form = compile_standard_form(model)
    assert [variable.name for variable in form.variables] == ["x", "y"]
    np.testing.assert_array_equal(form.cost, [3, -1])
    assert form.offset == 7
    assert rows(form) == [
        ("equal", [1, 2], 7, 7),
        ("range", [1, -1], -np.inf, 2),
        ("range", [1, -1], -1, np.inf),
        ("side", [1000, 0], -500, np.inf),
    ]
    np.testing.assert_array_equal(form.lower, [-2, -np.inf])
    np.testing.assert_array_equal(form.upper, [5, 4])
    np.testing.assert_array_equal(form.integer, [True, False])
    assert form.objective(np.array([1.0, 3.0])) == 7


def test_maximisation_turns_signs_and_back() -> None:
    """A model that maximises is minimised inside and reported in its own sense."""
    model = small()
    model.cost.sense = pyo.maximize
    form = compile_standard_form(model)
    np.testing.assert_array_equal(form.cost, [-3, 1])
    assert form.offset == -7
    assert form.objective(np.array([1.0, 3.0])) == 7
    assert form.in_model_sense(-7.0) == 7.0


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ([3.0, 2.0], None),
        ([3.000001, 2.0], None),
        ([1.001, 2.9995], "variable x is away from a whole number by 0.001"),
        ([6.0, 0.5], "variable x is outside its bounds by 1"),
        ([-1.0, 4.5], "variable y is outside its bounds by 0.5"),
        ([2.0, 3.0], "constraint equal is violated by 0.5"),
        ([5.0, 1.0], "constraint range is violated by 2"),
        ([-1.0, 4.0], "constraint range is violated by 4"),
        ([float("nan"), 3.0], "variable x has no finite value"),
        ([1.0, 3.0, 0.0], r"the point has shape \(3,\)"),
    ],
)
def test_violation_names_the_worst(point: list[float], text: str | None) -> None:
    """A feasible point gives None, another one a sentence that names the culprit."""
    found = compile_standard_form(small()).violation(np.array(point))
    if text is None:
        assert found is None
    else:
        assert found is not None
        assert re.match(text, found)


def test_rows_are_scaled_by_large_coefficients_only() -> None:
    """An error of 5e-3 is within tolerance for a coefficient of 1000, not for one of 0.001."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var()
    model.y = pyo.Var()
    model.large = pyo.Constraint(expr=1000 * model.x <= 1)
    model.small = pyo.Constraint(expr=0.001 * model.y <= 1)
    model.cost = pyo.Objective(expr=model.x)
    form = compile_standard_form(model)
    assert form.violation(np.array([(1 + 5e-3) / 1000, 1000 * (1 + 5e-6)])) is None
    assert "large" in str(form.violation(np.array([(1 + 2e-2) / 1000, 0.0])))
    assert "small" in str(form.violation(np.array([0.0, 1000 * (1 + 2e-5)])))


def test_rounding_touches_near_integers_only() -> None:
    """Within tolerance integers are rounded; everything else stays."""
    form = compile_standard_form(small())
    np.testing.assert_array_equal(form.rounded(np.array([0.999999, 0.999999])), [1, 0.999999])
    np.testing.assert_array_equal(form.rounded(np.array([0.99, 3.0])), [0.99, 3.0])


def test_start_values() -> None:
    """Values are read from the model; without one for an integer variable there is no start."""
    model = small()
    form = compile_standard_form(model)
    assert form.start_values() is None
    model.x.set_value(2)
    values = form.start_values()
    assert values is not None
    assert values[0] == 2
    assert np.isnan(values[1])


def quadratic_objective(model: pyo.ConcreteModel) -> None:
    """Make the objective quadratic."""
    model.cost.set_value(model.x**2)


def quadratic_constraint(model: pyo.ConcreteModel) -> None:
    """Add a product of two variables."""
    model.product = pyo.Constraint(expr=model.x * model.y <= 1)


def second_objective(model: pyo.ConcreteModel) -> None:
    """Add a second objective."""
    model.other = pyo.Objective(expr=model.y)


def no_objective(model: pyo.ConcreteModel) -> None:
    """Deactivate the only objective."""
    model.cost.deactivate()


def special_ordered_set(model: pyo.ConcreteModel) -> None:
    """Add a special ordered set."""
    model.pair = pyo.Var(range(2))
    model.ordered = pyo.SOSConstraint(var=model.pair, sos=1)


def gaps_in_domain(model: pyo.ConcreteModel) -> None:
    """Give a variable a domain that is no interval."""
    model.y.domain = pyo.Set(initialize=[0, 2, 5])
    model.y.domain.construct()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (quadratic_objective, "cost.*nonlinear"),
        (quadratic_constraint, "product.*nonlinear"),
        (second_objective, "2 active objectives"),
        (no_objective, "0 active objectives"),
        (special_ordered_set, "SOSConstraint"),
        (gaps_in_domain, "variable y has the domain"),
    ],
)
def test_what_is_not_a_linear_model_is_refused(change: Any, text: str) -> None:
    """The message says which component is the reason."""
    model = small()
    change(model)
    with pytest.raises(InputError, match=rf"(?s){text}"):
        compile_standard_form(model)


def test_constant_constraint_that_cannot_hold() -> None:
    """A constraint on fixed variables only that does not hold proves infeasibility."""
    model = small()
    model.broken = pyo.Constraint(expr=model.fixed <= 2)
    with pytest.raises(NoSolution, match="constraint broken"):
        compile_standard_form(model)


def test_constant_constraint_missed_by_rounding() -> None:
    """A constraint on fixed variables that misses by rounding is no proof of infeasibility."""
    model = small()
    model.fixed.fix(0.1 + 0.2)
    model.close = pyo.Constraint(expr=model.fixed == 0.3)
    with pytest.raises(InputError, match="rounding error"):
        compile_standard_form(model)


def test_crossed_bounds() -> None:
    """A variable whose bounds exclude every value proves infeasibility."""
    model = small()
    model.x.setlb(6)
    with pytest.raises(NoSolution, match="variable x"):
        compile_standard_form(model)


def test_vanished_rows() -> None:
    """Rows without coefficients are dropped if they hold, and prove infeasibility if not."""
    model = small()
    model.zero = pyo.Param(initialize=0.0, mutable=True)
    model.empty = pyo.Constraint(expr=model.zero * model.x + 0 * model.y <= 1)
    assert "empty" not in [
        constraint.name for constraint in compile_standard_form(model).constraints
    ]
    model.never = pyo.Constraint(expr=model.x - model.x >= 1)
    with pytest.raises(NoSolution, match="constraint never"):
        compile_standard_form(model)
