"""Tests of what formulations share: rules of classes, common ancestors, scaling."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    KK,
    Classes,
    HierarchyLoss,
    KConcealment,
    KOne,
    OneK,
    Problem,
    Stopped,
    adopt,
    build,
    objective,
    read,
    set_start,
    solve,
    solve_model,
)
from anonymip.models.parts.equivalence_context import Context, Scaling
from tests.brute_force import Column, Rules
from tests.models.pair_formulations import violations
from tests.random_problems import LOSSES, TREES, Case, microdata


def labels_of(model: pyo.ConcreteModel) -> list[int]:
    """Return the classes that a model's values mean."""
    found = read(model)
    assert isinstance(found, Classes)
    return found.labels.tolist()


def test_transitivity_allows_partitions_only() -> None:
    """Of the eight graphs on three records the five transitive ones are left."""
    rules = Rules((("x", "y", "x"),), distinct=2)
    model = build(Case((Column((1.0, 2.0, 3.0)),), 2, LOSSES["gcp"], rules=rules).problem())
    pairs = [(0, 1), (0, 2), (1, 2)]
    kept = []
    for chosen in product([0, 1], repeat=3):
        for pair, value in zip(pairs, chosen, strict=True):
            model.equivalent[pair].set_value(value)
        if all(pyo.value(row.body) <= 1 for row in model.transitive.values()):
            kept.append(chosen)
    assert kept == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)]


def test_transitivity_is_left_out_where_nobody_counts() -> None:
    """Without diversity and conflicts shared cells pass along a chain of pairs."""
    plain = Case((Column((1.0, 2.0, 3.0)),), 2, LOSSES["gcp"])
    assert build(plain.problem()).component("transitive") is None
    wide = Case((Column((1.0, 2.0, 3.0)),), 2, LOSSES["gcp"], rules=Rules(caps=((0, 9.0),)))
    assert build(wide.problem()).component("transitive") is None
    narrow = Case((Column((1.0, 2.0, 3.0)),), 2, LOSSES["gcp"], rules=Rules(caps=((0, 1.0),)))
    assert build(narrow.problem()).component("transitive") is not None


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules((("x", "x", "y", "y"),), distinct=2), [0, 1, 0, 1]),
        (Rules((("x", "x", "y", "y"),), l=Fraction(2)), [0, 1, 0, 1]),
        (Rules((("x", "x", "x", "y"),), distinct=2), [0, 0, 0, 0]),
        (Rules((("x", "x", "x", "y"),), l=Fraction(4, 3)), [0, 0, 0, 0]),
        (Rules((("x", "x", "y", "y"),), l=Fraction(1)), [0, 0, 1, 1]),
    ],
)
def test_diversity_by_hand(rules: Rules, expected: list[int]) -> None:
    """Values 0, 1, 10, 11 with k = 2: near records differ too little in the sensitive value."""
    case = Case((Column((0.0, 1.0, 10.0, 11.0)),), 2, LOSSES["gcp"], rules=rules)
    model = build(case.problem())
    solve_model(model)
    labels = labels_of(model)
    if expected == [0, 1, 0, 1]:
        # {0, 2}, {1, 3} and {0, 3}, {1, 2} lose the same.
        assert labels in ([0, 1, 0, 1], [0, 1, 1, 0])
    else:
        assert labels == expected


def test_suppressed_records_are_exempt() -> None:
    """A record whose value would break the rule may be suppressed."""
    rules = Rules((("x", "x", "x", "y"),), l=Fraction(2), distinct=2)
    case = Case((Column((0.0, 1.0, 2.0, 3.0)),), 2, LOSSES["gcp"], suppression=True, rules=rules)
    model = build(case.problem())
    set_start(model, Classes.from_groups([[2, 3]], 4))
    assert violations(model) == []
    model.equivalent[1, 2].set_value(1)
    assert any(name.startswith("diverse") for name in violations(model))


def test_caps_by_hand() -> None:
    """Caps on a range, on a set and on a node; values that stay apart."""
    columns = (
        Column((0.0, 4.0, 5.0, 9.0)),
        Column(("p", "q", "p", "q"), False, as_set=True),
        Column(
            ("p", "q", "r", "r"), False, as_set=True, paths=(("p", "pq", "*"), ("q", "pq", "*"),
            ("r", "rs", "*"), ("s", "rs", "*")),
        ),
    )  # fmt: skip

    def classes(rules: Rules) -> list[int]:
        model = build(Case(columns, 2, LOSSES["gcp"], rules=rules).problem())
        solve_model(model)
        return labels_of(model)

    assert classes(Rules(caps=((0, 4.5),))) == [0, 0, 1, 1]
    assert classes(Rules(caps=((1, 1),))) == [0, 1, 0, 1]
    assert classes(Rules(caps=((2, 1),))) == [0, 0, 1, 1]
    assert classes(Rules(apart=((1, "p", "q"),))) == [0, 1, 0, 1]
    assert classes(Rules(apart=((0, 4.2, 4.8),))) == [0, 0, 1, 1]


