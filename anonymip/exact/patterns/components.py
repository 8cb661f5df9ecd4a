"""One component of a pattern problem: its duals, a release, restricted MIPs that improve it.

Those are on pairs of records and rows: one that grows, and neighbourhoods that are filled again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np
from scipy.sparse import block_array, coo_array, csr_array, identity
from scipy.sparse.csgraph import connected_components

from anonymip.bounds.patterns.pattern_duals import PatternDuals, loss_of, pattern_duals
from anonymip.errors import SolverError
from anonymip.exact.patterns.group_master import (
    GROUPS,
    PARTS,
    RecordGroups,
    RestrictedAnswer,
    solve_groups,
    triple_bound,
)
from anonymip.exact.set_partitioning.restricted_master import Mip, whole_form
from anonymip.exact.trust import RefutedClaim, refuse_refuted, slack_of, trusted_bound
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.solvers import StandardForm
from anonymip.solvers.linear_programs import solve_linear_program
from anonymip.status import Stopped
from anonymip.tolerances import INTEGRALITY, same_loss


def solve_restricted(
    duals: PatternDuals, kept: Flags, amounts: Ints | None, mip: Mip
) -> RestrictedAnswer:
    """Return the best way to use the pairs that are kept, of a row type i and an output row r.

    `amounts` (pairs,) is a start that uses no others. With y the rows in use and x the records of a
    row type in a row: x_ir <= n_i y_r, the sum of x over a row at least k y_r, and the sum over the
    rows of a row type equal to n_i, or at most n_i if records may go without companions, at their
    cost. For fixed y this is a transportation problem, whose vertices are whole numbers: x is
    continuous in the model, and where a solver's point is no vertex, one is found by a linear
    program. SolverError if what the solver returns contradicts itself or the start.
    """
    pairs = np.flatnonzero(kept)
    form = _form(duals, pairs)
    start = None
    if amounts is not None:
        used = np.isin(np.unique(duals.pair_rows[pairs]), duals.pair_rows[amounts > 0])
        start = np.concatenate([amounts[pairs], used]).tolist()
    result = mip.solve(form, start)
    bound = result.bound
    if result.stopped is Stopped.INFEASIBLE:
        if amounts is not None:
            raise RefutedClaim.of_infeasible(result.solver, None)
        bound = np.inf
    if result.values is None:
        return RestrictedAnswer(None, bound, result.solver)
    found = np.zeros(len(duals.pair_rows), np.int64)
    found[pairs] = _whole(form, result.values, len(pairs), result.solver)
    return RestrictedAnswer(found, bound, result.solver)


def _form(duals: PatternDuals, pairs: Ints) -> StandardForm:
    program = duals.program
    types = duals.pair_types[pairs]
    rows, row = np.unique(duals.pair_rows[pairs], return_inverse=True)
    count, used = len(pairs), len(rows)
    at, ones = np.arange(count), np.ones(count)
    most = program.counts[types].astype(np.float64)
    blocks: Any = [
        [identity(count), coo_array((-most, (at, row)), shape=(count, used))],
        [coo_array((ones, (row, at)), shape=(used, count)), -float(program.k) * identity(used)],
        [coo_array((ones, (types, at)), shape=(program.type_count, count)), None],
    ]
    records = program.counts.astype(np.float64)
    free = bool(np.isfinite(program.price))
    saved = program.price if free else 0.0
    cost = np.concatenate([program.costs[duals.pair_patterns[pairs]] - saved, np.zeros(used)])
    least = np.full(program.type_count, -np.inf) if free else records
    lower = np.concatenate([np.full(count, -np.inf), np.zeros(used), least])
    upper = np.concatenate([np.zeros(count), np.full(used, np.inf), records])
    return whole_form(
        cost,
        csr_array(block_array(blocks)),
        (lower, upper),
        np.concatenate([most, np.ones(used)]),
        offset=saved * float(records.sum()),
        integer=np.arange(count + used) >= count,
    )


def _whole(form: StandardForm, values: Floats, count: int, solver: str) -> Ints:
    """Return whole amounts for the rows that a point uses, no worse than the point's own."""
    amounts = values[:count]
    if np.abs(amounts - np.rint(amounts)).max(initial=0.0) > INTEGRALITY:
        used = np.rint(values[count:])
        found = solve_linear_program(
            *(form.cost, form.matrix, form.row_lower, form.row_upper),
            lower=np.concatenate([form.lower[:count], used]),
            upper=np.concatenate([form.upper[:count], used]),
        )
        if found is None:
            raise SolverError(
                "the records of a point cannot be given to its rows", remedy="Use another solver"
            )
        amounts = found.point[:count]
        if np.abs(amounts - np.rint(amounts)).max(initial=0.0) > INTEGRALITY:
            raise SolverError(
                f"{solver} and a linear program give no whole number of records",
                remedy="Use another solver",
            )
    return np.rint(amounts).astype(np.int64)


#: Records that join a neighbourhood at once; weight of a row type whose row has no reduced cost, in
#: costs of a star.
_JOINING, _LEAST = 40, 0.1


