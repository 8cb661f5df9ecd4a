"""The dispatcher picks a bound that holds, or says that there is none."""

from __future__ import annotations

import pytest

from anonymip import SSE, Bottleneck, Problem, census
from anonymip.bounds.combinatorial import lower_bound_of, record_terms
from tests.brute_force import Column
from tests.random_problems import FALLING, LOSSES, PRODUCT, SWINGING, Case

COLUMNS = (Column((1.0, 2.0, 4.0, 9.0, 12.0)), Column((5.0, 0.0, 1.0, 1.0, 3.0)))


@pytest.mark.parametrize(
    ("loss", "rung"),
    [
        (LOSSES["gcp"], "dual ascent"),
        (LOSSES["curved"], "dual ascent"),
        (PRODUCT, "nearest-neighbour"),
    ],
)
def test_monotone_losses_are_bounded_by_duals_of_records(loss: object, rung: str) -> None:
    """Whatever the tier; the bound is no lower than the terms of nearest neighbours together."""
    problem = Case(COLUMNS, 3, loss).problem()  # type: ignore[arg-type]
    bound, terms = lower_bound_of(problem), record_terms(problem)
    assert bound is not None
    assert terms is not None
    assert rung in bound.method
    assert bound.value >= terms.sum() * (1 - 1e-12)


def test_squared_errors_have_their_own() -> None:
    """A loss of members is bounded by nearest squared distances."""
    problem = Case(COLUMNS, 2, LOSSES["gcp"]).problem().replace(objective=SSE())
    bound, terms = lower_bound_of(problem), record_terms(problem)
    assert bound is not None
    assert terms is not None
    assert bound.method == "nearest squared errors"
    assert 0 < bound.value == pytest.approx(terms.sum())


@pytest.mark.parametrize("loss", [FALLING, SWINGING])
def test_others_have_none(loss: object) -> None:
    """Without an argument the bound is unknown."""
    problem = Case(COLUMNS, 2, loss).problem()  # type: ignore[arg-type]
    assert lower_bound_of(problem) is None
    assert record_terms(problem) is None


def test_maximum_is_bounded_by_the_largest_term() -> None:
    """The bound of the largest loss is no lower than the largest of the terms."""
    problem = Problem(census(60, 4, seed=1), 3, objective=Bottleneck())
    bound, terms = lower_bound_of(problem), record_terms(problem)
    assert bound is not None
    assert terms is not None
    assert bound.value >= terms.max()
