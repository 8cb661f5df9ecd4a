"""What the links leave when time ends: cut fast into classes, so that there is a release."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np

from anonymip.exact.split_carry.state import CARRIED, NEXT_LABEL, READ, Chain
from anonymip.heuristics.classes.ordered_cut import cut_rows
from anonymip.heuristics.growing.consecutive import cut_in_order
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.problem import Problem
from anonymip.problem_rules import is_plain
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped

#: Seconds that cutting, checking and describing a cell take at most, for a class of k rows.
_SECONDS_A_CELL = 2.5e-7
#: Least share of the time that the links have.
_SHARE_OF_LINKS = 0.2
#: Less work than this, in seconds, is too little to judge the machine by.
_LEAST_WORK = 0.02


class MachineClock:
    """Measures how many seconds pass while this process works for one, since it was made."""

    def __init__(self) -> None:
        self._wall, self._work = time.perf_counter(), time.process_time()

    @property
    def slowness(self) -> float:
        """At least 1; more where others keep the machine busy."""
        work = time.process_time() - self._work
        return max(1.0, (time.perf_counter() - self._wall) / work) if work > _LEAST_WORK else 1.0


def reserved_seconds(problem: Problem) -> float:
    """Return the seconds that a release of the whole table takes without any link."""
    return _SECONDS_A_CELL * problem.n * problem.m * (1 + problem.k / 5)


def links_budget(problem: Problem, budget: Budget, clock: MachineClock) -> Budget:
    """Return the budget of the links: a release must be made in the time that remains.

    Parameters
    ----------
    problem, budget
        The whole.
    clock
        Has seen how busy the machine is.
    """
    left = budget.remaining()
    if left is None or left == 0.0:
        return budget
    reserved = clock.slowness * reserved_seconds(problem)
    return budget.share(max(_SHARE_OF_LINKS, 1.0 - reserved / left))


def cut_rest(problem: Problem, chain: Chain) -> int:
    """Give classes to all records that are not fixed, and return how many these are.

    The best consecutive classes where the kernels can cut them and are compiled in time, else sets
    of k: both without asking for the time.
    """
    carried, read = int(chain.cursor[CARRIED]), int(chain.cursor[READ])
    places = np.concatenate([chain.carried[:carried], np.arange(read, chain.n)])
    if not len(places):
        return 0
    first = int(chain.cursor[NEXT_LABEL])
    order = np.arange(len(places))
    labels = np.full(len(places), -1, np.int64)
    if is_plain(problem):
        tables = problem.compiled.tables
        rows = kernel_rows(problem.microdata, tables, chain.records[places])
        sums = problem.compiled.aggregate == "sum"
        with suppress(CompilationStopped):
            labels, _ = cut_rows(tables, rows, order, problem.k, sums, Budget())
    if labels[0] < 0:
        cut_in_order(labels, order, problem.k, 0)
    chain.labels[places] = first + labels
    chain.cursor[NEXT_LABEL] = first + int(labels.max()) + 1
    chain.cursor[CARRIED], chain.cursor[READ] = 0, chain.n
    return len(places)
