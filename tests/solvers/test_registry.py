"""Tests of the registry and of the check that no answer escapes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.errors import InputError, SolverError, SolverUnavailable
from anonymip.runtime.budget import Budget, Progress
from anonymip.solvers import (
    Availability,
    SolverOptions,
    SolverResult,
    StandardForm,
    availability,
    get_solver,
    solve_model,
    solver_names,
)
from anonymip.solvers.adapters.highs import HighsSolver
from anonymip.status import Stopped
from tests.solvers.lying import Adapter, Start, two_items


class Fake(Adapter):
    """A solver that answers what it was made with."""

    name = "Fake"
    capabilities = frozenset({"mip"})
    own_process = True  # the tests look at what it was asked

    def __init__(self, answer: SolverResult) -> None:
        self.answer = answer
        self.time_limit: float | None = None
        self.start: Start = None

    def solve(
        self, form: StandardForm, start: Start, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Return the answer."""
        self.time_limit, self.start = options.time_limit, start
        return self.answer


TRUTH = SolverResult(Stopped.OPTIMAL, np.array([1.0, 0.0]), 3.0, 3.0, 0.1, "Fake 1")
#: The same for the model that maximises.
MIRROR = replace(TRUTH, objective=-3.0, bound=-3.0)


def test_truth_is_loaded() -> None:
    """An honest answer passes, and its values stand in the model."""
    model = two_items()
    result = solve_model(model, Fake(TRUTH))
    assert result.stopped is Stopped.OPTIMAL
    assert (model.use[0].value, model.use[1].value) == (1, 0)


def test_almost_integer_values_are_rounded() -> None:
    """Values within tolerance become whole numbers, and the objective follows."""
    near = replace(TRUTH, values=np.array([1 - 2e-6, 3e-7]), objective=3 - 4.5e-6)
    model = two_items()
    result = solve_model(model, Fake(near))
    assert (model.use[0].value, model.use[1].value) == (1, 0)
    assert result.objective == 3
    assert result.stopped is Stopped.OPTIMAL


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        ({"values": np.array([0.0, 0.0]), "objective": 0.0}, "constraint need is violated"),
        ({"values": np.array([0.5, 0.5]), "objective": 4.0}, "away from a whole number"),
        ({"values": np.array([2.0, -1.0]), "objective": 1.0}, "outside its bounds"),
        ({"values": np.array([1.0])}, "shape"),
        ({"values": np.array([1.0, np.nan])}, "no finite value"),
        ({"objective": 2.5}, "reports the objective 2.5"),
        ({"objective": float("nan")}, "reports the objective"),
        ({"bound": 3.001}, "excludes its own point"),
        ({"stopped": Stopped.TIME, "bound": 3.001}, "excludes its own point"),
        ({"stopped": Stopped.INFEASIBLE}, "says infeasible and returns a point"),
        ({"values": None}, "says optimal and returns no point"),
        ({"values": None, "stopped": Stopped.GAP}, "says gap-limit and returns no point"),
    ],
)
def test_lies_are_caught(lie: dict[str, object], text: str) -> None:
    """A point, objective or bound that does not fit the model raises, and loads nothing."""
    model = two_items()
    with pytest.raises(SolverError, match=text):
        solve_model(model, Fake(replace(TRUTH, **lie)))  # type: ignore[arg-type]
    assert model.use[0].value is None


@pytest.mark.parametrize(("objective", "bound"), [(-2.5, -3.0), (-3.0, -3.001)])
def test_lies_are_caught_when_maximising(objective: float, bound: float) -> None:
    """In the other sense a bound below the objective is the lie."""
    lie = replace(MIRROR, objective=objective, bound=bound)
    assert solve_model(two_items(sense=-1), Fake(MIRROR)).stopped is Stopped.OPTIMAL
    with pytest.raises(SolverError):
        solve_model(two_items(sense=-1), Fake(lie))


@pytest.mark.parametrize(
    ("claimed", "bound", "settled"),
    [
        (Stopped.OPTIMAL, 2.9, Stopped.GAP),
        (Stopped.OPTIMAL, None, Stopped.ERROR),
        (Stopped.OPTIMAL, float("-inf"), Stopped.ERROR),
        (Stopped.OPTIMAL, 3 - 1e-7, Stopped.OPTIMAL),
        (Stopped.GAP, 3.0, Stopped.OPTIMAL),
        (Stopped.TIME, 3.0, Stopped.OPTIMAL),
        (Stopped.TIME, 2.0, Stopped.TIME),
        (Stopped.INTERRUPT, 3.0, Stopped.INTERRUPT),
    ],
)
def test_optimal_is_what_the_bound_proves(
    claimed: Stopped, bound: float | None, settled: Stopped
) -> None:
    """The status says optimal exactly where bound and recomputed objective meet."""
    result = solve_model(two_items(), Fake(replace(TRUTH, stopped=claimed, bound=bound)))
    assert result.stopped is settled
    assert result.bound is None or result.bound <= 3
    assert result.objective == 3


