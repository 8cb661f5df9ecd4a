"""Enumerated sets equal those that itertools and the naive losses give."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymip import (
    SSE,
    Budget,
    Diversity,
    InputError,
    Microdata,
    Problem,
    census,
    class_objective,
    load_instance,
)
from anonymip.enumeration import ClusterSets, enumerate_sets
from anonymip.enumeration.merging import merge_rows
from anonymip.enumeration.search import Request, search_in_batches
from tests import brute_force, profiles
from tests.brute_force import Column
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.random_problems import (
    LOSSES,
    Case,
    cases,
    larger_microdata,
    microdata,
    ruled_cases,
    tables,
)

#: Type counts of a set as a key: types of the members, ascending.
Key = tuple[int, ...]


def found_sets(found: ClusterSets) -> dict[Key, tuple[float, float]]:
    """Return loss and reduced cost of each set."""
    sets = {}
    for c in range(len(found)):
        part = slice(found.offsets[c], found.offsets[c + 1])
        assert (np.diff(found.types[part]) > 0).all()
        assert (found.counts[part] >= 1).all()
        key = tuple(np.repeat(found.types[part], found.counts[part]).tolist())
        sets[key] = float(found.losses[c]), float(found.reduced_costs[c])
    assert len(sets) == len(found)  # no set twice
    return sets


def naive_sets(
    case: Case, found: ClusterSets, duals: NDArray[np.float64], largest: int
) -> dict[Key, tuple[float, float]]:
    """Return the same for all sets of k to `largest` records, by definition."""
    sets: dict[Key, tuple[float, float]] = {}
    for size in range(case.k, largest + 1):
        for records in combinations(range(case.n), size):
            if case.rules is not None and not case.rules.met_by(case.columns, records):
                continue
            loss = brute_force.record_loss(case.columns, case.loss.naive, records)
            loss *= 1 if case.worst else size
            key = tuple(sorted(found.rows.type_of[list(records)].tolist()))
            value = loss, loss - float(duals[list(records)].sum())
            if key in sets:  # merged rows are alike to losses, duals and rules
                assert sets[key] == pytest.approx(value, rel=1e-9, abs=1e-9)
            sets[key] = value
    return sets


def assert_same_sets(
    found: ClusterSets, expected: dict[Key, tuple[float, float]], threshold: float
) -> None:
    """Compare, leaving open what rounding decides at the threshold."""
    sets = found_sets(found)
    scale = 1e-8 * max(1.0, *(abs(loss) for loss, _ in expected.values()), 1.0)
    for key, (loss, reduced) in expected.items():
        if reduced < threshold - scale:
            assert sets[key] == pytest.approx((loss, reduced), rel=1e-8, abs=scale)
        elif reduced > threshold + scale:
            assert key not in sets
    assert set(sets) <= set(expected)
    assert (found.reduced_costs < threshold).all()
    assert found.complete
    assert found.reason is None


DUALS = st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0, 2.0]), min_size=7, max_size=7)
THRESHOLDS = st.sampled_from([math.inf, -0.75, 0.0, 0.3, 1.1])


def check_case(case: Case, duals: list[float], threshold: float, merge: bool) -> None:
    """Enumerate a case and compare."""
    dual_values = np.array(duals[: case.n])
    problem = case.problem()
    found = enumerate_sets(problem, dual_values, threshold, merge=merge)
    largest = problem.recoding.max_size(problem).size or case.n
    assert_same_sets(found, naive_sets(case, found, dual_values, min(largest, case.n)), threshold)


@settings(max_examples=80)
@given(cases(), DUALS, THRESHOLDS, st.booleans())
def test_sets_of_losses_with_tables(
    case: Case, duals: list[float], threshold: float, merge: bool
) -> None:
    """Ranges, sets, hierarchies, curved losses; types with multiplicities and duals."""
    check_case(case, duals, threshold, merge)


@settings(max_examples=80)
@given(ruled_cases(), DUALS, THRESHOLDS)
def test_sets_under_rules(case: Case, duals: list[float], threshold: float) -> None:
    """Diversity, caps, values apart, and the loss of the record that loses most."""
    check_case(case, duals, threshold, True)


@settings(max_examples=60)
@given(
    ruled_cases(largest=6),
    st.sampled_from([FALLING, PRODUCT, SWINGING]),
    DUALS,
    THRESHOLDS,
    st.booleans(),
)
def test_sets_of_other_losses(
    case: Case, loss: Any, duals: list[float], threshold: float, merge: bool
) -> None:
    """Losses that fall, and general losses, declared monotone or not."""
    check_case(replace(case, loss=loss), duals, threshold, merge)


@settings(max_examples=30)
@given(tables(), st.integers(2, 3), DUALS, THRESHOLDS)
def test_sets_of_general_losses_without_rules(
    columns: tuple[Column, ...], k: int, duals: list[float], threshold: float
) -> None:
    """The batches prune a loss declared monotone and lose no set by it."""
    check_case(Case(columns, k, PRODUCT), duals, threshold, True)


class _OtherErrors(SSE):
    """May look at more than the attributes, for all that anyone knows."""


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=4, max_size=7),
    DUALS,
    THRESHOLDS,
)
def test_sets_of_a_loss_of_members(
    points: list[tuple[int, int]], duals: list[float], threshold: float
) -> None:
    """Squared errors, computed here from the points; identical rows stay apart."""
    n, values = len(points), np.array(points, float)
    columns = tuple(Column(tuple(column), integer=True) for column in zip(*points, strict=True))
    problem = Problem(microdata(columns), 2, objective=_OtherErrors("none"))
    dual_values = np.array(duals[:n])
    found = enumerate_sets(problem, dual_values, threshold)
    assert found.rows.types == n
    expected = {}
    for size in (2, 3):
        for records in combinations(range(n), size):
            part = values[list(records)]
            loss = float(((part - part.mean(axis=0)) ** 2).sum())
            key = tuple(sorted(found.rows.type_of[list(records)].tolist()))
            expected[key] = loss, loss - float(dual_values[list(records)].sum())
    assert_same_sets(found, expected, threshold)


def test_losses_of_members_may_tell_identical_rows_apart() -> None:
    """A loss that looks at the row numbers keeps identical rows apart."""

    @class_objective()
    def numbers(members: Any) -> Any:
        return members.rows.sum(axis=1) * 1.0

    problem = Problem(microdata((Column((1, 1, 1)),)), 2, objective=numbers)
    assert sorted(enumerate_sets(problem).losses.tolist()) == [1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize("seed", range(12))
def test_two_searches_agree_on_larger_tables(seed: int) -> None:
    """The depth-first search finds what the objective's own function finds in batches."""
    rng = np.random.default_rng(seed)
    problem = Problem(larger_microdata(seed, 18), 3)
    everything = enumerate_sets(problem)
    duals = rng.choice([0.1, 0.2, 0.3], problem.n) * everything.losses.mean()
    # No set lies at the threshold, where rounding would decide.
    reduced = np.sort(enumerate_sets(problem, duals).reduced_costs)
    gaps = np.diff(reduced)[: len(reduced) // 2]
    widest = int(gaps.argmax())
    threshold = float(reduced[widest : widest + 2].mean())
    found = enumerate_sets(problem, duals, threshold)
    rows = merge_rows(problem, duals, merge=True)
    request = Request(5, threshold, seed % 2 == 0, 10**6)
    other = search_in_batches(problem, rows, request, Budget())
    ends = np.cumsum(other.sizes)
    expected = {
        tuple(other.members[end - size : end].tolist()): float(loss)
        for end, size, loss in zip(ends, other.sizes, other.losses, strict=True)
    }
    sets = found_sets(found)
    assert set(sets) == set(expected)
    assert len(sets) == widest + 1
    for key, loss in expected.items():
        assert sets[key][0] == pytest.approx(loss, rel=1e-9, abs=1e-9)


def test_pruning_saves_nodes_and_loses_nothing() -> None:
    """With duals and a threshold far fewer partial sets are looked at than there are sets."""
    problem = Problem(census(24, 3, seed=5), 3)
    everything = enumerate_sets(problem)
    duals = np.full(problem.n, 0.2)
    pruned = enumerate_sets(problem, duals, 0.0)
    assert everything.complete
    assert pruned.complete
    below = everything.losses - 0.2 * everything.sizes < 0.0
    assert 0 < len(pruned) == np.count_nonzero(below)
    assert pruned.nodes < len(everything) / 2


def test_deep_searches() -> None:
    """Where sets of all sizes are wanted, all are found, and come in lexicographic order."""
    n = 13 if profiles.NAME == "ci" else 16
    columns = (Column(tuple(value * value % 83 for value in range(n)), integer=True),)
    problem = Case(columns, 2, FALLING).problem()
    found = enumerate_sets(problem)
    assert len(found) == 2**n - 1 - n
    sets = list(found_sets(found))
    assert sets == sorted(sets)
    ends = np.cumsum(found.sizes)
    for c in range(0, len(found), 50):
        records = found.records[ends[c] - found.sizes[c] : ends[c]]
        loss = found.sizes[c] * brute_force.record_loss(columns, FALLING.naive, records.tolist())
        assert found.losses[c] == pytest.approx(loss, abs=1e-9)


def test_attributes_of_many_values() -> None:
    """Seventy texts do not fit one machine word."""
    values = tuple(f"v{value}" for value in range(70))
    other = tuple(value % 66 for value in range(70))
    columns = (Column(values, False, as_set=True), Column(other, as_set=True, integer=True))
    problem = Problem(microdata(columns), 2)
    found = enumerate_sets(problem, max_size=3)
    assert len(found) == math.comb(70, 2) + math.comb(70, 3)
    losses = np.empty(len(found))
    ends = np.cumsum(found.sizes)
    for size in (2, 3):
        which = np.flatnonzero(found.sizes == size)
        records = found.records[ends[which][:, None] - size + np.arange(size)]
        losses[which] = problem.compiled.class_losses(records)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-12, atol=1e-12)
    assert len(np.unique(losses)) > 3


