"""Records join the class that the definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip.heuristics.growing.joining import joining_losses, place_leftovers
from tests.brute_force import Column, Rules, record_loss
from tests.random_problems import LOSSES, Case, ruled_cases


@settings(max_examples=80)
@given(ruled_cases(smallest=6), st.booleans())
def test_losses_are_those_of_the_larger_classes(case: Case, by_increase: bool) -> None:
    """The first record joins the pairs and the triple of the others."""
    rules = Rules() if case.rules is None else case.rules
    groups = [[1, 2], list(range(3, case.n))]
    found = joining_losses(case.problem(), groups, [0], by_increase=by_increase)
    diversity = Rules(rules.sensitive, rules.l, rules.distinct)
    limits = Rules(caps=rules.caps, apart=rules.apart)
    for group, loss in zip(groups, found, strict=True):
        joined = [*group, 0]
        spoiled = diversity.met_by(case.columns, group) and not diversity.met_by(
            case.columns, joined
        )
        if spoiled or not limits.met_by(case.columns, joined):
            assert loss == np.inf
            continue
        times = 1 if case.worst else len(joined)
        naive = times * record_loss(case.columns, case.loss.naive, joined)
        if by_increase and not case.worst:
            naive -= len(group) * record_loss(case.columns, case.loss.naive, group)
        assert loss == pytest.approx(naive, rel=1e-8, abs=1e-8)


def test_leftovers_without_room_are_told() -> None:
    """Under a cap of 2 the value 3 joins the class at 4 and 5; 50 joins none."""
    column = Column((0.0, 1.0, 4.0, 5.0, 3.0, 50.0))
    problem = Case((column,), 2, LOSSES["gcp"], rules=Rules(caps=((0, 2.0),))).problem()
    groups = [[0, 1], [2, 3]]
    assert place_leftovers(problem, groups, [4, 5], by_increase=False) == [5]
    assert groups == [[0, 1], [2, 3, 4]]
