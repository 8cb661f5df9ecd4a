"""Classes out of a linear program over sets of near records, and local search that goes on."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Budget,
    Freeform,
    InputError,
    Microdata,
    NoSolution,
    Problem,
    Solution,
    census,
    solve,
)
from anonymip.bounds.ladder import Ladder, ladder_bound
from anonymip.bounds.near_program import NearProgram, SetProgram
from anonymip.bounds.nearest_neighbour import lowered_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.effort import EFFORTS
from anonymip.enumeration import pricing
from anonymip.heuristics.classes.diving import diving
from anonymip.heuristics.local_search import starts
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.heuristics.local_search.starts import kept_of, with_the_rest
from anonymip.runtime import stepping
from anonymip.solving import _solved_program
from tests import profiles
from tests.by_hand import diverse, table_of
from tests.random_problems import larger_problems

BEST = {"from_method": "best"}


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw a problem; in one table of two most rows of the first half occur several times."""
    problem = draw(larger_problems(5, 30))
    if draw(st.booleans()):
        data, n = problem.microdata, problem.n
        rows = draw(st.lists(st.integers(0, (n - 1) // 2), min_size=n, max_size=n))
        problem = problem.replace(microdata=Microdata(data.frame.iloc[rows], data.attributes))
    return problem


@settings(max_examples=25)
@given(problems())
def test_classes_are_a_release(problem: Problem) -> None:
    """Whatever the table, every record is in a class of k or more, and no bound is above them."""
    solution = diving(problem)
    assert min(np.bincount(solution.assignment.labels)) >= problem.k  # type: ignore[union-attr]
    bound = ladder_bound(problem, effort="thorough")
    assert bound is not None
    assert bound.value <= solution.objective + 1e-9


@settings(max_examples=25)
@given(problems())
def test_sets_of_a_bound_are_a_release(problem: Problem) -> None:
    """What is kept are classes, the rows left get others, and no bound is above them."""
    ladder = Ladder(problem, "normal", Budget())
    bound = ladder.climb(Budget())
    assert bound is not None
    assume(ladder.weighed is not None)
    assert ladder.weighed is not None
    kept = kept_of(problem, ladder.weighed)
    assert (np.bincount(kept[kept >= 0], minlength=kept.max() + 1) >= problem.k).all()
    solution = with_the_rest(problem, kept, Budget(), 0)
    together = solution.assignment.labels  # type: ignore[union-attr]
    assert min(np.bincount(together)) >= problem.k
    for label in range(kept.max() + 1):
        assert len(set(together[kept == label])) == 1
    assert bound.value <= solution.objective + 1e-9


@pytest.mark.thorough
def test_a_large_table_starts_from_the_sets_of_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The release loses less than without them, more effort no more, and the bound stays."""
    monkeypatch.setattr(starts, "_SEVERAL", 60)
    for module in ("anonymip.solving", "anonymip.methods.best_bound"):
        monkeypatch.setattr(f"{module}.may_be_bounded", lambda *_: False)
    problem = Problem(census(100, 8, seed=3), 5)
    run = partial(solve, problem, "local-search", options=BEST)
    found = {effort: run(effort=effort) for effort in EFFORTS}
    assert "by sets that the bound weighed" in found["normal"].trace[0]
    assert "by k-member" in found["quick"].trace[0]
    assert found["normal"].objective < run(effort="normal", bound=False).objective
    assert found["thorough"].objective <= found["normal"].objective < found["quick"].objective
    for effort, solution in found.items():
        bound = ladder_bound(problem, effort=effort)
        assert solution.bound is not None
        assert bound is not None
        assert solution.bound.value == bound.value


def test_a_limit_waits_for_no_bound() -> None:
    """A dive within a time limit takes the program of a bound that is done, and no other."""
    problem = Problem(census(200, 6, seed=2), 4)
    ladder, budget = Ladder(problem, "thorough", Budget()), Budget()
    asked = partial(_solved_program, ladder, budget, [])
    assert asked(limited=True) is None
    assert ladder.passed == -1
    program = asked(limited=False)
    assert program is not None
    assert asked(limited=True) is program


def test_a_program_of_one_stage_is_no_start() -> None:
    """Where the bound had work for one stage of pricing, a dive would take longer than all else."""
    problem = Problem(census(200, 6, seed=2), 4)
    ladder = Ladder(problem, "thorough", Budget())
    asked = partial(_solved_program, ladder, Budget(), [], limited=False)
    assert asked() is not None
    duals = RecordDuals(problem, lowered_terms(problem, Budget())[0], 1e9, Budget())
    duals.raise_to_k_sets(1.0)
    ladder.program = NearProgram(duals, Budget())
    ladder.program.solve(0.0, stages=1)
    assert len(ladder.program.sets.members) > 0
    assert asked() is None
    ladder.program.solve(0.0)
    assert asked() is ladder.program


@pytest.mark.thorough
def test_a_dive_goes_on_with_the_program_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run solves one program, whose sets are classes of the table in the search's own order."""
    monkeypatch.setattr(starts, "_SEVERAL", 60)
    for module in ("anonymip.solving", "anonymip.methods.best_bound"):
        monkeypatch.setattr(f"{module}.may_be_bounded", lambda *_: False)
    begun, begin, dives = [], NearProgram.__init__, []

    def watched(program: NearProgram, *arguments: Any) -> None:
        begun.append(program)
        begin(program, *arguments)

    def noted(problem: Problem, *arguments: Any, **settings: Any) -> Solution:
        dives.append(diving(problem, *arguments, **settings))
        return dives[-1]

    monkeypatch.setattr(NearProgram, "__init__", watched)
    monkeypatch.setattr("anonymip.heuristics.classes.diving.diving", noted)
    data = census(100, 8, seed=3)
    solution = solve(Problem(data, 5), effort="thorough", method="local-search", options=BEST)
    assert len(begun) == len(dives) == 1
    assert solution.bound is not None
    assert solution.bound.value <= solution.objective <= dives[0].objective
    # The same records in another order: the program knows them by their values.
    grown = solve(Problem(data, 5), "k-member", bound=False)
    assert dives[0].objective < 0.95 * grown.objective
    # What is no table of the run has a program of its own.
    diving(Problem(data, 5))
    assert len(begun) == 2


@pytest.mark.parametrize("k", [3, *profiles.thorough(5)])
def test_loses_less_than_the_other_start(k: int) -> None:
    """Before and after moves: k-member is what large tables start from otherwise."""
    problem = Problem(census(300, 8, seed=3), k)
    dived, grown = diving(problem), solve(problem, "k-member", bound=False)
    assert dived.objective < 0.97 * grown.objective
    first, second = (
        local_search(problem, start=one.assignment, effort="quick", trials=False)
        for one in (dived, grown)
    )
    assert first.objective < 0.99 * second.objective


def test_rows_that_repeat_are_published_exactly() -> None:
    """Types of k rows and more are classes of their own, and who is in none joins the nearest."""
    values = [1] * 4 + [5] * 3 + [6]
    data = table_of({"a": values})
    labels = diving(Problem(data, 3)).assignment.labels.tolist()  # type: ignore[union-attr]
    assert labels == [labels[0]] * 4 + [labels[4]] * 4
    assert labels[0] != labels[4]


def test_what_it_cannot_do_is_refused() -> None:
    """Diversity, losses that are not monotone and covers need another start."""
    problem = Problem(census(40, 3, seed=1), 3)
    for refused in (
        diverse(problem, [*"ab"] * 20),
        problem.replace(objective=SSE()),
        problem.replace(recoding=Freeform()),
    ):
        with pytest.raises(InputError, match="diving makes classes"):
            diving(refused)


def test_an_end_of_time_leaves_no_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the budget ends in the middle, there is no release, and it says so."""
    budget, improved = Budget.of(600), SetProgram.improved

    def ending(program: SetProgram, *arguments: Any) -> np.ndarray:
        budget.deadline = time.monotonic() - 1.0
        return improved(program, *arguments)

    monkeypatch.setattr(SetProgram, "improved", ending)
    with pytest.raises(NoSolution, match="within its time"):
        diving(Problem(census(100, 4, seed=1), 3), budget=budget)


def test_without_work_for_pricing_known_sets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the work ends in the first rounds more is lost, but there is a release."""
    problem = Problem(census(200, 8, seed=3), 4)
    whole, find, rounds = diving(problem), NearProgram._find, []

    def last(program: NearProgram, nodes: int, pause: Budget) -> None:
        rounds.append(nodes)
        if len(rounds) == 2:
            monkeypatch.setattr(RecordDuals, "left", property(lambda _: 0.0))
        find(program, nodes, pause)

    monkeypatch.setattr(NearProgram, "_find", last)
    part = diving(problem)
    assert len(rounds) == 2
    assert min(np.bincount(part.assignment.labels)) >= 4  # type: ignore[union-attr]
    assert whole.objective < part.objective


def test_too_many_records_without_a_set_are_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """What many records would lose in classes of others, and how long that takes, is no start."""
    monkeypatch.setattr("anonymip.heuristics.classes.diving._JOINING", 0)
    with pytest.raises(NoSolution, match="of 61 records without a class"):
        diving(Problem(census(61, 8, seed=3), 4))


@pytest.mark.thorough
def test_a_thorough_search_of_a_large_table_dives(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends no higher than a normal one, and tries dives into the program of the bound.

    Without classes by diving what a normal effort reaches is improved on, and the trace says why.
    """
    monkeypatch.setattr(starts, "_SEVERAL", 60)
    problem = Problem(census(100, 6, seed=3), 5)
    search = partial(local_search, problem, from_method="best")
    normal, thorough = search(effort="normal"), search(effort="thorough")
    assert thorough.objective <= normal.objective
    assert any("diving:" in remark for remark in thorough.trace)
    assert not any("diving" in remark for remark in normal.trace)
    monkeypatch.setattr("anonymip.heuristics.classes.diving._JOINING", -1)
    without = search(effort="thorough")
    assert without.objective <= normal.objective
    assert any("no classes by diving" in remark for remark in without.trace)


def test_no_clock_changes_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny and long steps lead to the same classes."""
    problem = Problem(census(60 if profiles.NAME == "ci" else 150, 8, seed=3), 4)
    found = diving(problem).assignment.labels.tolist()  # type: ignore[union-attr]
    for seconds in (1e-9, 1e3):
        monkeypatch.setattr(stepping, "_SECONDS_A_STEP", seconds)
        monkeypatch.setattr(pricing, "_SECONDS_A_STEP", seconds)
        again = diving(problem, budget=Budget.of(1e6))
        assert again.assignment.labels.tolist() == found  # type: ignore[union-attr]
