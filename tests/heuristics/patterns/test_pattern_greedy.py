"""Tests of the pattern greedy and the search on its result, against trying everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Budget,
    Diversity,
    InputError,
    Mask,
    NoSolution,
    PatternGuided,
    Patterns,
    Problem,
    Solution,
    Suppressions,
)
from anonymip.heuristics.patterns.pattern_greedy import pattern_greedy
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.recodings.output_rows import pack_rows, rows_alike
from tests.by_hand import table_of
from tests.random_patterns import PatternCase, pattern_cases

DIVERSITIES = (Diversity(l=2), Diversity(distinct=2), Diversity(l=1.5), Diversity(t=0.3))


def naive_greedy(case: PatternCase, order: list[tuple[bool, ...]]) -> list[tuple[bool, ...] | None]:
    """Return the pattern of each record after Algorithm 1, written down as it stands."""
    given: list[tuple[bool, ...] | None] = [None] * len(case.rows)
    for stars in order:
        groups: dict[tuple[str, ...], list[int]] = {}
        for record, row in enumerate(case.rows):
            if given[record] is None:
                shown = tuple("*" if s else cell for cell, s in zip(row, stars, strict=True))
                groups.setdefault(shown, []).append(record)
        for members in groups.values():
            if len(members) >= case.k:
                for record in members:
                    given[record] = stars
    return given


@settings(deadline=None)
@given(case=pattern_cases(most_records=9, most_columns=4, most_patterns=16))
def test_the_paper_mode_is_algorithm_one(case: PatternCase) -> None:
    """Every record has the pattern that the paper's pseudocode gives it."""
    case = replace(case, suppression=True)
    problem = case.problem()
    recoding = problem.recoding
    assert isinstance(recoding, PatternGuided)
    stars = [tuple(row) for row in recoding.stars(problem).tolist()]
    by_cost = sorted(stars, key=lambda one: sum(np.compress(one, case.costs)))
    expected = naive_greedy(case, by_cost)
    solution = pattern_greedy(problem, mode="paper")
    assert isinstance(solution.assignment, Patterns)
    found = [None if at < 0 else stars[at] for at in solution.assignment.index.tolist()]
    assert found == expected
    assert solution.objective == case.loss(expected)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_releases_are_allowed_and_never_below_the_optimum(data: st.DataObject) -> None:
    """Rules or not; with the pattern of stars only, or suppression, there always is a release."""
    case = data.draw(pattern_cases(ruled=True))
    optimum = case.optimum()
    problem = case.problem()
    try:
        greedy = pattern_greedy(problem)
    except NoSolution:
        sure = case.mask.allow_all_stars and not case.single_use
        assert optimum is None or not (case.suppression or sure)
        return
    assert optimum is not None
    searched = pattern_search(problem)
    again = pattern_search(problem, start=greedy.assignment)
    assert optimum - 1e-9 <= searched.objective <= greedy.objective
    assert np.array_equal(again.assignment.index, searched.assignment.index)  # type: ignore[union-attr]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_diversity_is_kept_by_rows_that_hold_more_than_k(data: st.DataObject) -> None:
    """Under stars only all records are one row in the end: a release is always found."""
    case = replace(
        data.draw(pattern_cases(most_records=10, most_patterns=8)),
        suppression=data.draw(st.booleans()),
        diversity=data.draw(st.sampled_from(DIVERSITIES)),
    )
    case = replace(case, mask=Mask(suppress_at_most=1, allow_all_stars=True))
    everybody = np.arange(len(case.rows))
    rule, data_table = case.diversity, replace(case, diversity=None).problem().microdata
    assert rule is not None
    assume(rule.kept_by(data_table, everybody, np.zeros_like(everybody), 1).all())
    problem = case.problem()
    greedy = pattern_greedy(problem)
    searched = pattern_search(problem, start=greedy.assignment)
    assert searched.objective <= greedy.objective
    # Solutions are checked when they are made; the rule is counted once more.
    for solution in (greedy, searched):
        classes = solution.classes
        assert classes is not None
        for group in classes.groups():
            secrets = [case.sensitive[record] for record in group]
            most = max(secrets.count(value) for value in secrets)
            assert most * rule.l <= len(secrets) + 1e-9
            assert len(set(secrets)) >= rule.distinct


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_pattern_for_all_records_is_found(data: st.DataObject) -> None:
    """Where all records are one row under some pattern, and keep the diversity, none is missed."""
    case = data.draw(pattern_cases(most_records=8, most_patterns=8))
    alike = data.draw(st.sets(st.sampled_from(range(len(case.names))), min_size=1))
    case = replace(
        case,
        rows=tuple(
            tuple("x" if column in alike else cell for column, cell in enumerate(row))
            for row in case.rows
        ),
        single_use=data.draw(st.booleans()),
        diversity=data.draw(st.sampled_from((None, *DIVERSITIES))),
    )
    common = [stars for stars in case.patterns if case.allows([stars] * len(case.rows))]
    assume(common)
    problem = case.problem()
    solution = pattern_greedy(problem)
    assert isinstance(solution.assignment, Patterns)
    stars = [tuple(row) for row in problem.recoding.stars(problem).tolist()]  # type: ignore[attr-defined]
    assert case.allows([stars[at] for at in solution.assignment.index])


def test_the_common_pattern_is_the_last_resort() -> None:
    """Rows that are made first keep the diversity, what they leave does not, and nobody moves."""
    rows = (("x", "x"),) * 3 + (("x", "y"), ("x", "z"), ("x", "w"))
    mask = Mask(patterns=((), ("b",)))
    case = PatternCase(rows, tuple("qqpppp"), 2, mask, (1, 1), diversity=Diversity(l=1.5))
    assert pattern_greedy(case.problem()).objective == case.optimum() == 6.0


