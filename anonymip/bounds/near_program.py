"""The linear program over sets of near records of a whole table, solved in rounds of pricing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.near_pricing import NearPricing
from anonymip.bounds.record_duals import RecordDuals
from anonymip.bounds.set_program import SetProgram
from anonymip.problem import Problem
from anonymip.problem_rules import is_plain
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.budget import Budget

#: Times what the duals were where sets are sought first.
_FIRST = 1.15
#: Times its k-set term a dual becomes at most, types listed as the nearest of each, partial sets
#: looked at for each, and rounds, which end when the new sets are fewer than a share of the types.
_STAGES = ((3.0, 60, 200, 4), (8.0, 200, 1_000, 7), (8.0, 600, 8_000, 3))
_MANY = 0.02
#: How far around each type to look, in what it aims at.
_MARGIN = 1.25
#: Steps of the program in each round.
_STEPS = 200
#: Costs less duals that are about 0, in units.
_NEGATIVE = 1e-3


class NearProgram:
    """The program, what prices sets for it, and where it says that duals best stand.

    Parameters
    ----------
    duals
        That were raised a little, and what lies near.
    budget
        Ends everything.

    Attributes
    ----------
    sets
        The program of the sets that are known.
    aims
        (t,) how high the duals may be by these.
    lowest, highest
        (t,) between which they lie.
    """

    def __init__(self, duals: RecordDuals, budget: Budget) -> None:
        self._duals, self._budget = duals, budget
        self._unit = float(np.abs(duals.duals).mean())
        self._pricing = NearPricing(duals.problem, duals.types, duals.search)
        self.sets = SetProgram(duals.counts, duals.k, self._unit or 1.0)
        self.lowest, self.highest = np.fmin(duals.floors, 0.0), duals.highest(_STAGES[0][0])
        self.aims = np.clip(_FIRST * duals.duals, self.lowest, self.highest)

    def solve(self, ending: float, stages: int = len(_STAGES)) -> None:
        """Price sets until few are found.

        Parameters
        ----------
        ending
            Losses left to compute at which to end.
        stages
            How many; each looks farther and longer than the one before.
        """
        duals = self._duals
        for factor, nearest, nodes, rounds in _STAGES[:stages]:
            if duals.left <= ending:
                break
            self.highest = duals.highest(factor)
            self.look_near(duals.floors, nearest)
            for _ in range(rounds):
                if duals.left <= ending or self._budget.stop_reason() is not None:
                    break
                if self.price(nodes) < _MANY * len(duals.counts):
                    break

    def look_near(self, floors: NDArray[np.float64], nearest: int) -> None:
        """List so many types near each.

        Parameters
        ----------
        floors
            (t,) what a record of each type loses at least in any set of k; infinite for those that
            no set is to hold.
        nearest
            Types listed for each.
        """
        radii = np.where(np.isfinite(floors), np.fmin(self.highest, _MARGIN * self.aims), 0.0)
        self._pricing.look_near(floors, radii, self.aims, nearest, self._budget)

    def price(self, nodes: int) -> int:
        """Add sets that cost less than they would at best, improve the aims; return how many.

        Parameters
        ----------
        nodes
            Partial sets looked at for each type.
        """
        below = -_NEGATIVE * self._unit
        found = self._pricing.undercutting(self.aims, below, nodes, self._budget)
        added = self.sets.add(*found)
        self.improve()
        return added

    def improve(self) -> None:
        """Bring the aims nearer to the best ones for the sets that are known."""
        self.aims = self.sets.improved(self.aims, self.lowest, self.highest, _STEPS, self._budget)


def can_make_classes(problem: Problem) -> bool:
    """Return whether the sets of the program are classes that the problem allows."""
    compiled = problem.compiled
    return (
        isinstance(problem.recoding, EquivalenceClasses)
        and is_plain(problem)
        and compiled.monotone
        and compiled.aggregate == "sum"
    )
