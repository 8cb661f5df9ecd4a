"""Better releases by patterns: some rows of a known one are given up and filled again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.patterns.pattern_duals import PatternDuals, loss_of, pattern_duals
from anonymip.bounds.patterns.pattern_groups import RecordGroups
from anonymip.exact.patterns.restricted_master.group_mip import solve_groups
from anonymip.exact.patterns.restricted_master.restricted_mip import solve_restricted
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions
from anonymip.tolerances import same_loss

#: Records that a neighbourhood has at least, those that join it at once, and its pairs at most.
_RECORDS, _JOINING, _PAIRS = 120, 40, 2_000
#: Records of one that is filled by groups, at first and at most; groups for each record; failures
#: after which they become half as many again.
_FEW, _MANY, _GROUPS, _GROWING = 180, 620, 7, 12
#: Weight of a kind whose row costs nothing beyond the prices, in costs of a star.
_LEAST = 0.1
#: Seconds for one, and neighbourhoods without success after which the search ends.
_SECONDS, _PATIENCE = 3.0, 25


def improve_nearby(
    prices: PatternDuals,
    amounts: NDArray[np.int64],
    solver: str,
    options: SolverOptions,
    budget: Budget,
) -> NDArray[np.int64]:
    """Return a release that is no worse, better where a few rows at once can be changed for others.

    A random record, those that could share a cheap row with it, and so on, and whoever shares a
    row with one of these now: their rows are given up, and a MIP fills rows with them at the least
    loss, all other records staying where they are.

    Parameters
    ----------
    prices
        Of a program; pairs with much excess are not tried.
    amounts
        (pairs,) the known release.
    solver, options
        Of the MIPs.
    budget
        Ends the search.
    """
    program = prices.program
    generator = np.random.default_rng(options.seed)
    cheap = _cheap(prices)
    failed = 0
    while failed < _PATIENCE and budget.stop_reason() is None:
        first = int(generator.integers(program.kinds))
        chosen, moved = _neighbourhood(prices, amounts, cheap, generator, first, _RECORDS)
        freed = _freed(prices, amounts, chosen, moved)
        kinds = np.flatnonzero(freed)
        own = replace(program.part(kinds), counts=freed[kinds])
        part = pattern_duals(own, prices.duals[kinds] / prices.unit)
        place = places_of(prices, kinds, part)
        before = np.where(moved, amounts, 0)[place]
        kept = before > 0
        kept[np.argsort(prices.reduced_costs[place], kind="stable")[:_PAIRS]] = True
        left = budget.remaining()
        seconds = _SECONDS if left is None else min(_SECONDS, max(left, 1e-3))
        found = solve_restricted(
            part, kept, before, solver, options, budget.renewed(seconds)
        ).amounts
        failed += 1
        if found is None:
            continue
        costs = own.costs[part.pair_patterns] - (own.price if np.isfinite(own.price) else 0.0)
        if float(costs @ (found - before)) < -1e-9 * max(1.0, float(np.abs(costs) @ before)):
            amounts = np.where(moved, 0, amounts)
            amounts[place] += found
            failed = 0
    return amounts


def improve_by_groups(
    prices: PatternDuals,
    amounts: NDArray[np.int64],
    groups: RecordGroups,
    enough: float,
    solver: str,
    options: SolverOptions,
    budget: Budget,
) -> NDArray[np.int64]:
    """Return a release that is no worse: as :func:`improve_nearby`, with larger neighbourhoods.

    Parameters
    ----------
    prices, amounts, solver, options, budget
        As there.
    groups
        Of few records each, by which the rows that are given up are filled again.
    enough
        Loss at which no better release is needed.
    """
    generator = np.random.default_rng(options.seed)
    cheap = _cheap(prices)
    records, failed = _FEW, 0
    while records <= _MANY and budget.stop_reason() is None:
        if loss_of(prices, amounts) <= enough:
            break
        first = _costly_type(prices, amounts, generator)
        chosen, moved = _neighbourhood(prices, amounts, cheap, generator, first, records)
        freed = _freed(prices, amounts, chosen, moved)
        within = np.flatnonzero(np.append(freed > 0, True)[groups.members].all(axis=1))
        within = within[np.argsort(groups.beyond[within], kind="stable")[: _GROUPS * records]]
        left = budget.remaining()
        seconds = _SECONDS * records / _FEW
        seconds = seconds if left is None else min(seconds, max(left, 1e-3))
        found = solve_groups(
            prices,
            np.where(moved, amounts, 0),
            groups.only(within),
            np.empty((0, 3), np.int64),
            solver,
            options,
            budget.renewed(seconds),
            counts=freed,
        ).amounts
        failed += 1
        if found is not None:
            found += np.where(moved, 0, amounts)
            after, before = loss_of(prices, found), loss_of(prices, amounts)
            if after < before and not same_loss(after, before):
                amounts, failed = found, 0
        if failed == _GROWING:
            records, failed = records * 3 // 2, 0
    return amounts


def _costly_type(
    prices: PatternDuals, amounts: NDArray[np.int64], generator: np.random.Generator
) -> int:
    """Return a kind, the likelier the more the rows of its records cost beyond the prices."""
    program = prices.program
    beyond = program.costs[prices.pair_patterns] - prices.duals[prices.pair_types] / prices.unit
    rows = np.bincount(prices.pair_rows, weights=amounts * beyond, minlength=program.rows)
    weights = np.full(program.kinds, _LEAST * program.star_cost)
    costly = np.maximum(rows, 0.0)[prices.pair_rows] * (amounts > 0)
    np.maximum.at(weights, prices.pair_types, costly)
    return int(generator.choice(program.kinds, p=weights / weights.sum()))


def _cheap(prices: PatternDuals) -> NDArray[np.bool_]:
    """Return (pairs,) those by which kinds are near each other."""
    cheap = np.zeros(len(prices.reduced_costs), np.bool_)
    cheap[np.argsort(prices.reduced_costs, kind="stable")[: 4 * prices.program.kinds]] = True
    return cheap


def _freed(
    prices: PatternDuals,
    amounts: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    moved: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return (t,) records of the pairs that are given up, and those of chosen kinds in none."""
    count = prices.program.kinds
    freed, given = np.zeros((2, count), np.int64)
    np.add.at(freed, prices.pair_types[moved], amounts[moved])
    np.add.at(given, prices.pair_types, amounts)
    return freed + np.where(chosen, prices.program.counts - given, 0)