def test_records_left_are_placed_where_it_costs_least() -> None:
    """One record of another kind joins, opens a row by records to spare, or closes a small row."""
    rows = (("x", "x"),) * 4 + (("x", "y"),)
    spare = PatternCase(rows, ("p",) * 5, 2, Mask(), (1, 1)).problem()
    assert pattern_greedy(spare).objective == 2.0
    tight = PatternCase(rows[2:], ("p",) * 3, 2, Mask(), (1, 1)).problem()
    assert pattern_greedy(tight).objective == 3.0
    joins = PatternCase(
        (("x", "x"), ("x", "y"), ("x", "z")) + (("y", "x"),) * 2, ("p",) * 5, 3, Mask(), (1, 1)
    ).problem()
    assert pattern_greedy(joins).objective == 10.0
    # Dearer than being suppressed is no pattern.
    lone = PatternCase(rows, ("p",) * 5, 2, Mask(), (9, 1), suppression=True).problem()
    assert pattern_greedy(lone).objective == 2.0


def test_the_search_opens_rows_that_the_greedy_missed() -> None:
    """The tight case of Theorem 4: the greedy is m - 1 times the optimum, the search below 2."""
    k = m = 4
    rows = [("1",) * m] * k
    for column in range(m):
        for number in range(k - 1):
            row = ["1"] * m
            row[column] = f"{column}-{number}"
            rows.append(tuple(row))
    names = tuple("abcd")
    mask = Mask(patterns=((), *((name,) for name in names), names))
    problem = PatternCase(tuple(rows), ("p",) * len(rows), k, mask, (1,) * m).problem()
    assert pattern_greedy(problem).objective == (m - 1) * m**2
    assert m**2 <= pattern_search(problem).objective < 2 * m**2


def test_orders_of_equal_patterns_are_tried_and_told() -> None:
    """The best of them is kept, the first is that of the mask, the same seed gives the same."""
    rng = np.random.default_rng(3)
    rows = tuple(tuple(rng.choice(["x", "y", "z"], 5)) for _ in range(60))
    frame_case = PatternCase(rows, ("p",) * 60, 3, Mask(), (1,) * 5)
    problem = _wide(frame_case)
    first, best = pattern_greedy(problem), pattern_greedy(problem, orders=12, seed=5)
    assert best.objective < first.objective
    assert f"{best.objective:g} to" in best.trace[-1]
    assert f"{first.objective:g} in that of the mask" in best.trace[-1]
    again = pattern_greedy(problem, orders=12, seed=5)
    assert again.trace == best.trace
    assert again.objective == best.objective


def _wide(case: PatternCase) -> Problem:
    """Return the problem of a case with more columns than its own names."""
    names = [f"c{at}" for at in range(len(case.rows[0]))]
    data = table_of(pd.DataFrame(list(case.rows), columns=names))
    return Problem(data, case.k, PatternGuided(case.mask), Suppressions())


def test_bad_options_and_masks_are_refused() -> None:
    """An unknown mode, no orders, the paper's mode without suppression, a mask nobody fits."""
    rows = (("x", "x"), ("y", "y"), ("x", "y"))
    problem = PatternCase(rows, ("p",) * 3, 2, Mask(), (1, 1)).problem()
    with pytest.raises(InputError, match="mode"):
        pattern_greedy(problem, mode="lax")
    with pytest.raises(InputError, match="orders"):
        pattern_greedy(problem, orders=0)
    with pytest.raises(InputError, match="suppression=True"):
        pattern_greedy(problem, mode="paper")
    lonely = problem.replace(recoding=PatternGuided(Mask(suppress_at_most=0)))
    with pytest.raises(NoSolution, match="shares no row with 1 others"):
        pattern_greedy(lonely)
    kept = problem.replace(recoding=PatternGuided(Mask(suppress_at_most=1)))
    with pytest.raises(NoSolution, match="does not prove"):
        pattern_greedy(kept)


def test_without_time_there_is_a_release_all_the_same() -> None:
    """All records are published as stars, or suppressed; the search keeps its start."""
    rows = (("x", "x"), ("x", "x"), ("y", "y"), ("x", "y"))
    case = PatternCase(rows, ("p",) * 4, 2, Mask(), (1, 1))
    budget = Budget()
    budget.interrupt()
    assert pattern_greedy(case.problem(), budget=budget).objective == 8.0
    alone = replace(case, suppression=True)
    assert pattern_greedy(alone.problem(), budget=budget).suppressed == 4
    start = Patterns(np.full(4, 3))
    kept = pattern_search(case.problem(), start=start, budget=budget)
    assert kept.objective == 8.0
    assert isinstance(kept, Solution)
    assert "interrupt" in str(kept.status)


@given(data=st.data())
def test_packed_rows_show_what_patterns_show(data: st.DataObject) -> None:
    """Two rows agree in the bits of a pattern exactly if they agree in its columns."""
    m = data.draw(st.integers(1, 6))
    largest = data.draw(st.sampled_from([0, 1, 5, 2**20, 2**31 - 2]))
    cell = st.sampled_from([0, largest // 2, largest])
    codes = np.array(
        data.draw(st.lists(st.lists(cell, min_size=m, max_size=m), min_size=1, max_size=8)),
        np.int32,
    )
    stars = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=m, max_size=m), min_size=1, max_size=4))
    )
    packed = pack_rows(codes, stars)
    for pattern, row in enumerate(stars):
        labels, _ = rows_alike(packed, pattern)
        shown = codes[:, ~row]
        alike = (shown[:, None] == shown[None]).all(axis=2)
        assert np.array_equal(alike, labels[:, None] == labels[None])
