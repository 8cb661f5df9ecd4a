"""Growing sets: weights, tables of penalties and limits against the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anonymip import InputError, Problem, census
from anonymip.heuristics.freeform.set_growth import (
    fill_weights,
    increase,
    new_states,
    new_table,
    rebuild,
    set_loss,
    set_terms,
    take,
)
from tests.brute_force import Rules
from tests.hard_losses import PRODUCT
from tests.random_problems import Case, cases, ruled_cases


def grown_sets(case: Case, data: st.DataObject) -> list[list[int]]:
    """Draw a set for each record, its own record first."""
    return [
        [
            record,
            *data.draw(
                st.lists(
                    st.sampled_from([other for other in range(case.n) if other != record]),
                    unique=True,
                    max_size=case.n - 2,
                )
            ),
        ]
        for record in range(case.n)
    ]


def naive_weight(case: Case, one: list[int], record: int) -> float:
    """Return the increase by the definition."""
    after = case.set_loss([*one, record])
    return after - case.set_loss(one) if math.isfinite(after) else math.inf


@given(cases(suppression=False), st.data())
def test_weights_are_increases_of_the_loss(case: Case, data: st.DataObject) -> None:
    """Tables, single weights and whole rows say what brute force says, bit for bit the same."""
    terms = set_terms(case.problem())
    states, table = new_states(terms, case.n), new_table(terms)
    row = np.empty(case.n)
    for i, one in enumerate(grown_sets(case, data)):
        for record in one[1:]:
            take(states, i, record)
        fill_weights(states, i, table, row)
        for record in range(case.n):
            assert row[record] == increase(states, i, record)
            wanted = naive_weight(case, one, record)
            assert row[record] == pytest.approx(wanted, abs=1e-9 * max(1.0, case.set_loss(one)))


@given(cases(suppression=False), st.data())
def test_rebuilt_sets_are_those_that_grew(case: Case, data: st.DataObject) -> None:
    """A set built anew, its members in any order, weighs and costs what the grown one does."""
    terms = set_terms(case.problem())
    grown, built = new_states(terms, case.n), new_states(terms, case.n)
    for i, one in enumerate(grown_sets(case, data)):
        for record in one[1:]:
            take(grown, i, record)
        shuffled = data.draw(st.permutations(one))
        take(built, i, (i + 1) % case.n)
        rebuild(built, i, np.array(shuffled, np.int32))
        assert set_loss(built, i) == set_loss(grown, i)
        for record in range(case.n):
            assert increase(built, i, record) == increase(grown, i, record)
        rise = set_loss(grown, i)
        rebuild(built, i, np.array([i], np.int32))
        rise -= set_loss(built, i)
        naive = case.set_loss(one) - case.set_loss([i])
        assert rise == pytest.approx(naive, abs=1e-9 * max(1.0, case.set_loss(one)))


@given(ruled_cases(), st.data())
def test_infinite_weights_are_what_limits_forbid(case: Case, data: st.DataObject) -> None:
    """A set that keeps the limits may take in exactly the records that keep them with it."""
    assume(case.rules is not None and (case.rules.caps or case.rules.apart))
    limits_only = Case(case.columns, case.k, case.loss, rules=_without_diversity(case))
    terms = set_terms(limits_only.problem())
    states = new_states(terms, case.n)
    for i in range(case.n):
        one = [i]
        for record in data.draw(st.permutations(range(case.n))):
            allowed = math.isfinite(limits_only.set_loss([*one, record]))
            assert math.isfinite(increase(states, i, record)) == allowed
            if allowed and record != i:
                take(states, i, record)
                one.append(record)


def _without_diversity(case: Case) -> Rules:
    assert case.rules is not None
    return Rules(caps=case.rules.caps, apart=case.rules.apart)


def test_losses_without_tables_are_refused() -> None:
    """A loss that mixes attributes has no terms."""
    problem = Problem(census(20, 3, seed=1), 2, objective=PRODUCT.objective)
    with pytest.raises(InputError, match="tables"):
        set_terms(problem)
