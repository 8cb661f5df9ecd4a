"""The engine of greedy-search and k-member: tree and scan agree, and both follow the papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import InputError, Problem, Solution
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.k_member import k_member
from anonymip.orders.arrangement import arrange
from anonymip.orders.orders import variance_order
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, gcp, record_loss
from tests.hard_losses import FALLING
from tests.random_problems import (
    Case,
    groups_of,
    larger_microdata,
    larger_problems,
    leaning,
    microdata,
)

OBJECTIVES = ["gcp", "liang-gcp", "weighted", "weighted-binary", "leaning", "curved"]


@settings(max_examples=60)
@given(larger_problems(20, 400, 12, OBJECTIVES), st.sampled_from([greedy_search, k_member]))
def test_tree_and_scan_give_the_same_labels(
    problem: Problem, heuristic: Callable[..., Solution]
) -> None:
    """Whatever ties, repeated rows and kinds of terms: the tree changes nothing but the speed."""
    tree, scan = (heuristic(problem, search=search) for search in ("tree", "scan"))
    assert tree.assignment.labels.tolist() == scan.assignment.labels.tolist()


@pytest.mark.parametrize("heuristic", [greedy_search, k_member])
def test_tree_is_rebuilt_without_changing_the_result(heuristic: Callable[..., Solution]) -> None:
    """A table large enough for many rebuilds gives the labels of the scan."""
    problem = Problem(larger_microdata(5, 3000), 3, objective=leaning)
    tree, scan, auto = (heuristic(problem, search=search) for search in ("tree", "scan", "auto"))
    assert tree.assignment.labels.tolist() == scan.assignment.labels.tolist()
    assert auto.assignment.labels.tolist() == scan.assignment.labels.tolist()


@st.composite
def exact_tables(draw: st.DrawFn) -> tuple[Column, ...]:
    """Draw tables whose losses are multiples of 1/64, so that ties are ties in any order."""
    n = draw(st.integers(4, 14))
    step = draw(st.sampled_from([1, 8, 32]))
    values = st.lists(st.integers(0, 64 // step), min_size=n, max_size=n).map(
        lambda steps: tuple(step * value for value in steps)
    )
    return tuple(
        Column(draw(values), domain=(0, 64), integer=True) for _ in range(draw(st.integers(1, 3)))
    )


@settings(max_examples=80)
@given(exact_tables(), st.integers(2, 4))
def test_greedy_search_is_algorithm_2(columns: tuple[Column, ...], k: int) -> None:
    """The classes are those of Algorithm 2 of Liang & Samavi, replayed in plain Python."""
    problem = Problem(microdata(columns), k)
    order = variance_order(problem, Budget()).tolist()
    groups = naive_greedy(columns, k, order)
    assert groups_of(greedy_search(problem).assignment) == as_partition(groups)


@settings(max_examples=80)
@given(exact_tables(), st.integers(2, 4), st.integers(0, 9))
def test_k_member_is_the_algorithm_of_byun(columns: tuple[Column, ...], k: int, seed: int) -> None:
    """Seeds lie farthest from the last record, leftovers join where the loss rises least."""
    problem = Problem(microdata(columns), k)
    arranged = arrange(problem, variance_order(problem, Budget()))
    drawn = int(np.random.default_rng(seed).integers(arranged.types))
    last = int(arranged.records[int(arranged.counts[:drawn].sum())])
    groups = naive_k_member(columns, k, arranged.records.tolist(), last)
    assert groups_of(k_member(problem, seed=seed).assignment) == as_partition(groups)


def as_partition(groups: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the groups sorted, in the order of their first records."""
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def class_loss(columns: Sequence[Column], group: Sequence[int]) -> float:
    """Return the loss of all records of a class."""
    return len(group) * record_loss(columns, gcp, group)


def grown(columns: Sequence[Column], k: int, seed: int, rest: list[int]) -> list[int]:
    """Return a class grown from a seed; its records leave `rest`."""
    rest.remove(seed)
    group = [seed]
    while len(group) < k:
        best = min(rest, key=lambda record: record_loss(columns, gcp, [*group, record]))
        rest.remove(best)
        group.append(best)
    return group


def naive_greedy(columns: Sequence[Column], k: int, order: Sequence[int]) -> list[list[int]]:
    """Return the classes of Algorithm 2."""
    rest, groups = list(order), []
    while len(rest) >= k:
        groups.append(grown(columns, k, rest[0], rest))
    for record in rest:
        losses = [class_loss(columns, [*group, record]) for group in groups]
        groups[losses.index(min(losses))].append(record)
    return groups


def naive_k_member(
    columns: Sequence[Column], k: int, order: Sequence[int], last: int
) -> list[list[int]]:
    """Return the classes of the k-member algorithm."""
    rest, groups = list(order), []
    while len(rest) >= k:
        distances = [record_loss(columns, gcp, [last, record]) for record in rest]
        groups.append(grown(columns, k, rest[distances.index(max(distances))], rest))
        last = groups[-1][-1]
    for record in rest:
        rises = [
            class_loss(columns, [*group, record]) - class_loss(columns, group) for group in groups
        ]
        groups[rises.index(min(rises))].append(record)
    return groups


@pytest.mark.parametrize("heuristic", [greedy_search, k_member])
def test_tree_refuses_objectives_that_are_not_monotone(heuristic: Callable[..., Solution]) -> None:
    """Boxes bound monotone losses only: the refusal names the attribute and the scan."""
    problem = Case((Column((1.0, 2.0, 4.0, 8.0)),), 2, FALLING).problem()
    with pytest.raises(InputError, match=r"fall in 'a'.*search='scan'"):
        heuristic(problem, search="tree")
