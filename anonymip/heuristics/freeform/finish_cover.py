"""From the cover of a heuristic to a checked solution."""

from __future__ import annotations

from collections.abc import Mapping

from anonymip.assignments import Cover
from anonymip.errors import InvalidAssignment, NoSolution
from anonymip.problem import Problem
from anonymip.problem_rules import has_rules, named_rules
from anonymip.runtime.kernels import Stopwatch
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
) -> Solution:
    """Return the solution of a cover.

    Parameters
    ----------
    problem
        What is asked.
    cover
        A set for each record, as large as the recoding asks for; it may break limits and diversity.
    method, watch, stopped, options, seed, trace
        As the solution has them.

    Raises
    ------
    NoSolution
        If the cover breaks a limit or the diversity.
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
        raise NoSolution(
            f"{method} does not look at {named_rules(problem)}, and its sets break them: {error}",
            remedy="Use freeform-mip, equivalence classes, or loosen the rules",
        ) from error
