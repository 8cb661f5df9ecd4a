"""Groups of few records, prices of triples: what they prove holds, and releases stay releases."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, combinations_with_replacement, count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonymip.exact.patterns.neighbourhoods as neighbourhoods
import anonymip.exact.patterns.restricted_master.group_mip as group_mip
import anonymip.exact.patterns.restricted_master.restricted_mip as restricted
import anonymip.exact.patterns.restricted_master.triples as triples_module
from anonymip import SolverError, Stopped
from anonymip.bounds.patterns.pattern_duals import PatternDuals, loss_of, pattern_duals
from anonymip.bounds.patterns.pattern_groups import (
    TriplePrices,
    no_triples,
    record_groups_within,
    value_of,
)
from anonymip.bounds.patterns.pattern_lagrangian import ascend
from anonymip.bounds.patterns.pattern_program import pattern_program
from anonymip.exact.patterns.neighbourhoods import improve_by_groups
from anonymip.exact.patterns.parts import greedy_amounts
from anonymip.exact.patterns.proof import prove
from anonymip.exact.patterns.restricted_master.master import (
    amounts_of,
    cheapest_groups,
    groups_of,
    lowered,
    price_triples,
)
from anonymip.exact.patterns.restricted_master.restricted_mip import RestrictedAnswer
from anonymip.exact.patterns.restricted_master.triples import violated_triples
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions, SolverResult
from tests.bounds.patterns.pattern_references import hard_pattern_problem
from tests.random_patterns import PatternCase, pattern_cases


def priced(case: PatternCase, seed: int) -> tuple[PatternDuals, TriplePrices]:
    """Return random prices of the records and of some triples."""
    program = pattern_program(replace(case, single_use=False, diversity=None).problem())
    draw = np.random.default_rng(seed)
    prices = pattern_duals(program, program.cheapest + draw.integers(-2, 4, program.kinds) / 2)
    single = np.flatnonzero(program.counts == 1).tolist()
    chosen = [triple for triple in combinations(single, 3) if draw.random() < 0.5]
    costs = draw.integers(0, 3, len(chosen)) * prices.unit // 2
    return prices, TriplePrices(np.array(chosen, np.int64).reshape(-1, 3), costs)


def naive(prices: PatternDuals, triples: TriplePrices) -> dict[tuple[int, ...], int]:
    """Return what every group costs beyond the prices."""
    program, found = prices.program, {}
    for size in range(program.k, 2 * program.k):
        for own in combinations_with_replacement(range(program.kinds), size):
            if any(own.count(kind) > program.counts[kind] for kind in own):
                continue
            shared = [
                int(cost * prices.unit) * size
                for cost, rows in zip(program.costs, program.row_of, strict=True)
                if rows[own[0]] >= 0 and (rows[list(own)] == rows[own[0]]).all()
            ]
            if shared:
                paid = [
                    int(price)
                    for triple, price in zip(triples.triples, triples.prices, strict=True)
                    if sum(kind in own for kind in triple.tolist()) >= 2
                ]
                found[own] = min(shared) + sum(paid) - int(prices.duals[list(own)].sum())
    return found


@settings(max_examples=40, deadline=None)
@given(pattern_cases(most_records=7), st.integers(0, 99), st.integers(-1, 2))
def test_all_groups_are_found(case: PatternCase, seed: int, stars: int) -> None:
    """Each set of records once, at its least cost, as a search of all sets says."""
    if case.optimum() is None:
        return
    prices, triples = priced(case, seed)
    most = stars * prices.unit
    found = record_groups_within(prices, triples, most, 100_000)
    assert found is not None
    told = {
        tuple(kind for kind in members if kind >= 0): beyond
        for members, beyond in zip(found.members.tolist(), found.beyond.tolist(), strict=True)
    }
    assert len(told) == len(found)
    assert told == {own: beyond for own, beyond in naive(prices, triples).items() if beyond <= most}
    if len(found):
        assert record_groups_within(prices, triples, most, len(found) - 1) is None


@settings(max_examples=60, deadline=None)
@given(pattern_cases(most_records=7).map(lambda c: replace(c, single_use=False, diversity=None)))
def test_any_prices_of_triples_bound_the_optimum(case: PatternCase) -> None:
    """Once the prices of records are lowered until no group costs less."""
    best = case.optimum()
    if best is None:
        return
    for seed in range(4):
        prices, triples = priced(case, seed)
        cheaper = record_groups_within(prices, triples, -1, 100_000)
        assert cheaper is not None
        new = lowered(prices, cheaper)
        assert min(naive(new, triples).values(), default=0) >= 0
        assert value_of(new, triples) / new.unit <= float(best) + 1e-9


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
    shares /= max(shares[(members == kind).any(axis=1)].sum() for kind in range(7))
    single = np.arange(7) != 3
    expected = {
        triple
        for triple in combinations(np.flatnonzero(single).tolist(), 3)
        if shares[np.isin(members, triple).sum(axis=1) >= 2].sum() > 1.02
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triples_module, "_SHARED", 100)
        found = violated_triples(members, shares, single)
    assert {tuple(triple) for triple in found.tolist()} == expected


def test_triples_prove_more_than_prices_of_records() -> None:
    """The bound lies between that of the records' prices and the optimum."""
    problem = hard_pattern_problem()
    prices = ascend(pattern_program(problem), None, Budget())
    amounts = greedy_amounts(prices)
    assert amounts is not None
    pricing = price_triples(prices, amounts, np.inf, Budget())
    assert pricing is not None
    assert len(pricing.triples.triples)
    assert prices.bound < pricing.bound <= prove(problem).objective


