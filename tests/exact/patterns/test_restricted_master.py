"""Groups of few records, duals of triples, neighbourhoods: bounds hold, releases stay releases."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, combinations_with_replacement, count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

import anonymip.exact.patterns.components as components
from anonymip import Stopped
from anonymip.bounds.patterns.pattern_duals import (
    PatternDuals,
    loss_of,
    pattern_duals,
    pattern_program,
)
from anonymip.bounds.patterns.pattern_lagrangian import ascend
from anonymip.exact.patterns.components import (
    Search,
    _freed,
    amounts_by_duals,
    greedy_amounts,
    improve_nearby,
    places_of,
)
from anonymip.exact.patterns.group_master import (
    GroupPrices,
    RestrictedAnswer,
    amounts_of,
    groups_of,
    repaired,
    solve_groups,
    triple_bound,
)
from anonymip.exact.patterns.proof import prove
from anonymip.exact.set_partitioning import rank_one_cuts, restricted_master
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.exact.trust import RefutedClaim
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverResult
from tests.bounds.patterns.pattern_references import hard_pattern_problem
from tests.random_patterns import PatternCase, pattern_cases


def hard_duals() -> PatternDuals:
    """Return good duals of a problem that they do not prove."""
    return ascend(pattern_program(hard_pattern_problem()), None, Budget())


def by_costs(duals: PatternDuals) -> NDArray[np.int64]:
    """Return the greedy release."""
    amounts = greedy_amounts(duals)
    assert amounts is not None
    return amounts


def drawn_duals(case: PatternCase, seed: int) -> GroupPrices:
    """Return random duals of the records and of some triples."""
    program = pattern_program(replace(case, single_use=False, diversity=None).problem())
    draw = np.random.default_rng(seed)
    duals = pattern_duals(program, program.cheapest + draw.integers(-2, 4, program.type_count) / 2)
    single = np.flatnonzero(program.counts == 1).tolist()
    chosen = [triple for triple in combinations(single, 3) if draw.random() < 0.5]
    costs = draw.integers(0, 3, len(chosen)) * duals.unit // 2
    return GroupPrices(duals, np.array(chosen, np.int64).reshape(-1, 3), costs)


def naive(prices: GroupPrices) -> dict[tuple[int, ...], int]:
    """Return the reduced cost of every group."""
    duals, program, found = prices.duals, prices.duals.program, {}
    for size in range(program.k, 2 * program.k):
        for own in combinations_with_replacement(range(program.type_count), size):
            if any(own.count(row_type) > program.counts[row_type] for row_type in own):
                continue
            shared = [
                int(cost * duals.unit) * size
                for cost, rows in zip(program.costs, program.row_of, strict=True)
                if rows[own[0]] >= 0 and (rows[list(own)] == rows[own[0]]).all()
            ]
            if shared:
                paid = [
                    int(dual)
                    for triple, dual in zip(prices.triples, prices.paid, strict=True)
                    if sum(row_type in own for row_type in triple.tolist()) >= 2
                ]
                found[own] = min(shared) + sum(paid) - int(duals.multipliers[list(own)].sum())
    return found


@settings(max_examples=40, deadline=None)
@given(pattern_cases(most_records=7), st.integers(0, 99), st.integers(-1, 2))
def test_all_groups_are_found(case: PatternCase, seed: int, stars: int) -> None:
    """Each set of records once, at its least cost, as a search of all sets says."""
    if case.optimum() is None:
        return
    prices = drawn_duals(case, seed)
    most = stars * prices.duals.unit
    found = prices.groups_within(most, 100_000)
    assert found is not None
    listed = {
        tuple(row_type for row_type in members if row_type >= 0): reduced
        for members, reduced in zip(
            found.members.tolist(), found.reduced_costs.tolist(), strict=True
        )
    }
    assert len(listed) == len(found)
    assert listed == {own: reduced for own, reduced in naive(prices).items() if reduced <= most}
    if len(found):
        assert prices.groups_within(most, len(found) - 1) is None


@settings(max_examples=60, deadline=None)
@given(pattern_cases(most_records=7).map(lambda c: replace(c, single_use=False, diversity=None)))
def test_any_duals_of_triples_bound_the_optimum(case: PatternCase) -> None:
    """Once the duals of records are repaired until no group costs less."""
    best = case.optimum()
    if best is None:
        return
    for seed in range(4):
        prices = drawn_duals(case, seed)
        cheaper = prices.groups_within(-1, 100_000)
        assert cheaper is not None
        new = replace(prices, duals=repaired(prices.duals, cheaper))
        assert min(naive(new).values(), default=0) >= 0
        assert new.value / new.duals.unit <= float(best) + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_violated_triples_are_those_of_a_search_of_all(seed: int) -> None:
    """Shares of groups that hold every record once in sum at most."""
    draw = np.random.default_rng(seed)
    members = np.full((12, 3), -1)
    for own in members:
        size = int(draw.integers(2, 4))
        own[:size] = np.sort(draw.permutation(7)[:size])
    members.sort(axis=1)
    shares = draw.random(12)
    shares /= max(shares[(members == row_type).any(axis=1)].sum() for row_type in range(7))
    single = np.arange(7) != 3
    expected = {
        triple
        for triple in combinations(np.flatnonzero(single).tolist(), 3)
        if shares[np.isin(members, triple).sum(axis=1) >= 2].sum() > 1.03
    }
    held = np.array([np.bincount(own[own >= 0], minlength=7) for own in members])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_one_cuts, "_EACH_TYPE", 100)
        found = rank_one_cuts.separate(
            csr_array(held), shares, np.ones(7, np.int64), among=single, starts=0
        )
    assert {cut.types for cut in found} == expected


def test_triples_prove_more_than_duals_of_records() -> None:
    """The bound lies between that of the records' duals and the optimum."""
    duals = hard_duals()
    tightened = triple_bound(duals, by_costs(duals), np.inf, Budget())
    assert tightened is not None
    assert len(tightened.triples)
    assert duals.bound < tightened.bound <= prove(hard_pattern_problem()).objective