def test_a_set_of_as_many_values_as_its_cap() -> None:
    """No two values are kept apart, but no class may hold all three."""
    sets = Column(("p", "q", "r", "p", "q", "r"), False, as_set=True)
    near = Column((0.0, 1.0, 2.0, 9.0, 10.0, 11.0))
    for most in (2, 3):
        case = Case((near, sets), 3, LOSSES["gcp"], rules=Rules(caps=((1, most),)))
        model = build(case.problem())
        solve_model(model)
        held: dict[int, set[str]] = {}
        for label, value in zip(labels_of(model), "pqrpqr", strict=True):
            held.setdefault(label, set()).add(value)
        assert {len(values) for values in held.values()} == {most}


def test_impossible_limits_are_infeasible() -> None:
    """Where no release keeps the limits, the solver says so."""
    rules = Rules(caps=((0, 1.0),))
    case = Case((Column((0.0, 5.0, 9.0)),), 2, LOSSES["gcp"], rules=rules)
    result = solve_model(build(case.problem()))
    assert result.stopped is Stopped.INFEASIBLE
    assert result.values is None


def context_of(values: tuple[str, ...], tree: str, loss: str = "leaf") -> Context:
    """Return the context of a table of one hierarchical column."""
    column = Column(values, False, as_set=True, paths=TREES[tree])
    return Context.of(Case((column,), 2, LOSSES[loss]).problem())


def test_chains_by_hand() -> None:
    """Uneven tree: p below the root; q and r below qr, qrs; s below qrs."""
    context = context_of(("p", "q", "r", "s"), "uneven")
    (one,) = context.ancestors
    tree = context.problem.microdata.attributes[0].hierarchy.tree
    labels = {
        level: [tree.labels[node] for node in chain]
        for level, chain in zip(context.problem.microdata.levels[0], one.chains, strict=True)
    }
    assert labels == {
        "p": ["*"],
        "q": ["qr", "qrs", "*"],
        "r": ["qr", "qrs", "*"],
        "s": ["qrs", "*"],
    }
    steps = dict(zip(context.problem.microdata.levels[0], one.steps, strict=True))
    assert steps["q"] == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert steps["p"] == pytest.approx((1.0,))


def test_nodes_of_absent_values_do_not_matter() -> None:
    """Without r no cell with q publishes qr; without p none publishes the root."""
    (one,) = context_of(("q", "s", "q", "s"), "uneven").ancestors
    assert [len(chain) for chain in one.chains] == [1, 1]
    assert one.longest == 1


@settings(max_examples=60)
@given(tree=st.sampled_from(sorted(TREES)), loss=st.sampled_from(["leaf", "hierarchy"]))
def test_pairs_share_what_lies_above(tree: str, loss: str) -> None:
    """The loss of a pair is that of the node it reaches; above it both chains rise alike."""
    values = tuple(sorted(path[0] for path in TREES[tree]))
    context = context_of(values, tree, loss)
    tables = context.tables
    for one in context.ancestors:
        size = len(one.chains)
        losses = tables.pair_losses.reshape(size, size)
        for low, high in combinations(range(size), 2):
            assert one.above(low, high) == one.above(high, low)
            for value, other in ((low, high), (high, low)):
                node = one.reached(value, other)
                chain = one.chains[value]
                until = 0 if node is None else chain.index(node) + 1
                assert chain[until:] == one.above(value, other)
                reached = one.alone[value] + sum(one.steps[value][:until])
                assert reached == pytest.approx(losses[low, high])
            rest = [
                one.steps[v][len(one.steps[v]) - len(one.above(low, high)) :] for v in (low, high)
            ]
            assert rest[0] == pytest.approx(rest[1])


