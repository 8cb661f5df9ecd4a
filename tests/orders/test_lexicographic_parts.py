"""Lexicographic partitioning follows Wong Figure 8 with moves at 2k."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip.heuristics.classes.hp import hp
from anonymip.orders.lexicographic_parts import lexicographic_parts
from anonymip.orders.orders import cardinality_ranks
from tests.brute_force import Column
from tests.random_problems import LOSSES, Case, cases, groups_of, tables

Row = tuple[int, ...]


def parted(rows: Sequence[tuple[Row, int]], k: int, attribute: int) -> list[list[int]]:
    """Return the parts of sorted (row, record) pairs by plain lists, by the rules of the paper."""
    if attribute == len(rows[0][0]) or len(rows) < 2 * k:
        return [[record for _, record in rows]]
    runs = [list(run) for _, run in groupby(rows, key=lambda pair: pair[0][attribute])]
    done: list[list[tuple[Row, int]]] = []
    while runs:
        part = runs.pop(0)
        while len(part) < k:
            lacking = k - len(part)
            left = len(done[-1]) if done else 0
            right = len(runs[0]) if runs else 0
            spare_left, spare_right = left - lacking >= k, right - lacking >= k
            if spare_left and (not spare_right or left >= right):
                part = done[-1][-lacking:] + part
                del done[-1][-lacking:]
            elif spare_right:
                part = part + runs[0][:lacking]
                del runs[0][:lacking]
            elif left and (not right or left <= right):
                part = done.pop() + part
            else:
                part = part + runs.pop(0)
        done.append(part)
    found: list[list[int]] = []
    for part in done:
        if len({row[attribute] for row, _ in part}) > 1:
            found.append([record for _, record in part])
        else:
            found += parted(part, k, attribute + 1)
    return found


@settings(max_examples=200)
@given(tables(smallest=4, largest=30), st.integers(2, 5))
def test_equals_the_plain_recursion(columns: tuple[Column, ...], k: int) -> None:
    """Part by part, record by record."""
    k = min(k, len(columns[0].values))
    problem = Case(columns, k, LOSSES["gcp"]).problem()
    parts = lexicographic_parts(problem, k)
    codes = problem.microdata.codes[:, cardinality_ranks(problem)].tolist()
    rows = sorted((tuple(row), record) for record, row in enumerate(codes))
    wanted = parted(rows, k, 0)
    ends = [*parts.starts[1:].tolist(), problem.n]
    found = [parts.order[b:e].tolist() for b, e in zip(parts.starts, ends, strict=True)]
    assert found == wanted
    assert parts.sizes.tolist() == [len(part) for part in wanted]
    assert min(parts.sizes) >= k


@given(tables(smallest=6, largest=30), st.integers(2, 4))
def test_parts_of_2k_or_more_hold_equal_rows(columns: tuple[Column, ...], k: int) -> None:
    """Whatever could be parted was: large parts agree in every attribute."""
    problem = Case(columns, k, LOSSES["gcp"]).problem()
    parts = lexicographic_parts(problem, k)
    codes = problem.microdata.codes[parts.order]
    for begin, size in zip(parts.starts, parts.sizes, strict=True):
        if size >= 2 * k:
            assert (codes[begin : begin + size] == codes[begin]).all()


@pytest.mark.parametrize(
    ("values", "k", "sizes"),
    [
        # One a and five b: 2k together, so b gives two and both parts have k.
        ("abbbbb", 3, [3, 3]),
        # One fewer: they are merged.
        ("abbbb", 3, [5]),
        # In the middle: the larger neighbour gives.
        ("aaaabccccccc", 3, [4, 3, 5]),
        ("aaaaaaabcccc", 3, [5, 3, 4]),
        # Neither neighbour can spare any: the smaller is merged with.
        ("aaabcccc", 3, [4, 4]),
        # Small parts gather until they are large enough.
        ("abcdef", 3, [3, 3]),
    ],
)
def test_moves_and_merges_by_hand(values: str, k: int, sizes: list[int]) -> None:
    """One attribute, values in order."""
    column = Column(tuple(values), numeric=False, as_set=True)
    parts = lexicographic_parts(Case((column,), k, LOSSES["gcp"]).problem(), k)
    assert parts.sizes.tolist() == sizes


@settings(max_examples=60)
@given(cases())
def test_hp_is_one_class_a_part(case: Case) -> None:
    """The classes are the parts, unless a star is cheaper; never below the optimum."""
    problem, best = case.problem(), case.optimum()
    solution = hp(problem)
    assert solution.method == "hp"
    assert solution.objective >= best - case.slack(best)
    if not case.suppression:
        labels = lexicographic_parts(problem, case.k).labels
        together = {frozenset((labels == label).nonzero()[0].tolist()) for label in labels}
        assert {frozenset(group) for group in groups_of(solution.assignment)} == together
