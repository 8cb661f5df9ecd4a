"""Whatever comes in, what the repair lets out keeps the rules, or it says that it found nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import Classes, NoSolution
from anonymip.heuristics.growing import repair as module
from anonymip.heuristics.growing.repair import repaired
from anonymip.runtime.budget import Budget, compilation_clock
from tests.brute_force import Column, Rules
from tests.random_problems import LOSSES, Case, groups_of, ruled_cases


@settings(max_examples=200)
@given(st.data(), ruled_cases(largest=8))
def test_repaired_classes_keep_all_rules(data: st.DataObject, case: Case) -> None:
    """From any partition into sets of k, with any records without a class."""
    assume(case.rules is not None)
    problem, rules = case.problem(), case.rules
    assert rules is not None
    order = data.draw(st.permutations(range(case.n)))
    labels = np.full(case.n, -1, np.int64)
    for number in range(data.draw(st.integers(0, case.n // case.k))):
        labels[order[number * case.k : (number + 1) * case.k]] = number
    try:
        mended = repaired(problem, labels, "test", Budget())
    except NoSolution:
        # The whole table is diverse, so without limits or with suppression there is a way.
        assert rules.caps or rules.apart
        assert not case.suppression
        return
    classes = Classes(mended)  # type: ignore[arg-type]
    problem.recoding.check(problem, classes)
    for group in groups_of(classes):
        assert len(group) >= case.k
        assert rules.met_by(case.columns, group)


def test_plain_labels_pass_untouched() -> None:
    """Without rules and without records left there is nothing to repair."""
    problem = Case((Column((0.0, 1.0, 2.0, 9.0)),), 2, LOSSES["gcp"]).problem()
    labels = np.array([0, 1, 0, 1])
    assert repaired(problem, labels, "test", Budget()) is labels


def test_records_without_a_class_join_one() -> None:
    """A record that is left joins the class whose loss rises least, rules or none."""
    problem = Case((Column((0.0, 1.0, 9.0, 10.0, 8.0)),), 2, LOSSES["gcp"]).problem()
    labels = repaired(problem, np.array([0, 0, 1, 1, -1]), "test", Budget())
    assert groups_of(Classes(labels)) == ((0, 1), (2, 3, 4))  # type: ignore[arg-type]


def test_companions_are_taken_from_large_classes() -> None:
    """Under a cap of 2 the value 5 fits no class of 0 to 4 as a whole, but 4 can be spared."""
    case = Case(
        (Column((2.0, 3.0, 4.0, 5.0)), Column((0.0, 0.0, 1.0, 1.0))),
        2,
        LOSSES["gcp"],
        rules=Rules(caps=((0, 2.0),)),
    )
    labels = repaired(case.problem(), np.array([0, 0, 0, -1]), "test", Budget())
    assert groups_of(Classes(labels)) == ((0, 1), (2, 3))  # type: ignore[arg-type]


def test_a_class_is_dissolved_for_a_record_without_companions() -> None:
    """The values 2 and 6 have 4 as their only neighbour but for 0 and 8, each in a pair."""
    case = Case(
        (Column((0.0, 2.0, 4.0, 6.0, 4.0)),), 2, LOSSES["gcp"], rules=Rules(caps=((0, 2.0),))
    )
    labels = repaired(case.problem(), np.array([-1, 0, 0, -1, -1]), "test", Budget())
    assert groups_of(Classes(labels)) == ((0, 1), (2, 3, 4))  # type: ignore[arg-type]


@pytest.mark.parametrize("suppression", [False, True])
def test_impossible_limits(suppression: bool) -> None:
    """A value that fits no other is suppressed, or there is no solution and the error says why."""
    case = Case(
        (Column((0.0, 1.0, 2.0, 90.0)),), 2, LOSSES["gcp"], suppression, Rules(caps=((0, 5.0),))
    )
    labels = np.array([0, 0, 1, 1])
    if suppression:
        mended = repaired(case.problem(), labels, "test", Budget())
        assert mended.tolist()[3] == -1
        assert groups_of(Classes(mended)) == ((0, 1, 2),)  # type: ignore[arg-type]
        return
    assert case.optimum() == math.inf
    with pytest.raises(NoSolution, match="record 3 that keeps the cap of 5 on 'a'") as caught:
        repaired(case.problem(), labels, "test", Budget())
    assert caught.value.exit_code == 3
    assert "exact method" in str(caught.value.remedy)


LATE = Case(
    (Column((0.0, 1.0, 2.0, 9.0, 10.0, 11.0)),),
    2,
    LOSSES["gcp"],
    rules=Rules((("x", "x", "y", "y", "x", "y"),), distinct=2),
)


def test_without_time_classes_that_are_not_diverse_become_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The classes of x x and y y are merged without a look at the loss; x y stays."""
    monkeypatch.setattr(module, "NUMBERS", replace(module.NUMBERS, grace=-1.0))
    labels = repaired(LATE.problem(), np.array([0, 0, 1, 1, 2, 2]), "test", Budget(deadline=0.0))
    assert groups_of(Classes(labels)) == ((0, 1, 2, 3), (4, 5))  # type: ignore[arg-type]


