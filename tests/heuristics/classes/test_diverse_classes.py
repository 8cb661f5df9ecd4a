"""Tests of Anatomy's groups and of diverse classes along a Hilbert curve."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from anonymip import Budget, Classes, Diversity, InputError, NoSolution, Problem, Stopped, solve
from anonymip.heuristics.classes.anatomy import anatomy
from anonymip.heuristics.classes.hilbert_diversity import hilbert_diversity
from tests.by_hand import table_of
from tests.random_problems import Case, ruled_cases

METHODS = (anatomy, hilbert_diversity)


def problem_of(ages: list[int], values: str, k: int, diversity: Diversity | None) -> Problem:
    """Return a problem with one attribute and one sensitive column."""
    return Problem(table_of({"age": ages, "ill": list(values)}, "ill"), k, diversity=diversity)


def groups(solution: Any) -> list[list[int]]:
    """Return the classes as lists."""
    assert isinstance(solution.assignment, Classes)
    return [group.tolist() for group in solution.assignment.groups()]


def test_hilbert_worked_by_hand() -> None:
    """Seven records x x y z x y z along a line, l = 2.

    Left with five others, three x would be too many: the first x, and y, whose next record comes
    first. Of x z x y z neither x nor z may stay twice among three: 1 and 3. Of x y z the first two;
    the last joins the class that grows least, which holds no z.
    """
    solution = hilbert_diversity(problem_of([0, 1, 2, 3, 5, 6, 7], "xxyzxyz", 2, Diversity(2)))
    assert groups(solution) == [[0, 2], [1, 3], [4, 5, 6]]


def test_anatomy_worked_by_hand() -> None:
    """Counts x 3, y 2, z 1 and l = 2: every pair has an x, since no two x may be left over.

    The first group takes x and y, the most frequent; left are x 2, y 1, z 1. The second takes x and
    y or z, the third what remains: never two of a kind, and always three pairs.
    """
    problem = problem_of([0, 9, 1, 8, 2, 7], "xxxyyz", 2, Diversity(2))
    seen = set()
    for seed in range(40):
        found = groups(anatomy(problem, seed=seed))
        assert sorted(map(len, found)) == [2, 2, 2]
        assert all("xxxyyz"[a] == "x" and "xxxyyz"[b] != "x" for a, b in found)
        seen.add(tuple(map(tuple, found)))
    # Three records of x get the three others in any order: random, whatever the ages.
    assert len(seen) == 6


@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
@given(ruled_cases(largest=7))
def test_classes_keep_all_rules(case: Case) -> None:
    """Random tables, one or two sensitive columns, limits: feasible, never below the optimum."""
    assume(case.rules is not None and case.rules.sensitive)
    problem, best = case.problem(), case.optimum()
    assert case.rules is not None
    for method in METHODS:
        try:
            solution = method(problem)
        except NoSolution:
            assert case.rules.caps or case.rules.apart
            continue
        assert solution.objective >= best - case.slack(best)
        assert all(case.rules.met_by(case.columns, group) for group in groups(solution))
        assert groups(method(problem)) == groups(solution)


def test_larger_tables() -> None:
    """K and l kept, values counted one by one; neighbours on the line cost less than strangers."""
    rng = np.random.default_rng(0)
    ages, values = (
        rng.integers(0, 1000, 630).tolist(),
        "".join(rng.permutation(list("uuvvwwxyz") * 70)),
    )
    for k, l in ((2, 4), (7, 3), (5, 4)):  # noqa: E741
        problem = problem_of(ages, values, k, Diversity(l))
        losses = []
        for method in METHODS:
            solution = method(problem)
            for group in groups(solution):
                assert len(group) >= max(k, l)
                assert max(Counter(values[i] for i in group).values()) * l <= len(group)
            losses.append(solution.objective)
        assert losses[1] < 0.5 * losses[0]


def test_distinct_values_are_enough() -> None:
    """Three of them, and no share: three different records and any others are a class."""
    problem = problem_of(list(range(12)), "xxxxxxyyyzzz", 3, Diversity(distinct=3))
    for method in METHODS:
        assert all(
            len({"xxxxxxyyyzzz"[i] for i in group}) == 3 for group in groups(method(problem))
        )


@pytest.mark.parametrize("method", METHODS)
def test_units_are_counted_beside_a_diversity_and_are_none(method: Any) -> None:
    """Persons of two rows each: l = 2 asks for two values, k for three persons; k alone is none."""
    persons, ill = np.arange(24) // 2, list("xyyx") * 6
    data = table_of({"age": range(24), "ill": ill}, "ill")
    data = replace(data, frame=data.frame.assign(person=persons), unit="person")
    problem = Problem(data, 3, diversity=Diversity(2))
    for found in (method(problem), solve(problem, method.__name__.replace("_", "-"))):
        for group in groups(found):
            assert len(set(persons[group])) >= 3
            assert 2 * max(Counter(ill[i] for i in group).values()) <= len(group)
    with pytest.raises(InputError, match="no diversity is asked for"):
        method(problem.replace(diversity=None))


@pytest.mark.parametrize("method", METHODS)
def test_refusals_and_limits_of_time(method: Any) -> None:
    """Without a diversity there is nothing to do; without time the repair makes the classes."""
    problem = problem_of(list(range(8)), "xyxyxyxy", 2, Diversity(2))
    with pytest.raises(InputError, match="no diversity is asked for"):
        method(replace(problem, diversity=None))
    late = method(problem, budget=Budget.of(1e-9))
    assert late.status.stopped is Stopped.TIME
    assert all(len({"xy"[i % 2] for i in group}) == 2 for group in groups(late))