@dataclass(frozen=True)
class Search:
    """How neighbourhoods of a release are chosen."""

    records: tuple[int, int]  # of one at first and at most
    patience: int  # so many without success, and they have half as many records again
    seconds: float  # for as many records as the first has
    costly: bool  # whether records in rows of high reduced cost are likelier to be its first


#: Filled by pairs, so many of least reduced cost; by groups, so many for each record.
BY_PAIRS, _PAIRS = Search((120, 120), patience=25, seconds=3.0, costly=False), 2_000
BY_GROUPS, _GROUPS = Search((180, 620), patience=12, seconds=3.0, costly=True), 7


def improve_nearby(
    duals: PatternDuals,
    amounts: Ints,
    mip: Mip,
    *,
    groups: RecordGroups | None = None,
    enough: float = -np.inf,
) -> Ints:
    """Return a release that is no worse, better where a few rows at once can be changed for others.

    A random record, those that could share a cheap row with it, and so on, and whoever shares a row
    with one of these now: their rows are given up, and a MIP fills rows with them at the least
    loss, all other records staying where they are. Rows are filled by pairs of a record and a row
    of low reduced cost, or, in larger neighbourhoods, by groups of few records. A loss that is
    enough ends it.
    """
    search = BY_PAIRS if groups is None else BY_GROUPS
    generator, budget = np.random.default_rng(mip.options.seed), mip.budget
    # Pairs by which row types are near each other.
    cheap = np.argsort(duals.reduced_costs, kind="stable")[: 4 * duals.program.type_count]
    (records, most), failed, loss = search.records, 0, loss_of(duals, amounts)
    used = np.flatnonzero(amounts)
    while records <= most and loss > enough and budget.stop_reason() is None:
        first = _first_type(duals, amounts, used, search.costly, generator)
        chosen, moved = _neighbourhood(duals, amounts, used, cheap, generator, first, records)
        freed = _freed(duals, amounts, used, chosen, moved)
        own = mip.within(_part(budget, search.seconds * records / search.records[0], most=1.0))
        given = np.zeros(len(amounts), np.int64)
        given[moved] = amounts[moved]
        if groups is None:
            found = _filled_by_pairs(duals, given, freed, own)
        else:
            within = np.flatnonzero(np.append(freed > 0, True)[groups.members].all(axis=1))
            near = groups.only(within)
            cheapest = np.argsort(near.reduced_costs, kind="stable")[: _GROUPS * records]
            found = solve_groups(duals, given, near.only(cheapest), own, counts=freed).amounts
        failed += 1
        if found is not None:
            kept = np.setdiff1d(used, moved, assume_unique=True)
            found[kept] += amounts[kept]
            after = loss_of(duals, found)
            if after < loss and not same_loss(after, loss):
                amounts, failed, loss = found, 0, after
                used = np.flatnonzero(amounts)
        if failed == search.patience:
            records, failed = records * 3 // 2, 0
    return amounts


def _filled_by_pairs(duals: PatternDuals, given: Ints, freed: Ints, mip: Mip) -> Ints | None:
    """Return (pairs,) the best way found to publish (t,) records by pairs, given one."""
    types = np.flatnonzero(freed)
    own = replace(duals.program.restricted_to(types), counts=freed[types])
    part = pattern_duals(own, duals.multipliers[types] / duals.unit)
    place = places_of(duals, types, part)
    kept = given[place] > 0
    kept[np.argsort(duals.reduced_costs[place], kind="stable")[:_PAIRS]] = True
    answer = solve_restricted(part, kept, given[place], mip)
    if answer.amounts is None:
        return None
    found = np.zeros(len(given), np.int64)
    found[place] = answer.amounts
    return found


def _first_type(
    duals: PatternDuals, amounts: Ints, used: Ints, costly: bool, generator: np.random.Generator
) -> int:
    """Return any row type; or one the likelier, the more the rows of its records cost."""
    program = duals.program
    if not costly:
        return int(generator.integers(program.type_count))
    types, rows = duals.pair_types[used], duals.pair_rows[used]
    net = program.costs[duals.pair_patterns[used]] - duals.multipliers[types] / duals.unit
    paid = np.bincount(rows, weights=amounts[used] * net, minlength=program.rows)
    weights = np.full(program.type_count, _LEAST * program.star_cost)
    np.maximum.at(weights, types, paid[rows])
    return int(generator.choice(program.type_count, p=weights / weights.sum()))


def _freed(duals: PatternDuals, amounts: Ints, used: Ints, chosen: Flags, moved: Ints) -> Ints:
    """Return (t,) records of the pairs that are given up, and those of chosen row types in none."""
    freed, given = np.zeros((2, duals.program.type_count), np.int64)
    np.add.at(freed, duals.pair_types[moved], amounts[moved])
    np.add.at(given, duals.pair_types[used], amounts[used])
    return freed + np.where(chosen, duals.program.counts - given, 0)


