"""Tests of limits of generalization, against the definitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anonymip import (
    Apart,
    Attribute,
    Cap,
    Classes,
    EquivalenceClasses,
    Hierarchy,
    InputError,
    InvalidAssignment,
    Microdata,
    Problem,
)
from anonymip.objectives import cells_of_sets
from anonymip.recodings.rules.limits import conflicts, met_by_sets
from tests import random_problems
from tests.random_problems import Case, cases

DATA = Microdata(
    pd.DataFrame({"age": [20, 25, 40, 50], "job": list("abca"), "town": ["x", "y", "z", "x"]}),
    (
        Attribute("age", integer=True),
        Attribute("job", "categorical"),
        Attribute(
            "town",
            "hierarchical",
            hierarchy=Hierarchy([("x", "xy", "*"), ("y", "xy", "*"), ("z", "z", "*")]),
        ),
    ),
)


@st.composite
def limited(draw: st.DrawFn) -> Case:
    """Draw a case with limits and no diversity."""
    case = draw(cases(largest=6))
    drawn = draw(random_problems.rules(case.columns))
    assume(drawn.caps or drawn.apart)
    return replace(case, rules=replace(drawn, sensitive=(), l=type(drawn.l)(1), distinct=1))


@given(case=limited(), data=st.data())
def test_sets_and_assignments_keep_limits_as_defined(case: Case, data: st.DataObject) -> None:
    """The batch test, the check of a whole assignment, and the definition agree."""
    problem = case.problem()
    groups = data.draw(
        st.sampled_from(list(random_problems.brute_force.partitions(case.n, case.k)))
    )
    assert case.rules is not None
    expected = [case.rules.met_by(case.columns, group) for group in groups]
    for group, met in zip(groups, expected, strict=True):
        rows = np.array([group])
        cells = cells_of_sets(problem.microdata, rows)
        assert met_by_sets(problem.microdata, problem.limits, rows, cells).tolist() == [met]
    assignment = Classes.from_groups([np.array(group) for group in groups], case.n)
    if all(expected):
        problem.recoding.check(problem, assignment)
    else:
        with pytest.raises(InvalidAssignment, match="break the"):
            problem.recoding.check(problem, assignment)


@given(case=limited(), data=st.data())
def test_limits_but_for_caps_of_sets_are_decided_by_pairs(case: Case, data: st.DataObject) -> None:
    """A set keeps them exactly if no two of its records conflict; conflicts never vanish."""
    problem = case.problem()
    microdata = problem.microdata
    pairwise = tuple(
        limit
        for limit in problem.limits
        if not (
            isinstance(limit, Cap)
            and microdata.attributes[microdata.names.index(limit.attribute)].publish == "set"
        )
    )
    forbidden = conflicts(microdata, pairwise, np.arange(case.n))
    size = data.draw(st.integers(1, case.n))
    rows = np.array([data.draw(st.permutations(range(case.n)))[:size]])
    met = met_by_sets(microdata, pairwise, rows, cells_of_sets(microdata, rows))[0]
    assert met == (not forbidden[np.ix_(rows[0], rows[0])].any())


def test_suppressed_records_break_no_limit() -> None:
    """Stars are a matter of suppression, not of generalization."""
    problem = Problem(DATA, 2, EquivalenceClasses(suppression=True), limits=(Cap("age", 10),))
    problem.recoding.check(problem, Classes(np.array([0, 0, -1, -1])))
    with pytest.raises(InvalidAssignment, match="cap of 10 on 'age'"):
        problem.recoding.check(problem, Classes(np.array([0, 1, 0, 1])))


def test_a_range_covers_the_numbers_in_it() -> None:
    """30 and 35 are in 25..40 though nobody is that old."""
    problem = Problem(DATA, 2, limits=(Apart("age", 30, 35),))
    problem.recoding.check(problem, Classes(np.array([0, 0, 1, 1])))
    with pytest.raises(InvalidAssignment, match="two values of 'age' stay apart"):
        problem.recoding.check(problem, Classes(np.array([0, 1, 1, 0])))


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (Cap("agee", 3), "'agee'"),
        (Cap("job", 0.5), "below 1"),
        (Apart("age", "old", "young"), "no finite numbers"),
        (Apart("job", "a", "q"), "not in its domain"),
        (Apart("town", "x", "xy"), "no leaf of its hierarchy"),
        ("age", "holds a str"),
    ],
)
def test_limits_that_do_not_fit_are_refused(limit: Any, message: str) -> None:
    """Unknown attributes and values are found when the problem is made."""
    with pytest.raises(InputError, match=message) as caught:
        Problem(DATA, 2, limits=(limit,))
    assert caught.value.remedy


@pytest.mark.parametrize("most", [-1, float("nan"), float("inf"), "3", True])
def test_caps_that_are_no_numbers_are_refused(most: Any) -> None:
    """A cap is a number of at least 0."""
    with pytest.raises(InputError, match="cap of 'age'"):
        Cap("age", most)


def test_a_value_is_not_apart_from_itself() -> None:
    """The value is shown on request only."""
    with pytest.raises(InputError, match="are the same") as caught:
        Apart("job", "a", "a")
    assert caught.value.value == "a"
