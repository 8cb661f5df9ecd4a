"""Tests of chains over segments of an order, and of their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Budget, Classes, InputError, Problem, Progress, census, objective
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.segments import solve_boundaries
from anonymip.exact.split_carry.split_carry import ChainRun, run_chain, split_carry
from anonymip.orders.orders import find_order
from tests.by_hand import diverse, table_of
from tests.random_problems import Case, cases, groups_of, ruled_cases


def labels_of(run: ChainRun) -> list[int]:
    """Return the class of each record."""
    assert isinstance(run.solution.assignment, Classes)
    labels: list[int] = run.solution.assignment.labels.tolist()
    return labels


@settings(max_examples=40)
@given(st.one_of(cases(smallest=6, largest=8), ruled_cases(smallest=6, largest=8)), st.data())
def test_a_boundary_with_room_for_all_is_the_optimum(case: Case, data: st.DataObject) -> None:
    """From any release: what is best for all records together; with less room never worse."""
    problem, best = case.problem(), case.optimum()
    releases = [groups for groups in case.releases() if case.release_loss(groups) < np.inf]
    groups = data.draw(st.sampled_from(releases))
    labels = np.full(case.n, -1)
    for number, group in enumerate(groups):
        labels[list(group)] = number
    order = np.array(data.draw(st.permutations(range(case.n))))
    at = data.draw(st.integers(1, case.n - 1))
    for most in (case.k, case.n, 2 * case.n):
        joined, solved, gained = solve_boundaries(
            problem, order, labels[order], [at], most=most, budget=Budget()
        )
        found = np.empty(case.n, np.int64)
        found[order] = joined
        loss = case.release_loss(groups_of(Classes(found)))  # type: ignore[arg-type]
        before = case.release_loss(groups)
        assert loss <= before + case.slack(before)
        assert solved == 1
        if gained == 0:
            assert np.array_equal(found, labels)
        if most >= case.n and not case.suppression and len(groups) > 1:
            assert loss == pytest.approx(best, rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(cases(smallest=7, largest=8), st.integers(2, 4))
def test_several_chains_are_feasible_and_never_below_the_optimum(case: Case, chains: int) -> None:
    """Also where the table has room for fewer segments than asked for."""
    solution = split_carry(case.problem(), S=2, chains=chains, jobs=1)
    assert isinstance(solution.assignment, Classes)
    loss = case.release_loss(groups_of(solution.assignment))
    best = case.optimum()
    assert solution.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)
    assert solution.objective >= best - case.slack(best)


@pytest.fixture(scope="module")
def people() -> Problem:
    """Return a table of many links."""
    return Problem(census(400, 3, seed=4), 3)


def test_the_boundary_joins_what_the_cut_separated() -> None:
    """Two pairs in the order 0 9 | 0 9: each segment by itself loses all."""
    problem = Problem(table_of({"age": [0.0, 9.0, 0.0, 9.0]}), 2)
    labels = np.array([0, 0, 1, 1])
    joined, _, gained = solve_boundaries(
        problem, np.arange(4), labels, [2], most=4, budget=Budget()
    )
    assert gained == 1
    assert joined[0] == joined[2] != joined[1] == joined[3]
    assert labels.tolist() == [0, 0, 1, 1]
    spent = Budget()
    spent.interrupt()
    left, *rest = solve_boundaries(problem, np.arange(4), labels, [2], most=4, budget=spent)
    assert (left.tolist(), rest) == (labels.tolist(), [0, 0])


@pytest.mark.parametrize("k", [2, 3])
def test_several_chains_lose_about_what_one_loses(k: int) -> None:
    """Their windows begin at the same places, so most of the links are the same."""
    problem = Problem(census(1000, 3, seed=1), k)
    one, eight = (run_chain(problem, ChainOptions(chains=chains)) for chains in (1, 8))
    assert "8 chains joined at 7 boundaries" in eight.solution.trace[0]
    assert eight.solution.objective <= 1.03 * one.solution.objective
    sizes = [[(link.size, link.objective) for link in run.links] for run in (one, eight)]
    assert len(set(sizes[0]) & set(sizes[1])) > 0.8 * len(set(sizes[0]))


def test_short_chains_lose_no_more() -> None:
    """Three links each: what they lose at their ends the boundaries bring back."""
    problem = Problem(census(1000, 3, seed=1), 3)
    one, many = (run_chain(problem, ChainOptions(chains=chains)) for chains in (1, 100))
    assert many.solution.objective <= 1.01 * one.solution.objective


@pytest.mark.parametrize(
    "options", [ChainOptions(chains=4), ChainOptions(chains=4, fixed=12, prefer="loss")]
)
def test_the_number_of_jobs_changes_nothing(people: Problem, options: ChainOptions) -> None:
    """Threads of the compiled loop."""
    runs = [run_chain(people, options, jobs=jobs) for jobs in (1, 2, 4)]
    assert labels_of(runs[0]) == labels_of(runs[1]) == labels_of(runs[2])
    assert runs[0].solution.options["chains"] == 4
    assert "jobs" not in runs[0].solution.options


@pytest.mark.thorough
def test_processes_give_what_threads_give(people: Problem) -> None:
    """Links on a solver run in processes, each with the table of its segment."""
    problem = people.replace(microdata=people.microdata.take(np.arange(60)))
    options = ChainOptions(chains=2, subsolver="set-partition")
    one, two = (run_chain(problem, options, jobs=jobs) for jobs in (1, 2))
    assert labels_of(one) == labels_of(two)
    assert [link.size for link in one.links] == [link.size for link in two.links]


def test_a_stretch_that_lacks_the_diversity() -> None:
    """All of one disease in a segment: its records find classes elsewhere in the end."""
    problem = Problem(census(60, 2, seed=3), 2)
    order = find_order(problem, "variance", Budget())
    disease = np.empty(60, dtype=object)
    disease[order] = ["flu"] * 30 + ["gout"] * 30
    ruled = diverse(problem, disease, distinct=2)
    for subsolver in ("exact", "set-partition"):
        solution = split_carry(ruled, chains=2, subsolver=subsolver)
        assert solution.assignment.sizes.min() >= 2


def test_a_loss_that_cannot_be_sent_is_solved_here(people: Problem) -> None:
    """A function of the user's own has no address in another process."""

    @objective(monotone=True)
    def local(record: Any) -> Any:
        return record.spread["AGE"] * record.spread["SEX"] + record.spread["AGE"]

    problem = people.replace(microdata=people.microdata.take(np.arange(48)), objective=local)
    options = ChainOptions(chains=2, S=2)
    one, two = (run_chain(problem, options, jobs=jobs) for jobs in (1, 2))
    assert labels_of(one) == labels_of(two)


