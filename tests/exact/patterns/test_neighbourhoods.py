"""A few rows at once are filled anew: the release stays one, and gets better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings

from anonymip.bounds.patterns.pattern_duals import (
    PatternDuals,
    loss_of,
    pattern_duals,
    pattern_program,
)
from anonymip.bounds.patterns.pattern_lagrangian import ascend
from anonymip.exact.patterns.components import amounts_by_duals, greedy_amounts
from anonymip.exact.patterns.neighbourhoods import _freed, improve_nearby, places_of
from anonymip.exact.patterns.proof import prove
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions
from tests.bounds.patterns.pattern_references import hard_pattern_problem
from tests.random_patterns import PatternCase, pattern_cases


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


def test_a_greedy_release_comes_near_the_optimum() -> None:
    """Between the proven optimum and the release that it began with, well below the latter."""
    problem = hard_pattern_problem(60)
    duals = ascend(pattern_program(problem), None, Budget())
    before = greedy_amounts(duals)
    assert before is not None
    after = improve_nearby(duals, before, Mip("highs", SolverOptions(), Budget()))
    assert obeys_the_rules(duals, after)
    best = prove(problem).objective
    assert best <= loss_of(duals, after) < loss_of(duals, before)
    assert loss_of(duals, after) <= 1.05 * best


def test_prices_lead_to_a_better_release_than_costs() -> None:
    """It obeys the rules, and lies between the optimum and the greedy release."""
    problem = hard_pattern_problem()
    duals = ascend(pattern_program(problem), None, Budget())
    by_costs, by_duals = greedy_amounts(duals), amounts_by_duals(duals)
    assert by_costs is not None
    assert by_duals is not None
    assert obeys_the_rules(duals, by_duals)
    assert duals.bound <= loss_of(duals, by_duals) < loss_of(duals, by_costs)


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
    freed = _freed(duals, none, chosen, none > 0)
    assert freed.dtype == np.int64
    assert freed[:3].tolist() == program.counts[:3].tolist()
    assert not freed[3:].any()


def test_an_interrupt_ends_it() -> None:
    """The release is returned as it was."""
    duals = pattern_duals(program := pattern_program(hard_pattern_problem()), program.cheapest)
    before = greedy_amounts(duals)
    assert before is not None
    budget = Budget()
    budget.interrupt()
    after = improve_nearby(duals, before, Mip("highs", SolverOptions(), budget))
    assert after.tolist() == before.tolist()


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
    after = improve_nearby(duals, before, Mip("highs", SolverOptions(), Budget.of(2.0)))
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
