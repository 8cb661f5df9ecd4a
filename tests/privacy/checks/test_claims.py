"""Tests of the arithmetic of claims."""

from __future__ import annotations

from typing import Any

import pytest

from anonymip.privacy.checks.loss_claims import loss_problems, optimality_problems, relative_gap
from anonymip.privacy.reading.release_manifest import read_manifest


@pytest.mark.parametrize(
    ("value", "bound", "gap"),
    [(10, 9, 0.1), (10, 10, 0), (10, 10.0000001, 0), (-10, -11, 0.1), (0, 0, 0), (3, None, None)],
)
def test_relative_gap(value: float, bound: float | None, gap: float | None) -> None:
    """The gap is relative to the value, 0 at the bound, unknown without one."""
    assert relative_gap(value, bound) == pytest.approx(gap)


def test_gap_of_a_zero_loss_with_a_lower_bound_is_undefined() -> None:
    """Nothing is a share of zero."""
    assert relative_gap(0.0, -1.0) is None


@pytest.mark.parametrize(("error", "count"), [(0.0, 0), (1e-10, 0), (1e-8, 3)])
def test_losses_agree_up_to_rounding(patients: Any, error: float, count: int) -> None:
    """A difference in the last digits is no problem, a real one is, in every claimed loss."""
    manifest = read_manifest(patients.manifest, patients.release)
    assert len(loss_problems(manifest, manifest.loss.ncp * (1 + error) + error, 21)) == count


@pytest.mark.parametrize(
    ("value", "bound", "proven"), [(1e4, 1e4 - 0.005, True), (1e4, 1e4 - 0.05, False), (0, 0, True)]
)
def test_optimality_needs_a_closed_gap(
    patients: Any, value: float, bound: float, proven: bool
) -> None:
    """The gap may be as wide as solvers leave it, and no wider."""
    patients.manifest.update(
        objective={"name": "gcp", "value": value},
        bound={"value": bound, "method": "x", "proof": "solver"},
        gap=relative_gap(value, bound),
        status="optimal",
    )
    problems = optimality_problems(read_manifest(patients.manifest, patients.release))
    assert (problems == []) == proven


@pytest.mark.parametrize(
    ("value", "bound"), [(3.61e-13, 8.9e-14), (1.0, 1.0 - 1e-5), (1e9, 1e9 - 1e4)]
)
def test_optimal_beside_a_gap_is_refused_at_every_scale(
    patients: Any, value: float, bound: float
) -> None:
    """A loss of 3.6e-13 with a gap of 75 % is no more optimal than one of 1 or of 1e9."""
    patients.manifest.update(
        objective={"name": "loss", "value": value},
        bound={"value": bound, "method": "x", "proof": "argument"},
        gap=(value - bound) / value,
        status="optimal",
    )
    problems = optimality_problems(read_manifest(patients.manifest, patients.release))
    assert problems == ["The status is optimal but the bound does not close the gap."]


def test_tiny_losses_are_claimed_as_exactly_as_others(patients: Any) -> None:
    """A manifest cannot call a loss of 9e-13 one of 3e-13."""
    patients.manifest.update(ncp=3e-13, gcp=3e-13 / 21, objective={"name": "gcp", "value": 3e-13})
    manifest = read_manifest(patients.manifest, patients.release)
    assert len(loss_problems(manifest, 9e-13, 21)) == 3
    assert loss_problems(manifest, 3e-13, 21) == []


@pytest.mark.parametrize(("proof", "count"), [("solver", 1), (None, 0)])
def test_a_loss_that_a_proven_bound_reaches_is_called_optimal(
    patients: Any, proof: str | None, count: int
) -> None:
    """Another status contradicts a proof; without one the numbers alone prove nothing."""
    patients.manifest.update(
        objective={"name": "gcp", "value": 3.0},
        bound={"value": 3.0, "method": "x", "proof": proof},
        gap=0.0,
        status="heuristic",
    )
    problems = optimality_problems(read_manifest(patients.manifest, patients.release))
    told = "The bound reaches the objective value but the status is not optimal."
    assert problems == [told] * count


@pytest.mark.parametrize("value", [-3.0, 3.0, 3e-13, 3e9])
@pytest.mark.parametrize(("excess", "count"), [(1e-5, 1), (1e-7, 0)])
def test_a_bound_above_the_loss_is_false(
    patients: Any, value: float, excess: float, count: int
) -> None:
    """At every scale, from what solvers leave on."""
    patients.manifest.update(
        objective={"name": "loss", "value": value},
        bound={"value": value + excess * abs(value), "method": "x", "proof": None},
        gap=0.0,
        status="heuristic",
    )
    problems = optimality_problems(read_manifest(patients.manifest, patients.release))
    assert len(problems) == count
    assert all("lies above the objective value" in problem for problem in problems)
