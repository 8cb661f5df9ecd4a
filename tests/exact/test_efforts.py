"""Exact methods that use a solver end by themselves: efforts limit sizes and nodes, no seconds."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

import pytest

from anonymip import Freeform, InputError, NoSolution, Problem, Stopped, census, solve
from anonymip.exact import model_run
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.freeform.freeform_mip import freeform_mip

METHODS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "pairs": (equivalence_mip, None, {"formulation": "bigm"}),
    "classes": (equivalence_mip, None, {"formulation": "set-partition"}),
    "flow": (freeform_mip, Freeform(), {"formulation": "freeform"}),
    "covers": (freeform_mip, Freeform(), {"formulation": "set-cover"}),
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the efforts allow hardly anything: small models, one node."""
    allowed = {"quick": (0, 1.0), "normal": (100_000, 1.0)}
    monkeypatch.setattr(model_run, "_ALLOWED", MappingProxyType(allowed))


def problem_for(recoding: Any) -> Problem:
    """Return ten records whose best release the relaxation does not give."""
    plain = Problem(census(10, 2, 1), 3)
    return plain if recoding is None else plain.replace(recoding=recoding)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.usefixtures("tiny")
def test_models_beyond_an_effort_are_not_solved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start is kept with a bound that holds, and it is said; without one that is the error."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a solver was called")

    monkeypatch.setattr(model_run, "solve_model", never)
    method, recoding, options = METHODS[name]
    problem = problem_for(recoding)
    kept = method(problem, effort="quick", **options)
    assert kept.status.stopped is Stopped.NODES
    assert any("more than effort quick solves: the start is kept" in text for text in kept.trace)
    assert kept.options["effort"] == "quick"
    assert kept.bound is not None
    with pytest.raises(NoSolution, match="more than effort quick solves") as caught:
        method(problem, effort="quick", warm_start="none", **options)
    assert "effort='thorough'" in (caught.value.remedy or "")


@pytest.mark.thorough("cbc")
@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.usefixtures("tiny")
def test_nodes_end_a_solver(solver: str) -> None:
    """What was found in so many nodes is the release, with the solver's bound, again and again."""
    problem = problem_for(None)
    limited = {"effort": "normal", "warm_start": "initial", "formulation": "bigm", "solver": solver}
    first, again = (equivalence_mip(problem, **limited) for _ in range(2))  # type: ignore[arg-type]
    assert first.assignment.labels.tolist() == again.assignment.labels.tolist()
    assert first.objective >= equivalence_mip(problem).objective - 1e-9
    assert first.bound is not None
    assert again.bound is not None
    assert first.bound.value == again.bound.value
    assert first.status.stopped is Stopped.NODES
    assert any("stopped by effort normal after 1 nodes" in text for text in first.trace)


@pytest.mark.usefixtures("tiny")
def test_a_better_release_that_a_solver_is_held_against_is_kept() -> None:
    """What a search of few records proves optimal is no worse after the solver has ended."""
    problem = Problem(census(9, 3, seed=0), 3)
    found = equivalence_mip(problem, formulation="bigm", effort="normal", warm_start="none")
    assert "a release that needs no solver is better than what the solver returned" in found.trace
    assert found.objective == pytest.approx(solve(problem, "column-generation").objective)
    assert found.bound is not None
    assert found.bound.value <= found.objective


@pytest.mark.thorough
def test_the_flow_ends_where_its_proof_would_take_minutes() -> None:
    """Nodes of twelve mixed records take 11 ms each: few are searched, and the best is kept."""
    problem = Problem(census(12, 8, mixed=True), 3, recoding="k-k")
    found = solve(problem, effort="quick")
    assert found.method == "freeform-mip"
    stopped = re.search(r"stopped by effort quick after ([\d,]+) nodes", " ".join(found.trace))
    assert stopped is not None
    assert int(stopped[1].replace(",", "")) <= 250
    assert found.objective <= solve(problem, "nearest-sets", bound=False).objective
    assert found.bound is not None
    assert found.bound.value <= found.objective


def test_methods_that_call_others_do_not_limit_them() -> None:
    """No effort is no limit; an unknown one is refused; `solve` gives the one that holds."""
    problem = problem_for(None)
    assert "effort" not in equivalence_mip(problem).options
    assert solve(problem, "equivalence-mip").options["effort"] == "normal"
    assert solve(problem, "equivalence-mip", time_limit=60).options["effort"] == "thorough"
    with pytest.raises(InputError, match="unknown effort 'huge'"):
        equivalence_mip(problem, effort="huge")
