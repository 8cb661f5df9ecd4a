"""One part of a pattern problem, solved apart: prices, a release, a kernel that grows."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymip.bounds.pattern_prices import PatternPrices, price_patterns
from anonymip.budget import Budget
from anonymip.exact.patterns.kernel import solve_kernel
from anonymip.exact.patterns.neighbourhoods import improve_nearby, places_of
from anonymip.exact.patterns.priced_greedy import priced_amounts
from anonymip.solvers import SolverOptions

#: Pairs that a kernel may have to be solved to the end at once.
_DIRECT = 40_000
#: Pairs of the first kernel otherwise; each next one has twice as many, up to the largest.
_FIRST, _LARGEST = 6_000, 150_000
#: Seconds that a kernel gets at most before the last.
_SECONDS = 20.0
#: Share of the time of a part with many pairs in which its release is improved piece by piece.
_NEARBY = 0.6
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
    """

    kinds: NDArray[np.int64]
    prices: PatternPrices
    amounts: NDArray[np.int64] | None
    lower: float
    by_solver: bool = False

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
        A pair that no better release can hold is left out for good. Where many are left, a kernel
        of those that cost least beyond the prices is solved first, for a better release, by which
        more can be left out. Its optimum is a bound too, up to what the next pair would add.
        """
        size, named = _FIRST, None
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
                own = budget.renewed(_SECONDS if left is None else min(_SECONDS, max(left / 4, 1)))
                if self.amounts is not None and size == _FIRST:
                    self.amounts = improve_nearby(
                        self.prices, self.amounts, solver, options, budget.share(_NEARBY)
                    )
            if self.amounts is not None:
                kept |= self.amounts > 0
            answer = solve_kernel(self.prices, kept, self.amounts, solver, options, own)
            named = answer.solver
            before = self.upper
            if answer.amounts is not None and loss_of(self.prices, answer.amounts) < before:
                self.amounts = answer.amounts
            self._raise(answer.bound, beyond, before)
            if last:
                break
            size *= 2
        return named

    def _may_matter(self) -> NDArray[np.bool_]:
        """Return (pairs,) those that a better release may hold."""
        prices, upper = self.prices, self.upper
        if np.isinf(upper):
            return np.ones(self.pairs, np.bool_)
        # Compared as losses that are possible: a pair out of question reaches the upper bound.
        grid = prices.program.grid
        if grid:
            target = (round(upper * grid) - 1) * prices.unit // grid
        else:
            target = int(np.ceil(upper * prices.unit))
        return np.asarray(prices.excess <= target - prices.value)

    def _cheapest(self, kept: NDArray[np.bool_], size: int) -> tuple[NDArray[np.bool_], float]:
        """Return so many pairs that cost least beyond the prices, and what others lead to."""
        excess = self.prices.excess
        threshold = np.partition(excess[kept], size)[size]
        rest = excess[excess > threshold]
        beyond = np.inf
        if len(rest):
            beyond = self.prices.lifted(self.prices.value + int(rest.min()))
        return kept & (excess <= threshold), beyond

    def _raise(self, bound: float | None, beyond: float, before: float) -> None:
        """Take the bound of a kernel: of what uses others `beyond` is known, or `before`."""
        if bound is None:
            return
        grid = self.prices.program.grid
        if grid and np.isfinite(bound):
            bound = float(np.ceil(bound * grid - _SLACK)) / grid
        found = min(bound, beyond, before, self.upper)
        if found > self.lower:
            self.lower, self.by_solver = found, True


def loss_of(prices: PatternPrices, amounts: NDArray[np.int64]) -> float:
    """Return the loss of a release: of its pairs, and of the records that are in none."""
    program = prices.program
    lone = program.records - int(amounts.sum())
    used = np.flatnonzero(amounts)
    losses = fsum(program.costs[prices.pair_patterns[used]] * amounts[used])
    return losses + (program.price * lone if lone else 0.0)


def parts_of(prices: PatternPrices) -> list[PatternPart]:
    """Return the parts of a program that share no output row, small ones together.

    What is proven optimal from the start stands first, then the parts with few pairs.
    """
    program = prices.program
    count, pairs = program.kinds, len(prices.pair_rows)
    graph = coo_array(
        (np.ones(pairs), (prices.pair_kinds, count + prices.pair_rows)),
        shape=(count + program.rows, count + program.rows),
    )
    joined = connected_components(graph, directed=False)[1][:count]
    labels = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    number = int(labels.max(initial=-1)) + 1
    lower = prices.values(labels, number)
    amounts, upper = _best_of(prices, labels, number)
    held = np.bincount(labels[prices.pair_kinds], minlength=number)
    closed = np.array([prices.lifted(int(low)) for low in lower]) >= upper
    groups = [np.flatnonzero(closed)] if closed.any() else []
    batch: list[int] = []
    for part in (open_ := np.flatnonzero(~closed))[np.argsort(held[open_], kind="stable")].tolist():
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
        parts.append(part)
    return parts


def _part(
    prices: PatternPrices, amounts: NDArray[np.int64] | None, kinds: NDArray[np.int64]
) -> PatternPart:
    if len(kinds) == prices.program.kinds:
        return PatternPart(kinds, prices, amounts, prices.bound)
    program = prices.program.part(kinds)
    own = price_patterns(program, prices.prices[kinds] / prices.unit)
    chosen = None if amounts is None else amounts[places_of(prices, kinds, own)]
    return PatternPart(kinds, own, chosen, own.bound)


def _best_of(
    prices: PatternPrices, labels: NDArray[np.int64], number: int
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
        np.where(better[prices.pair_kinds], other, amounts),
        np.minimum(losses, upper),
    )


def _losses_by_part(
    prices: PatternPrices, amounts: NDArray[np.int64] | None, labels: NDArray[np.int64], number: int
) -> NDArray[np.float64]:
    if amounts is None:
        return np.full(number, np.inf)
    program = prices.program
    given = np.bincount(prices.pair_kinds, weights=amounts, minlength=program.kinds)
    lone = program.counts - given
    weights = np.where(lone > 0, program.price, 0.0) * lone if lone.any() else lone
    losses = np.zeros(number)
    np.add.at(losses, labels, weights)
    paid = program.costs[prices.pair_patterns] * amounts
    np.add.at(losses, labels[prices.pair_kinds], paid)
    return losses


def greedy_amounts(prices: PatternPrices) -> NDArray[np.int64] | None:
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
        rows, kinds = prices.pair_rows[own], prices.pair_kinds[own]
        if not len(rows):
            continue
        held = np.zeros(int(rows.max()) + 1, np.int64)
        np.add.at(held, rows, left[kinds])
        taken = np.where(held[rows] >= program.k, left[kinds], 0)
        amounts[own] = taken
        left[kinds] -= taken
    return None if left.any() and np.isinf(program.price) else amounts
