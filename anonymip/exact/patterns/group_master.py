"""Set partitioning by groups of few records: duals with triples, and the MIP of some groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array, hstack, vstack

from anonymip.bounds.patterns.pattern_duals import PatternDuals, PatternProgram, pattern_duals
from anonymip.errors import SolverError
from anonymip.exact.patterns.record_groups import (
    RecordGroups,
    TripleDuals,
    cheapest_of,
    no_triples,
    record_groups_within,
    value_of,
)
from anonymip.runtime.budget import Budget
from anonymip.solvers import Named, SolverOptions, SolverResult, StandardForm, solve_form
from anonymip.solvers.linear_programs import GrowingProgram
from anonymip.status import Stopped


class Relaxation:
    """Every record is in groups once in sum, or alone at the cost of that if it is allowed.

    Each solve goes on from the last basis.

    Parameters
    ----------
    program
        Of the problem.
    """

    def __init__(self, program: PatternProgram) -> None:
        self._program = program
        self._losses: dict[bytes, float] = {}
        self._groups: RecordGroups | None = None
        self._alone = program.type_count if np.isfinite(program.price) else 0
        records = program.counts.astype(np.float64)
        self._model = GrowingProgram(records, records)
        if self._alone:
            price = np.full(program.type_count, program.price)
            self._model.add_columns(price, csc_array(np.eye(program.type_count)))

    def add(self, groups: RecordGroups, triples: NDArray[np.int64]) -> RecordGroups:
        """Add what is new or cheaper than known, given all triples so far; return all groups."""
        cost = losses(self._program, groups)
        new = np.zeros(len(groups), np.bool_)
        for at, (members, loss) in enumerate(zip(groups.members, cost.tolist(), strict=True)):
            if loss < self._losses.get(key := members.tobytes(), np.inf):
                self._losses[key], new[at] = loss, True
        groups = groups.only(new)
        matrix = incidence(groups, self._program.type_count)
        if len(groups):
            held = held_by(matrix, triples)
            self._model.add_columns(cost[new], csc_array(vstack([matrix, held])))
        self._groups = groups if self._groups is None else self._groups.and_also(groups)
        return self._groups

    def forbid(self, groups: RecordGroups, triples: NDArray[np.int64]) -> None:
        """Let all groups, which are given, hold two or three of each new triple once in sum."""
        if not len(triples):
            return
        held = held_by(incidence(groups, self._program.type_count), triples)
        count = len(triples)
        alone = csc_array((count, self._alone))
        self._model.add_rows(
            csr_array(hstack([alone, held])), np.full(count, -np.inf), np.ones(count)
        )

    def solve(
        self, budget: Budget
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """Return value, shares of groups, duals of row types and of triples; None without time."""
        found = self._model.solve(budget)
        if found is None:
            return None
        t = self._program.type_count
        triples = np.maximum(0.0, -found.duals[t:])
        return found.value, found.point[self._alone :], found.duals[:t], triples


def incidence(groups: RecordGroups, type_count: int) -> csc_array:
    """Return (t, g) the records of each row type in each group."""
    group, place = np.nonzero(groups.members >= 0)
    ones = np.ones(len(group))
    shape = (type_count, len(groups))
    return csc_array(coo_array((ones, (groups.members[group, place], group)), shape=shape))


def held_by(matrix: csc_array, triples: NDArray[np.int64]) -> csc_array:
    """Return (c, g) whether a group holds two or three of a triple, given its incidence."""
    count = len(triples)
    rows = np.repeat(np.arange(count), 3)
    chosen = coo_array(
        (np.ones(len(rows)), (rows, triples.ravel())), shape=(count, matrix.shape[0])
    )
    held = csc_array(chosen.tocsr() @ matrix)
    held.data = (held.data >= 2).astype(np.float64)
    held.eliminate_zeros()
    return held


def losses(program: PatternProgram, groups: RecordGroups) -> NDArray[np.float64]:
    """Return (g,) the loss of all records of each group."""
    return np.asarray(program.costs[groups.patterns] * groups.sizes, np.float64)


#: Violation, above 1, from which on a triple counts, and new triples that one record is in at most.
_VIOLATION, _SHARED = 0.02, 5
#: Groups that a linear program begins with, about, those that it has at most, and triples.
_FIRST, _MOST, _TRIPLES = 20_000, 60_000, 4_000
#: Groups of the first program have so many stars of reduced cost, as powers of 2, at most; the
#: search for a threshold begins at half the other power.
_COARSEST, _FINEST = 2, -12
#: New groups in a round at most, and how far to go from good duals to those of a linear program.
_NEW, _STEPS = 20_000, (1.0, 0.5, 0.25, 0.1)
#: Rounds in which the bound must rise by so many costs of a star.
_ROUNDS, _LEAST = 4, 0.25


def violated_triples(
    members: NDArray[np.int64], shares: NDArray[np.float64], single: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return (c, 3) triples of which groups hold two or three more than once in sum, worst first.

    Parameters
    ----------
    members
        (g, s) row types of the records of each group, -1 for none.
    shares
        (g,) how much of each group is used; each record is used once in sum.
    single
        (t,) whether a row type has one record. Triples are of such.

    Notes
    -----
    All three pairs of such a triple share a group: if two of them do not, the groups that hold the
    third record, whose shares sum to 1, hold all the pairs. These are the subset-row inequalities
    of set partitioning [1]_.

    References
    ----------
    .. [1] M. Jepsen, B. Petersen, S. Spoorendonk, D. Pisinger: Subset-Row Inequalities Applied to
       the Vehicle-Routing Problem with Time Windows, Operations Research 56(2), 2008.
    """
    of: dict[int, dict[int, float]] = defaultdict(dict)
    near: dict[int, set[int]] = defaultdict(set)
    together: dict[tuple[int, int], float] = defaultdict(float)
    for group in np.flatnonzero(shares > 0).tolist():
        own = [
            row_type for row_type in members[group].tolist() if row_type >= 0 and single[row_type]
        ]
        share = float(shares[group])
        for place, row_type in enumerate(own):
            of[row_type][group] = share
            # Row types of a group ascend.
            for other in own[place + 1 :]:
                near[row_type].add(other)
                together[row_type, other] += share
    found: list[tuple[float, int, int, int]] = []
    for (a, b), ab in together.items():
        for c in near[a] & near[b]:
            total = ab + together[a, c] + together[b, c]
            if total <= 1.0 + _VIOLATION:
                continue
            # A group of all three was counted three times.
            total -= 2.0 * sum(of[a][group] for group in of[a].keys() & of[b].keys() & of[c].keys())
            if total > 1.0 + _VIOLATION:
                found.append((1.0 - total, a, b, c))
    taken: dict[int, int] = defaultdict(int)
    chosen: list[tuple[int, int, int]] = []
    for _, a, b, c in sorted(found):
        if max(taken[a], taken[b], taken[c]) < _SHARED:
            chosen.append((a, b, c))
            for row_type in (a, b, c):
                taken[row_type] += 1
    return np.array(chosen, np.int64).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class TripleBound:
    """Duals of records and of triples, and the bound they give.

    Parameters
    ----------
    duals, triples
        In parts of a unit of the loss.
    value
        The bound in these.
    """

    duals: PatternDuals
    triples: TripleDuals
    value: int

    @property
    def bound(self) -> float:
        """The bound in units of the loss, raised to the next loss that is possible."""
        return self.duals.lifted(self.value)