def _neighbourhood(
    prices: PatternDuals,
    amounts: NDArray[np.int64],
    cheap: NDArray[np.bool_],
    generator: np.random.Generator,
    first: int,
    records: int,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (t,) the kinds that are near each other, (pairs,) those in use that they give up."""
    program = prices.program
    chosen = np.zeros(program.kinds, np.bool_)
    chosen[first] = True
    used = amounts > 0
    rows = np.zeros(program.rows, np.bool_)
    while True:
        before = int(chosen.sum())
        near = np.zeros(program.rows, np.bool_)
        near[prices.pair_rows[cheap & chosen[prices.pair_types]]] = True
        joining = np.unique(prices.pair_types[cheap & near[prices.pair_rows]])
        joining = generator.permutation(joining[~chosen[joining]])[:_JOINING]
        chosen[joining] = True
        rows[prices.pair_rows[used & chosen[prices.pair_types]]] = True
        moved = used & rows[prices.pair_rows]
        chosen[prices.pair_types[moved]] = True
        if int(amounts[moved].sum()) >= records or int(chosen.sum()) == before:
            return chosen, moved


def places_of(
    prices: PatternDuals, kinds: NDArray[np.int64], part: PatternDuals
) -> NDArray[np.int64]:
    """Return (pairs of the part,) where each pair of a part stands in the whole."""
    wanted = np.zeros(prices.program.kinds, np.bool_)
    wanted[kinds] = True
    whole = np.flatnonzero(wanted[prices.pair_types])
    # Patterns and kinds of a part keep their order.
    whole = whole[np.lexsort((prices.pair_types[whole], prices.pair_patterns[whole]))]
    place = np.empty(len(whole), np.int64)
    place[np.lexsort((part.pair_types, part.pair_patterns))] = whole
    return place
