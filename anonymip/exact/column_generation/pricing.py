r"""Duals of the master, the pricing of columns under them, and the bound that they prove.

For duals :math:`\pi`, :math:`\sigma_0, \sigma_q \ge 0` a release costs

.. math::

    \sum_S C(S) y_S \ge \sum_i b_i \pi_i - \sum_q \sigma_q r_q - \sigma_0 N + \sum_S \bar c(S) y_S,

with the reduced costs :math:`\bar c`, the sides r of cuts and the most columns N of a release. At
most :math:`b_i` of its columns have the root i and N any root, so the last sum is at least what the
N least reduced costs of roots are together, each taken :math:`b_i` times at most and none above 0.
Lowering the dual of each root by what its columns undercut makes the duals feasible. They prove
less, since they are lowered for all rows of a root: what a column costs beyond its duals adds to
that, and not to the bound.

Columns are searched for where losses are monotone and have tables; else, for few records, they are
all listed: under limits, diversity, losses without tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import TypeAlias

import numpy as np

from anonymip.enumeration import enumerate_sets
from anonymip.enumeration.cluster_sets import Columns
from anonymip.enumeration.pricing import CutDuals, PricedColumns
from anonymip.enumeration.squared_errors import SquaredErrorPricing, pricing_of
from anonymip.errors import InputError
from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.exact.column_generation.settings import PRICING
from anonymip.exact.set_partitioning.restricted_master import (
    MasterPoint,
    Multipliers,
    RestrictedMaster,
)
from anonymip.objectives.language.tables import effects_of_cells
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.tolerances import DUAL_ROUNDING, SEARCH_ROUNDING


class Master(RestrictedMaster):
    """The restricted master of classes or covers."""

    rules: ColumnRules


@dataclass(frozen=True, eq=False)
class Centre:
    """Feasible duals, which no column undercuts but for rounding, and what they prove."""

    bound: float  # that of the duals that they were made of, lowered by what rounding may hide
    #: What they prove themselves, lowered likewise: no more than the bound, and much less where
    #: much was repaired. A release with a column of reduced cost r costs at least the value and r;
    #: the bound and r it need not cost.
    value: float
    multipliers: Multipliers


def repaired(rules: ColumnRules, multipliers: Multipliers, least: Floats) -> Centre:
    """Return the bound of any duals and feasible ones near them.

    `least` (t,) is of each root a lower bound on the reduced costs of its columns.
    """
    undercut = np.minimum(least, 0.0)
    terms = multipliers.terms(rules)
    bound = fsum(terms) + _worst_sum(undercut, rules) - rounding(rules, terms)
    feasible = replace(multipliers, duals=multipliers.duals + undercut)
    terms = feasible.terms(rules)
    return Centre(bound, min(bound, fsum(terms) - rounding(rules, terms)), feasible)


def _worst_sum(undercut: Floats, rules: ColumnRules) -> float:
    """Return the least sum of reduced costs of the columns of a release."""
    worst = np.argsort(undercut, kind="stable")
    often = rules.sides[worst]
    before = np.cumsum(often) - often
    return fsum(undercut[worst] * np.clip(rules.most - before, 0.0, often))


def rounding(rules: ColumnRules, terms: Floats) -> float:
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


class ListedColumns:
    """The pricing of columns that are all in memory; InputError if they are too many."""

    def __init__(self, rules: ColumnRules, budget: Budget) -> None:
        sets = enumerate_sets(
            rules.problem, max_size=rules.largest, max_sets=PRICING.most_listed, budget=budget
        )
        self.stopped = None if sets.complete else budget.stop_reason()
        if not sets.complete and self.stopped is None:
            raise InputError(
                f"column-generation lists the possible sets of records of this problem, and there "
                f"are more than {PRICING.most_listed:,}",
                remedy="Use a loss with tables without limits and diversity, fewer records, or a "
                "heuristic",
            )
        members = np.repeat(sets.types, sets.counts).astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(sets.sizes)])
        costs = sets.losses / rules.smallest if rules.freeform else sets.losses
        self.rules, self.columns = rules, Columns(starts, members, costs)
        self._incidence = self.columns.incidence(rules.types)
        self._sizes = self.columns.sizes
        self.spent = self.squared = False

    def best(
        self, multipliers: Multipliers, *, below: float, max_nodes: int | None, budget: Budget
    ) -> PricedColumns:
        """Return for each root and size the column of least reduced cost, if below a limit."""
        reduced = self._reduced(multipliers)
        roots = self._roots(multipliers.duals)
        least = np.full(self.rules.types, below)
        np.minimum.at(least, roots, reduced)
        order = np.lexsort((reduced, self._sizes, roots))
        new = np.ones(len(order), np.bool_)
        new[1:] = np.diff(roots[order]) + np.abs(np.diff(self._sizes[order])) > 0
        chosen = np.zeros(len(order), np.bool_)
        chosen[order[new]] = True
        chosen &= reduced < below
        return self._priced(reduced, chosen, least, True)

    def all_below(
        self,
        multipliers: Multipliers,
        threshold: float,
        *,
        max_columns: int,
        budget: Budget,
        max_nodes: int | None = None,
    ) -> PricedColumns:
        """Return all columns whose reduced cost is below a threshold."""
        reduced = self._reduced(multipliers)
        chosen = reduced < threshold
        return self._priced(reduced, chosen, np.empty(0), int(chosen.sum()) <= max_columns)

    def _priced(
        self, reduced: Floats, chosen: Flags, least: Floats, complete: bool
    ) -> PricedColumns:
        kept, nodes = self.columns.only(chosen), len(reduced)
        starts, types, costs = kept.starts, kept.types, kept.costs
        return PricedColumns(starts, types, costs, reduced[chosen], least, complete, nodes)

    def _reduced(self, multipliers: Multipliers) -> Floats:
        reduced = self.columns.costs - self._incidence.T @ multipliers.duals + multipliers.count
        return multipliers.with_cuts(reduced, self._incidence.T)

    def _roots(self, duals: Floats) -> Ints:
        """Return (c,) of each column the member of the largest dual."""
        rank = np.empty(len(duals), np.int64)
        order = np.argsort(-duals, kind="stable")
        rank[order] = np.arange(len(duals))
        if not len(self.columns):
            return np.empty(0, np.int64)
        return order[np.minimum.reduceat(rank[self.columns.types], self.columns.starts[:-1])]


class SearchedColumns:
    """The pricing by a search for sets of rows: of monotone losses with tables, of squared errors.

    All searches look at so many partial sets together; None for no limit.
    """

    def __init__(self, rules: ColumnRules, most: int | None = None) -> None:
        self._pricing = pricing_of(
            rules.problem, smallest=rules.smallest, largest=rules.largest, weight=rules.weight
        )
        self._left = most

    @property
    def squared(self) -> bool:
        """Whether what is left of a search that was cut off bounds it, if badly."""
        return isinstance(self._pricing, SquaredErrorPricing)

    @property
    def spent(self) -> bool:
        """Whether as much was looked at as the effort allows."""
        return self._left is not None and self._left <= 0

    def _taken(self, found: PricedColumns, count: float) -> PricedColumns:
        """Count what was looked at, and let the columns pay the dual of their number."""
        if self._left is not None:
            self._left -= found.nodes
        return replace(found, reduced=found.reduced + count, least=found.least + count)

    def best(
        self, multipliers: Multipliers, *, below: float, max_nodes: int | None, budget: Budget
    ) -> PricedColumns:
        """Return for each root and size columns of least reduced cost, if below a limit."""
        count = multipliers.count
        found = self._pricing.best(
            multipliers.duals,
            _cut_duals(multipliers),
            below=below - count,
            per_root=PRICING.a_size,
            max_nodes=max_nodes,
            most_nodes=None if self._left is None else max(1, self._left),
            budget=budget,
        )
        return self._taken(found, count)

    def all_below(
        self,
        multipliers: Multipliers,
        threshold: float,
        *,
        max_columns: int,
        budget: Budget,
        max_nodes: int | None = None,
    ) -> PricedColumns:
        """Return all columns whose reduced cost is below a threshold."""
        count = multipliers.count
        if self._left is not None:
            max_nodes = max(1, min(self._left, self._left if max_nodes is None else max_nodes))
        found = self._pricing.all_below(
            multipliers.duals,
            threshold - count,
            _cut_duals(multipliers),
            max_columns=max_columns,
            max_nodes=max_nodes,
            budget=budget,
        )
        return self._taken(found, count)


def _cut_duals(multipliers: Multipliers) -> CutDuals | None:
    paid = multipliers.paid_cuts
    if not paid:
        return None
    return CutDuals.of((cut.types, cut.divisor, dual) for cut, dual in paid)


#: The pricing of columns under duals and cuts.
Prices: TypeAlias = ListedColumns | SearchedColumns


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Where the rounds have ended."""

    point: MasterPoint | None  # the last vertex of the master; None without time
    centre: Centre | None  # the best feasible duals; None without time
    solved: bool  # whether they prove the whole linear program, up to a solver's tolerances
    rounds: int


