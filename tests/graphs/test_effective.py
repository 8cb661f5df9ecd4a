"""Tests of effective matches against all assignments."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Cover
from anonymip.graphs import components, effective_matches, effective_sizes
from anonymip.graphs.effective import ring_successors
from tests.cover_brute_force import effective_pairs
from tests.random_covers import any_cover, regular_cover


@given(st.integers(1, 7), st.sampled_from([0.1, 0.2, 0.4]), st.integers(0, 2**32 - 1))
def test_matches_in_some_assignment(n: int, share: float, seed: int) -> None:
    """Wong et al., Theorem 1: exactly those inside a strongly connected component."""
    cover = any_cover(n, share, np.random.default_rng(seed))
    pairs = effective_pairs([cover.of_record(record).tolist() for record in range(n)])
    matches = list(zip(cover.owners.tolist(), cover.members.tolist(), strict=True))
    assert effective_matches(cover).tolist() == [match in pairs for match in matches]
    published, original = effective_sizes(cover)
    assert published.tolist() == [sum(one == i for one, _ in pairs) for i in range(n)]
    assert original.tolist() == [sum(one == i for _, one in pairs) for i in range(n)]
    # Theorem 2: no assignment leads from one component into another.
    labels = components(cover)
    assert all(labels[one] == labels[other] for one, other in pairs)


@given(st.integers(2, 9), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_all_matches_of_a_regular_cover_are_effective(n: int, k: int, seed: int) -> None:
    """Each lies in one of its disjoint assignments."""
    cover = regular_cover(n, min(k, n), np.random.default_rng(seed))
    assert effective_matches(cover).all()


@given(st.data(), st.lists(st.integers(3, 9), min_size=1, max_size=3), st.integers(1, 3))
def test_rings_are_found(data: st.DataObject, sizes: list[int], degree: int) -> None:
    """Whatever the order of the records: walking along what is found gives every set."""
    n = sum(sizes)
    order = data.draw(st.permutations(range(n)))
    sets: list[list[int]] = [[] for _ in range(n)]
    begin = 0
    for size in sizes:
        ring = order[begin : begin + size]
        for place, record in enumerate(ring):
            sets[record] = [ring[(place + step) % size] for step in range(degree)]
        begin += size
    following = ring_successors(Cover.of(sets))
    assert following is not None
    for record in range(n):
        walked = [record]
        while len(walked) < degree:
            walked.append(int(following[walked[-1]]))
        assert sorted(walked) == sorted(sets[record])


def test_what_is_no_ring_is_not_taken_for_one() -> None:
    """Not regular; regular without an order; sets on both sides of the record."""
    assert ring_successors(Cover.of([[0, 1], [0, 1], [2]])) is None
    leaping = (np.arange(9)[:, None] + np.array([0, 1, 3])) % 9
    assert ring_successors(Cover.of(leaping)) is None
    both_sides = (np.arange(7)[:, None] + np.array([-1, 0, 1])) % 7
    assert ring_successors(Cover.of(both_sides)) is None
