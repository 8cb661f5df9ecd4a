"""A linear Pyomo model as matrices, and the check of a point against them.

The form is always a minimisation::

    minimise    cost @ x + offset
    subject to  row_lower <= matrix @ x <= row_upper
                lower <= x <= upper,   x[integer] whole numbers

A model that maximises is compiled with its signs turned; :meth:`StandardForm.objective` and
:meth:`StandardForm.in_model_sense` turn them back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.errors import InputError, NoSolution
from anonymip.tolerances import FEASIBILITY, INTEGRALITY

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyomo.environ import ConcreteModel
    from scipy.sparse import csr_array


#: Effects on the cost that the absolute tolerances of solvers suit.
_SMALLEST_EFFECT, _LARGEST_EFFECT = 1e-2, 1e6


@dataclass(frozen=True, eq=False)
class StandardForm:
    """A linear model in matrix form.

    Parameters
    ----------
    variables
        Pyomo's variable of each column. Fixed variables, and variables that no row and no
        cost uses, are not among them.
    constraints
        Pyomo's constraint of each row; a range constraint has two rows.
    cost
        Shape (variables,), minimised.
    offset
        Constant part of the minimised objective.
    matrix
        Shape (rows, variables), compressed by rows.
    row_lower, row_upper
        Shape (rows,), infinite where there is no side.
    lower, upper
        Shape (variables,), infinite where there is no bound.
    integer
        Shape (variables,), whether the variable is integer.
    maximize
        Whether the model maximises.
    """

    variables: tuple[Any, ...]
    constraints: tuple[Any, ...]
    cost: NDArray[np.float64]
    offset: float
    matrix: csr_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    integer: NDArray[np.bool_]
    maximize: bool

    def in_model_sense(self, minimised: float) -> float:
        """Return a minimised objective or bound in the sense of the model."""
        return -minimised if self.maximize else minimised

    def objective(self, values: NDArray[np.float64]) -> float:
        """Return the objective of a point, shape (variables,), in the sense of the model."""
        return self.in_model_sense(float(self.cost @ values) + self.offset)

    def cost_factor(self) -> float:
        """Return the power of two that brings the largest effect of a variable on the cost to 1.

        It is 1 where effects are of ordinary size already, or none is known.
        """
        span = self.upper - self.lower
        effects = np.abs(self.cost) * np.where(np.isfinite(span), span, 1.0)
        largest = float(effects.max(initial=0.0))
        if largest == 0.0 or _SMALLEST_EFFECT <= largest <= _LARGEST_EFFECT:
            return 1.0
        return float(2.0 ** -np.rint(np.log2(largest)))

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the point with integer variables rounded where they lie within tolerance."""
        nearest = np.rint(values) + 0.0
        close = self.integer & (np.abs(values - nearest) <= INTEGRALITY)
        return np.where(close, nearest, values)

    def violation(self, values: NDArray[np.float64]) -> str | None:
        """Return a sentence about the worst violation of a point, or None if it is feasible.

        Rows are measured relative to their largest coefficient when that is above 1; below,
        they are measured as they are, since solvers work with absolute tolerances.

        Parameters
        ----------
        values
            Shape (variables,).
        """
        if values.shape != self.cost.shape:
            return f"the point has shape {values.shape}, the model {len(self.cost)} variables"
        unknown = np.flatnonzero(~np.isfinite(values))
        if unknown.size:
            return f"variable {self.variables[unknown[0]].name} has no finite value"
        activity = self.matrix @ values
        fraction = np.where(self.integer, np.abs(values - np.rint(values)), 0.0)
        checks = (
            (_outside(values, self.lower, self.upper), FEASIBILITY, "is outside its bounds by"),
            (fraction, INTEGRALITY, "is away from a whole number by"),
        )
        for amounts, tolerance, text in checks:
            if amounts.size and amounts.max() > tolerance:
                worst = int(amounts.argmax())
                return f"variable {self.variables[worst].name} {text} {amounts[worst]:.3g}"
        amounts = _outside(activity, self.row_lower, self.row_upper) / self._row_scales()
        if amounts.size and amounts.max() > FEASIBILITY:
            worst = int(amounts.argmax())
            return (
                f"constraint {self.constraints[worst].name} is violated by {amounts[worst]:.3g}, "
                f"relative to its largest coefficient"
            )
        return None

    def _row_scales(self) -> NDArray[np.float64]:
        """Return the largest absolute coefficient of each row, at least 1, shape (rows,)."""
        scales = np.ones(self.matrix.shape[0])
        rows = np.repeat(np.arange(len(scales)), np.diff(self.matrix.indptr))
        np.maximum.at(scales, rows, np.abs(self.matrix.data))
        return scales

    def start_values(self) -> NDArray[np.float64] | None:
        """Return the values that the Pyomo variables hold now, as a start.

        Returns
        -------
        numpy.ndarray or None
            Shape (variables,); whole numbers for integer variables, NaN for continuous ones
            without a value. None if an integer variable has no value.
        """
        given = [variable.value for variable in self.variables]
        values = np.array([np.nan if value is None else value for value in given], dtype=float)
        if np.isnan(values[self.integer]).any():
            return None
        return np.where(self.integer, np.rint(values) + 0.0, values)


