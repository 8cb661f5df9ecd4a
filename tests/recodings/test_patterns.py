"""Pattern-guided suppression: what is allowed, published and lost."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Bottleneck,
    Cap,
    InputError,
    InvalidAssignment,
    Mask,
    Microdata,
    PatternGuided,
    Patterns,
    Problem,
    Suppressions,
    UnsupportedObjective,
    objective,
)
from anonymip.objectives import pattern_costs
from anonymip.recodings.output_rows import (
    grid_of,
    output_rows,
    pack_rows,
    representatives,
    rows_alike,
)
from tests.by_hand import by_classes, by_patterns, table_of
from tests.random_patterns import PatternCase, pattern_cases


@given(pattern_cases(ruled=True), st.data())
def test_what_is_allowed_and_lost_is_what_the_definition_says(
    case: PatternCase, data: st.DataObject
) -> None:
    """What is allowed and lost is what the definition says."""
    problem = case.problem()
    stars = problem.recoding.stars(problem)  # type: ignore[attr-defined]
    chosen = data.draw(
        st.lists(st.integers(-1, len(stars) - 1), min_size=len(case.rows), max_size=len(case.rows))
    )
    given_patterns = [None if j < 0 else tuple(map(bool, stars[j])) for j in chosen]
    try:
        solution = by_patterns(problem, chosen)
    except InvalidAssignment:
        assert not case.allows(given_patterns)
        return
    assert case.allows(given_patterns)
    assert solution.objective == pytest.approx(case.loss(given_patterns))
    everything = (True,) * len(case.names)
    shown = [
        tuple("*" if star else cell for cell, star in zip(row, own or everything, strict=True))
        for row, own in zip(case.rows, given_patterns, strict=True)
    ]
    assert solution.suppressed == sum(set(row) == {"*"} for row in shown)
    assert solution.classes is not None
    labels = solution.classes.labels
    for i, j in product(range(len(shown)), repeat=2):
        if chosen[i] >= 0 and chosen[j] >= 0:
            assert (labels[i] == labels[j]) == (shown[i] == shown[j])
        elif chosen[i] < 0:
            assert labels[i] == -1


@given(pattern_cases())
def test_output_rows_are_those_that_k_records_share(case: PatternCase) -> None:
    """Output rows are those that k records share."""
    problem = case.problem()
    found = output_rows(problem)
    seen: dict[tuple[object, ...], set[int]] = {}
    for i, row in enumerate(case.rows):
        for j, stars in enumerate(found.stars):
            cells = tuple("*" if star else cell for cell, star in zip(row, stars, strict=True))
            seen.setdefault((j, *cells), set()).add(i)
    expected = sorted(sorted(rows) for rows in seen.values() if len(rows) >= case.k)
    inverse = found.types.inverse
    got = sorted(
        sorted(np.flatnonzero((found.row_of == r).any(axis=1)[inverse]).tolist())
        for r in range(found.count)
    )
    assert got == expected
    for r in range(found.count):
        types, patterns = np.nonzero(found.row_of == r)
        assert set(patterns.tolist()) == {int(found.pattern_of[r])}
        assert found.types.counts[types].sum() == found.sizes[r]


@given(pattern_cases())
def test_the_cheapest_of_rows_that_the_same_records_share_stands_for_them(
    case: PatternCase,
) -> None:
    """Of output rows with the same records the cheapest one stands for all, the first of equals."""
    found = output_rows(case.problem(), least=1)
    costs = found.costs[found.pattern_of]
    members = [(found.row_of == r).any(axis=1).tolist() for r in range(found.count)]
    expected = [
        min((q for q in range(found.count) if members[q] == own), key=lambda q: (costs[q], q))
        for own in members
    ]
    assert representatives(found.row_of.T, costs).tolist() == expected


@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_rows_alike_agrees_with_sorting(n: int, m: int, seed: int) -> None:
    """Rows alike agrees with sorting."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 3, (n, m)).astype(np.int32)
    stars = rng.random(m) < 0.4
    labels, count = rows_alike(pack_rows(codes, stars[None]))
    _, inverse = np.unique(codes[:, ~stars], axis=0, return_inverse=True)
    pairs = set(zip(labels.tolist(), inverse.ravel().tolist(), strict=True))
    assert len(pairs) == count == inverse.max() + 1
    assert list(dict.fromkeys(labels.tolist())) == list(range(count))


def _mixed() -> Microdata:
    return table_of({"age": [30, 30, 41, 41], "job": ["a", "a", "b", "c"]})


@pytest.mark.parametrize(
    ("losses", "grid"),
    [
        ([], 1),
        ([0.0, 3.0], 1),
        ([0.5, 3.0], 10),
        ([0.1, 0.25], 100),
        ([1e-6], 10**6),
        ([1e-7, 1.0], 0),
        ([1 / 3], 0),
    ],
)
def test_losses_lie_on_the_coarsest_grid_of_decimals(losses: list[float], grid: int) -> None:
    """Losses of at most six decimals are multiples of a power of ten, others of none."""
    assert grid_of(np.array(losses, np.float64)) == grid


