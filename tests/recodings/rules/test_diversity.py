"""Tests of diversity, against plain counting."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    Classes,
    Diversity,
    EquivalenceClasses,
    Freeform,
    InputError,
    InvalidAssignment,
    Problem,
    solve,
)
from tests.brute_force import Rules
from tests.by_hand import table_of

RATIOS = [Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(3)]


@given(data=st.data())
def test_classes_are_diverse_exactly_if_counting_says_so(data: st.DataObject) -> None:
    """Batches of sets, the labels of a whole table, and plain counting agree."""
    size, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 2))
    ratio, distinct = data.draw(st.sampled_from(RATIOS)), data.draw(st.integers(1, 3))
    if ratio == 1 and distinct == 1:
        distinct = 2
    rule = Diversity(l=float(ratio), distinct=distinct)
    batch = np.array(
        data.draw(
            st.lists(
                st.lists(
                    st.lists(st.integers(0, 3), min_size=columns, max_size=columns),
                    min_size=size,
                    max_size=size,
                ),
                min_size=1,
                max_size=4,
            )
        )
    )
    expected = [
        Rules(
            tuple(tuple(block[:, column].tolist()) for column in range(columns)), ratio, distinct
        ).met_by((), range(size))
        for block in batch
    ]
    assert rule.met_by(batch).tolist() == expected
    labels = np.repeat(np.arange(len(batch)), size)
    record = rule.violation(batch.reshape(-1, columns), Classes(labels))
    assert (record is None) == all(expected)
    if record is not None:
        assert not expected[labels[record]]


def test_the_size_limit_falls() -> None:
    """A a a b b b with k = 3 and no value above one half cannot be cut into two classes."""
    data = table_of({"age": range(6), "ill": list("aaabbb")}, "ill")
    plain = Problem(data, 3)
    diverse = plain.replace(diversity=Diversity(l=2))
    assert plain.recoding.max_size(plain).size == 5
    assert diverse.recoding.max_size(diverse).size is None
    whole, cut = Classes(np.zeros(6, int)), Classes(np.array([0, 0, 0, 1, 1, 1]))
    plain.recoding.check(plain, cut)
    diverse.recoding.check(diverse, whole)
    with pytest.raises(InvalidAssignment, match="record 0: lies in a class without the diversity"):
        diverse.recoding.check(diverse, cut)


def test_suppressed_records_need_no_diversity() -> None:
    """They publish nothing to link to."""
    data = table_of({"age": range(5), "ill": list("abaaa")}, "ill")
    problem = Problem(data, 2, EquivalenceClasses(suppression=True), diversity=Diversity(l=2))
    problem.recoding.check(problem, Classes(np.array([0, 0, -1, -1, -1])))


@pytest.mark.parametrize(
    "given_values",
    [{"l": 0.5}, {"l": "2"}, {"l": True}, {"l": np.inf}, {"distinct": 0}, {"distinct": 1.5}, {}],
)
def test_rules_that_are_none_are_refused(given_values: dict[str, Any]) -> None:
    """Every refusal says what to give instead."""
    with pytest.raises(InputError) as caught:
        Diversity(**given_values)
    assert caught.value.remedy


def test_a_diversity_that_no_release_can_have_is_refused() -> None:
    """If the whole table has it not, no partition has; suppression may help."""
    frame = pd.DataFrame({"age": range(4), "ill": list("aaab")})
    data = table_of(frame, "ill")
    with pytest.raises(InputError, match="no release can have the diversity l = 2"):
        Problem(data, 2, diversity=Diversity(l=2))
    with pytest.raises(InputError, match="'ill' 3 of 4 records share a value, at most n / l = 2"):
        Problem(data, 2, diversity=Diversity(l=2))
    with pytest.raises(InputError, match="there are 2 values") as told:
        Problem(data, 2, Freeform(), diversity=Diversity(distinct=3))
    assert "suppression" not in str(told.value)
    Problem(data, 2, EquivalenceClasses(suppression=True), diversity=Diversity(l=2))
    with pytest.raises(InputError, match="needs sensitive columns"):
        Problem(table_of(frame[["age"]]), 2, diversity=Diversity(l=2))
    with pytest.raises(InputError, match="diversity is a int"):
        Problem(data, 2, diversity=2)  # type: ignore[arg-type]


def test_thirds_are_exact() -> None:
    """L is compared as a fraction: one of three is not above 1/3."""
    assert Diversity(l=3).met_by(np.array([[[0], [1], [2]]])).all()
    assert Diversity(l=1.1).ratio == (11, 10)


@pytest.mark.parametrize("share", [1e5, 1e6 + 0.5, 1e12, 1e18, 2e18, 1e19, 1e300])
def test_no_class_has_a_diversity_beyond_its_size(share: float) -> None:
    """However large l is, products with it do not run over into classes that seem diverse."""
    rule, same = Diversity(l=share), np.zeros((1, 10, 1), np.int64)
    assert not rule.met_by(same).any()
    assert rule.violation(same[0], Classes(np.zeros(10, np.int64))) == 0
    data = table_of({"a": [0] * 10, "s": ["x"] * 10}, "s")
    problem = Problem(data, 2, EquivalenceClasses(suppression=True), diversity=rule)
    found = solve(problem, "greedy-search", bound=False).assignment
    assert isinstance(found, Classes)
    assert found.count == 0


def test_more_distinct_values_than_a_class_has_rows() -> None:
    """A number that no class can hold is refused and not handed to kernels."""
    with pytest.raises(InputError, match="distinct of the diversity"):
        Diversity(distinct=10**30)
