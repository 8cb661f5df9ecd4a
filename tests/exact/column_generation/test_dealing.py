"""Neighbouring classes dealt again at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import SSE, Budget, Classes, Problem, Solution, census
from anonymip.exact.classes.small import solve_small
from anonymip.exact.column_generation.improving.dealing import deal_again
from anonymip.heuristics.classes.initial import initial
from anonymip.recodings import EquivalenceClasses


def loss_of(problem: Problem, labels: np.ndarray) -> float:
    """Return the loss of labels, which are checked."""
    return Solution.of(problem, Classes(labels), method="test").objective


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 30), st.integers(2, 4), st.booleans())
def test_never_worse_and_allowed(seed: int, n: int, k: int, suppression: bool) -> None:
    """What is returned is a release that the problem allows, and not above the given one."""
    problem = Problem(census(n, 3, seed), min(k, n), EquivalenceClasses(suppression=suppression))
    start = initial(problem)
    found = deal_again(problem, start.assignment.labels, rounds=4, seed=seed)
    assert loss_of(problem, found) <= start.objective


@pytest.mark.parametrize("seed", range(2))
def test_small_tables_reach_the_optimum(seed: int) -> None:
    """On twelve records the optimum is found from a poor start."""
    problem = Problem(census(12, 4, seed), 3)
    found = deal_again(problem, initial(problem).assignment.labels, rounds=40, seed=seed)
    assert loss_of(problem, found) == pytest.approx(solve_small(problem).objective)


def test_more_rounds_are_never_worse_and_seeds_repeat() -> None:
    """Rounds go on from the best release so far, and the same seed gives the same labels."""
    problem = Problem(census(60, 5, 2), 4)
    start = initial(problem).assignment.labels
    found = [deal_again(problem, start, rounds=rounds, seed=1) for rounds in (0, 5, 15, 15)]
    losses = [loss_of(problem, labels) for labels in found]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < losses[0]
    np.testing.assert_array_equal(found[2], found[3])


def test_losses_without_tables_leave_the_labels() -> None:
    """A loss whose classes are evaluated in batches is not dealt for: nothing is returned worse."""
    problem = Problem(census(20, 4, 1), 3, objective=SSE())
    start = initial(problem).assignment.labels
    found = deal_again(problem, start, rounds=5)
    assert loss_of(problem, found) <= loss_of(problem, start)


def test_an_interrupt_ends_it() -> None:
    """An interrupted budget gives the labels back."""
    problem, budget = Problem(census(20, 4, 1), 3), Budget()
    budget.interrupt()
    start = initial(problem).assignment.labels
    np.testing.assert_array_equal(deal_again(problem, start, rounds=5, budget=budget), start)
