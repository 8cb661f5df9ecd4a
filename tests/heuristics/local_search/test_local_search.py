"""Local search: between the optimum and the start, every rule kept, each move worth its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Budget,
    Classes,
    EquivalenceClasses,
    Freeform,
    InputError,
    InvalidAssignment,
    Microdata,
    Problem,
    Solution,
    Stopped,
    census,
    load_instance,
    solve,
)
from anonymip.extensions import EXACT_STARTS
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.heuristics.local_search.current_classes import CurrentRelease, show_class
from anonymip.heuristics.local_search.local_search import improve, local_search
from anonymip.heuristics.local_search.moves import best_move, new_move_work
from anonymip.heuristics.local_search.starts import STARTS
from tests.brute_force import Column
from tests.hard_losses import FALLING, PRODUCT
from tests.random_problems import (
    LOSSES,
    Case,
    cases,
    groups_of,
    larger_microdata,
    ruled_cases,
    tables,
)

AMPLE = settings(max_examples=60)


def numbers(*values: float) -> Column:
    """Return a numeric column over 0 to 100."""
    return Column(values, domain=(0.0, 100.0))


def line(*values: float, k: int = 2) -> Case:
    """Return one numeric attribute under gcp."""
    return Case((numbers(*values),), k, LOSSES["gcp"])


def classes_of(solution: Solution) -> Classes:
    """Return the classes of a solution."""
    assert isinstance(solution.assignment, Classes)
    return solution.assignment


def drawn_release(case: Case, data: st.DataObject) -> Classes:
    """Return any release that the case allows."""
    groups = data.draw(st.sampled_from(case.releases()))
    return Classes.from_groups([list(group) for group in groups], case.n)


def check_any_start(case: Case, data: st.DataObject, seed: int = 0) -> None:
    """Check that a search is truly as good as it says, never above its start."""
    start = drawn_release(case, data)
    before = case.release_loss(groups_of(start))
    solution = local_search(case.problem(), start=start, seed=seed)
    loss = case.release_loss(groups_of(classes_of(solution)))
    assert solution.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)
    assert case.optimum() - case.slack(loss) <= loss <= before + case.slack(before)


@AMPLE
@given(cases(), st.data(), st.integers(0, 3))
def test_between_the_optimum_and_any_start(case: Case, data: st.DataObject, seed: int) -> None:
    """From any release: allowed, truly as good as it says, never above the start."""
    check_any_start(case, data, seed)


@AMPLE
@given(ruled_cases(), st.data())
def test_rules_are_kept_from_any_start(case: Case, data: st.DataObject) -> None:
    """Diversity, limits and the largest loss: the recoding checks what comes out."""
    check_any_start(case, data)


@settings(max_examples=40)
@given(tables(), st.sampled_from([FALLING, PRODUCT]), st.booleans(), st.data())
def test_losses_that_fall_and_losses_without_tables(
    columns: tuple[Column, ...], loss: object, worst: bool, data: st.DataObject
) -> None:
    """Classes may merge where that gains; the largest loss never rises."""
    check_any_start(Case(columns, 2, loss, worst=worst), data)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(cases(suppression=False))
def test_an_optimum_stays(case: Case) -> None:
    """Nothing is gained from the best release there is."""
    best = min(case.releases(), key=case.release_loss)
    start = Classes.from_groups([list(group) for group in best], case.n)
    solution = local_search(case.problem(), start=start)
    assert solution.objective == pytest.approx(case.optimum(), rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(cases(smallest=6, largest=8, suppression=False), st.data())
def test_trials_of_a_few_rows_find_the_optimum(case: Case, data: st.DataObject) -> None:
    """Where a trial takes all classes apart and the loss is monotone, nothing better remains."""
    problem = case.problem()
    if not problem.compiled.monotone:
        return
    start = drawn_release(case, data)
    solution = local_search(problem, start=start)
    if start.count > 1 or case.n < 2 * case.k:
        best = case.optimum()
        assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)


def move_of(case: Case, labels: list[int]) -> tuple[float, str]:
    """Return what gains most between the classes 0 and 1, and what it is."""
    state = CurrentRelease.of(case.problem(), np.array(labels))
    work = new_move_work(state.rules, state.current, case.n)
    show_class(state.rules, state.current, work.one, 0)
    show_class(state.rules, state.current, work.other, 1)
    losses = state.current.losses
    gain, merges, first, second = best_move(work, losses[0], losses[1])
    moved = {(1, 1): "swap", (1, 0): "give", (0, 1): "take", (0, 0): "nothing"}
    return gain, "merge" if merges else moved[first >= 0, second >= 0]


@pytest.mark.parametrize(
    ("values", "labels", "what", "gain"),
    [
        # {0, 1, 51}, {50, 52}: 51 loses 3 * 0.51 + 2 * 0.02, then 2 * 0.01 + 3 * 0.02.
        ((0, 1, 51, 50, 52), [0, 0, 0, 1, 1], "give", 1.57 - 0.08),
        ((50, 52, 0, 1, 51), [0, 0, 1, 1, 1], "take", 1.57 - 0.08),
        # {0, 50}, {1, 51} lose 1 each; {0, 1}, {50, 51} lose 0.02 each.
        ((0, 50, 1, 51), [0, 0, 1, 1], "swap", 1.96),
        ((0, 1, 50, 51), [0, 0, 1, 1], "nothing", 0.0),
    ],
)
def test_each_move_alone_gains(
    values: tuple[float, ...], labels: list[int], what: str, gain: float
) -> None:
    """Worked out by hand."""
    found = move_of(line(*values), labels)
    assert found[0] == pytest.approx(gain)
    assert found[1] == what


def test_merging_gains_where_losses_fall() -> None:
    """Of a loss of 1 minus the spread the widest class loses least."""
    case = replace(line(0, 1, 90, 100), loss=FALLING)
    gain, what = move_of(case, [0, 0, 1, 1])
    # {0, 90} and {1, 100} would gain 3.56 - 0.22; one class loses nothing at all.
    assert what == "merge"
    assert gain == pytest.approx(2 * (0.99 + 0.9))


def test_a_class_is_split() -> None:
    """One class of four rows has no neighbour to move rows to."""
    case = line(0, 1, 99, 100)
    solution = local_search(case.problem(), start=Classes(np.zeros(4, np.int32)), trials=False)
    assert solution.objective == pytest.approx(0.04)
    assert classes_of(solution).count == 2


def stuck_release() -> tuple[Case, Classes]:
    """Return a release that no move or swap improves, and that is not the best one."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        values = tuple(float(v) for v in rng.integers(0, 30, 9))
        others = tuple(float(v) for v in rng.integers(0, 30, 9))
        case = Case((Column(values), Column(others)), 3, LOSSES["gcp"])
        labels = np.repeat(np.arange(3), 3)[rng.permutation(9)].astype(np.int32)
        moved = local_search(case.problem(), start=Classes(labels), trials=False)
        if moved.objective > case.optimum() + 1e-6:
            return case, classes_of(moved)
    raise AssertionError("every start led to the optimum by moves")


