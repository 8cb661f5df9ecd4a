"""A solver that fails loses nothing: the start stays, with what bound is left, and it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonymip
from anonymip import (
    Cap,
    EquivalenceClasses,
    Freeform,
    KConcealment,
    Mask,
    NoSolution,
    OneK,
    PatternGuided,
    Problem,
    Solution,
    SolverError,
    Stopped,
    census,
)
from anonymip.cli.app import run
from anonymip.errors import LicenceLimit
from anonymip.exact import model_run
from anonymip.exact.classes import equivalence_mip as model_solve
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.exact.patterns.pattern_ilp import pattern_ilp
from anonymip.exact.patterns.pattern_pairs import pattern_pairs
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.split_carry import run_chain, split_carry
from anonymip.heuristics.patterns.pattern_greedy import pattern_greedy
from anonymip.solvers import registry
from tests import profiles
from tests.bounds.patterns.pattern_references import lettered
from tests.solvers.adapters.test_cbc import impostor

#: What a CBC that fails does instead of solving.
SCRIPTS = {
    "exit": "echo bad luck\nexit 1",
    "fault": "kill -SEGV $$",
    "memory": "kill -9 $$",
    "garbage": "echo Optimal - objective value nothing > solution.txt",
}


@pytest.fixture(
    params=["exhausted", "exit", *profiles.thorough("killed", "fault", "memory", "garbage")]
)
def solver(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a solver that fails: in a worker, and as a program of its own.

    Where a worker is killed another one has to be started, which takes a second each time.
    """
    way = request.param
    if way in SCRIPTS:
        impostor(tmp_path, monkeypatch, SCRIPTS[way])
        return "cbc"
    place = f"tests.exact.failing_solvers:{way.capitalize()}"
    monkeypatch.setattr(registry, "ADAPTERS", {**registry.ADAPTERS, "failing": place})
    return "failing"


def assert_kept(solution: Solution, start: Solution | None = None) -> None:
    """Assert that a release is there, with a bound below it, and what happened."""
    if not solution.is_optimal:
        assert solution.status.stopped is Stopped.ERROR
        assert str(solution.status) == "solver-error"
    assert solution.bound is not None
    assert solution.bound.proof == "argument"
    assert solution.bound.value <= solution.objective
    if start is not None:
        assert solution.objective <= start.objective + 1e-9
    assert any("the start is kept" in remark for remark in solution.trace) or solution.is_optimal


