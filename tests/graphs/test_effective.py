"""Tests of effective matches against all assignments."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymip.graphs import components, effective_matches, effective_sizes
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
