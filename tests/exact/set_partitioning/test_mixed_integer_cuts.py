"""Mixed-integer cuts: whole solutions keep them, also those of cuts, and vertices break them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from anonymip.exact.set_partitioning.mixed_integer_cuts import Rows, mixed_integer_cuts
from anonymip.runtime.budget import Budget
from anonymip.solvers.linear_programs import GrowingProgram


def multipliers_of(
    rng: np.random.Generator, count: int, kind: str, rows: int
) -> NDArray[np.float64]:
    """Return (count, rows) multipliers of some kind."""
    if kind == "halves":
        return rng.integers(-3, 4, (count, rows)) / 2
    if kind == "thirds":
        return rng.integers(-4, 5, (count, rows)) / 3
    scale = 1.0 if kind == "real" else 20.0
    return rng.normal(0.0, scale, (count, rows))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["halves", "thirds", "real", "large"]))
def test_no_whole_solution_breaks_a_cut(seed: int, kind: str) -> None:
    """A random solution in whole numbers keeps all cuts of its rows, and all cuts of these."""
    rng = np.random.default_rng(seed)
    types, columns = 7, 25
    held = rng.integers(0, 3, (columns, types)).astype(np.float64)
    solution = rng.multinomial(6, np.full(columns, 1 / columns)).astype(np.float64)
    # Sums of rows of whole numbers, rounded down, are rows with whole slacks.
    extra = np.floor(held @ rng.integers(0, 2, (types, 3)) / 2)
    most = solution @ extra + rng.integers(0, 3, 3)
    matrix, sides = np.hstack([held, extra]), np.concatenate([solution @ held, most])
    whole, found = np.ones(types + 3, np.bool_), 0
    for round_ in range(4):
        rows = Rows(csr_array(matrix), sides, types, whole)
        multipliers = multipliers_of(rng, 12, kind, len(sides))
        # Points far away break cuts of either sign.
        point = np.full(columns, 1e3 if round_ % 2 else -1e3)
        cuts, least = mixed_integer_cuts(multipliers, rows, point, 6)
        assert (cuts @ solution >= least).all()
        assert np.abs(cuts).max(initial=0.0) <= 1.0
        found += len(least)
        matrix = np.hstack([matrix, -cuts.T])
        sides = np.concatenate([sides, -least])
        whole = np.append(whole, np.zeros(len(least), np.bool_))
    assert found


@pytest.mark.parametrize("seed", range(5))
def test_vertices_with_fractions_are_cut_off(seed: int) -> None:
    """Rows of the inverse of an optimal basis give cuts that raise the value, not above whole."""
    rng = np.random.default_rng(seed)
    members = np.array([[i, (i + 1) % 7] for i in range(7)] + [[i] for i in range(7)], object)
    held = np.array([np.bincount(one, minlength=7) for one in members], np.float64)
    costs = np.concatenate([rng.uniform(1.0, 1.1, 7), np.full(7, 2.0)])
    ones = np.ones(7)
    program = GrowingProgram(ones, ones)
    program.add_columns(costs, csc_array(held.T))
    found = program.solve(Budget())
    assert found is not None
    # Around an odd circle pairs are halves; in whole numbers one type is alone.
    assert found.value == pytest.approx(costs[:7].sum() / 2)
    optimum = min(2.0 + sum(costs[(alone + step) % 7] for step in (1, 3, 5)) for alone in range(7))
    broken = np.abs(found.point - np.rint(found.point)) > 0.1
    multipliers = program.inverse_rows(broken)
    assert multipliers.shape == (7, 7)
    rows = Rows(csr_array(held), ones, 7, np.ones(7, np.bool_))
    cuts, least = mixed_integer_cuts(multipliers, rows, found.point, 7)
    assert len(least)
    assert (cuts @ found.point < least).all()
    program.add_rows(csr_array(-cuts), np.full(len(least), -np.inf), -least)
    raised = program.solve(Budget())
    assert raised is not None
    assert found.value + 0.01 < raised.value <= optimum + 1e-6
