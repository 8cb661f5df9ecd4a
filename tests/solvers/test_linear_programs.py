"""Linear programs with dual values: the values can be checked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from anonymip.runtime.budget import Budget
from anonymip.solvers import linear_programs
from anonymip.solvers.linear_programs import Basis, GrowingProgram, Simplex, solve_linear_program

COST = np.array([2.0, 3.0, 1.0])
#: At least 4 of the first two together, exactly 5 of all, at most 3 of the first and the last.
MATRIX = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
LOWER, UPPER = np.array([4.0, 5.0, -np.inf]), np.array([np.inf, 5.0, 3.0])


def assert_duals_price(duals: Any, value: float) -> None:
    """Assert that no column costs less than its duals, and that they pay for the value."""
    assert (COST - MATRIX.T @ duals >= -1e-9).all()
    assert duals @ np.where(np.isfinite(UPPER), UPPER, LOWER) == pytest.approx(value)
    assert duals[0] >= 0 >= duals[2]


@pytest.mark.parametrize("form", [np.array, csr_array, csc_array])
def test_every_row_has_its_dual(form: Any) -> None:
    """Equalities and rows with a side below or above; the optimum is 2 * 2 + 3 * 2 + 1."""
    found = solve_linear_program(COST, form(MATRIX), LOWER, UPPER)
    assert found is not None
    assert found.point == pytest.approx([2.0, 2.0, 1.0])
    assert found.value == pytest.approx(11.0)
    assert_duals_price(found.duals, 11.0)


@pytest.mark.parametrize(("cost", "point"), [(1.0, 2.0), (-1.0, 6.0)])
def test_a_row_between_two_sides_has_one_dual(cost: float, point: float) -> None:
    """Of a row with two sides the one that holds the point counts."""
    sides = np.array([2.0]), np.array([6.0])
    found = solve_linear_program(np.array([cost]), np.array([[1.0]]), *sides)
    assert found is not None
    assert found.point == pytest.approx([point])
    assert found.duals == pytest.approx([cost])


def test_bounds_hold() -> None:
    """Columns stay between their bounds."""
    lower, upper = np.array([0.0, 3.0, 0.0]), np.array([0.5, np.inf, np.inf])
    found = solve_linear_program(COST, MATRIX, LOWER, UPPER, lower=lower, upper=upper)
    assert found is not None
    assert found.point == pytest.approx([0.5, 3.5, 1.0])


def test_no_optimum_is_none() -> None:
    """Neither where rows contradict each other nor where nothing bounds the objective."""
    sides = np.array([1.0, 2.0])
    assert solve_linear_program(np.ones(1), np.ones((2, 1)), sides, sides) is None
    free = np.array([0.0]), np.array([np.inf])
    assert solve_linear_program(-np.ones(1), np.ones((1, 1)), *free) is None


def test_a_growing_program_agrees_with_one_made_at_once() -> None:
    """It grows by columns and by rows; without the last row the first column costs least."""
    program = GrowingProgram(LOWER[:2], UPPER[:2])
    program.add_columns(COST[:1], csc_array(MATRIX[:2, :1]))
    program.add_columns(COST[1:], csc_array(MATRIX[:2, 1:]))
    first = program.solve(Budget())
    assert first is not None
    assert first.value == pytest.approx(9.0)
    program.add_rows(csr_array(MATRIX[2:]), LOWER[2:], UPPER[2:])
    for budget in (Budget(), Budget.of(60.0)):
        found = program.solve(budget)
        assert found is not None
        assert found.value == pytest.approx(11.0)
        assert found.point == pytest.approx([2.0, 2.0, 1.0])
        assert_duals_price(found.duals, 11.0)


def test_a_growing_program_takes_new_limits() -> None:
    """A column that is closed or opened counts from the next solve on."""
    program = GrowingProgram(LOWER, UPPER)
    program.add_columns(COST, csc_array(MATRIX))
    for most, value in ((1.0, 12.0), (np.inf, 11.0)):
        program.limit_columns(np.array([0]), np.array([most]))
        found = program.solve(Budget())
        assert found is not None
        assert found.value == pytest.approx(value)


def test_a_basis_carries_over_to_a_program_with_fewer_columns() -> None:
    """From the basis of the larger program the smaller one needs no iteration."""
    program = GrowingProgram(LOWER, UPPER)
    cost, matrix = np.append(COST, 9.0), csc_array(np.column_stack([MATRIX, np.ones(3)]))
    program.add_columns(cost, matrix)
    assert program.solve(Budget()) is not None
    basis = program.basis()
    assert basis.columns.sum() + basis.rows.sum() == 3
    assert not basis.columns[3]
    smaller = GrowingProgram(LOWER, UPPER)
    smaller.add_columns(COST, csc_array(MATRIX))
    smaller.start_from(Basis(basis.columns[:3], basis.rows))
    assert smaller.value_soon(0) == pytest.approx(11.0)


@pytest.mark.parametrize("iterations", [0, 1, 2])
def test_a_simplex_method_that_cycles_is_left(
    iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After as many iterations as are allowed others take over, here at once, to the optimum."""
    monkeypatch.setattr(linear_programs, "_ITERATIONS", iterations)
    monkeypatch.setattr(linear_programs, "_ITERATIONS_EACH", 0)
    rng = np.random.default_rng(iterations)
    cost, matrix = rng.uniform(1.0, 2.0, 60), rng.integers(0, 2, (12, 60)).astype(np.float64)
    least, no_side = np.ones(12), np.full(12, np.inf)
    program = GrowingProgram(least, no_side)
    for half in (slice(0, 30), slice(30, 60)):
        program.add_columns(cost[half], csc_array(matrix[:, half]))
        found = program.solve(Budget())
    expected = solve_linear_program(cost, matrix, least, no_side)
    assert found is not None
    assert expected is not None
    assert found.value == pytest.approx(expected.value)


