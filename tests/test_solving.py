"""solve() and lower_bound(): settings, bounds, and distrust of what methods return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import (
    AnonymipError,
    Bound,
    Budget,
    Classes,
    EquivalenceClasses,
    InputError,
    InvalidAssignment,
    NoSolution,
    Problem,
    Progress,
    Solution,
    SolverUnavailable,
    Status,
    Stopped,
    census,
    load_instance,
    lower_bound,
    register_method,
    solve,
)
from anonymip.methods import registry


@pytest.fixture
def health() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3)


@pytest.fixture
def liar() -> Iterator[Callable[[Callable[[Problem], Any]], None]]:
    """Return a function that registers what the method "liar" returns."""
    before = dict(registry._methods)

    def register(answer: Callable[[Problem], Any]) -> None:
        @register_method("liar")
        def method(problem: Problem, *, budget: Any = None, seed: int = 0) -> Any:
            return answer(problem)

    yield register
    registry._methods.clear()
    registry._methods.update(before)


def one_class(problem: Problem) -> Solution:
    """Return the trivial release."""
    labels = np.zeros(problem.n, np.int32)
    return Solution.of(problem, Classes(labels), method="liar")


def too_small(problem: Problem) -> Solution:
    """Return a solution with a class below k, made without the check."""
    labels = np.arange(problem.n, dtype=np.int32)
    return replace(one_class(problem), assignment=Classes(labels))


LIES: dict[str, tuple[Callable[[Problem], Any], type[Exception], str]] = {
    "nothing": (lambda p: None, AnonymipError, "did not return a Solution"),
    "labels": (lambda p: np.zeros(p.n, int), AnonymipError, "did not return a Solution"),
    "another problem": (
        lambda p: one_class(p.replace(k=2)),
        AnonymipError,
        "of the problem it was given",
    ),
    "too low a loss": (
        lambda p: replace(one_class(p), objective=0.5),
        AnonymipError,
        r"claims loss 0\.5 \(heuristic\), but its assignment has loss 21",
    ),
    "too high a loss": (
        lambda p: replace(one_class(p), objective=22.0),
        AnonymipError,
        "claims loss 22",
    ),
    "optimality": (
        lambda p: replace(one_class(p), status=Status(Stopped.OPTIMAL, True, True)),
        AnonymipError,
        "a solution of liar calls itself optimal with no bound that closes its gap",
    ),
    "a bound above the loss": (
        lambda p: replace(one_class(p), bound=Bound(30.0, "dream", "argument")),
        AnonymipError,
        "bound 30.0 of dream exceeds the loss",
    ),
    "classes below k": (too_small, InvalidAssignment, "fewer than k = 3"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lying_methods_are_caught(
    health: Problem, liar: Callable[[Callable[[Problem], Any]], None], lie: str
) -> None:
    """Whatever a method registered from outside claims, it is checked before it is believed."""
    answer, error, message = LIES[lie]
    liar(answer)
    with pytest.raises(error, match=message):
        solve(health, "liar")


def test_honest_method_passes(
    health: Problem, liar: Callable[[Callable[[Problem], Any]], None]
) -> None:
    """The same method passes if it tells the truth."""
    liar(one_class)
    assert solve(health, "liar").objective == 21.0


@pytest.mark.parametrize("claimed", [Stopped.OPTIMAL, Stopped.GAP])
def test_a_gap_limit_is_a_gap_that_was_asked_for(
    health: Problem, liar: Callable[[Callable[[Problem], Any]], None], claimed: Stopped
) -> None:
    """What a solver's tolerance leaves open is not called a gap that was reached."""
    start = solve(health, "initial")
    below = Bound(0.9 * start.objective, "prover", "solver")
    liar(
        lambda problem: Solution.of(
            problem, start.assignment, method="liar", bound=below, stopped=claimed
        )
    )
    assert str(solve(health, "liar", bound=False).status) == "tolerance-limit"
    assert str(solve(health, "liar", bound=False, gap=0.2).status) == "gap-limit"


def test_work_that_is_spent_is_no_gap_limit() -> None:
    """What the effort leaves open is called so, and a gap that is reached by its name."""
    census = Problem(load_instance("census:60,6,1"), 3)
    relaxed = {"options": {"bound_only": True}, "effort": "quick"}
    for gap, status in ((0.0, "node-limit"), (1e-4, "node-limit"), (0.3, "gap-limit")):
        found = solve(census, "column-generation", gap=gap, **relaxed)
        assert str(found.status) == status


