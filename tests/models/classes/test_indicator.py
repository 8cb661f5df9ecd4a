"""Conditional rows: who takes them, when they hold, what the relaxation keeps of them."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

from anonymip import Classes, InputError, Problem, build, load_instance, set_start, solve_model
from anonymip.models import relax
from anonymip.solvers import availability
from anonymip.solvers.modelling.compilation import compile_standard_form
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