def triple_bound(
    duals: PatternDuals, amounts: NDArray[np.int64], enough: float, budget: Budget
) -> TripleBound | None:
    """Return better duals with those of triples; None if there are too many groups or no time.

    A release is a set of groups of k to 2k - 1 records that holds every record once. In its linear
    relaxation, of a triple of records two may be in a group more than once in sum: as long as such
    triples are found, they are forbidden that, and the groups of negative reduced cost are
    added. The duals are then evaluated in whole numbers.

    Parameters
    ----------
    duals
        Good ones: of the Lagrangian bound.
    amounts
        (pairs,) a known release.
    enough
        Bound at which no better duals are needed.
    budget
        Ends the search.
    """
    program = duals.program
    groups = _first(duals, amounts, budget)
    if groups is None:
        return None
    single = program.counts == 1
    triples = np.empty((0, 3), np.int64)
    centre = duals.multipliers / duals.unit, np.empty(0)
    relaxation = Relaxation(program)
    groups = relaxation.add(groups, triples)
    best: TripleBound | None = None
    reached, idle = -np.inf, 0
    while budget.stop_reason() is None and len(groups) <= _MOST and idle < _ROUNDS:
        found = relaxation.solve(budget)
        if found is None:
            break
        loss, shares, *target = found
        for step in _STEPS:
            ahead = _between(centre, target, step)
            new = pattern_duals(program, ahead[0])
            own = TripleDuals(triples, np.rint(ahead[1] * new.unit).astype(np.int64))
            cheaper = record_groups_within(new, own, -1, _NEW)
            if cheaper is not None:
                break
        if cheaper is None:
            break
        centre = ahead
        new = repaired(new, cheaper)
        value = value_of(new, own)
        rises = loss >= reached + _LEAST * program.star_cost
        if best is None or new.lifted(value) > best.bound:
            best, rises = TripleBound(new, own, value), True
        budget.report("duals of triples", bound=best.bound)
        if best.bound >= enough:
            break
        idle = 0 if rises else idle + 1
        reached = max(reached, loss)
        more = violated_triples(groups.members, shares, single)[: _TRIPLES - len(triples)]
        # Nothing is left to gain where the relaxation with these groups is no better.
        if not len(more) and best.bound >= new.lifted(int(loss * new.unit) - (new.unit >> 20)):
            break
        relaxation.forbid(groups, more)
        triples = np.concatenate([triples, more])
        groups = relaxation.add(cheaper, triples)
    return best


