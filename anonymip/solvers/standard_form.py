"""A linear model as matrices, made from a Pyomo model, and the check of a point against them.

The form is always a minimisation::

    minimise    cost @ x + offset
    subject to  row_lower <= matrix @ x <= row_upper
                lower <= x <= upper,   x[integer] whole numbers

where a row with an indicator, a binary variable, need hold only if that variable is 1.

A model that maximises is compiled with its signs turned; :meth:`StandardForm.objective` and
:meth:`StandardForm.in_model_sense` turn them back. Active ``pyomo.gdp`` Disjuncts are read as they
stand: their constraints become rows that hold only where the binary indicator variable is 1. What
ties indicators together must be linear constraints of the model; a Disjunction is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.errors import InputError, NoSolution
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.tolerances import FEASIBILITY, INTEGRALITY

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyomo.environ import ConcreteModel
    from scipy.sparse import csr_array


#: Effects on the cost that the absolute tolerances of solvers suit.
_SMALLEST_EFFECT, _LARGEST_EFFECT = 1e-2, 1e6


@dataclass
class Named:
    """A variable or constraint of a form that no Pyomo model stands behind.

    `name`: as messages name it. `value`: of a variable, where a start is given.
    """

    name: str
    value: float | None = None


@dataclass(frozen=True, eq=False)
class StandardForm:
    """A linear model in matrix form."""

    #: Pyomo's variable of each column. Fixed variables, and variables that no row and no cost uses,
    #: are not among them.
    variables: tuple[Any, ...]
    constraints: tuple[Any, ...]  # pyomo's constraint of each row; a range constraint has two rows
    cost: Floats  # shape (variables,), minimised
    offset: float  # constant part of the minimised objective
    matrix: csr_array  # shape (rows, variables), compressed by rows
    #: Shape (rows,), infinite where there is no side.
    row_lower: Floats
    row_upper: Floats
    #: Shape (variables,), infinite where there is no bound.
    lower: Floats
    upper: Floats
    integer: Flags  # shape (variables,), whether the variable is integer
    maximize: bool  # whether the model maximises
    #: Shape (rows,), the column of the binary variable that must be 1 for the row to count, -1 for
    #: rows that always count. None if all do.
    indicator: Ints | None = None

    @property
    def has_indicators(self) -> bool:
        """Whether some row counts only where a binary variable is 1."""
        return self.indicator is not None and bool((self.indicator >= 0).any())

    def indicators(self) -> Ints:
        """Return the indicator of each row, -1 where there is none, shape (rows,)."""
        if self.indicator is None:
            return np.full(self.matrix.shape[0], -1, dtype=np.int64)
        return self.indicator

    def variable_types(self) -> NDArray[np.str_]:
        """Return (variables,) "B" for binary variables, "I" for other integer ones, else "C"."""
        binary = self.integer & (self.lower >= 0) & (self.upper <= 1)
        return np.where(binary, "B", np.where(self.integer, "I", "C"))

    def without_components(self) -> StandardForm:
        """Return the arrays alone, which another process can read without Pyomo."""
        return replace(self, variables=(), constraints=())

    def in_model_sense(self, minimised: float) -> float:
        """Return a minimised objective or bound in the sense of the model."""
        return -minimised if self.maximize else minimised

    def objective(self, values: Floats) -> float:
        """Return the objective of a point, shape (variables,), in the sense of the model."""
        return self.in_model_sense(float(self.cost @ values) + self.offset)

    def largest_effect(self) -> float:
        """Return the most that one variable can change the cost, within its bounds if any."""
        span = self.upper - self.lower
        effects = np.abs(self.cost) * np.where(np.isfinite(span), span, 1.0)
        return float(effects.max(initial=0.0))

    def cost_factor(self) -> float:
        """Return the power of two that brings the largest effect of a variable on the cost to 1.

        It is 1 where effects are of ordinary size already, or none is known.
        """
        largest = self.largest_effect()
        if largest == 0.0 or _SMALLEST_EFFECT <= largest <= _LARGEST_EFFECT:
            return 1.0
        return float(2.0 ** -np.rint(np.log2(largest)))

    def rounded(self, values: Floats) -> Floats:
        """Return the point with integer variables rounded where they lie within tolerance."""
        nearest = np.rint(values) + 0.0
        close = self.integer & (np.abs(values - nearest) <= INTEGRALITY)
        return np.where(close, nearest, values)

    def violation(self, values: Floats) -> str | None:
        """Return a sentence about the worst violation of a point, or None if it is feasible.

        Rows are measured relative to their largest coefficient when that is above 1; below,
        they are measured as they are, since solvers work with absolute tolerances. A row whose
        indicator is 0 after rounding is not measured.

        `values`: shape (variables,).
        """
        if values.shape != self.cost.shape:
            return f"the point has shape {values.shape}, the model {len(self.cost)} variables"
        unknown = np.flatnonzero(~np.isfinite(values))
        if unknown.size:
            return f"variable {self.variables[unknown[0]].name} has no finite value"
        activity = self.matrix @ values
        fraction = np.where(self.integer, np.abs(values - np.rint(values)), 0.0)
        checks = (
            (outside(values, self.lower, self.upper), FEASIBILITY, "is outside its bounds by"),
            (fraction, INTEGRALITY, "is away from a whole number by"),
        )
        for amounts, tolerance, text in checks:
            if amounts.size and amounts.max() > tolerance:
                worst = int(amounts.argmax())
                return f"variable {self.variables[worst].name} {text} {amounts[worst]:.3g}"
        scales = np.ones(self.matrix.shape[0])
        rows = np.repeat(np.arange(len(scales)), np.diff(self.matrix.indptr))
        np.maximum.at(scales, rows, np.abs(self.matrix.data))
        amounts = outside(activity, self.row_lower, self.row_upper) / scales
        # Rows of indicators that are off need not hold.
        indicators = self.indicators()
        on: Flags = np.rint(values[np.maximum(indicators, 0)]) == 1
        amounts = np.where((indicators < 0) | on, amounts, 0.0)
        if amounts.size and amounts.max() > FEASIBILITY:
            worst = int(amounts.argmax())
            return (
                f"constraint {self.constraints[worst].name} is violated by {amounts[worst]:.3g}, "
                f"relative to its largest coefficient"
            )
        return None

    def start_values(self) -> Floats | None:
        """Return the values that the Pyomo variables hold now, as a start.

        Returns: shape (variables,); whole numbers for integer variables, NaN for continuous ones
        without a value. None if an integer variable has no value.
        """
        given = [variable.value for variable in self.variables]
        values = np.array([np.nan if value is None else value for value in given], dtype=float)
        if np.isnan(values[self.integer]).any():
            return None
        return np.where(self.integer, np.rint(values) + 0.0, values)


def outside(values: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return by how much each value lies outside its interval, 0 inside."""
    return np.maximum(0.0, np.maximum(lower - values, values - upper))