def cycling_unless(
    monkeypatch: pytest.MonkeyPatch, ends: Callable[[GrowingProgram, int], bool]
) -> list[int]:
    """Let a method cycle unless it is one that ends; return the methods that are asked."""
    runs, asked = GrowingProgram._runs, []

    def cycling(program: GrowingProgram, strategy: int, iterations: int) -> bool:
        asked.append(strategy)
        return ends(program, strategy) and runs(program, strategy, iterations)

    monkeypatch.setattr(GrowingProgram, "_runs", cycling)
    return asked


def test_costs_are_not_perturbed_again_where_a_method_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What cycles with perturbed costs does so from the beginning, and in the next program too."""
    option = "dual_simplex_cost_perturbation_multiplier"
    asked = cycling_unless(
        monkeypatch, lambda program, _: program._model.getOptionValue(option)[1] == 0.0
    )
    simplex = Simplex()
    for runs_needed in (2, 1):
        asked.clear()
        program = GrowingProgram(LOWER, UPPER, simplex)
        program.add_columns(COST, csc_array(MATRIX))
        found = program.solve(Budget())
        assert found is not None
        assert found.value == pytest.approx(11.0)
        assert asked == [linear_programs._DUAL] * runs_needed
    assert not simplex.perturbs
    assert simplex.iterations > 0
    # Others are none of its business.
    assert Simplex().perturbs


def test_another_method_takes_over_where_costs_are_not_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dual method that cycles in any case is left to the primal one."""
    asked = cycling_unless(monkeypatch, lambda _, method: method == linear_programs._PRIMAL)
    program = GrowingProgram(LOWER, UPPER)
    program.add_columns(COST, csc_array(MATRIX))
    found = program.solve(Budget())
    assert found is not None
    assert found.value == pytest.approx(11.0)
    assert asked == [linear_programs._DUAL, linear_programs._DUAL, linear_programs._PRIMAL]
