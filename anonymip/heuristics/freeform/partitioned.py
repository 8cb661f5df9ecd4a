"""Freeform heuristics on parts of a large table, and the checked solution of a cover."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import signature
from typing import Any, cast

import numpy as np

from anonymip.assignments import Cover
from anonymip.errors import InputError, InvalidAssignment, NoSolution
from anonymip.heuristics.freeform.left_out import leaves_out
from anonymip.orders.orders import cardinality_order
from anonymip.problem import Problem, has_rules, named_rules
from anonymip.recodings import Freeform
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.runtime.side_by_side import run_side_by_side, workers_of
from anonymip.runtime.worker_pool import content_of
from anonymip.solution import Solution
from anonymip.status import Stopped


def finish_cover(
    problem: Problem,
    cover: Cover,
    method: str,
    watch: Stopwatch,
    *,
    stopped: Stopped | None = None,
    options: Mapping[str, object] | None = None,
    seed: int | None = None,
    trace: tuple[str, ...] = (),
    looks: bool = False,
) -> Solution:
    """Return the solution of a cover, whose sets are as large as the recoding asks for.

    `looks`: whether the method looks at limits. Raises NoSolution if the cover breaks a limit or
    the diversity.
    """
    try:
        return Solution.of(
            problem,
            cover,
            method=method,
            stopped=stopped or Stopped.HEURISTIC,
            options=options,
            seconds=watch.seconds,
            seed=seed,
            trace=trace,
        )
    except InvalidAssignment as error:
        if not has_rules(problem):
            raise
        if looks:
            raise NoSolution(
                f"{method} found no cover that keeps the limits: {error.message}",
                remedy="Use freeform-mip, a smaller k or weaker limits",
            ) from error
        raise NoSolution(
            f"{method} does not look at {named_rules(problem)}, and its sets break them: {error}",
            remedy="Use freeform-mip, equivalence classes, or loosen the rules",
        ) from error


#: A method: problem, budget and seed in, solution with a cover out.
Method = Callable[..., Solution]


def in_parts(method: Method) -> Method:
    """Give a freeform method the options ``part`` and ``jobs`` of `solve_in_parts` (a decorator).

    And suppression: parts are those of the records that are kept, see :func:`leaves_out`.

    ``part``: most records of a part, 0 for the whole table; ``jobs``: processes at a time.
    """

    def run(problem: Problem, *, part: int = 0, jobs: int = 0, **options: Any) -> Solution:
        each = method if part == 0 else wrapped
        return solve_in_parts(problem, each, part=part, jobs=jobs, **options)

    taken = signature(method)
    # What calls a release by the name of its method sees this function.
    run.__name__ = method.__name__
    own = [one for name, one in signature(run).parameters.items() if name in ("part", "jobs")]
    wrapped = wraps(method)(leaves_out(run, has_efforts="effort" in taken.parameters))
    # The signature shows the two options as well.
    wrapped.__signature__ = taken.replace(  # type: ignore[attr-defined]
        parameters=[*taken.parameters.values(), *own]
    )
    return wrapped


def solve_in_parts(
    problem: Problem,
    method: Method,
    *,
    part: int,
    jobs: int = 0,
    budget: Budget | None = None,
    seed: int = 0,
    **options: Any,
) -> Solution:
    """Cut the table into parts, solve each by itself and join the covers [1]_.

    The records are sorted lexicographically, attributes with few values first, and cut into parts
    of nearly equal size. Losses in a part are those in the whole table, since its domains are the
    whole table's. Sets of records with regular graphs have a regular graph together.

    `method`: a function as the registry names them; in processes of their own it must be
    importable. `part`: most records of a part, at least 2k; 0: the whole table. `jobs`: processes
    at a time; 0: two, or one on a machine with one core. With 1, and where the problem cannot be
    handed to another process, all is done in this one. Raises InputError if part or jobs is too
    small; NoSolution if the method finds no solution of a part, or a part cannot have the
    diversity.

    The result does not depend on the number of jobs unless the time ends. A method that needs
    O(n^2) time needs O(n part) in parts.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 8.1.
    """
    watch, budget = Stopwatch(), budget or Budget()
    workers = workers_of(jobs)
    if part == 0 or problem.n <= part:
        return method(problem, budget=budget, seed=seed, **options)
    rows = _parts(problem, part)
    tasks = [_task(problem, records, method, seed, options) for records in rows]
    trace: tuple[str, ...] = (f"{len(rows)} parts of up to {part} records",)
    if workers > 1 and content_of(tasks[0]) is None:
        workers = 1
        trace += ("the problem cannot be handed to other processes: solved in this one",)
    results = run_side_by_side(
        tasks, budget, jobs=workers, in_processes=True, phase="solving parts", by_task=True
    )
    covers, stopped, names, seeds = zip(*results, strict=True)
    early = [reason for reason in (Stopped.INTERRUPT, Stopped.TIME) if reason in stopped]
    return finish_cover(
        problem,
        Cover.joined(problem.n, zip(rows, covers, strict=True)),
        names[0],
        watch,
        stopped=early[0] if early else None,
        options={**options, "part": part},
        seed=seeds[0],
        trace=trace,
    )


#: What becomes of a part: its cover, records numbered within it; why it ended, what method, seed.
_Solved = tuple[Cover, Stopped, str, int | None]


def _solve_part(solve: Callable[..., Solution], budget: Budget) -> _Solved:
    """Return the cover of a part, without what it has worked out by now, which need not be sent."""
    found = solve(budget=budget)
    cover = cast(Cover, found.assignment)
    cover = Cover(cover.start, cover.members)
    return cover, found.status.stopped, found.method, found.seed


def _parts(problem: Problem, part: int) -> list[Ints]:
    """Return the records of each part, in lexicographic order."""
    recoding = problem.recoding
    largest = problem.k
    if isinstance(recoding, Freeform):
        largest = int(recoding.sizes(problem).max())
    if part < 2 * largest:
        raise InputError(
            f"parts of {part} records are too small for sets of {largest}",
            remedy=f"Give at least {2 * largest}",
        )
    order = cardinality_order(problem, Budget()).astype(np.int64)
    return np.array_split(order, -(-problem.n // part))


def _task(
    problem: Problem, records: Ints, method: Method, seed: int, options: dict[str, Any]
) -> Callable[[Budget], _Solved]:
    changes: dict[str, Any] = {"microdata": problem.microdata.take(records)}
    if isinstance(problem.recoding, Freeform):
        changes["recoding"] = problem.recoding.of_some(records)
    try:
        solve = partial(method, problem.replace(**changes), seed=seed, **options)
    except InputError as error:
        raise NoSolution(
            f"a part of {len(records)} records has no solution: {error.message}",
            remedy="Use larger parts",
        ) from error
    return partial(_solve_part, solve)
