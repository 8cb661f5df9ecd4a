"""Tests of what is particular to the HiGHS adapter."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pyomo.environ as pyo
import pytest
from scipy.sparse import csr_array

from anonymip.runtime.budget import Budget, Progress
from anonymip.solvers import SolverOptions, SolverResult, compile_standard_form, solve_model
from anonymip.solvers.adapters import highs as adapter
from anonymip.solvers.adapters.highs import HighsSolver
from anonymip.solvers.adapters.packages import Search
from anonymip.solvers.standard_form import StandardForm
from anonymip.status import Stopped


def choose_one(n: int = 6) -> pyo.ConcreteModel:
    """Return a model that takes the cheapest of n items, which costs 1."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), domain=pyo.Binary)
    model.one = pyo.Constraint(expr=sum(model.x[j] for j in range(n)) == 1)
    model.cost = pyo.Objective(expr=sum((j + 1) * model.x[j] for j in range(n)))
    return model


def test_absent_package_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where highspy cannot be imported, availability says why and what to do."""

    def refuse() -> str:
        raise ImportError("undefined symbol")

    monkeypatch.setattr(adapter, "_version", refuse)
    found = HighsSolver().availability()
    assert not found.installed
    assert found.version is None
    assert "undefined symbol" in str(found.reason)
    assert "pip install highspy" in str(found.reason)


def test_options_are_always_set() -> None:
    """Gaps, threads, parallelism and seed are ours, whatever the defaults of the version."""
    options = SolverOptions(time_limit=7, threads=2, seed=5)
    solver, form = HighsSolver(), compile_standard_form(choose_one())
    search = Search("HiGHS", form, Budget())
    with solver.session(form, options, search, log=None) as session:
        solver.set_parameters(session)
        session.limit(7.0)
        highs = session.native
    expected = {
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-9,
        "threads": 2,
        "parallel": "on",
        "random_seed": 5,
        "time_limit": 7.0,
        "output_flag": False,
    }
    assert {name: highs.getOptionValue(name)[1] for name in expected} == expected


def test_limit_is_of_the_next_run() -> None:
    """A second run of a linear program has its own seconds, though HiGHS's clock goes on."""
    random, rows, columns = np.random.default_rng(0), 1500, 3000
    weights = random.random((rows, columns)) * (random.random((rows, columns)) < 0.2)
    sides = np.full(rows, -np.inf), np.full(rows, 10.0)
    bounds = np.zeros(columns), np.full(columns, np.inf)
    cost, integer = -random.random(columns), np.zeros(columns, np.bool_)
    matrix = csr_array(weights)
    form = StandardForm((), (), cost, 0.0, matrix, *sides, *bounds, integer, maximize=False)
    search = Search("HiGHS", form, Budget())
    with HighsSolver().session(form, SolverOptions(), search, log=None) as session:
        for _ in range(2):
            before = session.native.getRunTime()
            session.limit(0.1)
            session.run()
            assert session.status() == "kTimeLimit"
            assert session.native.getRunTime() >= before + 0.1


def test_every_status_of_this_version_is_known() -> None:
    """Each model status either is in the map or is one that only errors have."""
    import highspy

    errors = {*adapter._UNBOUNDED, "kNotset", "kModelEmpty"}
    errors |= {f"k{stage}Error" for stage in ("Load", "Model", "Presolve", "Solve", "Postsolve")}
    assert set(highspy.HighsModelStatus.__members__) == set(adapter.STATUS) | errors


def test_node_limit_of_the_caller_is_reported() -> None:
    """A node limit in HiGHS's own words ends in the status for nodes."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(12), domain=pyo.Integers, bounds=(0, 3))
    model.rows = pyo.ConstraintList()
    for row in range(4):
        model.rows.add(sum((7 * j * j + 13 * row * j) % 97 * model.x[j] for j in range(12)) <= 401)
    model.value = pyo.Objective(
        expr=sum((31 * j + 17) % 53 * model.x[j] for j in range(12)), sense=pyo.maximize
    )
    own = {"mip_max_nodes": 1, "presolve": "off", "mip_heuristic_effort": 0.0}
    result = solve_model(model, "highs", SolverOptions(solver_options=own))
    assert result.stopped is Stopped.NODES


def test_solves_in_several_threads() -> None:
    """Solves with different numbers of threads may run at the same time."""
    results: list[SolverResult] = []

    def solve(threads: int) -> None:
        results.append(solve_model(choose_one(), "highs", SolverOptions(threads=threads)))

    workers = [threading.Thread(target=solve, args=(1 + number % 2,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [result.objective for result in results] == [1.0] * 4


def test_exception_of_a_listener_ends_the_solve(
    hard_knapsack: Callable[..., pyo.ConcreteModel],
) -> None:
    """What a progress listener raises reaches the caller, and HiGHS is stopped first."""

    def listen(progress: Progress) -> None:
        raise KeyboardInterrupt

    form = compile_standard_form(hard_knapsack())
    with pytest.raises(KeyboardInterrupt):
        HighsSolver().solve(form, None, SolverOptions(), Budget(progress=listen))
    assert "highs" not in [thread.name for thread in threading.enumerate()]
