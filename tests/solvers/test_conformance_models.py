"""The suite of every solver adapter: kinds of models, against enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip.solvers import SolverOptions, availability, solve_model, solver_names
from anonymip.status import Stopped
from tests.solvers.test_conformance import knapsack


def test_fixed_variables_are_constants(solver: str) -> None:
    """Fixed variables keep their value and count in rows and objective."""
    model = knapsack()
    model.take[1].fix(1)
    result = solve_model(model, solver)
    assert result.objective == pytest.approx(13)
    assert model.take[1].value == 1
    assert pyo.value(model.value) == pytest.approx(13)


def test_all_variables_fixed(solver: str) -> None:
    """With nothing left to decide the objective is the constant."""
    model = knapsack()
    for j in range(4):
        model.take[j].fix(j % 2)
    result = solve_model(model, solver)
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == result.bound == pytest.approx(10)


def test_model_without_constraints(solver: str) -> None:
    """Bounds alone make a model."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(-3.5, 8))
    model.cost = pyo.Objective(expr=2 * model.x + 1)
    result = solve_model(model, solver)
    assert result.objective == pytest.approx(-5)
    assert model.x.value == -3


def test_narrowed_binary_keeps_its_bounds(solver: str) -> None:
    """A binary variable whose upper bound is 0 stays 0."""
    model = knapsack()
    model.take[0].setub(0)
    assert solve_model(model, solver).objective == pytest.approx(13)


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_negative_free_and_constant(solver: str, sense: Any) -> None:
    """Free and negative integers, equality and range rows, and a constant come out right."""
    sign = 1 if sense == pyo.minimize else -1
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers)
    model.y = pyo.Var(domain=pyo.Integers, bounds=(-7, None))
    model.z = pyo.Var()
    model.equal = pyo.Constraint(expr=model.x + model.y == -12)
    model.range = pyo.Constraint(expr=(-6.5, model.x, 4))
    model.free = pyo.Constraint(expr=model.z >= 0.5 * model.x - 100)
    model.cost = pyo.Objective(expr=sign * (model.x + model.z + 1000), sense=sense)
    result = solve_model(model, solver)
    assert result.stopped is Stopped.OPTIMAL
    assert (model.x.value, model.y.value) == (-6, -6)
    assert model.z.value == pytest.approx(-103)
    assert result.objective == result.bound == pytest.approx(sign * 891)


def test_all_digits_of_a_value_arrive(solver: str) -> None:
    """A large fractional value fits its row to more digits than a short text holds."""
    model = pyo.ConcreteModel()
    model.use = pyo.Var(range(2), domain=pyo.Binary)
    model.z = pyo.Var(bounds=(0, 1e6))
    model.one = pyo.Constraint(expr=model.use[0] + model.use[1] == 1)
    model.link = pyo.Constraint(
        expr=model.z == 765432.123456789 * model.use[0] + 987654.987654321 * model.use[1]
    )
    model.cost = pyo.Objective(expr=model.z)
    assert solve_model(model, solver).objective == pytest.approx(765432.123456789, abs=1e-6)
    assert model.z.value == pytest.approx(765432.123456789, abs=1e-6)


