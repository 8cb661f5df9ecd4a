"""Lower bounds of pattern problems: the row bound, and the Lagrangian bound found by ascent.

By the row bound every record pays its cheapest pattern that k records can share. The Lagrangian
bound is that of the best dual values of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import fsum

import numpy as np

from anonymip.bounds.patterns.pattern_duals import (
    PatternDuals,
    PatternProgram,
    pattern_duals,
    pattern_program,
)
from anonymip.errors import InputError, UnsupportedObjective
from anonymip.problem import Problem
from anonymip.recodings.output_rows import pack_rows, priced_patterns, refuse_unshared, rows_alike
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.solution import Bound
from anonymip.tolerances import LOSS_RELATIVE


def pattern_row_bound(problem: Problem) -> Bound:
    """Return a lower bound on the loss of any release by patterns.

    A record is published under a pattern through which k records at least look alike, itself
    included; it pays no less than the cheapest of these, or than what a suppressed record costs
    where that is allowed. Single use and diversity only raise the optimum.

    `problem`: with patterns as its recoding. Complexity: O(t p m) for t row types and p patterns;
    patterns that cost more than all that is needed are not looked at. Tight where all records need
    as many stars, as in tables that hold every combination of values. Raises NoSolution if a record
    shares no output row with k - 1 others.
    """
    watch = Stopwatch()
    terms = pattern_row_terms(problem)
    value = fsum(terms)
    if not np.array_equal(terms, np.rint(terms)):
        value -= LOSS_RELATIVE * fsum(np.abs(terms))
    return Bound(value, "pattern rows", "argument", watch.seconds)


def pattern_row_terms(problem: Problem) -> Floats:
    """Return (n,) what each record pays at least; NoSolution if one shares no output row."""
    microdata, (stars, costs, price) = problem.microdata, priced_patterns(problem)
    types = microdata.row_types()
    packed = pack_rows(microdata.codes[types.first], stars)
    terms = np.full(len(types.first), price)
    for pattern in np.argsort(costs, kind="stable"):
        if (terms <= costs[pattern]).all():
            break
        labels, count = rows_alike(packed, pattern)
        held = np.bincount(labels, weights=types.counts, minlength=count)
        better = (held[labels] >= problem.k) & (terms > costs[pattern])
        terms[better] = costs[pattern]
    unshared = np.isinf(terms)
    if unshared.any():
        refuse_unshared(problem, int(types.first[unshared].min()))
    return terms[types.inverse]


#: Rounds of the ascent: iterations, and its first and last step in costs of a star.
ROUNDS = ((150, 1.0, 1e-2), (250, 5e-2, 1e-3))
#: What is done instead where an iteration takes long, and from how many pairs on.
_SHORT, _MANY_PAIRS = ((100, 1.0, 5e-3),), 3_000_000
#: Share of the direction so far that is kept.
_MOMENTUM = 0.9


def pattern_lagrangian_bound(problem: Problem, *, budget: Budget | None = None) -> Bound:
    """Return a lower bound on the loss of any release by patterns.

    The constraints that give every record a pattern are relaxed: every record has a dual value, and
    each output row decides by itself whether it is used and by whom. The best duals give the value
    of the linear relaxation with links of single records to rows. They are approached from those of
    the row bound by steps along the averaged subgradient; the best duals seen are evaluated again,
    in whole numbers. The pattern of stars only is taken to need no k records, which is faster and
    usually loses nothing.

    `problem`: with patterns as its recoding. Single use and diversity only raise the optimum.
    `budget`: ends the ascent. Complexity: O(t p) in an iteration for t row types and p patterns;
    patterns that cost more than a record's dual do not look at it. Raises NoSolution if a record
    shares no output row with k - 1 others.
    """
    watch = Stopwatch()
    program = pattern_program(problem, relaxed=True)
    duals = ascend(program, None, budget or Budget())
    return Bound(duals.bound, "pattern Lagrangian", "argument", watch.seconds)


def pattern_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return the better of the row bound and the Lagrangian bound, as far as they are possible.

    `problem`: with patterns as its recoding. `effort`: as of other bounds; this one is the same for
    all. `budget`: ends the ascent of the Lagrangian bound. Returns: None if the loss of a pattern
    depends on the record. Where types times patterns are too many to hold, the row bound is all.
    Raises NoSolution if a record shares no output row with k - 1 others.
    """
    try:
        simple = pattern_row_bound(problem)
    except UnsupportedObjective:
        return None
    if budget is not None and budget.stop_reason() is not None:
        return simple
    try:
        better = pattern_lagrangian_bound(problem, budget=budget)
    except InputError:
        return simple
    return better if better.value > simple.value else simple