def test_trials_gain_where_no_move_does() -> None:
    """What moves leave behind is improved by taking classes apart."""
    case, stuck = stuck_release()
    problem = case.problem()
    before = case.release_loss(groups_of(stuck))
    again = local_search(problem, start=stuck, trials=False)
    assert again.objective == pytest.approx(before)
    solved = local_search(problem, start=stuck)
    assert solved.objective == pytest.approx(case.optimum())
    assert solved.objective < before - 1e-6


def test_three_classes_change_at_once() -> None:
    """Of the health records with k = 2 no pair of classes can be made better."""
    problem = Problem(load_instance("health-records"), 2)
    start = greedy_search(problem)
    solution = local_search(problem, start=start.assignment)
    assert start.objective > 5.9
    # The optimum, as equivalence-mip proves it.
    assert solution.objective == pytest.approx(0.61164, abs=1e-5)


def test_large_classes_of_many_values() -> None:
    """Seventy rows, each with a value of its own, in two classes."""
    frame = pd.DataFrame({"value": [f"v{i:02}" for i in range(70)], "half": [0, 1] * 35})
    half = Attribute("half", "numeric", domain=(0, 20))
    data = Microdata(frame, (Attribute("value", "categorical", publish="set"), half))
    problem = Problem(data, 33)
    # Two rows are in each other's place.
    start = Classes(np.array([1, 0] + [0, 1] * 34, np.int32))
    found = local_search(problem, start=start)
    assert found.objective < Solution.of(problem, start, method="").objective


