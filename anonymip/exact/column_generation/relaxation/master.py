"""The restricted master: the linear program of the columns known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, identity, vstack

from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.exact.column_generation.cuts import RankOneCut, coefficients, right_sides
from anonymip.exact.column_generation.relaxation.columns import Columns, KnownColumns
from anonymip.exact.column_generation.relaxation.multipliers import Multipliers
from anonymip.runtime.budget import Budget
from anonymip.solvers.linear_programs import GrowingProgram

#: What a row costs that no column holds, in units.
_ARTIFICIAL = 1e4
#: Rows that are left out count from this share on.
_USED = 1e-6


@dataclass(frozen=True, eq=False)
class MasterPoint:
    """An optimal vertex of the restricted master.

    Parameters
    ----------
    value
        Its cost.
    shares
        (c,) how much of each known column it uses.
    alone
        (t,) how many rows of each type it leaves out.
    multipliers
        Its duals.
    feasible
        Whether it leaves out none that may not be.
    """

    value: float
    shares: NDArray[np.float64]
    alone: NDArray[np.float64]
    multipliers: Multipliers
    feasible: bool


class Master:
    """The restricted master, which grows by columns and cuts and goes on from its last basis.

    Its rows are the row types, the number of columns where that is counted, and the cuts. Its first
    columns leave a row of a type out: at a price where that is allowed, else at one that no release
    pays.

    Parameters
    ----------
    rules
        Which columns and sides.
    unit
        Costs are divided by it, so that a solver's tolerances fit them.
    """

    def __init__(self, rules: ColumnRules, unit: float) -> None:
        self.rules, self.unit = rules, unit
        self.known = KnownColumns()
        self.cuts: list[RankOneCut] = []
        lower, upper = rules.sides, rules.sides
        if rules.counted:
            lower, upper = np.append(lower, -np.inf), np.append(upper, float(rules.most))
        self._model = GrowingProgram(lower, upper)
        self._may_leave_out = bool(np.isfinite(rules.price))
        price = rules.price / unit if self._may_leave_out else _ARTIFICIAL
        single = vstack([identity(rules.types), csc_array((len(lower) - rules.types, rules.types))])
        self._model.add_columns(np.full(rules.types, price), csc_array(single))

    @property
    def sides(self) -> NDArray[np.float64]:
        """(q,) what the cuts sum up to at most."""
        return right_sides(self.cuts, self.rules.coverage).astype(np.float64)

    def add(self, columns: Columns) -> int:
        """Add the columns that are new, and return how many these are."""
        new = self.known.add(columns)
        if len(new):
            incidence = new.incidence(self.rules.types)
            counted = csc_array(np.ones((int(self.rules.counted), len(new))))
            rows = vstack([incidence, counted, coefficients(self.cuts, incidence.T).T])
            self._model.add_columns(new.costs / self.unit, csc_array(rows))
        return len(new)

    def add_cuts(self, cuts: Sequence[RankOneCut]) -> None:
        """Add inequalities that every release obeys."""
        incidence = self.known.all().incidence(self.rules.types)
        alone = csc_array((len(cuts), self.rules.types))
        rows = csr_array(hstack([alone, coefficients(cuts, incidence.T).T]))
        sides = right_sides(cuts, self.rules.coverage).astype(np.float64)
        self._model.add_rows(rows, np.full(len(cuts), -np.inf), sides)
        self.cuts += cuts

    def require(self, times: NDArray[np.int64]) -> None:
        """Have the first columns used at least so many times, until other times are required."""
        columns = self.rules.types + np.arange(len(times))
        self._model.require_columns(columns, times.astype(np.float64))

    def reduced_costs(self, multipliers: Multipliers, columns: Columns) -> NDArray[np.float64]:
        """Return (c,) the reduced costs of columns."""
        reduced = columns.reduced_costs(multipliers.duals) + multipliers.count
        # Duals that are older than some cuts know nothing of these.
        known = self.cuts[: len(multipliers.cuts)]
        if known:
            incidence = columns.incidence(self.rules.types)
            reduced = reduced + coefficients(known, incidence.T) @ multipliers.cuts
        return np.asarray(reduced, np.float64)

    def solve(self, budget: Budget) -> MasterPoint | None:
        """Return an optimal vertex; None if time ended."""
        found = self._model.solve(budget)
        if found is None:
            return None
        t = self.rules.types
        duals = self.unit * found.duals
        own = t + int(self.rules.counted)
        alone = found.point[:t]
        return MasterPoint(
            value=self.unit * found.value,
            shares=found.point[t:],
            alone=alone,
            multipliers=Multipliers(
                np.minimum(duals[:t], self.rules.price),
                np.maximum(-duals[own:], 0.0),
                float(max(-duals[t], 0.0)) if self.rules.counted else 0.0,
            ),
            feasible=self._may_leave_out or bool((alone <= _USED).all()),
        )
