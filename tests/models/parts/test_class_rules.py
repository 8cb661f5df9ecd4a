"""Transitivity, diversity and limits as rows, by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pyomo.environ as pyo
import pytest

from anonymip import Classes, Stopped, build, read, set_start, solve_model
from tests.brute_force import Column, Rules
from tests.models.pair_formulations import violations
from tests.random_problems import LOSSES, Case


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


def test_impossible_limits_are_infeasible() -> None:
    """Where no release keeps the limits, the solver says so."""
    rules = Rules(caps=((0, 1.0),))
    case = Case((Column((0.0, 5.0, 9.0)),), 2, LOSSES["gcp"], rules=rules)
    result = solve_model(build(case.problem()))
    assert result.stopped is Stopped.INFEASIBLE
    assert result.values is None