def test_false_optimal_when_maximising() -> None:
    """A bound above the objective leaves a gap for a model that maximises."""
    result = solve_model(two_items(sense=-1), Fake(replace(MIRROR, bound=-2.9)))
    assert result.stopped is Stopped.GAP


@pytest.mark.parametrize("stopped", [Stopped.TIME, Stopped.INTERRUPT, Stopped.NODES])
def test_bad_point_at_a_limit_is_dropped(stopped: Stopped) -> None:
    """At a limit a point that fails the check is no incumbent, and the bound remains."""
    answer = replace(TRUTH, stopped=stopped, values=np.array([0.4, 0.6]), bound=2.5)
    model = two_items()
    result = solve_model(model, Fake(answer))
    assert (result.stopped, result.values, result.objective) == (stopped, None, None)
    assert result.bound == 2.5
    assert model.use[0].value is None


def test_wrong_objective_at_a_limit_is_recomputed() -> None:
    """At a limit the point counts, not the objective that the solver says it has."""
    answer = replace(TRUTH, stopped=Stopped.TIME, objective=1e50, bound=2.5)
    assert solve_model(two_items(), Fake(answer)).objective == 3


def test_constant_infeasibility_needs_no_solver() -> None:
    """A constraint on fixed variables that fails is infeasibility, not an error."""
    model = two_items()
    for variable in model.use.values():
        variable.fix(0)
    assert solve_model(model, Fake(TRUTH)).stopped is Stopped.INFEASIBLE


def test_shorter_time_limit_wins() -> None:
    """The solver gets the smaller of its own limit and what the budget has left."""
    fake = Fake(TRUTH)
    solve_model(two_items(), fake, SolverOptions(time_limit=5), budget=Budget.of(1000))
    assert fake.time_limit == 5
    solve_model(two_items(), fake, SolverOptions(time_limit=5000), budget=Budget.of(1000))
    assert fake.time_limit is not None
    assert 0 < fake.time_limit <= 1000
    solve_model(two_items(), fake)
    assert fake.time_limit is None


def test_start_reaches_the_adapter_only_when_asked() -> None:
    """Present values of the variables are a start only on request."""
    without, with_start = Fake(TRUTH), Fake(TRUTH)
    for fake, start in ((without, False), (with_start, True)):
        model = two_items()
        model.use[0].set_value(0)
        model.use[1].set_value(1)
        solve_model(model, fake, start=start)
    assert without.start is None
    assert with_start.start is not None
    np.testing.assert_array_equal(with_start.start, [0, 1])


def test_unwritable_log_is_refused_before_solving(tmp_path: Path) -> None:
    """A log in what is no folder stops before the solver starts."""
    (tmp_path / "file").touch()
    options = SolverOptions(log=tmp_path / "file" / "solver.log")
    with pytest.raises(InputError, match="cannot write"):
        solve_model(two_items(), Fake(TRUTH), options)


def test_unknown_name_lists_the_names() -> None:
    """A wrong name is answered with the right ones."""
    for ask in (get_solver, availability):
        with pytest.raises(InputError, match="highs, cbc"):
            ask("glpk")


