"""Matchings, edge covers and 2-factors of least weight against plain enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip.graphs.weighted import light_factors as covering
from anonymip.graphs.weighted.light_factors import (
    cycles_of,
    heaviest_matching,
    lightest_two_factor,
    saving_edges,
)

WEIGHTS = st.one_of(st.integers(0, 6), st.sampled_from([0.1, 0.25, 1 / 3, 2.7]))


@st.composite
def weight_matrices(draw: st.DrawFn, smallest: int = 3, largest: int = 7) -> np.ndarray:
    """Draw symmetric weights, infinite on the diagonal."""
    n = draw(st.integers(smallest, largest))
    weights = np.full((n, n), np.inf)
    for one, other in itertools.combinations(range(n), 2):
        weights[one, other] = weights[other, one] = draw(WEIGHTS)
    return weights


def least_two_factor(weights: np.ndarray) -> float:
    """Return the weight of the lightest 2-factor, by choosing the cycle of the first node left."""

    def rest(nodes: tuple[int, ...]) -> float:
        if not nodes:
            return 0.0
        best, first = np.inf, nodes[0]
        for size in range(2, len(nodes)):
            for others in itertools.permutations(nodes[1:], size):
                cycle = (first, *others, first)
                length = sum(weights[a, b] for a, b in itertools.pairwise(cycle))
                left = tuple(node for node in nodes if node not in cycle)
                if not left or len(left) >= 3:
                    best = min(best, length + rest(left))
        return best

    return rest(tuple(range(len(weights))))


def greatest_saving(nodes: int, edges: dict[tuple[int, int], float]) -> float:
    """Return the weight of the heaviest matching."""
    best = 0.0
    for (one, other), weight in edges.items():
        left = {pair: w for pair, w in edges.items() if not {one, other} & set(pair)}
        left = {pair: w for pair, w in left.items() if pair > (one, other)}
        best = max(best, weight + greatest_saving(nodes, left))
    return best


@settings(max_examples=80)
@given(weight_matrices())
def test_two_factors_are_lightest(weights: np.ndarray) -> None:
    """Weight and lower bound are those of enumeration, and every node lies on one cycle."""
    found, stopped = lightest_two_factor(weights)
    assert stopped is None
    assert found.is_lightest
    best, n = least_two_factor(weights), len(weights)
    assert found.weight == pytest.approx(best, abs=1e-9)
    assert best - 1e-7 <= found.least <= best + 1e-12
    assert (np.bincount(found.edges.ravel(), minlength=n) == 2).all()
    cycles = cycles_of(n, found.edges)
    assert sorted(np.concatenate(cycles).tolist()) == list(range(n))
    around = [weights[cycle, np.roll(cycle, -1)].sum() for cycle in cycles]
    assert sum(around) == pytest.approx(found.weight)


@settings(max_examples=80)
@given(weight_matrices(smallest=2), st.booleans())
def test_savings_are_greatest(weights: np.ndarray, thinned: bool) -> None:
    """With and without the duals of an assignment the matching saves most."""
    n = len(weights)
    one, other = np.nonzero(np.triu(np.where(np.isfinite(weights), weights, 0.0), 1))
    ends, savings = np.stack([one, other], 1).astype(np.int64), weights[one, other]
    before = covering._DENSE, covering._FIRST
    covering._DENSE, covering._FIRST = (0, 1) if thinned else (n, 1)
    try:
        pairs, most, stopped = saving_edges(n, ends, savings)
    finally:
        covering._DENSE, covering._FIRST = before
    best = greatest_saving(n, dict(zip(map(tuple, ends.tolist()), savings.tolist(), strict=True)))
    assert stopped is None
    assert len(np.unique(pairs)) == pairs.size
    assert weights[pairs[:, 0], pairs[:, 1]].sum() == pytest.approx(best, abs=1e-7)
    assert best - 1e-12 <= most <= best + 1e-7


@settings(max_examples=60)
@given(weight_matrices(smallest=2))
def test_large_dense_graphs_get_a_true_limit(weights: np.ndarray) -> None:
    """Among the greatest savings of each node alone, the matching is valid and `most` true."""
    n = len(weights)
    one, other = np.nonzero(np.triu(np.where(np.isfinite(weights), weights, 0.0), 1))
    ends, savings = np.stack([one, other], 1).astype(np.int64), weights[one, other]
    before = covering._DENSE, covering._LARGEST_MATRIX
    covering._DENSE, covering._LARGEST_MATRIX = 1, 0
    try:
        pairs, most, _ = saving_edges(n, ends, savings)
    finally:
        covering._DENSE, covering._LARGEST_MATRIX = before
    best = greatest_saving(n, dict(zip(map(tuple, ends.tolist()), savings.tolist(), strict=True)))
    assert len(np.unique(pairs)) == pairs.size
    assert weights[pairs[:, 0], pairs[:, 1]].sum() <= best + 1e-9
    assert most >= best - 1e-9


def test_a_perfect_matching_pays_for_being_perfect() -> None:
    """The path 0-1-2-3 with a heavy middle: the heaviest matching is the middle alone."""
    ends, weights = np.array([[0, 1], [1, 2], [2, 3]]), np.array([1.0, 5.0, 1.0])
    assert heaviest_matching(4, ends, weights)[0].tolist() == [[1, 2]]
    assert heaviest_matching(4, ends, weights, perfect=True)[0].tolist() == [[0, 1], [2, 3]]
    assert heaviest_matching(4, ends, weights / 3)[1] > 0
