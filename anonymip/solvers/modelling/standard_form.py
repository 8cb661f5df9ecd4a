"""A linear model as matrices, and the check of a point against them.

The form is always a minimisation::

    minimise    cost @ x + offset
    subject to  row_lower <= matrix @ x <= row_upper
                lower <= x <= upper,   x[integer] whole numbers

where a row with an indicator, a binary variable, need hold only if that variable is 1.

A model that maximises is compiled (:mod:`.standard_form_compiler`) with its signs turned;
:meth:`StandardForm.objective` and :meth:`StandardForm.in_model_sense` turn them back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.tolerances import FEASIBILITY, INTEGRALITY

if TYPE_CHECKING:
    from numpy.typing import NDArray
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
