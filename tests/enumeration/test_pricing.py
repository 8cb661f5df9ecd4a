"""Priced columns equal those that itertools and the naive losses give."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymip import Bottleneck, Budget, InputError, Problem, UnsupportedObjective, census
from anonymip.enumeration import enumerate_sets
from anonymip.enumeration.pricing import CutDuals, PricedColumns, Pricing
from tests import brute_force
from tests.hard_losses import FALLING, PRODUCT
from tests.random_problems import Case, cases, ruled_cases

#: Types of the members of a column, ascending.
Key = tuple[int, ...]

MONOTONE = ("gcp", "set-gcp", "liang-gcp", "weighted", "curved", "hierarchy", "leaf")
DUALS = st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0, 2.0]), min_size=7, max_size=7)
WEIGHTS = st.sampled_from(["size", "one"])
#: Rank-1 cuts: records whose types they hold, divisor, dual.
CUTS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 6), min_size=1, max_size=5),
        st.integers(1, 4),
        st.sampled_from([0.0, 0.125, 0.75, 3.0]),
    ),
    max_size=4,
)


@dataclass(frozen=True)
class Drawn:
    """A pricing problem, and what its columns cost by definition.

    Parameters
    ----------
    pricing
        Of the package.
    duals, cuts
        Of its row types.
    costs, reduced
        Of all columns, by brute force.
    """

    pricing: Pricing
    duals: NDArray[np.float64]
    cuts: CutDuals
    costs: dict[Key, float]
    reduced: dict[Key, float]

    @property
    def slack(self) -> float:
        """How far two computations of a reduced cost may differ."""
        return 1e-8 * max(1.0, *(abs(cost) for cost in self.costs.values()), 1.0)

    def root(self, key: Key) -> int:
        """Return the type of the highest dual, the first one among equals."""
        return min(key, key=lambda row: (-self.duals[row], row))


@st.composite
def pricings(draw: st.DrawFn, of: st.SearchStrategy[Case]) -> Drawn:
    """Draw a case of a sum, duals, cuts and what weighs, with the columns of k to five records."""
    case = replace(draw(of), worst=False)
    duals, cuts, weight = draw(DUALS), draw(CUTS), draw(WEIGHTS)
    problem = case.problem()
    assume(problem.compiled.monotone)
    largest = max(case.k, min(case.n, 5))
    pricing = Pricing(problem, smallest=case.k, largest=largest, weight=weight)
    inverse = pricing.types.inverse
    row_duals = np.array(duals[: len(pricing.types.first)])
    held = [sorted({int(inverse[record % case.n]) for record in cut[0]}) for cut in cuts]
    cut_duals = CutDuals(
        np.cumsum([0, *map(len, held)]),
        np.array([row for rows in held for row in rows], np.int64),
        np.array([cut[1] for cut in cuts], np.int64),
        np.array([cut[2] for cut in cuts], np.float64),
    )
    costs: dict[Key, float] = {}
    reduced: dict[Key, float] = {}
    for size in range(case.k, largest + 1):
        for records in combinations(range(case.n), size):
            if case.rules is not None and not case.rules.met_by(case.columns, records):
                continue
            loss = brute_force.record_loss(case.columns, case.loss.naive, records)
            key = tuple(sorted(int(inverse[record]) for record in records))
            costs[key] = loss * (size if weight == "size" else 1)
            reduced[key] = costs[key] - sum(row_duals[row] for row in key)
            for rows, (_, divisor, dual) in zip(held, cuts, strict=True):
                reduced[key] += dual * (sum(row in rows for row in key) // divisor)
    return Drawn(pricing, row_duals, cut_duals, costs, reduced)


def keys(found: PricedColumns) -> list[Key]:
    """Return the columns found."""
    ends = found.starts[1:-1]
    return [tuple(part.tolist()) for part in np.split(found.types, ends)] if len(found) else []


def assert_priced(found: PricedColumns, drawn: Drawn) -> dict[Key, float]:
    """Return the reduced costs found, after comparing them and the costs."""
    assert len(set(keys(found))) == len(found)
    for key, cost, reduced in zip(keys(found), found.costs, found.reduced, strict=True):
        assert list(key) == sorted(key)
        assert cost == pytest.approx(drawn.costs[key], rel=1e-9, abs=drawn.slack)
        assert reduced == pytest.approx(drawn.reduced[key], rel=1e-9, abs=drawn.slack)
    return dict(zip(keys(found), found.reduced.tolist(), strict=True))


def check_all_below(drawn: Drawn, threshold: float) -> None:
    """Compare all columns below a threshold, leaving open what rounding decides."""
    found = drawn.pricing.all_below(drawn.duals, threshold, drawn.cuts, max_columns=10**6)
    assert found.complete
    priced = assert_priced(found, drawn)
    assert all(reduced < threshold for reduced in priced.values())
    missing = set(drawn.reduced) - set(priced)
    assert all(drawn.reduced[key] > threshold - drawn.slack for key in missing)


def is_dominated(drawn: Drawn, key: Key) -> bool:
    """Return whether a row, other than the root, may go because its dual is too low."""
    pricing = drawn.pricing
    if len(key) == pricing.smallest or pricing.weight == "one" or pricing.problem.diversity:
        return False
    others = list(key)
    others.remove(drawn.root(key))
    loss = drawn.costs[key] / len(key)
    return bool(min(drawn.duals[row] for row in others) <= loss + drawn.slack)


def check_best(drawn: Drawn, below: float, per_root: int, max_nodes: int | None) -> None:
    """Compare the best columns of each root and size, and what is proven of each root."""
    found = drawn.pricing.best(
        drawn.duals, drawn.cuts, below=below, per_root=per_root, max_nodes=max_nodes
    )
    priced = assert_priced(found, drawn)
    if max_nodes is None:
        assert found.complete
    for root in range(len(drawn.duals)):
        every = {key: cost for key, cost in drawn.reduced.items() if drawn.root(key) == root}
        least = min([below, *every.values()])
        assert found.least[root] <= least + drawn.slack
        if max_nodes is not None:
            continue
        assert found.least[root] == pytest.approx(least, abs=drawn.slack)
        for size in range(drawn.pricing.smallest, drawn.pricing.largest + 1):
            best = sorted(cost for key, cost in priced.items() if key in every and len(key) == size)
            assert len(best) <= per_root
            wanted = sorted(
                cost
                for key, cost in every.items()
                if len(key) == size and cost < below - drawn.slack and not is_dominated(drawn, key)
            )
            assert len(best) >= min(len(wanted), per_root)
            for one, other in zip(best, wanted, strict=False):
                assert one <= other + drawn.slack
            if size == drawn.pricing.smallest:
                assert best[: len(wanted)] == pytest.approx(wanted[:per_root], abs=drawn.slack)


@settings(max_examples=60)
@given(pricings(cases(losses=MONOTONE)), st.sampled_from([-0.6, 0.1, 2.0]))
def test_all_columns_below_a_threshold(drawn: Drawn, threshold: float) -> None:
    """Ranges, sets, hierarchies, duplicates, ties and cuts: every multiset is met once."""
    check_all_below(drawn, threshold)


@settings(max_examples=60)
@given(
    pricings(cases(losses=MONOTONE)),
    st.sampled_from([-0.6, 0.1, 2.0]),
    st.integers(1, 3),
    st.sampled_from([None, None, 1, 2, 4]),
)
def test_best_columns_of_each_root_and_size(
    drawn: Drawn, below: float, per_root: int, max_nodes: int | None
) -> None:
    """The best ones are found, and no root has a column below what is proven of it."""
    check_best(drawn, below, per_root, max_nodes)


@settings(max_examples=60)
@given(pricings(ruled_cases(losses=MONOTONE)), st.sampled_from([0.1, 2.0]))
def test_columns_under_rules(drawn: Drawn, threshold: float) -> None:
    """Diversity, caps and values apart forbid columns, in both ways to search."""
    check_all_below(drawn, threshold)
    check_best(drawn, threshold, 2, None)


def test_types_and_columns_by_hand() -> None:
    """Values 1, 1, 1, 5 with duals 0.1 and 1.5, and a cut that each pair of ones pays."""
    case = Case((brute_force.Column((1, 5, 1, 1)),), 2, FALLING)
    problem = case.problem().replace(objective=Problem(census(4, 1), 2).objective)
    pricing = Pricing(problem, smallest=2, largest=3, weight="size")
    assert pricing.types.counts.tolist() == [3, 1]
    cuts = CutDuals(np.array([0, 1]), np.array([0]), np.array([2]), np.array([0.25]))
    found = pricing.all_below([0.1, 1.5], math.inf, cuts, max_columns=10)
    priced = dict(zip(keys(found), found.reduced.tolist(), strict=True))
    assert priced == pytest.approx({(0, 0): 0.05, (0, 1): 0.4, (0, 0, 0): -0.05, (0, 0, 1): 1.55})
    best = pricing.best([0.1, 1.5], cuts, below=1.0)
    assert sorted(keys(best)) == [(0, 0), (0, 0, 0), (0, 1)]
    assert best.least == pytest.approx([-0.05, 0.4])
    assert found.sizes.tolist() == [len(key) for key in keys(found)]


def some_pricing(n: int = 60, largest: int = 5) -> tuple[Pricing, NDArray[np.float64]]:
    """Return a larger pricing and duals under which some hundred columns are below 0."""
    problem = Problem(census(n, 4, seed=3), 3)
    pricing = Pricing(problem, smallest=3, largest=largest, weight="size")
    rng = np.random.default_rng(3)
    return pricing, rng.uniform(0.2, 0.7, len(pricing.types.first))


def test_search_in_parts_misses_nothing() -> None:
    """Thousands of columns outgrow the first room and the first call; none is lost by it."""
    pricing, duals = some_pricing()
    found = pricing.all_below(duals, 0.1, max_columns=10**6)
    sets = enumerate_sets(pricing.problem, duals[pricing.types.inverse], 0.1, max_size=5)
    assert found.complete
    assert len(found) == len(sets) > 1_000
    assert found.nodes > 1_000
    assert np.sort(found.reduced) == pytest.approx(np.sort(sets.reduced_costs), abs=1e-9)


def test_deep_columns() -> None:
    """Where columns are large, the lists of what may join outgrow their first room."""
    pricing, _ = some_pricing(30, 25)
    duals = np.full(len(pricing.types.first), 3.0)
    found = pricing.best(duals, below=math.inf, max_nodes=50)
    sizes = found.sizes
    assert sizes.max() == 25
    worst = pricing.all_below(duals, math.inf, max_columns=20, max_nodes=10**6)
    assert len(worst) == 20
    assert not worst.complete


def test_caps_and_stops_are_said() -> None:
    """What is cut short is not complete, and proves nothing of the roots not searched."""
    pricing, duals = some_pricing()
    assert not pricing.all_below(duals, 0.1, max_columns=100).complete
    assert not pricing.all_below(duals, 0.1, max_columns=10**6, max_nodes=10).complete
    capped = pricing.best(duals, max_nodes=1)
    whole = pricing.best(duals)
    assert whole.complete
    assert not capped.complete
    assert (capped.least <= whole.least + 1e-12).all()
    assert np.isfinite(capped.least).all()
    budget = Budget()
    budget.interrupt()
    stopped = pricing.best(duals, budget=budget)
    assert not stopped.complete
    assert (stopped.least == -math.inf).all()


def test_refused_are_losses_that_do_not_prune() -> None:
    """Losses without tables, falling ones, and the largest loss of a record are refused."""
    columns = (brute_force.Column((1, 2, 3, 4)), brute_force.Column((1, 2, 3, 9)))
    for loss, reason in ((FALLING, "monotone"), (PRODUCT, "tables")):
        with pytest.raises(UnsupportedObjective, match=reason):
            Pricing(Case(columns, 2, loss).problem(), smallest=2, largest=3, weight="size")
    problem = Problem(census(6, 2), 2)
    worst = problem.replace(objective=Bottleneck(problem.objective))
    with pytest.raises(UnsupportedObjective, match="sum"):
        Pricing(worst, smallest=2, largest=3, weight="size")
    with pytest.raises(InputError, match="weight"):
        Pricing(problem, smallest=2, largest=3, weight="both")
    with pytest.raises(InputError, match="columns of 1"):
        Pricing(problem, smallest=1, largest=3, weight="one")
    pricing = Pricing(problem, smallest=2, largest=3, weight="one")
    with pytest.raises(InputError, match="duals"):
        pricing.best([1.0])
    wrong = CutDuals(np.array([0, 1]), np.array([0]), np.array([2]), np.array([-0.25]))
    with pytest.raises(InputError, match="cuts"):
        pricing.best(np.zeros(len(pricing.types.first)), wrong)
