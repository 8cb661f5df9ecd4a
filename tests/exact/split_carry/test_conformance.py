"""Chains and local search on every kind of problem: rules kept, never below the optimum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import AnonymipError, Classes, InputError, NoSolution, Solution
from anonymip.exact.split_carry.split_carry import split_carry
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.objectives import SSE
from tests.brute_force import Column, Rules
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.random_problems import LOSSES, Case, Loss, cases, groups_of, ruled_cases

Method = Callable[..., Solution]

METHODS: dict[str, tuple[Method, dict[str, Any]]] = {
    "chain": (split_carry, {"S": 2}),
    "chain, wide boundary": (split_carry, {"S": 2, "boundary": 6}),
    "chain, least carried": (split_carry, {"S": 2, "carry": "least"}),
    "two chains": (split_carry, {"S": 2, "chains": 2, "jobs": 1}),
    "chain by sets": (split_carry, {"S": 2, "subsolver": "set-partition"}),
    "local search": (local_search, {}),
    "local search, from a cut": (local_search, {"from_method": "ordered-cut"}),
}
#: Those that start no solver, and are quick.
FAST = [name for name in METHODS if name != "chain by sets"]


def assert_conforms(case: Case, name: str) -> None:
    """Assert a release that brute force allows and charges alike, none better than the best."""
    best = case.optimum()
    method, options = METHODS[name]
    try:
        solution = method(case.problem(), **options)
    except NoSolution:
        # Only rules can leave a method without a release.
        assert case.rules is not None
        return
    assert isinstance(solution.assignment, Classes)
    groups = groups_of(solution.assignment)
    assert all(len(group) >= case.k for group in groups)
    if case.rules is not None:
        assert all(case.rules.met_by(case.columns, group) for group in groups)
    assert case.suppression or sum(map(len, groups)) == case.n
    assert solution.objective == pytest.approx(case.release_loss(groups), rel=1e-9, abs=1e-9)
    assert solution.objective >= best - case.slack(best)
    if solution.bound is not None:
        assert solution.bound.value <= best + 1e-6 * max(1.0, abs(best))
    if solution.is_optimal:
        assert solution.objective == pytest.approx(best, rel=1e-5, abs=1e-6)


@pytest.mark.thorough("local search")
@pytest.mark.parametrize("name", FAST)
@settings(max_examples=40)
@given(case=cases())
def test_random_tables(name: str, case: Case) -> None:
    """All kinds of attributes, weights, hierarchies, suppression; k to n, n = 2k - 1."""
    assert_conforms(case, name)


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=40)
@given(case=ruled_cases())
def test_random_rules(name: str, case: Case) -> None:
    """Diversity, caps, values apart, the largest loss."""
    assert_conforms(case, name)


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=15)
@given(
    case=cases(5, 7, attributes=2, suppression=False),
    loss=st.sampled_from([PRODUCT, FALLING, SWINGING]),
)
def test_losses_that_are_hard(name: str, case: Case, loss: Loss) -> None:
    """Losses without tables, and those that fall where cells grow: solved, or refused clearly."""
    try:
        assert_conforms(replace(case, loss=loss), name)
    except InputError as refusal:
        if not refusal.remedy:
            raise


@pytest.mark.crossed
@pytest.mark.parametrize("name", ["chain", "two chains", "local search"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_objective(name: str, loss: str) -> None:
    """A number, a category and a hierarchy, with weights; just over k S records."""
    assert_conforms(table(9, loss), name)


@pytest.mark.crossed
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (3, 3), (5, 3), (7, 3), (8, 3), (9, 4)])
def test_sizes_on_the_edge(name: str, n: int, k: int) -> None:
    """One class, n = 2k - 1, and one or two records more than a window reads."""
    assert_conforms(replace(table(n, "weighted"), k=k), name)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("suppression", [False, True])
def test_constant_columns(name: str, suppression: bool) -> None:
    """Nothing to lose: proven or not, the loss is 0."""
    case = Case((Column((5,) * 9), Column((2.5,) * 9)), 2, LOSSES["gcp"], suppression)
    method, options = METHODS[name]
    assert method(case.problem(), **options).objective == 0.0


@pytest.mark.crossed
@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("rules", ["cap", "apart", "diverse", "all"])
def test_rules_across_windows(name: str, rules: str, worst: bool) -> None:
    """Rules that some window alone cannot keep."""
    given = {
        "cap": Rules(caps=((0, 9.0),)),
        "apart": Rules(apart=((1, "p", "r"),)),
        "diverse": Rules(sensitive=(tuple("xxxxyyyyx"),), distinct=2),
        "all": Rules(sensitive=(tuple("xyxyxyxyy"),), distinct=2, caps=((0, 18.0),)),
    }[rules]
    case = replace(table(9, "gcp"), rules=given, worst=worst)
    if case.optimum() < math.inf:
        assert_conforms(case, name)
    else:
        with pytest.raises(AnonymipError):
            METHODS[name][0](case.problem(), **METHODS[name][1])


@pytest.mark.parametrize("name", METHODS)
def test_every_record_alone(name: str) -> None:
    """Values so far apart that suppression beats classes, and stars are few."""
    case = Case((Column((0, 0, 0, 50, 100, 100, 100, 7)),), 3, LOSSES["gcp"], True)
    assert_conforms(case, name)


@pytest.mark.parametrize("name", FAST)
def test_squared_errors(name: str) -> None:
    """A loss that looks at members: a release, or a clear refusal."""
    problem = replace(table(9, "gcp"), columns=(Column((1, 2, 9, 4, 30, 31, 8, 7, 2)),)).problem()
    method, options = METHODS[name]
    try:
        solution = method(problem.replace(objective=SSE()), **options)
    except InputError as refusal:
        if not refusal.remedy:
            raise
        return
    assert solution.objective >= 0
    assert solution.assignment.sizes.min() >= 2


def table(n: int, loss: str) -> Case:
    """Return a number, a category and a hierarchy of n records, k = 2."""
    paths = (("p", "pq", "*"), ("q", "pq", "*"), ("r", "rs", "*"), ("s", "rs", "*"))
    numbers = tuple((11 * at * at) % 23 for at in range(n))
    texts = tuple("pqr"[(at * at // 2) % 3] for at in range(n))
    leaves = tuple("pqrs"[(at * at + at // 2) % 4] for at in range(n))
    columns = (
        Column(numbers, integer=True, weight=2.0),
        Column(texts, False, as_set=True, weight=0.5),
        Column(leaves, False, as_set=True, paths=paths),
    )
    return Case(columns, 2, LOSSES[loss])