def test_the_progress_is_that_of_all_chains(people: Problem) -> None:
    """Links of all of them, and the boundaries at last."""
    heard: list[Progress] = []
    budget = Budget.of(300.0, heard.append)
    run = run_chain(people, ChainOptions(chains=4), jobs=2, budget=budget)
    phases = list(dict.fromkeys(message.phase for message in heard))
    assert phases[-1] == "joining the chains"
    links = [message for message in heard if message.phase == "solving links"]
    if links:  # a busy machine may hear of none before the end
        assert all((message.done or 0) <= len(run.links) for message in links)
    assert all(message.remaining is not None for message in heard)


def test_what_is_fixed_so_far_is_no_incumbent(
    people: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss of the first links is no loss of a release, so that no message names it."""
    monkeypatch.setattr("anonymip.exact.split_carry.segments._FIRST", 1)
    monkeypatch.setattr("anonymip.exact.split_carry.segments._SECONDS_A_STEP", 0.0)
    heard: list[Progress] = []
    run = run_chain(people, ChainOptions(), budget=Budget.of(None, heard.append))
    links = [message for message in heard if message.phase == "solving links"]
    assert len(links) == len(run.links) > 1
    assert all(message.incumbent is None for message in links)


@pytest.mark.parametrize("given", [0, -1, True])
def test_how_many_chains(people: Problem, given: int) -> None:
    """At least one."""
    with pytest.raises(InputError, match="option chains"):
        split_carry(people, chains=given)
    with pytest.raises(InputError, match="jobs is -1"):
        split_carry(people, chains=2, jobs=-1)
