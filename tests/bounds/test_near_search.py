"""Rows near a row, where losses are so small that quotients of them are no numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anonymip import Objective, Problem, objective
from anonymip.bounds.ladder import ladder_bound
from anonymip.effort import EFFORTS
from tests.by_hand import table_of


@pytest.mark.parametrize("scale", [1e-290, 1e-308, 1e-309])
def test_very_small_losses_have_a_bound(scale: float) -> None:
    """However small they are, every effort comes to the bound of larger ones, made as small."""

    def in_units(unit: float) -> Objective:
        return objective(lambda record: unit * record.spread["a"] + unit * record.spread["b"])

    drawn = np.random.default_rng(1).integers(0, 50, (30, 2))
    data = table_of(pd.DataFrame(drawn, columns=["a", "b"]))
    for effort in EFFORTS:
        small, large = (
            ladder_bound(Problem(data, 4, objective=in_units(unit)), effort=effort)
            for unit in (scale, 1.0)
        )
        assert small is not None
        assert large is not None
        assert small.value / scale == pytest.approx(large.value, rel=1e-3)
