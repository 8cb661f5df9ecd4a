"""Rounds of column generation: the master, pricing by smoothed duals, the bound of every round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonymip.exact.column_generation.relaxation.master import Master, MasterPoint
from anonymip.exact.column_generation.relaxation.multipliers import Centre, Multipliers, repaired
from anonymip.exact.column_generation.relaxation.prices import Priced, Prices
from anonymip.runtime.budget import Budget

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