def random_model(seed: int) -> tuple[pyo.ConcreteModel, float | None]:
    """Return a small mixed-integer model and its optimum by enumeration, None if infeasible.

    The continuous variable is pushed down onto the larger of two linear functions.
    """
    random = np.random.default_rng(seed)
    n, rows = int(random.integers(2, 5)), int(random.integers(1, 4))
    lower = random.integers(-3, 2, n)
    upper = lower + random.integers(0, 4, n)
    coefficients = random.integers(-4, 5, (rows, n))
    relations = random.integers(0, 3, rows)
    right = random.integers(-6, 7, rows)
    cost = np.round(random.normal(size=n), 3)
    slopes, levels = random.integers(-2, 3, (2, n)), random.integers(-3, 3, 2)
    maximise, constant = bool(random.integers(0, 2)), float(random.integers(-50, 50))
    sign = -1.0 if maximise else 1.0

    model = pyo.ConcreteModel()
    model.x = pyo.Var(
        range(n), domain=pyo.Integers, bounds=lambda model, j: (int(lower[j]), int(upper[j]))
    )
    model.t = pyo.Var()
    model.rows = pyo.ConstraintList()
    for row in range(rows):
        body = sum(int(coefficients[row, j]) * model.x[j] for j in range(n)) + 0 * model.t
        side = int(right[row])
        model.rows.add((body <= side, body == side, body >= side)[relations[row]])
    for piece in range(2):
        model.rows.add(
            model.t
            >= sum(int(slopes[piece, j]) * model.x[j] for j in range(n)) + int(levels[piece])
        )
    total = sum(float(cost[j]) * model.x[j] for j in range(n)) + 1.5 * model.t
    model.objective = pyo.Objective(
        expr=sign * total + constant, sense=pyo.maximize if maximise else pyo.minimize
    )

    best = None
    for point in itertools.product(*(range(lower[j], upper[j] + 1) for j in range(n))):
        gaps = coefficients @ point - right
        if not ((relations != 0) | (gaps <= 0)).all() or not ((relations != 2) | (gaps >= 0)).all():
            continue
        if not ((relations != 1) | (gaps == 0)).all():
            continue
        value = float(cost @ point) + 1.5 * float((slopes @ point + levels).max())
        best = value if best is None else min(best, value)
    return model, None if best is None else sign * best + constant


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_random_models_equal_enumeration(seed: int) -> None:
    """All solvers give the optimum of enumeration, and a bound that does not pass it."""
    for name in solver_names():
        if availability(name).licence in (None, "none"):
            continue
        model, best = random_model(seed)
        result = solve_model(model, name)
        if best is None:
            assert result.stopped is Stopped.INFEASIBLE
            continue
        assert result.stopped is Stopped.OPTIMAL
        assert result.objective == pytest.approx(best, abs=1e-6)
        assert result.bound == pytest.approx(best, abs=1e-6)


@pytest.mark.crossed
@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
@pytest.mark.parametrize("gap", [0.02, 0.2])
def test_bound_never_passes_the_optimum(solver: str, sense: Any, gap: float) -> None:
    """Stopped within a gap, the bound lies beyond the optimum that enumeration finds."""
    sign = 1 if sense == pyo.maximize else -1
    choices = np.array(list(itertools.product((0, 1), repeat=14)))
    for seed in range(8):
        random = np.random.default_rng(seed)
        weights, values = random.integers(10, 99, (3, 14)), random.integers(10, 99, 14) / 1000
        room = weights.sum(axis=1) / 2
        fitting = choices[(choices @ weights.T <= room).all(axis=1)]
        best = float((fitting @ values).max())
        model = pyo.ConcreteModel()
        model.take = pyo.Var(range(14), domain=pyo.Binary)
        model.room = pyo.ConstraintList()
        for row in range(3):
            model.room.add(
                sum(int(weights[row, j]) * model.take[j] for j in range(14)) <= float(room[row])
            )
        model.value = pyo.Objective(
            expr=sign * sum(float(values[j]) * model.take[j] for j in range(14)), sense=sense
        )
        result = solve_model(model, solver, SolverOptions(relative_gap=gap))
        assert result.stopped in (Stopped.GAP, Stopped.OPTIMAL)
        assert result.bound is not None
        assert sign * result.bound >= best - 1e-9
        assert result.objective is not None
        assert sign * result.objective <= best + 1e-9


def test_set_cover_equals_enumeration(solver: str) -> None:
    """A set cover of 12 sets is solved to the optimum that enumeration finds."""
    random = np.random.default_rng(3)
    covers = random.random((9, 12)) < 0.35
    covers[:, 0] |= ~covers.any(axis=1)
    cost = random.integers(1, 20, 12)
    best = min(
        int(cost @ chosen)
        for chosen in map(np.array, itertools.product((0, 1), repeat=12))
        if (covers @ chosen >= 1).all()
    )
    model = pyo.ConcreteModel()
    model.use = pyo.Var(range(12), domain=pyo.Binary)
    model.cover = pyo.Constraint(
        range(9),
        rule=lambda model, i: sum(model.use[j] for j in np.flatnonzero(covers[i]).tolist()) >= 1,
    )
    model.cost = pyo.Objective(expr=sum(int(cost[j]) * model.use[j] for j in range(12)))
    result = solve_model(model, solver)
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == pytest.approx(best)
