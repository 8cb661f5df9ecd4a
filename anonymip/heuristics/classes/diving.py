"""Classes out of a linear program over sets of near records, kept step by step."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import SUPPRESSED
from anonymip.bounds.near_program import NearProgram, can_make_classes, records_of, take_out
from anonymip.bounds.nearest_neighbour import lowered_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.errors import InputError, NoSolution
from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import labels_of, place_leftovers
from anonymip.instances.microdata import RowTypes
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import run_in_force
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution

#: Losses computed, times columns: 30,000 records of 8 attributes with k = 5 take a quarter of it.
_CELLS = 5e10
#: How far the duals are raised before sets are sought, losses that one search may compute, and the
#: share of the work that k-sets take at most, and the ascent of what these leave.
_RAISED, _EACH, _OF_START = 1.25, 200_000, 0.2
#: Stages of the program before the first sets are kept, since the last one finds few more; and what
#: they leave of the work at least, as a share.
_STAGES, _LEFT = 2, 0.5
#: Sets taken at least so much are kept; of others so many a step, as a share of those that the rows
#: left can be, at least some; and none that is taken less than the last.
_NEARLY, _SHARE, _AT_LEAST, _LEAST = 0.7, 0.05, 5, 0.02
#: Sets kept in a step at most, in such steps, unless they are taken nearly whole.
_SURE, _AT_MOST = 0.98, 3
#: Rounds of pricing in a step, types listed near each, and partial sets looked at for each: so many
#: times as many when fewer rows are left, at most.
_ROUNDS, _NEAR, _NODES, _MORE = 2, 60, 200, 5
#: Records left in the end, times classes that each may join: 2.4 million took 7 s.
_JOINING = 20_000_000
#: Times its k-set term a dual becomes at most.
_HIGHEST = 8.0


def diving(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Keep the sets that a linear program uses most, and solve it again for the rows that are left.

    The program is that of the bound by an ascent that it guides: the one that the bound of the run
    in force has solved, if it has one, else one of its own. In each step the sets of k records
    that it takes nearly whole become classes, at least some, and sets are priced anew among the
    rows left. Who is in none in the end joins the class whose loss rises least. Where a row repeats
    k times or more, k copies are a class that takes in what is left of them.

    `problem`: with equivalence classes and a monotone loss that has tables and is summed, without
    limits and diversity. `budget`: ends it, without classes. Raises InputError if the problem asks
    for something else; NoSolution if the budget ended before the classes were made, or sets were
    found of too few records.

    Counts work and not seconds. Complexity: as of :mod:`anonymip.bounds.near_program`, of the rows
    that are left, for each of some fifty steps.
    """
    watch, budget = Stopwatch(), budget or Budget()
    if not can_make_classes(problem):
        raise InputError(
            "diving makes classes for monotone losses with tables that are summed, without limits "
            "and diversity",
            remedy="Use another start, such as k-member",
        )
    program, types = _program_of_the_bound(problem) or _solved_program(problem, budget)
    dive = _Dive(program, budget)
    if not dive.run():
        raise NoSolution(
            "diving found no classes within its time",
            remedy="Use another start, such as k-member, or give it more time",
        )
    return finish(
        problem,
        _labels(problem, program.duals, types, dive.sets),
        "diving",
        watch,
        budget=budget,
        seed=seed,
        trace=(f"{len(dive.sets):,} sets kept in {dive.steps} steps",),
    )


def _program_of_the_bound(problem: Problem) -> tuple[NearProgram, RowTypes] | None:
    """Return the program that the bound of the run in force has solved, and its types of records.

    The search may look at the records and attributes of the run in an order of its own. None where
    there is no program, or the types are not the same.
    """
    run = run_in_force()
    program: NearProgram | None = None if run is None else run.solved_program(problem)
    if program is None:
        return None
    duals, own = program.duals, problem.microdata
    given, columns = duals.problem.microdata, duals.search.rows.tables.columns
    places = [own.names.index(given.names[a]) for a in columns]
    pairs = zip(columns, places, strict=True)
    if not all(np.array_equal(given.levels[a], own.levels[b]) for a, b in pairs):
        return None
    known = given.codes[duals.types.first][:, columns]
    rows = np.concatenate([known, own.codes[:, places]])
    found = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    if found.max() >= len(known):
        return None
    inverse = np.argsort(found[: len(known)])[found[len(known) :]]
    if not np.array_equal(np.bincount(inverse, minlength=len(known)), duals.counts):
        return None
    duals.allow_more(_CELLS)
    return program, duals.types._replace(inverse=inverse)


