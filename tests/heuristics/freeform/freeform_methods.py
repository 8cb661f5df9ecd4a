"""The freeform heuristics that work in rounds, by name, and the sets that they return."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from anonymip import Cover, Solution
from anonymip.heuristics.freeform.greedy import greedy
from anonymip.heuristics.freeform.hungarian import hungarian
from anonymip.heuristics.freeform.min_cost_flow import min_cost_flow
from anonymip.heuristics.freeform.sort_greedy import sort_greedy

Run = Callable[..., Solution]
RUNS: dict[str, Run] = {
    "greedy": greedy,
    "greedy by originals": partial(greedy, chooser="originals"),
    "sort-greedy": sort_greedy,
    "sort-greedy as in the text": partial(sort_greedy, weight="increase", repair="originals"),
    "hungarian": hungarian,
    "min-cost-flow": min_cost_flow,
}
BOTH_WAYS: dict[str, Run] = {
    "greedy": partial(greedy, reciprocal=True),
    "sort-greedy": partial(sort_greedy, reciprocal=True),
    "hungarian": partial(hungarian, reciprocal=True),
}
EVERY = {**RUNS, **{f"{label} both ways": run for label, run in BOTH_WAYS.items()}}


def sets_of(solution: Solution) -> list[list[int]]:
    """Return the sets of a cover."""
    assert isinstance(solution.assignment, Cover)
    return [solution.assignment.of_record(i).tolist() for i in range(solution.assignment.n)]
