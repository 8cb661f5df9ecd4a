"""The carry rule: what is fixed, what is carried over, written a second time without kernels."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import SSE, Classes, Problem
from anonymip.exact.split_carry.carrying import CarryRule, carry_rule, divide_window, new_outcome
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.state import OPEN
from tests.brute_force import Column, Rules
from tests.random_problems import LOSSES, Case, tables


def fixed_classes(
    rule: CarryRule,
    labels: Sequence[int],
    *,
    losses: Sequence[float] | None = None,
    last: bool = False,
    places: Sequence[int] | None = None,
) -> list[int]:
    """Return the class that each row is fixed in; -2 for rows carried over."""
    size = len(labels)
    outcome = new_outcome(rule, size)
    if losses is not None:
        outcome.losses[:] = losses
    divide_window(
        rule,
        np.arange(size) if places is None else np.array(places),
        size,
        np.array(labels, np.int64),
        last,
        outcome,
    )
    return [int(label) for label in outcome.fixed]


def rule_of(problem: Problem, **choices: Any) -> CarryRule:
    """Return the rule for the records of a problem in their order."""
    return carry_rule(problem, np.arange(problem.n), ChainOptions())._replace(**choices)


def numbers(values: Sequence[int], k: int, **choices: Any) -> CarryRule:
    """Return the rule for rows of one number each."""
    case = Case((Column(tuple(values), integer=True),), k, LOSSES["gcp"])
    return rule_of(case.problem(), **choices)


def test_a_class_off_the_boundary_stays() -> None:
    """Only what touches the last rows is carried over, and whole."""
    rule = numbers(range(9), 3, boundary=3)
    assert fixed_classes(rule, [0, 0, 0, 1, 1, 1, 2, 2, 2]) == [0, 0, 0, 1, 1, 1, -2, -2, -2]
    assert fixed_classes(rule, [0, 0, 0, 1, 1, 2, 1, 2, 2]) == [0, 0, 0, -2, -2, -2, -2, -2, -2]


def test_nothing_goes_on_from_the_last_window() -> None:
    """The last window fixes all."""
    rule = numbers(range(6), 3, boundary=3)
    assert fixed_classes(rule, [0, 0, 0, 1, 1, 1], last=True) == [0, 0, 0, 1, 1, 1]


def test_of_2k_rows_or_more_exactly_k_go() -> None:
    """The rows nearest the end go, the rest is a class."""
    rule = numbers(range(8), 3, boundary=1)
    assert fixed_classes(rule, [0] * 6 + [0, 0]) == [0] * 5 + [-2] * 3
    assert fixed_classes(rule, [0] * 5 + [1, 1, 0]) == [0, 0, 0, -2, -2, 1, 1, -2]


def test_classes_of_equal_cells_are_one() -> None:
    """Two touching classes of 3 are one of 6, of which 3 go: identical rows do not pile up."""
    rule = numbers([5] * 9, 3, boundary=3)
    assert fixed_classes(rule, [0, 0, 0, 1, 1, 1, 2, 2, 2]) == [0] * 6 + [-2] * 3
    # Equal ends are equal cells, whatever lies between them.
    rule = numbers([1, 4, 2, 4, 1, 3], 3, boundary=1)
    assert fixed_classes(rule, [0, 0, 0, 1, 1, 1]) == [0, 0, 0, -2, -2, -2]


def test_equal_sets_and_equal_nodes_are_equal_cells() -> None:
    """Sets are compared by their values, nodes by themselves and not by the leaves below."""
    values = ("p", "q", "q", "p", "p", "r", "r", "q")
    as_sets = Case((Column(values, False, as_set=True),), 2, LOSSES["gcp"]).problem()
    rule = rule_of(as_sets, boundary=2)
    # {p, q}, {p, q}, {p, r}, {q, r}: the first two are one, and lie before the boundary.
    assert fixed_classes(rule, [0, 0, 1, 1, 2, 2, 3, 3]) == [0, 0, 0, 0, 1, 1, -2, -2]
    assert fixed_classes(rule._replace(boundary=6), [0, 0, 1, 1, 2, 2, 3, 3])[:4] == [0, 0, -2, -2]
    paths = (("p", "*"), ("q", "*"), ("r", "*"))
    nodes = Case((Column(values, False, paths=paths),), 2, LOSSES["hierarchy"]).problem()
    rule = rule_of(nodes, boundary=2)
    assert fixed_classes(rule, [0, 0, 1, 1, 2, 2, 3, 3]) == [0] * 6 + [-2] * 2


def test_least_carries_what_exceeds_k() -> None:
    """Section 6: of k + r rows those r go without which the class loses most."""
    rule = numbers([0, 1, 9, 2, 3], 3, boundary=1, least=True)
    # Without the 9 the class loses little: it contributes most, and stays.
    losses = [9.0, 9.0, 3.0, 9.0, 9.0]
    assert fixed_classes(rule, [0] * 5, losses=losses) == [0, 0, 0, -2, -2]
    assert fixed_classes(rule, [0] * 5, losses=[9, 8, 3, 7, 5]) == [-2, -2, 0, 0, 0]
    # One of exactly k stays.
    assert fixed_classes(numbers(range(3), 3, boundary=1, least=True), [0, 0, 0]) == [0, 0, 0]


def test_windows_of_one_size_fix_so_many_classes() -> None:
    """The oldest are those that end first; the cheapest those of least record loss."""
    labels, losses = [0, 1, 1, 0, 2, 2], [3, 2, 2, 3, 1, 1]
    oldest = numbers(range(6), 2, boundary=2, accepted=1)
    assert fixed_classes(oldest, labels) == [-2, 1, 1, -2, -2, -2]
    assert fixed_classes(oldest._replace(accepted=2), labels) == [0, 1, 1, 0, -2, -2]
    cheapest = numbers(range(6), 2, boundary=2, accepted=2, cheapest=True)
    assert fixed_classes(cheapest, labels, losses=losses) == [-2, 1, 1, -2, 2, 2]
    assert fixed_classes(oldest, labels, last=True) == labels


def test_suppressed_rows_of_the_boundary_go_on() -> None:
    """They may find company among the next records."""
    rule = numbers(range(7), 2, boundary=2)
    assert fixed_classes(rule, [-1, 0, 0, 1, 1, -1, 1]) == [-1, 0, 0, -2, -2, -2, -2]
    counted = rule._replace(accepted=1)
    assert fixed_classes(counted, [-1, 0, 0, 1, 1, -1, 1]) == [-1, 0, 0, -2, -2, -2, -2]
    assert fixed_classes(counted, [-1] * 4, places=range(4)) == [-1] * 4


def test_the_rest_of_a_class_is_diverse() -> None:
    """Where it would not be, the window's own classes at the boundary go, or all of it."""
    sensitive = (tuple("xxxyyy" + "xyxyxy"),)
    rules = Rules(sensitive, Fraction(2), 1)
    case = Case((Column((1,) * 12, integer=True),), 3, LOSSES["gcp"], rules=rules)
    rule = rule_of(case.problem(), boundary=1)
    # One class of 12: without the last 3 it has x five times of nine.
    assert fixed_classes(rule, [0] * 12) == [-2] * 12
    assert fixed_classes(rule, [0] * 6 + [1] * 6) == [0] * 6 + [-2] * 6
    # The last 6 by themselves; k of 8 of them can go where the rest stays diverse.
    assert fixed_classes(rule, [0] * 6, places=range(6, 12)) == [-2] * 6