def _solved_program(problem: Problem, budget: Budget) -> tuple[NearProgram, RowTypes]:
    """Return a program of its own, solved far enough, and its types of records."""
    terms, _ = lowered_terms(problem, budget)
    duals = RecordDuals(problem, terms, _CELLS, budget)
    # Duals that were not raised to the end are a start as well.
    duals.raise_to_k_sets(_OF_START)
    duals.ascend(_RAISED, _EACH, _OF_START)
    program = NearProgram(duals, budget)
    program.solve(_LEFT * duals.left, _STAGES)
    return program, duals.types


class _Dive:
    """The steps."""

    def __init__(self, program: NearProgram, budget: Budget) -> None:
        self._program, self._duals, self._budget = program, program.duals, budget
        duals = program.duals
        # A type that is a class of its own is free to stay there.
        alone = duals.counts >= duals.k
        self._left = np.where(alone, duals.counts - duals.k, duals.counts)
        self._due = ~alone
        self.sets: list[Codes] = []  # (k,) types of each set that is kept
        self.steps = 0  # how many it took

    def run(self) -> bool:
        """Keep sets until none is left to keep; return whether there was time for it."""
        kept, rows = -1, self._rows()
        while kept and self._budget.stop_reason() is None:
            self._program.sets.cover(self._left)
            self._price(min(_MORE, rows // max(1, self._rows())))
            kept = self._keep()
            self.steps += 1
            self._budget.report("diving", done=rows - self._rows(), total=rows)
        return self._budget.stop_reason() is None

    def _rows(self) -> int:
        """Return how many rows still need a class."""
        return int(self._left[self._due].sum())

    def _price(self, times: int) -> None:
        """Find sets of the rows left, and how much of each the program takes."""
        program, there = self._program, self._left > 0
        floors = self._duals.floors
        # A row that is in a class is not priced: no dual, and no set to hold it.
        program.lowest = np.where(there, np.fmin(floors, 0.0), 0.0)
        program.highest = np.where(there, self._duals.highest(_HIGHEST), 0.0)
        program.aims = np.clip(program.aims, program.lowest, program.highest)
        if self._duals.left <= 0:
            # From now on only sets that are known are kept.
            program.improve()
            return
        program.look_near(np.where(there, floors, np.inf), times * _NEAR)
        for _ in range(_ROUNDS):
            program.price(times * _NODES)
            program.sets.cover(self._left)

    def _keep(self) -> int:
        """Keep the sets that the program takes most of, as they fit; return how many."""
        members, shares = self._program.sets.members, self._program.sets.shares
        some = max(_AT_LEAST, int(_SHARE * self._rows() / self._duals.k))
        kept = 0
        for place in np.argsort(-shares, kind="stable").tolist():
            share = shares[place]
            if share < (_LEAST if kept < some else _NEARLY):
                break
            if kept >= _AT_MOST * some and share < _SURE:
                break
            if take_out(members[place], self._left):
                self.sets.append(members[place].copy())
                kept += 1
        return kept


def _labels(problem: Problem, duals: RecordDuals, types: RowTypes, sets: list[Codes]) -> Ints:
    """Return (n,) labels: of the sets, of what repeats, and of those that join them."""
    groups = records_of(types, duals.counts, duals.k, sets)
    left = np.flatnonzero(labels_of(groups, problem.n) == SUPPRESSED).tolist()
    if len(left) * len(groups) > _JOINING:
        raise NoSolution(
            f"diving leaves {len(left):,} of {problem.n:,} records without a class",
            remedy="Use another start, such as k-member",
        )
    if place_leftovers(problem, groups, left, by_increase=True):
        # There are no classes to join.
        return np.zeros(problem.n, np.int64)
    return labels_of(groups, problem.n)
