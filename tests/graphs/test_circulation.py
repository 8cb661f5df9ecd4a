"""Tests of circulations that are positive on every edge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip.graphs import effective_matches
from anonymip.graphs.circulation import circulation
from tests.random_covers import any_cover


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