def test_heuristics_get_a_bound_by_duals(health: Problem) -> None:
    """A bound comes with every answer, unless it is not wanted."""
    solution = solve(health, "initial")
    bound = lower_bound(health)
    assert solution.bound is not None
    assert bound is not None
    assert solution.bound.value == pytest.approx(bound.value)
    assert solution.gap == pytest.approx(
        (solution.objective - bound.value) / solution.objective, abs=1e-7
    )
    assert solve(health, "mondrian", bound=False).bound is None


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_solver_settings_are_handed_on(
    health: Problem, solver: str, kind: type[str | Path], tmp_path: Path
) -> None:
    """Solver, log and seed reach the solver; the log's path is a text or a path."""
    log = tmp_path / "solver.log"
    solution = solve(health, "equivalence-mip", solver=solver, log=kind(log), seed=7)
    assert solution.is_optimal
    assert solution.seed == 7
    assert str(solution.solver).lower().startswith(solver)
    assert log.read_text(encoding="utf-8")


@pytest.mark.parametrize("log", [3, "", b"solver.log"])
def test_a_log_that_is_no_path_is_refused(health: Problem, log: Any) -> None:
    """What cannot be a file is refused before anything is solved, whatever the method."""
    with pytest.raises(InputError, match=r"log is .*path of a file"):
        solve(health, "mondrian", log=log)


def test_unknown_solver_is_refused(health: Problem) -> None:
    """The message lists the solvers."""
    with pytest.raises((InputError, SolverUnavailable), match="highs, cbc"):
        solve(health, "equivalence-mip", solver="simplex")


def test_tiny_time_limit_still_answers() -> None:
    """A billionth of a second is over at once: a valid release with status time limit."""
    problem = Problem(census(300, 5, seed=0), 4)
    lower_bound(problem)  # compiles what is not compiled without time
    for method in ("greedy-search", "k-member", "ordered-cut", "mondrian", "initial"):
        solution = solve(problem, method, time_limit=1e-9)
        assert solution.status.stopped is Stopped.TIME
        assert solution.assignment.sizes.min() >= 4
        assert solution.bound is not None
        assert solution.bound.value <= solution.objective


def test_tiny_time_limit_without_start_is_no_solution(health: Problem) -> None:
    """Without a start the exact method says that it found nothing."""
    with pytest.raises(NoSolution, match="found no solution"):
        solve(health, "equivalence-mip", time_limit=1e-9, options={"warm_start": "none"})


def test_progress_is_told() -> None:
    """The listener hears phases with work done and in all, from the calling thread."""
    heard: list[Progress] = []
    solve(Problem(census(400, 5, seed=0), 3), "greedy-search", progress=heard.append)
    phases = {message.phase for message in heard}
    assert {"growing classes", "nearest-neighbour bound"} <= phases
    assert all(m.done <= m.total for m in heard if m.done is not None and m.total is not None)


def test_lower_bound_alone(health: Problem) -> None:
    """The bound without a solution is the one that solutions get."""
    alone, known = lower_bound(health), solve(health, "mondrian").bound
    assert alone is not None
    assert known is not None
    assert alone.value == pytest.approx(known.value)
    assert alone.proof == "argument"


def test_suppression_never_costs_more(health: Problem) -> None:
    """With more allowed the optimum does not rise, and the gap stays proven."""
    freer = health.replace(recoding=EquivalenceClasses(suppression=True))
    with_stars, without = solve(freer), solve(health)
    assert with_stars.is_optimal
    assert without.is_optimal
    assert with_stars.objective <= without.objective + 1e-9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"gap": -1.0}, "gap is -1"),
        ({"gap": float("nan")}, "gap is nan"),
        ({"threads": 0}, "threads is 0"),
        ({"solver": "nonsense"}, "unknown solver 'nonsense'"),
        *(
            ({"time_limit": limit}, f"time_limit is {limit}.* Give a positive number of seconds")
            for limit in (0, -1.0, float("nan"), float("inf"))
        ),
        ({"time_limit": "soon"}, "time_limit is 'soon'"),
        ({"effort": "heroic"}, "unknown effort 'heroic'. Use quick, normal, thorough"),
    ],
)
@pytest.mark.parametrize("method", ["k-member", "equivalence-mip"])
def test_wrong_settings_are_refused_by_every_method(
    method: str, settings: dict[str, Any], message: str
) -> None:
    """Settings that a method does not read are checked all the same."""
    problem = Problem(load_instance("health-records"), 3)
    with pytest.raises(InputError, match=message):
        solve(problem, method, **settings)


