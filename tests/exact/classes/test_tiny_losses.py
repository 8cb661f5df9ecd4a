"""Losses that are small as a whole are proven as strictly as others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    GCP,
    Attribute,
    Bottleneck,
    EquivalenceClasses,
    Freeform,
    InputError,
    KOne,
    Microdata,
    Problem,
    Stopped,
    build,
    load_instance,
    nearest_neighbour_bound,
    objective,
    solve,
)
from anonymip.exact.classes.small import solve_small
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.exact.trust import TrustOfLosses
from tests.brute_force import Column
from tests.by_hand import table_of
from tests.random_problems import microdata

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
    assert solution.gap is not None
    assert 1 - OPTIMUM / solution.objective <= solution.gap < 0.97


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


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("scale", [1e-6, 1e-7, 1e-8])
def test_a_loss_finer_than_the_solvers_tolerances_is_not_proven_by_its_word(
    solver: str, scale: float
) -> None:
    """Beside a column that can be kept whole, only exact sums of losses tell the rest apart."""
    frame = pd.DataFrame(
        {
            "a": [0] * 4 + [1] * 3,
            "b": [837, 261, 109, 298, 413, 814, 451],
            "c": [91, 334, 600, 813, 728, 992, 187],
        }
    )
    loss = objective(lambda r: r.spread["a"] + scale * (r.spread["b"] + r.spread["c"]))
    attributes = tuple(Attribute(name) for name in "abc")
    problem = Problem(Microdata(frame, attributes), 2, objective=loss)
    for start in ("none", "initial"):
        found = solve(problem, "equivalence-mip", solver=solver, options={"warm_start": start})
        assert found.bound is not None
        assert found.bound.proof == "argument"
        assert found.objective == pytest.approx(solve_small(problem).objective, rel=1e-12)
        assert any("finer than the solver's tolerances" in remark for remark in found.trace)


def test_what_a_solver_cannot_see_is_taken_off_its_bound() -> None:
    """All that a column of a ten-thousandth of another's losses costs may be taken for lost."""
    frame = pd.DataFrame(
        {
            "a": [641.0, 1e12, 514.0, 666.0, 631.0],
            "b": [0.7429819783552126, 0.2223748, -713185.28947, 0.82728482926, -0.37731],
        }
    )
    attributes = (Attribute("a", domain=(0.0, 9e15)), Attribute("b"))
    problem = Problem(Microdata(frame, attributes), 2)
    best = solve(problem, "equivalence-mip", options={"formulation": "hull"})
    assert best.objective == pytest.approx(2.000225593, rel=1e-9)
    # As HiGHS reports for the hull formulation of this table, with a release of that loss.
    bound, _ = TrustOfLosses.of(problem, "hull").bound(2.0003299552667615, 2.0003324998058614)
    assert bound is not None
    assert 1.999 < bound <= best.objective


def test_costs_of_sets_that_a_solver_takes_for_equal_are_not_its_bound() -> None:
    """HiGHS looks for nothing better by less than a millionth of the largest cost of a set."""
    frame = pd.DataFrame(
        {
            "a": [
                0.13,
                0.32,
                512106.7,
                672754.2,
                0.77,
                500224.9,
                0.76,
                0.53,
                0.23,
                -0.39,
                989371.4,
            ],
            "b": [0.0, 0.0, 0.0, 0.0, 1e-9, 1e-9, 1e-3, 1e-3, 1e-12, 0.0, 1e-12],
        }
    )
    loss = objective(lambda r: r.spread["a"] + 1e9 * r.spread["b"])
    attributes = (Attribute("a"), Attribute("b"))
    problem = Problem(Microdata(frame, attributes), 5, Freeform(), objective=loss)
    better = solve(problem, "reassign", options={"from_method": "ring"})
    # As it reports for nearly these numbers, of a release that loses as much.
    claimed = better.objective + 998.2
    bound, _ = TrustOfLosses.of(problem, "set-cover").bound(claimed, claimed)
    assert bound is not None
    assert bound <= better.objective


