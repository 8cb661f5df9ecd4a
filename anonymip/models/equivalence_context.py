"""What the parts of the equivalence model share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.expr import LinearExpression

from anonymip.models.scaling import Scaling
from anonymip.objectives import LossTables
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses


@dataclass(frozen=True, eq=False)
class Context:
    """What the parts of the model share; kept on the model as ``context``.

    Parameters
    ----------
    problem
        What is modelled.
    ranges, sets
        Attributes with ends and with value indicators.
    integer_ends
        Whether ends of integer attributes are integer variables, eq. (27).
    scaling
        Units of the variables for ends.
    """

    problem: Problem
    ranges: tuple[int, ...]
    sets: tuple[int, ...]
    integer_ends: bool
    scaling: Scaling

    @cached_property
    def observed(self) -> NDArray[np.float64]:
        """(n, m) the values of the table as the variables measure them."""
        return self.scaling.scaled(self.problem.microdata.values)

    @property
    def tables(self) -> LossTables:
        """The objective's tables."""
        return self.problem.compiled.tables

    @property
    def suppression(self) -> bool:
        """Whether records may be suppressed."""
        recoding = self.problem.recoding
        return isinstance(recoding, EquivalenceClasses) and recoding.suppression


def linear(constant: float, coefficients: list[float], variables: list[Any]) -> Any:
    """Return a linear expression the fast way."""
    return LinearExpression(constant=constant, linear_coefs=coefficients, linear_vars=variables)
