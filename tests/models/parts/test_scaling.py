"""Numbers that solvers cannot hold are shifted and scaled, others left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip import (
    KK,
    HierarchyLoss,
    KConcealment,
    KOne,
    OneK,
    Problem,
    adopt,
    build,
    objective,
    solve,
    solve_model,
)
from anonymip.models.parts.equivalence_context import Scaling
from tests.brute_force import Column
from tests.random_problems import microdata


@pytest.mark.parametrize(
    ("values", "integer", "origin", "unit", "whole"),
    [
        ((17, 90, 34), True, 0.0, 1.0, True),
        ((-0.5, 2.0, 99.0), False, 0.0, 1.0, False),
        ((100, 25_000, 60_000), True, 100.0, 59_900.0, False),
        ((3, 3, 3), True, 0.0, 1.0, True),
        ((1_700_000_007, 1_700_000_000, 1_700_000_040), True, 1.7e9, 1.0, True),
        ((2, 5, 9_000_000), True, 2.0, 8_999_998.0, False),
        ((1e7, 1e7 + 0.5, 1e7 + 2.0), False, 1e7, 2.0, False),
        ((0.0, 1e-7, 4e-7), False, 0.0, 4e-7, False),
        ((-3e8, -3e8, -3e8), False, -3e8, 1.0, False),
    ],
)
def test_shift_and_unit_by_hand(
    values: tuple[float, ...], integer: bool, origin: float, unit: float, whole: bool
) -> None:
    """Ages stay as they are, timestamps are shifted, money and micrometres are scaled."""
    table = microdata([Column(values, integer=integer)])
    scaling = Scaling.of(table, Problem(table, 2).compiled.tables)
    assert scaling.origin.tolist() == [origin]
    assert scaling.unit.tolist() == [unit]
    assert scaling.whole.tolist() == [whole]
    variables = scaling.scaled(table.values)
    np.testing.assert_allclose(origin + unit * variables, table.values, rtol=1e-12)
    assert np.abs(variables).max() <= 1e5


def test_ends_that_cost_next_to_nothing_are_measured_in_spans() -> None:
    """Beside an attribute that costs 1, steps of 1e-6 are; alone they would not be."""
    table = microdata([Column((1, 2, 3), integer=True), Column((10, 20, 90), integer=True)])

    @objective
    def mostly_the_first(record: Any) -> Any:
        return record.width["a"] + 1e-5 * record.width["b"]

    problem = Problem(table, 2, objective=mostly_the_first)
    scaling = Scaling.of(table, problem.compiled.tables)
    assert scaling.unit.tolist() == [1.0, 80.0]
    assert scaling.origin.tolist() == [0.0, 10.0]
    assert scaling.whole.tolist() == [True, False]


def test_ends_with_a_loss_for_every_range_are_counted_in_ranks() -> None:
    """Beside a billion no solver tells 0 from 1: by their ranks it does."""
    near = microdata([Column((1, 1_000_000_000, 0, 1_000_000_000)), Column((1, 2, 3, 4))])
    scaling = Scaling.of(near, Problem(near, 2, objective=HierarchyLoss()).compiled.tables)
    assert list(scaling.ranked) == [0]
    assert scaling.scaled(near.values)[:, 0].tolist() == [1.0, 2.0, 0.0, 2.0]
    assert scaling.levels(near, 0).tolist() == [0.0, 1.0, 2.0]
    assert scaling.levels(near, 1).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert not Scaling.of(near, Problem(near, 2).compiled.tables).ranked


@pytest.mark.parametrize("formulation", ["bigm", "hull", "strengthened"])
def test_ranked_ends_are_published_in_their_own_unit(formulation: str) -> None:
    """A constraint of one's own on `upper` speaks of values, whatever the model counts in."""
    near = microdata([Column((1, 1_000_000_000, 0, 999_999_999, 2, 1))])
    problem = Problem(near, 2, objective=HierarchyLoss())
    model = build(problem, formulation)
    model.narrow = pyo.Constraint(model.rows, rule=lambda m, i: m.upper[i, 0] - m.lower[i, 0] <= 1)
    solve_model(model)
    cells = adopt(problem, model).description
    assert (cells.upper - cells.lower).max() <= 1


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("recoding", [OneK(), KOne(), KK(), KConcealment()])
@pytest.mark.parametrize(
    "values",
    [
        (1, 1_000_000_000, 0, 1_000_000_000),
        (4, 9_000_000_000_000_000, 7, 8),
        (0.3, 0.30000000000000004, 1.0, 0.3),
        (1e-9, 1e9, 0.0, 1.0),
    ],
)
def test_near_values_are_told_apart(values: tuple[float, ...], recoding: Any, solver: str) -> None:
    """The weaker notions are proven, where rows on values named sets that lose more."""
    table = microdata([Column(values)])
    problem = Problem(table, 3, recoding, HierarchyLoss())
    found = solve(problem, solver=solver)
    assert found.is_optimal
    # Two equal records conceal each other, and one set of all hides them both.
    cheaper = isinstance(recoding, OneK) or (
        isinstance(recoding, KConcealment) and len(set(values)) < 4
    )
    assert found.objective == (3.0 if cheaper else 4.0)