@pytest.mark.parametrize(
    ("settings", "meant"),
    [
        ({}, "normal"),
        ({"time_limit": 60}, "thorough"),
        ({"budget": Budget.of(60)}, "thorough"),
        ({"effort": "quick"}, "quick"),
        ({"effort": "normal", "time_limit": 60}, "normal"),
    ],
)
def test_effort_reaches_methods_that_take_it(
    health: Problem, settings: dict[str, Any], meant: str
) -> None:
    """By default it is normal, and thorough where a limit ends the work; others ignore it."""
    heard = []

    @register_method("eager", source="test", takes=("effort",))
    def eager(problem: Problem, *, budget: Budget, seed: int, effort: str) -> Solution:
        heard.append(effort)
        return Solution.of(problem, Classes(np.zeros(problem.n, int)), method="eager")

    try:
        solve(health, "eager", **settings)
        solve(health, "mondrian", **settings)
    finally:
        registry._methods.pop("eager")
    assert heard == [meant]


class Hours:
    """A clock that stands still unless somebody works, and what worked when."""

    def __init__(self, bound_needs: float, method_needs: float) -> None:
        self.now, self._needs = 1000.0, {"bound": bound_needs, "method": method_needs}
        self.began: list[tuple[str, float]] = []

    def monotonic(self) -> float:
        """Return the seconds of the clock."""
        return self.now

    def perf_counter(self) -> float:
        """Return the seconds of the clock."""
        return self.now

    def work(self, who: str, budget: Budget) -> bool:
        """Work second by second until done or stopped; return whether all was done."""
        self.began.append((who, budget.remaining() or 0.0))
        left = self._needs[who]
        while left > 0 and budget.stop_reason() is None:
            self.now += min(1.0, left)
            left -= 1.0
        return left <= 0

    def bound(self, problem: Problem, *, effort: str, budget: Budget) -> Bound:
        """Return a bound that is worth more where it has all its time."""
        return Bound(0.4 if self.work("bound", budget) else 0.1, "watched", "argument")

    def late_bound(
        self,
        problem: Problem,
        releases: Sequence[Solution],
        *,
        known: Bound | None,
        ladder: None,
        **more: Any,
    ) -> Bound:
        """Return a bound that is known, or work for one."""
        return known or self.bound(problem, **more)


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float, float], Hours]]:
    """Return a maker of clocks, by which a method "watchful" and all bounds then work."""
    clocks: list[Hours] = []

    def make(bound_needs: float, method_needs: float) -> Hours:
        clocks.append(Hours(bound_needs, method_needs))
        monkeypatch.setattr("anonymip.runtime.budget.time", clocks[-1])
        monkeypatch.setattr("anonymip.solving.climbs", lambda _: False)
        monkeypatch.setattr("anonymip.solving.bound_in_time", clocks[-1].bound)
        monkeypatch.setattr("anonymip.solving.best_bound_in_time", clocks[-1].late_bound)
        return clocks[-1]

    @register_method("watchful", source="test")
    def watchful(problem: Problem, *, budget: Budget, seed: int) -> Solution:
        clocks[-1].work("method", budget)
        return Solution.of(problem, Classes(np.zeros(problem.n, int)), method="watchful")

    yield make
    registry._methods.pop("watchful")


@pytest.mark.parametrize(
    ("needs", "began", "ends", "value"),
    [
        # A bound that needs 2 seconds takes 2, not a quarter, and the search gets all others.
        ((2.0, 1e6), [("bound", 30.0), ("method", 118.0)], 1120.0, 0.4),
        # One that was cut short is computed again if the search ends early; the better counts.
        ((60.0, 5.0), [("bound", 30.0), ("method", 90.0), ("bound", 85.0)], 1095.0, 0.4),
        # Where bound and search would take all their time, both stop.
        ((1e6, 1e6), [("bound", 30.0), ("method", 90.0)], 1120.0, 0.1),
    ],
)
def test_bound_and_search_share_a_limit(
    health: Problem,
    hours: Callable[[float, float], Hours],
    needs: tuple[float, float],
    began: list[tuple[str, float]],
    ends: float,
    value: float,
) -> None:
    """A bound gets a quarter of 120 seconds and what the search leaves, and the limit is kept."""
    clock = hours(*needs)
    solution = solve(health, "watchful", time_limit=120)
    assert clock.began == began
    assert clock.now == ends
    assert solution.bound is not None
    assert solution.bound.value == value


def test_without_a_bound_or_a_limit_the_search_comes_first(
    health: Problem, hours: Callable[[float, float], Hours]
) -> None:
    """No second goes to a bound that is not wanted, and none waits where nothing is short."""
    clock = hours(2.0, 5.0)
    assert solve(health, "watchful", time_limit=120, bound=False).bound is None
    assert clock.began == [("method", 120.0)]
    clock = hours(2.0, 5.0)
    assert solve(health, "watchful").bound is not None
    assert clock.began == [("method", 0.0), ("bound", 0.0)]