def test_groups_are_listed_as_far_as_time_goes() -> None:
    """All of them with time, none without."""
    duals = hard_duals()
    most = duals.unit
    groups, reached = GroupPrices(duals).cheapest(most, 5_000, Budget())
    assert groups is not None
    assert reached == most
    assert len(groups) == len(GroupPrices(duals).groups_within(most, 20_000) or ())
    spent = Budget()
    spent.interrupt()
    assert GroupPrices(duals).cheapest(most, 5_000, spent) == (None, -1)


def test_a_solver_that_denies_the_known_release_is_refused() -> None:
    """By groups and by pairs: it is in the model."""
    duals = hard_duals()
    amounts = by_costs(duals)
    answer = SolverResult(Stopped.INFEASIBLE, None, None, None, 0.0, "liar 1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restricted_master, "solve_form", lambda *_, **__: answer)
        own, mip = groups_of(duals, amounts), Mip()
        with pytest.raises(RefutedClaim, match="liar 1 calls"):
            solve_groups(duals, amounts, own, mip)
        with pytest.raises(RefutedClaim, match="liar 1 calls"):
            components.solve_restricted(duals, amounts > 0, amounts, mip)
        assert components.solve_restricted(duals, amounts > 0, None, mip).bound == np.inf


def test_rounding_is_no_success() -> None:
    """A release that loses less by a trifle does not take the place of the known one."""
    duals = pattern_duals(program := pattern_program(hard_pattern_problem()), program.cheapest)
    before = by_costs(duals)
    losses = (300.0 - 1e-12 * step for step in count())

    def as_it_was(_: PatternDuals, amounts: np.ndarray, *__: object, **___: object) -> object:
        return RestrictedAnswer(amounts, None, "none")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "BY_GROUPS", Search((180, 180), 1, 3.0, costly=True))
        patch.setattr(components, "solve_groups", as_it_was)
        patch.setattr(components, "loss_of", lambda *_: next(losses))
        own, budget = groups_of(duals, before), Budget.of(1.0)
        after = improve_nearby(duals, before, Mip(budget=budget), groups=own)
    assert after is before


def test_releases_become_groups_and_back() -> None:
    """And neighbourhoods filled by groups make a better one of it."""
    duals = hard_duals()
    before = by_costs(duals)
    own = groups_of(duals, before)
    assert ((own.sizes >= 2) & (own.sizes <= 3)).all()
    assert amounts_of(duals, own, np.ones(len(own), np.int64)).tolist() == before.tolist()
    groups, _ = GroupPrices(duals).cheapest(duals.unit, 5_000, Budget())
    assert groups is not None
    after = improve_nearby(duals, before, Mip(budget=Budget.of(1.0)), groups=groups)
    assert obeys_the_rules(duals, after)
    assert duals.bound <= loss_of(duals, after) < loss_of(duals, before)


