"""The three functions build, set_start and read find a formulation by name."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest

from anonymip import (
    Classes,
    InputError,
    InvalidAssignment,
    Problem,
    build,
    load_instance,
    read,
    set_start,
)
from anonymip.models import choices_of, formulations_of, relax
from anonymip.recodings import EquivalenceClasses
from anonymip.solvers.standard_form import compile_standard_form


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3)


@pytest.mark.parametrize("name", formulations_of("classes"))
def test_round_trip_of_every_formulation(problem: Problem, name: str) -> None:
    """Classes given as a start are the classes read back."""
    classes = Classes.from_groups([[0, 2, 4], [1, 3, 5, 6]], 7)
    model = build(problem, name)
    set_start(model, classes)
    assert isinstance(model, pyo.ConcreteModel)
    assert model.formulation == name
    assert read(model).labels.tolist() == classes.labels.tolist()


def test_unknown_formulation_is_refused(problem: Problem) -> None:
    """The message lists the formulations."""
    with pytest.raises(
        InputError,
        match=r"unknown formulation 'hulls'. Did you mean 'hull'\? Use indicator, bigm, hull",
    ):
        build(problem, "hulls")


def test_model_without_values_cannot_be_read(problem: Problem) -> None:
    """Reading before solving is an input error."""
    with pytest.raises(InputError, match="no values to read"):
        read(build(problem))


def test_start_must_be_allowed(problem: Problem) -> None:
    """A start with a class below k, or with a suppressed record, is refused."""
    model = build(problem)
    with pytest.raises(InvalidAssignment, match="fewer than k = 3"):
        set_start(model, Classes.from_groups([[0, 1], [2, 3, 4, 5, 6]], 7))
    with pytest.raises(InvalidAssignment, match="suppressed, which is not allowed"):
        set_start(model, Classes.from_groups([[1, 2, 3, 4, 5, 6]], 7))


def test_start_with_suppressed_records(problem: Problem) -> None:
    """Where suppression is allowed, suppressed records come back as such."""
    model = build(problem.replace(recoding=EquivalenceClasses(suppression=True)))
    classes = Classes.from_groups([[1, 2, 3, 4, 5, 6]], 7)
    set_start(model, classes)
    assert read(model).labels.tolist() == [-1, 0, 0, 0, 0, 0, 0]


def test_choices_of_formulations() -> None:
    """The names of the keyword arguments, for callers that offer the same to all."""
    assert choices_of("bigm") == {"integer_ends", "transitivity"}
    assert choices_of("strengthened") == {"integer_ends", "transitivity", "symmetry"}
    with pytest.raises(InputError, match="unknown formulation"):
        choices_of("hulls")


@pytest.mark.parametrize("name", formulations_of("classes"))
def test_relaxation_has_no_integers(problem: Problem, name: str) -> None:
    """All variables of the relaxation are continuous, and the model is still built."""
    model = build(problem, name)
    assert compile_standard_form(model).integer.any()
    relax(model)
    form = compile_standard_form(model)
    assert not form.integer.any()
    assert not form.has_indicators
