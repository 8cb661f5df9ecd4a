"""Tests of matchings: decompositions, how often each is drawn, effective matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from anonymip import Cover, InputError, InvalidAssignment
from anonymip.graphs import (
    components,
    degree_of,
    draw_matching,
    effective_matches,
    effective_sizes,
    random_matchings,
)
from anonymip.graphs.matchings import WAYS, ring_successors
from tests import profiles
from tests.cover_brute_force import assignments, effective_pairs
from tests.random_covers import (
    FIGURE_3,
    FIGURE_4,
    TABLE_4,
    any_cover,
    regular_cover,
    ring,
)

SEEDS = st.integers(0, 2**32 - 1)
#: Regular covers and numbers of draws; where a first matching alone is uneven, this shows.
EVEN = [
    (ring(5, 3), 10_000),
    *((ring(n, k), 2000) for n, k in ((4, 4), (9, 2))),
    *((regular_cover(8, k, np.random.default_rng(k)), 2000) for k in (3, 4)),
]


def keys(cover: Cover, matchings: NDArray[np.int32]) -> list[int]:
    """Return the edges of some matchings as numbers, ascending."""
    return sorted((np.arange(cover.n) * cover.n + matchings).ravel().tolist())


def assert_decomposed(cover: Cover, matchings: NDArray[np.int32]) -> None:
    """Check that every matching uses each original once, all together each edge once."""
    for matching in matchings:
        assert sorted(matching.tolist()) == list(range(cover.n))
    assert keys(cover, matchings) == sorted((cover.owners * cover.n + cover.members).tolist())


def sampled_shares(cover: Cover, draws: int, seed: int, way: str = WAYS[0]) -> NDArray[np.float64]:
    """Return (edges,) the share of drawn matchings that hold each edge."""
    rng = np.random.default_rng(seed)
    edges = cover.owners * cover.n + cover.members
    rows = np.arange(cover.n) * cover.n
    drawn = np.zeros(len(edges))
    for _ in range(draws):
        drawn[np.searchsorted(edges, rows + draw_matching(cover, rng, way=way))] += 1
    return drawn / draws


@pytest.mark.parametrize("way", WAYS)
@given(n=st.integers(1, 9), degree=st.integers(1, 9), seed=SEEDS)
def test_a_regular_cover_falls_into_matchings(way: str, n: int, degree: int, seed: int) -> None:
    """As many disjoint perfect matchings as the degree cover every edge."""
    rng = np.random.default_rng(seed)
    cover = regular_cover(n, min(degree, n), rng)
    assert_decomposed(cover, random_matchings(cover, min(degree, n), rng, way=way))


@pytest.mark.parametrize("way", WAYS)
def test_records_need_not_lie_in_their_own_sets(way: str) -> None:
    """Originals may be numbered in any way."""
    rng = np.random.default_rng(4)
    sets = regular_cover(40, 5, rng).matches
    cover = Cover.of(rng.permutation(40)[sets])
    assert_decomposed(cover, random_matchings(cover, 5, rng, way=way))


@pytest.mark.crossed
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cover_of", [lambda _: ring(3000, 7), partial(regular_cover, 1500, 2)])
def test_larger_covers(way: str, cover_of: Callable[[np.random.Generator], Cover]) -> None:
    """Long walks close too."""
    cover = cover_of(np.random.default_rng(8))
    degree = degree_of(cover)
    assert degree is not None
    assert_decomposed(cover, random_matchings(cover, degree, np.random.default_rng(1), way=way))


@pytest.mark.parametrize("way", WAYS)
def test_the_first_matchings_do_not_depend_on_how_many_are_drawn(way: str) -> None:
    """So the index of the published one can be drawn first."""
    cover = ring(50, 6)
    few = random_matchings(cover, 3, np.random.default_rng(5), way=way)
    all_of_them = random_matchings(cover, 6, np.random.default_rng(5), way=way)
    np.testing.assert_array_equal(few, all_of_them[:3])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("cover", "draws"), EVEN, ids=str)
def test_each_identity_is_the_true_one_equally_often(way: str, cover: Cover, draws: int) -> None:
    """Of a published record and of an original: a chi-square test."""
    draws = profiles.tried(draws)
    shares = sampled_shares(cover, draws, 20, way)
    degree = int(cover.sizes[0])
    statistic = draws * degree * (shares - 1 / degree) ** 2
    for side in (cover.owners, cover.members):
        of_record = np.bincount(side, weights=statistic)
        assert of_record.max() < chi2.ppf(1 - 1e-5, degree - 1)
        np.testing.assert_allclose(np.bincount(side, weights=shares), 1)


def test_the_first_matching_alone_would_not_do() -> None:
    """On the ring of 5 records with k = 3 it prefers the middle matches: Section 5.2.1."""
    cover, draws, rng = ring(5, 3), 1000, np.random.default_rng(6)
    middle = (np.arange(5) + 1) % 5
    met = sum(
        np.count_nonzero(random_matchings(cover, 1, rng, way="cycle walks")[0] == middle)
        for _ in range(draws)
    )
    assert met / (5 * draws) > 0.345


@given(n=st.integers(2, 7), share=st.sampled_from([0.1, 0.3, 0.6]), seed=SEEDS)
def test_irregular_covers(n: int, share: float, seed: int) -> None:
    """What is drawn is an assignment."""
    rng = np.random.default_rng(seed)
    cover = any_cover(n, share, rng)
    matching = draw_matching(cover, rng)
    assert tuple(matching.tolist()) in set(assignments([cover.of_record(i) for i in range(n)]))


@pytest.mark.parametrize("cover", [TABLE_4, FIGURE_4])
def test_every_assignment_of_an_irregular_cover_can_be_drawn(cover: Cover) -> None:
    """None is left out, or an adversary could leave it out as well."""
    rng = np.random.default_rng(2)
    drawn = {tuple(draw_matching(cover, rng).tolist()) for _ in range(1000)}
    assert drawn == set(assignments([cover.of_record(i) for i in range(cover.n)]))


def test_degrees() -> None:
    """Both sides count."""
    assert degree_of(ring(6, 4)) == 4
    assert degree_of(TABLE_4) is None
    assert degree_of(Cover.of([[0, 1], [0, 1], [0, 2]])) is None


def test_refusals() -> None:
    """What cannot be drawn is refused with the reason."""
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="random walks or cycle walks"):
        draw_matching(ring(5, 2), rng, way="first")
    with pytest.raises(InputError, match="random walks or cycle walks"):
        draw_matching(TABLE_4, rng, way="first")
    with pytest.raises(InputError, match="4 disjoint matchings of a cover of degree 3"):
        random_matchings(ring(5, 3), 4, rng)
    with pytest.raises(InvalidAssignment, match="not regular"):
        random_matchings(TABLE_4, 1, rng)
    with pytest.raises(InvalidAssignment, match="no perfect matching"):
        draw_matching(Cover.of([[1], [1], [0, 2]]), rng)


def sets_of(cover: Cover) -> list[list[int]]:
    """Return the sets as lists."""
    return [cover.of_record(record).tolist() for record in range(cover.n)]


def test_two_matches_each_yet_not_2_anonymous() -> None:
    """Wong et al., Table 4: the second record has one identity left."""
    assert TABLE_4.degrees.tolist() == [2, 3, 5, 4, 2]
    of_second = TABLE_4.members == 1
    assert TABLE_4.owners[of_second & effective_matches(TABLE_4)].tolist() == [1]


def test_three_effective_matches_yet_not_3_anonymous() -> None:
    """Wong et al., Fig. 4: every assignment holds (t1, t1') or (t5, t6')."""
    assert effective_matches(FIGURE_4).all()
    for sizes in effective_sizes(FIGURE_4):
        assert sizes.min() == 3
    every = list(assignments(sets_of(FIGURE_4)))
    assert all(assignment[0] == 0 or assignment[5] == 4 for assignment in every)


def test_2_concealment_is_not_2_anonymity() -> None:
    """Doka et al., Fig. 3: each match lies in one or in three of four assignments."""
    every = list(assignments(sets_of(FIGURE_3)))
    assert len(every) == 4
    assert set(Counter(match for one in every for match in enumerate(one)).values()) == {1, 3}
    for sizes in effective_sizes(FIGURE_3):
        assert sizes.min() >= 2


def test_samples_of_irregular_covers() -> None:
    """Possible matches are drawn, impossible ones never; shares of a record add up to one."""
    shares = sampled_shares(TABLE_4, 500, 3)
    assert ((shares > 0) == effective_matches(TABLE_4)).all()
    np.testing.assert_allclose(np.bincount(TABLE_4.members, weights=shares), 1)


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
