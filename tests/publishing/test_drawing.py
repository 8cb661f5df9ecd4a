"""Tests of assignments that keep a diversity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import Attribute, Classes, Cover, Diversity, Freeform, Microdata, NoSolution, Problem
from anonymip.graphs import draw_matching
from anonymip.graphs.matchings import WAYS
from anonymip.publishing.drawing import draw_diverse
from tests import profiles
from tests.cover_brute_force import assignments, effective_pairs

Sets = Sequence[Sequence[int]]


def problem_of(columns: Sequence[Sequence[int]], k: int, diversity: Diversity) -> Problem:
    """Return a problem with the given sensitive columns."""
    values = {f"s{at}": [f"v{value}" for value in column] for at, column in enumerate(columns)}
    frame = pd.DataFrame({"a": range(len(columns[0])), **values})
    data = Microdata(frame, (Attribute("a"),), sensitive=tuple(values))
    return Problem(data, k, Freeform(), diversity=diversity)


def ring(order: Sequence[int], degree: int) -> Cover:
    """Return the ring on an order of the records."""
    n = len(order)
    sets = {order[at]: [order[(at + step) % n] for step in range(degree)] for at in range(n)}
    return Cover.of([sets[record] for record in range(n)])


def shows_diverse_values(
    sets: Sets,
    columns: Sequence[Sequence[int]],
    matching: Sequence[int],
    l: float,  # noqa: E741
    distinct: int = 1,
) -> bool:
    """Return whether the rows of every record show diverse values, counted one by one."""
    true = effective_pairs(sets)
    for record in range(len(sets)):
        rows = [row for row in range(len(sets)) if (row, record) in true]
        for column in columns:
            shown = Counter(column[matching[row]] for row in rows)
            if max(shown.values()) * Fraction(l) > len(rows) or len(shown) < distinct:
                return False
    return True


def holds_diverse_values(
    sets: Sets,
    columns: Sequence[Sequence[int]],
    l: float,  # noqa: E741
    distinct: int = 1,
) -> bool:
    """Return whether every set is diverse, counted one by one."""
    for members in sets:
        for column in columns:
            held = Counter(column[record] for record in members)
            if max(held.values()) * Fraction(l) > len(members) or len(held) < distinct:
                return False
    return True


def published(sets: Sets, rng: np.random.Generator) -> tuple[int, ...]:
    """Return one of as many disjoint random assignments as a set has records.

    Each starts from a random permutation, of which the matches that are possible are kept; the
    rows without one walk at random until they find a record that is free, going back at dead ends.
    """
    left = [set(members) for members in sets]
    chosen: list[int] = []
    for _ in range(int(rng.integers(len(sets[0]))) + 1):
        for row, record in enumerate(chosen):
            left[row].discard(record)
        chosen = [int(record) for record in rng.permutation(len(sets))]
        chosen = [one if one in left[row] else -1 for row, one in enumerate(chosen)]
        for row in rng.permutation(len(sets)):
            if chosen[row] < 0:
                assert walked(left, chosen, int(row), set(), rng)
    return tuple(chosen)


def walked(
    left: Sequence[set[int]], chosen: list[int], row: int, seen: set[int], rng: np.random.Generator
) -> bool:
    """Give the row a record, and the row that had it another one, and so on."""
    for record in rng.permutation(sorted(left[row])).tolist():
        if record in seen:
            continue
        seen.add(record)
        if record not in chosen or walked(left, chosen, chosen.index(record), seen, rng):
            chosen[row] = record
            return True
    return False


def test_the_plain_construction_breaks_definition_9() -> None:
    """Nine records x y z x y z x y z, l = 3: 77 % of releases show a record too much of a value."""
    columns, cover = [[0, 1, 2] * 3], ring(range(9), 3)
    sets = cover.matches.tolist()
    assert holds_diverse_values(sets, columns, 3)
    keeping = {one for one in assignments(sets) if shows_diverse_values(sets, columns, one, 3)}
    assert len(keeping) == 6
    assert sum(1 for _ in assignments(sets)) == 78
    rng, releases = np.random.default_rng(1), 1500
    broken = sum(published(sets, rng) not in keeping for _ in range(releases))
    assert abs(broken / releases - 0.77) < 0.04
    for way in WAYS:
        drawn = (draw_matching(cover, rng, way=way) for _ in range(releases))
        broken = sum(tuple(one.tolist()) not in keeping for one in drawn)
        assert 0.7 < broken / releases < 0.9


def test_all_that_keep_it_are_drawn_and_identities_are_even() -> None:
    """On the same ring only the six are published, and each identity is true one time in three."""
    columns, cover = [[0, 1, 2] * 3], ring(range(9), 3)
    sets, problem = cover.matches.tolist(), problem_of(columns, 3, Diversity(l=3))
    rng, trials = np.random.default_rng(2), 300 if profiles.NAME == "thorough" else 120
    draws = [tuple(draw_diverse(problem, cover, rng).tolist()) for _ in range(trials)]
    keeping = {one for one in assignments(sets) if shows_diverse_values(sets, columns, one, 3)}
    assert set(draws) == keeping
    for row in range(9):
        shares = Counter(draw[row] for draw in draws)
        # Four standard deviations.
        far = 4 * (trials * 2 / 9) ** 0.5
        assert all(abs(shares[record] - trials / 3) < far for record in sets[row])


@st.composite
def diverse_rings(draw: st.DrawFn) -> tuple[Cover, list[list[int]], Diversity]:
    """Draw a ring of up to seven records whose sets are diverse."""
    n = draw(st.integers(3, 7))
    count = draw(st.integers(1, 2))
    columns = [draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(count)]
    degree = draw(st.integers(2, n))
    l, distinct = draw(st.sampled_from([(2, 1), (3, 1), (1.5, 1), (1, 2), (2, 3)]))  # noqa: E741
    cover = ring(draw(st.permutations(range(n))), degree)
    assume(holds_diverse_values(cover.matches.tolist(), columns, l, distinct))
    return cover, columns, Diversity(l=l, distinct=distinct)


@settings(max_examples=60)
@given(diverse_rings(), st.integers(0, 5))
def test_rings_are_always_published(
    given_ring: tuple[Cover, list[list[int]], Diversity], seed: int
) -> None:
    """One or two sensitive columns, l and distinct values: what is drawn keeps it."""
    cover, columns, diversity = given_ring
    problem = problem_of(columns, 2, diversity)
    drawn = draw_diverse(problem, cover, np.random.default_rng(seed)).tolist()
    sets = cover.matches.tolist()
    assert sorted(drawn) == list(range(cover.n))
    assert all(drawn[row] in sets[row] for row in range(cover.n))
    assert shows_diverse_values(sets, columns, drawn, diversity.l, diversity.distinct)
    again = draw_diverse(problem, cover, np.random.default_rng(seed)).tolist()
    assert again == drawn


@settings(max_examples=40)
@given(
    st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=6, max_size=6),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.integers(0, 3),
)
def test_covers_of_all_kinds(others: list[set[int]], column: list[int], seed: int) -> None:
    """What is drawn keeps the diversity; it is refused only if there is no such assignment."""
    sets = [sorted({record, *more}) for record, more in enumerate(others)]
    assume(max(Counter(column).values()) <= 3)
    problem = problem_of([column], 2, Diversity(l=2))
    possible = {one for one in assignments(sets) if shows_diverse_values(sets, [column], one, 2)}
    rng = np.random.default_rng(seed)
    if possible:
        assert tuple(draw_diverse(problem, Cover.of(sets), rng).tolist()) in possible
    else:
        with pytest.raises(NoSolution, match="ask for a larger k"):
            draw_diverse(problem, Cover.of(sets), rng)


def test_classes_are_permuted_and_parts_are_independent() -> None:
    """A class takes any permutation; a ring beside it still gets what keeps the diversity."""
    whole = Cover.of_classes(Classes(np.array([0, 0, 0])))
    part = ring(range(9), 3).matches + 3
    cover = Cover.of([*whole.matches, *part])
    columns = [[0, 1, 2] * 4]
    problem, rng = problem_of(columns, 3, Diversity(l=3)), np.random.default_rng(3)
    draws = [draw_diverse(problem, cover, rng).tolist() for _ in range(60)]
    assert {tuple(draw[:3]) for draw in draws} == set(permutations(range(3)))
    rest = [[record - 3 for record in draw[3:]] for draw in draws]
    assert all(shows_diverse_values((part - 3).tolist(), columns, one, 3) for one in rest)


def test_a_tight_ring_is_published_along_a_shift() -> None:
    """Sixty records of three values in turn: nothing but a shift is found, one of all of them."""
    columns, cover = [[0, 1, 2] * 20], ring(range(60), 6)
    problem, rng = problem_of(columns, 6, Diversity(l=3)), np.random.default_rng(4)
    shifts = {
        int(np.unique((draw_diverse(problem, cover, rng) - np.arange(60)) % 60).item())
        for _ in range(25 if profiles.NAME == "thorough" else 12)
    }
    assert shifts <= set(range(6))
    assert len(shifts) >= 4


def test_a_hopeless_cover_is_refused() -> None:
    """Two rows that both can only show the same value: the message names a record and ways out."""
    column = [0, 0, 1, 1]
    problem = problem_of([column], 2, Diversity(l=2))
    cover = Cover.of([[0, 1], [0, 1], [2, 3], [2, 3]])
    with pytest.raises(NoSolution, match=r"record 0 can be .* larger k"):
        draw_diverse(problem, cover, np.random.default_rng(0))
