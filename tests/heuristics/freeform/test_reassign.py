"""Reassignment: never above its start, never below the optimum, every rule kept."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Bottleneck,
    Budget,
    Cover,
    Diversity,
    InputError,
    InvalidAssignment,
    Problem,
    Stopped,
    UnsupportedObjective,
    census,
)
from anonymip.effort import EFFORTS
from anonymip.heuristics.freeform.reassign import STARTS, MatchingExchange, reassign, swap_matches
from anonymip.heuristics.freeform.ring import ring
from anonymip.heuristics.freeform.set_growth import FreeformNumbers
from anonymip.recodings import Cap, Freeform
from tests.brute_force import Column
from tests.by_hand import with_illness
from tests.hard_losses import PRODUCT
from tests.random_problems import LOSSES, Case, cases, tables


def loss_of(case: Case, cover: Cover) -> float:
    """Return the loss of a cover by brute force."""
    return sum(case.set_loss(cover.of_record(i).tolist()) for i in range(case.n))


@settings(max_examples=60)
@given(cases(suppression=False), st.booleans(), st.integers(0, 3))
def test_between_the_optimum_and_the_start(case: Case, reciprocal: bool, seed: int) -> None:
    """The loss is true; with reciprocal sets it is compared with the start only."""
    recoding = Freeform(reciprocal=reciprocal)
    problem = case.problem().replace(recoding=recoding)
    start = ring(problem)
    solution = reassign(problem, start=start.assignment, seed=seed, patience=1)
    loss = loss_of(case, solution.assignment)
    assert solution.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)
    assert solution.objective <= start.objective + case.slack(start.objective)
    if set(solution.assignment.sizes.tolist()) == {case.k}:
        best = case.cover_optimum()
        assert solution.objective >= best - case.slack(best)


@settings(max_examples=60)
@given(cases(suppression=False))
def test_the_optimum_for_k_2(case: Case) -> None:
    """One of two matchings assigned anew is the best partner for every record at once."""
    case = replace(case, k=2)
    problem = case.problem().replace(recoding=Freeform())
    start = ring(problem)
    exchange = MatchingExchange(problem, 2, np.random.default_rng(0))
    cover, gain, stopped = exchange.run_pass(start.assignment, Budget())
    assert stopped is None
    loss = loss_of(case, cover)
    assert gain == pytest.approx(start.objective - loss, rel=1e-7, abs=1e-7)
    assert loss == pytest.approx(case.cover_optimum(), rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(tables(smallest=5, largest=7), st.data())
def test_degrees_of_their_own_are_kept(columns: tuple[Column, ...], data: st.DataObject) -> None:
    """Sets that differ in size exchange originals two by two; the gain is what is told."""
    case = Case(columns, 2, LOSSES["gcp"])
    larger = data.draw(st.sets(st.integers(0, case.n - 1), min_size=3, max_size=case.n))
    members = sorted(larger)
    sets: list[list[int]] = [sorted({i, (i + 1) % case.n}) for i in range(case.n)]
    # One cycle more among some records, where it repeats no match.
    following = {one: members[(at + 1) % len(members)] for at, one in enumerate(members)}
    if any(other in sets[one] for one, other in following.items()):
        return
    for one, other in following.items():
        sets[one] = sorted([*sets[one], other])
    degrees = tuple(len(one) for one in sets)
    problem = case.problem().replace(recoding=Freeform(degrees=degrees))
    start = Cover.of(sets)
    cover, gain, _ = swap_matches(problem, start, False, np.random.default_rng(0), Budget())
    assert gain == pytest.approx(loss_of(case, start) - loss_of(case, cover), abs=1e-9)
    solution = reassign(problem, start=start)
    assert solution.assignment.sizes.tolist() == list(degrees)
    assert solution.objective <= loss_of(case, start) + 1e-9


@settings(max_examples=30)
@given(cases(suppression=False), st.integers(0, 2))
def test_swaps_keep_covers_reciprocal_and_tell_their_gain(case: Case, seed: int) -> None:
    """The recoding accepts the cover; four sets change at a time."""
    problem = case.problem().replace(recoding=Freeform(reciprocal=True))
    start = ring(problem)
    rng = np.random.default_rng(seed)
    cover, gain, _ = swap_matches(problem, start.assignment, True, rng, Budget())
    problem.recoding.check(problem, cover)
    fall = start.objective - loss_of(case, cover)
    assert gain == pytest.approx(fall, rel=1e-7, abs=1e-7)


def test_the_optimum_by_hand() -> None:
    """Values 0, 1, 10, 11 in the order 0, 10, 1, 11: the ring loses 40, the pairs lose 4."""
    case = Case((Column((0.0, 10.0, 1.0, 11.0)),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=Freeform())
    start = Cover.of([[0, 1], [1, 2], [2, 3], [3, 0]])
    assert loss_of(case, start) == pytest.approx((10 + 9 + 10 + 11) / 11)
    assert reassign(problem, start=start).objective == pytest.approx(4 / 11)
    reciprocal = problem.replace(recoding=Freeform(reciprocal=True))
    pairs = Cover.of([[0, 1], [0, 1], [2, 3], [2, 3]])
    assert reassign(reciprocal, start=pairs).objective == pytest.approx(4 / 11)


def test_limits_and_diversity_are_kept() -> None:
    """Exchanges that break a rule are not made; others are."""
    rng = np.random.default_rng(4)
    with_sensitive = with_illness(census(40, 3, seed=2), rng.integers(0, 4, 40))
    plain = Problem(with_sensitive, 3, Freeform())
    diversity = Diversity(distinct=2)
    codes = with_sensitive.sensitive_codes
    by_value = np.argsort(codes[:, 0], kind="stable").reshape(4, 10).T.ravel()
    sets = np.empty((40, 3), np.int64)
    sets[by_value] = np.stack([np.roll(by_value, -shift) for shift in range(3)], axis=1)
    start = Cover.of(sets)
    diverse = plain.replace(diversity=diversity)
    first = plain.compiled.total(plain.recoding.describe(plain, start), start)
    found = reassign(diverse, start=start)
    assert diversity.met_by(codes[found.assignment.matches]).all()
    assert reassign(plain, start=start).objective < first
    assert found.objective < first
    name = with_sensitive.names[1]
    described = plain.recoding.describe(plain, start)
    widest = float((described.upper - described.lower)[:, 1].max())
    capped = plain.replace(limits=(Cap(name, widest),))
    limited = reassign(capped, start=start)
    described = capped.recoding.describe(capped, limited.assignment)
    assert ((described.upper - described.lower)[:, 1] <= widest).all()
    assert limited.objective < first


def test_losses_without_tables() -> None:
    """All pairs are computed for small tables; large ones and swaps are refused."""
    columns = (Column((0.0, 10.0, 1.0, 11.0, 5.0)), Column((3.0, 1.0, 2.0, 1.0, 2.0)))
    case = Case(columns, 2, PRODUCT)
    problem = case.problem().replace(recoding=Freeform())
    start = ring(problem, order="variance")
    found = reassign(problem, start=Cover.of([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]))
    assert found.objective <= start.objective + 1e-9
    assert found.objective >= case.cover_optimum() - 1e-9
    with pytest.raises(UnsupportedObjective):
        reassign(problem.replace(recoding=Freeform(reciprocal=True), k=3), from_method="ring")


def test_too_many_records_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names parts as the way out."""
    monkeypatch.setattr(
        "anonymip.heuristics.freeform.reassign.NUMBERS", FreeformNumbers(untabled=4)
    )
    columns = (Column((0.0, 10.0, 1.0, 11.0, 5.0)), Column((3.0, 1.0, 2.0, 1.0, 2.0)))
    case = Case(columns, 2, PRODUCT)
    with pytest.raises(UnsupportedObjective, match="parts of at most 4"):
        reassign(case.problem().replace(recoding=Freeform()), from_method="ring")


