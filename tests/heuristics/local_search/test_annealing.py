"""Annealing of classes: what is allowed, how far it comes, and that it repeats itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anonymip import GCP, Bottleneck, Budget, Problem, census
from anonymip.exact.classes.small import solve_small
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.local_search.annealing import near_types
from anonymip.heuristics.local_search.current_classes import CurrentRelease
from anonymip.heuristics.local_search.rounds import iterate_classes
from anonymip.recodings import EquivalenceClasses
from tests.by_hand import by_classes, table_of


def annealed(problem: Problem, start: np.ndarray, steps: int, seed: int = 0) -> tuple[float, str]:
    """Return the loss of what becomes of classes, which are checked, and the remark."""
    labels, _, remark = iterate_classes(problem, start, steps=steps, budget=Budget(), seed=seed)
    return by_classes(problem, labels).objective, remark


@pytest.mark.parametrize("seed", range(3))
def test_small_tables_reach_the_optimum(seed: int) -> None:
    """From a poor start, and changes were annealed on the way."""
    problem = Problem(census(14, 4, seed), 3)
    found, remark = annealed(problem, initial(problem).assignment.labels, 1_000_000, seed)
    assert found == pytest.approx(solve_small(problem).objective)
    assert "annealed changes" in remark


def test_it_gains_where_trials_gain_less() -> None:
    """Of numbers, where many changes of one row gain, as much work comes to less loss."""
    points = np.random.default_rng(1).random((800, 4))
    table = table_of(pd.DataFrame(points, columns=list("abcd")))
    problem = Problem(table, 8)
    start, steps = greedy_search(problem).assignment.labels, 60_000_000
    trials, _, _ = iterate_classes(problem, start, steps=steps, budget=Budget(), seed=0, visited={})
    alone = by_classes(problem, trials).objective
    assert annealed(problem, start, steps)[0] < 0.995 * alone


def test_the_same_seed_gives_the_same_classes() -> None:
    """How far a step of the kernel goes depends on the clock; what comes of it does not."""
    problem = Problem(census(120, 5, 3), 4)
    start = greedy_search(problem).assignment.labels
    found = [
        iterate_classes(problem, start, steps=4_000_000, budget=Budget(), seed=seed)[0]
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_the_largest_loss_is_left_to_trials() -> None:
    """There a change of one row mostly changes nothing."""
    problem = Problem(census(14, 4, 1), 3, objective=Bottleneck(GCP()))
    _, remark = annealed(problem, initial(problem).assignment.labels, 1_000_000)
    assert "annealed" not in remark


def test_near_types_are_the_nearest_without_the_type_itself() -> None:
    """Twins in the same place are neighbours, more of them than are listed as well."""
    points = np.concatenate([np.zeros((12, 2)), np.arange(8.0).reshape(4, 2) + 5.0])
    near = near_types(points)
    assert near.shape == (16, 7)
    assert all(at not in row for at, row in enumerate(near.tolist()))
    assert near[15].tolist()[0] == 14
    assert np.isin(near[:12], np.arange(12)).all()
    assert near_types(points[:3]).shape == (3, 2)


def test_homes_are_classes_that_hold_the_type() -> None:
    """Of a type whose copies are suppressed there is none."""
    table = census(6, 3, 1).take(np.array([0, 0, 1, 1, 2, 3]))
    problem = Problem(table, 2, EquivalenceClasses(suppression=True))
    state = CurrentRelease.of(problem, np.array([0, 1, 0, 1, -1, 1]))
    home, types = state.labels()[state.records[state.first[:-1]]], state.types
    assert (home == -1).sum() == 1
    for row_type in range(types):
        if home[row_type] >= 0:
            entry, held = state.current.head[home[row_type]], set()
            while entry >= 0:
                held.add(int(state.current.types[entry]))
                entry = state.current.following[entry]
            assert row_type in held