def test_tight_clusters_in_a_wide_column_are_solved() -> None:
    """Tolerances that add up over wide columns cost the proof, not the solution."""
    times = [1700000000 + i * 7 % 13 for i in range(5)] + [
        1731536000 + i * 5 % 11 for i in range(5)
    ]
    places = [20.001, 20.003, 20.002, 20.007, 20.004]
    places += [9000.002, 9000.004, 9000.001, 9000.009, 9000.003]
    problem = Problem(table_of({"time": times, "place": places}), 2)
    for solver in ("highs", "cbc"):
        found = solve(problem, "equivalence-mip", solver=solver)
        assert found.objective <= 5e-6
        assert found.bound is not None
        assert found.bound.value <= found.objective


def test_options_of_the_solver_itself_prove_nothing() -> None:
    """An option that makes a solver stop early must not make its answer a proof."""
    rng = np.random.default_rng(1)
    problem = Problem(table_of({"a": rng.integers(0, 50, 10), "b": rng.integers(0, 50, 10)}), 3)
    proven = solve(problem, "equivalence-mip")
    assert proven.is_optimal
    for solver, own in (("cbc", {"increment": "5"}), ("highs", {"objective_bound": 1.0})):
        found = solve(
            problem,
            "equivalence-mip",
            solver=solver,
            solver_options=own,
            options={"warm_start": "initial", "formulation": "bigm"},
        )
        assert found.is_optimal <= (found.objective <= proven.objective * (1 + 1e-6))
        assert found.options["solver_options"] == own
        assert any("not relied on" in remark for remark in found.trace)


def test_a_model_too_slow_to_build_leaves_the_start() -> None:
    """A time limit below the time of building gives the warm start and says so."""
    problem = Problem(load_instance("census:120,4,1"), 5)
    found = solve(problem, "equivalence-mip", time_limit=0.4)
    assert found.status.stopped in (Stopped.TIME, Stopped.OPTIMAL)
    assert any("longer to build" in remark for remark in found.trace)


def test_curved_losses_count_in_the_size_of_a_model() -> None:
    """Binaries that choose among ranges are counted before they fill the memory."""
    curved = objective(lambda r: r.width["a"] ** 2)
    problem = Problem(table_of({"a": np.arange(400.0) ** 2}), 2, objective=curved)
    with pytest.raises(InputError, match="constraints and choices"):
        build(problem)


@objective
def squares(record: Any) -> Any:
    """Charge the squares of ranges."""
    return sum(record.spread[name] ** 2 for name in record.attributes)


@pytest.mark.parametrize(
    ("columns", "loss", "optimum"),
    [
        # By exact arithmetic: a set of two is cheaper by 4e-7, 4e-9 than the next.
        (((0.0, 1.0, 0.0, 1e9, 1.0), (0.0, 0.0, 1e15, 0.0, 1e15)), squares, 1 - 2e-9 + 1e-18),
        (((1.7e9 + 5, 1.7e9, 1.7e9 + 1e-6, 1.7e9 + 1e-6),), Bottleneck(GCP()), None),
    ],
)
def test_losses_nearer_than_tolerances_are_not_proven_apart(
    columns: tuple[tuple[float, ...], ...], loss: Any, optimum: float | None
) -> None:
    """A bound never passes an optimum that a solver cannot tell from the release it found."""
    table = microdata([Column(values) for values in columns])
    found = freeform_mip(Problem(table, 2, KOne(), loss))
    if optimum is None:
        low, high = min(columns[0]), max(columns[0])
        optimum = (high - (1.7e9 + 1e-6)) / (high - low)
    assert found.objective >= optimum * (1 - 1e-12)
    assert found.bound is not None
    assert found.bound.value <= optimum * (1 + 1e-9)


def test_a_star_beside_spreads_without_width_lifts_no_bound() -> None:
    """Suppressing a record costs 1, the best classes 4e-16: a solver sees no more than the 1."""
    frame = pd.DataFrame({"a": [1.0, 1.0, 2.0, 0.0, 1.0]})
    data = Microdata(frame, (Attribute("a", domain=(0, 9e15)),))
    problem = Problem(data, 2, EquivalenceClasses(suppression=True))
    for start in ("best", "none"):
        options = {"formulation": "set-partition", "warm_start": start}
        solution = solve(problem, "equivalence-mip", options=options)
        assert solution.bound is not None
        assert solution.bound.value <= 4 / 9e15 * (1 + 1e-9)
