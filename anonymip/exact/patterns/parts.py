"""One part of a pattern problem, solved apart: prices, a release, a restricted MIP that grows."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymip.bounds.patterns.pattern_duals import PatternDuals, loss_of, pattern_duals
from anonymip.exact.patterns.neighbourhoods import (
    improve_by_groups,
    improve_nearby,
    places_of,
)
from anonymip.exact.patterns.restricted_master.group_mip import solve_groups
from anonymip.exact.patterns.restricted_master.master import (
    TriplePricing,
    cheapest_groups,
    price_triples,
)
from anonymip.exact.patterns.restricted_master.priced_greedy import priced_amounts
from anonymip.exact.patterns.restricted_master.restricted_mip import solve_restricted
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions

#: Pairs that a restricted MIP may have to be solved to the end at once.
_DIRECT = 40_000
#: Pairs of the first restricted MIP otherwise; each next one has twice as many, up to the largest.
_FIRST, _LARGEST = 6_000, 150_000
#: Seconds that a restricted MIP gets at most before the last.
_SECONDS = 20.0
#: Share of the time of a part with many pairs in which its release is improved piece by piece.
_NEARBY = 0.6
#: Groups of few records are tried up to this k, with this share of the time for their prices.
_LARGEST_K, _PRICING = 3, 0.5
#: Groups of the first MIP on them, and of the last.
_GROUPS, _MOST_GROUPS = 10_000, 80_000
#: Seconds of the first, and share of the time for neighbourhoods after it.
_FIRST_SECONDS, _BY_GROUPS = 5.0, 0.85
#: Parts with fewer pairs are solved several at once, up to so many pairs.
_SMALL, _BATCH = 400, 1_500
#: What a solver's tolerances may add to its bound where losses lie on a grid, in steps of it.
_SLACK = 1e-3


@dataclass(eq=False)
class PatternPart:
    """A part of a program, the best known release of it, and what is proven.

    Parameters
    ----------
    kinds
        The kinds of the whole program that it has.
    prices
        Prices of its records.
    amounts
        (pairs,) records of each pair in the best known release; None without one.
    lower
        Proven bound.
    by_solver
        Whether the bound is a solver's word.
    by_triples
        Whether it is by prices of triples.
    """

    kinds: NDArray[np.int64]
    prices: PatternDuals
    amounts: NDArray[np.int64] | None
    lower: float
    by_solver: bool = False
    by_triples: bool = False

    @property
    def upper(self) -> float:
        """Loss of the best known release; infinite without one."""
        return np.inf if self.amounts is None else loss_of(self.prices, self.amounts)

    @property
    def closed(self) -> bool:
        """Whether nothing better can be found."""
        return self.lower >= self.upper

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.prices.pair_rows)

    def solve(self, solver: str, options: SolverOptions, budget: Budget) -> str | None:
        """Improve release and bound until they meet or time ends; return the solver's name.

        Notes
        -----
        A pair that no better release can hold is left out for good. Where many are left, the MIP
        of those that cost least beyond the prices is solved first, for a better release, by which
        more can be left out. Its optimum is a bound too, up to what the next pair would add.
        """
        size, named = _FIRST, None
        if self.prices.program.k <= _LARGEST_K and np.count_nonzero(self._may_matter()) > _DIRECT:
            named = self._by_groups(solver, options, budget)
        while not self.closed and budget.stop_reason() is None:
            kept = self._may_matter()
            last = int(np.count_nonzero(kept)) <= max(_DIRECT, size)
            beyond = np.inf
            if not last:
                kept, beyond = self._cheapest(kept, size)
                last = size > _LARGEST
            own = budget
            if not last:
                left = budget.remaining()
                own = budget.renewed(
                    _SECONDS if left is None else min(_SECONDS, max(left / 4, min(left, 1.0), 1e-3))
                )
                if self.amounts is not None and size == _FIRST:
                    self.amounts = improve_nearby(
                        self.prices, self.amounts, solver, options, budget.share(_NEARBY)
                    )
            if self.amounts is not None:
                kept |= self.amounts > 0
            answer = solve_restricted(self.prices, kept, self.amounts, solver, options, own)
            named = answer.solver
            before = self.upper
            if answer.amounts is not None and loss_of(self.prices, answer.amounts) < before:
                self.amounts = answer.amounts
            self._raise(answer.bound, beyond, before)
            if last:
                break
            size *= 2
        return named

    def _by_groups(self, solver: str, options: SolverOptions, budget: Budget) -> str | None:
        """Improve release and bound by groups of few records; return the solver's name.

        Notes
        -----
        Groups are taken by what they cost beyond prices with triples. Once all are there that a
        better release can hold, their best release is optimal; before that its loss is a bound up
        to what the next group would add.
        """
        if self.amounts is None:
            return None
        pricing = price_triples(self.prices, self.amounts, self.upper, budget.share(_PRICING))
        if pricing is None:
            return None
        if pricing.bound > self.lower:
            self.lower, self.by_solver, self.by_triples = pricing.bound, False, True
        named, prices, triples = None, pricing.prices, pricing.triples
        size = _GROUPS
        while not self.closed and budget.stop_reason() is None:
            room = self._target() - pricing.value
            near, most = cheapest_groups(prices, triples, room, size, budget)
            if near is None:
                break
            last = most >= self._target() - pricing.value
            own = budget
            if not last:
                left = budget.remaining()
                seconds = _FIRST_SECONDS if size == _GROUPS else _SECONDS
                own = budget.renewed(
                    seconds if left is None else min(seconds, max(left / 4, min(left, 1.0), 1e-3))
                )
            before = self.upper
            answer = solve_groups(
                self.prices, self.amounts, near, triples.triples, solver, options, own
            )
            named = answer.solver
            if answer.amounts is not None and loss_of(self.prices, answer.amounts) < before:
                self.amounts = answer.amounts
            beyond = np.inf if last else prices.lifted(pricing.value + most)
            self._raise(answer.bound, beyond, before)
            if last or size >= _MOST_GROUPS:
                break
            if size == _GROUPS:
                self._fill_again(pricing, solver, options, budget.share(_BY_GROUPS))
            size *= 2
        return named

    def _fill_again(
        self, pricing: TriplePricing, solver: str, options: SolverOptions, budget: Budget
    ) -> None:
        """Improve the release by neighbourhoods of groups."""
        room = self._target() - pricing.value
        near, _ = cheapest_groups(pricing.prices, pricing.triples, room, _MOST_GROUPS, budget)
        if near is not None and self.amounts is not None:
            self.amounts = improve_by_groups(
                self.prices, self.amounts, near, self.lower, solver, options, budget
            )

    def _target(self) -> int:
        """Return the greatest loss that is better than the best known, in units of the prices."""
        prices, upper = self.prices, self.upper
        # Compared as losses that are possible: a pair out of question reaches the upper bound.
        grid = prices.program.grid
        if grid:
            return (round(upper * grid) - 1) * prices.unit // grid
        return int(np.ceil(upper * prices.unit))

    def _may_matter(self) -> NDArray[np.bool_]:
        """Return (pairs,) those that a better release may hold."""
        prices = self.prices
        if np.isinf(self.upper):
            return np.ones(self.pairs, np.bool_)
        return np.asarray(prices.reduced_costs <= self._target() - prices.value)

    def _cheapest(self, kept: NDArray[np.bool_], size: int) -> tuple[NDArray[np.bool_], float]:
        """Return so many pairs that cost least beyond the prices, and what others lead to."""
        excess = self.prices.reduced_costs
        threshold = np.partition(excess[kept], size)[size]
        rest = excess[excess > threshold]
        beyond = np.inf
        if len(rest):
            beyond = self.prices.lifted(self.prices.value + int(rest.min()))
        return kept & (excess <= threshold), beyond

    def _raise(self, bound: float | None, beyond: float, before: float) -> None:
        """Take the bound of a restricted MIP; others cost at least `beyond`, or `before`."""
        if bound is None:
            return
        grid = self.prices.program.grid
        if grid and np.isfinite(bound):
            bound = float(np.ceil(bound * grid - _SLACK)) / grid
        found = min(bound, beyond, before, self.upper)
        if found > self.lower:
            self.lower, self.by_solver = found, True


def parts_of(prices: PatternDuals) -> list[PatternPart]:
    """Return the parts of a program that share no output row, small ones together.

    What is proven optimal from the start stands first, then the parts with few pairs.
    """
    program = prices.program
    count, pairs = program.kinds, len(prices.pair_rows)
    graph = coo_array(
        (np.ones(pairs), (prices.pair_types, count + prices.pair_rows)),
        shape=(count + program.rows, count + program.rows),
    )
    joined = connected_components(graph, directed=False)[1][:count]
    labels = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    number = int(labels.max(initial=-1)) + 1
    lower = prices.values(labels, number)
    amounts, upper = _best_of(prices, labels, number)
    held = np.bincount(labels[prices.pair_types], minlength=number)
    closed = np.array([prices.lifted(int(low)) for low in lower]) >= upper
    # What has no pair has one release, whatever its price was rounded to.
    single = held == 0
    groups = [np.flatnonzero(own) for own in (single, closed & ~single) if own.any()]
    batch: list[int] = []
    for part in (open_ := np.flatnonzero(~closed & ~single))[
        np.argsort(held[open_], kind="stable")
    ].tolist():
        if held[part] > _SMALL or held[batch].sum() + held[part] > _BATCH:
            groups += [np.array(batch)] if batch else []
            batch = []
        batch.append(part)
    groups += [np.array(batch)] if batch else []
    parts = []
    for group in groups:
        part = _part(prices, amounts, np.flatnonzero(np.isin(labels, group)))
        # Bounds are raised to possible losses one by one, which proves more than at once.
        part.lower = max(part.lower, fsum(prices.lifted(int(low)) for low in lower[group]))
        if not part.pairs:
            part.lower = part.upper
        parts.append(part)
    return parts


def _part(
    prices: PatternDuals, amounts: NDArray[np.int64] | None, kinds: NDArray[np.int64]
) -> PatternPart:
    if len(kinds) == prices.program.kinds:
        return PatternPart(kinds, prices, amounts, prices.bound)
    program = prices.program.part(kinds)
    own = pattern_duals(program, prices.duals[kinds] / prices.unit)
    chosen = None if amounts is None else amounts[places_of(prices, kinds, own)]
    return PatternPart(kinds, own, chosen, own.bound)


def _best_of(
    prices: PatternDuals, labels: NDArray[np.int64], number: int
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
    """Return the better release of each part by two heuristics, and its losses."""
    amounts = greedy_amounts(prices)
    upper = _losses_by_part(prices, amounts, labels, number)
    other = priced_amounts(prices)
    if other is None:
        return amounts, upper
    if amounts is None:
        return other, _losses_by_part(prices, other, labels, number)
    losses = _losses_by_part(prices, other, labels, number)
    better = (losses < upper)[labels]
    return (
        np.where(better[prices.pair_types], other, amounts),
        np.minimum(losses, upper),
    )


def _losses_by_part(
    prices: PatternDuals, amounts: NDArray[np.int64] | None, labels: NDArray[np.int64], number: int
) -> NDArray[np.float64]:
    if amounts is None:
        return np.full(number, np.inf)
    program = prices.program
    given = np.bincount(prices.pair_types, weights=amounts, minlength=program.kinds)
    lone = program.counts - given
    weights = np.where(lone > 0, program.price, 0.0) * lone if lone.any() else lone
    losses = np.zeros(number)
    np.add.at(losses, labels, weights)
    paid = program.costs[prices.pair_patterns] * amounts
    np.add.at(losses, labels[prices.pair_types], paid)
    return losses


def greedy_amounts(prices: PatternDuals) -> NDArray[np.int64] | None:
    """Return (pairs,) the records of each pair if patterns are used by ascending cost.

    None if records are left over that need companions.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Algorithm 1.
    """
    program = prices.program
    left = program.counts.copy()
    amounts = np.zeros(len(prices.pair_rows), np.int64)
    begin = np.searchsorted(prices.pair_patterns, np.arange(len(program.costs) + 1))
    for pattern in np.argsort(program.costs, kind="stable").tolist():
        if program.costs[pattern] >= program.price:
            break
        own = slice(begin[pattern], begin[pattern + 1])
        rows, kinds = prices.pair_rows[own], prices.pair_types[own]
        if not len(rows):
            continue
        held = np.zeros(int(rows.max()) + 1, np.int64)
        np.add.at(held, rows, left[kinds])
        taken = np.where(held[rows] >= program.k, left[kinds], 0)
        amounts[own] = taken
        left[kinds] -= taken
    return None if left.any() and np.isinf(program.price) else amounts
