"""The rounds of column generation end at the linear program over all columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, hstack, identity, vstack

from anonymip import Problem, Suppressions, census
from anonymip.enumeration.cluster_sets import Columns
from anonymip.enumeration.pricing import PricedColumns
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.column_generation.conditions import ColumnRules, column_rules
from anonymip.exact.column_generation.pricing import (
    Centre,
    ListedColumns,
    Master,
    SearchedColumns,
    repaired,
    solve_relaxation,
)
from anonymip.exact.set_partitioning.rank_one_cuts import RankOneCut
from anonymip.exact.set_partitioning.restricted_master import KnownColumns, Multipliers
from anonymip.recodings import EquivalenceClasses, Freeform
from anonymip.runtime.budget import Budget
from anonymip.solvers.linear_programs import solve_linear_program
from tests.by_hand import table_of
from tests.profiles import tried
from tests.random_problems import LOSSES, cases

#: Losses that classes and covers take.
MONOTONE = [name for name in LOSSES if name != "leaning"]


def full_program(rules: ColumnRules, columns: Columns) -> float | None:
    """Return the value of the linear program over all columns; None if it has no point."""
    matrix = columns.incidence(rules.types)
    costs, lower, upper = columns.costs, rules.sides, rules.sides
    if np.isfinite(rules.price):
        matrix = csc_array(hstack([matrix, identity(rules.types)]))
        costs = np.append(costs, np.full(rules.types, rules.price))
    if rules.counted:
        counted = np.arange(len(costs)) < len(columns)
        matrix = csc_array(vstack([matrix, csc_array(counted[None, :].astype(np.float64))]))
        lower, upper = np.append(lower, -np.inf), np.append(upper, float(rules.most))
    found = solve_linear_program(costs, matrix, lower, upper)
    return None if found is None else found.value


def assert_ends_at_the_full_program(problem: Problem) -> None:
    """Assert that rounds end at its value, with a bound next to it."""
    rules = column_rules(problem)
    listed = ListedColumns(rules, Budget())
    value = full_program(rules, listed.columns)
    unit = float(np.abs(listed.columns.costs).max(initial=0.0)) or 1.0
    relaxed = solve_relaxation(Master(rules, unit), listed, Budget())
    assert relaxed.point is not None
    assert relaxed.point.feasible == (value is not None)
    if value is None:
        return
    assert relaxed.solved
    assert relaxed.point.value == pytest.approx(value, rel=1e-7, abs=1e-7 * unit)
    assert relaxed.centre is not None
    assert relaxed.centre.bound <= value + 1e-9 * abs(value)
    assert relaxed.centre.bound == pytest.approx(value, rel=1e-6, abs=1e-6 * unit)


@settings(max_examples=60)
@given(case=cases(largest=8, losses=MONOTONE), freeform=st.booleans())
def test_equals_the_linear_program_over_all_columns(case: object, freeform: bool) -> None:
    """Classes with and without suppression, and covers, of all kinds of columns."""
    problem = case.problem()  # type: ignore[attr-defined]
    if freeform:
        assume(not problem.recoding.suppression)
        problem = problem.replace(recoding=Freeform())
    assume(problem.compiled.monotone)
    assert_ends_at_the_full_program(problem)


@pytest.mark.crossed
@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
@pytest.mark.parametrize(("n", "k"), [(14, 3), (11, 4)])
def test_every_round_proves_a_bound(
    recoding: EquivalenceClasses | Freeform, n: int, k: int
) -> None:
    """Whatever duals are asked for, what they are repaired to is feasible and bounds the value."""
    rules = column_rules(Problem(census(n, 4, 1), k, recoding))
    listed = ListedColumns(rules, Budget())
    value = full_program(rules, listed.columns)
    assert value is not None
    rng = np.random.default_rng(0)
    for spread in (0.0, 0.2, 1.0):
        duals = value / rules.sides.sum() * (1 + spread * rng.standard_normal(rules.types))
        asked = Multipliers(duals, 0.1 * rules.counted)
        priced = listed.best(asked, below=0.0, max_nodes=None, budget=Budget())
        assert priced.least is not None
        centre = repaired(rules, asked, priced.least)
        assert centre.bound <= value
        feasible = centre.multipliers
        reduced = listed.columns.reduced_costs(feasible.duals) + feasible.count
        assert reduced.min() >= -1e-12
        proven = rules.sides @ feasible.duals - rules.most * feasible.count
        assert centre.bound >= proven - 1e-9
        assert proven - 1e-9 <= centre.value <= min(proven, centre.bound)
        assert_reduced_costs_add_to_the_value(rules, listed.columns, centre, reduced)


def assert_reduced_costs_add_to_the_value(
    rules: ColumnRules, columns: Columns, centre: Centre, reduced: np.ndarray
) -> None:
    """Assert that what holds a column costs its reduced cost more than the duals prove."""
    incidence = columns.incidence(rules.types).toarray()
    for column in np.argsort(-reduced)[:: max(1, len(reduced) // tried(20))]:
        rest = replace(rules, sides=rules.sides - incidence[:, column], most=rules.most - 1)
        others = full_program(rest, columns)
        if others is not None:
            least = columns.costs[column] + others
            assert least >= centre.value + reduced[column] - 1e-9


def test_duals_that_are_repaired_a_lot_exclude_no_optimum() -> None:
    """Beside costs of 1e9 a solver's duals are far from feasible: what they exclude is less."""
    table = table_of({"a": [1.0, 0.3, 0.1, 1.0, 0.11, 0.7, 0.3], "b": list("cccc===")})
    costs = Suppressions({"a": 1.0, "b": 1e9})
    found = column_generation(Problem(table, 2, objective=costs))
    assert found.objective == 5.0
    assert found.is_optimal


