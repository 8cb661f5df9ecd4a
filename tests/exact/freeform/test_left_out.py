"""Freeform covers that leave records out: optimum, bounds and methods within a limit."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Budget,
    Cap,
    Cover,
    Diversity,
    InputError,
    InvalidAssignment,
    Microdata,
    NoSolution,
    Problem,
    Solution,
    build,
    certify,
    lower_bound,
    solve,
)
from anonymip.heuristics.growing.raised_price import bound_within_limit, with_price
from anonymip.methods.best_bound import best_bound
from anonymip.models import set_start
from anonymip.recodings import Freeform
from tests.brute_force import starred
from tests.by_hand import by_cover
from tests.cover_brute_force import reciprocal_covers, regular_optimum
from tests.exact.leaving_out import PRICES, check_left_out
from tests.random_problems import Case, cases, ruled_cases


def least(case: Case, most: int, price: float | None, reciprocal: bool = False) -> float:
    """Return the optimum by trying every set of records to leave out; infinite if none will do."""
    each = price
    if each is None:
        each = case.loss.naive([starred(column) for column in case.columns])
    best = math.inf
    for out in range(min(most, case.n) + 1):
        for gone in combinations(range(case.n), out):
            kept = [record for record in range(case.n) if record not in gone]
            found = _without(case, kept, reciprocal)
            if case.worst:
                best = min(best, max([found] + [each] * bool(out)))
            else:
                best = min(best, found + out * each)
    return best


def _without(case: Case, kept: list[int], reciprocal: bool) -> float:
    """Return the least loss of a cover of some records, by sets of these."""

    def loss(one: tuple[int, ...]) -> float:
        return case.set_loss([kept[place] for place in one])

    if not kept:
        return -math.inf if case.worst else 0.0
    if len(kept) < case.k:
        return math.inf
    if reciprocal:
        sizes = range(case.k, len(kept) + 1)
        covers = (sets for size in sizes for sets in reciprocal_covers(len(kept), size))
        return min((sum(map(loss, sets)) for sets in covers), default=math.inf)
    try:
        return regular_optimum(len(kept), [case.k] * len(kept), loss, case.worst)[0]
    except KeyError:
        return math.inf


def asked(case: Case, most: int, price: float | None, reciprocal: bool = False) -> Problem:
    """Return the problem for the package."""
    recoding = Freeform(reciprocal, None, most_suppressed=most, suppression_price=price)
    return replace(case, suppression=False).problem().replace(recoding=recoding)


@settings(max_examples=40)
@given(
    cases(largest=6, suppression=False),
    st.integers(0, 4),
    PRICES,
    st.sampled_from(["freeform", "set-cover"]),
    st.sampled_from(["best", "none"]),
    st.sampled_from(["bounds", "gaps"]),
)
def test_the_optimum_is_that_of_brute_force(
    case: Case, most: int, price: float | None, formulation: str, start: str, ranges: str
) -> None:
    """Both models know the limit and the price, whatever they start from."""
    problem, best = asked(case, most, price), least(case, most, price)
    options = {"formulation": formulation, "warm_start": start}
    if formulation == "freeform":
        options["ranges"] = ranges
    found = solve(problem, "freeform-mip", options=options)
    check_left_out(found, case, most, best)
    assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


@settings(max_examples=30)
@given(ruled_cases(largest=6), st.integers(0, 3), st.booleans())
def test_rules_are_kept_by_those_who_stay(case: Case, most: int, reciprocal: bool) -> None:
    """Limits and the largest loss; a diversity is refused, with the reason."""
    case = replace(case, suppression=False, worst=case.worst and not reciprocal)
    if case.rules is not None and case.rules.sensitive:
        with pytest.raises(InputError, match=r"does not keep|diversity"):
            asked(case, most, None, reciprocal)
        return
    problem = asked(case, most, None, reciprocal)
    best = least(case, most, None, reciprocal)
    try:
        found = solve(problem, "freeform-mip")
    except NoSolution:
        assert best == math.inf
        return
    assert found.assignment.suppressed <= most
    assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


METHODS = ("auto", "hungarian", "sort-greedy", "greedy", "min-cost-flow", "ring", "nh", "reassign")


@settings(max_examples=40)
@given(
    cases(largest=7, suppression=False, losses=("gcp", "weighted", "curved")),
    st.integers(0, 3),
    PRICES,
    st.sampled_from(METHODS),
)
def test_no_method_leaves_out_more_or_claims_too_much(
    case: Case, most: int, price: float | None, method: str
) -> None:
    """Never more than asked, never below the optimum, no bound above it, never worse than none."""
    problem, best = asked(case, most, price), least(case, most, price)
    found = solve(problem, method)
    check_left_out(found, case, most, best)
    bare = solve(problem.replace(recoding=Freeform()), method, bound=False)
    assert found.objective <= bare.objective + case.slack(bare.objective)


@settings(max_examples=40)
@given(
    cases(largest=7, suppression=False, losses=("gcp", "weighted", "curved")),
    st.integers(0, 3),
    PRICES,
    st.floats(0.01, 2.0),
    st.booleans(),
)
def test_bounds_hold_where_records_may_leave(
    case: Case, most: int, price: float | None, raised: float, reciprocal: bool
) -> None:
    """The linear program, nearest neighbours and duals, with the price and with a raised one."""
    problem = asked(case, most, price, reciprocal)
    assume(problem.n <= 5 or not reciprocal)
    best = least(case, most, price, reciprocal)
    bounds = [lower_bound(problem)]
    priced = lower_bound(with_price(problem, raised))
    bounds += [None if priced is None else bound_within_limit(problem, raised, priced)]
    whole = Cover.of(np.tile(np.arange(problem.n), (problem.n, 1)))
    release = Solution.of(problem, whole, method="by hand")
    bounds.append(best_bound(problem, [release], budget=Budget()))
    assert all(bound is None or bound.value <= best + case.slack(best) for bound in bounds)


def table(outliers: int = 3, n: int = 40) -> Microdata:
    """Return persons, some of whom earn far more than all others."""
    pay = [10 + (7 * i) % 12 for i in range(n)]
    pay[:outliers] = [300 * (i + 1) for i in range(outliers)]
    frame = pd.DataFrame({"age": [20 + (11 * i) % 50 for i in range(n)], "pay": pay})
    return Microdata(frame, (Attribute("age", domain=(0, 120)), Attribute("pay", domain=(0, 1000))))


@pytest.mark.parametrize("method", METHODS)
def test_the_worst_outliers_are_those_who_leave(method: str) -> None:
    """Three that lie far out are left out by every method, and counted."""
    nobody = math.inf
    for most in (0, 3, 5):
        recoding = Freeform(most_suppressed=most, suppression_price=0.1)
        found = solve(Problem(table(), 3, recoding), method, effort="quick", bound=False)
        assert isinstance(found.assignment, Cover)
        assert found.assignment.suppressed <= most
        nobody = found.objective if most == 0 else nobody
        assert found.objective <= nobody
        if most:
            assert {0, 1, 2} <= set(np.flatnonzero(found.assignment.sizes == 0).tolist())
            assert f"{found.assignment.suppressed} suppressed" in found.summary()


def test_the_limit_holds_when_time_has_ended() -> None:
    """A budget that is spent leaves a release that is allowed."""
    problem = Problem(table(), 3, Freeform(most_suppressed=0.05, suppression_price=0.0))
    for method in ("auto", "reassign", "greedy", "freeform-mip"):
        assert solve(problem, method, budget=Budget.of(1e-9)).assignment.suppressed <= 2


def test_a_start_keeps_its_outliers_or_better_ones() -> None:
    """Improvement begins from the release that is given, and is never above it."""
    problem = Problem(table(), 3, Freeform(most_suppressed=4, suppression_price=0.1))
    first = solve(problem, "ring", bound=False)
    from anonymip.heuristics.freeform.reassign import reassign

    assert reassign(problem, start=first.assignment).objective <= first.objective


def test_records_that_limits_keep_apart_from_all_leave() -> None:
    """No set can hold them; where they are more than may leave, that is said with their number."""
    limit = Cap("pay", 30)
    asked = Problem(table(), 3, Freeform(most_suppressed=3), limits=limit)
    for method in ("auto", "hungarian", "freeform-mip"):
        found = solve(asked, method, effort="quick", bound=False)
        assert np.flatnonzero(found.assignment.sizes == 0).tolist() == [0, 1, 2]
    few = asked.replace(recoding=Freeform(most_suppressed=2))
    with pytest.raises(NoSolution, match="leave 3 records without companions for any set, and 2"):
        solve(few, "hungarian")


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("method", ["auto", "hungarian", "freeform-mip"])
def test_where_limits_leave_nobody_all_are_left_out(method: str, reciprocal: bool) -> None:
    """That is the only release, and so the best one; with fewer suppressed there is none."""
    recoding = Freeform(suppression=True, reciprocal=reciprocal)
    asked = Problem(table(2, 8), 3, recoding, limits=Cap("age", 0.0))
    assert asked.microdata.frame["age"].value_counts().max() < 3
    found = solve(asked, method)
    assert found.is_optimal
    assert method in ("auto", found.method)
    assert found.assignment.suppressed == asked.n
    assert found.objective == asked.n * asked.m
    few = asked.replace(recoding=Freeform(most_suppressed=7, reciprocal=reciprocal))
    with pytest.raises(NoSolution):
        solve(few, method)


def test_a_start_with_suppressed_records_is_one_of_the_models() -> None:
    """Every variable takes a value, and the values keep every row."""
    problem = Problem(table(2, 8), 3, Freeform(most_suppressed=2, suppression_price=0.1))
    cover = solve(problem, "greedy", bound=False).assignment
    assert cover.suppressed == 2
    for formulation in ("freeform", "set-cover"):
        model = build(problem, formulation)
        set_start(model, cover)
        value = sum(v.value is None for v in model.component_data_objects(ctype=_var()))
        assert value == 0


def _var() -> type:
    import pyomo.environ as pyo

    return pyo.Var


def test_what_does_not_go_with_suppression_is_refused() -> None:
    """A diversity, degrees that differ, column generation, certificates: each with the reason."""
    data = table()
    plain = Problem(data, 3, Freeform(most_suppressed=2))
    with pytest.raises(InputError, match="makes no covers that leave records out"):
        solve(plain, "column-generation")
    with pytest.raises(InputError, match="without suppression"):
        certify(plain)
    with pytest.raises(InputError, match="the degrees differ"):
        Problem(data, 3, Freeform(degrees=(3,) * 39 + (4,), most_suppressed=2))
    ill = replace(data, frame=data.frame.assign(ill=["a", "b"] * 20), sensitive=("ill",))
    with pytest.raises(InputError, match="does not keep"):
        Problem(ill, 3, Freeform(suppression=True), diversity=Diversity(l=2))
    assert repr(Freeform()) == "Freeform(reciprocal=False, degrees=None)"
    assert eval(repr(plain.recoding)) == plain.recoding


def test_covers_with_empty_sets_are_checked() -> None:
    """A suppressed record lies in no set, and no more are suppressed than may be."""
    problem = Problem(table(0, 5), 2, Freeform(most_suppressed=1))
    ring = [[0, 1], [1, 2], [2, 3], [0, 3], []]
    assert by_cover(problem, ring).assignment.suppressed == 1
    needed = Cover.of([[0, 4], [1, 2], [2, 3], [0, 3], []])
    with pytest.raises(InvalidAssignment, match="lies in 1 sets where 2 are needed"):
        Solution.of(problem, needed, method="by hand")
    with pytest.raises(InvalidAssignment, match="2 suppressed records, and 1 may be"):
        by_cover(problem, [[0, 1], [1, 2], [0, 2], [], []])
    with pytest.raises(InvalidAssignment, match="does not lie in its own set"):
        by_cover(problem.replace(recoding=Freeform()), ring)


@pytest.mark.thorough
def test_where_exchanges_find_no_sets_classes_hold_them() -> None:
    """Under narrow limits auto takes rings within classes, which leave out no more than may be."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 100, 240), "y": rng.integers(0, 30, 240)})
    data = Microdata(frame, (Attribute("x", domain=(0, 100)), Attribute("y", domain=(0, 40))))
    asked = Problem(data, 5, Freeform(most_suppressed=10), limits=Cap("x", 2))
    found = solve(asked, bound=False, effort="quick")
    assert found.assignment.suppressed <= 10
    assert found.trace[0].startswith("each class holds a ring")