def obeys_the_rules(duals: PatternDuals, amounts: np.ndarray) -> bool:
    """Return whether rows have none or k records, and no row type more than there are."""
    program = duals.program
    held = np.bincount(duals.pair_rows, weights=amounts, minlength=1)
    given_ = np.bincount(duals.pair_types, weights=amounts, minlength=program.type_count)
    left = program.counts - given_
    return bool(
        (amounts >= 0).all()
        and ((held == 0) | (held >= program.k)).all()
        and (left >= 0).all()
        and (np.isfinite(program.price) or not left.any())
    )


@pytest.mark.thorough
def test_a_greedy_release_comes_near_the_optimum() -> None:
    """Between the proven optimum and the release that it began with, well below the latter."""
    problem = hard_pattern_problem(60)
    duals = ascend(pattern_program(problem), None, Budget())
    before = by_costs(duals)
    after = improve_nearby(duals, before, Mip())
    assert obeys_the_rules(duals, after)
    best = prove(problem).objective
    assert best <= loss_of(duals, after) < loss_of(duals, before)
    assert loss_of(duals, after) <= 1.05 * best


def test_prices_lead_to_a_better_release_than_costs() -> None:
    """It obeys the rules, and lies between the optimum and the greedy release."""
    duals = hard_duals()
    by_duals = amounts_by_duals(duals)
    assert by_duals is not None
    assert obeys_the_rules(duals, by_duals)
    assert duals.bound <= loss_of(duals, by_duals) < loss_of(duals, by_costs(duals))


@settings(max_examples=60, deadline=None)
@given(pattern_cases(most_records=6, ruled=True))
def test_releases_from_prices_are_releases(case: PatternCase) -> None:
    """With plain duals too, and with records that may go without companions."""
    plain = replace(case, single_use=False, diversity=None)
    best = plain.optimum()
    if best is None:
        return
    program = pattern_program(plain.problem(), relaxed=False)
    amounts = amounts_by_duals(duals := pattern_duals(program, program.cheapest))
    if amounts is not None:
        assert obeys_the_rules(duals, amounts)
        assert loss_of(duals, amounts) >= best


def test_records_in_no_row_are_freed() -> None:
    """A neighbourhood of row types that use no row has all their records, as whole numbers."""
    duals = pattern_duals(program := pattern_program(hard_pattern_problem()), program.cheapest)
    none, chosen = (
        np.zeros(len(duals.reduced_costs), np.int64),
        np.zeros(program.type_count, np.bool_),
    )
    chosen[:3] = True
    nobody = np.flatnonzero(none)
    freed = _freed(duals, none, nobody, chosen, nobody)
    assert freed.dtype == np.int64
    assert freed[:3].tolist() == program.counts[:3].tolist()
    assert not freed[3:].any()


def test_an_interrupt_ends_it() -> None:
    """The release is returned as it was."""
    duals = pattern_duals(program := pattern_program(hard_pattern_problem()), program.cheapest)
    before = by_costs(duals)
    budget = Budget()
    budget.interrupt()
    after = improve_nearby(duals, before, Mip(budget=budget))
    assert after.tolist() == before.tolist()


@pytest.mark.thorough
@settings(max_examples=8, deadline=None)
@given(pattern_cases(most_records=6))
def test_small_releases_stay_releases(case: PatternCase) -> None:
    """Never worse than before, and never below the optimum."""
    best = case.optimum()
    if best is None:
        return
    program = pattern_program(case.problem(), relaxed=False)
    duals = pattern_duals(program, program.cheapest)
    before = greedy_amounts(duals)
    if before is None:
        return
    after = improve_nearby(duals, before, Mip(budget=Budget.of(2.0)))
    assert obeys_the_rules(duals, after)
    assert best <= loss_of(duals, after) <= loss_of(duals, before)


def test_places_name_the_same_pairs() -> None:
    """Of the types with even numbers, alone."""
    program = pattern_program(hard_pattern_problem())
    duals = pattern_duals(program, program.cheapest)
    types = np.arange(0, program.type_count, 2)
    part = pattern_duals(program.restricted_to(types), program.cheapest[types])
    place = places_of(duals, types, part)
    assert (duals.pair_types[place] == types[part.pair_types]).all()
    own = part.program.patterns[part.pair_patterns]
    assert (program.patterns[duals.pair_patterns[place]] == own).all()