@pytest.mark.crossed
@pytest.mark.parametrize(
    "formulation", ["indicator", "bigm", "hull", "strengthened", "set-partition", "auto"]
)
def test_every_formulation_of_classes_keeps_the_start(
    solver: str, formulation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the heuristics found is returned, with a bound that no solver computed."""
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    if formulation == "indicator" and solver == "cbc":
        pytest.skip("CBC knows no indicators")
    monkeypatch.setattr("tests.solvers.lying.Adapter.supports_indicators", True)
    problem = Problem(census(10, 3, seed=2), 3)
    assert_kept(equivalence_mip(problem, formulation=formulation, solver=solver))


def test_few_records_are_searched_without_the_solver(solver: str) -> None:
    """The search of small problems proves what the solver could not."""
    problem = Problem(census(9, 3, seed=1), 3)
    start = anonymip.solve(problem, "initial").assignment
    found = equivalence_mip(problem, formulation="bigm", solver=solver, start=start)
    best = equivalence_mip(problem)
    assert found.is_optimal
    assert found.objective == pytest.approx(best.objective)
    assert any("a search without one took its place" in remark for remark in found.trace)


@pytest.mark.thorough("exit-recoding2-auto", "exhausted-recoding3-auto")
@pytest.mark.crossed
@pytest.mark.parametrize(
    ("recoding", "formulation"),
    [
        (Freeform(), "freeform"),
        (Freeform(), "set-cover"),
        (Freeform(reciprocal=True), "auto"),
        (OneK(), "auto"),
        (KConcealment(), "auto"),
    ],
)
def test_covers_keep_the_start(solver: str, recoding: Any, formulation: str) -> None:
    """The same holds for freeform generalization and the notions weaker than it."""
    problem = Problem(census(7, 2, seed=3), 3, recoding)
    assert_kept(freeform_mip(problem, formulation=formulation, solver=solver))


def patterns(k: int) -> Problem:
    """Return a pattern problem that the greedy does not solve."""
    rows = ["aax", "aby", "abx", "bax", "bay", "bby", "aay", "bbx", "aaz", "cbx"]
    return Problem(lettered(rows), k, PatternGuided(Mask(suppress_at_most=3)))


@pytest.mark.parametrize("formulation", ["pattern", "pattern-strong", "parts"])
def test_patterns_keep_the_start(solver: str, formulation: str) -> None:
    """So do all formulations of patterns."""
    problem = patterns(3)
    start = pattern_greedy(problem)
    found = pattern_ilp(problem, formulation=formulation, solver=solver)
    assert not found.is_optimal or found.solver is None
    assert_kept_pattern(found, start)


def test_pairs_of_patterns_keep_the_start(solver: str) -> None:
    """And the program of pairs and triples."""
    problem = patterns(2)
    assert_kept_pattern(pattern_pairs(problem, solver=solver), None)


def assert_kept_pattern(found: Solution, start: Solution | None) -> None:
    """Assert that the release is no worse than the start."""
    assert found.is_optimal or found.status.stopped is Stopped.ERROR
    assert found.is_optimal or any("kept" in remark for remark in found.trace)
    assert found.bound is not None
    assert start is None or found.objective <= start.objective


def test_the_second_goal_keeps_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least loss is proven; the solver that is to count output rows fails."""
    import anonymip.exact.patterns.pattern_ilp as more_rows

    def fails(*_: object, **__: object) -> None:
        raise SolverError("no more")

    monkeypatch.setattr(more_rows, "solve_model", fails)
    monkeypatch.setattr(more_rows, "_finer", lambda solution, budget: solution)
    rows = ["aa", "aa", "aa", "aa", "ab", "ab", "cc", "cd", "ce", "ff"]
    problem = Problem(lettered(rows), 2, PatternGuided(Mask(suppress_at_most=2)))
    found = pattern_ilp(problem, second_goal="rows")
    assert found.is_optimal
    assert any("the most are not known: no more" in remark for remark in found.trace)


@pytest.mark.crossed
@pytest.mark.parametrize("subsolver", ["bigm", "set-partition"])
def test_a_chain_goes_on(solver: str, subsolver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every link keeps its start, and the chain ends with a release."""
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    problem = Problem(census(24, 3, seed=4), 3)
    found = split_carry(problem, subsolver=subsolver, solver=solver)
    assert found.status.stopped is Stopped.HEURISTIC
    assert any("in which the solver failed" in remark for remark in found.trace)


@pytest.mark.parametrize(
    ("recoding", "method", "formulation"),
    [(EquivalenceClasses(), equivalence_mip, "bigm"), (Freeform(), freeform_mip, "freeform")],
)
def test_without_a_start_heuristics_take_its_place(
    solver: str, recoding: Any, method: Any, formulation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that needs no solver is given, as one of a failed solver."""
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    problem = Problem(census(24, 3, seed=1), 3, recoding)
    asked = {"formulation": formulation, "solver": solver, "warm_start": "none"}
    found = method(problem, **asked)
    assert found.is_optimal or found.status.stopped is Stopped.ERROR
    assert found.bound.value <= found.objective
    assert any("a search without one took its place" in remark for remark in found.trace)


def test_heuristics_keep_a_limit_of_suppression_that_the_search_does_not(solver: str) -> None:
    """The best classes of few records leave out more than may be, and no start is known."""
    values = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 60.0, 100.0]
    column = anonymip.Attribute("a", "numeric")
    data = anonymip.Microdata(pd.DataFrame({"a": values}), (column,))
    problem = Problem(data, 3, EquivalenceClasses(most_suppressed=1, suppression_price=0.3))
    free = problem.replace(recoding=EquivalenceClasses(True, suppression_price=0.3))
    assert anonymip.solve(free).assignment.suppressed == 2
    found = equivalence_mip(problem, solver=solver, warm_start="none")
    assert found.assignment.suppressed <= 1
    assert any("a search without one took its place" in remark for remark in found.trace)


def test_where_nothing_is_known_the_failure_is_told(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a heuristic find a release: the solver's reason is what is left to say."""
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    monkeypatch.setattr(model_run, "cheap_release", lambda *_: None)
    problem = Problem(census(9, 3, seed=1), 3)
    with pytest.raises(SolverError):
        equivalence_mip(problem, formulation="bigm", solver=solver, warm_start="none")


def test_a_loss_that_the_solver_does_not_see_gives_a_release() -> None:
    """HiGHS takes widths of 1e-14 for 0, and names sets that lose more than the best."""
    values = [1e9 + few for few in (6e-6, 6e-6, 7e-6, 7e-6, 0.0, 4e-6)]
    column = anonymip.Attribute("a", "numeric", domain=(0.0, 1e9 + 1.000007))
    data = anonymip.Microdata(pd.DataFrame({"a": values}), (column,))
    problem = Problem(data, 2, Freeform(suppression=True), "bottleneck-gcp")
    found = freeform_mip(problem, warm_start="none")
    assert found.objective <= anonymip.solve(problem).objective


@pytest.mark.parametrize(
    "recoding", [EquivalenceClasses(), Freeform(), PatternGuided(Mask(suppress_at_most=2))]
)
def test_auto_never_ends_in_a_solver_error(
    solver: str, recoding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The method that auto picks may fail without a start: another takes its place."""
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    for function in ("find_start", "begin_freeform"):
        for module in (
            model_solve,
            anonymip.exact.freeform.freeform_mip,
            anonymip.exact.patterns.pattern_ilp,
        ):
            monkeypatch.setattr(module, function, lambda *_, **__: (None, []), raising=False)
    rows = ["aa", "ab", "bb", "ba", "aa", "bc"]
    found = anonymip.solve(Problem(lettered(rows), 3, recoding), solver=solver)
    assert found.objective > 0


def test_rules_that_nothing_keeps_are_no_release(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where the heuristics find nothing either."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 8.0, 9.0, 20.0]})
    data = anonymip.Microdata(frame, (anonymip.Attribute("a", "numeric"),))
    problem = Problem(data, 2, limits=(Cap("a", 3.0),))
    with pytest.raises(NoSolution):
        anonymip.solve(problem, solver=solver)


def test_the_command_line_writes_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0, the status in the manifest, the reason on the terminal, and it verifies."""
    impostor(tmp_path, monkeypatch, SCRIPTS["exit"])
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    table, release, answer = (tmp_path / name for name in ("t.csv", "r.csv", "a.json"))
    numbers = np.random.default_rng(10).integers(0, 90, (12, 2))
    pd.DataFrame(numbers, columns=["a", "b"]).to_csv(table, index=False)
    asked = ["anonymize", str(table), "-q", "a", "-q", "b", "-k", "3", "--method"]
    asked += ["equivalence-mip", "--option", "equivalence-mip.formulation=bigm", "--solver", "cbc"]
    assert run([*asked, "-o", str(release), "--json", str(answer)]) == 0
    told = capsys.readouterr()
    assert "CBC ended with exit code 1" in told.out + told.err
    manifest = json.loads((tmp_path / "r.csv.manifest.json").read_text())
    assert manifest["status"] == "solver-error"
    assert run(["verify", str(table), str(release)]) == 0


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a solver whose licence is for small models."""
    place = "tests.exact.failing_solvers:Limited"
    monkeypatch.setattr(registry, "ADAPTERS", {**registry.ADAPTERS, "limited": place})
    return "limited"


def test_links_above_a_licence_do_not_end_a_chain(limited: str) -> None:
    """Such a link keeps its start or what a search finds."""
    problem = Problem(census(16, 2, seed=4), 3)
    found = split_carry(problem, S=2, subsolver="bigm", solver=limited)
    assert any("above the size of the solver's licence" in remark for remark in found.trace)


@pytest.mark.parametrize(
    ("recoding", "method", "formulation"),
    [(EquivalenceClasses(), equivalence_mip, "bigm"), (Freeform(), freeform_mip, "freeform")],
)
def test_a_model_above_a_licence_is_refused(
    limited: str, recoding: Any, method: Any, formulation: str
) -> None:
    """Asked alone, it is an error that says the limit."""
    problem = Problem(census(16, 2, seed=4), 3, recoding)
    with pytest.raises(LicenceLimit, match="100 rows"):
        method(problem, formulation=formulation, solver=limited)


def test_a_search_proves_links_above_a_licence(limited: str) -> None:
    """What is above the licence is proven by the search of small problems."""
    problem = Problem(census(16, 2, seed=4), 3)
    run = run_chain(problem, ChainOptions(S=2, subsolver="bigm", solver=limited))
    replaced = [link for link in run.links if link.reason == "licence"]
    assert replaced
    assert all(link.proven for link in replaced)
