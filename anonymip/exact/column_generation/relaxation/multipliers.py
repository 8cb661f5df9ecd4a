r"""Duals of the master, and the bound that they prove whatever pricing is short of.

For duals :math:`\pi`, :math:`\sigma_0, \sigma_q \ge 0` a release costs

.. math::

    \sum_S C(S) y_S \ge \sum_i b_i \pi_i - \sum_q \sigma_q r_q - \sigma_0 N + \sum_S \bar c(S) y_S,

with the reduced costs :math:`\bar c`, the sides r of cuts and the most columns N of a release. At
most :math:`b_i` of its columns have the root i and N any root, so the last sum is at least what the
N least reduced costs of roots are together, each taken :math:`b_i` times at most and none above 0.
Lowering the dual of each root by what its columns undercut makes the duals feasible. They prove
less, since they are lowered for all rows of a root: what a column costs beyond its duals adds to
that, and not to the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.objectives.kernels.effects import effects_of_cells
from anonymip.tolerances import DUAL_ROUNDING, SEARCH_ROUNDING


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Duals of the rows of the master, in units of the loss.

    Parameters
    ----------
    duals
        (t,) of the row types.
    cuts
        (q,) of the cuts, at least 0.
    count
        Of the number of columns, at least 0.
    """

    duals: NDArray[np.float64]
    cuts: NDArray[np.float64]
    count: float

    def mixed(self, other: Multipliers, share: float) -> Multipliers:
        """Return a share of these and the rest of others, which may know fewer cuts."""
        cuts = np.zeros(len(self.cuts))
        cuts[: len(other.cuts)] = other.cuts
        return Multipliers(
            share * self.duals + (1.0 - share) * other.duals,
            share * self.cuts + (1.0 - share) * cuts,
            share * self.count + (1.0 - share) * other.count,
        )

    def terms(self, rules: ColumnRules, sides: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the terms that make up the bound of feasible duals.

        Parameters
        ----------
        rules
            Of the columns.
        sides
            (q,) of the cuts.
        """
        return np.concatenate(
            [rules.sides * self.duals, -self.cuts * sides, [-self.count * rules.most]]
        )


@dataclass(frozen=True, eq=False)
class Centre:
    """Feasible duals, with the bound of those that they were made of.

    Parameters
    ----------
    bound
        Lowered by what rounding may hide.
    value
        What the feasible duals prove themselves, lowered likewise: no more than the bound, and much
        less where much was repaired. A release with a column of reduced cost r costs at least this
        and r; the bound and r it need not cost.
    multipliers
        No column undercuts them, but for rounding.
    """

    bound: float
    value: float
    multipliers: Multipliers


def repaired(
    rules: ColumnRules,
    multipliers: Multipliers,
    sides: NDArray[np.float64],
    least: NDArray[np.float64],
) -> Centre:
    """Return the bound of duals and feasible ones near them.

    Parameters
    ----------
    rules
        Of the columns.
    multipliers
        Any.
    sides
        (q,) of the cuts.
    least
        (t,) of each root a lower bound on the reduced costs of its columns.
    """
    undercut = np.minimum(least, 0.0)
    terms = multipliers.terms(rules, sides)
    bound = fsum(terms) + _worst_sum(undercut, rules) - rounding(rules, terms)
    feasible = Multipliers(multipliers.duals + undercut, multipliers.cuts, multipliers.count)
    terms = feasible.terms(rules, sides)
    return Centre(bound, min(bound, fsum(terms) - rounding(rules, terms)), feasible)


def _worst_sum(undercut: NDArray[np.float64], rules: ColumnRules) -> float:
    """Return the least sum of reduced costs of the columns of a release."""
    worst = np.argsort(undercut, kind="stable")
    often = rules.sides[worst]
    before = np.cumsum(often) - often
    return fsum(undercut[worst] * np.clip(rules.most - before, 0.0, often))


def rounding(rules: ColumnRules, terms: NDArray[np.float64]) -> float:
    """Return how far rounding may put off a bound that is the sum of terms, and a search for it."""
    problem = rules.problem
    size = abs(problem.unavoidable)
    if problem.compiled.has_tables:
        size += problem.n * float(
            effects_of_cells(problem.compiled.tables, problem.microdata).sum()
        )
    spread = float(np.abs(terms).sum())
    if not problem.compiled.has_tables:
        size += spread
    return SEARCH_ROUNDING * size + DUAL_ROUNDING * spread + problem.rounding
