"""The model of a method is the one it would solve."""

from __future__ import annotations

import pytest

from anonymip import InputError, Problem, load_instance
from anonymip.methods.acceptance import model_of


@pytest.fixture
def health() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3)


def test_options_shape_the_model(health: Problem) -> None:
    """Texts of the command line reach the formulation; what is not given has its default."""
    plain = model_of(health, "equivalence-mip")
    real = model_of(health, "equivalence-mip", {"integer_ends": "no", "formulation": "bigm"})
    assert plain.formulation == real.formulation == "bigm"
    assert plain.scaled_lower[0, 0].is_integer()
    assert real.scaled_lower[0, 0].is_continuous()


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("mondrian", {}, "method mondrian solves no model. Use equivalence-mip"),
        ("auto", {}, "method auto solves no model"),
        ("magic", {}, "unknown method 'magic'"),
        ("equivalence-mip", {"formulation": "magic"}, "unknown formulation 'magic'"),
        ("equivalence-mip", {"warm_start": "none"}, "warm_start has no part in the model bigm"),
        ("equivalence-mip", {"depth": 3}, "has no option 'depth'"),
    ],
)
def test_what_shapes_no_model_is_refused(
    health: Problem, method: str, options: dict[str, object], message: str
) -> None:
    """The message names method and option."""
    with pytest.raises(InputError, match=message):
        model_of(health, method, options)