def test_single_precision_is_never_above_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables keep costs in single precision; here a small one does."""
    monkeypatch.setattr("anonymip.heuristics.freeform.reassign.NUMBERS", FreeformNumbers(double=10))
    problem = Problem(census(60, 5, seed=1), 4, Freeform())
    start = ring(problem)
    assert reassign(problem, start=start.assignment).objective < start.objective


def test_the_largest_loss_is_never_above_the_start() -> None:
    """Sums are lowered, the best maximum is kept."""
    plain = Problem(census(60, 5, seed=1), 4, Freeform())
    problem = plain.replace(objective=Bottleneck(plain.objective))
    start = ring(problem)
    assert reassign(problem, start=start.assignment).objective <= start.objective


@pytest.mark.parametrize("from_method", STARTS)
def test_every_start(from_method: str) -> None:
    """Each method makes a start that is improved; the options and the seed are told."""
    problem = Problem(census(80, 5, seed=3), 4, Freeform())
    solution = reassign(problem, from_method=from_method, seed=7)
    first = float(solution.trace[0].removeprefix("start: "))
    assert solution.objective < first
    options = {"from_method": from_method, "patience": 3, "effort": "normal"}
    assert solution.options == options
    assert (solution.method, solution.seed) == ("reassign", 7)


def test_more_effort_loses_no_more() -> None:
    """Less effort makes the first passes of more effort, and says that more may gain more."""
    problem = Problem(census(150, 6, seed=3), 4, Freeform())
    found = {effort: reassign(problem, effort=effort) for effort in EFFORTS}
    losses = [found[effort].objective for effort in EFFORTS]
    assert losses[0] > losses[1] > losses[2]
    passes = [int(found[effort].trace[1].split()[0]) for effort in EFFORTS]
    assert passes == sorted(set(passes))
    told = ["more effort may gain more" in found[effort].trace[1] for effort in EFFORTS]
    assert told == [True, True, False]


@pytest.mark.parametrize("effort", EFFORTS)
def test_effort_counts_passes_and_not_seconds(effort: str) -> None:
    """With and without a deadline far away one seed gives one cover; parts are no exception."""
    problem = Problem(census(150, 6, seed=3), 4, Freeform())
    parts: tuple[dict[str, Any], ...] = ({}, {"part": 60, "jobs": 1})
    for options in parts:
        free = reassign(problem, effort=effort, seed=5, **options)
        timed = reassign(problem, effort=effort, seed=5, budget=Budget.of(600), **options)
        assert isinstance(free.assignment, Cover)
        assert isinstance(timed.assignment, Cover)
        assert (free.assignment.members == timed.assignment.members).all()
        assert free.trace == timed.trace


def test_a_budget_that_is_spent() -> None:
    """It leaves the start; so does an interrupt."""
    problem = Problem(census(80, 5, seed=3), 4, Freeform())
    start = ring(problem)
    late = reassign(problem, start=start.assignment, budget=Budget(deadline=time.monotonic() - 1.0))
    assert late.status.stopped is Stopped.TIME
    assert late.objective == start.objective
    budget = Budget()
    budget.interrupt()
    cut = reassign(problem, start=start.assignment, budget=budget)
    assert cut.status.stopped is Stopped.INTERRUPT


def test_a_pass_that_is_cut_short_keeps_what_it_gained() -> None:
    """Whatever matching the budget ends at, the cover is valid and its gain is true."""
    problem = Problem(census(60, 5, seed=3), 5, Freeform())
    start = ring(problem)
    for steps in range(1, 12):
        budget, heard = Budget(), []

        def listen(message: object, budget: Budget = budget, heard: list[object] = heard) -> None:
            heard.append(message)
            if len(heard) == steps:  # noqa: B023 - called within this turn only
                budget.interrupt()

        budget.progress = listen
        exchange = MatchingExchange(problem, 5, np.random.default_rng(1))
        cover, gain, _ = exchange.run_pass(start.assignment, budget)
        problem.recoding.check(problem, cover)
        total = problem.compiled.total(problem.recoding.describe(problem, cover), cover)
        assert gain == pytest.approx(start.objective - total, abs=1e-9)


def test_what_is_refused() -> None:
    """Other recodings, unknown starts, no patience, starts that are not allowed."""
    problem = Problem(census(20, 3, seed=3), 4, Freeform())
    with pytest.raises(InputError, match="improves freeform covers"):
        reassign(Problem(census(20, 3, seed=3), 4))
    with pytest.raises(InputError, match="sort-greedy, hungarian, ring, nh"):
        reassign(problem, from_method="mondrian")
    with pytest.raises(InputError, match="patience is 0"):
        reassign(problem, patience=0)
    with pytest.raises(InvalidAssignment):
        reassign(problem, start=Cover.of([[i] for i in range(20)]))


@pytest.mark.parametrize(
    ("degrees", "diversity"), [(None, None), ((3,) * 20_001, None), (None, Diversity(distinct=2))]
)
def test_tables_too_large_for_all_pairs_are_refused_at_once(
    degrees: tuple[int, ...] | None, diversity: Diversity | None
) -> None:
    """Before a start is made, if its sets will have one size; the remedy is to work on parts."""
    data = with_illness(census(20_001, 2, seed=0), np.arange(20_001) % 2)
    problem = Problem(data, 3, Freeform(degrees=degrees), diversity=diversity)
    with pytest.raises(InputError, match=r"20,001 records.*'part': 1000"):
        reassign(problem, from_method="ring", budget=Budget(deadline=time.monotonic() - 1.0))
