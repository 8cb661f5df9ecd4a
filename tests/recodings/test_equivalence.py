"""Tests of equivalence classes: what they allow and what they publish."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    Classes,
    EquivalenceClasses,
    InvalidAssignment,
    Problem,
    load_instance,
    objective,
)
from tests import brute_force
from tests.hard_losses import FALLING
from tests.random_problems import Case, cases, microdata

PROBLEM = Problem(load_instance("health-records"), 3)
SUPPRESSING = PROBLEM.replace(recoding=EquivalenceClasses(suppression=True))


def classes(*labels: int) -> Classes:
    """Return classes by their labels."""
    return Classes(np.array(labels))


def test_classes_of_k_records_are_accepted() -> None:
    """Table 1b of Liang & Samavi: three women, four men."""
    PROBLEM.recoding.check(PROBLEM, classes(0, 0, 0, 1, 1, 1, 1))


@pytest.mark.parametrize(
    ("assignment", "record", "reason"),
    [
        (classes(0, 0, 1, 1, 1, 1, 1), 0, "class of 2 records, fewer than k = 3"),
        (classes(0, 1, 0, 0, 0, 0, 0), 1, "class of 1 records, fewer than k = 3"),
        (classes(0, 0, 0, -1, 1, 1, 1), 3, "is suppressed, which is not allowed"),
        (classes(0, 0, 0), None, "labels 3 records, the table has 7"),
    ],
)
def test_broken_rules_name_the_record(assignment: Classes, record: int | None, reason: str) -> None:
    """The error holds the first record that breaks a rule, and which rule."""
    with pytest.raises(InvalidAssignment, match=reason) as caught:
        PROBLEM.recoding.check(PROBLEM, assignment)
    assert caught.value.record == record


def test_other_assignments_are_refused() -> None:
    """What is no partition does not pass for one."""
    with pytest.raises(InvalidAssignment, match="is no partition but list"):
        PROBLEM.recoding.check(PROBLEM, [0, 0, 0, 1, 1, 1, 1])  # type: ignore[arg-type]


def test_suppressed_records_need_no_companions() -> None:
    """With suppression, any number of records may be left out; the rest still need k."""
    SUPPRESSING.recoding.check(SUPPRESSING, classes(0, 0, 0, -1, -1, 0, 0))
    SUPPRESSING.recoding.check(SUPPRESSING, classes(*[-1] * 7))
    with pytest.raises(InvalidAssignment, match="fewer than k = 3"):
        SUPPRESSING.recoding.check(SUPPRESSING, classes(0, 0, -1, -1, -1, -1, -1))


def test_tight_ranges_and_sets_are_published() -> None:
    """Table 1b of Liang & Samavi: ends of age and zip code, the values of sex."""
    cells = PROBLEM.recoding.describe(PROBLEM, classes(0, 0, 0, 1, 1, 1, 1))
    assert cells.lower[[0, 3]][:, [0, 2]].tolist() == [[35, 22071], [61, 55099]]
    assert cells.upper[[0, 3]][:, [0, 2]].tolist() == [[37, 23061], [66, 55324]]
    assert np.isnan(cells.lower[:, 1]).all()
    assert [cells.members.of(i, 1).tolist() for i in (0, 3)] == [[0], [1]]
    assert cells.members.count[:, 0].tolist() == [3, 3, 3, 3, 3, 3, 3]
    assert not cells.suppressed.any()
    assert (cells.nodes == -1).all()


def test_suppressed_records_are_stars() -> None:
    """Their cells have no ends, no values, and are marked; others are not widened by them."""
    cells = SUPPRESSING.recoding.describe(SUPPRESSING, classes(0, 0, 0, -1, 1, 1, 1))
    assert np.isnan(cells.lower[3]).all()
    assert cells.members.count[3].tolist() == [0, 0, 0]
    assert cells.suppressed.tolist() == [[row == 3] * 3 for row in range(7)]
    assert cells.lower[4, 0] == 63


def test_all_records_may_be_suppressed() -> None:
    """Then nothing but stars is published, at the price of every record."""
    assignment = classes(*[-1] * 7)
    cells = SUPPRESSING.recoding.describe(SUPPRESSING, assignment)
    assert cells.suppressed.all()
    assert SUPPRESSING.compiled.total(cells) == 7 * 3


@given(cases(), st.data())
def test_descriptions_cover_exactly_what_the_classes_hold(case: Case, data: st.DataObject) -> None:
    """Every cell lists the values of the records of its class, no more and no less."""
    problem = case.problem()
    groups = data.draw(st.sampled_from(case.releases()))
    cells = problem.recoding.describe(problem, Classes.from_groups(groups, case.n))
    for group in groups:
        for a, column in enumerate(case.columns):
            held = {column.values[record] for record in group}
            if not column.numeric:
                held = set(map(str, held))
            for record in group:
                level = problem.microdata.levels[a]
                codes = cells.members.of(record, a)
                assert codes.tolist() == sorted(codes.tolist())
                assert set(level[codes].tolist()) == held
                if column.numeric:
                    assert cells.lower[record, a] == min(held)
                    assert cells.upper[record, a] == max(held)


def test_monotone_losses_need_no_class_of_2k() -> None:
    """A class of 2k records can be cut without loss, so 2k - 1 is the largest size needed."""
    limit = PROBLEM.recoding.max_size(PROBLEM)
    assert limit.size == 5
    assert "monotone" in limit.reason


def test_other_losses_have_no_limit() -> None:
    """Where the loss can fall the limit is unknown, and the reason names the attribute."""
    falling = objective(lambda r: r.spread["Age"] - r.spread["Sex"])
    limit = PROBLEM.recoding.max_size(PROBLEM.replace(objective=falling))
    assert limit.size is None
    assert "'Sex'" in limit.reason


@given(cases(smallest=4, largest=7))
def test_the_limit_of_the_class_size_loses_nothing(case: Case) -> None:
    """Some optimal release has no class above the limit, as full enumeration shows."""
    problem = case.problem()
    size = problem.recoding.max_size(problem).size
    assert size == 2 * case.k - 1
    small = [groups for groups in case.releases() if all(len(group) <= size for group in groups)]
    best = min(map(case.release_loss, small))
    assert best <= case.optimum() + case.slack(best)


def test_losses_without_limit_can_need_larger_classes() -> None:
    """Rewarding wide ranges makes one class of all records the best release: no limit of 2k - 1."""
    columns = (brute_force.Column((0, 1, 2, 3, 4), integer=True),)
    case = Case(columns, 2, FALLING)
    best = min(case.releases(), key=case.release_loss)
    assert best == ((0, 1, 2, 3, 4),)
    assert case.problem().recoding.max_size(case.problem()).size is None


def test_names() -> None:
    """The recoding is called classes everywhere."""
    assert PROBLEM.recoding.name == SUPPRESSING.recoding.name == "classes"


def test_attributes_published_as_sets_have_members_and_ends() -> None:
    """A numeric attribute published as a set lists its values and keeps its ends."""
    problem = Problem(microdata([brute_force.Column((1, 5, 9, 9), as_set=True)]), 2)
    cells = problem.recoding.describe(problem, classes(0, 0, 0, 0))
    assert cells.members.count[:, 0].tolist() == [3] * 4
    assert (cells.lower[0, 0], cells.upper[0, 0]) == (1.0, 9.0)
