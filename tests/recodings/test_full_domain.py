"""Full-domain generalization: what is allowed, published and lost."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Attribute,
    Cap,
    Classes,
    Diversity,
    FullDomain,
    Hierarchy,
    HierarchyLoss,
    InputError,
    InvalidAssignment,
    Levels,
    Microdata,
    Problem,
    Solution,
    UnsupportedObjective,
    load_instance,
)
from anonymip.recodings.full_domain import published_cells
from anonymip.recodings.registry import find_recoding
from anonymip.recodings.rows import STAR, LevelMap
from tests.by_hand import table_of
from tests.full_domain_brute_force import STAR as SHOWN_STAR
from tests.full_domain_brute_force import FullDomainCase, full_domain_cases
from tests.random_problems import hierarchical_columns, microdata


@given(full_domain_cases(), st.data())
def test_what_is_allowed_and_lost_is_what_the_definition_says(
    drawn: FullDomainCase, data: st.DataObject
) -> None:
    """Any levels with any suppressed records: refused or recomputed as the definition says."""
    problem = drawn.problem()
    levels = [data.draw(st.integers(0, height)) for height in drawn.heights()]
    broken = drawn.outliers(levels)
    flags = data.draw(
        st.one_of(
            st.just(broken), st.lists(st.booleans(), min_size=len(broken), max_size=len(broken))
        )
    )
    expected = drawn.loss(levels)
    try:
        solution = Solution.of(problem, Levels(np.array(levels), np.array(flags)), method="drawn")
    except InvalidAssignment:
        assert flags != broken or math.isinf(expected)
        return
    assert flags == broken
    assert solution.objective == pytest.approx(expected, rel=1e-9, abs=1e-9)
    shown = drawn.labels(levels)
    classes = solution.classes
    assert classes is not None
    for i, label in enumerate(classes.labels):
        assert (label == -1) == broken[i]
        for j in range(i):
            if not broken[i] and not broken[j]:
                assert (label == classes.labels[j]) == (shown[i] == shown[j])


@given(full_domain_cases(), st.data())
def test_the_description_shows_node_value_or_star(
    drawn: FullDomainCase, data: st.DataObject
) -> None:
    """Every cell is the node at its level, the exact value or a star, and its observed values."""
    problem = drawn.problem()
    recoding = drawn.recoding
    levels = [data.draw(st.integers(0, height)) for height in drawn.heights()]
    assignment = recoding.assignment(problem, levels)
    assert assignment.suppressed_records.tolist() == drawn.outliers(levels)
    cells, shown = recoding.describe(problem, assignment), drawn.labels(levels)
    for i, row in enumerate(shown):
        for a, label in enumerate(row):
            hidden = label == SHOWN_STAR or bool(assignment.suppressed_records[i])
            attribute, level = problem.microdata.attributes[a], problem.microdata.levels[a]
            members = level[cells.members.of(i, a)].tolist()
            assert bool(cells.suppressed[i, a]) == hidden
            if hidden:
                assert members == []
                assert cells.nodes[i, a] == -1
                assert np.isnan(cells.lower[i, a])
            elif attribute.hierarchy is not None:
                assert attribute.hierarchy.tree.labels[cells.nodes[i, a]] == label
                codes = problem.microdata.codes[:, a].tolist()
                alike = {
                    level[c] for c, other in zip(codes, shown, strict=True) if other[a] == label
                }
                assert set(members) == alike
            else:
                assert members == [label]
                if attribute.is_numeric:
                    assert cells.lower[i, a] == cells.upper[i, a] == label


@given(hierarchical_columns(6))
def test_nested_levels_are_those_that_only_join(column: Any) -> None:
    """An attribute is nested exactly if no two values of one cell part again further up."""
    found = LevelMap.of(microdata((column,)), 0)
    rows = found.cells.tolist()
    parted = any(
        low[i] == low[j] and high[i] != high[j]
        for low, high in pairwise(rows)
        for i in range(len(low))
        for j in range(i)
    )
    assert found.nested == (not parted)


def test_padded_paths_may_part_values_again() -> None:
    """Values in one group at level 1 show different labels at level 2 if only one is padded."""
    paths = [("p", "X", "X", "*"), ("q", "X", "*", "*")]
    attribute = Attribute("t", "hierarchical", hierarchy=Hierarchy(paths))
    found = LevelMap.of(Microdata(pd.DataFrame({"t": ["p", "q"]}), (attribute,)), 0)
    assert found.height == 3
    assert not found.nested


def test_attributes_without_a_hierarchy_are_exact_or_stars() -> None:
    """Level 1 of a number is a star."""
    data = load_instance("health-records")
    nobody = np.zeros(7, np.bool_)
    cells = published_cells(data, Levels(np.array([0, 1, 0]), nobody))
    assert (cells[:, 1] == STAR).all()
    assert (cells[:, [0, 2]] == data.codes[:, [0, 2]]).all()


@pytest.mark.parametrize(
    ("most", "n", "limit"),
    [
        (None, 10, 10),
        (0, 10, 0),
        (3, 10, 3),
        (30, 10, 10),
        (0.3, 10, 3),
        (0.29, 10, 2),
        (0.0, 9, 0),
    ],
)
def test_the_limit_is_a_number_or_a_share(most: float | None, n: int, limit: int) -> None:
    """Shares are rounded down, but not by the way floats are rounded."""
    recoding = FullDomain(suppression=True, most_suppressed=most)
    assert recoding.limit(n) == limit
    assert FullDomain(most_suppressed=most).limit(n) == (0 if most is None else limit)
    assert find_recoding("full-domain", suppression=True) == FullDomain(suppression=True)


@pytest.mark.parametrize("most", [-1, 1.0, 1.5, -0.1, True, "3", float("nan")])
def test_limits_that_mean_nothing_are_refused(most: Any) -> None:
    """Neither a number of records nor a share of them."""
    with pytest.raises(InputError, match="most_suppressed is") as caught:
        FullDomain(most_suppressed=most)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("given_levels", "reason"),
    [
        (Levels(np.array([1, 1]), np.zeros(12, np.bool_)), "gives 2 levels for 3 attributes"),
        (Levels(np.array([1, 1, 1]), np.zeros(9, np.bool_)), "marks 9 records, the table has 12"),
        (Levels(np.array([1, 4, 1]), np.zeros(12, np.bool_)), "'Town' level 4, its highest is 3"),
        (Levels(np.array([2, 1, 1]), np.zeros(12, np.bool_)), "'Age' level 2, its highest is 1"),
        (Classes(np.zeros(12, np.int32)), "gives no levels but Classes"),
        (Levels(np.array([0, 0, 0]), np.zeros(12, np.bool_)), "looks like 1 records, .* k = 3"),
        (Levels(np.array([1, 3, 3]), np.ones(12, np.bool_)), "break no rule"),
        (Levels(np.array([0, 0, 0]), np.ones(12, np.bool_)), "12 suppressed records, and 2 may"),
    ],
)
def test_invalid_assignments_are_refused(given_levels: Any, reason: str) -> None:
    """What does not fit the table or breaks a rule says which."""
    problem = Problem(load_instance("clinic-12"), 3, FullDomain(most_suppressed=2))
    with pytest.raises(InvalidAssignment, match=reason):
        problem.recoding.check(problem, given_levels)
    if reason.startswith(("gives", "marks")):
        with pytest.raises(InvalidAssignment, match=reason):
            problem.recoding.describe(problem, given_levels)


def test_a_class_without_diversity_says_so() -> None:
    """The class is large enough, its values are not diverse."""
    data = load_instance("clinic-12")
    problem = Problem(data, 3, FullDomain(), diversity=Diversity(l=3))
    nobody = np.zeros(12, np.bool_)
    with pytest.raises(InvalidAssignment, match="without the diversity l = 3"):
        problem.recoding.check(problem, Levels(np.array([1, 2, 3]), nobody))


def test_what_has_no_meaning_is_refused_at_once() -> None:
    """Losses of members, limits of cells, diversity that the table lacks."""
    data = load_instance("clinic-12")
    numbers = table_of({"age": [31, 32, 40]})
    with pytest.raises(UnsupportedObjective, match="is a loss of classes"):
        Problem(numbers, 2, FullDomain(), SSE())
    with pytest.raises(InputError, match="limits of generalization") as caught:
        Problem(data, 3, FullDomain(), limits=(Cap("Town", 1),))
    assert caught.value.remedy
    with pytest.raises(InputError, match="no release can have the diversity"):
        Problem(data, 3, FullDomain(), HierarchyLoss(), Diversity(distinct=9))


def test_no_class_size_is_enough() -> None:
    """All that look alike are one class."""
    problem = Problem(load_instance("clinic-12"), 3, FullDomain())
    assert problem.recoding.max_size(problem).size is None
