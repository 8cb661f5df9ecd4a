"""`auto` picks as documented and says what it picked."""

from __future__ import annotations

import pytest

from anonymip import Problem, census, solve
from anonymip.methods.selection import auto
from anonymip.models import model_size
from tests.brute_force import Column
from tests.random_problems import FALLING, LOSSES, Case


def line(n: int, loss: str = "gcp") -> Problem:
    """Return the records 0, 1, 4, 9, ... of one attribute, k = 2."""
    column = Column(tuple(float(value * value) for value in range(n)))
    case = Case((column,), 2, FALLING if loss == "falling" else LOSSES[loss])
    return case.problem()


@pytest.mark.parametrize("n", [2, 12, 40])
def test_few_possible_classes_are_solved_to_optimality(n: int) -> None:
    """The MILP runs, and the solution says why."""
    solution = solve(line(n))
    assert solution.method == "equivalence-mip"
    assert solution.is_optimal
    classes = model_size(solution.problem, "set-partition")
    reason = f"auto picked equivalence-mip: {classes:,} possible classes: provable"
    assert solution.trace[0] == reason


@pytest.mark.parametrize("n", [90, 300])
def test_larger_tables_get_greedy_search(n: int) -> None:
    """Of 90 records there are 117,480 pairs and triples."""
    solution = solve(line(n))
    assert solution.method == "greedy-search"
    assert solution.trace[0] == "auto picked greedy-search: more than 100,000 possible classes"


def test_objectives_that_are_not_monotone_are_solved_too() -> None:
    """Set partitioning takes any loss."""
    solution = solve(line(5, "falling"))
    assert solution.method == "equivalence-mip"
    assert solution.is_optimal


def test_settings_reach_the_method_that_takes_them() -> None:
    """The solver asked for is the one used; greedy-search takes none."""
    assert str(solve(line(5), solver="cbc").solver).startswith("CBC")
    assert auto(Problem(census(100, 3, seed=0), 3), solver="cbc", gap=0.1).solver is None
