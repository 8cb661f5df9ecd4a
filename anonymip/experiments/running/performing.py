"""One run, done: what comes of it, as a row of the experiment's table, and the time it took."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from anonymip.effort import check_effort
from anonymip.errors import (
    AnonymipError,
    InputError,
    Interrupted,
    NoSolution,
    SolverUnavailable,
    fault_of,
)
from anonymip.experiments.measures import measures_of
from anonymip.experiments.records import asked_of
from anonymip.experiments.running.runs import BOUND, COLUMNS, Run, digest, surroundings
from anonymip.experiments.running.sources import TableSource
from anonymip.instances import Microdata
from anonymip.instances.library.catalogue import table_digest
from anonymip.methods import find_method
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget, compilation_clock
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.solving import lower_bound, solve

Row = dict[str, Any]
T = TypeVar("T")

#: Statuses of runs without a release: the method refuses the problem; it ended without one; it
#: failed, which another attempt may mend; its process had to be killed.
REFUSED, NOTHING, FAILED, KILLED = "refused", "no-solution", "failed", "killed"
FOUND_BOUND, NO_BOUND = "bound", "no-bound"  # statuses of the search for a bound


def perform(run: Run, bound: Bound | None, budget: Budget) -> Row | None:
    """Do a run and return its row; None if the user stopped it.

    `bound`: a lower bound that is known of the problem. `budget`: an interrupt of it ends the run;
    the time limit is the run's own.
    """
    whole = _whole(run.table, run.experiment.folder, run.files)
    data = run.table.sample(whole, run.sample)
    row = blank_row(run, data)

    def work() -> Row:
        mask = run.table.mask(run.experiment.folder)
        problem = run.experiment.problem(data, run.k, run.recoding, mask)
        row["objective_name"] = problem.objective.name
        _load_kernels(run, problem, budget)
        with clocked(row):
            found = (_bound if run.choice is None else _solve)(run, problem, budget)
        return _found_row(found, bound)

    try:
        found = attempt(work)
    except Interrupted:
        return None
    if isinstance(found, Nothing):
        found = {"status": found.status, "reason": found.reason}
    row.update(found)
    return None if budget.is_interrupted else row


@dataclass(frozen=True)
class Nothing:
    """What becomes of a run that finds nothing: its status, why, and what was raised."""

    status: str
    reason: str
    error: Exception


def attempt(work: Callable[[], T]) -> T | Nothing:
    """Return what a piece of work returns, or why it found nothing."""
    try:
        return work()
    except Interrupted:
        raise
    except AnonymipError as error:
        if isinstance(error, NoSolution):
            status = NOTHING
        elif isinstance(error, InputError) and not isinstance(error, SolverUnavailable):
            status = REFUSED
        else:
            status = FAILED
        return Nothing(status, error.message, error)
    except Exception as error:  # noqa: BLE001 - a fault of one method ends its own runs only
        return Nothing(FAILED, fault_of(error), error)


@contextmanager
def clocked(row: Row) -> Iterator[Row]:
    """Fill the seconds that a block takes, and those of processors, into a row.

    What compilation takes is left out. Solvers run in worker processes that outlive a run. The
    system says of each process what it took; where it does not, those alone count that have ended.
    """
    listener, compiling, began = compilation_clock.listener, 0.0, 0.0

    def hear(begins: bool) -> None:
        nonlocal compiling, began
        if begins:
            began = _seconds()
        else:
            compiling += _seconds() - began
        if listener is not None:
            listener(begins)

    compilation_clock.listener = hear
    start, watch = _seconds(), Stopwatch()
    try:
        yield row
    finally:
        compilation_clock.listener = listener
        row["cpu_seconds"] = max(0.0, _seconds() - start - compiling)
        row["seconds"] = watch.seconds


@lru_cache(maxsize=2)
def _whole(table: TableSource, folder: Path, files: tuple[str, ...]) -> Microdata:
    """Return a table, kept for the next runs; `files` are the digests of what it is read from."""
    return table.load(folder)


_loaded: set[str] = set()  # heuristics that have run in this process before, with their options
_FEW, _CLASSES = 20, 2  # records that are enough to have their kernels loaded, and how many times k


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
    try:
        return lower_bound(problem, effort=run.effort, budget=budget.renewed(run.time_limit))
    except NoSolution:  # the time ended while kernels were compiled
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
    asked = asked_of(problem, instance)
    found: Row = {
        **asked,
        "limits": json.dumps(asked["limits"]),
        "objective_name": problem.objective.name,
        "method": solution.method,
        "label": solution.method,
        "seed": solution.seed,
        **solution_row(solution),
        **surroundings(),
        "table_sha256": table_digest(problem.microdata),
    }
    # Runs are measured by the optimum of their own problem; the recoding's text has its rules.
    own = ("table_sha256", "k", "objective_name", "diversity", "limits")
    found["problem"] = digest(recoding=repr(problem.recoding), **{one: found[one] for one in own})
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


def _seconds() -> float:
    """Return what this process took, those that it waited for, and those that it has now."""
    times = os.times()
    ended = times.children_user + times.children_system
    return time.process_time() + ended + sum(map(_of_process, _children(os.getpid())))


def _of_process(process: int) -> float:
    """Return what another process took, with those that it started."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        # The name of the program, in brackets, may hold blanks.
        ticks = text.rpartition(")")[2].split()[11:15]
        own = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0  # it has ended meanwhile, and what it took is its parent's
    return own + sum(map(_of_process, _children(process)))


def _children(process: int) -> list[int]:
    try:
        files = list(Path(f"/proc/{process}/task").glob("*/children"))
        return [int(one) for file in files for one in file.read_text().split()]
    except OSError:
        return []