def _neighbourhood(
    duals: PatternDuals,
    amounts: Ints,
    used: Ints,
    cheap: Ints,
    generator: np.random.Generator,
    first: int,
    records: int,
) -> tuple[Flags, Ints]:
    """Return (t,) row types that are near each other, and the pairs in use that they give up.

    Nearness is that of cheap pairs. Few of all pairs are cheap or in use: only these are looked at.
    """
    program = duals.program
    near_types, near_rows = duals.pair_types[cheap], duals.pair_rows[cheap]
    used_types, used_rows, held = duals.pair_types[used], duals.pair_rows[used], amounts[used]
    chosen = np.zeros(program.type_count, np.bool_)
    chosen[first] = True
    rows = np.zeros(program.rows, np.bool_)
    while True:
        before = int(chosen.sum())
        near = np.zeros(program.rows, np.bool_)
        near[near_rows[chosen[near_types]]] = True
        joining = np.unique(near_types[near[near_rows]])
        joining = generator.permutation(joining[~chosen[joining]])[:_JOINING]
        chosen[joining] = True
        rows[used_rows[chosen[used_types]]] = True
        moved = rows[used_rows]
        chosen[used_types[moved]] = True
        if int(held[moved].sum()) >= records or int(chosen.sum()) == before:
            return chosen, used[moved]


def places_of(duals: PatternDuals, types: Ints, part: PatternDuals) -> Ints:
    """Return (pairs of the part,) the place of each pair of a part in the whole."""
    wanted = np.zeros(duals.program.type_count, np.bool_)
    wanted[types] = True
    whole = np.flatnonzero(wanted[duals.pair_types])
    # Patterns and row types of a part keep their order.
    whole = whole[np.lexsort((duals.pair_types[whole], duals.pair_patterns[whole]))]
    place = np.empty(len(whole), np.int64)
    place[np.lexsort((part.pair_types, part.pair_patterns))] = whole
    return place


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
    return _filled(duals, amounts, left)


def _filled(duals: PatternDuals, amounts: Ints, left: Ints) -> Ints | None:
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
        # The rows of a pattern have numbers in sequence.
        from_first = rows - rows.min(initial=program.rows)
        held = np.bincount(from_first, weights=left[types])
        taken = np.where((held[from_first] >= program.k) | used[rows], left[types], 0)
        amounts[own] += taken
        left[types] -= taken
        used[rows[taken > 0]] = True
    return None if left.any() and np.isinf(program.price) else amounts


@dataclass(eq=False)
class PatternComponent:
    """A component of a program, the best known release of it, and what is proven."""

    types: Ints  # its row types in the whole program
    duals: PatternDuals
    amounts: Ints | None  # (pairs,) records of each pair in the release; None without one
    lower: float
    by_solver: bool = False  # whether the lower bound is what a solver reports
    by_triples: bool = False  # whether it is by duals of triples
    by_duals: float = -np.inf  # the best that needs no solver

    @property
    def upper(self) -> float:
        """Loss of the best known release; infinite without one."""
        return np.inf if self.amounts is None else loss_of(self.duals, self.amounts)

    @property
    def closed(self) -> bool:
        """Whether nothing better can be found."""
        return self.lower >= self.upper

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
            answer = solve_groups(self.duals, self.amounts, near, own, triples=prices.triples)
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
            return np.ones(len(duals.pair_rows), np.bool_)
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


def _part(budget: Budget, seconds: float, most: float = 0.25) -> Budget:
    """Return a budget of so many seconds, and of a share of what is left at most."""
    left = budget.remaining()
    if left is not None:
        seconds = min(seconds, max(most * left, min(left, 1.0), 1e-3))
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
    batches: list[list[int]] = [[]]
    for component in (open_ := np.flatnonzero(~closed & ~single))[
        np.argsort(held[open_], kind="stable")
    ].tolist():
        if held[[*batches[-1], component]].sum() > PARTS.batch or held[component] > PARTS.small:
            batches.append([])
        batches[-1].append(component)
    groups += [np.array(batch) for batch in batches if batch]
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
        if not own.program.pairs:
            component.lower = component.upper
        component.by_duals = component.lower
        components.append(component)
    return components


def _best_of(duals: PatternDuals, labels: Ints, number: int) -> tuple[Ints | None, Floats]:
    """Return the better release of each component by two heuristics, and its losses."""
    program, best, upper = duals.program, None, np.full(number, np.inf)
    for amounts in (greedy_amounts(duals), amounts_by_duals(duals)):
        if amounts is None:
            continue
        given = np.bincount(duals.pair_types, weights=amounts, minlength=program.type_count)
        left = program.counts - given
        losses = np.zeros(number)
        np.add.at(losses, labels, np.where(left > 0, program.price, 0.0) * left)
        paid = program.costs[duals.pair_patterns] * amounts
        np.add.at(losses, labels[duals.pair_types], paid)
        better = (losses < upper)[labels][duals.pair_types]
        best = amounts if best is None else np.where(better, amounts, best)
        upper = np.minimum(losses, upper)
    return best, upper


def greedy_amounts(duals: PatternDuals) -> Ints | None:
    """Return (pairs,) the records of each pair if patterns are used by ascending cost.

    Algorithm 1 of Bredereck et al. 2013. None if records are left over that need companions.
    """
    return _filled(duals, np.zeros(len(duals.pair_rows), np.int64), duals.program.counts.copy())