def solve_relaxation(
    master: Master, prices: Prices, budget: Budget, *, centre: Centre | None = None
) -> Relaxed:
    """Price columns in until no column has a negative reduced cost, or time ends.

    Columns are priced heuristically first, by a search that is cut off; only when that finds none
    an exact round follows, whose bound holds whether or not columns are left. `centre` are feasible
    duals known before.
    """
    best, point = centre, None
    rounds, exact, smoothing = 0, False, PRICING.smoothing
    usual = below = -PRICING.negative * master.unit
    while budget.stop_reason() is None and not prices.spent:
        found = master.solve(budget)
        if found is None:
            break
        point, rounds = found, rounds + 1
        gap = np.inf if best is None else point.value - best.bound
        if point.feasible and best is not None and gap <= PRICING.solved * abs(point.value):
            return Relaxed(point, best, True, rounds)
        asked = point.multipliers
        # Duals far from feasible would only hold the others up.
        far = prices.squared and (best is None or best.bound < PRICING.near * point.value)
        if best is not None and smoothing and not far:
            asked = asked.mixed(best.multipliers, 1.0 - smoothing)
        nodes = None if exact else PRICING.heuristic_nodes
        priced = prices.best(asked, below=below, max_nodes=nodes, budget=budget)
        if not exact and not len(priced) and not priced.complete:
            exact = True
            priced = prices.best(asked, below=below, max_nodes=None, budget=budget)
        best = _better(best, master, asked, priced)
        added = master.add(priced)
        budget.report(f"{len(master.known):,} sets of records", done=rounds)
        if not added and priced.complete and asked is point.multipliers:
            return Relaxed(point, best, point.feasible, rounds)
        # Where duals undercut columns that the master has, a search cut off finds no others.
        stuck = not added and asked is point.multipliers
        # An exact one may end where it finds many: so that it does not find them again in each
        # round, it looks for columns that are cheaper than those.
        beneath = 2.0 * float(priced.reduced.min(initial=0.0)) if stuck and exact else 0.0
        below = min(below, beneath) if stuck else usual
        exact = stuck or (exact and added < PRICING.many * master.rules.types)
        # Without new columns the duals asked for are as good as feasible: those of the master next.
        few = PRICING.few * master.rules.types if exact and prices.squared else 0.0
        smoothing = PRICING.smoothing if added > few else 0.0
    return Relaxed(point, best, False, rounds)


def _better(
    best: Centre | None, master: Master, asked: Multipliers, priced: PricedColumns
) -> Centre | None:
    """Return the better of the best duals and those that a round makes feasible."""
    if not np.isfinite(priced.least).all():
        return best
    new = repaired(master.rules, asked, priced.least)
    return new if best is None or new.bound > best.bound else best
