"""What a class needs to be diverse, against plain counting."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Diversity, Problem
from anonymip.heuristics.growing.sensitive_mix import SensitiveMix
from tests.brute_force import Column, Rules
from tests.random_problems import microdata

RATIOS = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)])


@st.composite
def mixes(draw: st.DrawFn) -> tuple[Problem, Rules, list[int]]:
    """Draw a problem with a diversity that its table has, and a class."""
    n, columns = draw(st.integers(4, 9)), draw(st.integers(1, 2))
    texts = st.lists(st.sampled_from("wxyz"), min_size=n, max_size=n).map(tuple)
    sensitive = tuple(draw(texts) for _ in range(columns))
    ratio = draw(RATIOS)
    distinct = draw(st.integers(2 if ratio == 1 else 1, 3))
    # Values that occur once make the table diverse enough in all columns.
    sensitive = tuple((*values, *(f"u{at}" for at in range(3 * n))) for values in sensitive)
    table = (Column(tuple(range(4 * n))),)
    data = microdata(table, sensitive)
    diversity = Diversity(l=float(ratio), distinct=distinct)
    members = draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    problem = Problem(data, draw(st.integers(2, 4)), diversity=diversity)
    return problem, Rules(sensitive, ratio, distinct), members


def allowed(problem: Problem, rules: Rules, members: list[int]) -> bool:
    """Return whether records may be a class."""
    return len(members) >= problem.k and rules.met_by((), members)


@settings(max_examples=150)
@given(mixes())
def test_needed_is_the_least_number_of_new_values(drawn: tuple[Problem, Rules, list[int]]) -> None:
    """So many records with values of their own make the class allowed, and no fewer do."""
    problem, rules, members = drawn
    fresh = [at for at in range(problem.n) if at >= problem.n - 3 * (problem.n // 4)]
    needed = SensitiveMix(problem, np.array(members)).needed()
    assert allowed(problem, rules, members + fresh[:needed])
    if needed:
        assert not allowed(problem, rules, members + fresh[: needed - 1])


@settings(max_examples=100)
@given(mixes())
def test_candidates_are_counted_as_if_they_had_joined(
    drawn: tuple[Problem, Rules, list[int]],
) -> None:
    """What a class needs with each candidate is what the larger class needs."""
    problem, _, members = drawn
    others = np.array([at for at in range(problem.n) if at not in members])
    mix = SensitiveMix(problem, np.array(members))
    counted = mix.needed_with(others)
    for at, record in enumerate(others.tolist()):
        mix.add(record)
        assert counted[at] == mix.needed()
        mix.remove(record)


@settings(max_examples=100)
@given(mixes())
def test_leaving_is_allowed_if_the_rest_is_diverse(drawn: tuple[Problem, Rules, list[int]]) -> None:
    """A record may leave if the others are diverse, or none is left."""
    problem, rules, members = drawn
    able = SensitiveMix(problem, np.array(members)).diverse_without(np.array(members))
    for record, can in zip(members, able, strict=True):
        rest = [other for other in members if other != record]
        assert can == (not rest or rules.met_by((), rest))
