"""Iterated local search: trials that are kept or taken back, their columns, and what they gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import GCP, Bottleneck, Budget, Problem, census
from anonymip.exact.classes.small import solve_small
from anonymip.exact.column_generation.conditions import column_rules, sets_as_columns
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.local_search.current_classes import (
    CLASSES,
    FREED,
    NOTED,
    CurrentRelease,
    add_copies,
    new_view,
    open_label,
    remove_copies,
    take_back_changes,
    update_class,
)
from anonymip.heuristics.local_search.iterated import ITERATED, cycles, iterated_steps
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.heuristics.local_search.rounds import iterate_classes
from anonymip.recodings import Diversity, EquivalenceClasses
from tests.by_hand import by_classes, table_of, with_illness
from tests.random_problems import Case, ruled_cases


def loss_of(problem: Problem, labels: np.ndarray) -> float:
    """Return the loss of labels, which are checked."""
    return by_classes(problem, labels).objective


def iterated(
    problem: Problem,
    labels: np.ndarray,
    steps: int = 300_000,
    seed: int = 0,
    anneals: bool = False,
) -> np.ndarray:
    """Return what trials make of labels, alone or in turn with annealing."""
    found, _, _ = iterate_classes(
        problem, labels, steps=steps, budget=Budget(), seed=seed, anneals=anneals
    )
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(6, 60),
    st.integers(2, 4),
    st.booleans(),
    st.sampled_from([None, Diversity(l=2), Diversity(distinct=2)]),
    st.sampled_from(["trials", "largest loss", "annealing", "annealing of copies"]),
)
def test_never_worse_and_allowed(
    seed: int, n: int, k: int, suppression: bool, diversity: Diversity | None, what: str
) -> None:
    """What is returned keeps the rules, with stars and without, and is never above the start."""
    table, anneals = census(n, 2 if seed % 2 else 3, seed), what.startswith("annealing")
    if what == "annealing of copies":
        table = table.take(np.random.default_rng(seed).integers(0, max(2, n // 3), n))
    if diversity is not None:
        table = with_illness(table, np.arange(n) % 4)
    recoding = EquivalenceClasses(suppression=suppression)
    loss = Bottleneck(GCP()) if what == "largest loss" else GCP()
    problem = Problem(table, min(k, n // 2), recoding, loss, diversity=diversity)
    start = greedy_search(problem)
    steps = 600_000 if anneals else 300_000
    found = iterated(problem, start.assignment.labels, steps, seed, anneals)
    assert loss_of(problem, found) <= start.objective + 1e-9


@settings(max_examples=50, deadline=None)
@given(ruled_cases(smallest=6, largest=8), st.integers(0, 100), st.booleans())
def test_between_the_optimum_and_any_start(drawn: Case, seed: int, anneals: bool) -> None:
    """Brute force finds nothing above it, whatever rules are kept."""
    case = replace(
        drawn, rules=None if drawn.rules is None else replace(drawn.rules, caps=(), apart=())
    )
    problem = case.problem()
    start = initial(problem)
    if not problem.compiled.has_tables:
        return
    found = loss_of(problem, iterated(problem, start.assignment.labels, 90_000, seed, anneals))
    assert case.optimum() - case.slack(found) <= found <= start.objective + case.slack(found)


@pytest.mark.parametrize("seed", range(2))
def test_small_tables_reach_the_optimum(seed: int) -> None:
    """On twelve records the optimum is found from a poor start."""
    problem = Problem(census(12, 4, seed), 3)
    found = iterated(problem, initial(problem).assignment.labels, seed=seed)
    assert loss_of(problem, found) == pytest.approx(solve_small(problem).objective)


def test_fewer_classes_than_rows_allow_are_found() -> None:
    """Where all classes have k rows no move is allowed; three places of four records are best."""
    places = np.repeat([0.0, 100.0, 200.0], 4) + np.tile([0.0, 1.0, 2.0, 3.0], 3)
    table = table_of({"place": places})
    problem = Problem(table, 3)
    found = iterated(problem, np.arange(12) // 3)
    assert sorted(np.bincount(np.unique(found, return_inverse=True)[1])) == [4, 4, 4]
    assert loss_of(problem, found) == pytest.approx(solve_small(problem).objective)


def test_cycles_share_out_the_steps() -> None:
    """Each begins hotter, up to a limit."""
    for n in (10, 100, 1_000, 100_000):
        for effort in ("normal", "thorough"):
            steps = iterated_steps(effort, n)
            lengths, heats = zip(*cycles(steps, n), strict=True)
            assert sum(lengths) == steps
            assert max(heats) <= ITERATED.hottest
            assert list(heats[:-1]) == sorted(heats[:-1])
    assert len(list(cycles(iterated_steps("thorough", 500), 500))) == 3
    assert list(cycles(0, 500)) == []


def test_it_gains_after_local_search_has_stalled_and_seeds_repeat() -> None:
    """Moves are done; the same seed gives the same labels."""
    problem = Problem(census(300, 6, 2), 6)
    start = local_search(problem, effort="quick", trials=False)
    found = [iterated(problem, start.assignment.labels, 10_000_000, seed) for seed in (1, 1, 2)]
    assert loss_of(problem, found[0]) < 0.995 * start.objective
    assert loss_of(problem, found[2]) < 0.995 * start.objective
    np.testing.assert_array_equal(found[0], found[1])


def test_each_effort_begins_where_the_one_below_ends() -> None:
    """More effort is never worse, and the trace tells of trials and annealing."""
    problem = Problem(census(60, 5, 2), 4)
    start = greedy_search(problem).assignment
    found = [local_search(problem, start=start, effort=one) for one in ("quick", "normal")]
    assert found[1].objective <= found[0].objective
    assert [str(one.trace).count("annealed changes gained") for one in found] == [1, 2]
    assert 0 < iterated_steps("quick", 60) < iterated_steps("normal", 60)


@pytest.mark.parametrize("seed", range(2))
def test_the_largest_loss_falls(seed: int) -> None:
    """It is found at its lowest from a poor start; a loss of nothing has nothing to gain."""
    problem = Problem(census(14, 4, seed), 3, objective=Bottleneck(GCP()))
    found = iterated(problem, initial(problem).assignment.labels, 2_000_000, seed)
    assert loss_of(problem, found) == pytest.approx(solve_small(problem).objective)
    alike = problem.replace(microdata=problem.microdata.take(np.zeros(9, np.int64)))
    np.testing.assert_array_equal(iterated(alike, np.arange(9) // 3), np.arange(9) // 3)


@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_classes_that_borrow_are_the_best(seed: int, worst: bool) -> None:
    """Five rare rows among copies of three others, which lend one each, as an exact search does."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, 30, (8, 2)).repeat([4, 4, 4, 1, 1, 1, 1, 1], axis=0)
    table = table_of(pd.DataFrame(rows, columns=["a", "b"]))
    problem = Problem(table, 3, objective=Bottleneck(GCP()) if worst else GCP())
    found = iterated(problem, initial(problem).assignment.labels, 500_000)
    assert loss_of(problem, found) == pytest.approx(solve_small(problem).objective)