def _between(
    centre: tuple[NDArray[np.float64], NDArray[np.float64]],
    target: list[NDArray[np.float64]],
    step: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return duals on the way from good ones to others; there may be new triples."""
    others = np.zeros(len(target[1]))
    others[: len(centre[1])] = centre[1]
    return centre[0] + step * (target[0] - centre[0]), others + step * (target[1] - others)


def repaired(duals: PatternDuals, cheaper: RecordGroups) -> PatternDuals:
    """Return duals of records that no group costs less than, given all that do.

    Notes
    -----
    One after the other, the dual of the member that most of these groups hold is lowered. Row
    losses and reduced costs stay those of the higher duals: only `multipliers` may be read. Where
    groups are listed, the row losses, now too low if anything, leave out no row that they should
    not.
    """
    repaired = duals.multipliers.copy()
    members = cheaper.members
    often = np.bincount(members[members >= 0], minlength=len(repaired))
    order = np.argsort(cheaper.reduced_costs, kind="stable")
    for own, reduced in zip(members[order], cheaper.reduced_costs[order].tolist(), strict=True):
        held = own[own >= 0]
        missing = -reduced - int((duals.multipliers[held] - repaired[held]).sum())
        if missing > 0:
            chosen = held[np.argmax(often[held])]
            repaired[chosen] -= -(-missing // int((held == chosen).sum()))
    return replace(duals, multipliers=repaired)


def cheapest_groups(
    duals: PatternDuals, triples: TripleDuals, most: int, size: int, budget: Budget
) -> tuple[RecordGroups | None, int]:
    """Return the groups of least reduced cost, and how much that is at most.

    Parameters
    ----------
    duals, triples
        In whole numbers.
    most
        Reduced cost that a group may have.
    size
        How many are returned at most.
    budget
        Ends the search.

    Returns
    -------
    groups
        None if the first step has more already, or without time.
    reached
        All groups of so much reduced cost at most are there; -1 without any.

    Notes
    -----
    The threshold grows by a factor of the square root of 2, until there are too many.
    """
    star = duals.program.star_cost * duals.unit
    found, reached = None, -1
    for power in range(_FINEST, 64):
        if budget.stop_reason() is not None:
            break
        step = min(most, int(star * 2.0 ** (power / 2)))
        more = record_groups_within(duals, triples, step, 4 * size)
        if more is None or len(more) > size:
            break
        found, reached = more, step
        if step == most:
            break
    return found, reached


def groups_of(duals: PatternDuals, amounts: NDArray[np.int64]) -> RecordGroups:
    """Return a release as groups: output rows of 2k and more records are cut."""
    k = duals.program.k
    used = np.flatnonzero(amounts)
    used = used[np.argsort(duals.pair_rows[used], kind="stable")]
    records = np.repeat(used, amounts[used])
    row = duals.pair_rows[records]
    begin = np.flatnonzero(np.diff(row, prepend=-1))
    sizes = np.diff(np.append(begin, len(row)))
    within = np.arange(len(row)) - np.repeat(begin, sizes)
    # The last group of a row takes what is left.
    group = np.minimum(within // k, np.repeat(sizes // k - 1, sizes))
    place = within - group * k
    opens = np.flatnonzero(place == 0)
    number = np.cumsum(place == 0) - 1
    members = np.full((len(opens), 2 * k - 1), -1, np.int64)
    members[number, place] = duals.pair_types[records]
    members.sort(axis=1)
    patterns = duals.pair_patterns[records[opens]]
    return RecordGroups(members, row[opens], patterns, np.zeros(len(opens), np.int64))


def amounts_of(
    duals: PatternDuals, groups: RecordGroups, times: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return (pairs,) the release of groups that are taken so many times."""
    t = duals.program.type_count
    keys = duals.pair_rows * t + duals.pair_types
    order = np.argsort(keys, kind="stable")
    group, place = np.nonzero((groups.members >= 0) & (times > 0)[:, None])
    wanted = groups.rows[group] * t + groups.members[group, place]
    amounts = np.zeros(len(keys), np.int64)
    np.add.at(amounts, order[np.searchsorted(keys[order], wanted)], times[group])
    return amounts


def _first(duals: PatternDuals, amounts: NDArray[np.int64], budget: Budget) -> RecordGroups | None:
    """Return the groups of least reduced cost, and those of a release."""
    most = int(duals.program.star_cost * duals.unit * 2**_COARSEST)
    found, _ = cheapest_groups(duals, no_triples(), most, _FIRST, budget)
    return None if found is None else joined(duals.program, found, groups_of(duals, amounts))


def joined(program: PatternProgram, one: RecordGroups, other: RecordGroups) -> RecordGroups:
    """Return the groups of both."""
    members = np.concatenate([one.members, other.members])
    rows = np.concatenate([one.rows, other.rows])
    patterns = np.concatenate([one.patterns, other.patterns])
    # Whatever the duals, of groups of the same records the one of least loss is that of least
    # reduced cost.
    rank = np.argsort(np.argsort(program.costs, kind="stable"))
    return cheapest_of(RecordGroups(members, rows, patterns, rank[patterns]))


@dataclass(frozen=True, eq=False)
class RestrictedAnswer:
    """What a solver found.

    Parameters
    ----------
    amounts
        (pairs,) int64 records of the row type of each pair that are published as its row; None if
        nothing was found.
    bound
        On the loss of whatever uses these pairs alone; None if unknown, infinite if there is none.
    solver
        Its name and version.
    """

    amounts: NDArray[np.int64] | None
    bound: float | None
    solver: str


def solve_groups(
    duals: PatternDuals,
    amounts: NDArray[np.int64],
    groups: RecordGroups,
    triples: NDArray[np.int64],
    solver: str,
    options: SolverOptions,
    budget: Budget,
    *,
    counts: NDArray[np.int64] | None = None,
) -> RestrictedAnswer:
    """Return the best release that consists of some groups, or of those of a known one.

    Parameters
    ----------
    duals
        Name the pairs of a row type and an output row.
    amounts
        (pairs,) the known release, to start from.
    groups
        That may be used.
    triples
        (c, 3) whose inequalities strengthen the relaxation.
    solver, options, budget
        Of the search.
    counts
        (t,) records of each row type; None for all of the program.

    Raises
    ------
    SolverError
        If the solver calls the model infeasible, which has the known release.
    """
    program = duals.program if counts is None else replace(duals.program, counts=counts)
    own = groups_of(duals, amounts)
    groups = joined(program, groups, own)
    form = _form(program, groups, triples)
    place = np.unique(np.concatenate([groups.members, own.members]), axis=0, return_inverse=True)[1]
    # The groups differ: those of the release come after them.
    first = np.argsort(place[: len(groups)])
    times = np.bincount(first[place[len(groups) :]], minlength=len(groups))
    for variable, value in zip(form.variables, times.tolist(), strict=True):
        variable.value = value
    result = solve_form(form, solver, options, start=True, budget=budget)
    if result.stopped is Stopped.INFEASIBLE:
        refuse_infeasible(result)
    if result.values is None:
        return RestrictedAnswer(None, result.bound, result.solver)
    times = np.rint(result.values).astype(np.int64)
    return RestrictedAnswer(amounts_of(duals, groups, times), result.bound, result.solver)


def _form(
    program: PatternProgram, groups: RecordGroups, triples: NDArray[np.int64]
) -> StandardForm:
    matrix = incidence(groups, program.type_count)
    held = held_by(matrix, triples)
    records = program.counts.astype(np.float64)
    free = bool(np.isfinite(program.price))
    saved = program.price if free else 0.0
    count = len(groups)
    names = [f"given_{i}" for i in range(program.type_count)]
    names += [f"triple_{i}" for i in range(len(triples))]
    return StandardForm(
        variables=tuple(Named(f"group_{i}") for i in range(count)),
        constraints=tuple(Named(name) for name in names),
        cost=losses(program, groups) - saved * groups.sizes,
        offset=saved * float(records.sum()),
        matrix=vstack([matrix, held]).tocsr(),
        row_lower=np.concatenate(
            [
                np.full(program.type_count, -np.inf) if free else records,
                np.full(len(triples), -np.inf),
            ]
        ),
        row_upper=np.concatenate([records, np.ones(len(triples))]),
        lower=np.zeros(count),
        upper=np.full(count, float(records.max(initial=1.0))),
        integer=np.ones(count, np.bool_),
        maximize=False,
    )


def refuse_infeasible(result: SolverResult) -> NoReturn:
    """Raise the error of a solver that finds no point where a release is known."""
    raise SolverError(
        f"{result.solver} calls a feasible model infeasible", remedy="Use another solver"
    )
