"""Row Assignment: the linear program has whole vertices, and the network simplex finds the best."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymip import InputError, solve_model
from anonymip.models.patterns.row_assignment import (
    RowAssignment,
    assign_rows,
    build_row_assignment,
    whole_costs,
)
from anonymip.runtime.arrays import Flags, Floats, Ints


def of_matrix(k: int, counts: Ints, costs: Floats, fits: Flags) -> RowAssignment:
    """Return the problem as the paper states it, by its matrix h of who may become which row."""
    types, rows = np.nonzero(fits)
    return RowAssignment(counts, np.full(len(costs), k, np.int64), types, rows, costs[rows])


@st.composite
def tasks(draw: st.DrawFn) -> RowAssignment:
    """Return small tasks as the paper states them; many have no assignment."""
    t, r = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    counts = np.array(draw(st.lists(st.integers(1, 4), min_size=t, max_size=t)))
    some = st.sampled_from([0.0, 1.0, 2.0, 2.5, 0.1, 1 / 3])
    costs = np.array(draw(st.lists(some, min_size=r, max_size=r)))
    fits = np.array(draw(st.lists(st.booleans(), min_size=t * r, max_size=t * r))).reshape(t, r)
    return of_matrix(draw(st.integers(1, 3)), counts, costs, fits)


def cheapest(task: RowAssignment) -> float | None:
    """Return the least cost by trying all numbers of records; None if there is no assignment."""
    best = None
    for amounts in product(*[range(int(most) + 1) for most in task.capacities]):
        given_out = np.bincount(task.types, weights=amounts, minlength=len(task.counts))
        taken = np.bincount(task.rows, weights=amounts, minlength=len(task.least))
        if (given_out == task.counts).all() and (taken >= task.least).all():
            cost = float(np.dot(amounts, task.costs))
            best = cost if best is None else min(best, cost)
    return best


def assert_keeps_rules(task: RowAssignment, amounts: NDArray[np.int64]) -> None:
    """Assert inequalities (1) to (3)."""
    assert ((amounts >= 0) & (amounts <= task.capacities)).all()
    given_out = np.bincount(task.types, weights=amounts, minlength=len(task.counts))
    taken = np.bincount(task.rows, weights=amounts, minlength=len(task.least))
    assert (given_out == task.counts).all()
    assert (taken >= task.least).all()


@settings(max_examples=200)
@given(task=tasks())
def test_network_simplex_equals_trying_all(task: RowAssignment) -> None:
    """Costs with and without few decimals, rows that cannot be filled, types that fit nowhere."""
    amounts, best = assign_rows(task), cheapest(task)
    assert (amounts is None) == (best is None)
    if amounts is not None:
        assert_keeps_rules(task, amounts)
        assert amounts @ task.costs == pytest.approx(best, rel=1e-12, abs=1e-12)


@settings(max_examples=25)
@given(task=tasks(), seed=st.integers(0, 1000))
def test_the_linear_program_is_whole(task: RowAssignment, seed: int) -> None:
    """Under random costs, whose optimum is one vertex, the simplex gives whole numbers."""
    own = np.random.default_rng(seed).uniform(0, 1, len(task.costs))
    task = RowAssignment(task.counts, task.least, task.types, task.rows, own)
    amounts = assign_rows(task)
    if amounts is None:
        return
    model = build_row_assignment(task)
    result = solve_model(model)
    values = np.array([variable.value for variable in model.assigned.values()])
    assert np.abs(values - np.rint(values)).max() < 1e-6
    assert_keeps_rules(task, np.rint(values).astype(np.int64))
    assert result.objective == pytest.approx(amounts @ own, rel=1e-9, abs=1e-9)


def test_sums_run_over_output_rows() -> None:
    """Three rows of two patterns: all three count in (3), none is left out."""
    fits = np.array([[True, False, True], [False, True, True]])
    task = of_matrix(2, np.array([3, 3]), np.array([1.0, 1.0, 5.0]), fits)
    amounts = assign_rows(task)
    assert amounts is not None
    # Row 2 must have two records, though each costs more there.
    assert amounts @ task.costs == 2 * 5 + 4 * 1
    assert sorted(amounts[task.rows == 2].tolist()) == [1, 1]


def test_what_cannot_be_is_refused() -> None:
    """Messages name the row or the type."""
    short = of_matrix(4, np.array([3]), np.array([1.0]), np.ones((1, 1), np.bool_))
    with pytest.raises(InputError, match="3 records may become output row 0, which needs 4"):
        build_row_assignment(short)
    lost = of_matrix(2, np.array([3, 1]), np.array([1.0]), np.array([[True], [False]]))
    with pytest.raises(InputError, match="type 1 may become none"):
        build_row_assignment(lost)
    assert assign_rows(lost) is None


def test_whole_costs_are_exact_or_fine() -> None:
    """Few decimals become whole numbers of that unit; others keep their order and ratio."""
    tenths, off = whole_costs(np.array([0.1, 2.25]), 10)
    assert (tenths.tolist(), off) == ([10, 225], 0.0)
    assert whole_costs(np.array([3.0, 0.0]), 10)[0].tolist() == [3, 0]
    third, off = whole_costs(np.array([1 / 3, 1.0]), 10)
    assert 0 < off < 1e-14
    assert abs(third / third[1] - [1 / 3, 1.0]).max() <= off
    assert third[0] / third[1] == pytest.approx(1 / 3, rel=1e-14)
    assert third.max() < 2**58
