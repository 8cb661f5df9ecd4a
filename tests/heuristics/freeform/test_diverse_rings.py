"""Tests of rings and parts under a diversity."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Cover,
    Diversity,
    Freeform,
    InputError,
    Microdata,
    NoSolution,
    Problem,
)
from anonymip.graphs import components
from anonymip.heuristics.freeform.nh import nh
from anonymip.heuristics.freeform.ring import ring
from anonymip.publishing.drawing import draw_diverse


def table(ages: list[int], columns: list[list[int]]) -> Microdata:
    """Return a table with a numeric attribute and sensitive columns."""
    values = {f"s{at}": [f"v{value}" for value in column] for at, column in enumerate(columns)}
    frame = pd.DataFrame({"age": ages, "sex": [age % 2 for age in ages], **values})
    attributes = (Attribute("age"), Attribute("sex"))
    return Microdata(frame, attributes, sensitive=tuple(values))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw a freeform problem with a diversity that the table allows."""
    n = draw(st.integers(4, 24))
    count = draw(st.integers(1, 2))
    columns = [draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)) for _ in range(count)]
    ages = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    l, distinct = draw(st.sampled_from([(2, 1), (3, 1), (1.5, 1), (1, 2), (2, 3)]))  # noqa: E741
    k = draw(st.integers(2, min(6, n)))
    reciprocal = draw(st.booleans())
    try:
        return Problem(
            table(ages, columns), k, Freeform(reciprocal), diversity=Diversity(l, distinct)
        )
    except InputError:
        # Five values in turn are allowed by each diversity drawn here, from six records on.
        turns = [[at % 5 for at in range(n)]]
        n_rule = Diversity(2) if n < 6 else Diversity(l, distinct)
        return Problem(table(ages, turns), k, Freeform(reciprocal), diversity=n_rule)


@settings(max_examples=80)
@given(problems(), st.sampled_from([ring, nh]))
def test_rings_are_found_and_can_be_published(problem: Problem, method: Any) -> None:
    """Whatever the table allows there is a release of; every set is diverse, counted one by one."""
    diversity = problem.diversity
    assert diversity is not None
    solution = method(problem)
    cover = solution.assignment
    assert isinstance(cover, Cover)
    codes = problem.microdata.sensitive_codes
    for members in cover.matches:
        for column in codes[members].T:
            held = Counter(column.tolist())
            assert max(held.values()) * diversity.l <= len(members)
            assert len(held) >= diversity.distinct
    if not (isinstance(problem.recoding, Freeform) and problem.recoding.reciprocal):
        drawn = draw_diverse(problem, cover, np.random.default_rng(0))
        assert sorted(drawn.tolist()) == list(range(problem.n))


def test_sets_grow_to_the_next_multiple_of_l() -> None:
    """Two values by turns, l = 2, k = 3: three records would need three values, four do not."""
    data = table(list(range(20)), [[at % 2 for at in range(20)]])
    problem = Problem(data, 3, Freeform(), diversity=Diversity(2))
    for method in (ring, nh):
        cover = method(problem).assignment
        assert isinstance(cover, Cover)
        assert set(cover.sizes.tolist()) == {4}
    fixed = problem.replace(recoding=Freeform(degrees=(3,) * 20))
    with pytest.raises(NoSolution, match="multiples of l"):
        ring(fixed)


def test_parts_of_one_value_are_merged_and_others_left() -> None:
    """Parts 0, 1 share a value each; together they are diverse, and the third one is on its own."""
    ages = [0] * 4 + [1] * 4 + [2] * 8
    values = [0] * 4 + [1] * 4 + [0, 1] * 4
    frame = pd.DataFrame({"age": ages, "s": [f"v{value}" for value in values]})
    data = Microdata(frame, (Attribute("age"),), sensitive=("s",))
    cover = nh(Problem(data, 4, Freeform(), diversity=Diversity(2))).assignment
    assert isinstance(cover, Cover)
    assert all(set(cover.of_record(record).tolist()) <= set(range(8)) for record in range(8))
    assert all(
        set(cover.of_record(record).tolist()) <= set(range(8, 16)) for record in range(8, 16)
    )


def test_large_parts_made_by_merging_are_split_again() -> None:
    """Five hundred parts of one value each become one, which is cut into smaller ones."""
    ages = [at // 4 for at in range(2000)]
    values = [0 if at < 1000 else 1 for at in range(2000)]
    frame = pd.DataFrame({"age": ages, "s": [f"v{value}" for value in values]})
    data = Microdata(frame, (Attribute("age"),), sensitive=("s",))
    problem = Problem(data, 4, Freeform(), diversity=Diversity(2))
    solution = nh(problem)
    cover = solution.assignment
    assert isinstance(cover, Cover)
    parts = np.bincount(components(cover))
    assert len(parts) > 50
    assert parts.min() >= 8
    drawn = draw_diverse(problem, cover, np.random.default_rng(0))
    assert sorted(drawn.tolist()) == list(range(2000))