def test_copies_are_lent() -> None:
    """Two rare rows far apart borrow two rows each, which are lost by nobody."""
    case = line(*[10] * 8, *[90] * 8, 11, 50, 89, k=3)
    labels = np.array([0] * 8 + [1] * 8 + [2] * 3, np.int32)
    solution = local_search(case.problem(), start=Classes(labels))
    # 89 with two of 90, and 50 with 11 and one of 10 (or the other way round).
    assert solution.objective == pytest.approx(3 * 0.01 + 3 * 0.4)
    assert sorted(classes_of(solution).sizes.tolist()) == [3, 3, 6, 7]


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_lending_with_many_copies(seed: int) -> None:
    """Tables of few values, each often: the loss reported is true and not above the start."""
    rng = np.random.default_rng(seed)
    values = tuple(rng.integers(0, 12, 60).astype(float).tolist())
    case = Case(
        (Column(values), Column(tuple((rng.integers(0, 3, 60) ** 2).tolist()))), 3, LOSSES["gcp"]
    )
    problem = case.problem()
    start = ordered_cut(problem)
    solution = local_search(problem, start=start.assignment, seed=seed, trials=False)
    loss = case.release_loss(groups_of(classes_of(solution)))
    assert solution.objective == pytest.approx(loss)
    assert loss <= start.objective + 1e-9


def test_suppressed_records_join_and_dear_ones_leave() -> None:
    """0 is suppressed beside its twins, 100 costs its class more than a row of stars."""
    case = replace(line(0, 0, 0, 1, 1, 100), suppression=True)
    start = Classes(np.array([-1, 0, 0, 1, 1, 1], np.int32))
    solution = local_search(case.problem(), start=start)
    assert solution.objective == pytest.approx(1.0)
    assert classes_of(solution).labels.tolist()[-1] == -1
    assert classes_of(solution).suppressed == 1


@pytest.fixture(scope="module")
def people() -> Problem:
    """Return a table of some hundred records."""
    return Problem(census(400, 5, seed=3), 4)


@pytest.mark.parametrize("name", sorted({*STARTS, *EXACT_STARTS} - {"mdav"}))
def test_every_start_is_improved(people: Problem, name: str) -> None:
    """Each method that can make the start does, and what it leaves is found."""
    asked = people.replace(k=2) if name == "edge-cover" else people
    solution = local_search(asked, from_method=name, trials=False)
    start_loss = float(solution.trace[0].split()[1])
    assert solution.objective < start_loss
    assert solution.options["from_method"] == name


@pytest.mark.parametrize("k", [2, 5])
def test_the_best_start_leaves_no_more_than_any(people: Problem, k: int) -> None:
    """With moves alone the best of all starts is what it says."""
    asked = people.replace(k=k)
    best = local_search(asked, from_method="best", trials=False)
    # They take longer, or are for other problems.
    unfit = {"diving", "mdav"} | ({"edge-cover"} if k > 2 else set())
    names = [name for name in STARTS if name not in unfit]
    for name in names:
        assert best.objective <= local_search(asked, from_method=name, trials=False).objective
    assert "one of the best of" in best.trace[0]


def test_trials_improve_what_moves_leave(people: Problem) -> None:
    """The same start, without and with trials."""
    start = greedy_search(people).assignment
    moved = local_search(people, start=start, trials=False)
    solved = local_search(people, start=start)
    assert solved.objective < moved.objective < greedy_search(people).objective