@st.composite
def windows(draw: st.DrawFn) -> tuple[Problem, list[int], int]:
    """Draw a problem, classes of its rows of at least k, and a boundary."""
    columns = draw(tables(4, 12, 2))
    n = len(columns[0].values)
    k = draw(st.integers(2, min(3, n)))
    order = draw(st.permutations(range(n)))
    ends = sorted(draw(st.sets(st.integers(k, n - k)))) if n >= 2 * k else []
    cuts = [0]
    for end in ends:
        if end - cuts[-1] >= k:
            cuts.append(end)
    given = np.zeros(n, np.int64)
    for number, begin in enumerate(cuts):
        given[np.array(order)[begin : (*cuts, n)[number + 1]]] = number
    labels = Classes(given).labels.tolist()  # type: ignore[arg-type]
    problem = Case(columns, k, LOSSES["gcp"]).problem()
    return problem, labels, draw(st.integers(1, n))


@given(windows())
def test_the_rule_is_that_of_the_paper(window: tuple[Problem, list[int], int]) -> None:
    """Written a second time, from what is published for each row."""
    problem, labels, boundary = window
    n, k = problem.n, problem.k
    rule = rule_of(problem, boundary=boundary)
    answer = fixed_classes(rule, labels)
    joint = joint_classes(problem, labels)
    expected: list[int] = list(joint)
    for label in sorted(set(joint)):
        rows = [row for row in range(n) if joint[row] == label]
        if max(rows) >= n - boundary:
            for row in rows if len(rows) < 2 * k else rows[-k:]:
                expected[row] = OPEN
    assert answer == expected


@given(windows(), st.data())
def test_what_is_fixed_is_a_release(
    window: tuple[Problem, list[int], int], data: st.DataObject
) -> None:
    """Whatever the variant: classes of at least k rows, and never all 2k rows or more go on."""
    problem, labels, boundary = window
    n, k = problem.n, problem.k
    rule = rule_of(
        problem,
        boundary=boundary,
        least=data.draw(st.booleans()),
        accepted=data.draw(st.integers(0, 2)),
        cheapest=data.draw(st.booleans()),
    )
    losses = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n, max_size=n))
    answer = np.array(fixed_classes(rule, labels, losses=losses))
    sizes = np.bincount(answer[answer >= 0])
    assert all(size >= k for size in sizes if size)
    if rule.accepted:
        assert len(set(answer[answer >= 0].tolist())) == min(rule.accepted, len(set(labels)))
    else:
        assert np.count_nonzero(answer == OPEN) <= min(boundary, n // k) * (2 * k - 1)


def joint_classes(problem: Problem, labels: Sequence[int]) -> list[int]:
    """Return the classes numbered again, those of equal published cells as one."""
    cells = problem.recoding.describe(problem, Classes(np.array(labels)))

    def published(row: int) -> tuple[object, ...]:
        return tuple(
            cells.nodes[row, a]
            if attribute.publish == "node"
            else (cells.lower[row, a], cells.upper[row, a])
            if attribute.publish == "range"
            else tuple(cells.members.of(row, a).tolist())
            for a, attribute in enumerate(problem.microdata.attributes)
        )

    numbers_of: dict[tuple[object, ...], int] = {}
    return [numbers_of.setdefault(published(row), len(numbers_of)) for row in range(len(labels))]


@pytest.mark.parametrize("boundary", [1, 3, 6])
def test_losses_of_members_keep_equal_cells_apart(boundary: int) -> None:
    """Where a loss looks at members, joining classes of equal ends would cost."""
    case = Case((Column((1, 2, 4, 1, 3, 4), integer=True),), 3, LOSSES["gcp"])
    problem = case.problem().replace(objective=SSE())
    rule = rule_of(problem, boundary=boundary)
    first = [0] * 3 if boundary <= 3 else [-2] * 3
    assert fixed_classes(rule, [0, 0, 0, 1, 1, 1]) == [*first, -2, -2, -2]
