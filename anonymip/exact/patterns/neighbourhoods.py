"""Restricted MIPs on pairs of records and rows, and neighbourhoods filled again by them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, vstack

from anonymip.bounds.patterns.pattern_duals import PatternDuals, loss_of, pattern_duals
from anonymip.errors import SolverError
from anonymip.exact.patterns.group_master import RecordGroups, RestrictedAnswer, solve_groups
from anonymip.exact.set_partitioning.restricted_master import Mip, whole_form
from anonymip.exact.trust import RefutedClaim
from anonymip.runtime.arrays import Flags, Floats, Ints
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
    width = count + used
    at = np.arange(count)
    most = program.counts[types].astype(np.float64)
    ones = np.ones(count)
    links = coo_array(
        (np.concatenate([ones, -most]), (np.tile(at, 2), np.concatenate([at, count + row]))),
        shape=(count, width),
    )
    filled = coo_array(
        (
            np.concatenate([ones, np.full(used, -float(program.k))]),
            (np.concatenate([row, np.arange(used)]), np.concatenate([at, count + np.arange(used)])),
        ),
        shape=(used, width),
    )
    given = coo_array((ones, (types, at)), shape=(program.type_count, width))
    records = program.counts.astype(np.float64)
    free = bool(np.isfinite(program.price))
    saved = program.price if free else 0.0
    cost = np.concatenate([program.costs[duals.pair_patterns[pairs]] - saved, np.zeros(used)])
    least = np.full(program.type_count, -np.inf) if free else records
    lower = np.concatenate([np.full(count, -np.inf), np.zeros(used), least])
    upper = np.concatenate([np.zeros(count), np.full(used, np.inf), records])
    return whole_form(
        cost,
        vstack([links, filled, given]).tocsr(),
        (lower, upper),
        np.concatenate([most, np.ones(used)]),
        offset=saved * float(records.sum()),
        integer=np.arange(width) >= count,
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
    """How neighbourhoods of a release are chosen.

    One has so many records at first and at most, half as many again after `patience` without
    success, and `seconds` for as many records as the first has. `costly`: records in rows of high
    reduced cost are likelier to be its first.
    """

    records: tuple[int, int]
    patience: int
    seconds: float
    costly: bool


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
    cheap = np.zeros(len(duals.reduced_costs), np.bool_)
    cheap[np.argsort(duals.reduced_costs, kind="stable")[: 4 * duals.program.type_count]] = True
    (records, most), failed = search.records, 0
    while records <= most and budget.stop_reason() is None:
        if loss_of(duals, amounts) <= enough:
            break
        first = _first_type(duals, amounts, search.costly, generator)
        chosen, moved = _neighbourhood(duals, amounts, cheap, generator, first, records)
        freed = _freed(duals, amounts, chosen, moved)
        left = budget.remaining()
        seconds = search.seconds * records / search.records[0]
        seconds = seconds if left is None else min(seconds, max(left, 1e-3))
        own = mip.within(budget.renewed(seconds))
        given = np.where(moved, amounts, 0)
        if groups is None:
            found = _filled_by_pairs(duals, given, freed, own)
        else:
            within = np.flatnonzero(np.append(freed > 0, True)[groups.members].all(axis=1))
            near, none = groups.only(within), np.empty((0, 3), np.int64)
            cheapest = np.argsort(near.reduced_costs, kind="stable")[: _GROUPS * records]
            given_groups = duals, given, near.only(cheapest), none, own
            found = solve_groups(*given_groups, counts=freed).amounts
        failed += 1
        if found is not None:
            found += np.where(moved, 0, amounts)
            after, before = loss_of(duals, found), loss_of(duals, amounts)
            if after < before and not same_loss(after, before):
                amounts, failed = found, 0
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
    found = np.zeros_like(given)
    found[place] = answer.amounts
    return found


def _first_type(
    duals: PatternDuals, amounts: Ints, costly: bool, generator: np.random.Generator
) -> int:
    """Return any row type; or one the likelier, the more the rows of its records cost."""
    program = duals.program
    if not costly:
        return int(generator.integers(program.type_count))
    net = program.costs[duals.pair_patterns] - duals.multipliers[duals.pair_types] / duals.unit
    rows = np.bincount(duals.pair_rows, weights=amounts * net, minlength=program.rows)
    weights = np.full(program.type_count, _LEAST * program.star_cost)
    paid = np.maximum(rows, 0.0)[duals.pair_rows] * (amounts > 0)
    np.maximum.at(weights, duals.pair_types, paid)
    return int(generator.choice(program.type_count, p=weights / weights.sum()))


def _freed(duals: PatternDuals, amounts: Ints, chosen: Flags, moved: Flags) -> Ints:
    """Return (t,) records of the pairs that are given up, and those of chosen row types in none."""
    freed, given = np.zeros((2, duals.program.type_count), np.int64)
    np.add.at(freed, duals.pair_types[moved], amounts[moved])
    np.add.at(given, duals.pair_types, amounts)
    return freed + np.where(chosen, duals.program.counts - given, 0)


def _neighbourhood(
    duals: PatternDuals,
    amounts: Ints,
    cheap: Flags,
    generator: np.random.Generator,
    first: int,
    records: int,
) -> tuple[Flags, Flags]:
    """Return (t,) row types that are near each other, (pairs,) those in use that they give up."""
    program = duals.program
    chosen = np.zeros(program.type_count, np.bool_)
    chosen[first] = True
    used = amounts > 0
    rows = np.zeros(program.rows, np.bool_)
    while True:
        before = int(chosen.sum())
        near = np.zeros(program.rows, np.bool_)
        near[duals.pair_rows[cheap & chosen[duals.pair_types]]] = True
        joining = np.unique(duals.pair_types[cheap & near[duals.pair_rows]])
        joining = generator.permutation(joining[~chosen[joining]])[:_JOINING]
        chosen[joining] = True
        rows[duals.pair_rows[used & chosen[duals.pair_types]]] = True
        moved = used & rows[duals.pair_rows]
        chosen[duals.pair_types[moved]] = True
        if int(amounts[moved].sum()) >= records or int(chosen.sum()) == before:
            return chosen, moved


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