def test_types_and_counts_by_hand() -> None:
    """Values 1, 1, 1, 5 with k = 2: the multisets 11, 111, 15, 115."""
    problem = Problem(microdata((Column((1, 5, 1, 1)),)), 2)
    found = enumerate_sets(problem)
    assert found.rows.counts.tolist() == [3, 1]
    assert found.rows.first.tolist() == [0, 1]
    assert found.rows.type_of.tolist() == [0, 1, 0, 0]
    assert found_sets(found) == {
        (0, 0): (0.0, 0.0),
        (0, 0, 0): (0.0, 0.0),
        (0, 1): (2.0, 2.0),
        (0, 0, 1): (3.0, 3.0),
    }
    assert found.incidence.toarray().sum(axis=0).tolist() == found.sizes.tolist()
    ends = np.cumsum(found.sizes)
    for c, end in enumerate(ends):
        records = found.records[end - found.sizes[c] : end]
        assert len(set(records.tolist())) == found.sizes[c]
    assert repr(found) == "<ClusterSets: 4 sets of 2 row types, complete>"


def test_sensitive_values_and_duals_split_types() -> None:
    """Identical rows with other sensitive values or duals are other types."""
    data = microdata((Column((1, 1, 1, 1)),), [("x", "x", "y", "y")])
    plain, diverse = Problem(data, 2), Problem(data, 2, diversity=Diversity(distinct=2))
    assert enumerate_sets(plain).rows.types == 1
    assert enumerate_sets(plain, [0.0, 1.0, 0.0, 1.0]).rows.types == 2
    found = enumerate_sets(diverse)
    assert found.rows.types == 2
    assert sorted(found_sets(found)) == [(0, 0, 1), (0, 0, 1, 1), (0, 1), (0, 1, 1)]