def test_columns_that_are_known_end_the_search_that_is_cut_off() -> None:
    """A heuristic pricing that returns what the master has already is followed by an exact one."""
    rules = column_rules(Problem(census(14, 4, 1), 3))
    listed, asked = ListedColumns(rules, Budget()), []

    class CutOff:
        """Finds one column, which it takes for a better one, unless it may look at all."""

        spent = squared = False

        def best(self, *given: Any, max_nodes: int | None, **others: Any) -> PricedColumns:
            asked.append(max_nodes)
            assert len(asked) < 100
            found = listed.best(*given, max_nodes=max_nodes, **others)
            if max_nodes is None:
                return found
            first, least = listed.columns.only(np.arange(len(listed.columns)) == 0), -np.inf
            return replace(found, **vars(first), least=np.array([least]), complete=False)

    relaxed = solve_relaxation(Master(rules, 1.0), CutOff(), Budget())  # type: ignore[arg-type]
    value = full_program(rules, listed.columns)
    assert relaxed.solved
    assert relaxed.point is not None
    assert relaxed.point.value == pytest.approx(value)
    assert None in asked


def test_a_column_is_known_once() -> None:
    """A multiset that comes again is no new column."""
    known = KnownColumns()
    columns = Columns(np.array([0, 2, 4]), np.array([0, 0, 0, 1], np.int32), np.array([1.0, 2.0]))
    assert len(known.add(columns)) == 2
    assert len(known.add(columns.only(np.array([False, True])))) == 0
    assert len(known.all()) == 2
    assert known.place(np.array([0, 1], np.int32)) == 1
    assert columns.incidence(2).toarray().tolist() == [[2, 1], [0, 1]]


def test_duals_from_before_a_cut_price_columns() -> None:
    """Duals that know fewer cuts than the master give the reduced costs of that time."""
    problem = Problem(census(24, 4, 1), 3)
    rules = column_rules(problem)
    prices, master = SearchedColumns(rules), Master(rules, 1.0)
    centre = solve_relaxation(master, prices, Budget()).centre
    assert centre is not None
    columns = master.known.all()
    before = master.reduced_costs(centre.multipliers, columns)
    master.add_cuts([RankOneCut((0, 1, 2), 2)])
    np.testing.assert_array_equal(master.reduced_costs(centre.multipliers, columns), before)