def ascend(
    program: PatternProgram,
    rounds: Sequence[tuple[int, float, float]] | None,
    budget: Budget,
    *,
    enough: float = np.inf,
) -> PatternDuals:
    """Return the best duals that are found, never worse than those of the row bound.

    Each round has iterations, a first and a last step in costs of a star; None for the usual ones.
    A value that is enough ends it.
    """
    if rounds is None:
        rounds = ROUNDS if program.pairs <= _MANY_PAIRS else _SHORT
    counts, types = program.counts, program.type_count
    best = program.cheapest.copy()
    reached = float((best * counts).sum())
    touched, added, uncovered = np.empty((3, types), np.int64)
    work = np.zeros(program.rows, np.int64), np.zeros(program.rows), touched, added, uncovered
    lagrangian = partial(_lagrangian, program.k, counts, program.costs, program.row_of)

    def climb(iterations: int, first: float, last: float) -> None:
        """Climb from the best duals with steps that shrink from `first` to `last`."""
        duals, direction, at = best.copy(), np.zeros(types), 0

        def step(amount: int) -> int:
            nonlocal at, duals, direction, best, reached
            for _ in range(min(amount, iterations - at)):
                order = np.argsort(-duals, kind="stable")
                value = float(lagrangian(duals, order, *work))
                if value > reached:
                    reached, best = value, duals
                    if value >= enough:
                        at = iterations
                        break
                share = np.clip(uncovered / counts, -1.0, 1.0)
                direction = _MOMENTUM * direction + (1 - _MOMENTUM) * share
                length = program.star_cost * first * (last / first) ** (at / iterations)
                duals = np.minimum(duals + length * direction, program.price)
                at += 1
            return at

        run_in_steps(step, iterations, budget, "Lagrangian bound")

    for given in rounds:
        if reached >= enough:
            break
        climb(*given)
    return pattern_duals(program, best)


@kernel
def _lagrangian(
    k: int,
    counts: Ints,
    costs: Floats,
    row_of: Codes,
    duals: Floats,
    order: Ints,
    held: Ints,
    losses: Floats,
    touched: Ints,
    added: Ints,
    uncovered: Ints,
) -> float:
    """Return the value at some duals; write how many records of each row type no output row takes.

    `order` has the row types by descending dual. `held` and `losses` are zero before and after.
    """
    total = 0.0
    for row_type in range(len(counts)):
        uncovered[row_type] = counts[row_type]
        total += counts[row_type] * duals[row_type]
    for pattern in range(len(costs)):
        cost = costs[pattern]
        rows, short, end = 0, 0, 0
        # An output row takes all records that cost less than their duals, which come first; `short`
        # counts the rows in use that still hold fewer than k.
        while end < len(order):
            row_type = order[end]
            if duals[row_type] <= cost:
                break
            row = row_of[pattern, row_type]
            if row >= 0:
                if held[row] == 0:
                    touched[rows] = row
                    rows += 1
                    if counts[row_type] < k:
                        short += 1
                elif held[row] < k <= held[row] + counts[row_type]:
                    short -= 1
                held[row] += counts[row_type]
                losses[row] += counts[row_type] * (cost - duals[row_type])
            end += 1
        # Rows with fewer than k fill up with those that cost least above their duals; a row that
        # none of the first records wants stays unused.
        stop = end
        while short > 0 and stop < len(order):
            row_type = order[stop]
            row = row_of[pattern, row_type]
            added[stop] = 0
            if row >= 0 and 0 < held[row] < k:
                amount = min(counts[row_type], k - held[row])
                added[stop] = amount
                held[row] += amount
                losses[row] += amount * (cost - duals[row_type])
                if held[row] == k:
                    short -= 1
            stop += 1
        # Rows with a negative loss are used and cover what they took; the others take none.
        for at in range(stop):
            row_type = order[at]
            row = row_of[pattern, row_type]
            if row >= 0 and losses[row] < 0.0:
                uncovered[row_type] -= counts[row_type] if at < end else added[at]
        # Add the losses of the used rows and clear the buffers for the next pattern.
        for at in range(rows):
            row = touched[at]
            total += min(losses[row], 0.0)
            held[row] = 0
            losses[row] = 0.0
    return total
