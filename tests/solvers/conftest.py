"""What the tests of the solvers share: the adapters under test and a hard model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.solvers import availability


@dataclass(frozen=True)
class Case:
    """An adapter under test.

    Parameters
    ----------
    accepted, refused
        An option in the solver's own words, with a value it takes and one it does not.
    required
        Whether a test machine must have the solver.
    """

    accepted: dict[str, object]
    refused: dict[str, object]
    required: bool


SUITE = {
    "highs": Case({"presolve": "off"}, {"presolve": "perhaps"}, required=True),
    "cbc": Case({"preprocess": "off"}, {"preprocess": "perhaps"}, required=True),
    "scip": Case({"presolving/maxrounds": 0}, {"presolving/maxrounds": "some"}, required=False),
    "gurobi": Case({"Presolve": 0}, {"Presolve": 99}, required=False),
    "cplex": Case({"mip.limits.nodes": 10**6}, {"threads": -1}, required=False),
}


@pytest.fixture
def suite() -> dict[str, Case]:
    """Return all adapters that the conformance suite covers."""
    return SUITE


@pytest.fixture(params=SUITE)
def solver(request: pytest.FixtureRequest) -> str:
    """Return the name of each adapter; optional solvers are skipped where absent."""
    name: str = request.param
    found = availability(name)
    if found.licence in (None, "none") and not SUITE[name].required:
        pytest.skip(f"{name}: {found.reason}")
    return name


def build_hard_knapsack(
    sense: Any = pyo.maximize, items: int = 100, capacities: int = 10
) -> pyo.ConcreteModel:
    """Return a knapsack with several capacities: incumbents at once, the proof takes long."""
    random = np.random.default_rng(0)
    weights = random.integers(1, 1000, (capacities, items)).tolist()
    values = (np.mean(weights, axis=0) + random.integers(0, 500, items)).tolist()
    sign = 1 if sense == pyo.maximize else -1
    model = pyo.ConcreteModel()
    model.take = pyo.Var(range(items), domain=pyo.Binary)
    model.capacity = pyo.Constraint(
        range(capacities),
        rule=lambda model, row: (
            sum(weights[row][j] * model.take[j] for j in range(items)) <= sum(weights[row]) / 2
        ),
    )
    model.value = pyo.Objective(
        expr=sign * sum(values[j] * model.take[j] for j in range(items)), sense=sense
    )
    return model


@pytest.fixture
def hard_knapsack() -> Callable[..., pyo.ConcreteModel]:
    """Return the builder of the hard knapsack: sense, items, capacities."""
    return build_hard_knapsack
