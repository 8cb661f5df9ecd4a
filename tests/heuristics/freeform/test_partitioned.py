"""Runs in parts: what is joined is what each part gave, by the whole table's losses."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Budget,
    Hierarchy,
    InputError,
    Microdata,
    NoSolution,
    Problem,
    Progress,
    Stopped,
    census,
    objective,
    solve,
)
from anonymip.heuristics.freeform.partitioned import solve_in_parts
from anonymip.heuristics.freeform.ring import ring
from anonymip.orders.orders import cardinality_order
from anonymip.recodings import Cap, Freeform
from tests import profiles
from tests.brute_force import Column
from tests.heuristics.freeform.part_methods import failing, sleeping
from tests.random_problems import LOSSES, Case, cases


@pytest.fixture(scope="module")
def people() -> Problem:
    """Return a table of 100 people."""
    return Problem(census(100, 4, seed=5), 3, Freeform())


@settings(max_examples=60)
@given(cases(smallest=6, largest=9, suppression=False), st.integers(4, 6))
def test_sets_stay_within_parts_and_losses_are_the_whole_tables(case: Case, part: int) -> None:
    """Each part is a ring of its own; the loss is that of the sets in the whole table."""
    problem = case.problem().replace(recoding=Freeform())
    if case.n > part and part < 2 * case.k:
        with pytest.raises(InputError, match="too small for sets of"):
            solve_in_parts(problem, ring, part=part, jobs=1)
        return
    solution = solve_in_parts(problem, ring, part=part, jobs=1, order="variance")
    cover = solution.assignment
    loss = sum(case.set_loss(cover.of_record(i).tolist()) for i in range(case.n))
    assert solution.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)
    if case.n > part:
        order = cardinality_order(problem, Budget())
        for records in np.array_split(order, -(-case.n // part)):
            for record in records:
                assert set(cover.of_record(record).tolist()) <= set(records.tolist())


@settings(max_examples=60)
@given(cases(smallest=5, largest=9, suppression=False), st.data())
def test_a_part_of_a_table_keeps_domains_and_losses(case: Case, data: st.DataObject) -> None:
    """Every set of the part costs what it costs in the whole table, to the bit."""
    problem = case.problem()
    rows = data.draw(st.permutations(range(case.n)).map(lambda p: np.array(p[: case.n // 2 + 1])))
    part = problem.replace(microdata=problem.microdata.take(rows), k=2)
    assert part.n == len(rows)
    assert part.microdata.frame.equals(problem.microdata.frame.iloc[rows].reset_index(drop=True))
    pairs = np.array([[0, at] for at in range(len(rows))])
    whole = problem.compiled.class_losses(rows[pairs])
    assert part.compiled.class_losses(pairs).tolist() == whole.tolist()
    for mine, theirs in zip(part.compiled.tables, problem.compiled.tables, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.thorough
def test_processes_give_what_one_process_gives(people: Problem) -> None:
    """Two jobs, one job: the same cover; the parts and the method are told."""
    one, two = (solve_in_parts(people, ring, part=30, jobs=jobs, order="snake") for jobs in (1, 2))
    assert np.array_equal(one.assignment.members, two.assignment.members)
    assert two.method == "ring"
    assert two.options == {"order": "snake", "part": 30}
    assert two.trace == ("4 parts of up to 30 records",)
    assert two.status.stopped is Stopped.HEURISTIC


def test_a_table_of_one_part_is_solved_as_a_whole(people: Problem) -> None:
    """No part is made where one is enough."""
    for part in (0, 100):
        whole = solve_in_parts(people, ring, part=part)
        assert np.array_equal(whole.assignment.members, ring(people).assignment.members)


def test_degrees_go_with_their_records() -> None:
    """Each part asks for the degrees of its records."""
    data = census(40, 3, seed=1)
    problem = Problem(data, 2, Freeform())
    order = cardinality_order(problem, Budget())
    degrees = np.full(40, 3)
    degrees[order[:20]] = 2
    recoding = Freeform(degrees=tuple(degrees.tolist()))
    solution = solve_in_parts(problem.replace(recoding=recoding), ring, part=20, jobs=1)
    assert solution.assignment.sizes.tolist() == degrees.tolist()


def test_what_cannot_be_sent_is_solved_in_this_process(people: Problem) -> None:
    """A function of the user's own has no address in another process."""

    @objective
    def local(record: object) -> object:
        return sum(record.spread[name] for name in record.attributes)  # type: ignore[attr-defined]

    problem = people.replace(objective=local)
    solution = solve_in_parts(problem, ring, part=30, jobs=2)
    assert "solved in this one" in solution.trace[-1]
    assert solution.objective == pytest.approx(
        solve_in_parts(people, ring, part=30, jobs=1).objective
    )


def test_what_a_part_raises_is_raised(people: Problem) -> None:
    """By a process too, with its type and remedy."""
    with pytest.raises(NoSolution, match=r"this part has none\. Look elsewhere"):
        solve_in_parts(people, failing, part=30, jobs=2)


@pytest.mark.parametrize("jobs", [1, *profiles.thorough(2)])
def test_a_time_limit_ends_all_parts(people: Problem, jobs: int) -> None:
    """Each part gets a share of the time, and the status tells that it ended."""
    solution = solve_in_parts(people, sleeping, part=30, jobs=jobs, budget=Budget.of(1.0))
    assert solution.status.stopped is Stopped.TIME
    assert solution.assignment.sizes.min() == people.k


@pytest.mark.parametrize("moment", [0.05, *profiles.thorough(4.0)])
def test_an_interrupt_reaches_the_processes(people: Problem, moment: float) -> None:
    """The parts at hand end at once, those that wait too."""
    budget = Budget()
    threading.Timer(moment, budget.interrupt).start()
    solution = solve_in_parts(people, sleeping, part=30, jobs=2, budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT


def test_progress_counts_parts(people: Problem) -> None:
    """The listener hears of parts, not of what happens within them."""
    heard: list[Progress] = []
    solve_in_parts(people, ring, part=30, jobs=1, budget=Budget(progress=heard.append))
    assert [(step.phase, step.done, step.total) for step in heard] == [
        ("solving parts", done, 4) for done in range(1, 5)
    ]


def test_what_is_refused(people: Problem) -> None:
    """Parts below 2k, no jobs, limits that a part breaks."""
    with pytest.raises(InputError, match="Give at least 6"):
        solve_in_parts(people, ring, part=5, jobs=0)
    with pytest.raises(InputError, match="jobs is -1"):
        solve_in_parts(people, ring, part=30, jobs=-1)
    case = Case((Column(tuple(range(8))),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=Freeform(), limits=(Cap("a", 0.5),))
    with pytest.raises(NoSolution):
        solve_in_parts(problem, partial(ring, order="variance"), part=4, jobs=1)


def test_parts_that_lack_values_of_a_limited_hierarchy() -> None:
    """A part of which no record has some value is asked about those that it has."""
    groups = {"North": ["a", "b"], "South": ["c", "d"]}
    towns = Hierarchy.from_groups(groups)
    frame = pd.DataFrame({"town": list("aabbccdd"), "age": [1, 2, 1, 2, 71, 72, 71, 72]})
    data = Microdata(frame, (Attribute("town", "hierarchical", hierarchy=towns), Attribute("age")))
    problem = Problem(data, 2, Freeform(), limits=(Cap("town", 1),))
    solution = solve(problem, "greedy", options={"part": 4, "jobs": 1})
    assert set(solution.to_frame()["town"]) <= {*"abcd", *groups}
