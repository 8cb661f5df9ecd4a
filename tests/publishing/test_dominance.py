"""Tests of the order of releases by utility, against sets of values in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Classes,
    Cover,
    EquivalenceClasses,
    Freeform,
    InputError,
    KOne,
    Problem,
    Solution,
    load_instance,
)
from anonymip.publishing.dominance import dominates, within
from tests.brute_force import Column
from tests.by_hand import by_classes, by_cover
from tests.random_covers import any_cover
from tests.random_problems import Case, cases

WONG = load_instance("wong-5")


def as_solution(case: Case, cover: Cover) -> Solution:
    """Return a cover of a case as a solution; every cover is (1, 1)-anonymous enough for this."""
    problem = case.problem().replace(recoding=KOne())
    return Solution.of(problem, cover, method="test")


def padded(cover: Cover, k: int) -> Cover:
    """Return the cover with sets filled up to k by the first records."""
    sets = []
    for record in range(cover.n):
        one = cover.of_record(record).tolist()
        sets.append(one + [other for other in range(cover.n) if other not in one][: k - len(one)])
    return Cover.of(sets)


def covered(column: Column, records: Sequence[int]) -> frozenset[object]:
    """Return what the cell of a set covers: of ranges two ends, else values."""
    values = [column.values[record] for record in records]
    if column.paths:
        paths = {path[0]: path for path in column.paths}
        for level in zip(*(reversed(paths[value]) for value in values), strict=False):
            if len(set(level)) > 1:
                break
            node = level[0]
        return frozenset(leaf for leaf, path in paths.items() if node in path)
    if column.numeric and not column.as_set:
        low, high = float(min(values)), float(max(values))
        return frozenset(float(v) for v in column.values if low <= float(v) <= high)
    return frozenset(values)


@settings(max_examples=60)
@given(
    cases(smallest=4, largest=7, suppression=False),
    st.sampled_from([0.1, 0.3]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_against_sets_of_values(case: Case, share: float, nested: bool, seed: int) -> None:
    """Cell by cell; of ranges the observed values inside tell, since their ends are observed."""
    rng = np.random.default_rng(seed)
    one = padded(any_cover(case.n, share, rng), case.k)
    other = padded(any_cover(case.n, share, rng), case.k)
    if nested:
        other = Cover.of([np.union1d(one.of_record(i), other.of_record(i)) for i in range(case.n)])
    expected = [
        [
            covered(column, one.of_record(i).tolist())
            <= covered(column, other.of_record(i).tolist())
            for column in case.columns
        ]
        for i in range(case.n)
    ]
    first, second = as_solution(case, one), as_solution(case, other)
    assert within(first, second).tolist() == expected
    assert not (dominates(first, second) and dominates(second, first))
    assert not dominates(first, first)
    if nested:
        assert dominates(first, second) != within(second, first).all()
        if dominates(first, second) and first.problem.compiled.monotone:
            assert first.objective <= second.objective + case.slack(second.objective)


def test_table_3_dominates_table_2() -> None:
    """Wong et al., Section 1: nothing is wider, and some cells are narrower."""
    homogeneous = Solution.of(
        Problem(WONG, 2), Classes(np.array([0, 0, 0, 1, 1])), method="Table 2"
    )
    table_3 = Cover.of([[0, 1], [1, 2], [0, 2], [3, 4], [3, 4]])
    better = Solution.of(Problem(WONG, 2, Freeform()), table_3, method="Table 3")
    assert dominates(better, homogeneous)
    assert not dominates(homogeneous, better)


@settings(max_examples=60)
@given(st.data(), cases(smallest=4, largest=7, suppression=False))
def test_a_ring_dominates_or_equals_its_class(data: st.DataObject, case: Case) -> None:
    """Wong et al., Lemma 2, on any partition and in any order."""
    groups = data.draw(st.sampled_from(case.releases()))
    sets: list[list[int]] = [[] for _ in range(case.n)]
    for group in groups:
        order = data.draw(st.permutations(group))
        for place, record in enumerate(order):
            sets[record] = [order[(place + step) % len(order)] for step in range(case.k)]
    problem = case.problem()
    rings = by_cover(problem.replace(recoding=Freeform()), sets)
    classes = Solution.of(problem, Classes.from_groups(groups, case.n), method="test")
    assert within(rings, classes).all()
    assert not dominates(classes, rings)


def test_stars_cover_everything() -> None:
    """A suppressed record is dominated, and lies within nothing but stars."""
    problem = Problem(WONG, 2, EquivalenceClasses(suppression=True))
    shown = by_classes(problem, [0, 0, 0, 1, 1])
    starred = by_classes(problem, [0, 0, 0, -1, -1])
    assert dominates(shown, starred)
    assert within(starred, shown).tolist() == [[True] * 3] * 3 + [[False] * 3] * 2
    assert within(starred, starred).all()


def test_other_tables_are_refused() -> None:
    """Rows of different tables have nothing to do with each other."""
    one = by_classes(Problem(WONG, 2), [0] * 5)
    health = load_instance("health-records")
    other = by_classes(Problem(health, 2), [0] * 7)
    with pytest.raises(InputError, match="different tables"):
        dominates(one, other)
    again = by_classes(Problem(load_instance("wong-5"), 2), [0] * 5)
    assert not dominates(one, again)
