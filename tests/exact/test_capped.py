"""Limits of suppression: never more than asked, and the least loss of all within them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Diversity,
    EquivalenceClasses,
    InputError,
    InvalidAssignment,
    Mask,
    Microdata,
    NoSolution,
    PatternGuided,
    Problem,
    Solution,
    anonymize,
    lower_bound,
    publish,
    solve,
    verify,
)
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.patterns.pattern_pairs import pattern_pairs
from anonymip.heuristics.growing import raised_price
from anonymip.heuristics.growing.raised_price import bound_within_limit, with_price
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.heuristics.patterns.pattern_greedy import pattern_greedy
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.runtime import kernels
from anonymip.runtime.budget import Budget
from tests import brute_force
from tests.bounds.patterns.pattern_references import lettered
from tests.brute_force import Groups
from tests.by_hand import by_classes
from tests.exact.leaving_out import PRICES, check_left_out
from tests.random_problems import Case, cases, leaning, ruled_cases


def _loss(case: Case, groups: Groups, price: float | None) -> float:
    """Return the loss of a release, whose suppressed records cost a price of their own."""
    if price is None:
        return case.release_loss(groups)
    kept = sum(
        len(group) * brute_force.record_loss(case.columns, case.loss.naive, group)
        for group in groups
    )
    return kept + price * (case.n - sum(map(len, groups)))


def _least(case: Case, most: int, price: float | None) -> float:
    """Return the optimum under a limit of suppression by enumeration."""
    return min(
        (
            _loss(case, groups, price)
            for groups in case.releases()
            if case.n - sum(map(len, groups)) <= most
        ),
        default=math.inf,
    )


def _problem(case: Case, most: int, price: float | None) -> Problem:
    recoding = EquivalenceClasses(most_suppressed=most, suppression_price=price)
    return case.problem().replace(recoding=recoding)


@settings(max_examples=60)
@given(cases(smallest=4, largest=7, suppression=True), st.integers(0, 3), PRICES)
def test_the_optimum_is_that_of_brute_force(case: Case, most: int, price: float | None) -> None:
    """The models know the limit itself, whatever a suppressed record costs."""
    problem, least = _problem(case, most, price), _least(case, most, price)
    for method in ("equivalence-mip", "auto"):
        found = solve(problem, method)
        check_left_out(found, case, most, least)
        assert not found.is_optimal or found.objective <= least + case.slack(least)
        if method == "equivalence-mip":
            assert found.objective <= least + case.slack(least)


@settings(max_examples=40)
@given(ruled_cases(), st.integers(0, 3))
def test_rules_are_kept_by_those_who_stay(case: Case, most: int) -> None:
    """Under rules too: the optimum, or a refusal that says what cannot be kept."""
    case = replace(case, suppression=True)
    least = _least(case, most, None)
    try:
        found = solve(_problem(case, most, None), "equivalence-mip")
    except (NoSolution, InputError):
        assert least == math.inf
        return
    assert found.assignment.suppressed <= most
    assert found.objective == pytest.approx(least, abs=1e-7)


HEURISTICS = ("local-search", "greedy-search", "mondrian", "column-generation", "split-carry")


@settings(max_examples=60)
@given(
    cases(smallest=4, largest=7, suppression=True, losses=("gcp", "weighted", "curved")),
    st.integers(0, 3),
    PRICES,
    st.sampled_from(HEURISTICS),
)
def test_no_method_leaves_out_more_or_claims_too_much(
    case: Case, most: int, price: float | None, method: str
) -> None:
    """Never more than asked, never below the optimum, no bound above it, never worse than none."""
    problem, least = _problem(case, most, price), _least(case, most, price)
    found = solve(problem, method)
    check_left_out(found, case, most, least)
    bare = solve(problem.replace(recoding=EquivalenceClasses()), method, bound=False)
    assert found.objective <= bare.objective + case.slack(bare.objective)


@settings(max_examples=60)
@given(
    cases(smallest=4, largest=7, suppression=True, losses=("gcp", "weighted")),
    st.integers(1, 3),
    PRICES,
    st.floats(0.01, 2.0),
)
def test_a_bound_with_a_raised_price_holds_under_the_limit(
    case: Case, most: int, price: float | None, raised: float
) -> None:
    """Less what the limit allows of the rise; also where the price binds."""
    problem, least = _problem(case, most, price), _least(case, most, price)
    bound = lower_bound(with_price(problem, raised))
    assume(bound is not None)
    assert bound is not None
    assert bound_within_limit(problem, raised, bound).value <= least + case.slack(least)


def test_exact_cells_are_not_optimal_where_leaving_is_cheaper() -> None:
    """A loss that charges exact cells has no floor there once a suppressed record costs less."""
    data = Microdata(pd.DataFrame({"a": [1, 1, 1, 1]}), (Attribute("a", domain=(0, 10)),))
    recoding = EquivalenceClasses(most_suppressed=2, suppression_price=0.125)
    problem = Problem(data, 2, recoding, leaning)
    exact = by_classes(problem, [0] * 4)
    bound = lower_bound(problem)
    assert bound is not None
    assert not exact.with_bound(bound).is_optimal
    assert solve(problem).assignment.suppressed == 2


def clinic(n: int = 60, outliers: int = 3) -> pd.DataFrame:
    """Return patients of two wards, some of whom stay much longer than all others."""
    stay = [1 + (7 * i) % 12 for i in range(n)]
    stay[:outliers] = [200 + 40 * i for i in range(outliers)]
    return pd.DataFrame(
        {"age": [20 + (11 * i) % 50 for i in range(n)], "stay": stay, "ward": ["a", "b"] * (n // 2)}
    )


KNOWN = (
    Attribute("age", domain=(0, 120)),
    Attribute("stay", domain=(0, 400)),
    Attribute("ward", "categorical", domain=("a", "b")),
)


@pytest.mark.thorough("column-generation")
@pytest.mark.parametrize("method", ["local-search", "mondrian", "k-member", "column-generation"])
def test_more_allowance_never_loses_more(method: str) -> None:
    """A release within a tighter limit is one within a looser one."""
    data, before = Microdata(clinic(), KNOWN), math.inf
    for most in (0, 1, 3, 6):
        recoding = EquivalenceClasses(most_suppressed=most, suppression_price=0.5)
        found = solve(Problem(data, 3, recoding), method, effort="quick", bound=False)
        assert found.assignment.suppressed <= most
        assert found.objective <= before + 1e-9
        before = found.objective
    assert {0, 1, 2} <= set(np.flatnonzero(found.assignment.labels == -1).tolist())


@pytest.mark.parametrize("method", [column_generation, local_search, equivalence_mip])
def test_a_known_release_is_not_lost(method: Callable[..., Solution]) -> None:
    """Whatever a search finds before it is ended; a start that breaks the limit is refused."""
    recoding = EquivalenceClasses(most_suppressed=3, suppression_price=0.5)
    problem = Problem(Microdata(clinic(), KNOWN), 3, recoding)
    known, ended = solve(problem, "local-search", bound=False), Budget()
    ended.interrupt()
    found = method(problem, start=known.assignment, budget=ended)
    assert found.objective <= known.objective
    assert not found.is_optimal
    looser = problem.replace(recoding=EquivalenceClasses(True, suppression_price=0.0))
    beyond = solve(looser, "local-search", bound=False).assignment
    assert beyond.suppressed > 3
    with pytest.raises(InvalidAssignment, match="suppressed records, and 3 may be"):
        method(problem, start=beyond)


@pytest.mark.parametrize(
    "method", [column_generation, pattern_greedy, pattern_search, pattern_pairs]
)
def test_seconds_are_those_of_all_prices(
    method: Callable[..., Solution], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a clock that moves on by a second with each price that is tried, and not else."""
    tried: list[float] = []

    def priced(problem: Problem, raised: float) -> Problem:
        tried.append(raised)
        return with_price(problem, raised)

    monkeypatch.setattr(raised_price, "with_price", priced)
    clock = SimpleNamespace(perf_counter=lambda: float(len(tried)))
    monkeypatch.setattr(kernels, "time", clock)
    monkeypatch.setattr(kernels, "compilation_seconds", lambda: 0.0)
    patterns = PatternGuided(Mask(suppress_at_most=2), most_suppressed=1, suppression_price=0.5)
    rows = ["aax", "aby", "abx", "bax", "bay", "bby", "aay", "bbx", "ccz", "dcx", "eez"]
    problem = Problem(lettered(rows), 2, patterns)
    if method is column_generation:
        classes = EquivalenceClasses(most_suppressed=1, suppression_price=0.5)
        problem = Problem(lettered(rows), 2, classes)
    found = method(problem)
    assert len(tried) > 1
    assert found.seconds == len(tried)


