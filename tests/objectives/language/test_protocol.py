"""Tests of the objective protocol: writing, tracing and evaluating an objective."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from anonymip import (
    GCP,
    InputError,
    Objective,
    Problem,
    UnsupportedObjective,
    load_instance,
    objective,
)
from anonymip.objectives import CellBatch, FunctionObjective

DATA = load_instance("health-records")


@objective
def protect_age(record: Any) -> Any:
    """Charge age four times as much as the others."""
    return 4 * record.spread["Age"] + record.spread["Sex"] + record.spread["Zipcode"]


def weighted(weight: float, record: Any) -> Any:
    """Charge age by a weight."""
    return weight * record.spread["Age"]


class CountsNothing(Objective):
    """An objective that is a class."""

    @property
    def name(self) -> str:
        """Name in results."""
        return "counts-nothing"

    def loss(self, record: Any) -> Any:
        """Return nothing lost."""
        return 0


def test_the_decorator_makes_an_objective() -> None:
    """A function becomes an objective that bears its name and has its loss."""
    assert isinstance(protect_age, FunctionObjective)
    compiled = protect_age.compile(DATA)
    assert (compiled.name, compiled.tier, compiled.monotone) == ("protect_age", "affine", True)
    assert compiled.suppression_price == 6.0


def test_anything_that_can_be_called_has_a_name() -> None:
    """A partial function is named by its type."""
    compiled = objective(partial(weighted, 2.0)).compile(DATA)
    assert (compiled.name, compiled.suppression_price) == ("partial", 2.0)


def test_problems_and_microdata_compile_alike() -> None:
    """An objective is traced on a table; a problem stands for its table."""
    problem = Problem(DATA, 3, objective=protect_age)
    assert problem.compiled.tables.range_high.tolist() == (
        protect_age.compile(problem).tables.range_high.tolist()
    )


def test_a_constant_loss_costs_every_record_the_same() -> None:
    """An objective may ignore the record."""
    problem = Problem(DATA, 3, objective=CountsNothing())
    assert problem.compiled.tier == "affine"
    assert problem.compiled.suppression_price == 0.0


def test_decreasing_objectives_name_the_attribute() -> None:
    """What is not proven monotone says where the loss falls."""
    compiled = objective(lambda r: r.spread["Age"] - r.spread["Sex"]).compile(DATA)
    assert (compiled.monotone, compiled.decreasing) == (False, "Sex")


def test_mistakes_in_the_function_name_it() -> None:
    """Whatever the function raises becomes an error that names it and how it failed."""

    @objective
    def careless(record: Any) -> Any:
        return {"Age": 1}["age"] * record.spread["Age"]

    with pytest.raises(UnsupportedObjective, match="'careless' fails with KeyError") as caught:
        careless.compile(DATA)
    assert caught.value.remedy == "Correct the function"


def test_unknown_attributes_are_named() -> None:
    """A misspelt attribute is answered with those there are."""
    with pytest.raises(InputError, match="reads attribute 'age'") as caught:
        objective(lambda r: r.spread["age"]).compile(DATA)
    assert caught.value.remedy == "Quasi-identifiers are Age, Sex, Zipcode"


def test_functions_with_a_memory_are_refused() -> None:
    """A function that answers differently each time is found before anything is solved."""
    calls: list[int] = []

    @objective
    def forgetful(record: Any) -> Any:
        calls.append(1)
        return len(calls) * record.spread["Age"]

    with pytest.raises(UnsupportedObjective, match="different losses for one record and"):
        forgetful.compile(DATA)


def test_undefined_losses_of_a_release_are_refused() -> None:
    """A loss that is not finite for what is evaluated raises instead of spreading."""
    compiled = GCP().compile(DATA)
    ends = np.full((1, 3), np.nan)
    cells = CellBatch(ends, ends, np.ones((1, 3)), np.zeros((1, 3), np.bool_))
    with pytest.raises(UnsupportedObjective, match="infinite or undefined"):
        compiled.record_losses(cells)
