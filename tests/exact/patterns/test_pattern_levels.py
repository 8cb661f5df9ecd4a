"""Tests of patterns of levels: against brute force, published and verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Apart,
    Attribute,
    Diversity,
    Hierarchy,
    HierarchyLoss,
    InputError,
    InvalidAssignment,
    Mask,
    Microdata,
    NoSolution,
    PatternGuided,
    PatternLevels,
    Problem,
    Suppressions,
    UnsupportedObjective,
    load_instance,
    lower_bound,
    objective,
    publish,
    solve,
    verify,
)
from tests.by_hand import by_classes, table_of

#: Labels of the towns by level; groups of one size, paths of one length.
TOWNS = {
    "a": ("a", "North", "*"),
    "b": ("b", "North", "*"),
    "c": ("c", "South", "*"),
    "d": ("d", "South", "*"),
}
JOBS = {"x": ("x", "*"), "y": ("y", "*"), "z": ("z", "*")}
MASKS = (
    Mask(),
    Mask(suppress_at_most=1),
    Mask(never=("town",)),
    Mask(together=(("town", "age"),)),
    Mask(at_most_one=(("town", "age", "job"),), allow_all_stars=True),
)
WEIGHTS = (2.0, 0.5, 1.0)
Row = tuple[str, str, int]


def table(rows: Sequence[Row], sensitive: Sequence[str] = ()) -> Microdata:
    """Return records with a town of two levels, a job of one, and an age without hierarchy."""
    frame = pd.DataFrame(rows, columns=["town", "job", "age"])
    attributes = (
        Attribute(
            "town", "hierarchical", hierarchy=Hierarchy(tuple(TOWNS.values())), weight=WEIGHTS[0]
        ),
        Attribute(
            "job", "hierarchical", hierarchy=Hierarchy(tuple(JOBS.values())), weight=WEIGHTS[1]
        ),
        Attribute("age", weight=WEIGHTS[2], domain=(0, 9)),
    )
    if sensitive:
        frame["ill"] = list(sensitive)
    return Microdata(frame, attributes, sensitive=("ill",) if sensitive else ())


def shown(row: Row, levels: Sequence[int]) -> tuple[Any, ...]:
    """Return what a row shows on the given levels."""
    town, job, age = row
    return TOWNS[town][levels[0]], JOBS[job][levels[1]], "*" if levels[2] else age


def is_allowed(mask: Mask, levels: Sequence[int]) -> bool:
    """Return whether the mask allows the attributes on their highest levels to be hidden."""
    hidden = {
        name
        for name, level, most in zip(("town", "job", "age"), levels, (2, 1, 1), strict=True)
        if level == most
    }
    if mask.allow_all_stars and len(hidden) == 3:
        return True
    return (
        (mask.suppress_at_most is None or len(hidden) <= mask.suppress_at_most)
        and not hidden & set(mask.never)
        and all(set(group) <= hidden or not set(group) & hidden for group in mask.together)
        and all(len(set(group) & hidden) <= 1 for group in mask.at_most_one)
    )


def cost_of_levels(objective: Any, levels: Sequence[int]) -> float:
    """Return what a record pays on the given levels."""
    town, job, age = levels
    if isinstance(objective, HierarchyLoss):
        return WEIGHTS[0] * town / 2 + WEIGHTS[1] * job + WEIGHTS[2] * age
    if isinstance(objective, GCP):
        return (0, 1 / 3, 1)[town] + job + age
    return sum(
        objective.costs.get(name, 1.0) * (level > 0)
        for name, level in zip(("town", "job", "age"), levels, strict=True)
    )


def partitions(n: int, k: int) -> Iterator[list[list[int]]]:
    """Yield all partitions of n records into sets of k or more."""

    def grow(record: int, blocks: list[list[int]]) -> Iterator[list[list[int]]]:
        if record == n:
            if all(len(block) >= k for block in blocks):
                yield blocks
            return
        for at in range(len(blocks)):
            yield from grow(record + 1, [b + [record] * (i == at) for i, b in enumerate(blocks)])
        yield from grow(record + 1, [*blocks, [record]])

    yield from grow(0, [])


def least(rows: Sequence[Row], k: int, mask: Mask, objective: Any, ill: str, distinct: int) -> Any:
    """Return the least loss of all releases, None if there is none."""
    patterns = [
        levels for levels in product(range(3), range(2), range(2)) if is_allowed(mask, levels)
    ]
    best = None
    for blocks in partitions(len(rows), k):
        total = 0.0
        for block in blocks:
            costs = [
                cost_of_levels(objective, levels)
                for levels in patterns
                if len({shown(rows[record], levels) for record in block}) == 1
                and len({ill[record] for record in block}) >= distinct
            ]
            total += len(block) * min(costs) if costs else float("inf")
        if total < float("inf") and (best is None or total < best):
            best = total
    return best


ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.integers(0, 2)),
    min_size=4,
    max_size=6,
)
OBJECTIVES = st.sampled_from(
    [HierarchyLoss(), GCP(), Suppressions(), Suppressions({"town": 3, "age": 0.5})]
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(ROWS, st.sampled_from([2, 3]), st.sampled_from(MASKS), OBJECTIVES, st.booleans(), st.data())
def test_the_optimum_is_that_of_brute_force(
    rows: list[Row], k: int, mask: Mask, objective: Any, diverse: bool, data: st.DataObject
) -> None:
    """Loss and bound are the least loss of all partitions and patterns; the release verifies."""
    ill = data.draw(st.text("uv", min_size=len(rows), max_size=len(rows)))
    distinct = 2 if diverse else 1
    expected = least(rows, k, mask, objective, ill, distinct)
    try:
        problem = Problem(
            table(rows, ill),
            k,
            PatternLevels(mask),
            objective,
            Diversity(distinct=2) if diverse else None,
        )
        solution = solve(problem)
    except (InputError, NoSolution):
        assert expected is None
        return
    assert expected is not None
    assert solution.is_optimal
    assert solution.objective == pytest.approx(expected, abs=1e-9)
    assert solution.bound is not None
    assert solution.bound.value <= expected + 1e-9
    below = lower_bound(problem)
    assert below is None or below.value <= expected + 1e-9
    published = publish(solution, keep_order=True)
    for cells, row in zip(
        published.frame[["town", "job", "age"]].to_numpy().tolist(), rows, strict=True
    ):
        assert any(
            [str(cell).replace("\\*", "*") for cell in cells]
            == [str(cell) for cell in shown(row, chosen)]
            for chosen in product(range(3), range(2), range(2))
            if is_allowed(mask, chosen)
        )
    assert publish(solution).verify().ok


def test_a_release_in_files(tmp_path: Path) -> None:
    """Towns are published on their levels, other columns exact or starred, and verified."""
    rows: list[Row] = [("a", "x", 1), ("b", "x", 1), ("c", "y", 2), ("d", "y", 5)]
    data = table(rows)
    solution = solve(Problem(data, 2, PatternLevels()))
    assert (solution.method, solution.is_optimal) == ("pattern-levels", True)
    release = publish(solution, keep_order=True)
    assert release.frame.to_numpy().tolist() == [
        ["North", "x", "1"],
        ["North", "x", "1"],
        ["South", "y", "*"],
        ["South", "y", "*"],
    ]
    written, _ = release.write(tmp_path / "release.csv")
    hierarchies = {"town": tuple(TOWNS.values()), "job": tuple(JOBS.values())}
    assert verify(data.original, written, hierarchies=hierarchies).ok
    assert release.manifest["recoding"] == "classes"
    assert any("pattern-levels" in assumed for assumed in release.manifest["assumed"])


def test_levels_beside_stars() -> None:
    """Levels cost no more than the stars that they stand for."""
    data = load_instance("aggarwal-quality")
    levels = solve(Problem(data, 2, PatternLevels(), HierarchyLoss()))
    assert levels.is_optimal
    stars = solve(Problem(data, 2, PatternGuided(), HierarchyLoss()))
    assert levels.objective < stars.objective


def test_what_is_refused() -> None:
    """Losses that look at values, limits, classes without a pattern."""
    rows: list[Row] = [("a", "x", 1), ("b", "y", 1), ("c", "y", 2), ("d", "y", 5)]
    with pytest.raises(UnsupportedObjective, match="sum over attributes"):
        solve(Problem(table(rows), 2, PatternLevels(), Suppressions({}, {("age",): 0.5})))
    with pytest.raises(InputError, match="limits"):
        Problem(table(rows), 2, PatternLevels(), limits=(Apart("town", "a", "b"),))
    uneven = Hierarchy.from_groups({"North": ["a", "b", "c"], "South": ["d"]})
    frame = pd.DataFrame({"town": list("abcd")})
    towns = Microdata(frame, (Attribute("town", "hierarchical", hierarchy=uneven),))
    with pytest.raises(UnsupportedObjective, match="charges values of 'town' differently"):
        solve(Problem(towns, 2, PatternLevels()), "pattern-levels")
    strict = Problem(table(rows), 2, PatternLevels(Mask(never=("age",))))
    with pytest.raises(InvalidAssignment, match="under no pattern of the mask"):
        by_classes(strict, [0, 0, 1, 1])  # type: ignore[arg-type]


@objective
def squared_levels(record: Any) -> Any:
    """Charge the square of the level of the town, and of that of the job threefold."""
    return record.level["town"] ** 2 + 3.0 * record.level["job"]


def test_a_loss_of_ones_own_on_hierarchies() -> None:
    """Its tables prove it a sum over the attributes; by hand, and not where there are stars."""
    rows = [("a", "x", 3), ("b", "x", 3), ("c", "y", 3), ("c", "z", 4)]
    both = table(rows)
    names = ["town", "job"]
    attributes = tuple(a for a in both.attributes if a.name in names)
    solution = solve(
        Problem(Microdata(both.frame[names], attributes), 2, PatternLevels(), squared_levels)
    )
    # The first two share a region, level 1, the others no job but the root, level 1.
    assert solution.is_optimal
    assert solution.objective == 2 * 1.0 + 2 * 3.0
    with pytest.raises(UnsupportedObjective, match="sum over attributes"):
        solve(Problem(both, 2, PatternLevels(), squared_levels))


def test_tables_without_hierarchies() -> None:
    """Then levels are stars, and no row is of stars only: it would count as suppressed."""
    data = table_of({"age": [1, 1, 2, 3], "sex": list("FFMM")})
    solution = solve(Problem(data, 2, PatternLevels()))
    assert (solution.objective, solution.suppressed) == (2, 0)
    assert publish(solution).verify().ok
    apart = table_of({"age": [1, 2]})
    with pytest.raises((InputError, NoSolution)):
        solve(Problem(apart, 2, PatternLevels()))
