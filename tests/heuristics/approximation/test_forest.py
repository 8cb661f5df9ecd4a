"""The forest of neighbours: factor, bound, sizes of parts, and what is claimed when."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Attribute,
    Bottleneck,
    Budget,
    EquivalenceClasses,
    HierarchyLoss,
    Microdata,
    Problem,
    Stopped,
    census,
    objective,
)
from anonymip.heuristics.approximation.forest import cut_trees, forest, grow_forest, largest_part
from anonymip.heuristics.approximation.guarantees import cell_costs, factor_obstacle, is_binary
from anonymip.heuristics.approximation.nearest_rows import nearest_rows
from tests.by_hand import table_of
from tests.hard_losses import FALLING, PRODUCT
from tests.random_problems import Case, cases, groups_of, ruled_cases, tables


def table(rows: np.ndarray) -> Microdata:
    """Return categorical microdata."""
    frame = pd.DataFrame(rows.astype(str), columns=[f"a{at}" for at in range(rows.shape[1])])
    return Microdata(frame, tuple(Attribute(name, "categorical") for name in frame))


def checked(case: Case) -> None:
    """Check feasibility, loss, bound and factor of the answer to a case."""
    problem, best = case.problem(), case.optimum()
    solution = forest(problem)
    groups = groups_of(solution.assignment)
    assert all(len(group) >= case.k for group in groups)
    assert solution.objective == pytest.approx(case.release_loss(groups), rel=1e-9, abs=1e-9)
    assert solution.objective >= best - case.slack(best)
    if solution.bound is not None:
        assert solution.bound.value <= best + 1e-12
    factor = largest_part(case.k)
    if "no factor" in solution.trace[0]:
        assert factor_obstacle(problem) is not None
    else:
        assert f"at most {factor} times" in solution.trace[0]
        assert solution.bound is not None
        assert solution.objective <= factor * solution.bound.value * (1 + 1e-8) + 1e-9
        assert not case.suppression or len(groups) <= case.n // case.k


@settings(max_examples=150)
@given(cases())
def test_within_the_factor_of_its_own_bound(case: Case) -> None:
    """The bound is below the optimum, and the loss within the factor of the bound."""
    checked(case)


@settings(max_examples=80)
@given(cases(losses=["gcp", "hierarchy", "leaf", "weighted"], smallest=7, largest=9))
def test_the_known_losses_always_have_the_factor(case: Case) -> None:
    """Hierarchies, weights, ranges, sets, suppression: none falls out of the guarantee."""
    assert factor_obstacle(case.problem()) is None
    checked(case)


@pytest.mark.parametrize(
    ("most", "price", "claimed"),
    [(4, 0.01, False), (4, 0.99, False), (4, 1.0, True), (0, 0.01, True), (None, 0.01, True)],
)
def test_a_limit_of_cheap_suppression_has_no_factor(
    most: int | None, price: float, *, claimed: bool
) -> None:
    """Of 20 zeros and 4 ones the ones are best suppressed; classes of them may lose far more.

    The factor holds where no price is below what all lose alike, or any number may be suppressed.
    """
    data = table_of({"a": [0] * 20 + [1] * 4})
    recoding = EquivalenceClasses(True, most_suppressed=most, suppression_price=price)
    problem = Problem(data, 5, recoding)
    solution = forest(problem)
    best = 4 * price if most is None or most >= 4 else 5.0
    assert solution.bound is not None
    assert solution.bound.value <= best
    if claimed:
        assert solution.objective <= largest_part(5) * best * (1 + 1e-8)
        assert solution.trace[0].startswith("loss at most 10 times the optimum")
    else:
        told = "no factor is claimed: only so many records may be suppressed"
        assert solution.trace[0] == told


@pytest.mark.parametrize("most", [None, 1])
def test_suppression_that_is_rewarded_has_no_factor(most: int | None) -> None:
    """Ten times a loss below 0 is no upper bound; the lower bound is not raised by its rounding."""

    def rewarded(record: Any) -> Any:
        return record.spread["a"] - 2.0 * record.suppressed["a"]

    data = table_of({"a": [0.0, 0.0, 1.0, 1.0]})
    recoding = EquivalenceClasses(True, most_suppressed=most)
    problem = Problem(data, 2, recoding, objective(rewarded))
    solution = forest(problem)
    assert solution.trace[0] == "no factor is claimed: a suppressed record has a negative loss"
    assert solution.bound is not None
    assert solution.bound.value <= 4 * problem.compiled.suppression_price


@settings(max_examples=40)
@given(ruled_cases())
def test_rules_are_kept_and_no_factor_claimed(case: Case) -> None:
    """Repaired classes keep the rules; the bound stays true."""
    if not np.isfinite(case.optimum()):
        return
    problem = case.problem()
    solution = forest(problem)
    assert "no factor" in solution.trace[0]
    best = case.optimum()
    assert solution.objective >= best - case.slack(best)
    assert solution.bound is None or solution.bound.value <= best + 1e-9


@settings(max_examples=20)
@given(tables(), st.sampled_from([FALLING, PRODUCT]))
def test_other_losses_are_taken_without_a_claim(columns: tuple, loss: object) -> None:
    """Losses that may fall, or have no tables, are anonymized without factor and bound."""
    case = Case(columns, 2, loss)  # type: ignore[arg-type]
    solution = forest(case.problem())
    assert solution.bound is None
    assert "no factor" in solution.trace[0]
    assert solution.objective >= case.optimum() - 1e-9


def test_curved_losses_are_checked() -> None:
    """Squares of widths are refused the factor: two halves cost half of the whole."""
    columns = (np.arange(4.0),)
    frame = pd.DataFrame({"a": columns[0]})

    @objective
    def square(record):  # type: ignore[no-untyped-def]
        return record.width["a"] ** 2

    @objective
    def root(record):  # type: ignore[no-untyped-def]
        return np.sqrt(record.width["a"])

    data = Microdata(frame, (Attribute("a"),))
    assert "overlapping" in str(factor_obstacle(Problem(data, 2, objective=square)))
    assert factor_obstacle(Problem(data, 2, objective=root)) is None
    assert "largest" in str(factor_obstacle(Problem(data, 2, objective=Bottleneck(GCP()))))


@settings(max_examples=100)
@given(st.data(), st.integers(2, 6))
def test_parts_of_random_trees(data: st.DataObject, k: int) -> None:
    """Any tree of k rows or more is cut into parts of k to max{2k - 1, 3k - 5}."""
    n = data.draw(st.integers(k, 60))
    parent = np.array([-1, *(data.draw(st.integers(0, row - 1)) for row in range(1, n))])
    weight = np.array([0.0, *(data.draw(st.integers(1, 5)) for _ in range(1, n))], np.float64)
    check_parts(parent, weight, k)


@pytest.mark.parametrize("k", [3, 4, 5, 7])
def test_parts_of_stars_of_branches(k: int) -> None:
    """Branches of all sizes below k around one centre, the hard case, in many mixtures."""
    rng = np.random.default_rng(k)
    for _ in range(200):
        sizes = rng.integers(1, k, rng.integers(3, 9))
        if 1 + sizes.sum() < k:
            continue
        check_parts(*star(sizes), k)


def star(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return parents and weights of paths of the given sizes around row 0."""
    parent = [-1]
    for size in sizes:
        parent += [0, *range(len(parent), len(parent) + size - 1)]
    return np.array(parent), np.concatenate([[0.0], np.ones(len(parent) - 1)])


