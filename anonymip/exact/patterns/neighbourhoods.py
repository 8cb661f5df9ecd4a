"""Better releases by patterns: some rows of a known one are given up and filled anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.pattern_prices import PatternPrices, price_patterns
from anonymip.budget import Budget
from anonymip.exact.patterns.kernel import solve_kernel
from anonymip.solvers import SolverOptions

#: Records that a neighbourhood has at least, those that join it at once, and its pairs at most.
_RECORDS, _JOINING, _PAIRS = 120, 40, 2_000
#: Seconds for one, and neighbourhoods without success after which the search ends.
_SECONDS, _PATIENCE = 3.0, 25


def improve_nearby(
    prices: PatternPrices,
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
    cheap = np.zeros(len(prices.excess), np.bool_)
    cheap[np.argsort(prices.excess, kind="stable")[: 4 * program.kinds]] = True
    failed = 0
    while failed < _PATIENCE and budget.stop_reason() is None:
        chosen, moved = _neighbourhood(prices, amounts, cheap, generator)
        freed = np.bincount(
            prices.pair_kinds[moved], weights=amounts[moved], minlength=program.kinds
        ).astype(np.int64)
        given = np.bincount(prices.pair_kinds, weights=amounts, minlength=program.kinds)
        freed += np.where(chosen, program.counts - given.astype(np.int64), 0)
        kinds = np.flatnonzero(freed)
        own = replace(program.part(kinds), counts=freed[kinds])
        part = price_patterns(own, prices.prices[kinds] / prices.unit)
        place = places_of(prices, kinds, part)
        before = np.where(moved, amounts, 0)[place]
        kept = before > 0
        kept[np.argsort(prices.excess[place], kind="stable")[:_PAIRS]] = True
        left = budget.remaining()
        seconds = _SECONDS if left is None else min(_SECONDS, max(left, 1e-3))
        found = solve_kernel(part, kept, before, solver, options, budget.renewed(seconds)).amounts
        failed += 1
        if found is None:
            continue
        costs = own.costs[part.pair_patterns] - (own.price if np.isfinite(own.price) else 0.0)
        if float(costs @ (found - before)) < -1e-9 * max(1.0, float(np.abs(costs) @ before)):
            amounts = np.where(moved, 0, amounts)
            amounts[place] += found
            failed = 0
    return amounts


def _neighbourhood(
    prices: PatternPrices,
    amounts: NDArray[np.int64],
    cheap: NDArray[np.bool_],
    generator: np.random.Generator,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (t,) the kinds that are near each other, (pairs,) those in use that they give up."""
    program = prices.program
    chosen = np.zeros(program.kinds, np.bool_)
    chosen[generator.integers(program.kinds)] = True
    used = amounts > 0
    rows = np.zeros(program.rows, np.bool_)
    while True:
        before = int(chosen.sum())
        near = np.zeros(program.rows, np.bool_)
        near[prices.pair_rows[cheap & chosen[prices.pair_kinds]]] = True
        joining = np.unique(prices.pair_kinds[cheap & near[prices.pair_rows]])
        joining = generator.permutation(joining[~chosen[joining]])[:_JOINING]
        chosen[joining] = True
        rows[prices.pair_rows[used & chosen[prices.pair_kinds]]] = True
        moved = used & rows[prices.pair_rows]
        chosen[prices.pair_kinds[moved]] = True
        if int(amounts[moved].sum()) >= _RECORDS or int(chosen.sum()) == before:
            return chosen, moved


def places_of(
    prices: PatternPrices, kinds: NDArray[np.int64], part: PatternPrices
) -> NDArray[np.int64]:
    """Return (pairs of the part,) where each pair of a part stands in the whole."""
    wanted = np.zeros(prices.program.kinds, np.bool_)
    wanted[kinds] = True
    whole = np.flatnonzero(wanted[prices.pair_kinds])
    # Patterns and kinds of a part keep their order.
    whole = whole[np.lexsort((prices.pair_kinds[whole], prices.pair_patterns[whole]))]
    place = np.empty(len(whole), np.int64)
    place[np.lexsort((part.pair_kinds, part.pair_patterns))] = whole
    return place
