"""Tests of results as flat records."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from anonymip import (
    Apart,
    Attribute,
    Bound,
    Cap,
    Diversity,
    EquivalenceClasses,
    LiangGCP,
    Microdata,
    Problem,
    TableFormat,
    load_instance,
    solve,
)
from anonymip.experiments import bound_record, solution_record
from tests.by_hand import by_classes


def test_a_solution_as_a_record() -> None:
    """The record says what was asked and what was found, and is pure JSON."""
    problem = Problem(load_instance("health-records"), k=4, objective=LiangGCP())
    solution = solve(problem, "greedy-search")
    record = solution_record(solution, "health-records")
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["n"], record["m"], record["k"], record["recoding"]) == (7, 3, 4, "classes")
    assert record["objective"] == solution.objective
    assert record["objective_name"] == "liang-gcp"
    assert record["ncp"] == solution.ncp != solution.objective
    assert record["gcp"] == pytest.approx(solution.ncp / 21)
    assert record["bound"] == solution.bound.value  # type: ignore[union-attr]
    assert record["groups"] == solution.assignment.labels.tolist()
    assert record["status"] == str(solution.status)


def test_a_record_says_the_rules() -> None:
    """Diversity and limits are texts; two values that stay apart are not named."""
    limits = (Cap("Town", 2), Apart("Job", "nurse", "welder"))
    problem = Problem(load_instance("clinic-12"), 3, diversity=Diversity(distinct=2), limits=limits)
    record = solution_record(solve(problem, "mondrian"), "clinic-12")
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["diversity"] == "diversity 2 distinct sensitive values"
    assert record["limits"] == ["cap of 2 on 'Town'", "rule that two values of 'Job' stay apart"]
    plain = bound_record(Problem(load_instance("clinic-12"), 3), None, "clinic-12")
    assert (plain["diversity"], plain["limits"]) == (None, [])


def test_what_is_unknown_is_null() -> None:
    """Without a bound there is no gap and no proof; without a solution no loss."""
    problem = Problem(load_instance("health-records"), k=3)
    bare = solution_record(solve(problem, "mondrian", bound=False), "health-records")
    assert (bare["bound"], bare["gap"], bare["proof"]) == (None, None, None)
    none = bound_record(problem, None, "health-records")
    assert (none["bound"], none["objective"], none["status"]) == (None, None, "no-bound")
    some = bound_record(problem, Bound(0.25, "by hand", "argument", 1.5), "health-records")
    assert (some["bound"], some["method"], some["seconds"]) == (0.25, "by hand", 1.5)
    assert set(some) == set(none) == set(bare)


def test_groups_of_the_original_rows() -> None:
    """A suppressed row has group -1, a row left out by the missing policy has none."""
    frame = pd.DataFrame({"age": ["1", "?", "2", "900", "3"]})
    data = Microdata(frame, (Attribute("age"),), table=TableFormat(missing=("?",), policy="drop"))
    problem = Problem(data, 2, EquivalenceClasses(True))
    solution = by_classes(problem, [0, 0, -1, 0])
    assert solution_record(solution, "table")["groups"] == [0, None, 0, -1, 0]