def test_start_reaches_the_published_node() -> None:
    """A class of q and r publishes qr, not what lies above."""
    column = Column(("q", "r", "p", "s"), False, as_set=True, paths=TREES["uneven"])
    model = build(Case((column,), 2, LOSSES["leaf"]).problem())
    set_start(model, Classes.from_groups([[0, 1], [2, 3]], 4))
    reached = [
        sum(pyo.value(model.reaches[row]) for row in model.reaches if row[0] == i) for i in range(4)
    ]
    assert reached == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("values", "integer", "origin", "unit", "whole"),
    [
        ((17, 90, 34), True, 0.0, 1.0, True),
        ((-0.5, 2.0, 99.0), False, 0.0, 1.0, False),
        ((100, 25_000, 60_000), True, 100.0, 59_900.0, False),
        ((3, 3, 3), True, 0.0, 1.0, True),
        ((1_700_000_007, 1_700_000_000, 1_700_000_040), True, 1.7e9, 1.0, True),
        ((2, 5, 9_000_000), True, 2.0, 8_999_998.0, False),
        ((1e7, 1e7 + 0.5, 1e7 + 2.0), False, 1e7, 2.0, False),
        ((0.0, 1e-7, 4e-7), False, 0.0, 4e-7, False),
        ((-3e8, -3e8, -3e8), False, -3e8, 1.0, False),
    ],
)
def test_shift_and_unit_by_hand(
    values: tuple[float, ...], integer: bool, origin: float, unit: float, whole: bool
) -> None:
    """Ages stay as they are, timestamps are shifted, money and micrometres are scaled."""
    table = microdata([Column(values, integer=integer)])
    scaling = Scaling.of(table, Problem(table, 2).compiled.tables)
    assert scaling.origin.tolist() == [origin]
    assert scaling.unit.tolist() == [unit]
    assert scaling.whole.tolist() == [whole]
    variables = scaling.scaled(table.values)
    np.testing.assert_allclose(origin + unit * variables, table.values, rtol=1e-12)
    assert np.abs(variables).max() <= 1e5


def test_ends_that_cost_next_to_nothing_are_measured_in_spans() -> None:
    """Beside an attribute that costs 1, steps of 1e-6 are; alone they would not be."""
    table = microdata([Column((1, 2, 3), integer=True), Column((10, 20, 90), integer=True)])

    @objective
    def mostly_the_first(record: Any) -> Any:
        return record.width["a"] + 1e-5 * record.width["b"]

    problem = Problem(table, 2, objective=mostly_the_first)
    scaling = Scaling.of(table, problem.compiled.tables)
    assert scaling.unit.tolist() == [1.0, 80.0]
    assert scaling.origin.tolist() == [0.0, 10.0]
    assert scaling.whole.tolist() == [True, False]


def test_ends_with_a_loss_for_every_range_are_counted_in_ranks() -> None:
    """Beside a billion no solver tells 0 from 1: by their ranks it does."""
    near = microdata([Column((1, 1_000_000_000, 0, 1_000_000_000)), Column((1, 2, 3, 4))])
    scaling = Scaling.of(near, Problem(near, 2, objective=HierarchyLoss()).compiled.tables)
    assert list(scaling.ranked) == [0]
    assert scaling.scaled(near.values)[:, 0].tolist() == [1.0, 2.0, 0.0, 2.0]
    assert scaling.levels(near, 0).tolist() == [0.0, 1.0, 2.0]
    assert scaling.levels(near, 1).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert not Scaling.of(near, Problem(near, 2).compiled.tables).ranked


@pytest.mark.parametrize("formulation", ["bigm", "hull", "strengthened"])
def test_ranked_ends_are_published_in_their_own_unit(formulation: str) -> None:
    """A constraint of one's own on `upper` speaks of values, whatever the model counts in."""
    near = microdata([Column((1, 1_000_000_000, 0, 999_999_999, 2, 1))])
    problem = Problem(near, 2, objective=HierarchyLoss())
    model = build(problem, formulation)
    model.narrow = pyo.Constraint(model.rows, rule=lambda m, i: m.upper[i, 0] - m.lower[i, 0] <= 1)
    solve_model(model)
    cells = adopt(problem, model).description
    assert (cells.upper - cells.lower).max() <= 1


@pytest.mark.crossed
@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("recoding", [OneK(), KOne(), KK(), KConcealment()])
@pytest.mark.parametrize(
    "values",
    [
        (1, 1_000_000_000, 0, 1_000_000_000),
        (4, 9_000_000_000_000_000, 7, 8),
        (0.3, 0.30000000000000004, 1.0, 0.3),
        (1e-9, 1e9, 0.0, 1.0),
    ],
)
def test_near_values_are_told_apart(values: tuple[float, ...], recoding: Any, solver: str) -> None:
    """The weaker notions are proven, where rows on values named sets that lose more."""
    table = microdata([Column(values)])
    problem = Problem(table, 3, recoding, HierarchyLoss())
    found = solve(problem, solver=solver)
    assert found.is_optimal
    # Two equal records conceal each other, and one set of all hides them both.
    cheaper = isinstance(recoding, OneK) or (
        isinstance(recoding, KConcealment) and len(set(values)) < 4
    )
    assert found.objective == (3.0 if cheaper else 4.0)
