"""One component of a pattern problem: its duals, a release, a restricted MIP that grows."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymip.bounds.patterns.pattern_duals import PatternDuals, loss_of, pattern_duals
from anonymip.exact.patterns.group_master import (
    GROUPS,
    PARTS,
    RestrictedAnswer,
    solve_groups,
    triple_bound,
)
from anonymip.exact.patterns.neighbourhoods import improve_nearby, places_of, solve_restricted
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.exact.trust import refuse_refuted, slack_of, trusted_bound
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget


def amounts_by_duals(duals: PatternDuals) -> Ints | None:
    """Return (pairs,) records of each pair; None if records are left over that need companions.

    Rows are taken by ascending reduced cost under good duals. One after the other takes, of the
    records that are left, those that cost less than their duals, and as many more as it needs, if
    these are hardly worse than its best. Records that no row has taken go to the cheapest row that
    is in use, or that has enough of them. Complexity: O(p t log(p t)).
    """
    program, k = duals.program, duals.program.k
    left = program.counts.copy()
    amounts = np.zeros(len(duals.pair_rows), np.int64)
    order = np.argsort(duals.pair_rows, kind="stable")
    begin = np.searchsorted(duals.pair_rows[order], np.arange(program.rows + 1))
    star = program.star_cost * duals.unit
    scaled = np.floor(program.costs * duals.unit).astype(np.int64)
    tried = np.flatnonzero((duals.row_losses <= PARTS.dear * star) & (np.diff(begin) > 0))
    for row in tried[np.argsort(duals.row_losses[tried], kind="stable")].tolist():
        pairs = order[begin[row] : begin[row + 1]]
        types = duals.pair_types[pairs]
        have = left[types]
        if have.sum() < k:
            continue
        # Pairs of a row ascend by the cost of a record less its dual.
        net = scaled[duals.pair_patterns[pairs]] - duals.multipliers[types]
        ahead = np.cumsum(have) - have
        taken = np.where(net <= 0, have, np.clip(k - ahead, 0, have))
        if int(taken @ net) <= max(int(duals.row_losses[row]), 0) + PARTS.worse * star * k:
            amounts[pairs] = taken
            left[types] -= taken
    _fill(duals, amounts, left)
    return None if left.any() and np.isinf(program.price) else amounts


def _fill(duals: PatternDuals, amounts: Ints, left: Ints) -> None:
    """Put records that are left into the cheapest rows in use, or with enough of them."""
    program = duals.program
    used = np.zeros(program.rows, np.bool_)
    used[duals.pair_rows[amounts > 0]] = True
    begin = np.searchsorted(duals.pair_patterns, np.arange(len(program.costs) + 1))
    for pattern in np.argsort(program.costs, kind="stable").tolist():
        if program.costs[pattern] >= program.price:
            break
        own = slice(begin[pattern], begin[pattern + 1])
        rows, types = duals.pair_rows[own], duals.pair_types[own]
        held = np.bincount(rows, weights=left[types], minlength=program.rows)
        taken = np.where((held[rows] >= program.k) | used[rows], left[types], 0)
        amounts[own] += taken
        left[types] -= taken
        used[rows[taken > 0]] = True


@dataclass(eq=False)
class PatternComponent:
    """A component of a program, the best known release of it, and what is proven.

    `types` are its row types in the whole program, `amounts` (pairs,) the records of each pair in
    the release, None without one. `by_solver` says whether the bound `lower` is what a solver
    reports, `by_triples` whether it is by duals of triples; `by_duals` is the best that needs no
    solver.
    """

    types: Ints
    duals: PatternDuals
    amounts: Ints | None
    lower: float
    by_solver: bool = False
    by_triples: bool = False
    by_duals: float = -np.inf

    @property
    def upper(self) -> float:
        """Loss of the best known release; infinite without one."""
        return np.inf if self.amounts is None else loss_of(self.duals, self.amounts)

    @property
    def closed(self) -> bool:
        """Whether nothing better can be found."""
        return self.lower >= self.upper

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.duals.pair_rows)

    def solve(self, mip: Mip) -> str | None:
        """Improve release and bound until they meet or time ends; return the solver's name.

        A pair that no better release can hold is left out for good. Where many are left, the MIP of
        those of least reduced cost is solved first, for a better release, by which more can be left
        out. Its optimum is a bound too, up to what the next pair would add.
        """
        size, named, budget = PARTS.first, None, mip.budget
        if (
            self.duals.program.k <= GROUPS.largest_k
            and np.count_nonzero(self._may_matter()) > PARTS.direct
        ):
            named = self._by_groups(mip)
        while not self.closed and budget.stop_reason() is None:
            kept = self._may_matter()
            last = int(np.count_nonzero(kept)) <= max(PARTS.direct, size)
            left_out = np.inf
            if not last:
                kept, left_out = self._cheapest(kept, size)
                last = size > PARTS.largest
            own = mip
            if not last:
                own = mip.within(_part(budget, PARTS.seconds))
                if self.amounts is not None and size == PARTS.first:
                    nearby = mip.within(budget.share(PARTS.nearby))
                    self.amounts = improve_nearby(self.duals, self.amounts, nearby)
            if self.amounts is not None:
                kept |= self.amounts > 0
            answer = solve_restricted(self.duals, kept, self.amounts, own)
            named = answer.solver
            self._take(answer, left_out)
            if last:
                break
            size *= 2
        return named

    def _by_groups(self, mip: Mip) -> str | None:
        """Improve release and bound by groups of few records; return the solver's name.

        Groups are taken by reduced cost under duals of records and triples. Once all are there that
        a better release can hold, their best release is optimal; before that its loss is a bound up
        to what the next group would add.
        """
        budget = mip.budget
        if self.amounts is None:
            return None
        prices = triple_bound(self.duals, self.amounts, self.upper, budget.share(GROUPS.duals))
        if prices is None:
            return None
        if prices.bound > self.lower:
            self.lower, self.by_solver, self.by_triples = prices.bound, False, True
            self.by_duals = self.lower
        named, value, size = None, prices.value, GROUPS.in_mip
        while not self.closed and budget.stop_reason() is None:
            near, most = prices.cheapest(self._target() - value, size, budget)
            if near is None:
                break
            last = most >= self._target() - value
            seconds = GROUPS.seconds if size == GROUPS.in_mip else PARTS.seconds
            own = mip if last else mip.within(_part(budget, seconds))
            answer = solve_groups(self.duals, self.amounts, near, prices.triples, own)
            named = answer.solver
            self._take(answer, np.inf if last else self.duals.lifted(value + most))
            if last or size >= GROUPS.most_in_mip:
                break
            if size == GROUPS.in_mip:
                within, room = mip.within(budget.share(GROUPS.nearby)), self._target() - value
                near, _ = prices.cheapest(room, GROUPS.most_in_mip, within.budget)
                if near is not None:
                    self.amounts = improve_nearby(
                        self.duals, self.amounts, within, groups=near, enough=self.lower
                    )
            size *= 2
        return named

    def _target(self) -> int:
        """Return the greatest loss that is better than the best known, in units of the duals."""
        duals, upper = self.duals, self.upper
        # Compared as losses that are possible: a pair out of question reaches the upper bound.
        grid = duals.program.grid
        if grid:
            return (round(upper * grid) - 1) * duals.unit // grid
        return int(np.ceil(upper * duals.unit))

    def _may_matter(self) -> Flags:
        """Return (pairs,) those that a better release may hold."""
        duals = self.duals
        if np.isinf(self.upper):
            return np.ones(self.pairs, np.bool_)
        return np.asarray(duals.reduced_costs <= self._target() - duals.value)

    def _cheapest(self, kept: Flags, size: int) -> tuple[Flags, float]:
        """Return so many pairs of least reduced cost, and a bound on releases with others."""
        reduced = self.duals.reduced_costs
        threshold = np.partition(reduced[kept], size)[size]
        rest = reduced[reduced > threshold]
        left_out = np.inf
        if len(rest):
            left_out = self.duals.lifted(self.duals.value + int(rest.min()))
        return kept & (reduced <= threshold), left_out

    def forget_solver(self) -> None:
        """Take back what solvers have reported."""
        if self.by_solver:
            self.lower, self.by_solver = self.by_duals, False

    def _take(self, answer: RestrictedAnswer, left_out: float) -> None:
        """Take release and bound of a restricted MIP; others cost `left_out` at least."""
        before, bound = self.upper, answer.bound
        if answer.amounts is not None and loss_of(self.duals, answer.amounts) < before:
            self.amounts = answer.amounts
        if bound is None:
            return
        if np.isfinite(bound):
            # Costs of a record in no row are in the model as well as those of patterns.
            losses = self.duals.program.losses
            slack = slack_of(losses, self.duals.program.records)
            refuse_refuted(answer.solver, bound, self.upper, slack, None)
            trusted = trusted_bound(losses, bound, self.upper)
            if trusted is None:
                return
            bound = trusted
        found = min(bound, left_out, before, self.upper)
        if found > self.lower:
            self.lower, self.by_solver = found, True


def _part(budget: Budget, seconds: float) -> Budget:
    """Return a budget of so many seconds, and of a quarter of what is left at most."""
    left = budget.remaining()
    if left is not None:
        seconds = min(seconds, max(left / 4, min(left, 1.0), 1e-3))
    return budget.renewed(seconds)


def components_of(duals: PatternDuals) -> list[PatternComponent]:
    """Return the components of a program, which share no output row, small ones together.

    What is proven optimal from the start comes first, then the components with few pairs.
    """
    program = duals.program
    count, pairs = program.type_count, len(duals.pair_rows)
    graph = coo_array(
        (np.ones(pairs), (duals.pair_types, count + duals.pair_rows)),
        shape=(count + program.rows, count + program.rows),
    )
    joined = connected_components(graph, directed=False)[1][:count]
    labels = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    number = int(labels.max(initial=-1)) + 1
    lower = duals.values(labels, number)
    amounts, upper = _best_of(duals, labels, number)
    held = np.bincount(labels[duals.pair_types], minlength=number)
    closed = np.array([duals.lifted(int(low)) for low in lower]) >= upper
    # What has no pair has one release, whatever its duals were rounded to.
    single = held == 0
    groups = [np.flatnonzero(own) for own in (single, closed & ~single) if own.any()]
    batch: list[int] = []
    for component in (open_ := np.flatnonzero(~closed & ~single))[
        np.argsort(held[open_], kind="stable")
    ].tolist():
        if held[component] > PARTS.small or held[batch].sum() + held[component] > PARTS.batch:
            groups += [np.array(batch)] if batch else []
            batch = []
        batch.append(component)
    groups += [np.array(batch)] if batch else []
    components = []
    for group in groups:
        types = np.flatnonzero(np.isin(labels, group))
        own, chosen = duals, amounts
        if len(types) < program.type_count:
            restricted = program.restricted_to(types)
            own = pattern_duals(restricted, duals.multipliers[types] / duals.unit)
            chosen = None if amounts is None else amounts[places_of(duals, types, own)]
        component = PatternComponent(types, own, chosen, own.bound)
        # Bounds are raised to possible losses one by one, which proves more than at once.
        component.lower = max(component.lower, fsum(duals.lifted(int(low)) for low in lower[group]))
        if not component.pairs:
            component.lower = component.upper
        component.by_duals = component.lower
        components.append(component)
    return components


def _best_of(duals: PatternDuals, labels: Ints, number: int) -> tuple[Ints | None, Floats]:
    """Return the better release of each component by two heuristics, and its losses."""
    amounts = greedy_amounts(duals)
    upper = _losses_by_component(duals, amounts, labels, number)
    other = amounts_by_duals(duals)
    if other is None:
        return amounts, upper
    if amounts is None:
        return other, _losses_by_component(duals, other, labels, number)
    losses = _losses_by_component(duals, other, labels, number)
    better = (losses < upper)[labels]
    return (np.where(better[duals.pair_types], other, amounts), np.minimum(losses, upper))


def _losses_by_component(
    duals: PatternDuals, amounts: Ints | None, labels: Ints, number: int
) -> Floats:
    if amounts is None:
        return np.full(number, np.inf)
    program = duals.program
    given = np.bincount(duals.pair_types, weights=amounts, minlength=program.type_count)
    unassigned = program.counts - given
    weights = unassigned
    if unassigned.any():
        weights = np.where(unassigned > 0, program.price, 0.0) * unassigned
    losses = np.zeros(number)
    np.add.at(losses, labels, weights)
    paid = program.costs[duals.pair_patterns] * amounts
    np.add.at(losses, labels[duals.pair_types], paid)
    return losses


def greedy_amounts(duals: PatternDuals) -> Ints | None:
    """Return (pairs,) the records of each pair if patterns are used by ascending cost.

    Algorithm 1 of Bredereck et al. 2013. None if records are left over that need companions.
    """
    amounts, left = np.zeros(len(duals.pair_rows), np.int64), duals.program.counts.copy()
    _fill(duals, amounts, left)
    return None if left.any() and np.isinf(duals.program.price) else amounts
