"""A small experiment of methods that are fast."""

from __future__ import annotations

import pytest

from anonymip.experiments import Experiment, MethodChoice, Samples, TableSource


@pytest.fixture
def small() -> Experiment:
    """Return two samples of a generated table, two values of k, two methods, two seeds."""
    return Experiment(
        name="small",
        tables=(TableSource("census:30,3,1", samples=Samples(2, 8, 5)),),
        k=(2, 3),
        methods=(MethodChoice("mondrian"), MethodChoice("mondrian", {"strict": False}, label="d")),
        repetitions=2,
        bound=False,
    )
