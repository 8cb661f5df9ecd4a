"""Formulations by pairs: constants, conditional rows, splits of the hull, what relaxations keep."""

from __future__ import annotations

from itertools import combinations

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

from anonymip import (
    Classes,
    InputError,
    Problem,
    build,
    load_instance,
    set_start,
    solve,
    solve_model,
)
from anonymip.models import relax
from anonymip.models.parts import equivalence_context as limits
from anonymip.solvers import availability
from anonymip.solvers.standard_form import compile_standard_form
from tests.brute_force import Column
from tests.models.pair_formulations import violations
from tests.random_problems import LOSSES, TREES, Case


def test_conditional_rows_of_a_pair() -> None:
    """Two ends, two values, and the node that both reach."""
    columns = (
        Column((1.0, 2.0, 4.0)),
        Column(("p", "q", "q"), False, as_set=True),
        Column(("q", "r", "s"), False, as_set=True, paths=TREES["uneven"]),
    )
    model = build(Case(columns, 2, LOSSES["gcp"]).problem(), "indicator")
    assert list(model.component_data_objects(Disjunction)) == []
    names = {c.local_name: len(c) for c in model.share[0, 1].component_objects(pyo.Constraint)}
    # Of q and r the node above the common one is qrs, which both share.
    assert names == {"lower": 1, "upper": 1, "included": 2, "reaches": 1, "reaches_common": 2}
    form = compile_standard_form(model)
    owners = {form.variables[column].name for column in form.indicators() if column >= 0}
    assert owners == {model.equivalent[pair].name for pair in model.pairs}


def test_rows_hold_only_where_the_pair_is_equivalent() -> None:
    """A class breaks no row; other ends of one of its records break one."""
    model = build(Problem(load_instance("health-records"), 3), "indicator")
    set_start(model, Classes.from_groups([[0, 2, 4], [1, 3, 5, 6]], 7))
    assert violations(model) == []
    age = next(iter(model.ranges))
    before = model.scaled_upper[0, age].value
    model.scaled_upper[0, age].set_value(before + 1)
    assert len([name for name in violations(model) if "share" in name]) == 2


def test_solvers_without_indicators_are_refused() -> None:
    """HiGHS cannot take the model; the message names formulations that it can."""
    model = build(Problem(load_instance("wong-5"), 2), "indicator")
    with pytest.raises(InputError, match="strengthened"):
        solve_model(model, "highs")


def test_scip_keeps_the_optimum() -> None:
    """Values 0, 0, 0, 1 of 180, k = 4: with its dual reductions SCIP 10.0 suppresses all, for 4."""
    if not availability("scip").installed:
        pytest.skip("needs SCIP")
    column = Column((0, 0, 0, 1), domain=(-60, 120), integer=True)
    model = build(Case((column,), 4, LOSSES["gcp"], suppression=True).problem(), "indicator")
    assert solve_model(model, "scip").objective == pytest.approx(4 / 180)


def test_relaxation_has_no_conditional_rows() -> None:
    """HiGHS takes the relaxation, which is one of rows that always hold."""
    model = build(Problem(load_instance("wong-5"), 2), "indicator")
    relax(model)
    form = compile_standard_form(model)
    assert not form.has_indicators
    assert not form.integer.any()
    disjuncts = list(model.component_data_objects(Disjunct, active=True))
    assert len(disjuncts) == 10


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


def health() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3)


def test_one_alternative_of_each_pair() -> None:
    """The indicator of sharing is `equivalent`, and the other one completes it to 1."""
    model = build(health(), "hull")
    form = compile_standard_form(model)
    assert not form.has_indicators
    assert {id(variable) for variable in form.variables} >= {
        id(variable) for variable in model.equivalent.values()
    }
    assert form.integer.sum() > len(model.pairs)
    set_start(model, Classes.from_groups([[0, 2, 4], [1, 3, 5, 6]], 7))
    for pair in model.pairs:
        assert model.equivalent[pair].value + model.apart[pair].binary_indicator_var.value == 1


def test_starts_fill_every_part() -> None:
    """No split variable is left open, so that a solver can use the start as it is."""
    problem = health()
    best = solve(problem, "equivalence-mip").assignment
    model = build(problem, "hull")
    assert isinstance(best, Classes)
    set_start(model, best)
    inside = (pyo.Block, Disjunct)
    variables = list(model.component_data_objects(pyo.Var, descend_into=inside))
    assert len(variables) > 21 * 8
    assert all(variable.value is not None for variable in variables)
    form = compile_standard_form(model)
    start = form.start_values()
    assert start is not None
    assert form.violation(start) is None
    assert solve_model(model, start=True).start_accepted
