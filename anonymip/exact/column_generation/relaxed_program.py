"""The restricted master of all columns known so far, and the rounds that price columns in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, identity, vstack

from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.exact.column_generation.pricing import Centre, Multipliers, Priced, Prices, repaired
from anonymip.exact.set_partitioning.rank_one_cuts import RankOneCut, coefficients, right_sides
from anonymip.exact.set_partitioning.set_columns import Columns, KnownColumns
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


#: Share of the best feasible duals in those that columns are priced by.
_SMOOTHING = 0.6
#: Reduced costs this near to 0 are none, in units.
_NEGATIVE = 1e-9
#: Partial sets of each root and size that the heuristic pricing looks at.
HEURISTIC_NODES = 300
#: The relaxation is solved when its value and its bound differ by this share.
_SOLVED = 1e-8
#: New columns, as a share of the row types, from which on pricing is heuristic again.
_MANY = 0.25


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Where the rounds have ended.

    Parameters
    ----------
    point
        The last vertex of the master; None if there was no time for one.
    centre
        The best feasible duals; None if no exact pricing has ended.
    solved
        Whether the bound is that of the whole linear program, up to a solver's tolerances.
    rounds
        How many there were.
    """

    point: MasterPoint | None
    centre: Centre | None
    solved: bool
    rounds: int


def solve_relaxation(
    master: Master,
    prices: Prices,
    budget: Budget,
    *,
    centre: Centre | None = None,
) -> Relaxed:
    """Price columns in until no column has a negative reduced cost, or time ends.

    Columns are priced heuristically first, by a search that is cut off; only when that finds none
    an exact round follows, whose bound holds whether or not columns are left.

    Parameters
    ----------
    master
        With columns to start from.
    prices
        Of the columns.
    budget
        Ends the rounds, as does what the pricing may look at.
    centre
        Feasible duals known before.
    """
    best, point = centre, None
    rounds, exact, smoothing = 0, False, _SMOOTHING
    while budget.stop_reason() is None and not prices.spent:
        found = master.solve(budget)
        if found is None:
            break
        point, rounds = found, rounds + 1
        if point.feasible and best is not None and _meets(point.value, best.bound):
            return Relaxed(point, best, True, rounds)
        asked = point.multipliers
        if best is not None and smoothing:
            asked = asked.mixed(best.multipliers, 1.0 - smoothing)
        priced = _price(master, prices, asked, None if exact else HEURISTIC_NODES, budget)
        if not exact and not len(priced.columns) and not priced.complete:
            exact, priced = True, _price(master, prices, asked, None, budget)
        best = _better(best, master, asked, priced)
        added = master.add(priced.columns)
        budget.report(f"{len(master.known):,} sets of records", done=rounds)
        if not added and priced.complete and asked is point.multipliers:
            return Relaxed(point, best, point.feasible, rounds)
        # Where duals undercut columns that the master has, a search cut off finds no others.
        stuck = not added and asked is point.multipliers
        exact = stuck or (exact and added < _MANY * master.rules.types)
        # Without new columns the duals asked for are as good as feasible: those of the master next.
        smoothing = _SMOOTHING if added else 0.0
    return Relaxed(point, best, False, rounds)


def _price(
    master: Master, prices: Prices, asked: Multipliers, nodes: int | None, budget: Budget
) -> Priced:
    below = -_NEGATIVE * master.unit
    return prices.best(asked, master.cuts, below=below, max_nodes=nodes, budget=budget)


def _better(
    best: Centre | None, master: Master, asked: Multipliers, priced: Priced
) -> Centre | None:
    """Return the better of the best duals and those that a round makes feasible."""
    if priced.least is None or not np.isfinite(priced.least).all():
        return best
    new = repaired(master.rules, asked, master.sides, priced.least)
    return new if best is None or new.bound > best.bound else best


def _meets(value: float, bound: float) -> bool:
    return value - bound <= _SOLVED * abs(value)
