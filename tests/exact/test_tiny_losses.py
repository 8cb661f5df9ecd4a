"""Losses that are small as a whole are proven as strictly as others."""

from __future__ import annotations

import pandas as pd
import pytest

from anonymip import Attribute, Microdata, Problem, nearest_neighbour_bound, solve

# Six values in pairs far apart, in a declared domain so wide that all losses are tiny.
PROBLEM = Problem(
    Microdata(
        pd.DataFrame({"a": [0, 100, 1, 101, 2, 102]}),
        (Attribute("a", domain=(0, 2e9), integer=True),),
    ),
    2,
)
OPTIMUM = 6 * 2 / 2e9
"""Two classes of three neighbouring values, each two units wide."""


def test_a_heuristic_far_from_the_bound_is_not_called_optimal() -> None:
    """A gap of many times the loss is no proof, however small both are."""
    solution = solve(PROBLEM, "initial")
    assert solution.objective == pytest.approx(200 / 2e9)
    assert not solution.is_optimal
    assert solution.gap == pytest.approx(0.97)


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_the_optimum_of_a_tiny_loss_is_found_and_proven(solver: str) -> None:
    """Costs are brought to order 1 before a solver with absolute tolerances sees them."""
    found = solve(PROBLEM, "equivalence-mip", solver=solver, options={"warm_start": "none"})
    assert found.objective == pytest.approx(OPTIMUM, rel=1e-9)
    assert found.is_optimal
    assert found.bound is not None
    assert found.bound.value == pytest.approx(OPTIMUM, rel=1e-6)


def test_identical_rows_have_a_bound_of_exactly_zero() -> None:
    """Rounding in sums of categorical losses leaves no rest in the bound."""
    frame = pd.DataFrame({"a": list("ab" * 6), "b": list("xyz" * 4), "c": ["u"] * 11 + ["v"]})
    frame = pd.concat([frame, frame], ignore_index=True)
    attributes = tuple(Attribute(name, "categorical") for name in frame.columns)
    problem = Problem(Microdata(frame, attributes), 2)
    bound = nearest_neighbour_bound(problem)
    assert bound is not None
    assert bound.value == 0.0
    assert solve(problem, "greedy-search").is_optimal
