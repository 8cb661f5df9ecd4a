"""The initial solution: sets of k in order, the tail in the last."""

from __future__ import annotations

from typing import Any

import pytest

from anonymip import EquivalenceClasses, Problem, objective
from anonymip.heuristics.classes.initial import initial
from tests.brute_force import Column
from tests.random_problems import groups_of, microdata


@pytest.mark.parametrize(
    ("n", "sizes"), [(3, [3]), (5, [5]), (6, [3, 3]), (7, [3, 4]), (8, [3, 5]), (9, [3, 3, 3])]
)
def test_tail_joins_the_last_set(n: int, sizes: list[int]) -> None:
    """With k = 3 the sets have 3 records, the last one up to 5."""
    column = Column(tuple(float(value) for value in range(n)))
    assert initial(Problem(microdata([column]), 3)).assignment.sizes.tolist() == sizes


def test_sets_follow_the_order() -> None:
    """The attribute of least variance is sorted first."""
    columns = (Column((90.0, 10.0, 80.0, 20.0)), Column((2.0, 1.0, 1.0, 2.0)))
    solution = initial(Problem(microdata(columns), 2))
    assert groups_of(solution.assignment) == ((0, 3), (1, 2))


@objective
def cheap_stars(record: Any) -> Any:
    """Charge stars half of what the whole domain costs."""
    return 2 * record.width["a"] - record.suppressed["a"]


def test_expensive_sets_are_suppressed_where_allowed() -> None:
    """A set over the whole domain costs 2 a record, a star 1."""
    column = Column((1.0, 100.0, 1.0, 1.0))
    recoding = EquivalenceClasses(suppression=True)
    solution = initial(Problem(microdata([column]), 4, recoding, cheap_stars))
    assert solution.assignment.suppressed == 4
    assert solution.objective == pytest.approx(4.0)
