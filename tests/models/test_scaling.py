"""Numbers that solvers cannot hold are shifted and scaled, others left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anonymip import Problem, objective
from anonymip.models.scaling import Scaling
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
