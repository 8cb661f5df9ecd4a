"""The row bound equals its definition and never exceeds an optimum."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from anonymip import NoSolution, PatternGuided, Problem, Suppressions
from anonymip.bounds.patterns.pattern_lagrangian import pattern_row_bound, pattern_row_terms
from tests.bounds.patterns.pattern_references import row_sum
from tests.random_patterns import PatternCase, pattern_cases
from tests.random_problems import larger_microdata


@settings(max_examples=120)
@given(pattern_cases(ruled=True))
def test_equals_its_definition_and_is_no_more_than_the_optimum(case: PatternCase) -> None:
    """The cheapest pattern of every record, tried one by one; rules only raise the optimum."""
    expected = row_sum(case)
    problem = case.problem()
    if expected is None:
        with pytest.raises(NoSolution, match="shares no row"):
            pattern_row_bound(problem)
        assert case.optimum() is None
        return
    bound = pattern_row_bound(problem)
    assert bound.value == expected
    assert pattern_row_terms(problem).sum() == expected
    assert bound.proof == "argument"
    best = case.optimum()
    assert best is None or bound.value <= best


def test_fractions_are_lowered_by_their_rounding() -> None:
    """A sum of rounded costs must not lie above the loss of the same cells."""
    microdata = larger_microdata(3, 60)
    costs = dict.fromkeys(microdata.names, 0.1)
    problem = Problem(microdata, 3, PatternGuided(), Suppressions(costs))
    bound, terms = pattern_row_bound(problem), pattern_row_terms(problem).sum()
    assert bound.value < terms
    assert bound.value == pytest.approx(terms, rel=1e-8)
