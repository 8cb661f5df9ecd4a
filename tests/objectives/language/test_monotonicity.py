"""Tests of proofs that a loss never falls: against all nested cells of a small table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import anonymip
from anonymip import Attribute, Hierarchy, Microdata, Problem, lower_bound, objective, solve
from anonymip.errors import UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.objectives.language.monotonicity import never_falls
from anonymip.objectives.language.record import cells_of_sets
from anonymip.objectives.language.tracing import as_expression, call_record_loss, trace

LAND = Hierarchy.from_groups({"Europe": {"North": ["SE", "NO"], "South": ["IT"]}, "Asia": ["JP"]})
DATA = Microdata(
    pd.DataFrame(
        {
            "age": [-2, 1, 1, 2, 5],
            "job": ["a", "b", "a", "c", "b"],
            "land": ["SE", "IT", "JP", "NO", "SE"],
        }
    ),
    (
        Attribute("age", integer=True),
        Attribute("job", "categorical"),
        Attribute("land", "hierarchical", hierarchy=LAND),
    ),
)
DOMAINS = Domains.of(DATA)
SETS = [
    np.array([rows]) for rows in chain.from_iterable(combinations(range(5), s) for s in range(1, 6))
]

UNARY = (np.sqrt, np.exp, np.log1p, np.square, np.abs, np.floor, np.sign, np.negative, np.tanh)
BINARY = (
    np.multiply,
    np.add,
    np.subtract,
    np.maximum,
    np.minimum,
    np.true_divide,
    np.greater,
    np.less_equal,
    np.not_equal,
    np.equal,
    np.power,
)
LEAVES: tuple[Callable[[Any], Any], ...] = (
    lambda r: r.width["age"],
    lambda r: r.lower["age"],
    lambda r: r.upper["age"],
    lambda r: r.spread["job"],
    lambda r: r.distinct["job"],
    lambda r: r.level["land"],
    lambda r: r.spread["land"],
)

Node = Any


def nodes() -> st.SearchStrategy[Node]:
    """Draw losses as nested tuples."""
    numbers = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])
    ends = st.one_of(st.integers(0, len(LEAVES) - 1), st.integers(0, len(LEAVES) - 1), numbers)
    return st.recursive(
        ends,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(UNARY), inner),
            st.tuples(st.sampled_from(BINARY), inner, inner),
            st.tuples(
                st.just(np.where), inner.filter(lambda one: isinstance(one, tuple)), inner, inner
            ),
        ),
        max_leaves=6,
    )


def value(node: Node, record: Any) -> Any:
    """Return the loss of a record."""
    if isinstance(node, int):
        return LEAVES[node](record)
    if isinstance(node, float):
        return node
    function, *arguments = node
    return function(*(value(one, record) for one in arguments))


@settings(max_examples=300)
@given(nodes())
@example((np.multiply, 0, (np.subtract, 0, 0.5)))
@example((np.multiply, (np.multiply, 0, 3), 5))
@example((np.where, (np.greater, 3, 0.5), 0, 3))
@example((np.power, 0, 3.0))
@example((np.true_divide, 0, (np.subtract, 2.0, 3)))
@example((np.equal, 5, 0.0))
@example((np.maximum, (np.multiply, 0, 5), (np.square, 1)))
def test_what_is_proven_holds_for_all_nested_cells(node: Node) -> None:
    """No larger set of records loses less than a smaller one under a loss proven monotone."""

    @objective
    def drawn(record: Any) -> Any:
        with np.errstate(all="ignore"):
            return value(node, record)

    try:
        expression = as_expression(drawn, trace(drawn, DOMAINS))
        losses = [
            float(call_record_loss(drawn, DOMAINS, cells_of_sets(DATA, rows))[0]) for rows in SETS
        ]
    except (UnsupportedObjective, OverflowError, ZeroDivisionError):
        return
    if not never_falls(expression, DOMAINS):
        return
    sets = [set(rows[0].tolist()) for rows in SETS]
    for small, least in zip(sets, losses, strict=True):
        for large, most in zip(sets, losses, strict=True):
            assert not small <= large or most >= least - 1e-9 * max(1.0, abs(least))


PROVEN: dict[str, Callable[[Any], Any]] = {
    "product": lambda r: r.spread["age"] * r.spread["job"] * r.distinct["land"],
    "maximum": lambda r: np.maximum(r.spread["age"], 2 * r.spread["job"]),
    "minimum": lambda r: np.minimum(r.spread["age"], r.level["land"]) + 0.1 * r.spread["job"],
    "power": lambda r: (r.spread["age"] + r.spread["job"]) ** 1.5,
    "scaled product": lambda r: 3 * (0.5 + r.spread["age"]) * (1 + r.spread["land"]) - 7,
    "both shrink": lambda r: -(1.0 - r.spread["age"]) * (1.0 - r.spread["job"]),
    "exponential": lambda r: 2.0 ** (r.spread["age"] + r.spread["job"]),
    "quotient": lambda r: r.spread["age"] / (2.0 - r.spread["job"]),
    "any star": lambda r: np.where((r.spread["age"] > 0) | (r.spread["job"] > 0), 1.0, 0.0),
}
UNPROVEN: dict[str, Callable[[Any], Any]] = {
    "factor of both signs": lambda r: r.lower["age"] * r.spread["job"],
    "difference": lambda r: np.maximum(r.spread["age"] - r.spread["job"], 0.0),
    "square of both signs": lambda r: (
        (r.spread["age"] - 0.5) ** 2 + r.spread["job"] ** 2 * r.width["age"]
    ),
    "quotient that falls": lambda r: r.spread["age"] / (1.0 + r.spread["job"]),
    "reward for stars": lambda r: np.where(r.spread["age"] > 0.5, 0.0, 1.0) * r.spread["job"],
}


@pytest.mark.parametrize("name", PROVEN)
def test_products_and_largest_terms_are_proven_monotone(name: str) -> None:
    """Losses of several attributes need no declaration, and have a bound below the optimum."""
    charged = objective(PROVEN[name])
    problem = Problem(DATA, k=2, objective=charged)
    assert problem.compiled.tier == "general"
    assert problem.compiled.monotone
    assert problem.compiled.assumed == ()
    declared = Problem(DATA, k=2, objective=objective(monotone=True)(PROVEN[name]))
    assert declared.compiled.assumed == ()
    bound, best = lower_bound(problem), solve(problem)
    assert best.is_optimal
    assert bound is not None
    assert bound.value <= best.objective + 1e-9


@pytest.mark.parametrize("name", UNPROVEN)
def test_nothing_is_proven_of_losses_that_may_fall(name: str) -> None:
    """Signs that are not known prove nothing: no bound, unless the loss is declared."""
    problem = Problem(DATA, k=2, objective=objective(UNPROVEN[name]))
    assert not problem.compiled.monotone
    assert anonymip.lower_bound(problem) is None


def test_a_function_that_traces_otherwise_than_it_is_called_proves_nothing() -> None:
    """The proof is of what was traced: it counts only if the function says the same."""

    @objective
    def two_faced(record: Any) -> Any:
        spread = record.spread["age"]
        traced = not isinstance(spread, np.ndarray)
        return (spread if traced else 1.0 - spread) * record.spread["job"]

    assert not Problem(DATA, k=2, objective=two_faced).compiled.monotone
