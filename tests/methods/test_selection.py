"""`auto` picks as documented and says what it picked."""

from __future__ import annotations

import pytest

from anonymip import Problem, census, solve
from anonymip.methods.selection import LARGEST_EXACT, auto
from tests.brute_force import Column
from tests.random_problems import FALLING, LOSSES, Case


def line(n: int, loss: str = "gcp") -> Problem:
    """Return the records 0, 1, 4, 9, ... of one attribute, k = 2."""
    column = Column(tuple(float(value * value) for value in range(n)))
    case = Case((column,), 2, FALLING if loss == "falling" else LOSSES[loss])
    return case.problem()


@pytest.mark.parametrize("n", [2, LARGEST_EXACT])
def test_small_tables_are_solved_to_optimality(n: int) -> None:
    """Up to 12 records the MILP runs, and the solution says why."""
    solution = solve(line(n))
    assert solution.method == "equivalence-mip"
    assert solution.is_optimal
    assert solution.trace[0] == "auto picked equivalence-mip: at most 12 records: provable"


def test_larger_tables_get_greedy_search() -> None:
    """From 13 records on it is greedy-search."""
    solution = solve(line(LARGEST_EXACT + 1))
    assert solution.method == "greedy-search"
    assert solution.trace[0] == "auto picked greedy-search: more than 12 records"


def test_objectives_that_are_not_monotone_get_greedy_search() -> None:
    """The MILP refuses them, so auto does not pick it."""
    solution = solve(line(5, "falling"))
    assert solution.method == "greedy-search"
    assert "not proven monotone" in solution.trace[0]


def test_settings_reach_the_method_that_takes_them() -> None:
    """The solver asked for is the one used; greedy-search takes none."""
    assert str(solve(line(5), solver="cbc").solver).startswith("CBC")
    assert auto(Problem(census(20, 3, seed=0), 3), solver="cbc", gap=0.1).solver is None
