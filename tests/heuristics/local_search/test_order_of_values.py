"""The order of records and attributes decides nothing: what local search finds does not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Cap,
    Classes,
    Diversity,
    EquivalenceClasses,
    InvalidAssignment,
    LiangGCP,
    Microdata,
    NoSolution,
    Problem,
    census,
    solve,
)
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.orders.arrangement import OrderedByValues
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped, RunInForce, handing_on, in_force
from anonymip.status import Stopped
from tests.by_hand import table_of


def shuffled(problem: Problem, seed: int) -> tuple[Problem, np.ndarray]:
    """Return a problem whose table has rows and columns in another order, and that of the rows."""
    rng = np.random.default_rng(seed)
    data = problem.microdata
    rows, columns = rng.permutation(data.n), rng.permutation(data.m)
    frame = data.frame.iloc[rows].reset_index(drop=True)
    attributes = tuple(data.attributes[a] for a in columns)
    return problem.replace(
        microdata=Microdata(frame, attributes, sensitive=data.sensitive, keep=data.keep)
    ), rows


CASES: dict[str, dict[str, Any]] = {
    "gcp": {},
    "liang": {"objective": LiangGCP()},
    "suppression": {"recoding": EquivalenceClasses(suppression=True)},
    "limit": {"limits": (Cap("x0", 60.0),)},
}


@pytest.mark.crossed
@pytest.mark.parametrize("effort", ["quick", "normal"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_table_in_another_order(case: str, effort: str) -> None:
    """Rows and columns of a census are shuffled, and the losses stay."""
    data = census(40 if case == "limit" else 90, 4, seed=3)
    names = {name: f"x{a}" for a, name in enumerate(data.names)}
    attributes = tuple(
        Attribute(names[one.name], one.kind, one.domain, one.weight, one.integer)
        for one in data.attributes
    )
    renamed = Microdata(data.frame.rename(columns=names), attributes)
    problem = Problem(renamed, 4, **CASES[case])
    first = local_search(problem, from_method="best", effort=effort)
    for seed in range(2):
        other = local_search(shuffled(problem, seed)[0], from_method="best", effort=effort)
        assert other.objective == pytest.approx(first.objective, rel=1e-12)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from("abc")),
        min_size=12,
        max_size=30,
    ),
    st.integers(0, 9),
    st.booleans(),
)
@settings(max_examples=60)
def test_any_table_in_another_order(
    rows: list[tuple[int, int, str]], seed: int, diverse: bool
) -> None:
    """With ties, copies of rows, and sensitive values that tell copies apart."""
    data = table_of(pd.DataFrame(rows, columns=["a", "b", "ill"]), "ill")
    problem = Problem(data, 2, diversity=Diversity(distinct=2) if diverse else None)
    try:
        first = local_search(problem)
    except NoSolution:
        with pytest.raises(NoSolution):
            local_search(shuffled(problem, seed)[0])
        return
    other = local_search(shuffled(problem, seed)[0])
    assert other.objective == pytest.approx(first.objective, rel=1e-12, abs=1e-12)


def test_a_large_table_has_one_start() -> None:
    """Beyond 2,000 records it is one start that the order must not change."""
    problem = Problem(census(2_500, 4, seed=1), 5)
    first = solve(problem, "local-search", effort="quick", bound=False)
    other = solve(shuffled(problem, 8)[0], "local-search", effort="quick", bound=False)
    assert other.objective == pytest.approx(first.objective, rel=1e-12)


def test_a_start_is_of_the_records_as_given() -> None:
    """A start is improved wherever its records stand, and refused by the names they have."""
    problem = Problem(census(60, 3, seed=2), 3)
    start = solve(problem, "ordered-cut", bound=False)
    found = local_search(problem, start=start.assignment, effort="quick")
    assert found.objective <= start.objective
    other, rows = shuffled(problem, 4)
    again = local_search(other, start=Classes(start.assignment.labels[rows]), effort="quick")
    assert again.objective == pytest.approx(found.objective, rel=1e-12)
    labels = np.zeros(60, np.int32)
    labels[41] = 1
    with pytest.raises(InvalidAssignment) as caught:
        local_search(problem, start=Classes(labels))
    assert caught.value.record == 41


def test_releases_are_at_hand_in_the_order_given() -> None:
    """What a search has found when compilation stops it is a release of the table as it came."""
    problem = Problem(census(40, 3, seed=2), 3)
    by_values = OrderedByValues.of(problem)
    run = RunInForce(Budget(), problem)

    def stopped_search() -> None:
        with in_force(run), handing_on(by_values.problem, problem, by_values.back):
            ordered_cut(by_values.problem)
            raise CompilationStopped(Stopped.TIME)

    with pytest.raises(CompilationStopped):
        stopped_search()
    assert run.at_hand is not None
    assert run.at_hand.problem is problem
    assert run.at_hand.objective == pytest.approx(ordered_cut(by_values.problem).objective)
