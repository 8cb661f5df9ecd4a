"""Limits as terms of the loss: infinite exactly where one is broken, and kept by every move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import Apart, Cap, Diversity, EquivalenceClasses, Problem, census
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.local_search.current_classes import CurrentRelease
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.methods.selection import picked_method
from anonymip.problem import losses_within_limits
from tests.by_hand import with_illness
from tests.hard_losses import FALLING
from tests.random_problems import Case, ruled_cases

_CAPS = (Cap("AGE", 25), Apart("MARST", 1, 6))
#: Rules that a census table of 150 records can keep with k = 4.
RULES: dict[str, dict[str, Any]] = {
    "diversity": {"diversity": Diversity(l=3)},
    "limits": {"limits": _CAPS, "recoding": EquivalenceClasses(suppression=True)},
    "both": {"limits": (Cap("AGE", 60),), "diversity": Diversity(distinct=2)},
}


def _ruled(n: int, rules: str) -> Problem:
    """Return a table with a sensitive column of five values, under rules."""
    return Problem(with_illness(census(n, 5, seed=n), np.arange(n) % 5), 4, **RULES[rules])


@settings(max_examples=120)
@given(ruled_cases(), st.data())
def test_a_class_loses_infinitely_where_it_breaks_a_limit(case: Case, data: st.DataObject) -> None:
    """As whole classes are judged that are evaluated in batches."""
    problem = case.problem()
    assume(problem.limits)
    class_of = data.draw(st.lists(st.sampled_from([0, -1]), min_size=case.n, max_size=case.n))
    assume(0 in class_of)
    labels = np.array(class_of)
    rows = np.flatnonzero(labels == 0)
    expected = float(losses_within_limits(problem, rows[None])[0])
    if problem.compiled.aggregate == "sum":
        expected /= len(rows)
    found = float(CurrentRelease.of(problem, labels).current.losses[0])
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rules", list(RULES))
def test_what_is_improved_loses_less_than_its_start(rules: str) -> None:
    """Moves and trials go on from greedy classes without breaking a rule."""
    problem = _ruled(150, rules)
    first = greedy_search(problem)
    found = local_search(problem, from_method="greedy-search")
    assert found.trace[0] == f"start: {first.objective:.6g} by greedy-search"
    assert found.objective < 0.95 * first.objective
    problem.recoding.check(problem, found.assignment)


@pytest.mark.parametrize("rules", list(RULES))
def test_large_tables_under_rules_are_improved(rules: str) -> None:
    """Where whole classes are evaluated, which is for losses without tables, they are not."""
    problem = _ruled(1_200, rules)
    assert picked_method(problem, "normal") == "local-search"
    assert picked_method(problem.replace(objective=FALLING.objective), "quick") == "local-search"
