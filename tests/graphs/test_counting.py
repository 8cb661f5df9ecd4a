"""Tests of counted and sampled assignments, and of the papers' small graphs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Cover, InputError
from anonymip.graphs import (
    assignment_counts,
    effective_matches,
    effective_sizes,
    sampled_shares,
)
from tests.cover_brute_force import assignments
from tests.random_covers import FIGURE_3, FIGURE_4, TABLE_4, any_graph, ring


def sets_of(cover: Cover) -> list[list[int]]:
    """Return the sets as lists."""
    return [cover.of_record(record).tolist() for record in range(cover.n)]


def total(cover: Cover) -> int:
    """Return the number of assignments."""
    return int(assignment_counts(cover)[: cover.sizes[0]].sum())


@given(st.integers(1, 7), st.sampled_from([0.3, 0.5, 0.8]), st.integers(0, 2**32 - 1))
def test_counts_against_enumeration(n: int, share: float, seed: int) -> None:
    """Every match is counted as often as enumeration meets it."""
    graph = any_graph(n, share, np.random.default_rng(seed))
    met = Counter(
        match for assignment in assignments(sets_of(graph)) for match in enumerate(assignment)
    )
    pairs = zip(graph.owners.tolist(), graph.members.tolist(), strict=True)
    assert assignment_counts(graph).tolist() == [met[pair] for pair in pairs]


def test_the_largest_graph() -> None:
    """All 20! assignments of 20 records are counted without overflow; 21 are refused."""
    assert total(Cover.of(np.tile(np.arange(20), (20, 1)))) == factorial(20)
    with pytest.raises(InputError, match="21 records are not counted"):
        assignment_counts(ring(21, 2))


def test_ring_of_five() -> None:
    """Wong et al., Section 5.2: 13 assignments; the middle matches lie in 5, the others in 4."""
    cover = ring(5, 3)
    counts = assignment_counts(cover)
    assert total(cover) == 13
    shift = (cover.members - cover.owners) % 5
    probability = {int(s): {Fraction(int(c), 13) for c in counts[shift == s]} for s in range(3)}
    assert probability == {0: {Fraction(4, 13)}, 1: {Fraction(5, 13)}, 2: {Fraction(4, 13)}}


def test_two_matches_each_yet_not_2_anonymous() -> None:
    """Wong et al., Table 4: the second record has one identity left."""
    counts = assignment_counts(TABLE_4)
    assert TABLE_4.degrees.tolist() == [2, 3, 5, 4, 2]
    assert (counts > 0).tolist() == effective_matches(TABLE_4).tolist()
    of_second = TABLE_4.members == 1
    assert TABLE_4.owners[of_second & (counts > 0)].tolist() == [1]


def test_three_effective_matches_yet_not_3_anonymous() -> None:
    """Wong et al., Fig. 4: every assignment holds (t1, t1') or (t5, t6')."""
    assert effective_matches(FIGURE_4).all()
    for sizes in effective_sizes(FIGURE_4):
        assert sizes.min() == 3
    every = list(assignments(sets_of(FIGURE_4)))
    assert all(assignment[0] == 0 or assignment[5] == 4 for assignment in every)
    assert total(FIGURE_4) == len(every)


def test_2_concealment_is_not_2_anonymity() -> None:
    """Doka et al., Fig. 3: each match lies in one or in three of four assignments."""
    counts = assignment_counts(FIGURE_3)
    assert total(FIGURE_3) == 4
    assert set(counts.tolist()) == {1, 3}
    for sizes in effective_sizes(FIGURE_3):
        assert sizes.min() >= 2


def test_samples_of_irregular_covers() -> None:
    """Possible matches are drawn, impossible ones never; shares of a record add up to one."""
    shares = sampled_shares(TABLE_4, 500, np.random.default_rng(3))
    assert ((shares > 0) == effective_matches(TABLE_4)).all()
    np.testing.assert_allclose(np.bincount(TABLE_4.members, weights=shares), 1)
    with pytest.raises(InputError, match="0 draws"):
        sampled_shares(TABLE_4, 0, np.random.default_rng(3))
