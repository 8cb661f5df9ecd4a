"""What the parts of an equivalence model share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.expr import LinearExpression

from anonymip.models.parts.ancestors import Ancestors, ancestors_of
from anonymip.models.parts.scaling import Scaling
from anonymip.objectives import LossTables
from anonymip.problem import Problem
from anonymip.recodings import Cap, EquivalenceClasses
from anonymip.recodings.rules.limits import conflicts


@dataclass(frozen=True, eq=False)
class Context:
    """What the parts of the model share; kept on the model as ``context``.

    Parameters
    ----------
    problem
        What is modelled.
    ranges, sets
        Attributes with ends and with value indicators.
    ancestors
        Of the hierarchical attributes.
    integer_ends
        Whether ends of integer attributes are integer variables, eq. (27).
    scaling
        Units of the variables for ends.
    """

    problem: Problem
    ranges: tuple[int, ...]
    sets: tuple[int, ...]
    ancestors: tuple[Ancestors, ...]
    integer_ends: bool
    scaling: Scaling

    @classmethod
    def of(cls, problem: Problem, integer_ends: bool = True) -> Context:
        """Return the context of a problem whose objective has tables."""
        tables, microdata = problem.compiled.tables, problem.microdata
        ancestors = ancestors_of(microdata, tables)
        nodes = {one.attribute for one in ancestors}
        ranges = {int(a) for a in (*tables.range_columns, *tables.pair_columns)} - nodes
        capped = {
            microdata.names.index(limit.attribute)
            for limit in problem.limits
            if isinstance(limit, Cap)
        }
        sets = {a for a in capped if microdata.attributes[a].publish == "set"}
        sets |= {int(a) for a in tables.set_columns}
        return cls(
            problem,
            tuple(sorted(ranges)),
            tuple(sorted(sets)),
            ancestors,
            integer_ends,
            Scaling.of(microdata, problem.compiled.tables),
        )

    @cached_property
    def observed(self) -> NDArray[np.float64]:
        """(n, m) the values of the table as the variables measure them."""
        return self.scaling.scaled(self.problem.microdata.values)

    @cached_property
    def conflicts(self) -> NDArray[np.bool_]:
        """(n, n) whether the limits keep two records apart."""
        problem = self.problem
        return conflicts(problem.microdata, problem.limits, np.arange(problem.n))

    @property
    def needs_transitivity(self) -> bool:
        """Whether equivalence through others is not enough.

        Shared ends pass along a chain of pairs; numbers of members, and which records are in one
        class, do not.
        """
        return self.problem.diversity is not None or bool(self.conflicts.any())

    @property
    def tables(self) -> LossTables:
        """The objective's tables."""
        return self.problem.compiled.tables

    @property
    def suppression(self) -> bool:
        """Whether records may be suppressed."""
        recoding = self.problem.recoding
        return isinstance(recoding, EquivalenceClasses) and recoding.suppression

    @property
    def values(self) -> int:
        """Number of value indicators of a record."""
        return sum(len(self.problem.microdata.levels[a]) for a in self.sets)

    @property
    def pairs(self) -> int:
        """Number of unordered pairs of records."""
        return self.problem.n * (self.problem.n - 1) // 2

    @property
    def triples(self) -> int:
        """Number of unordered triples of records."""
        return self.pairs * (self.problem.n - 2) // 3


def linear(constant: float, coefficients: list[float], variables: list[Any]) -> Any:
    """Return a linear expression the fast way."""
    return LinearExpression(constant=constant, linear_coefs=coefficients, linear_vars=variables)
