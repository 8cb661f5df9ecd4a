"""Tests of rings found in covers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Cover
from anonymip.graphs.rings import ring_successors


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
