"""The sets of all published records while they grow: what it costs each to take in one more.

The shared ground of the freeform heuristics: the terms of a loss and of limits as kernels read
them, and the state of every set. A weight is the increase of the loss of a published record when
its set takes in one more original. A limit of generalization is a term whose loss is infinite where
the limit is broken, so an infinite weight says that a set may not take in a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.enumeration.merging import limited_tables
from anonymip.objectives.kernels.class_loss import ends_loss, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.problem import Problem, losses_within_limits
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


@dataclass(frozen=True)
class FreeformNumbers:
    """Sizes and shares that steer the freeform heuristics."""

    #: Records of a part of the cheap start of methods in rounds; its work grows with the part, not
    #: with the table.
    start_part: int = 1_000
    #: Share of the time that such a method works before it finds that start.
    start_moment: float = 1 / 3
    start_share: float = 0.8  # share of the time left that the start may take
    #: Seconds a record that must be left for it: setting up many parts takes time, however little
    #: is left.
    start_seconds: float = 5e-5
    improved_share: float = 0.5  # share of the time of what is to be improved by reassignment
    #: Records up to which a loss without tables is computed for all pairs; of more records GCP
    #: takes its place in rounds, and reassignment refuses.
    untabled: int = 1_000
    double: int = 2_000  # records up to which the weights of all pairs are kept in double precision
    #: Records up to which they are kept at all: more would not fit the memory of an ordinary
    #: machine.
    all_pairs: int = 20_000
    least_single: float = 1e-4  # gain that in single precision is more than rounding


NUMBERS = FreeformNumbers()


class SetTerms(Packed, read_only=True):
    """The n records as the kernels read them, term by term, and what each term costs."""

    tables: LossTables  # the loss and the limits
    range_values: Floats  # (r, n) float64, values from the domain's lower end
    #: (s, n), (p, n) int32, ranks in the levels.
    set_codes: Codes
    pair_codes: Codes
    #: (s + p + 1,) where the penalties of each set and pair term begin in a table of one record.
    table_start: Ints


def set_terms(problem: Problem, order: Ints | None = None) -> SetTerms:
    """Return the terms of a problem's loss and limits.

    `order`: (n,) records in the order in which the kernels number them; None keeps that of the
    table. Raises UnsupportedObjective if the objective has no tables.
    """
    rows = limited_tables(problem, np.arange(problem.n) if order is None else order)
    tables = rows.tables
    sizes = np.concatenate([[0], tables.set_sizes, tables.pair_sizes])
    terms = SetTerms(
        tables,
        np.ascontiguousarray(rows.range_values.T),
        np.ascontiguousarray(rows.set_codes.T),
        np.ascontiguousarray(rows.pair_codes.T),
        np.cumsum(sizes).astype(np.int64),
    )
    for array in list(terms)[1:]:
        array.setflags(write=False)
    return terms


def record_losses(problem: Problem, rows: Ints) -> Floats:
    """Return (B,) losses of a record published with each set (B, s), infinite where forbidden."""
    losses = losses_within_limits(problem, rows)
    return losses / rows.shape[1] if problem.compiled.aggregate == "sum" else losses


def losses_with_each(problem: Problem, held: NDArray[np.integer]) -> Floats:
    """Return (n,) losses of a set with each record in addition, infinite for those that it has."""
    others = np.ones(problem.n, np.bool_)
    others[held] = False
    rows = np.empty((int(others.sum()), len(held) + 1), np.int64)
    rows[:, :-1], rows[:, -1] = held, np.flatnonzero(others)
    losses = np.full(problem.n, np.inf)
    losses[others] = record_losses(problem, rows)
    return losses


class SetStates(Packed):
    """What the sets of the n published records cover so far."""

    terms: SetTerms  # of the loss, with the records
    #: Ends of the ranges.
    low: Annotated[Floats, "n, r"]
    high: Annotated[Floats, "n, r"]
    counts: Annotated[Codes, "n, s"]  # number of different values
    #: (n, capacity) the values themselves, those of the set term t from `list_start[t]` on.
    listed: Codes
    list_start: Ints  # (s,) offsets
    #: Lowest and highest rank.
    pair_low: Annotated[Codes, "n, p"]
    pair_high: Annotated[Codes, "n, p"]


def new_states(terms: SetTerms, largest: int) -> SetStates:
    """Return the states of n sets of up to `largest` records, each holding its own record."""
    r, n = terms.range_values.shape
    capacity = np.minimum(terms.tables.set_sizes, largest)
    starts = np.cumsum(np.concatenate([[0], capacity])).astype(np.int64)
    p = len(terms.tables.pair_sizes)
    states = SetStates.of_sizes(
        n=n,
        r=r,
        s=len(capacity),
        p=p,
        terms=terms,
        listed=np.empty((n, int(starts[-1])), np.int32),
        list_start=starts[:-1].copy(),
    )
    states.low[:] = states.high[:] = terms.range_values.T
    states.counts[:] = 1
    states.listed[:, states.list_start] = terms.set_codes.T
    states.pair_low[:] = states.pair_high[:] = terms.pair_codes.T
    return states


def new_table(terms: SetTerms) -> Floats:
    """Return the memory of a table of penalties; :func:`fill_table` fills it."""
    return np.empty(int(terms.table_start[-1]))


@kernel
def holds(states: SetStates, i: int, s: int, code: int) -> bool:
    """Return whether the set of published record i has a value of set term s."""
    begin = states.list_start[s]
    for at in range(begin, begin + states.counts[i, s]):  # noqa: SIM110 (numba is slower with any)
        if states.listed[i, at] == code:
            return True
    return False


@kernel
def take(states: SetStates, i: int, record: int) -> None:
    """Let the set of published record i take in a record.

    Complexity: O(m + k s) time for s set terms.
    """
    for r in range(len(states.terms.range_values)):
        value = states.terms.range_values[r, record]
        states.low[i, r] = min(states.low[i, r], value)
        states.high[i, r] = max(states.high[i, r], value)
    for s in range(len(states.terms.set_codes)):
        code = states.terms.set_codes[s, record]
        if not holds(states, i, s, code):
            states.listed[i, states.list_start[s] + states.counts[i, s]] = code
            states.counts[i, s] += 1
    for p in range(len(states.terms.pair_codes)):
        code = states.terms.pair_codes[p, record]
        states.pair_low[i, p] = min(states.pair_low[i, p], code)
        states.pair_high[i, p] = max(states.pair_high[i, p], code)


@kernel
def rebuild(states: SetStates, i: int, members: Codes) -> None:
    """Let the set of published record i hold the given records (one or more) and no other."""
    terms, first = states.terms, members[0]
    for r in range(len(terms.range_values)):
        states.low[i, r] = states.high[i, r] = terms.range_values[r, first]
    for s in range(len(terms.set_codes)):
        states.counts[i, s] = 1
        states.listed[i, states.list_start[s]] = terms.set_codes[s, first]
    for p in range(len(terms.pair_codes)):
        states.pair_low[i, p] = states.pair_high[i, p] = terms.pair_codes[p, first]
    for at in range(1, len(members)):
        take(states, i, members[at])


@kernel
def _rise(before: float, after: float) -> float:
    """Return by how much a loss rises; infinite beyond a limit, also from there on."""
    return after - before if after < np.inf else np.inf


@kernel
def value_rise(states: SetStates, i: int, s: int) -> float:
    """Return what a further value of a set term, whichever it is, costs published record i."""
    tables, count = states.terms.tables, states.counts[i, s]
    if count == tables.set_sizes[s]:
        return 0.0
    at = tables.set_start[s] + count
    return _rise(tables.set_losses[at], tables.set_losses[at + 1])


@kernel
def _with_codes(states: SetStates, i: int, loss: float) -> float:
    """Return a loss with that of the set and pair terms of published record i in addition."""
    tables = states.terms.tables
    for s in range(len(tables.set_sizes)):
        loss += tables.set_losses[tables.set_start[s] + states.counts[i, s]]
    for p in range(len(tables.pair_sizes)):
        loss += ends_loss(tables, p, states.pair_low[i, p], states.pair_high[i, p])
    return loss


@kernel
def set_loss(states: SetStates, i: int) -> float:
    """Return the loss of published record i, ranges counted from its own value.

    Ends of ranges enter as distances from the record itself, so the loss lacks what publishing
    the record as it is costs; it serves to compare sets of one record.
    """
    tables, loss = states.terms.tables, 0.0
    for r in range(len(tables.range_low)):
        own = states.terms.range_values[r, i]
        loss += -tables.range_low[r] * (own - states.low[i, r])
        loss += tables.range_high[r] * (states.high[i, r] - own)
    return _with_codes(states, i, loss)


@kernel
def fill_losses(states: SetStates, losses: Floats) -> None:
    """Write the (n,) losses of the published records, what publishing them exactly costs included.

    Records with equal sets have the same bits. Complexity: O(n m) time.
    """
    tables = states.terms.tables
    for i in range(len(losses)):
        loss = tables.constant
        for r in range(len(tables.range_low)):
            loss += range_loss(tables, r, states.low[i, r], states.high[i, r])
        losses[i] = _with_codes(states, i, loss)


@kernel
def increase(states: SetStates, i: int, record: int) -> float:
    """Return by how much the loss of published record i rises if it takes in a record.

    The same bits as :func:`fill_weights` gives; infinite if a limit forbids it.
    """
    terms, tables, weight = states.terms, states.terms.tables, 0.0
    for r in range(len(tables.range_low)):
        value = terms.range_values[r, record]
        below, above = states.low[i, r] - value, value - states.high[i, r]
        weight += -tables.range_low[r] * max(below, 0.0) + tables.range_high[r] * max(above, 0.0)
    for s in range(len(tables.set_sizes)):
        if not holds(states, i, s, terms.set_codes[s, record]):
            weight += value_rise(states, i, s)
    for p in range(len(tables.pair_sizes)):
        code, low, high = terms.pair_codes[p, record], states.pair_low[i, p], states.pair_high[i, p]
        now = ends_loss(tables, p, low, high)
        weight += _rise(now, ends_loss(tables, p, min(low, code), max(high, code)))
    return weight


@kernel
def fill_table(states: SetStates, i: int, table: Floats) -> None:
    """Write what each value of each set and pair term would add to the loss of published record i.

    Complexity: O(number of values) time.
    """
    tables, start = states.terms.tables, states.terms.table_start
    sets = len(tables.set_sizes)
    for s in range(sets):
        table[start[s] : start[s + 1]] = value_rise(states, i, s)
        for place in range(states.list_start[s], states.list_start[s] + states.counts[i, s]):
            table[start[s] + states.listed[i, place]] = 0.0
    for p in range(len(tables.pair_sizes)):
        low, high = states.pair_low[i, p], states.pair_high[i, p]
        now = ends_loss(tables, p, low, high)
        for code in range(tables.pair_sizes[p]):
            after = ends_loss(tables, p, min(low, code), max(high, code))
            table[start[sets + p] + code] = _rise(now, after)


@kernel
def weigh(
    states: SetStates,
    i: int,
    values: Floats,
    set_codes: Codes,
    pair_codes: Codes,
    begin: int,
    table: Floats,
    weights: NDArray[np.floating],
) -> None:
    """Write the weights of published record i with consecutive originals, infinite where forbidden.

    `values, set_codes, pair_codes`: of originals, a line a term as in :class:`SetTerms`; `begin` is
    the first of them. `table`: as :func:`fill_table` leaves it. `weights`: one an original.
    Complexity: O(m times the originals) time; each term is one pass.
    """
    terms, end = states.terms, begin + len(weights)
    weights[:] = 0.0
    # What it costs to widen the range downwards and upwards.
    tables = terms.tables
    for r in range(len(tables.range_low)):
        low, high = states.low[i, r], states.high[i, r]
        down, up = -tables.range_low[r], tables.range_high[r]
        column = values[r, begin:end]
        for at in range(len(weights)):
            below, above = low - column[at], column[at] - high
            weights[at] += down * (below if below > 0.0 else 0.0) + up * (
                above if above > 0.0 else 0.0
            )
    # Penalties of set and pair terms are in the table, by value.
    sets = len(tables.set_sizes)
    for term in range(sets + len(tables.pair_sizes)):
        codes = set_codes[term, begin:end] if term < sets else pair_codes[term - sets, begin:end]
        entries = table[terms.table_start[term] : terms.table_start[term + 1]]
        for at in range(len(weights)):
            weights[at] += entries[codes[at]]


@kernel
def fill_weights(states: SetStates, i: int, table: Floats, weights: NDArray[np.floating]) -> None:
    """Write the (n,) weights of published record i with all originals, infinite where forbidden.

    `table`: workspace of :func:`new_table`, filled here.
    """
    terms = states.terms
    fill_table(states, i, table)
    weigh(states, i, terms.range_values, terms.set_codes, terms.pair_codes, 0, table, weights)


@kernel
def fill_costs(
    states: SetStates, sets: Codes, table: Floats, costs: NDArray[np.floating], begin: int, end: int
) -> None:
    """Write the weights of some published records, as :func:`fill_weights`, each a row of `costs`.

    Each holds its line of `sets` then; what it does already, where these are empty.
    """
    for i in range(begin, end):
        if len(sets) > 0:
            rebuild(states, i, sets[i])
        fill_weights(states, i, table, costs[i])