def compile_standard_form(model: ConcreteModel) -> StandardForm:
    """Compile a linear Pyomo model to matrices.

    Fixed variables are treated as constants. Time and memory grow linearly with the non-zeros.

    `model`: a model with one active objective, linear constraints, and variables that are
    continuous or integer. It is not changed, except for the moment while its Disjuncts pass for
    blocks. Raises InputError if the model is not linear, has no or several active objectives, or
    has a component or a variable domain that a mixed-integer linear solver does not know; or if it
    has an active Disjunction or nested Disjuncts. NoSolution if a constraint without free
    variables, or the bounds of a variable, cannot hold.
    """
    from pyomo.common.gc_manager import PauseGC
    from pyomo.environ import Objective, maximize

    with PauseGC(), disjuncts_as_blocks(model) as indicators:
        objectives = list(model.component_data_objects(Objective, active=True))
        if len(objectives) != 1:
            raise InputError(
                f"the model has {len(objectives)} active objectives",
                remedy="Keep exactly one active; Objective(expr=0) asks for any feasible point",
            )
        compiled, void = _compiled(model, indicators)
        form = _from_compiled(compiled, objectives[0].sense == maximize, indicators)
        # Indicators whose constraints on fixed variables do not hold are fixed at 0.
        for variable in void:
            if variable.fixed and variable.value > 0.5:
                raise _cannot_hold(variable.parent_block().name)
        never = {id(variable) for variable in void}
        off = [column for column, variable in enumerate(form.variables) if id(variable) in never]
        return _without_empty_rows(_with_zeros(form, np.array(off, dtype=np.int64)))


