"""Tests of regular subgraphs and perfect matchings against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Cover, InputError
from anonymip.graphs import Deficiency, effective_matches, perfect_matching, regular_subgraph
from anonymip.graphs.regular import circulation
from tests.cover_brute_force import assignments
from tests.random_covers import FIGURE_4, TABLE_4, any_cover, any_graph, regular_cover, ring

SEEDS = st.integers(0, 2**32 - 1)
SHARES = st.sampled_from([0.3, 0.5, 0.7, 0.9])


def brute_force_has_subgraph(graph: Cover, wanted: Sequence[int]) -> bool:
    """Return whether edges can be chosen so that all records have their degrees."""
    states = {tuple(wanted)}
    for record in range(graph.n):
        following = set()
        for left, chosen in product(
            states, combinations(graph.of_record(record).tolist(), wanted[record])
        ):
            after = list(left)
            for original in chosen:
                after[original] -= 1
            if min(after, default=0) >= 0:
                following.add(tuple(after))
        states = following
    return (0,) * graph.n in states


def assert_proof(graph: Cover, wanted: Sequence[int], why: Deficiency) -> None:
    """Check that the published records of a deficiency need more edges than they can have."""
    inside = set(why.originals.tolist())
    outward = sum(
        original not in inside for record in why.published for original in graph.of_record(record)
    )
    assert why.needed == sum(wanted[record] for record in why.published)
    assert why.available == outward + sum(wanted[original] for original in inside)
    assert why.needed > why.available


@st.composite
def wishes(draw: st.DrawFn) -> tuple[Cover, list[int]]:
    """Draw a graph and wanted degrees."""
    n = draw(st.integers(1, 6))
    wanted = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return any_graph(n, draw(SHARES), np.random.default_rng(draw(SEEDS))), wanted


@given(wishes())
def test_degrees_of_each_record(wish: tuple[Cover, list[int]]) -> None:
    """A subgraph is found exactly if brute force finds one; else the proof holds."""
    graph, wanted = wish
    found = regular_subgraph(graph, np.array(wanted))
    assert isinstance(found, Deficiency) != brute_force_has_subgraph(graph, wanted)
    if isinstance(found, Deficiency):
        assert_proof(graph, wanted, found)
        return
    assert np.bincount(graph.owners[found], minlength=graph.n).tolist() == wanted
    assert np.bincount(graph.members[found], minlength=graph.n).tolist() == wanted


@given(st.integers(2, 6), st.integers(1, 4), SHARES, SEEDS)
def test_one_degree_for_all(n: int, k: int, share: float, seed: int) -> None:
    """The k-regular subgraph of a cover, or none."""
    cover = any_cover(n, share, np.random.default_rng(seed))
    found = regular_subgraph(cover, k)
    assert isinstance(found, Deficiency) != brute_force_has_subgraph(cover, [k] * n)
    if isinstance(found, Deficiency):
        assert_proof(cover, [k] * n, found)
    else:
        assert (np.bincount(cover.owners[found], minlength=n) == k).all()
        assert (np.bincount(cover.members[found], minlength=n) == k).all()


def test_a_larger_regular_graph_contains_every_smaller_one() -> None:
    """By König's theorem; all of it is chosen at its own degree."""
    cover = regular_cover(300, 6, np.random.default_rng(3))
    for k in range(7):
        found = regular_subgraph(cover, k)
        assert not isinstance(found, Deficiency)
        assert found.sum() == 300 * k


def test_two_matches_each_are_not_enough() -> None:
    """Wong et al., Table 4: two matches on both sides, yet no 2-regular subgraph."""
    assert TABLE_4.sizes.min() >= 2
    assert TABLE_4.degrees.min() >= 2
    why = regular_subgraph(TABLE_4, 2)
    assert isinstance(why, Deficiency)
    assert_proof(TABLE_4, [2] * 5, why)


def test_three_effective_matches_are_not_enough() -> None:
    """Wong et al., Fig. 4: at most two assignments are disjoint, not three."""
    assert isinstance(regular_subgraph(FIGURE_4, 3), Deficiency)
    assert not isinstance(regular_subgraph(FIGURE_4, 2), Deficiency)


def test_degrees_that_make_no_sense_are_refused() -> None:
    """Negative ones."""
    with pytest.raises(InputError, match="negative"):
        regular_subgraph(ring(4, 2), -1)


@given(st.integers(1, 6), SHARES, SEEDS)
def test_perfect_matchings(n: int, share: float, seed: int) -> None:
    """One is found exactly if there is one."""
    graph = any_graph(n, share, np.random.default_rng(seed))
    every = set(assignments([graph.of_record(record) for record in range(n)]))
    found = perfect_matching(graph)
    if found is None:
        assert not every
    else:
        assert tuple(found.tolist()) in every


@given(st.integers(1, 9), st.sampled_from([0.1, 0.3, 0.6]), st.integers(0, 2**32 - 1))
def test_effective_matches_carry_a_circulation(n: int, share: float, seed: int) -> None:
    """Every effective match carries 1 to n^2 / 4, and as much flows in as out everywhere."""
    cover = any_cover(n, share, np.random.default_rng(seed))
    counted = effective_matches(cover) & (cover.members != cover.owners)
    tails, heads = cover.members[counted], cover.owners[counted]
    flow = circulation(n, tails, heads, n * n // 4)
    assert len(flow) == len(tails)
    assert ((flow >= 1) & (flow <= n * n // 4)).all()
    inflow = np.bincount(heads, weights=flow, minlength=n)
    np.testing.assert_array_equal(inflow, np.bincount(tails, weights=flow, minlength=n))


def test_edges_on_no_cycle_have_none() -> None:
    """A path has no circulation, and a bound that is too small leaves none."""
    with pytest.raises(ValueError, match="no circulation"):
        circulation(3, np.array([0, 1]), np.array([1, 2]), 5)
    # Both ways from 0 to 1 come back by one edge.
    tails, heads = np.array([0, 0, 2, 1]), np.array([1, 2, 1, 0])
    assert circulation(3, tails, heads, 2).tolist() == [1, 1, 1, 2]
    with pytest.raises(ValueError, match="no circulation"):
        circulation(3, tails, heads, 1)
