"""The big-M model of Liang & Samavi: constants, size, relaxation."""

from __future__ import annotations

from itertools import combinations

import pyomo.environ as pyo
import pytest

from anonymip import InputError, Problem, build, load_instance
from anonymip.models.parts import model_size as limits
from tests.brute_force import Column
from tests.random_problems import LOSSES, Case


def test_big_m_constants_by_hand() -> None:
    """Eqs. (29)-(32) with observed ends: values 2, 5, 9 in the domain 0 to 100."""
    column = Column((5, 2, 9), domain=(0, 100), integer=True)
    model = build(Case((column,), 2, LOSSES["gcp"]).problem())

    def constants(name: str) -> dict[tuple[int, int], float]:
        component = model.component(name)
        return {
            pair: float(component[(*pair, 0)].body.linear_coefs[2])
            for pair in combinations(range(3), 2)
        }

    # A lower end is at least 2 and at most the own value; an upper one at most 9.
    lower = {(0, 1): 5 - 2, (0, 2): 9 - 2, (1, 2): 9 - 2}
    upper = {(0, 1): 9 - 2, (0, 2): 9 - 5, (1, 2): 9 - 2}
    assert constants("lower_at_most") == constants("lower_at_least") == lower
    assert constants("upper_at_most") == constants("upper_at_least") == upper


def test_size_of_the_model() -> None:
    """N (n - 1) / 2 binaries, four rows a pair and range, two a pair and value of a set."""
    model = build(Problem(load_instance("health-records"), 3))
    pairs = 21
    assert len(model.equivalent) == pairs
    assert all(variable.is_binary() for variable in model.equivalent.values())
    rows = sum(len(c) for c in model.component_objects(pyo.Constraint))
    assert rows == 7 + pairs * (4 * 2 + 2 * 2)
    assert len(model.scaled_lower) == len(model.scaled_upper) == 7 * 2
    assert len(model.included) == 7 * 2


def test_size_limit_counts_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate counts the rows of eqs. (22)-(25) and of the sets."""
    problem = Problem(load_instance("health-records"), 3)
    monkeypatch.setattr(limits, "LARGEST_MODEL", 21 * (4 * 2 + 2 * 2 + 3))
    build(problem)
    monkeypatch.setattr(limits, "LARGEST_MODEL", 21 * (4 * 2 + 2 * 2 + 3) - 1)
    with pytest.raises(InputError, match="has about 315 constraints"):
        build(problem)
