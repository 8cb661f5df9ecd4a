"""Exact methods that start from any release there is: its loss is never taken for the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import Classes, Freeform, InvalidAssignment, Mask, Solution
from anonymip.assignments import SUPPRESSED, Cover, Patterns
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.exact.patterns.pattern_fpt import pattern_fpt
from anonymip.exact.patterns.pattern_ilp import pattern_ilp
from anonymip.exact.patterns.pattern_pairs import pattern_pairs
from tests.brute_force import Groups
from tests.random_patterns import PatternCase, pattern_cases
from tests.random_problems import Case, cases

#: Places among the releases by rising loss, from the best or from the worst.
PLACES = st.integers(-20, 20)


def assert_optimal(found: Solution, best: float, slack: float) -> None:
    """Assert that no bound exceeds the optimum, and that what is called optimal is."""
    assert found.objective >= best - slack
    assert found.bound is None or found.bound.value <= best + slack
    if found.is_optimal:
        assert found.objective <= best + 1e-6 * max(1.0, abs(best))


def labels_of(groups: Groups, n: int) -> Classes:
    """Return a release of brute force as classes."""
    labels = np.full(n, SUPPRESSED)
    for label, group in enumerate(groups):
        labels[list(group)] = label
    return Classes(labels)


@settings(max_examples=100)
@given(
    cases(largest=6),
    PLACES,
    st.sampled_from(["column-generation", "auto", "set-partition", "bigm"]),
)
def test_classes_from_any_release(case: Case, at: int, way: str) -> None:
    """The sum and the worst record, with and without suppression."""
    problem, releases = case.problem(), sorted(case.releases(), key=case.release_loss)
    start = labels_of(releases[at % len(releases)], case.n)
    if way == "column-generation":
        assume(problem.compiled.superadditive)
        found = column_generation(problem, start=start)
    else:
        assume(way != "bigm" or problem.compiled.has_tables)
        found = equivalence_mip(problem, formulation=way, start=start)
    best = case.optimum()
    assert_optimal(found, best, 1e-6 * max(1.0, abs(best)))


@settings(max_examples=60)
@given(
    cases(suppression=False, largest=6, attributes=2),
    PLACES,
    st.sampled_from(["column-generation", "auto", "set-cover"]),
)
def test_covers_from_any_classes(case: Case, at: int, way: str) -> None:
    """Every record is published with its class."""
    problem = case.problem().replace(recoding=Freeform())
    releases = sorted(case.releases(), key=case.release_loss)
    assume(problem.compiled.monotone)
    start = Cover.of_classes(labels_of(releases[at % len(releases)], case.n))
    try:
        Solution.of(problem, start, method="start")
    except InvalidAssignment:
        assume(False)
    if way == "column-generation":
        found = column_generation(problem, start=start)
    else:
        found = freeform_mip(problem, formulation=way, start=start)
    best = case.cover_optimum()
    assert_optimal(found, best, 1e-6 * max(1.0, abs(best)))


PATTERN_METHODS: dict[str, Callable[..., Solution]] = {
    "auto": pattern_ilp,
    "strong": partial(pattern_ilp, formulation="pattern-strong"),
    "parts": partial(pattern_ilp, formulation="parts"),
    "rows": partial(pattern_ilp, second_goal="rows"),
    "guesses": pattern_fpt,
    "pairs": pattern_pairs,
}


@settings(max_examples=150)
@given(pattern_cases(ruled=True), PLACES, st.sampled_from([0, 1, 2, None]))
@pytest.mark.parametrize("way", PATTERN_METHODS)
def test_patterns_from_any_release(way: str, case: PatternCase, at: int, most: int | None) -> None:
    """Costs are whole numbers: the optimum is met exactly."""
    if way in ("guesses", "parts", "pairs"):
        case = replace(case, diversity=None, single_use=case.single_use and way == "guesses")
    if way == "pairs":
        case = replace(case, k=2)
    case = replace(case, most=most if case.suppression else None)
    releases = sorted(case.releases(), key=case.loss)
    assume(releases)
    problem = case.problem()
    stars = problem.recoding.stars(problem)  # type: ignore[union-attr]
    numbers = {tuple(map(bool, row)): number for number, row in enumerate(stars)}
    chosen = releases[at % len(releases)]
    start = Patterns(np.array([SUPPRESSED if one is None else numbers[one] for one in chosen]))
    found = PATTERN_METHODS[way](problem, start=start)
    best = case.optimum()
    assert best is not None
    assert_optimal(found, best, 1e-9)
    assert found.is_optimal or most is not None


@pytest.mark.parametrize("way", PATTERN_METHODS)
def test_a_large_price_hides_no_stars(way: str) -> None:
    """One record has to be suppressed; a start shows the six others under dear patterns."""
    rows = tuple(map(tuple, ["xxp", "xxp", "xyp", "xyp", "yyp", "yyp", "zzr"]))
    case = PatternCase(
        rows, ("p",) * 7, 2, Mask(suppress_at_most=2), (1, 1, 1), suppression=True, price=1e10
    )
    problem = case.problem()
    stars = problem.recoding.stars(problem).tolist()  # type: ignore[union-attr]
    dear = stars.index([True, True, False])
    start = Patterns(np.array([*[dear] * 6, SUPPRESSED]))
    found = PATTERN_METHODS[way](problem, start=start)
    assert found.objective == 1e10 or not found.is_optimal


def test_large_costs_hide_no_cheap_stars() -> None:
    """The first attribute has to be hidden, at a cost beside which the others are small."""
    rows = tuple(map(tuple, ["1xp", "2xp", "3xq", "4xq", "5yq", "6yq"]))
    problem = PatternCase(rows, ("p",) * 6, 2, Mask(), (1e4, 1e-6, 1e-6)).problem()
    least = pattern_fpt(problem).objective
    for way in (pattern_ilp, partial(pattern_ilp, formulation="pattern-strong"), pattern_pairs):
        found = way(problem, start=Patterns(np.full(6, 7)))
        assert found.objective < least + 5e-7 or not found.is_optimal
