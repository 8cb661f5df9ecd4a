"""Squared errors: what is worked out once for a table."""

from __future__ import annotations

import numpy as np
import pytest

from anonymip import SSE, InputError, Problem, census
from anonymip.objectives.losses import squared_error
from tests.by_hand import table_of


def test_deviations_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of a class does not take the longer the larger the table that it is cut from."""
    problem = Problem(census(60, 4, seed=1), 3, objective=SSE())
    asked = []
    deviation = np.std
    monkeypatch.setattr(
        squared_error.np, "std", lambda values: asked.append(0) or deviation(values)
    )
    rows = np.arange(60).reshape(20, 3)
    losses = [problem.compiled.class_losses(rows) for _ in range(5)]
    assert len(asked) <= 4
    values = problem.microdata.values
    units = [float(np.std(values[:, a])) for a in range(4)]
    scaled = (values / units)[rows]
    expected = ((scaled - scaled.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
    assert losses[-1] == pytest.approx(expected)


@pytest.mark.parametrize("unit", [1e-170, 1e154, 1e160])
def test_values_whose_squares_are_no_numbers_are_refused(unit: float) -> None:
    """A deviation that is 0 or infinite by rounding is not taken for that of a constant."""
    microdata = table_of({"x": np.array([0, 1, 5, 6, 20, 21]) * unit})
    with pytest.raises(InputError, match="the square of which is no number"):
        Problem(microdata, 3, objective=SSE())