def _compiled(model: ConcreteModel, indicators: Indicators) -> tuple[Any, list[Any]]:
    """Return Pyomo's matrices, and the indicators whose rows cannot hold whatever is chosen."""
    from pyomo.common.errors import InfeasibleConstraintException
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    void: list[Any] = []
    try:
        try:
            compiled = LinearStandardFormCompiler().write(model, mixed_form=True)
        except InfeasibleConstraintException as error:
            broken = _broken_constants(model)
            void = [one for one in broken if indicators.of(one) is not None]
            if not void:
                raise _constant_constraint(model) from error
            for constraint in void:
                constraint.deactivate()
            compiled = LinearStandardFormCompiler().write(model, mixed_form=True)
    except InfeasibleConstraintException as error:
        raise _constant_constraint(model) from error
    except ValueError as error:  # Pyomo's errors for what is not linear are ValueErrors
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"the model cannot be given to a linear solver: {error}",
            remedy="Make its objective and constraints linear",
        ) from error
    finally:
        for constraint in void:
            constraint.activate()
    return compiled, [indicators.of(constraint) for constraint in void]


def _from_compiled(compiled: Any, maximises: bool, indicators: Indicators) -> StandardForm:
    matrix = compiled.A.tocsr()
    matrix.sort_indices()
    sides = np.array([row.bound_type for row in compiled.rows], dtype=int)
    right = np.asarray(compiled.rhs, dtype=float)
    variables = tuple(compiled.columns)
    cost = compiled.c.toarray().reshape(-1).astype(float)
    constraints = tuple(row.constraint for row in compiled.rows)
    indicator, keep = None, np.ones(len(constraints), dtype=bool)
    if indicators:
        owners = [indicators.of(constraint) for constraint in constraints]
        used = {id(owner): owner for owner in owners if owner is not None and not owner.fixed}
        known = {id(variable) for variable in variables}
        added = tuple(owner for key, owner in used.items() if key not in known)
        variables += added
        cost = np.concatenate([cost, np.zeros(len(added))])
        matrix.resize((matrix.shape[0], len(variables)))
        column = {id(variable): number for number, variable in enumerate(variables)}
        indicator = np.array([column.get(id(owner), -1) for owner in owners], dtype=np.int64)
        keep = np.array(
            [owner is None or not owner.fixed or owner.value > 0.5 for owner in owners], dtype=bool
        )
    lower, upper = _bounds(variables)
    form = StandardForm(
        variables=variables,
        constraints=constraints,
        cost=cost,
        offset=float(compiled.c_offset[0]),
        matrix=matrix,
        row_lower=np.where(sides <= 0, right, -np.inf),
        row_upper=np.where(sides >= 0, right, np.inf),
        lower=lower,
        upper=upper,
        integer=np.array([_is_integer(variable) for variable in variables], dtype=bool),
        maximize=maximises,
        indicator=indicator,
    )
    return form if keep.all() else _with_rows(form, keep)


def _bounds(variables: tuple[Any, ...]) -> tuple[Floats, Floats]:
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


def _with_rows(form: StandardForm, keep: Flags) -> StandardForm:
    return replace(
        form,
        constraints=tuple(
            constraint for constraint, kept in zip(form.constraints, keep, strict=True) if kept
        ),
        matrix=form.matrix[keep],
        row_lower=form.row_lower[keep],
        row_upper=form.row_upper[keep],
        indicator=None if form.indicator is None else form.indicator[keep],
    )


