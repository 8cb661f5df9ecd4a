"""Rules of classes against the definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from anonymip.problem import (
    are_diverse,
    has_rules,
    is_plain,
    losses_within_limits,
    named_rules,
    within_limits,
)
from tests.brute_force import Rules, record_loss
from tests.random_problems import Case, ruled_cases


@settings(max_examples=80)
@given(ruled_cases(largest=6))
def test_as_defined(case: Case) -> None:
    """Limits, diversity and losses of all classes of k records."""
    problem = case.problem()
    rules = Rules() if case.rules is None else case.rules
    sets = np.array(list(combinations(range(case.n), case.k)))
    limits = Rules(caps=rules.caps, apart=rules.apart)
    met = [limits.met_by(case.columns, rows) for rows in sets.tolist()]
    assert within_limits(problem, sets).tolist() == met
    diverse = Rules(rules.sensitive, rules.l, rules.distinct)
    assert are_diverse(problem, sets).tolist() == [
        diverse.met_by(case.columns, rows) for rows in sets.tolist()
    ]
    times = 1 if case.worst else case.k
    for rows, kept, loss in zip(sets, met, losses_within_limits(problem, sets), strict=True):
        naive = times * record_loss(case.columns, case.loss.naive, rows.tolist())
        assert loss == (pytest.approx(naive, rel=1e-8, abs=1e-8) if kept else np.inf)
    assert has_rules(problem) == (case.rules is not None)
    assert is_plain(problem) == (case.rules is None and problem.compiled.has_tables)
    assert named_rules(problem).count("the ") >= len(problem.limits)
