"""The nearest-neighbour bound: what every record pays at least for its k - 1 companions."""

from __future__ import annotations

from math import fsum

import numpy as np

from anonymip.bounds.near_search import NearSearch, find_nearest, new_near_search
from anonymip.certificates import DualProof
from anonymip.effort import check_effort
from anonymip.errors import UnsupportedObjective
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses, Freeform
from anonymip.recodings.registry import COVERING_K, published_form
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.solution import Bound, under_assumptions
from anonymip.tolerances import LOSS_RELATIVE

#: Pairs looked at in all; the terms of further rows are what they lose when published exactly.
_LARGEST_PAIRS = 10_000_000
#: Sets of more than two whose losses are computed, of losses without tables: 2 to 5 microseconds
#: each.
_SETS = {"quick": 2e5, "normal": 1e6, "thorough": 1e7}
#: Pairs described at a time.
_BATCH = 20_000
#: Cells of rows, and of nodes of the tree, that are looked at: about a billion a second.
_CELLS = {"quick": 5e9, "normal": 2.5e10, "thorough": np.inf}


def nearest_neighbour_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release.

    Whoever hides record i hides it among k - 1 others at least; one of these is no nearer than
    its (k-1)-th nearest neighbour j, and the published description covers i and j. With a monotone
    record loss c, i pays at least c({i, j}); where records may be suppressed, at least the lesser
    of this and the price of a suppressed record. The bound is the sum over the records, or their
    maximum if that is what the objective takes. Diversity and limits only raise the optimum.

    Parameters
    ----------
    problem
        With a monotone objective.
    effort
        How much work: ``"quick"``, ``"normal"`` or ``"thorough"``; None for thorough within a time
        limit, else normal. Only tables of a hundred thousand records, or of many columns, need more
        than normal.
    budget
        When it ends, as when the effort is spent, records not looked at count with the loss of
        being published exactly.

    Returns
    -------
    Bound or None
        None if the objective is neither proven nor declared monotone, or the recoding does not
        hide every published record among k originals. What is only declared, the bound's method
        calls an assumption.

    Notes
    -----
    Exact up to rounding; every term is lowered by its rounding error. Complexity: with tables one
    search in a k-d tree for every distinct row; else all pairs of distinct rows are looked at, up
    to 1e7 of them.

    References
    ----------
    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, argument of Lemma 3.
    """
    if not hides_each(problem):
        return None
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    terms, complete = lowered_terms(problem, budget, effort)
    return bound_of_terms(problem, terms, "nearest-neighbour", complete, watch)


def hides_each(problem: Problem) -> bool:
    """Return whether each record is hidden among k originals, and its loss never falls."""
    return problem.compiled.monotone and published_form(problem.recoding) in COVERING_K


def bound_of_terms(
    problem: Problem, terms: Floats, method: str, complete: bool, watch: Stopwatch
) -> Bound:
    """Return the sum of (n,) terms as a bound, or their maximum if the objective takes that.

    The bound names its method, whether it was cut short, and what is only assumed of the objective;
    the watch runs since the work began.
    """
    remarks = () if complete else ("cut short",)
    value = fsum(terms) if problem.compiled.aggregate == "sum" else float(terms.max())
    named = under_assumptions(problem, method, *remarks)
    return Bound(value, named, "argument", watch.seconds, _as_duals(problem, terms))


def _as_duals(problem: Problem, terms: Floats) -> DualProof | None:
    """Return the terms as duals for certificates; None where these have no such proof."""
    recoding, k = problem.recoding, problem.k
    classes = isinstance(recoding, EquivalenceClasses) and not recoding.suppression
    # Under a diversity sets of more than k records are admissible, which would be charged too much.
    covers = recoding == Freeform() and problem.diversity is None
    if problem.compiled.aggregate != "sum" or not (classes or covers):
        return None
    largest = recoding.max_size(problem).size or problem.n
    if classes:
        return DualProof(terms, k, min(largest, problem.n), "size", 1)
    # Each record lies in k sets, each of which may charge it a k-th.
    return DualProof(terms / k, k, largest, "one", k)


def nearest_neighbour_terms(problem: Problem, budget: Budget | None = None) -> Floats:
    """Return (n,) what each record pays at least, each lowered by its rounding error.

    The terms of the members of a class of k or more add up to no more than the class's loss, so
    they are feasible duals of the covering of records by classes.

    `problem`: with a monotone objective. `budget`: when it ends, records not looked at count with
    the loss of being published exactly. Raises UnsupportedObjective if the objective is neither
    proven nor declared monotone.
    """
    if not problem.compiled.monotone:
        raise UnsupportedObjective(
            f"the nearest-neighbour terms need a monotone objective; {problem.compiled.name!r}: "
            f"{problem.compiled.obstacle}",
            remedy="Use an objective that never falls when a cell covers more",
        )
    return lowered_terms(problem, budget or Budget())[0]


def lowered_terms(
    problem: Problem, budget: Budget, effort: str = "thorough"
) -> tuple[Floats, bool]:
    """Return (n,) terms, lowered by their rounding errors, and whether all were computed."""
    cells = _CELLS[effort]
    own = problem.compiled.losses_of_sets(np.arange(problem.n)[:, None])
    if problem.compiled.has_tables:
        terms, complete = _terms(problem, budget, cells)
        # What exact cells cost may be large and cancel in the increase; the own loss stays.
        rounding = problem.rounding / (problem.n if problem.compiled.aggregate == "sum" else 1)
        terms = np.maximum(terms - rounding, np.minimum(own, terms))
    else:
        terms, complete = pairwise_terms(problem, budget)
    return _lowered(problem, terms, own), complete


def _lowered(problem: Problem, terms: Floats, own: Floats) -> Floats:
    """Return (n,) terms, at most what a suppressed record costs, without their rounding errors.

    `own`: (n,) what the records lose when published exactly.
    """
    # Own loss and increase may cancel: their rounding does not.
    size = np.abs(own) + np.abs(terms - own)
    if suppresses(problem):
        terms = np.minimum(terms, problem.compiled.suppression_price)
    # Each term is a short sum of rounded products; their errors must not lift the bound.
    lowered: Floats = terms - LOSS_RELATIVE * np.maximum(size, np.abs(terms))
    return lowered


def suppresses(problem: Problem) -> bool:
    """Return whether records may be suppressed; a recoding from outside may not say so."""
    return bool(getattr(problem.recoding, "suppression", True))


def _terms(problem: Problem, budget: Budget, cells: float) -> tuple[Floats, bool]:
    """Return (n,) terms of an objective with tables, and whether all were computed."""
    search, types = new_near_search(problem, problem.compiled.tables)
    terms, own = np.zeros(len(types.first)), np.zeros(len(types.first))
    cursor, most = np.zeros(1, np.int64), cells / max(1, len(search.rows.tables.columns))

    def step(amount: int) -> int:
        done = int(_bound_step(search, terms, own, cursor, amount, most))
        return done if search.work[0] < most else len(terms)

    run_in_steps(step, len(terms), budget, "nearest-neighbour bound", first=100)
    # The kernels add up terms that may cancel but for rounding. Of them only the increase over the
    # record's own loss is taken, which is exactly 0 for identical rows.
    increase = np.where(np.arange(len(terms)) < cursor[0], terms - own, 0.0)
    return (problem.compiled.losses_of_sets(types.first[:, None]) + increase)[types.inverse], bool(
        cursor[0] == len(terms)
    )


@kernel
def _bound_step(
    search: NearSearch, terms: Floats, own: Floats, cursor: Ints, amount: int, most: float
) -> int:
    """Compute the terms of up to `amount` further types, until as much as `most` is looked at."""
    for row in range(cursor[0], min(cursor[0] + amount, len(terms))):
        if search.work[0] >= most:
            break
        held = find_nearest(search, row)
        own[row], terms[row] = search.near_losses[0], search.near_losses[held - 1]
        cursor[0] = row + 1
    return cursor[0]


def pairwise_terms(problem: Problem, budget: Budget) -> tuple[Floats, bool]:
    """Return (n,) least losses of a record beside its (k-1)-th neighbour, and whether all are.

    For losses without tables. When the budget ends, records not looked at count with the loss of
    being published exactly. Complexity: O(t^2 m) time for t distinct rows.
    """
    types = problem.microdata.row_types()
    rows, t = types.first, len(types.counts)
    terms = problem.compiled.losses_of_sets(rows[:, None])
    affordable = min(t, _LARGEST_PAIRS // t)
    at_once = max(1, _BATCH // t)
    done = 0
    while done < affordable and budget.stop_reason() is None:
        some = rows[done : min(done + at_once, affordable)]
        pairs = np.stack(np.broadcast_arrays(some[:, None], rows[None, :]), axis=2)
        losses = problem.compiled.losses_of_sets(pairs.reshape(-1, 2)).reshape(len(some), t)
        terms[done : done + len(some)] = _kth_least(losses, types.counts, problem.k)
        done += len(some)
        budget.report("nearest-neighbour bound", done=done, total=affordable)
    return terms[types.inverse], done == t


def k_set_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return the nearest-neighbour bound, raised to the least loss of k records around each.

    For losses without tables, which kernels of :mod:`anonymip.bounds.ladder` cannot read; None for
    others, and where nearest neighbours bound nothing. Parameters as of
    :func:`nearest_neighbour_bound`.
    """
    if problem.compiled.has_tables or not hides_each(problem):
        return None
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    terms, complete = lowered_terms(problem, budget, effort)
    found = bound_of_terms(problem, terms, "nearest-neighbour", complete, watch)
    if problem.k == 2 or budget.stop_reason() is not None:
        return found
    of_sets, complete = k_set_terms(problem, budget, _SETS[effort])
    own = problem.compiled.losses_of_sets(np.arange(problem.n)[:, None])
    # A search that ended early says less of its record than the nearest neighbours do.
    terms = np.maximum(terms, _lowered(problem, of_sets, own))
    raised = bound_of_terms(problem, terms, "k-sets", complete, watch)
    return raised if raised.value > found.value else found


