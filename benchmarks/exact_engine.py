"""Column generation on instances of the library, beside what is asked of it.

``python -m benchmarks.exact_engine [--quick] [--update] [--times FACTOR] [INSTANCE ...]`` measures
the instances that are named, or all that this version has not measured yet. What is measured is
written after each, so that a run that is ended goes on where it was.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from time import perf_counter
from typing import Any

import pandas as pd

from anonymip import Solution, __version__, solve
from anonymip.experiments.leaderboard import found_by, problem_of, stage_release
from anonymip.files import writing
from anonymip.instances.library.catalogue import (
    LibraryEntry,
    better,
    closer,
    find_entry,
    library,
    stage_entries,
)
from benchmarks.engine_table import GOALS, Goal, verdict_on
from benchmarks.heuristics import processor_seconds
from benchmarks.pages import result_file, stored, write_pages
from benchmarks.registry import machine, write_results

NAME = "exact-engine"
_QUICK = 60  # instances with at most this time limit are the quick ones
#: What is compiled before anything is measured: programs of sets, then pools and what ends them.
_FIRST = ("census-8-n20-k3", "census-8-n50-k3", "freeform-n14-k3", "freeform-n50-k3")


def measure(goal: Goal, times: float) -> tuple[dict[str, Any], LibraryEntry, Solution]:
    """Return what is measured on one instance, its entry with what is better now, the release."""
    entry = find_entry(goal.name)
    problem = problem_of(entry)
    started, busy = perf_counter(), processor_seconds()
    solution = solve(problem, "column-generation", time_limit=times * goal.limit)
    row = {
        "instance": goal.name,
        "n": problem.n,
        "m": problem.m,
        "k": problem.k,
        "recoding": entry.recoding,
        "linear_program": _said(solution, r"^linear program ([\d.]+) "),
        "with_cuts": _said(solution, r" cuts in \d+ rounds: bound ([\d.]+)"),
        "loss": solution.objective,
        "bound": None if solution.bound is None else solution.bound.value,
        "rung": None if solution.bound is None else solution.bound.method,
        "gap": solution.gap,
        "status": str(solution.status),
        "processor_seconds": round(processor_seconds() - busy, 2),
        "seconds": round(perf_counter() - started, 2),
        "time_limit": times * goal.limit,
        **machine(),
    }
    return row, improved(entry, solution), solution


def improved(entry: LibraryEntry, solution: Solution) -> LibraryEntry:
    """Return an entry with the loss and the bound of a solution, where they are better."""
    best = better(entry, solution.objective, found_by(solution.method))
    if solution.bound is not None:
        best = closer(best, solution.bound.value, found_by(solution.bound.method))
    return best


def _said(solution: Solution, pattern: str) -> float | None:
    """Return the last number that a remark of the solution gives; None if none does."""
    found = [match[1] for line in solution.trace if (match := re.search(pattern, line))]
    return float(found[-1]) if found else None


def due(names: Iterable[str], quick: bool) -> list[Goal]:
    """Return the goals that are named, or those that this version has not measured yet."""
    if names:
        return [goal for goal in GOALS if goal.name in names]
    done: set[str] = set()
    if result_file(NAME).is_file():
        before = stored(NAME)
        here = before["versions"].str.contains(f"anonymip {__version__};", regex=False)
        done = set(before["instance"][here])
    return [goal for goal in GOALS if goal.name not in done and not (quick and goal.limit > _QUICK)]


def keep(row: dict[str, Any]) -> None:
    """Write a row into the result file in the place of an earlier one, and the page."""
    rows = [row]
    if result_file(NAME).is_file():
        before = stored(NAME)
        rows += before[before["instance"] != row["instance"]].to_dict("records")
    places = {goal.name: place for place, goal in enumerate(GOALS)}
    known = [one for one in rows if one["instance"] in places]
    write_results(NAME, pd.DataFrame(sorted(known, key=lambda one: places[one["instance"]])))
    write_pages(NAME)


def main() -> None:
    """Measure what is asked for."""
    names = [goal.name for goal in GOALS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exact_engine")
    parser.add_argument("names", nargs="*", metavar="INSTANCE", help="default: what is missing")
    parser.add_argument("--quick", action="store_true", help=f"only those of {_QUICK} s at most")
    parser.add_argument("--update", action="store_true", help="write what is better to the library")
    parser.add_argument("--times", type=float, default=1.0, help="factor of all time limits")
    parser.add_argument("--list", action="store_true", help="print what would be measured and stop")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(names))
    if unknown:
        parser.error(f"unknown instance {', '.join(unknown)}; known: {', '.join(names)}")
    goals = due(given.names, given.quick)
    if given.list:
        for goal in goals:
            print(f"{goal.name}: at most {given.times * goal.limit:g} s")
        return
    for name in _FIRST if goals else ():
        solve(problem_of(find_entry(name)), "column-generation")
    for goal in goals:
        row, entry, solution = measure(goal, given.times)
        keep(row)
        if given.update and entry != library()[goal.name]:
            with writing() as outputs:
                stage_entries([entry], outputs)
                if entry.loss != library()[goal.name].loss:
                    stage_release(entry, solution, outputs)
        print(
            f"{goal.name}: loss {row['loss']:.7g}, bound {row['bound']}, {row['status']}, "
            f"{row['processor_seconds']} s: {verdict_on(goal, row)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