def test_numbers_are_published_exactly_or_as_stars() -> None:
    """Numbers are published exactly or as stars."""
    problem = Problem(_mixed(), 2, PatternGuided())
    solution = by_patterns(problem, [0, 0, 2, 2])
    assert solution.objective == 2.0
    cells = solution.description
    assert cells.lower[:, 0].tolist() == cells.upper[:, 0].tolist() == [30, 30, 41, 41]
    assert cells.suppressed[:, 1].tolist() == [False, False, True, True]
    assert not cells.suppressed[:, 0].any()


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ([0, 0, 0, 0], "looks like 1 records"),
        ([0, 0, 9, 9], "has pattern 9 of a mask of 4"),
        ([0, 0, -1, -1], "is suppressed, which is not allowed"),
        ([0, 0, 0], "names 3 patterns"),
    ],
)
def test_assignments_that_break_a_rule_are_refused(index: list[int], text: str) -> None:
    """Assignments that break a rule are refused."""
    problem = Problem(_mixed(), 2, PatternGuided())
    with pytest.raises(InvalidAssignment, match=text):
        by_patterns(problem, index)


def test_an_assignment_of_another_kind_is_refused() -> None:
    """An assignment of another kind is refused."""
    problem = Problem(_mixed(), 2, PatternGuided())
    with pytest.raises(InvalidAssignment, match="Classes"):
        by_classes(problem, [0] * 4)
    with pytest.raises(InvalidAssignment, match="vector of integers"):
        Patterns(np.array([0.5]))
    with pytest.raises(InvalidAssignment, match="below -1"):
        Patterns(np.array([0, -2]))


def test_limits_and_unknown_columns_are_refused() -> None:
    """Limits and unknown columns are refused."""
    with pytest.raises(InputError, match="limits"):
        Problem(_mixed(), 2, PatternGuided(), limits=(Cap("age", 3),))
    with pytest.raises(InputError, match="joob"):
        Problem(_mixed(), 2, PatternGuided(Mask(never=("joob",))))


@given(pattern_cases())
def test_costs_of_patterns_are_what_their_records_lose(case: PatternCase) -> None:
    """Costs of patterns are what their records lose."""
    problem = case.problem()
    stars = problem.recoding.stars(problem)  # type: ignore[attr-defined]
    costs = pattern_costs(problem.compiled, stars)
    assert costs.tolist() == [case.loss([tuple(map(bool, row))]) for row in stars]


def test_a_cost_may_be_given_to_a_whole_pattern() -> None:
    """A cost may be given to a whole pattern."""
    problem = Problem(
        _mixed(), 2, PatternGuided(), Suppressions({"age": 2.0}, {("job", "age"): 2.25})
    )
    stars = problem.recoding.stars(problem)  # type: ignore[attr-defined]
    assert pattern_costs(problem.compiled, stars).tolist() == [0.0, 2.0, 1.0, 2.25]


def test_losses_that_do_not_look_at_the_pattern_alone_are_refused() -> None:
    """Losses that do not look at the pattern alone are refused."""

    @objective
    def by_value(record: object) -> object:
        return record.upper["age"] + record.suppressed["job"]  # type: ignore[attr-defined]

    @objective
    def together(record: object) -> object:
        spread = record.spread  # type: ignore[attr-defined]
        return spread["age"] * spread["job"] + spread["age"]

    @objective
    def general(record: object) -> object:
        return record.upper["age"] * record.spread["job"]  # type: ignore[attr-defined]

    stars = Mask().stars(("age", "job"))
    fine = Problem(_mixed(), 2, PatternGuided(), together)
    assert pattern_costs(fine.compiled, stars).tolist() == [0.0, 1.0, 0.0, 2.0]
    for loss in (by_value, general, Bottleneck(GCP())):
        problem = Problem(_mixed(), 2, PatternGuided(), loss)
        with pytest.raises(UnsupportedObjective):
            pattern_costs(problem.compiled, stars)


@pytest.mark.parametrize("costs", [{"age": -1.0}, {"age": float("nan")}, {"age": "dear"}])
def test_costs_that_are_no_costs_are_refused(costs: dict[str, float]) -> None:
    """Costs that are no costs are refused."""
    with pytest.raises(InputError, match="cost of 'age'"):
        Suppressions(costs)


def test_suppressions_name_columns_of_the_table() -> None:
    """Suppressions name columns of the table."""
    with pytest.raises(InputError, match="agee"):
        Problem(_mixed(), 2, PatternGuided(), Suppressions({"agee": 2.0}))


@given(pattern_cases(most_records=4))
def test_the_oracle_finds_an_optimum_that_is_allowed(case: PatternCase) -> None:
    """The oracle finds an optimum that is allowed."""
    optimum = case.optimum()
    assume(optimum is not None)
    problem = case.problem()
    stars = [tuple(map(bool, row)) for row in problem.recoding.stars(problem)]  # type: ignore[attr-defined]
    best = min(
        by_patterns(problem, chosen).objective
        for chosen in product(range(len(stars)), repeat=len(case.rows))
        if case.allows([stars[j] for j in chosen])
    )
    assert best == pytest.approx(optimum)


@pytest.mark.parametrize(
    ("patterns", "text"),
    [
        ({("age", "age"): 5.0}, "names a column twice"),
        ({("age", "job"): 1.0, ("job", "age"): 9.0}, "two costs"),
    ],
)
def test_costs_of_patterns_that_contradict_each_other_are_refused(
    patterns: dict[tuple[str, ...], float], text: str
) -> None:
    """The order of the columns makes no other pattern."""
    with pytest.raises(InputError, match=text):
        Suppressions({}, patterns)


def test_a_dear_column_does_not_blur_a_cheap_pattern() -> None:
    """Nothing is subtracted from the sum of the columns' costs."""
    problem = Problem(
        _mixed(), 2, PatternGuided(), Suppressions({"age": 1e17}, {("age", "job"): 1.0})
    )
    stars = problem.recoding.stars(problem)  # type: ignore[attr-defined]
    assert pattern_costs(problem.compiled, stars).tolist() == [0.0, 1e17, 1.0, 1.0]
