"""Tests of orders in which equal sensitive values stay apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Diversity
from anonymip.heuristics.freeform.spaced_order import diverse_order


def diverse(order: Sequence[int], columns: np.ndarray, window: int, diversity: Diversity) -> bool:
    """Return whether all windows around the order are diverse, counted one by one."""
    n = len(order)
    for begin in range(n):
        for column in columns.T:
            shown = Counter(int(column[order[(begin + at) % n]]) for at in range(window))
            if max(shown.values()) * diversity.l > window or len(shown) < diversity.distinct:
                return False
    return True


@settings(max_examples=300)
@given(st.data(), st.integers(2, 4), st.integers(1, 3))
def test_multiples_of_l_succeed_if_the_counts_allow(
    data: st.DataObject,
    l: int,  # noqa: E741
    times: int,
) -> None:
    """With windows of l, 2 l or 3 l records: exactly if no value has more than n / l of them."""
    window = l * times
    codes = np.array(data.draw(st.lists(st.integers(0, 5), min_size=window, max_size=30)))[:, None]
    order = np.array(data.draw(st.permutations(range(len(codes)))))
    found = diverse_order(order, codes, window, Diversity(l=l))
    if np.bincount(codes[:, 0]).max() * l > len(codes):
        assert found is None
    else:
        assert found is not None
        assert sorted(found) == list(range(len(codes)))
        assert diverse(found.tolist(), codes, window, Diversity(l=l))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=3, max_size=6),
    st.integers(2, 4),
    st.sampled_from([(2, 1), (1.5, 1), (1, 2), (1, 3), (2, 2)]),
)
def test_what_is_found_is_diverse(
    values: list[tuple[int, int]], window: int, rule: tuple[float, int]
) -> None:
    """Two columns, any window: found orders are diverse, and none is found where there is none."""
    codes, diversity = np.array(values), Diversity(l=rule[0], distinct=rule[1])
    n = len(codes)
    found = diverse_order(np.arange(n), codes, min(window, n), diversity)
    possible = any(diverse(one, codes, min(window, n), diversity) for one in permutations(range(n)))
    if found is not None:
        assert sorted(found) == list(range(n))
        assert diverse(found.tolist(), codes, min(window, n), diversity)
    assert possible or found is None


def test_records_stay_near_their_places() -> None:
    """Only what would spoil a window moves: among fifty values hardly anything does."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 50, (5000, 1))
    found = diverse_order(np.arange(5000), codes, 10, Diversity(l=5))
    assert found is not None
    assert np.abs(found - np.arange(5000)).mean() < 1
    # Six values where five records in a row must differ: even then nothing is spread about.
    tight = rng.permutation(np.arange(922) % 6)[:, None]
    found = diverse_order(np.arange(922), tight, 10, Diversity(l=5))
    assert found is not None
    steps = np.abs(np.diff(found))
    assert np.minimum(steps, 922 - steps).mean() < 60
    already = np.arange(12)
    assert diverse_order(already, np.arange(12)[:, None] % 4, 4, Diversity(l=4)) is already


@pytest.mark.parametrize("window", [3, 5])
def test_odd_windows_need_more_values(window: int) -> None:
    """Two values by turns are 2-diverse in windows of 2 and 4, not of 3 or 5."""
    codes = np.arange(20)[:, None] % 2
    assert diverse_order(np.arange(20), codes, window, Diversity(l=2)) is None
    assert diverse_order(np.arange(20), codes, 4, Diversity(l=2)) is not None
