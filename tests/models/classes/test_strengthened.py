"""The strengthened model: hull of pairs without splitting, neighbours, order of identical rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Classes,
    InputError,
    Problem,
    adopt,
    build,
    load_instance,
    read,
    set_start,
    solve_model,
)
from anonymip.models import relax
from anonymip.models.classes.pairs import sorted_twins, twins
from tests.brute_force import Column, Rules
from tests.models.pair_formulations import PAIR_FORMULATIONS, relaxation_bound, violations
from tests.random_problems import LOSSES, Case, cases

BEYOND_PAIRS = ("transitive", "neighbours", "farther_neighbour", "twins_adjacent")


def bound_of_pairs(problem: Problem) -> float:
    """Return the relaxation's bound with nothing but what looks at one pair, (a) and (b)."""
    model = build(problem, "strengthened", transitivity=False)
    for name in BEYOND_PAIRS:
        if model.component(name) is not None:
            model.component(name).deactivate()
    relax(model)
    bound = solve_model(model).objective
    assert bound is not None
    return bound


@settings(max_examples=25)
@given(cases(largest=6))
def test_rows_of_pairs_are_the_hull(case: Case) -> None:
    """Fourier-Motzkin: (a) and (b) alone give the hull's bound, with a fifth of its size."""
    problem = case.problem()
    hull = relaxation_bound(problem, "hull")
    assert bound_of_pairs(problem) == pytest.approx(hull, rel=1e-6, abs=1e-6)


def two_attributes() -> Problem:
    """Return ten records with two numeric attributes, k = 3."""
    rng = np.random.default_rng(1)
    columns = (
        Column(tuple(rng.integers(0, 100, 10).tolist()), integer=True),
        Column(tuple(rng.integers(0, 100, 10).tolist()), integer=True),
    )
    return Case(columns, 3, LOSSES["gcp"]).problem()


def test_bound_on_ten_records() -> None:
    """Two attributes, k = 3: what each step adds to the bound."""
    problem = two_attributes()
    bigm = relaxation_bound(problem, "bigm")
    hull = relaxation_bound(problem, "hull")
    strengthened = relaxation_bound(problem, "strengthened")
    optimum = solve_model(build(problem, "set-partition")).objective
    assert optimum is not None
    assert bound_of_pairs(problem) == pytest.approx(hull, abs=1e-6)
    assert 0 < bigm < hull < strengthened < optimum
    assert strengthened > 2 * bigm


def test_sizes_on_ten_records() -> None:
    """The hull's bound costs the hull's size, the rows of (a) and (b) a fraction of it."""
    problem = two_attributes()

    def rows(formulation: str, **choices: bool) -> int:
        model = build(problem, formulation, **choices)
        return sum(1 for _ in model.component_data_objects(pyo.Constraint, active=True))

    assert rows("strengthened", transitivity=False) < rows("hull") / 2
    assert rows("strengthened") - rows("strengthened", transitivity=False) == 3 * 120


def test_losses_of_neighbours_by_hand() -> None:
    """Values 0, 1, 5, 9 with k = 3: the second nearest, and the one beyond it."""
    model = build(Case((Column((0.0, 1.0, 5.0, 9.0)),), 3, LOSSES["gcp"]).problem(), "strengthened")
    lowered = 2e-9
    least = [pyo.value(model.neighbours[i].lower) for i in range(4)]
    assert least == pytest.approx([5 / 9, 4 / 9, 4 / 9, 8 / 9], abs=lowered)
    farther = {pair: -row.body.linear_coefs[-1] for pair, row in model.farther_neighbour.items()}
    expected = {(0, 3): 4 / 9, (1, 3): 4 / 9, (2, 0): 1 / 9, (3, 0): 1 / 9}
    assert farther == pytest.approx(expected, abs=lowered)


def test_suppression_replaces_the_neighbours() -> None:
    """A suppressed record is charged the loss of stars, also where that is less."""
    column = Column((0.0, 1.0, 5.0, 9.0), domain=(0.0, 9.0))
    model = build(Case((column,), 3, LOSSES["gcp"], suppression=True).problem(), "strengthened")
    set_start(model, Classes.from_groups([[0, 1, 2]], 4))
    assert violations(model) == []
    assert pyo.value(model.neighbours[3].body) == pytest.approx(8 / 9, abs=1e-8)
    model.charged[3].set_value(1.0 - 1e-6)
    assert "neighbours[3]" in violations(model)


