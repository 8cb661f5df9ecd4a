"""Columns priced by squared errors equal those that itertools gives, cut off or not."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import SSE, Attribute, Cap, InputError, Microdata, Problem
from anonymip.enumeration.pricing import CutDuals, PricedColumns
from anonymip.enumeration.squared_errors import SquaredErrorPricing, are_priced

#: Few values, so that records repeat and distances tie; one far out; a constant attribute.
POINTS = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, 5.0, 1e6]), st.integers(0, 2), st.just(7.0)),
    min_size=6,
    max_size=9,
)
DUALS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0, 40.0]), min_size=9, max_size=9)
CUTS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 8), min_size=1, max_size=4),
        st.integers(1, 3),
        st.sampled_from([0.125, 0.75, 3.0]),
    ),
    max_size=3,
)


def problem_of(points: list[tuple[float, ...]], k: int) -> Problem:
    """Return the problem of some points."""
    frame = pd.DataFrame(points, columns=["a", "b", "c"], dtype=float)
    data = Microdata(frame, tuple(map(Attribute, frame.columns)))
    return Problem(data, k, objective=SSE("none"))


def reduced_costs(
    problem: Problem, pricing: SquaredErrorPricing, duals: np.ndarray, cuts: CutDuals
) -> dict[tuple[int, ...], float]:
    """Return those of all columns, by their definition."""
    first, counts = pricing.types.first, pricing.types.counts
    values = SSE("none").points(problem.microdata)[first]
    found = {}
    for size in range(pricing.smallest, pricing.largest + 1):
        for column in combinations_with_replacement(range(len(first)), size):
            held = np.bincount(column, minlength=len(first))
            if (held > counts).any():
                continue
            members = values[list(column)]
            paid = sum(
                dual * (held[cuts.types[begin:end]].sum() // divisor)
                for begin, end, divisor, dual in zip(
                    cuts.starts, cuts.starts[1:], cuts.divisors, cuts.duals, strict=False
                )
            )
            cost = float(((members - members.mean(axis=0)) ** 2).sum())
            found[column] = cost + float(paid) - float(duals[list(column)].sum())
    return found


def keys_of(found: PricedColumns) -> list[tuple[int, ...]]:
    """Return the members of each column."""
    parts = np.split(found.types, found.starts[1:-1])
    return [tuple(part.tolist()) for part in parts][: len(found)]


@given(POINTS, st.integers(2, 4), DUALS, CUTS, st.sampled_from([-1.0, 0.0, 2.0]))
def test_columns_equal_brute_force(
    points: list[tuple[float, ...]],
    k: int,
    given_duals: list[float],
    given_cuts: list[tuple[set[int], int, float]],
    threshold: float,
) -> None:
    """All columns below a threshold are found, and no root's columns are below its bound."""
    k = min(k, len(points) // 2)
    problem = problem_of(points, k)
    pricing = SquaredErrorPricing(problem, smallest=k, largest=2 * k - 1)
    t = len(pricing.types.first)
    duals = np.array(given_duals[:t])
    kept = [({row % t for row in rows}, divisor, dual) for rows, divisor, dual in given_cuts]
    cuts = CutDuals(
        np.concatenate([[0], np.cumsum([len(cut[0]) for cut in kept], dtype=np.int64)]),
        np.array([row for cut in kept for row in sorted(cut[0])], np.int64),
        np.array([cut[1] for cut in kept], np.int64),
        np.array([cut[2] for cut in kept]),
    )
    reduced = reduced_costs(problem, pricing, duals, cuts)
    scale = max(1.0, *map(abs, duals.tolist())) * 1e-8
    found = pricing.all_below(duals, threshold, cuts, max_columns=10**6)
    assert found.complete
    columns = keys_of(found)
    assert len(set(columns)) == len(columns)
    assert {c for c in reduced if reduced[c] < threshold - scale} <= set(columns)
    assert set(columns) <= {c for c in reduced if reduced[c] < threshold + scale}
    assert found.reduced == pytest.approx([reduced[c] for c in columns], abs=scale)
    rank = np.argsort(np.argsort(-duals, kind="stable"), kind="stable")
    least = np.full(t, threshold)
    for column, value in reduced.items():
        root = min(column, key=lambda row: rank[row])
        least[root] = min(least[root], value)
    for nodes in (None, 1, 2, 5, 20):
        best = pricing.best(duals, cuts, below=threshold, max_nodes=nodes)
        assert (best.least <= least + scale).all()
        assert best.complete or nodes is not None
        if best.complete:
            assert best.least == pytest.approx(least, abs=2 * scale)
            assert set(keys_of(best)) <= set(columns)
            assert len(best) or not any(value < threshold - scale for value in reduced.values())


def test_a_limit_of_columns_or_nodes_ends_the_search() -> None:
    """What comes back is a part, and says so."""
    rng = np.random.default_rng(5)
    problem = problem_of([tuple(row) for row in rng.normal(size=(40, 3)).tolist()], 3)
    pricing = SquaredErrorPricing(problem, smallest=3, largest=5)
    duals = np.full(40, 2.0)
    everything = pricing.all_below(duals, 0.0, max_columns=10**6)
    assert everything.complete
    assert len(everything) > 3_000
    few = pricing.all_below(duals, 0.0, max_columns=10)
    assert len(few) == 10
    assert not few.complete
    assert not pricing.all_below(duals, 0.0, max_columns=10**6, max_nodes=50).complete
    cut_off = pricing.best(duals, below=0.0, max_nodes=2)
    whole = pricing.best(duals, below=0.0)
    assert whole.complete
    assert not cut_off.complete
    assert (cut_off.least <= whole.least + 1e-9).all()
    for most in (2, None):
        ended = pricing.best(duals, below=0.0, max_nodes=most, most_nodes=30)
        assert np.isneginf(ended.least).any()
        assert (ended.least <= whole.least + 1e-9).all()


def test_what_is_priced_by_squared_errors() -> None:
    """Classes without rules; a subclass may charge something else."""

    class Other(SSE):
        pass

    problem = problem_of([(1.0, 0, 7.0)] * 6, 2)
    assert are_priced(problem)
    assert not are_priced(problem.replace(objective=Other()))
    assert not are_priced(problem.replace(limits=(Cap("a", 3.0),)))


def test_duals_must_be_finite_and_as_many_as_types() -> None:
    """Anything else is refused."""
    pricing = SquaredErrorPricing(
        problem_of([(1.0, 0, 7.0), (2.0, 1, 7.0)] * 3, 2), smallest=2, largest=3
    )
    for duals in ([1.0], [1.0, np.nan]):
        with pytest.raises(InputError, match="2 finite numbers"):
            pricing.best(duals)