def test_the_same_seed_gives_the_same_classes(people: Problem) -> None:
    """Twice the same, and a second run never worse than the first."""
    first = local_search(people, seed=5)
    again = local_search(people, seed=5)
    assert classes_of(first).labels.tolist() == classes_of(again).labels.tolist()
    further = local_search(people, start=first.assignment, seed=6)
    assert further.objective <= first.objective


def test_larger_tables_of_every_kind() -> None:
    """Sets, ranges, repeated rows: allowed and never above the start."""
    for seed in range(8):
        problem = Problem(larger_microdata(seed, 150), 3 + seed % 4)
        start = ordered_cut(problem)
        solution = local_search(problem, start=start.assignment, trials=False)
        assert solution.objective <= start.objective


def test_an_interrupt_returns_the_start(people: Problem) -> None:
    """Asked to stop at once, nothing changes."""
    start = greedy_search(people)
    budget = Budget()
    budget.interrupt()
    solution = local_search(people, start=start.assignment, budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT
    assert classes_of(solution).labels.tolist() == classes_of(start).labels.tolist()


def test_a_spent_budget_returns_the_start(people: Problem) -> None:
    """No time at all is left."""
    start = greedy_search(people)
    spent = Budget(deadline=0.0)
    solution = local_search(people, start=start.assignment, budget=spent)
    assert solution.status.stopped is Stopped.TIME
    assert solution.objective == start.objective


def test_labels_are_improved_without_a_solution(people: Problem) -> None:
    """What column generation calls: labels in, labels out."""
    start = greedy_search(people)
    found = improve(people, classes_of(start).labels)
    better = Classes(found)  # type: ignore[arg-type]
    people.recoding.check(people, better)
    total = people.compiled.total(people.recoding.describe(people, better), better)
    assert total < start.objective


def test_through_solve(people: Problem) -> None:
    """The registry knows the method and its options; the bound is not above the loss."""
    solution = solve(people, "local-search", options={"trials": False, "from_method": "mondrian"})
    assert solution.method == "local-search"
    assert solution.bound is not None
    assert solution.bound.value <= solution.objective


@pytest.mark.parametrize("most_suppressed", [None, 3])
@pytest.mark.parametrize(
    "given",
    [
        *({"from_method": "magic"}, {"from_method": "edge-cover"}, {"order": "hilbert"}),
        {"from_method": "greedy-search", "order": "magic"},
    ],
)
def test_unknown_starts_are_refused(
    people: Problem, most_suppressed: int | None, given: dict[str, Any]
) -> None:
    """With what can be given instead, also where some records may be suppressed."""
    problem = people.replace(recoding=EquivalenceClasses(most_suppressed=most_suppressed))
    with pytest.raises(InputError):
        local_search(problem, effort="quick", **given)


@pytest.mark.parametrize("name", sorted({*STARTS, *EXACT_STARTS} - {"mdav"}))
def test_an_order_is_for_starts_that_take_one(people: Problem, name: str) -> None:
    """Others are made without it."""
    asked = people.replace(k=2) if name == "edge-cover" else people
    found = local_search(asked, from_method=name, order="hilbert", effort="quick")
    assert found.options["order"] == "hilbert"


@pytest.mark.parametrize("most_suppressed", [None, 3])
def test_options_say_that_a_start_was_given(people: Problem, most_suppressed: int | None) -> None:
    """And not what would have made it, with every limit of suppression."""
    problem = people.replace(recoding=EquivalenceClasses(most_suppressed=most_suppressed))
    found = local_search(problem, start=ordered_cut(people).assignment, effort="quick")
    assert found.options["from_method"] == "start"


def test_other_recodings_and_bad_starts_are_refused(people: Problem) -> None:
    """Covers are improved elsewhere; a class of one record is no start."""
    with pytest.raises(InputError):
        local_search(people.replace(recoding=Freeform()))
    alone = np.zeros(people.n, np.int32)
    alone[0] = 1
    with pytest.raises(InvalidAssignment):
        local_search(people, start=Classes(alone))