def test_identical_records_may_be_apart() -> None:
    """Values 0, 5, 5, 10, k = 2, squares: the best classes split the two in the middle."""
    case = Case((Column((0.0, 5.0, 5.0, 10.0)),), 2, LOSSES["curved"])
    assert case.optimum() == pytest.approx(1.0)
    merged = [groups for groups in case.releases() if any({1, 2} <= set(g) for g in groups)]
    assert min(map(case.release_loss, merged)) > 1.5
    model = build(case.problem(), "strengthened")
    assert solve_model(model).objective == pytest.approx(1.0, abs=1e-6)
    found = read(model)
    assert isinstance(found, Classes)
    assert found.labels[1] != found.labels[2]


def test_identical_records_are_ordered() -> None:
    """Of five identical records those of one class follow each other; the loss stays."""
    columns = (Column((4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 6.0, 8.0)),)
    problem = Case(columns, 2, LOSSES["gcp"], suppression=True).problem()
    classes = Classes(np.array([0, -1, 1, 0, 1, 0, 2, 2]))
    ordered = sorted_twins(problem, classes)
    assert ordered.labels.tolist() == [0, 0, 0, 1, 1, -1, 2, 2]
    model = build(problem, "strengthened")
    set_start(model, classes)
    assert violations(model) == []
    found = read(model)
    assert isinstance(found, Classes)
    assert found.labels.tolist() == ordered.labels.tolist()
    rows = set(model.twins_adjacent)
    for first, last in combinations(range(1, 6), 2):
        if last - first > 1:
            assert {(first, last, first, last - 1), (first, last, first + 1, last)} <= rows


def test_sensitive_values_tell_identical_records_apart() -> None:
    """Records that differ in a sensitive value only may not trade places."""
    column = Column((1.0, 1.0, 1.0, 1.0, 5.0))
    rules = Rules((("x", "y", "x", "x", "y"),), distinct=2)
    problem = Case((column,), 2, LOSSES["gcp"], rules=rules).problem()
    assert [group.tolist() for group in twins(problem)] == [[0, 2, 3]]
    free = Case((column,), 2, LOSSES["gcp"]).problem()
    assert [group.tolist() for group in twins(free)] == [[0, 1, 2, 3]]


def test_transitivity_is_a_choice() -> None:
    """It is added if asked for, to small tables if not, and always where rules need it."""
    problem = Problem(load_instance("health-records"), 3)
    assert build(problem, "strengthened").component("transitive") is not None
    assert build(problem, "strengthened", transitivity=False).component("transitive") is None
    large = Problem(load_instance("census:40,2,1"), 3)
    assert build(large, "strengthened").component("transitive") is None
    case = Case(
        (Column((1.0, 2.0, 3.0)),), 2, LOSSES["gcp"], rules=Rules((("x", "y", "x"),), distinct=2)
    )
    ruled = build(case.problem(), "strengthened", transitivity=False)
    assert ruled.component("transitive") is not None
    with pytest.raises(InputError, match="transitivity is 'always'"):
        build(problem, "strengthened", transitivity="always")


def test_no_companions_no_class() -> None:
    """Limits that leave a record fewer than k - 1 others make the model infeasible."""
    rules = Rules(caps=((0, 2.0),))
    case = Case((Column((0.0, 1.0, 9.0)),), 2, LOSSES["gcp"], rules=rules)
    model = build(case.problem(), "strengthened")
    assert solve_model(model).stopped.value == "infeasible"


@pytest.mark.parametrize("formulation", PAIR_FORMULATIONS[1:])
@settings(max_examples=25)
@given(case=cases(smallest=5, largest=6, suppression=False), data=st.data())
def test_records_kept_apart_are_apart(formulation: str, case: Case, data: st.DataObject) -> None:
    """With transitive pairs, and identical records told apart, 0 means another class."""
    one, other = sorted(data.draw(st.permutations(range(case.n)))[:2])
    allowed = [
        groups
        for groups in case.releases()
        if not any(one in group and other in group for group in groups)
    ]
    assume(allowed)
    choices = {"symmetry": False} if formulation == "strengthened" else {}
    model = build(case.problem(), formulation, transitivity=True, **choices)
    model.keep_apart = pyo.Constraint(expr=model.equivalent[one, other] == 0)
    solve_model(model)
    best = min(map(case.release_loss, allowed))
    found = adopt(case.problem(), model)
    assert found.assignment.labels[one] != found.assignment.labels[other]
    assert found.objective == pytest.approx(best, rel=1e-5, abs=1e-5)