def test_groups_are_listed_as_far_as_time_goes() -> None:
    """All of them with time, none without."""
    prices = ascend(pattern_program(hard_pattern_problem()), None, Budget())
    most = prices.unit
    groups, reached = cheapest_groups(prices, no_triples(), most, 5_000, Budget())
    assert groups is not None
    assert reached == most
    assert len(groups) == len(record_groups_within(prices, no_triples(), most, 20_000) or ())
    spent = Budget()
    spent.interrupt()
    assert cheapest_groups(prices, no_triples(), most, 5_000, spent) == (None, -1)


def test_a_solver_that_denies_the_known_release_is_refused() -> None:
    """By groups and by pairs: it is in the model."""
    prices = ascend(pattern_program(hard_pattern_problem()), None, Budget())
    amounts = greedy_amounts(prices)
    assert amounts is not None
    answer = SolverResult(Stopped.INFEASIBLE, None, None, None, 0.0, "liar 1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_mip, "solve_form", lambda *_, **__: answer)
        patch.setattr(restricted, "solve_form", lambda *_, **__: answer)
        own, triples = groups_of(prices, amounts), np.empty((0, 3), np.int64)
        given_ = "highs", SolverOptions(), Budget()
        with pytest.raises(SolverError, match="liar 1 calls"):
            group_mip.solve_groups(prices, amounts, own, triples, *given_)
        with pytest.raises(SolverError, match="liar 1 calls"):
            restricted.solve_restricted(prices, amounts > 0, amounts, *given_)
        assert restricted.solve_restricted(prices, amounts > 0, None, *given_).bound == np.inf


def test_rounding_is_no_success() -> None:
    """A release that loses less by a trifle does not take the place of the known one."""
    prices = pattern_duals(program := pattern_program(hard_pattern_problem()), program.cheapest)
    before = greedy_amounts(prices)
    assert before is not None
    losses = (300.0 - 1e-12 * step for step in count())

    def as_it_was(_: PatternDuals, amounts: np.ndarray, *__: object, **___: object) -> object:
        return RestrictedAnswer(amounts, None, "none")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbourhoods, "_MANY", neighbourhoods._FEW)
        patch.setattr(neighbourhoods, "_GROWING", 1)
        patch.setattr(neighbourhoods, "solve_groups", as_it_was)
        patch.setattr(neighbourhoods, "loss_of", lambda *_: next(losses))
        own, budget = groups_of(prices, before), Budget.of(1.0)
        after = improve_by_groups(prices, before, own, 0.0, "highs", SolverOptions(), budget)
    assert after is before


def test_releases_become_groups_and_back() -> None:
    """And neighbourhoods filled by groups make a better one of it."""
    prices = ascend(pattern_program(hard_pattern_problem()), None, Budget())
    before = greedy_amounts(prices)
    assert before is not None
    own = groups_of(prices, before)
    assert ((own.sizes >= 2) & (own.sizes <= 3)).all()
    assert amounts_of(prices, own, np.ones(len(own), np.int64)).tolist() == before.tolist()
    groups, _ = cheapest_groups(prices, no_triples(), prices.unit, 5_000, Budget())
    assert groups is not None
    after = improve_by_groups(prices, before, groups, 0.0, "highs", SolverOptions(), Budget.of(1.0))
    program = prices.program
    held = np.bincount(prices.pair_rows, weights=after)
    assert ((held == 0) | (held >= program.k)).all()
    given_ = np.bincount(prices.pair_types, weights=after, minlength=program.kinds)
    assert (given_ <= program.counts).all()
    assert prices.bound <= loss_of(prices, after) < loss_of(prices, before)