def test_seconds_in_which_kernels_are_loaded_are_given_on_top(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that has loaded nothing yet mends with care all the same."""
    now, order = [0.0], module.variance_order

    def loading(*asked: Any) -> Any:
        now[0] += 100.0
        monkeypatch.setattr(compilation_clock, "seconds", compilation_clock.seconds + 100.0)
        return order(*asked)

    problem, labels = LATE.problem(), np.array([0, 0, 1, 1, 2, 2])
    mended = repaired(problem, labels, "test", Budget()).tolist()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(module, "variance_order", loading)
    assert repaired(problem, labels, "test", Budget(deadline=-1.0)).tolist() == mended
    monkeypatch.setattr(module, "compilation_seconds", lambda: 0.0)
    assert repaired(problem, labels, "test", Budget(deadline=-1.0)).tolist() != mended


@pytest.mark.parametrize("limit", [None, 3600.0])
def test_without_time_records_are_suppressed_where_allowed(
    monkeypatch: pytest.MonkeyPatch, limit: float | None
) -> None:
    """An interrupt counts like the end of the time, with a time limit or without."""
    monkeypatch.setattr(module, "NUMBERS", replace(module.NUMBERS, grace=-1.0))
    budget = Budget.of(limit)
    budget.interrupt()
    problem = replace(LATE, suppression=True).problem()
    labels = repaired(problem, np.array([0, 0, 1, 1, 2, 2]), "test", budget)
    assert labels.tolist() == [-1, -1, -1, -1, 0, 0]
    # No class is grown of records without one either.
    assert repaired(problem, np.full(6, -1), "test", budget).tolist() == [-1] * 6


def test_an_interrupt_leaves_the_grace_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts from when it is heard, and lengthens no time that ends sooner."""
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    given = SimpleNamespace(progress=None, is_interrupted=False, remaining=lambda: 3600.0)
    grace = module._Grace(given)  # type: ignore[arg-type]
    assert grace.remaining() == 3602.0
    given.is_interrupted = True
    assert grace.remaining() == 2.0
    now[0] += 1.5
    assert grace.remaining() == 0.5
    ended = SimpleNamespace(progress=None, is_interrupted=False, remaining=lambda: 0.0)
    grace = module._Grace(ended)  # type: ignore[arg-type]
    now[0] += 1.5
    ended.is_interrupted = True
    assert grace.remaining() == 0.5


def test_without_time_limits_may_have_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under limits nothing can be merged blindly: the error asks for time."""
    monkeypatch.setattr(module, "NUMBERS", replace(module.NUMBERS, grace=-1.0))
    assert LATE.rules is not None
    problem = replace(LATE, rules=replace(LATE.rules, caps=((0, 11.0),))).problem()
    with pytest.raises(NoSolution, match="time ended"):
        repaired(problem, np.array([0, 0, 1, 1, 2, 2]), "test", Budget(deadline=0.0))


def test_too_frequent_values_are_suppressed_where_that_is_cheaper() -> None:
    """No release of x x x x y has two values in each class without suppressing or joining all."""
    sensitive = (("x", "x", "x", "x", "x", "y"),)
    case = Case(
        (Column((0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),),
        2,
        LOSSES["gcp"],
        True,
        Rules(sensitive, l=Fraction(2)),
    )
    labels = repaired(case.problem(), np.array([0, 0, 0, 1, 1, 1]), "test", Budget())
    classes = Classes(labels)  # type: ignore[arg-type]
    case.problem().recoding.check(case.problem(), classes)
    assert classes.suppressed >= 4