def test_nothing_is_gained_where_all_are_suppressed() -> None:
    """A largest loss of no classes is none, and has no share."""
    problem = Problem(census(20, 3), 2, EquivalenceClasses(suppression=True), Bottleneck(GCP()))
    labels = np.full(problem.n, -1, np.int32)
    found, _, remark = iterate_classes(problem, labels, steps=1000, budget=Budget(), seed=0)
    assert (found == -1).all()
    assert remark == "0 trials gained 0.00%"


def test_an_interrupt_ends_it() -> None:
    """An interrupted budget gives the labels back."""
    problem, budget = Problem(census(20, 4, 1), 3), Budget()
    budget.interrupt()
    start = initial(problem).assignment.labels
    found, stopped, _ = iterate_classes(problem, start, steps=10**6, budget=budget, seed=0)
    np.testing.assert_array_equal(found, start)
    assert stopped is not None


def test_classes_that_were_visited_are_columns() -> None:
    """Each is a set of records that a class can have, and the last ones alone are kept."""
    problem, visited = Problem(census(40, 4, 1), 3), {}
    start = initial(problem).assignment.labels
    iterate_classes(problem, start, steps=300_000, budget=Budget(), seed=0, visited=visited)
    assert len(visited) > 20
    assert all(len(records) >= problem.k for records in visited.values())
    columns = sets_as_columns(column_rules(problem), list(visited.values()))
    assert 0 < len(columns) <= len(visited)


def classes_in(release: CurrentRelease) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return what each class holds, type by type."""
    held = {}
    for label in release.living().tolist():
        entry, inside = release.current.head[label], []
        while entry >= 0:
            inside.append((int(release.current.types[entry]), int(release.current.copies[entry])))
            entry = release.current.following[entry]
        held[label] = tuple(sorted(inside))
    return held


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_changes_are_taken_back(seed: int) -> None:
    """Classes, losses, clocks and free numbers are what they were, after any changes."""
    random = np.random.default_rng(seed)
    problem = Problem(census(30, 2, seed), 3)
    release = CurrentRelease.of(problem, initial(problem).assignment.labels)
    current = release.current._replace(notes=np.zeros((999, 4), np.int64), old_losses=np.zeros(999))
    release = replace(release, current=current)
    view = new_view(release.rules, 2 * problem.n)

    def told() -> tuple[object, ...]:
        living = release.living()
        return (
            classes_in(release),
            current.losses[living].tolist(),
            current.changed[living].tolist(),
            current.surplus.tolist(),
            sorted(current.freed[: current.cursor[FREED]].tolist()),
            int(current.cursor[CLASSES]),
        )

    before = told()
    for _ in range(int(random.integers(1, 9))):
        living = release.living()
        one = int(random.choice(living))
        other = int(random.choice(living)) if random.random() < 0.5 else open_label(current)
        if one == other:
            continue
        for _ in range(int(random.integers(1, 4))):
            entry = current.head[one]
            if entry >= 0:
                row_type, copies = int(current.types[entry]), int(current.copies[entry])
                remove_copies(current, one, row_type, copies)
                add_copies(current, other, row_type, copies)
        for label in (other, one):
            if current.sizes[label] or label == one:
                update_class(release.rules, current, view, label)
    take_back_changes(current)
    assert told() == before
    assert current.cursor[NOTED] == 0
