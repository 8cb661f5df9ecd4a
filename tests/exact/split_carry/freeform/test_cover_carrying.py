"""What of a cover is fixed is closed by itself, and what is carried over is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Cover
from anonymip.exact.split_carry.freeform.cover_carrying import carry_components
from tests.random_covers import any_cover, regular_cover, ring


def blocks(*sizes: int, k: int) -> Cover:
    """Return a ring on each of so many records that follow each other."""
    sets, begin = [], 0
    for size in sizes:
        sets += [begin + ring(size, k).of_record(at) for at in range(size)]
        begin += size
    return Cover.of(sets)


@pytest.mark.parametrize(("boundary", "fixed"), [(1, 6), (3, 6), (4, 3), (6, 3), (7, 0)])
def test_components_of_the_boundary_go_on(boundary: int, fixed: int) -> None:
    """Those without one of the last records are fixed."""
    carry = carry_components(blocks(3, 3, 3, k=3), boundary, 3, 0)
    assert carry.fixed.tolist() == list(range(fixed))
    assert not carry.cut
    assert sorted(map(tuple, carry.whole)) == [
        (first, first + 1, first + 2) for first in range(fixed, 9, 3)
    ]


def test_large_components_are_cut() -> None:
    """From 2k records on k of them go, nearest the end; unless there is room for the whole."""
    cover = blocks(5, 6, k=3)
    carry = carry_components(cover, 7, 3, 0)
    assert [whole.tolist() for whole in carry.whole] == [[0, 1, 2, 3, 4]]
    (cut,) = carry.cut
    assert cut.stay.tolist() == [5, 6, 7]
    assert cut.go.tolist() == [8, 9, 10]
    assert len(carry_components(cover, 7, 3, 10).cut) == 1
    roomy = carry_components(cover, 7, 3, 11)
    assert not roomy.cut
    assert sorted(map(len, roomy.whole)) == [5, 6]


@given(st.data())
def test_what_is_fixed_is_closed(data: st.DataObject) -> None:
    """Every record is in one place; no set reaches from one place into another."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    k = data.draw(st.integers(2, 4))
    sizes = data.draw(st.lists(st.integers(k, 4 * k), min_size=1, max_size=4))
    if data.draw(st.booleans()):
        parts = [regular_cover(size, k, rng) for size in sizes]
    else:
        parts = [any_cover(size, 0.1, rng) for size in sizes]
    order = rng.permutation(sum(sizes))
    ends = np.cumsum(sizes)
    sets = [np.empty(0, np.int64)] * int(ends[-1])
    for part, end in zip(parts, ends, strict=True):
        for at in range(part.n):
            sets[order[end - part.n + at]] = order[end - part.n + part.of_record(at)]
    cover = Cover.of(sets)
    boundary = data.draw(st.integers(1, cover.n))
    most = data.draw(st.integers(0, cover.n))
    carry = carry_components(cover, boundary, k, most)
    places = [carry.fixed, *carry.whole]
    for cut in carry.cut:
        places.append(np.concatenate([cut.stay, cut.go]))
        assert len(cut.go) == k
        assert len(cut.stay) >= k
        assert cut.stay.max() < cut.go.min()
        assert len(cut.stay) + len(cut.go) >= 2 * k
    assert sorted(np.concatenate(places).tolist()) == list(range(cover.n))
    place_of = np.empty(cover.n, np.int64)
    for number, place in enumerate(places):
        place_of[place] = number
    assert (place_of[cover.owners] == place_of[cover.members]).all()
    assert carry.fixed.max(initial=-1) < cover.n - boundary
    going = sum(map(len, carry.whole)) + k * len(carry.cut)
    assert going <= max(most, boundary * (2 * k - 1))
    for place in places[1:]:
        assert place.max() >= cover.n - boundary