def test_the_limit_holds_when_time_has_ended() -> None:
    """A budget that is spent leaves a release that is allowed."""
    recoding = EquivalenceClasses(most_suppressed=0.05, suppression_price=0.0)
    problem = Problem(Microdata(clinic(), KNOWN), 3, recoding)
    for method in ("auto", "local-search", "greedy-search", "equivalence-mip"):
        spent = solve(problem, method, budget=Budget.of(1e-9))
        assert spent.assignment.suppressed <= 3


def test_a_release_says_how_many_were_left_out_and_may_be() -> None:
    """Manifest and verification hold limit and price; what was tampered with fails."""
    frame = clinic()
    recoding = EquivalenceClasses(suppression_price=0.5)
    release = anonymize(frame, KNOWN, 3, recoding=recoding, most_suppressed=0.05)
    told = release.manifest
    assert told["left_out"]["suppressed"] == told["left_out"]["most"] == 3
    assert told["objective"]["suppression_price"] == 0.5
    assert told["objective"]["value"] == pytest.approx(told["ncp"] - 3 * (3 - 0.5))
    assert verify(frame, release.frame, told).ok
    fewer = {**told, "left_out": {**told["left_out"], "most": 2}}
    found = verify(frame, release.frame, fewer)
    assert any("3 suppressed records, of 2 that may be" in one for one in found.problems)
    cheaper = {**told, "objective": {**told["objective"], "suppression_price": 0.25}}
    assert any("objective value" in one for one in verify(frame, release.frame, cheaper).problems)
    solution = release.solution
    labels = solution.assignment.labels.copy()
    labels[labels == labels.max()] = -1
    with pytest.raises(InvalidAssignment, match="suppressed records, and 3 may be"):
        by_classes(solution.problem, labels)
    free = solution.problem.replace(recoding=EquivalenceClasses(True))
    without = publish(Solution.of(free, solution.assignment, method="by hand"))
    assert "most" not in without.manifest["left_out"]


def test_what_cannot_be_kept_is_said_before_the_work() -> None:
    """A value that too many share, also without those who may be left out."""
    frame = clinic().assign(ill=["flu"] * 40 + ["cold"] * 20)
    data = Microdata(frame, KNOWN, sensitive=("ill",))
    with pytest.raises(InputError, match="also without 19 records that may be suppressed"):
        Problem(data, 3, EquivalenceClasses(most_suppressed=19), diversity=Diversity(l=2))
    enough = Problem(data, 3, EquivalenceClasses(most_suppressed=20), diversity=Diversity(l=2))
    assert solve(enough, "local-search", effort="quick").assignment.suppressed == 20


@pytest.mark.parametrize("price", [-1.0, math.inf, math.nan, True, "dear"])
def test_wrong_prices_are_refused(price: object) -> None:
    """A price is a loss."""
    with pytest.raises(InputError, match="suppression_price is"):
        EquivalenceClasses(suppression_price=price)  # type: ignore[arg-type]