def _outside(
    values: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return by how much each value lies outside its interval, 0 inside."""
    return np.maximum(0.0, np.maximum(lower - values, values - upper))


def compile_standard_form(model: ConcreteModel) -> StandardForm:
    """Compile a linear Pyomo model to matrices.

    Fixed variables are treated as constants. Time and memory grow linearly with the non-zeros.

    Parameters
    ----------
    model
        A model with one active objective, linear constraints, and variables that are
        continuous or integer. It is not changed.

    Raises
    ------
    InputError
        If the model is not linear, has no or several active objectives, or has a component or
        a variable domain that a mixed-integer linear solver does not know.
    NoSolution
        If a constraint without free variables, or the bounds of a variable, cannot hold.
    """
    from pyomo.common.errors import InfeasibleConstraintException
    from pyomo.common.gc_manager import PauseGC
    from pyomo.environ import maximize
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    with PauseGC():
        objective = _single_objective(model)
        try:
            compiled = LinearStandardFormCompiler().write(model, mixed_form=True)
        except InfeasibleConstraintException as error:
            raise _constant_constraint(model) from error
        except ValueError as error:  # Pyomo's errors for what is not linear are ValueErrors
            raise InputError(
                f"the model cannot be given to a linear solver: {error}",
                remedy="Make its objective and constraints linear",
            ) from error
        return _from_compiled(compiled, objective.sense == maximize)


def _single_objective(model: ConcreteModel) -> Any:
    from pyomo.environ import Objective

    found = list(model.component_data_objects(Objective, active=True))
    if len(found) != 1:
        raise InputError(
            f"the model has {len(found)} active objectives",
            remedy="Keep exactly one active; Objective(expr=0) asks for any feasible point",
        )
    return found[0]


def _from_compiled(compiled: Any, maximises: bool) -> StandardForm:
    matrix = compiled.A.tocsr()
    matrix.sort_indices()
    sides = np.array([row.bound_type for row in compiled.rows], dtype=int)
    right = np.asarray(compiled.rhs, dtype=float)
    variables = tuple(compiled.columns)
    lower, upper = _bounds(variables)
    form = StandardForm(
        variables=variables,
        constraints=tuple(row.constraint for row in compiled.rows),
        cost=compiled.c.toarray().reshape(-1).astype(float),
        offset=float(compiled.c_offset[0]),
        matrix=matrix,
        row_lower=np.where(sides <= 0, right, -np.inf),
        row_upper=np.where(sides >= 0, right, np.inf),
        lower=lower,
        upper=upper,
        integer=np.array([_is_integer(variable) for variable in variables], dtype=bool),
        maximize=maximises,
    )
    return _without_empty_rows(form)


def _bounds(variables: tuple[Any, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = [variable.bounds for variable in variables]
    lower = np.array([-np.inf if low is None else low for low, _ in pairs], dtype=float)
    upper = np.array([np.inf if high is None else high for _, high in pairs], dtype=float)
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        raise NoSolution(
            f"the bounds of variable {variables[crossed[0]].name} exclude every value",
            remedy="Widen its bounds",
        )
    return lower, upper


def _is_integer(variable: Any) -> bool:
    if variable.is_continuous():
        return False
    if variable.is_integer() or variable.is_binary():
        return True
    raise InputError(
        f"variable {variable.name} has the domain {variable.domain}",
        remedy="Use a continuous, integer or binary domain",
    )


def _without_empty_rows(form: StandardForm) -> StandardForm:
    """Drop rows whose coefficients have all vanished, after checking that they hold."""
    filled = np.diff(form.matrix.indptr) > 0
    if filled.all():
        return form
    amounts = _outside(np.zeros(len(filled)), form.row_lower, form.row_upper)
    broken = np.flatnonzero(~filled & (amounts > FEASIBILITY))
    if broken.size:
        raise _cannot_hold(form.constraints[broken[0]].name)
    return replace(
        form,
        constraints=tuple(
            constraint for constraint, keep in zip(form.constraints, filled, strict=True) if keep
        ),
        matrix=form.matrix[filled],
        row_lower=form.row_lower[filled],
        row_upper=form.row_upper[filled],
    )


def _cannot_hold(name: str) -> NoSolution:
    return NoSolution(
        f"constraint {name} has no free variable and does not hold",
        remedy="Unfix a variable in it, or deactivate it",
    )


def _constant_constraint(model: ConcreteModel) -> NoSolution | InputError:
    """Return the error for a constant constraint that does not hold exactly."""
    from pyomo.environ import Constraint
    from pyomo.repn import generate_standard_repn

    for constraint in model.component_data_objects(Constraint, active=True):
        lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        form = generate_standard_repn(body, quadratic=False)
        if not form.is_constant():
            continue
        too_low = lower is not None and form.constant < lower - FEASIBILITY
        too_high = upper is not None and form.constant > upper + FEASIBILITY
        if too_low or too_high:
            return _cannot_hold(constraint.name)
    return InputError(
        "a constraint without free variables misses its bound by a rounding error",
        remedy="Deactivate such constraints, or unfix a variable in them",
    )