def test_missing_solver_says_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that is not installed is an error with the way to get it."""
    absent = Availability(False, False, None, "Install it with 'pip install highspy'")
    monkeypatch.setattr(HighsSolver, "availability", lambda self: absent)
    with pytest.raises(SolverUnavailable, match="pip install highspy"):
        get_solver("highs")


def test_names_and_versions() -> None:
    """HiGHS comes first, and the default solvers are there with a version."""
    assert solver_names()[:2] == ("highs", "cbc")
    for name in ("highs", "cbc"):
        found = availability(name)
        assert found.installed
        assert found.licensed
        assert found.version is not None
        assert found.reason is None


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
@pytest.mark.parametrize("unit", [1e-13, 1.0])
def test_a_huge_constant_is_no_obstacle(solver: str, unit: float, sense: Any) -> None:
    """Beside a constant that dwarfs all costs a solver still finds the optimum."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    sign = 1 if sense is pyo.minimize else -1
    model.cover = pyo.Constraint(expr=2 * model.x[0] + model.x[1] + model.x[2] >= 2)
    costs = unit * (3 * model.x[0] + 1.25 * model.x[1] + 1.5 * model.x[2])
    model.cost = pyo.Objective(expr=sign * (1e9 + costs), sense=sense)
    result = solve_model(model, solver)
    assert result.stopped is Stopped.OPTIMAL
    assert [round(pyo.value(model.x[i])) for i in range(3)] == [0, 1, 1]
    assert result.objective == pytest.approx(sign * 1e9)
    assert result.bound == pytest.approx(sign * 1e9)


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e9])
def test_the_unit_of_the_cost_changes_nothing(solver: str, unit: float) -> None:
    """Objective and bound come back in the model's unit, and optima stay optima."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(6), domain=pyo.Binary)
    weights = [3.0, 5.0, 7.0, 11.0, 13.0, 17.0]
    model.cover = pyo.Constraint(expr=sum(w * model.x[i] for i, w in enumerate(weights)) >= 29)
    model.cost = pyo.Objective(
        expr=unit * (2 + sum((w + 0.5) * model.x[i] for i, w in enumerate(weights)))
    )
    told: list[Progress] = []
    result = solve_model(model, solver, budget=Budget(progress=told.append))
    best = min(
        2 + sum(w + 0.5 for i, w in enumerate(weights) if mask >> i & 1)
        for mask in range(64)
        if sum(w for i, w in enumerate(weights) if mask >> i & 1) >= 29
    )
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == pytest.approx(unit * best, rel=1e-9)
    assert result.bound == pytest.approx(unit * best, rel=1e-6)
    for message in told:
        if message.incumbent is not None:
            assert message.incumbent >= unit * best * (1 - 1e-6)


@pytest.mark.parametrize(
    ("limits", "fits"), [((2, 1), True), ((1, 1), False), ((2, 0), False), ((None, None), True)]
)
def test_size_limit_is_checked_before_solving(
    limits: tuple[int | None, int | None], fits: bool
) -> None:
    """A model above the limit is refused with all four numbers; a full licence has none."""

    class Limited(Fake):
        def availability(self) -> Availability:
            return Availability(True, False, "1", "small", "size-limited", *limits)

    fake = Limited(TRUTH)
    if fits:
        assert solve_model(two_items(), fake).objective == 3
        return
    text = f"allows {limits[0]} variables and {limits[1]} rows; .* 2 variables and 1 rows.*licence"
    with pytest.raises(SolverUnavailable, match=text):
        solve_model(two_items(), fake, SolverOptions(time_limit=9))
    assert fake.time_limit is None


def test_missing_licence_says_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that is there and may not be used is refused by name."""
    refused = Availability(True, False, "1", "expired. Renew it", "none")
    monkeypatch.setattr(HighsSolver, "availability", lambda self: refused)
    with pytest.raises(SolverUnavailable, match=r"highs has no licence\. expired\. Renew it"):
        get_solver("highs")


def test_adapter_that_cannot_be_sent_runs_here() -> None:
    """An adapter of a local class is called in this process, and its exceptions are told."""

    class Local(Fake):
        own_process = False

        def solve(self, *arguments: Any) -> SolverResult:
            if self.answer.stopped is Stopped.ERROR:
                raise ZeroDivisionError("division by zero")
            return super().solve(*arguments)

    fake = Local(TRUTH)
    assert solve_model(two_items(), fake, SolverOptions(time_limit=9)).objective == 3
    assert fake.time_limit is not None
    with pytest.raises(SolverError, match="Fake failed with ZeroDivisionError"):
        solve_model(two_items(), Local(replace(TRUTH, stopped=Stopped.ERROR)))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("time_limit", 0),
        ("time_limit", -1.0),
        ("time_limit", float("nan")),
        ("time_limit", float("inf")),
        ("relative_gap", -0.1),
        ("relative_gap", float("nan")),
        ("node_limit", 0),
        ("node_limit", 2.5),
        ("node_limit", 2**31),
        ("threads", 0),
        ("threads", 1.5),
        ("threads", True),
        ("seed", -1),
        ("seed", 2**31),
        ("solver_options", {"": 1}),
    ],
)
def test_options_out_of_range_are_refused(argument: str, value: object) -> None:
    """The message names the argument and its value."""
    with pytest.raises(InputError, match=argument):
        SolverOptions(**{argument: value})  # type: ignore[arg-type]


def test_options_do_not_change_with_the_callers_mapping() -> None:
    """Options are frozen, keep a copy of the mapping, and can be sent to a process."""
    own = {"presolve": "off"}
    options = SolverOptions(solver_options=own)
    own["presolve"] = "on"
    assert options.solver_options == {"presolve": "off"}
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(FrozenInstanceError):
        options.seed = 3  # type: ignore[misc]


def test_import_is_light() -> None:
    """Importing the solvers loads neither Pyomo nor any solver nor SciPy nor pandas."""
    heavy = ("pyomo", "highspy", "pulp", "scipy", "pandas")
    program = f"import sys, anonymip.solvers; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