def test_the_counterexample_to_the_published_decomposition() -> None:
    """For k = 4 and branches of 3, 3, 3 and 2 rows no part has more than 7 rows."""
    parent, weight = star(np.array([3, 3, 3, 2]))
    sizes = check_parts(parent, weight, 4)
    assert sorted(sizes.tolist()) == [6, 6]


def check_parts(parent: np.ndarray, weight: np.ndarray, k: int) -> np.ndarray:
    """Check sizes, and that no edge serves two parts; return the sizes."""
    labels, stopped = cut_trees(parent.astype(np.int64), weight.copy(), k, Budget())
    assert stopped is None
    sizes = np.bincount(labels)
    assert sizes.min() >= k
    assert sizes.max() <= largest_part(k)
    # The subtree of the tree that spans a part, Steiner vertices included, by leaf pruning.
    used = np.zeros(len(parent), np.int64)
    for part in range(len(sizes)):
        inside = (labels == part).astype(np.int64)
        below = inside.copy()
        for row in order_from_leaves(parent):
            if parent[row] >= 0:
                below[parent[row]] += below[row]
        used += (below > 0) & (below < sizes[part]) & (parent >= 0)
    assert used.max() <= 1
    return sizes


def order_from_leaves(parent: np.ndarray) -> list[int]:
    """Return the rows, deepest first."""
    depth = np.zeros(len(parent), np.int64)
    for row in range(len(parent)):
        above = parent[row]
        while above >= 0:
            depth[row] += 1
            above = parent[above]
    return np.argsort(-depth, kind="stable").tolist()


@pytest.mark.parametrize("objective", [GCP(), HierarchyLoss()])
@pytest.mark.parametrize("k", [2, 5])
def test_nearest_rows_are_those_of_all_pairs(objective: GCP | HierarchyLoss, k: int) -> None:
    """Tree and scan find what a matrix of all pairs shows; the forest has k rows a tree."""
    problem = Problem(census(150, 4, seed=2, mixed=True), k, objective=objective)
    near, stopped = nearest_rows(problem, Budget())
    assert stopped is None
    records = near.records
    farthest = np.repeat(near.farthest, np.diff(near.start))
    for at, record in enumerate(records):
        pairs = np.stack([np.full(problem.n, record), np.arange(problem.n)], axis=1)
        losses = np.sort(problem.compiled.class_losses(pairs) / 2)
        assert farthest[at] == pytest.approx(losses[k - 1], abs=1e-9)
    parent, weight = grow_forest(near, k)
    assert (weight <= farthest + 1e-9).all()
    root = np.arange(problem.n)
    for row in range(problem.n):
        while parent[root[row]] >= 0:
            root[row] = parent[root[row]]
    assert np.unique(root, return_counts=True)[1].min() >= k


def test_prices_of_cells() -> None:
    """Suppression has one cost a cell; binary tables are known as such."""
    ternary = Problem(table(np.array([[0, 1], [1, 0], [2, 0]])), 2, objective=HierarchyLoss())
    assert cell_costs(ternary) is not None
    assert not is_binary(ternary)
    assert cell_costs(ternary.replace(objective=GCP())) is None
    binary = Problem(table(np.array([[0, 1], [1, 0], [1, 0]])), 2)
    assert cell_costs(binary) is not None
    assert is_binary(binary)


@pytest.mark.parametrize("suppression", [False, True])
def test_spent_budget(suppression: bool) -> None:
    """A deadline in the past ends the work with a release and without a claim."""
    recoding = EquivalenceClasses(suppression=suppression)
    problem = Problem(census(120, 5, seed=3), 4, recoding)
    solution = forest(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert solution.status.stopped is Stopped.TIME
    assert solution.bound is None
    assert "stopped early" in solution.trace[0]