def general(data: Microdata) -> Problem:
    """Return a problem whose loss has no tables."""
    return Problem(data, 3, objective=PRODUCT.objective)


@pytest.mark.parametrize("tier", ["tables", "general"])
def test_caps_end_the_search(tier: str) -> None:
    """The sets found before a cap are sets, and the result says that there are more."""
    data = census(15, 3, seed=1)
    problem = Problem(data, 3) if tier == "tables" else general(data)
    everything = found_sets(enumerate_sets(problem))
    exact = enumerate_sets(problem, max_sets=len(everything))
    assert exact.complete
    some = enumerate_sets(problem, max_sets=100)
    assert (len(some), some.complete, some.reason) == (100, False, "max_sets")
    assert found_sets(some).items() <= everything.items()
    assert "cut short by max_sets" in repr(some)
    late = enumerate_sets(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert (len(late), late.complete, late.reason) == (0, False, "time-limit")
    budget = Budget()
    budget.interrupt()
    assert enumerate_sets(problem, budget=budget).reason == "interrupted"


def test_progress_is_reported() -> None:
    """Listeners hear the number of sets found so far."""
    heard: list[int | None] = []
    budget = Budget(progress=lambda message: heard.append(message.done))
    found = enumerate_sets(Problem(census(15, 3, seed=1), 3), budget=budget)
    assert heard[-1] == len(found)


def test_no_set_below_the_threshold() -> None:
    """An empty result is a result."""
    found = enumerate_sets(Problem(load_instance("wong-5"), 2), threshold=-1.0)
    assert len(found) == 0
    assert found.complete
    assert found.offsets.tolist() == [0]
    assert found.incidence.shape == (found.rows.types, 0)
    assert found.sizes.tolist() == found.records.tolist() == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"duals": [1.0]}, "5 finite numbers"),
        ({"duals": [math.nan] * 5}, "5 finite numbers"),
        ({"threshold": math.nan}, "threshold is NaN"),
        ({"max_size": 1}, "max_size is 1, and k is 2"),
        ({"max_sets": 0}, "max_sets is 0"),
        ({"max_sets": 0.5}, "max_sets is 0.5"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], message: str) -> None:
    """Each argument is checked, and the message names it."""
    with pytest.raises(InputError, match=message):
        enumerate_sets(Problem(load_instance("wong-5"), 2), **wrong)


def test_larger_sets_on_request() -> None:
    """Sets of 2k and more records are enumerated if asked for; never more than n."""
    problem = Problem(load_instance("wong-5"), 2)
    assert enumerate_sets(problem).sizes.max() == 3
    assert enumerate_sets(problem, max_size=9).sizes.max() == 5
    assert LOSSES["gcp"].objective.name == problem.objective.name
