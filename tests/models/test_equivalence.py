"""The big-M model of Liang & Samavi: constants, size, relaxation, and what it refuses."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Classes,
    InputError,
    Problem,
    UnsupportedObjective,
    build,
    census,
    load_instance,
    read,
    set_start,
    solve_model,
)
from anonymip.models import equivalence
from tests.brute_force import Column
from tests.random_problems import FALLING, LOSSES, Case, cases


@settings(max_examples=60)
@given(cases(largest=5), st.booleans())
def test_every_release_is_a_point_of_the_model(case: Case, integer_ends: bool) -> None:
    """Big-M constants are valid: each allowed release keeps all rows, and its cost is its loss."""
    model = build(case.problem(), integer_ends=integer_ends)
    for groups in case.releases():
        classes = Classes.from_groups(groups, case.n)
        set_start(model, classes)
        assert violations(model) == []
        loss = case.release_loss(groups)
        assert pyo.value(model.loss) == pytest.approx(loss, rel=1e-9, abs=1e-9)
        assert read(model).labels.tolist() == classes.labels.tolist()


def violations(model: pyo.ConcreteModel) -> list[str]:
    """Return the names of all rows, bounds and domains that the values break."""
    broken = []
    for constraint in model.component_data_objects(pyo.Constraint, active=True):
        body = pyo.value(constraint.body)
        lower, upper = pyo.value(constraint.lower), pyo.value(constraint.upper)
        slack = 1e-9 * max(1.0, abs(body))
        if (lower is not None and body < lower - slack) or (
            upper is not None and body > upper + slack
        ):
            broken.append(constraint.name)
    for variable in model.component_data_objects(pyo.Var):
        low, high = variable.bounds
        inside = (low is None or variable.value >= low) and (high is None or variable.value <= high)
        if not inside or (variable.is_integer() and variable.value != round(variable.value)):
            broken.append(variable.name)
    return broken


@settings(max_examples=40)
@given(cases(largest=6))
def test_relaxation_never_exceeds_the_optimum(case: Case) -> None:
    """Without integrality the model gives a lower bound."""
    model = build(case.problem())
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    result = solve_model(model)
    best = case.optimum()
    assert result.objective is not None
    assert result.objective <= best + 1e-6 * max(1.0, abs(best))


@settings(max_examples=25)
@given(cases(largest=6, suppression=False))
def test_relaxation_is_no_weaker_than_publishing_exactly(case: Case) -> None:
    """Ends cover the record's own value even in the relaxation."""
    model = build(case.problem())
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    result = solve_model(model)
    alone = case.release_loss(tuple((record,) for record in range(case.n)))
    assert result.objective is not None
    assert result.objective >= alone - 1e-6 * max(1.0, abs(alone))


@pytest.mark.parametrize(
    ("instance", "k", "root", "optimum"),
    [
        ("health-records", 3, 0.522350, 0.955090),
        ("wong-5", 2, 3.661094, 7.103556),
        ("aggarwal-4", 2, 5.107692, 5.2),
    ],
)
def test_relaxations_of_named_instances(instance: str, k: int, root: float, optimum: float) -> None:
    """The root bounds are pinned beside the optima: a weaker constant would show here."""
    model = build(Problem(load_instance(instance), k))
    assert solve_model(model).objective == pytest.approx(optimum, abs=1e-6)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    assert solve_model(model).objective == pytest.approx(root, abs=1e-6)


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


def test_integer_ends_follow_the_attributes() -> None:
    """Eq. (27): ends of whole-numbered attributes are integer variables if asked for."""
    columns = (
        Column((1, 2, 4), integer=True),
        Column((0.5, 2.0, 4.0)),
        Column((1_700_000_000, 1_700_000_009, 1_700_000_013), integer=True),
        Column((1, 9, 2_000_000_000), integer=True),
    )
    problem = Case(columns, 2, LOSSES["gcp"]).problem()

    def whole(model: pyo.ConcreteModel) -> list[bool]:
        return [model.scaled_lower[0, j].is_integer() for j in range(4)]

    assert whole(build(problem, integer_ends=True)) == [True, False, True, False]
    assert whole(build(problem, integer_ends=False)) == [False] * 4


def test_every_component_is_documented() -> None:
    """Each set, variable, expression, constraint and objective says what it is."""
    columns = (
        Column((1.0, 2.0, 4.0)),
        Column(("p", "q", "r"), False, as_set=True),
    )
    model = build(Case(columns, 2, LOSSES["curved"], suppression=True).problem())
    kinds = (pyo.Set, pyo.RangeSet, pyo.Var, pyo.Expression, pyo.Constraint, pyo.Objective)
    components = [c for c in model.component_objects(kinds) if not c.local_name.endswith("_index")]
    assert len(components) > 15
    assert [c.name for c in components if not c.doc] == []


@pytest.mark.parametrize("offset", [0, 1_700_000_000])
def test_ends_are_read_in_the_unit_of_the_attribute(offset: int) -> None:
    """`lower` and `upper` of a solved model are what is published, scaled or not."""
    values = (3, 1, 2, 8, 9, 7)
    column = Column(tuple(offset + value for value in values), integer=True)
    model = build(Case((column,), 3, LOSSES["gcp"]).problem())
    solve_model(model)
    lower = [pyo.value(model.lower[i, 0]) - offset for i in range(6)]
    upper = [pyo.value(model.upper[i, 0]) - offset for i in range(6)]
    np.testing.assert_allclose(lower, [1, 1, 1, 7, 7, 7], atol=1e-6)
    np.testing.assert_allclose(upper, [3, 3, 3, 9, 9, 9], atol=1e-6)


def test_objectives_that_are_not_monotone_are_refused() -> None:
    """The model could publish more than a class covers; the message names what accepts it."""
    problem = Case((Column((1.0, 2.0, 4.0)),), 2, FALLING).problem()
    with pytest.raises(UnsupportedObjective, match=r"'falling' can fall in 'a'.*greedy-search"):
        build(problem)


def test_models_too_large_are_refused() -> None:
    """Beyond 3,000,000 rows the message gives size, limit and remedy; nothing is built."""
    with pytest.raises(InputError, match=r"3,000,000.*greedy-search"):
        build(Problem(census(1000, 8, seed=0), 3))


def test_size_limit_counts_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate counts the rows of eqs. (22)-(25) and of the sets."""
    problem = Problem(load_instance("health-records"), 3)
    monkeypatch.setattr(equivalence, "LARGEST_MODEL", 21 * (4 * 2 + 2 * 2 + 3))
    build(problem)
    monkeypatch.setattr(equivalence, "LARGEST_MODEL", 21 * (4 * 2 + 2 * 2 + 3) - 1)
    with pytest.raises(InputError, match="has about 315 constraints"):
        build(problem)


def test_other_recodings_are_refused() -> None:
    """The model knows equivalence classes only."""

    class Freeform:
        name = "freeform"

    problem: Any = Problem(load_instance("wong-5"), 2).replace(recoding=Freeform())
    with pytest.raises(InputError, match="does not model the recoding freeform"):
        build(problem)


def test_indirectly_equivalent_records_share_a_class() -> None:
    """Def. 6: binaries of a chain of pairs suffice, k = 2."""
    column = Column((1.0, 2.0, 3.0, 8.0, 9.0))
    model = build(Case((column,), 2, LOSSES["gcp"]).problem())
    for pair in model.pairs:
        model.equivalent[pair].set_value(int(pair in {(0, 1), (1, 2), (3, 4)}))
    assert read(model).labels.tolist() == [0, 0, 0, 1, 1]
