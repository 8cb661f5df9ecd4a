"""One run, done: what a worker process computes of it, as a row of the experiment's table."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from anonymip.effort import check_effort
from anonymip.errors import (
    AnonymipError,
    InputError,
    Interrupted,
    NoSolution,
    SolverUnavailable,
)
from anonymip.experiments.measures import measures_of
from anonymip.experiments.running.columns import COLUMNS, surroundings
from anonymip.experiments.running.processor_time import ProcessorTime
from anonymip.experiments.running.runs import BOUND, Run, digest
from anonymip.experiments.running.sources import TableSource
from anonymip.instances import Microdata
from anonymip.instances.library.catalogue import table_digest
from anonymip.methods import find_method
from anonymip.methods.best_bound import best_bound
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget, compilation_seconds
from anonymip.runtime.compilation import CompilationStopped, RunInForce, in_force
from anonymip.solution import Bound, Solution
from anonymip.solving import solve
from anonymip.status import Stopped

Row = dict[str, Any]

#: Statuses of runs without a release: the method refuses the problem; it ended without one; it
#: failed, which another attempt may mend; its process had to be killed.
REFUSED, NOTHING, FAILED, KILLED = "refused", "no-solution", "failed", "killed"
#: Statuses of the search for a bound.
FOUND_BOUND, NO_BOUND = "bound", "no-bound"


def perform(run: Run, bound: Bound | None, budget: Budget) -> Row | None:
    """Do a run and return its row; None if the user stopped it.

    Parameters
    ----------
    run
        What to do.
    bound
        A lower bound that is known of the problem.
    budget
        An interrupt of it ends the run; the time limit is the run's own.

    Raises
    ------
    InputError
        If the table cannot be read.
    """
    whole = _whole(run.table, run.experiment.folder, run.files)
    data = run.table.sample(whole, run.sample)
    row = blank_row(run, data)
    try:
        mask = run.table.mask(run.experiment.folder)
        problem = run.experiment.problem(data, run.k, run.recoding, mask)
        row["objective_name"] = problem.objective.name
        _load_kernels(run, problem, budget)
        with _clocked(row):
            found = (_bound if run.choice is None else _solve)(run, problem, budget)
        row.update(_found_row(found, bound))
    except Interrupted:
        return None
    except NoSolution as nothing:
        row.update(status=NOTHING, reason=nothing.message)
    except SolverUnavailable as missing:
        row.update(status=FAILED, reason=missing.message)
    except InputError as refusal:
        row.update(status=REFUSED, reason=refusal.message)
    except AnonymipError as error:
        row.update(status=FAILED, reason=error.message)
    except Exception as error:  # noqa: BLE001 - a fault of one method ends its own runs only
        row.update(status=FAILED, reason=_fault(error))
    return None if budget.is_interrupted else row


@contextmanager
def _clocked(row: Row) -> Iterator[None]:
    """Fill in the seconds that a block takes, without compilation."""
    clock, began, compiled = ProcessorTime(), time.perf_counter(), compilation_seconds()
    try:
        yield
    finally:
        row["cpu_seconds"] = clock.stop()
        compiling = compilation_seconds() - compiled
        row["seconds"] = max(0.0, time.perf_counter() - began - compiling)


@lru_cache(maxsize=2)
def _whole(table: TableSource, folder: Path, files: tuple[str, ...]) -> Microdata:
    """Return a table, kept for the next runs; `files` are the digests of what it is read from."""
    return table.load(folder)


#: Heuristics that have run in this process before, with their options.
_loaded: set[str] = set()
#: Records that are enough to have their kernels loaded, and how many times k.
_FEW, _CLASSES = 20, 2


def _load_kernels(run: Run, problem: Problem, budget: Budget) -> None:
    """Run a heuristic on few records, once in a process: no run's seconds are those of loading."""
    choice = run.choice
    if choice is None or find_method(choice.method).role != "heuristic":
        return
    name = f"{choice.method} {_json(choice.options)}"
    if name in _loaded:
        return
    _loaded.add(name)
    few = np.arange(min(problem.n, max(_FEW, _CLASSES * problem.k)))
    with suppress(AnonymipError):
        small = problem.replace(microdata=problem.microdata.take(few))
        solve(small, choice.method, options=choice.options, bound=False, budget=budget)


