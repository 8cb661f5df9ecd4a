"""The heuristics of classes, and what the benchmarks measure of a solution and of a run."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from anonymip import Problem, Solution, load_instance, solve
from anonymip.methods import METHODS

#: Those that need no other's release to begin with.
HEURISTICS = tuple(
    spec.name
    for spec in METHODS.values()
    if spec.role == "heuristic" and spec.recoding == "classes" and not spec.needs
)


def warm_up() -> None:
    """Load all kernels: the first use of each in a process reads it from the disk."""
    problem = Problem(load_instance("census:50,8,1"), k=3)
    for name in HEURISTICS:
        solve(problem, name)
        for way in ("scan", "tree") if name in ("greedy-search", "k-member") else ():
            solve(problem, name, options={"search": way})
    solve(problem, "ordered-cut", options={"order": "neighbour+2opt"})
    solve(problem, "ordered-cut", options={"order": "hilbert"})


def row_of(solution: Solution) -> dict[str, Any]:
    """Return what is measured of every solution."""
    return {
        "n": solution.problem.n,
        "m": solution.problem.m,
        "k": solution.problem.k,
        "method": solution.method,
        "ncp": round(solution.ncp, 6),
        "gcp": round(solution.gcp, 6),
        "bound": None if solution.bound is None else round(solution.bound.value, 6),
        "gap": None if solution.gap is None else round(solution.gap, 6),
        "status": str(solution.status),
        "seconds": round(solution.seconds, 3),
    }


def processor_seconds() -> float:
    """Return the processor seconds of this process and of all that it started, ended or not."""
    children: dict[int, list[int]] = defaultdict(list)
    seconds: dict[int, float] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text(encoding="utf-8")
        except OSError:  # It has just ended.
            continue
        # State, parent, ...; the 14th to 17th of all fields are times, of children too.
        rest = text.rpartition(")")[2].split()
        process = int(file.parent.name)
        children[int(rest[1])].append(process)
        seconds[process] = sum(map(int, rest[11:15])) / os.sysconf("SC_CLK_TCK")
    total, todo = 0.0, [os.getpid()]
    while todo:
        process = todo.pop()
        total += seconds.get(process, 0.0)
        todo += children[process]
    return total
