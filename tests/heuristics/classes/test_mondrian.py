"""Mondrian: strict keeps equal values together, relaxed halves."""

from __future__ import annotations

import pandas as pd
from hypothesis import given, settings

from anonymip import Attribute, Diversity, Microdata, Problem
from anonymip.heuristics.classes.mondrian import mondrian
from tests.brute_force import Column
from tests.random_problems import groups_of, larger_problems, microdata


def test_splits_at_the_median() -> None:
    """Values 0 to 7 with k = 2 give four pairs of neighbours."""
    column = Column((7.0, 0.0, 6.0, 1.0, 5.0, 2.0, 4.0, 3.0))
    for strict in (True, False):
        solution = mondrian(Problem(microdata([column]), 2), strict=strict)
        assert groups_of(solution.assignment) == ((0, 2), (1, 3), (4, 6), (5, 7))


def test_splits_the_widest_attribute_first() -> None:
    """Of two attributes the one that uses more of its domain is split."""
    columns = (
        Column((0.0, 9.0, 0.0, 9.0), domain=(0.0, 100.0)),
        Column((0.0, 0.0, 9.0, 9.0), domain=(0.0, 10.0)),
    )
    solution = mondrian(Problem(microdata(columns), 2))
    assert groups_of(solution.assignment) == ((0, 1), (2, 3))


def test_strict_cannot_split_a_heavy_value_and_relaxed_can() -> None:
    """Five records, four of them equal: only the relaxed form halves them."""
    column = Column((1.0, 1.0, 1.0, 1.0, 2.0))
    problem = Problem(microdata([column]), 2)
    assert mondrian(problem).assignment.count == 1
    assert mondrian(problem, strict=False).assignment.sizes.tolist() == [2, 3]


@settings(max_examples=40)
@given(larger_problems(20, 400, 9, ["gcp"]))
def test_strict_keeps_identical_rows_together(problem: Problem) -> None:
    """Rows that agree in all attributes lie in one class."""
    labels = mondrian(problem).assignment.labels
    inverse = problem.microdata.row_types().inverse
    assert len(set(zip(inverse.tolist(), labels.tolist(), strict=True))) == inverse.max() + 1


@settings(max_examples=40)
@given(larger_problems(20, 400, 9, ["gcp"]))
def test_relaxed_leaves_no_class_that_could_be_split(problem: Problem) -> None:
    """A class of 2k or more is left only if its rows are all the same."""
    solution = mondrian(problem, strict=False)
    inverse = problem.microdata.row_types().inverse
    for group in solution.assignment.groups():
        assert len(group) < 2 * problem.k or len(set(inverse[group].tolist())) == 1


def test_parts_are_diverse() -> None:
    """The median between 1 and 8 would leave x alone; the second attribute is cut instead."""
    frame = pd.DataFrame(
        {"a": [0, 1, 0, 1, 8, 9, 8, 9], "b": [0, 5, 0, 5, 0, 5, 0, 5], "s": list("xxxxyyyy")}
    )
    attributes = (Attribute("a", "numeric"), Attribute("b", "numeric"))
    data = Microdata(frame, attributes, sensitive=("s",))
    solution = mondrian(Problem(data, 2, diversity=Diversity(l=2)))
    assert solution.assignment.labels.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