def _with_zeros(form: StandardForm, columns: Ints) -> StandardForm:
    if not columns.size:
        return form
    upper = form.upper.copy()
    upper[columns] = 0.0
    for column in columns.tolist():
        if form.lower[column] > 0:
            raise _cannot_hold(form.variables[column].parent_block().name)
    return replace(form, upper=upper)


def _without_empty_rows(form: StandardForm) -> StandardForm:
    """Drop rows whose coefficients have all vanished, after checking that they hold."""
    filled = np.diff(form.matrix.indptr) > 0
    if filled.all():
        return form
    amounts = outside(np.zeros(len(filled)), form.row_lower, form.row_upper)
    broken = ~filled & (amounts > FEASIBILITY)
    indicators = form.indicators()
    certain = np.flatnonzero(broken & (indicators < 0))
    if certain.size:
        raise _cannot_hold(form.constraints[certain[0]].name)
    form = _with_zeros(form, np.unique(indicators[broken]))
    return _with_rows(form, filled)


def _cannot_hold(name: str) -> NoSolution:
    return NoSolution(
        f"constraint {name} has no free variable and does not hold",
        remedy="Unfix a variable in it, or deactivate it",
    )


def _constant_constraint(model: ConcreteModel) -> NoSolution | InputError:
    """Return the error for a constant constraint that does not hold exactly."""
    for constraint in _broken_constants(model):
        return _cannot_hold(constraint.name)
    return InputError(
        "a constraint without free variables misses its bound by a rounding error",
        remedy="Deactivate such constraints, or unfix a variable in them",
    )


def _broken_constants(model: ConcreteModel) -> Iterator[Any]:
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
            yield constraint


@dataclass(frozen=True)
class Indicators:
    """Which binary variable decides whether a constraint counts.

    `of_block`: ``id`` of each active Disjunct (or, once asked for, of a block in it) -> its binary
    indicator variable; None for blocks outside.
    """

    of_block: dict[int, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(variable is not None for variable in self.of_block.values())

    def of(self, constraint: Any) -> Any:
        """Return the binary indicator variable of a constraint, None if it always counts."""
        return self._of(constraint.parent_block())

    def _of(self, block: Any) -> Any:
        if block is None:
            return None
        if id(block) not in self.of_block:
            self.of_block[id(block)] = self._of(block.parent_block())
        return self.of_block[id(block)]


@contextmanager
def disjuncts_as_blocks(model: ConcreteModel) -> Iterator[Indicators]:
    """Let all active Disjuncts of a model pass for blocks, and give the model back as it was.

    Raises InputError if the model has an active Disjunction, or a Disjunct within a Disjunct.
    """
    from pyomo.environ import Block
    from pyomo.gdp import Disjunct, Disjunction

    inside = (Block, Disjunct)
    for disjunction in model.component_data_objects(Disjunction, active=True, descend_into=inside):
        raise InputError(
            f"disjunction {disjunction.name} is a logical constraint that no solver reads",
            remedy="Apply a transformation first: TransformationFactory('gdp.bigm'), "
            "'gdp.hull'; or tie the indicators together by linear constraints",
        )
    found = list(model.component_data_objects(Disjunct, active=True, descend_into=inside))
    indicators = Indicators({id(data): data.binary_indicator_var for data in found})
    for data in found:
        if indicators._of(data.parent_block()) is not None:
            raise InputError(
                f"disjunct {data.name} lies within another one",
                remedy="Transform nested disjuncts with 'gdp.bigm' or 'gdp.hull' first",
            )
    components = {id(data.parent_component()): data.parent_component() for data in found}
    try:
        for component in components.values():
            component.parent_block().reclassify_component_type(component, Block)
        yield indicators
    finally:
        for component in components.values():
            component.parent_block().reclassify_component_type(component, Disjunct)