def _solve(run: Run, problem: Problem, budget: Budget) -> Solution:
    settings, choice = run.experiment, run.choice
    assert choice is not None
    return solve(
        problem,
        choice.method,
        effort=run.effort,
        gap=settings.gap,
        solver=settings.solver,
        threads=settings.threads,
        seed=run.seed,
        options=choice.options,
        bound=False,
        budget=budget.renewed(run.time_limit),
    )


def _bound(run: Run, problem: Problem, budget: Budget) -> Bound | None:
    own = budget.renewed(run.time_limit)
    effort = check_effort(run.effort, limited=own.deadline is not None)
    with in_force(RunInForce(own)):
        try:
            return best_bound(problem, effort=effort, budget=own)
        except CompilationStopped as stopped:
            if stopped.reason is Stopped.INTERRUPT:
                raise stopped.nothing_found() from None
            return None


def _found_row(found: Solution | Bound | None, bound: Bound | None) -> Row:
    """Return the columns of what a run has found, beside a bound that is known."""
    if isinstance(found, Solution):
        return solution_row(found if bound is None else found.with_bound(bound))
    if found is None:
        return {"status": NO_BOUND, "reason": "no argument for a lower bound holds"}
    return {"status": FOUND_BOUND, **_bound_cells(found)}


def _bound_cells(bound: Bound | None) -> Row:
    if bound is None:
        return {}
    return {"bound": bound.value, "bound_by": bound.method, "proof": bound.proof}


def solution_row(solution: Solution) -> Row:
    """Return the columns that a solution fills, measures of its release included."""
    measures = asdict(measures_of(solution))
    measures["attribute_losses"] = json.dumps(measures["attribute_losses"])
    return {
        "options": _json(solution.options),
        "loss": solution.objective,
        **_bound_cells(solution.bound),
        "gap": solution.gap,
        "status": str(solution.status),
        "seconds": solution.seconds,
        "solver": solution.solver,
        **measures,
    }


def tidy_row(solution: Solution, instance: str) -> Row:
    """Return the row of a solution that was found outside of an experiment."""
    problem = solution.problem
    found: Row = {
        "instance": instance,
        "n": problem.n,
        "m": problem.m,
        "k": problem.k,
        "recoding": problem.recoding.name,
        "diversity": None if problem.diversity is None else str(problem.diversity),
        "limits": json.dumps([str(limit) for limit in problem.limits]),
        "objective_name": problem.objective.name,
        "method": solution.method,
        "label": solution.method,
        "seed": solution.seed,
        **solution_row(solution),
        **surroundings(),
        "table_sha256": table_digest(problem.microdata),
    }
    # Runs are measured by the optimum of their own problem; the recoding's text has its rules.
    asked = ("table_sha256", "k", "objective_name", "diversity", "limits")
    found["problem"] = digest(recoding=repr(problem.recoding), **{one: found[one] for one in asked})
    return {name: found.get(name) for name in COLUMNS}


def blank_row(run: Run, data: Microdata | None = None) -> Row:
    """Return the row of a run before anything is found; without its table, if that is unknown."""
    settings, choice = run.experiment, run.choice
    given: Row = {
        "experiment": settings.name,
        "instance": run.table.title,
        "sample": run.sample,
        "k": run.k,
        "recoding": run.recoding,
        "diversity": None if settings.diversity is None else str(settings.diversity),
        "limits": json.dumps([str(limit) for limit in settings.limits]),
        "objective_name": settings.objective,
        "method": BOUND if choice is None else choice.method,
        "label": BOUND if choice is None else choice.title,
        "options": _json({} if choice is None else choice.options),
        "repetition": run.repetition,
        "seed": run.seed,
        "effort": check_effort(run.effort, limited=run.time_limit is not None),
        "time_limit": run.time_limit,
        "threads": settings.threads,
        **surroundings(),
        "problem": run.problem_key,
        "key": run.key,
    }
    if data is not None:
        given |= {"n": data.n, "m": data.m, "table_sha256": table_digest(data)}
    return {name: given.get(name) for name in COLUMNS}


def _json(options: Any) -> str:
    return json.dumps(dict(options), sort_keys=True, default=str)


def _fault(error: Exception) -> str:
    """Return what happened and where; the error's own text may quote a value of the table."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