def k_set_terms(problem: Problem, budget: Budget, most: float) -> tuple[Floats, bool]:
    """Return (n,) least losses of k records that hold a record, and whether all were looked at.

    `most`: sets looked at, shared among the distinct rows. Where they or the budget do not reach,
    a term is what the sets that were not completed lose already.

    Sets of rows grow by the order of their loss beside the record, all of one size at a time; one
    that loses as much as a known set of k is dropped, since a monotone loss only grows.
    """
    types = problem.microdata.row_types()
    rows, t = types.first, len(types.counts)
    terms = problem.compiled.losses_of_sets(rows[:, None])
    each = int(most / t)
    if each < 4 * t:
        return terms[types.inverse], False
    for at in np.flatnonzero(types.counts < problem.k):
        if budget.stop_reason() is not None:
            return terms[types.inverse], False
        terms[at] = _least_around(problem, rows, types.counts, int(at), each)
        budget.report("k-set bound", done=int(at) + 1, total=t)
    return terms[types.inverse], True


def _least_around(problem: Problem, rows: Ints, counts: Ints, at: int, most: int) -> float:
    """Return the least loss of sets with k records around a row, or less if `most` end it."""
    k, t = problem.k, len(rows)
    beside = problem.compiled.losses_of_sets(np.stack(np.broadcast_arrays(rows[at], rows), axis=1))
    beside[at] = -np.inf
    # The row itself comes first, then its neighbours.
    order = np.argsort(beside, kind="stable")
    rows, counts, beside = rows[order], counts[order], beside[order]
    # One set that takes in the cheapest row each time says what is too much.
    chosen = [0]
    while int(counts[chosen].sum()) < k:
        grown = np.concatenate([np.tile(rows[chosen], (t, 1)), rows[:, None]], axis=1)
        losses = problem.compiled.losses_of_sets(grown)
        losses[chosen] = np.inf
        chosen.append(int(losses.argmin()))
        least = float(losses.min())
    sets, held = np.zeros((1, 1), np.int64), counts[:1]
    reached = problem.compiled.losses_of_sets(rows[:1, None])
    while len(sets):
        # Sets of one more row: beyond the last of the set, in the order of the rows.
        ends = np.searchsorted(beside, least)
        steps = np.maximum(ends - 1 - sets[:, -1], 0)
        most -= int(steps.sum())
        if most < 0:
            return min(least, float(reached.min()))
        owner = np.repeat(np.arange(len(sets)), steps)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(steps) - steps, steps)
        added = sets[owner, -1] + 1 + place
        sets = np.concatenate([sets[owner], added[:, None]], axis=1)
        held = held[owner] + counts[added]
        reached = problem.compiled.losses_of_sets(rows[sets])
        full = held >= k
        least = min(least, float(reached[full].min(initial=np.inf)))
        kept = ~full & (reached < least)
        sets, held, reached = sets[kept], held[kept], reached[kept]
    return least


def _kth_least(losses: Floats, counts: Ints, k: int) -> Floats:
    """Return the k-th least loss of each line, counting types as often as they have rows.

    The record itself is the first: its line holds its own loss, which no other is below.
    """
    if (counts == 1).all():
        least: Floats = np.partition(losses, k - 1, axis=1)[:, k - 1]
        return least
    order = np.argsort(losses, axis=1)
    enough = np.cumsum(counts[order], axis=1) >= k
    place = np.take_along_axis(order, enough.argmax(axis=1)[:, None], axis=1)
    return np.take_along_axis(losses, place, axis=1)[:, 0]
