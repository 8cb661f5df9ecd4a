"""No solver is believed that calls a release the best while a better one is found soon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonymip
from anonymip import (
    Attribute,
    Cap,
    Freeform,
    Mask,
    Microdata,
    PatternGuided,
    Problem,
    Solution,
    Stopped,
    census,
)
from anonymip.exact import model_run
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.column_generation import column_generation as generation
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.exact.patterns import pattern_pairs as search_of_pairs
from anonymip.exact.patterns.pattern_ilp import pattern_ilp
from anonymip.exact.patterns.pattern_pairs import pattern_pairs
from anonymip.exact.set_partitioning import branch_and_bound
from anonymip.heuristics.patterns.pattern_greedy import pattern_greedy
from anonymip.objectives import SSE
from anonymip.solvers import registry
from anonymip.solvers.adapters import cbc
from tests import profiles
from tests.bounds.patterns.pattern_references import lettered
from tests.by_hand import table_of
from tests.exact.test_failed_solver import patterns
from tests.solvers.adapters.test_cbc import impostor

THOROUGH = pytest.mark.thorough


@pytest.fixture(params=["Hasty", "Timid"])
def liar(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a solver that claims too much."""
    return lying(request.param, monkeypatch)


def lying(way: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a solver that lies in a way."""
    place = f"tests.exact.failing_solvers:{way}"
    monkeypatch.setattr(registry, "ADAPTERS", {**registry.ADAPTERS, "liar": place})
    return "liar"


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing but heuristics beside the solver."""
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    monkeypatch.setattr(model_run, "_SOON", 0)


def assert_refuted(found: Solution, optimum: float) -> None:
    """Assert that the release is no worse than what is easily found, and the liar named."""
    assert found.status.stopped in (Stopped.ERROR, Stopped.OPTIMAL)
    assert found.objective <= 1.02 * optimum
    assert found.bound is not None
    assert found.bound.value <= optimum + 1e-9
    assert found.bound.proof == "argument"
    assert any("claims that no release loses less than" in remark for remark in found.trace)
    assert any(model_run.FAILED in remark for remark in found.trace)


@pytest.mark.crossed
@pytest.mark.parametrize("warm_start", ["none", "initial"])
@pytest.mark.parametrize("formulation", ["bigm", "hull", "set-partition"])
@pytest.mark.parametrize("seed", [2, *profiles.thorough(0, 1)])
def test_classes(liar: str, seed: int, formulation: str, warm_start: str) -> None:
    """With and without a start: a search of the few records finds and proves the optimum."""
    problem = Problem(census(8, 3, seed=seed), 3)
    optimum = anonymip.solve(problem, "column-generation").objective
    asked = {"formulation": formulation, "warm_start": warm_start, "solver": liar}
    found = equivalence_mip(problem, **asked)
    assert found.is_optimal
    assert found.objective == pytest.approx(optimum)


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize("formulation", ["bigm", "set-partition"])
def test_classes_beside_heuristics_alone(formulation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A better release by local search refutes the solver: its bound is not told."""
    liar = lying("Hasty", monkeypatch)
    problem = Problem(census(8, 3, seed=2), 3)
    optimum = equivalence_mip(problem).objective
    found = equivalence_mip(problem, formulation=formulation, warm_start="none", solver=liar)
    assert_refuted(found, optimum)
    assert found.status.stopped is Stopped.ERROR
    assert any("the better release is kept" in remark for remark in found.trace)


def test_a_cbc_that_stops_at_its_first_solution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The true program with another word in the first line of its solution file."""
    program = cbc._program()
    assert program is not None
    script = f"""model=$1; shift
{program} "$model" -maxSolutions 1 "$@"
sed -i '1s/^.* - objective/Optimal - objective/' solution.txt"""
    impostor(tmp_path, monkeypatch, script)
    problem = Problem(census(8, 3, seed=2), 3)
    found = equivalence_mip(problem, formulation="bigm", warm_start="none", solver="cbc")
    assert found.objective == pytest.approx(anonymip.solve(problem).objective)
    assert_refuted(found, found.objective)


def test_an_option_to_stop_early_is_no_lie() -> None:
    """Who asks the solver to stop at its first solution gets that, and no claim of it."""
    problem = Problem(census(8, 3, seed=2), 3)
    early = {"mip_max_improving_sols": 1}
    found = equivalence_mip(
        problem, formulation="bigm", warm_start="none", solver_options=early, gap=0.5
    )
    assert found.status.stopped is not Stopped.ERROR
    assert found.objective > anonymip.solve(problem).objective
    assert not found.is_optimal


def test_covers(liar: str) -> None:
    """The same of covers by the model of the paper."""
    for seed in range(1 if profiles.NAME == "ci" else 3):
        problem = Problem(census(8, 3, seed=seed), 3, Freeform())
        optimum = freeform_mip(problem).objective
        found = freeform_mip(problem, formulation="freeform", warm_start="none", solver=liar)
        assert_refuted(found, optimum)


def test_covers_by_sets_of_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where larger sets may be cheaper, each size has a solve of its own, and a release."""
    numbers = np.random.default_rng(4).integers(0, 30, (7, 2))
    attributes = (Attribute("a", "numeric"), Attribute("b", "numeric"))
    data = Microdata(pd.DataFrame(numbers, columns=["a", "b"]).astype(float), attributes)
    problem = Problem(data, 3, Freeform(), SSE())
    optimum = freeform_mip(problem).objective
    for way in ("Hasty", "Timid", "Resigned"):
        found = freeform_mip(problem, solver=lying(way, monkeypatch))
        assert found.objective <= 1.02 * optimum
        assert found.bound is None or found.bound.value <= optimum + 1e-9
        assert found.is_optimal or found.status.stopped is Stopped.ERROR


@pytest.mark.thorough("Timid")
@pytest.mark.parametrize("way", ["Hasty", "Timid"])
def test_sets_below_a_target(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pools of column generation are decided by a solver: its bounds are not believed either.

    On these records a hasty solver takes more than the least loss for a bound.
    """
    numbers = replace(branch_and_bound.NUMBERS, solver_columns=1_500)
    monkeypatch.setattr(branch_and_bound, "NUMBERS", numbers)
    problem = Problem(census(24, 4, seed=0), 4)
    optimum = generation.column_generation(problem).objective
    assert optimum == pytest.approx(17.942342342342343)
    found = generation.column_generation(problem, solver=lying(way, monkeypatch))
    assert found.status.stopped is Stopped.ERROR
    assert_refuted(found, optimum)


@pytest.mark.parametrize("way", ["Exhausted", pytest.param("Killed", marks=THOROUGH)])
def test_column_generation_keeps_its_release(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that ends in a crash ends the proof, and nothing else."""
    problem = Problem(census(16, 4, seed=1), 3)
    whole = generation.column_generation(problem)
    found = generation.column_generation(problem, solver=lying(way, monkeypatch))
    assert found.status.stopped is Stopped.ERROR
    assert found.bound is not None
    assert found.bound.value <= whole.objective <= found.objective <= 1.1 * whole.objective
    assert any(model_run.FAILED in remark for remark in found.trace)


@pytest.mark.parametrize("formulation", ["pattern", "pattern-strong", "parts"])
def test_patterns(liar: str, formulation: str) -> None:
    """Whole models and their parts."""
    problem = patterns(3)
    optimum = pattern_ilp(problem).objective
    found = pattern_ilp(problem, formulation=formulation, warm_start="none", solver=liar)
    assert found.objective <= 1.1 * optimum
    assert found.bound is not None
    assert found.bound.value <= optimum
    assert not found.is_optimal or found.objective == optimum


def test_pairs_of_patterns(liar: str) -> None:
    """The program of pairs and triples."""
    problem = patterns(2)
    optimum = pattern_ilp(problem).objective
    start = pattern_greedy(problem).assignment
    found = pattern_pairs(problem, start=start, solver=liar)
    assert found.objective <= 1.1 * optimum
    assert found.bound is not None
    assert found.bound.value <= optimum


def test_pairs_that_are_called_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that the program holds refutes it, and is not proven optimal by it."""
    problem = patterns(2)
    optimum = pattern_ilp(problem).objective
    start = pattern_greedy(problem).assignment
    monkeypatch.setattr(search_of_pairs, "_FIRST", 10**6)
    found = pattern_pairs(problem, start=start, solver=lying("Resigned", monkeypatch))
    assert found.objective > optimum
    assert not found.is_optimal
    assert found.bound is not None
    assert found.bound.value <= optimum
    assert any("infeasible" in remark and "failed" in remark for remark in found.trace)


@pytest.mark.parametrize("warm_start", ["none", "best"])
def test_limits_that_are_called_impossible(
    warm_start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release within the limits refutes a solver that finds none."""
    data = table_of({"a": [0.0, 1.0, 8.0, 9.0]})
    liar = lying("Resigned", monkeypatch)
    problem = Problem(data, 2, limits=(Cap("a", 3.0),))
    found = equivalence_mip(problem, formulation="bigm", warm_start=warm_start, solver=liar)
    assert found.objective == pytest.approx(4 / 9)
    assert any("infeasible" in remark and "failed" in remark for remark in found.trace)


@pytest.mark.parametrize("formulation", ["pattern-strong", "parts"])
def test_masks_that_are_called_impossible(
    formulation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does a release that keeps the mask."""
    liar = lying("Resigned", monkeypatch)
    problem = patterns(3)
    found = pattern_ilp(problem, formulation=formulation, warm_start="none", solver=liar)
    assert found.objective <= 1.1 * pattern_ilp(problem).objective
    assert found.status.stopped is Stopped.ERROR


def test_fewer_rows_are_not_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that proves fewer output rows the most than a greedy finds is not believed."""
    rows = ["aa", "aa", "aa", "aa", "ab", "ab", "cc", "cd", "ce", "ff"]
    problem = Problem(lettered(rows), 2, PatternGuided(Mask(suppress_at_most=2)))
    honest = pattern_ilp(problem, second_goal="rows")
    found = pattern_ilp(problem, second_goal="rows", solver=lying("Hasty", monkeypatch))
    assert len(found.sizes) == len(honest.sizes) or "the most of all" not in found.trace[-1]


def test_a_regular_cover_is_not_the_best_of_sets_that_need_not_be_regular() -> None:
    """HiGHS 1.15.1 says so of the cover that it starts from, in its presolve: it is asked again."""
    values = ["x", "x", "y", "z", "y", "x"]
    attribute = Attribute("q", "categorical", domain=["z", "x", "w", "y"])
    limits = (Cap("q", 2), anonymip.Apart("q", "x", "y"))
    data = Microdata(pd.DataFrame({"q": values}), [attribute])
    problem = Problem(data, 2, anonymip.KOne(), objective=anonymip.WeightedLoss(), limits=limits)
    for method in ("freeform-mip", "auto"):
        found = anonymip.solve(problem, method)
        assert found.is_optimal
        assert not model_run.has_failed(found)
        assert found.objective == pytest.approx(1 / 3)
