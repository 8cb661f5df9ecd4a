"""Rows near a row, where losses are so small that quotients of them are no numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anonymip import Attribute, Microdata, Objective, Problem, objective
from anonymip.bounds.ladder import ladder_bound
from anonymip.bounds.near_search import filter_roughly, gather_near
from anonymip.bounds.nearest_neighbour import nearest_neighbour_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.effort import EFFORTS
from anonymip.runtime.budget import Budget


@pytest.mark.parametrize("scale", [1.0, 1e-306, 1e-308, 1e-320])
def test_very_small_losses_are_sorted_into_the_bins_that_there_are(scale: float) -> None:
    """Where bins are narrower than numbers tell, nothing is written behind the last of them."""
    values = [0.0, 3.0, 4.0, 9.0, 11.0, 12.0]
    data = Microdata(pd.DataFrame({"a": values}), (Attribute("a"),))
    problem = Problem(data, 3, objective=objective(lambda record: scale * record.spread["a"]))
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), 1e9, Budget())
    search, bins = duals.search, len(duals.search.lists.bin_filled)
    filled, tops = np.zeros(bins + 1, np.int64), np.zeros((bins + 1, 3))
    lists = search.lists._replace(bin_filled=filled[:bins], bin_tops=tops[:bins])
    search = search._replace(lists=lists)
    near = gather_near(search, duals.floors, 0, np.inf)
    kept = filter_roughly(search, np.zeros(len(values)), near, 2, 0.0, np.inf)
    assert kept == near == len(values) - 1
    assert filled[bins] == 0


@pytest.mark.parametrize("scale", [1e-290, 1e-308, 1e-309])
def test_very_small_losses_have_a_bound(scale: float) -> None:
    """However small they are, every effort comes to the bound of larger ones, made as small."""

    def in_units(unit: float) -> Objective:
        return objective(lambda record: unit * record.spread["a"] + unit * record.spread["b"])

    drawn = np.random.default_rng(1).integers(0, 50, (30, 2))
    data = Microdata(pd.DataFrame(drawn, columns=["a", "b"]), (Attribute("a"), Attribute("b")))
    for effort in EFFORTS:
        small, large = (
            ladder_bound(Problem(data, 4, objective=in_units(unit)), effort=effort)
            for unit in (scale, 1.0)
        )
        assert small is not None
        assert large is not None
        assert small.value / scale == pytest.approx(large.value, rel=1e-3)
