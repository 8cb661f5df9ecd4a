"""Classes that grow by the record that costs least, evaluated in batches: for every problem.

The engine of greedy-search and k-member where rules or losses without tables keep the kernels of
growth from it; under a diversity alone each class is compiled.
"""

from __future__ import annotations

import numpy as np

from anonymip.errors import InputError
from anonymip.heuristics.growing.groups import (
    SensitiveMix,
    cut_in_order,
    labels_of,
    pick_companion,
    place_leftovers,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    joined_loss,
    kernel_rows,
    new_state,
    open_class,
)
from anonymip.orders.arrangement import in_type_order
from anonymip.problem import Problem, is_plain
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    count_out,
    forget_row,
    new_counts,
    rows_lacking,
    start_counts,
    stays_diverse,
)
from anonymip.runtime.arrays import Flags, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.status import Stopped

#: So many candidates are looked at for each record placed: those nearest to the seed in the order.
CANDIDATES = 2_000
#: Of large tables fewer, so that no more cells of candidates are looked at: about 40 million a
#: second. But a class always has so many to choose from.
_CELLS = {"quick": 2e8, "normal": 1e9, "thorough": np.inf}
_LEAST_CANDIDATES = 50
#: Problems with tables and more records than this are left to the kernels and the repair, which for
#: a diversity that is hard to keep loses nearly twice as much: one of limits, and one of a
#: diversity alone, whose classes are compiled.
LARGEST_BATCH, LARGEST_COMPILED = 20_000, 100_000


def batch_engine(problem: Problem, effort: str) -> tuple[int, tuple[str, ...]]:
    """Return how many candidates are looked at for each record placed, and what is to be told.

    0 where the kernels of :mod:`~anonymip.heuristics.classes.greedy_search` take the problem.
    """
    if is_plain(problem):
        return 0, ()
    largest = LARGEST_BATCH if problem.limits else LARGEST_COMPILED
    if problem.compiled.has_tables and problem.n > largest:
        remark = f"more than {largest} records: classes were grown without the rules, "
        return 0, (remark + "and those that broke one were repaired",)
    affordable = _CELLS[effort] / (problem.n * problem.k * problem.m)
    candidates = int(max(_LEAST_CANDIDATES, min(CANDIDATES, affordable)))
    if problem.n <= candidates:
        return candidates, ()
    remark = f"more than {candidates} records: each class took its members from the "
    return candidates, (remark + f"{candidates} that were nearest to its first one in the order",)


def grow_classes_in_batches(
    problem: Problem,
    order: Ints,
    budget: Budget,
    *,
    search: str,
    drawn: np.random.Generator | None,
    candidates: int = CANDIDATES,
) -> tuple[Ints, Stopped | None]:
    """Return (n,) labels and why it stopped early, if it did; -1 where no class was found.

    Seeds are taken, and ties broken, in the order; when the budget ends, the records left are cut
    in it. `drawn`: None: the next seed is the first record left, and leftovers join the class whose
    new loss is least. Otherwise the record farthest from the last one placed, at first from a type
    of records drawn with this generator, and they join the one whose loss rises least.
    `candidates`: so many records are looked at for each one placed, those nearest to the seed.

    Complexity: O(n min(n, candidates) k m) time.
    """
    if search not in ("auto", "scan"):
        raise InputError(
            f"search {search!r} cannot be used with this problem",
            remedy="Use auto or scan: the tree needs tables, and knows no limits and no diversity",
        )
    records, types = in_type_order(problem, order)
    first = None
    if drawn is not None:
        starts = np.flatnonzero(np.diff(types, prepend=-1))
        first = int(starts[drawn.integers(len(starts))])
    growth = _BatchGrowth(problem, records, types, candidates)
    stopped = growth.run(budget, farthest_from=first)
    if stopped is None:
        left = growth.leftovers()
        place_leftovers(problem, growth.groups, left, by_increase=drawn is not None)
    labels = labels_of(growth.groups, problem.n)
    if stopped is not None:
        cut_in_order(labels, records, problem.k, len(growth.groups))
    return labels, stopped


def group_records(
    problem: Problem, records: Ints, budget: Budget
) -> tuple[list[list[int]], list[int]]:
    """Return classes of some of the records, and the records left; seeds are taken in order."""
    growth = _BatchGrowth(problem, records, np.arange(len(records)), CANDIDATES)
    growth.run(budget, farthest_from=None)
    return growth.groups, growth.leftovers()


class _BatchGrowth:
    """Where the growing stands: places in the order that are without a class."""

    def __init__(self, problem: Problem, records: Ints, types: Ints, candidates: int) -> None:
        self._problem = problem
        self._most = candidates
        self._records = records
        self._types = types
        self._alive = np.ones(len(records), np.bool_)
        self._set_aside: list[int] = []
        self._rest = SensitiveMix(problem, records)
        self.groups: list[list[int]] = []
        self._grown = self._grown_in_batches
        if problem.compiled.has_tables and not problem.limits:
            tables = problem.compiled.tables
            self._grown = self._grown_compiled
            self._rows = kernel_rows(problem.microdata, tables, records)
            self._state = new_state(tables, problem.k)
            self._mix, self._rule = new_counts(self._rest.rule), self._rest.rule.of_rows(records)
            self._work = np.empty((2, len(records)), np.int64)

    def leftovers(self) -> list[int]:
        """Return the records without a class, in order."""
        places = np.concatenate([np.flatnonzero(self._alive), self._set_aside])
        return self._records[np.sort(places.astype(np.int64))].tolist()

    def run(self, budget: Budget, *, farthest_from: int | None) -> Stopped | None:
        """Make classes until fewer than k records are left."""
        k = self._problem.k
        last = farthest_from
        total = len(self._records) // k
        while np.count_nonzero(self._alive) >= k:
            reason = budget.stop_reason()
            if reason is not None:
                return reason
            seed = int(self._alive.argmax()) if last is None else self._farthest(last)
            grown = self._grown(seed)
            if grown:
                self.groups.append(self._records[grown].tolist())
                last = None if farthest_from is None else grown[-1]
            else:
                self._alive[seed] = False
                self._set_aside.append(seed)
            budget.report("growing classes", done=len(self.groups), total=total)
        return None

    def _candidates(self, seed: int) -> Ints:
        """Return places that may join: one of each type, those nearest to the seed."""
        alive = np.flatnonzero(self._alive)
        types = self._types[alive]
        alive = alive[np.diff(types, prepend=-1) != 0]
        if len(alive) > self._most:
            middle = int(np.searchsorted(alive, seed))
            begin = min(max(0, middle - self._most // 2), len(alive) - self._most)
            alive = alive[begin : begin + self._most]
        return alive

    def _farthest(self, last: int) -> int:
        alive = np.flatnonzero(self._alive)
        if len(alive) > self._most:
            alive = alive[np.linspace(0, len(alive) - 1, self._most).astype(np.int64)]
        pairs = np.stack([np.full(len(alive), self._records[last]), self._records[alive]], axis=1)
        return int(alive[self._problem.compiled.class_losses(pairs).argmax()])

    def _take(self, place: int) -> None:
        self._alive[place] = False
        self._rest.remove(int(self._records[place]))

    def _grown_compiled(self, seed: int) -> list[int]:
        """Return the same as :meth:`_grown_in_batches`."""
        rest = self._rest
        found = _grow_class(
            *(self._rows, self._state, self._types, self._alive),
            *(self._rule, rest.counts, rest.size, self._mix),
            *(self._work, seed, self._problem.k, self._most),
        )
        rest.size -= found
        return self._work[0, :found].tolist()

    def _grown_in_batches(self, seed: int) -> list[int]:
        """Return the places of a class around a seed; none if it cannot be completed."""
        places = [seed]
        self._take(seed)
        mix = SensitiveMix(self._problem, self._records[places])
        while mix.needed() > 0:
            candidates = self._candidates(seed)
            picked = -1
            if len(candidates):
                members = self._records[places].tolist()
                picked = pick_companion(
                    self._problem, members, mix, self._records[candidates], self._rest
                )
            if picked < 0:
                self._alive[places] = True
                for record in self._records[places].tolist():
                    self._rest.add(record)
                return []
            place = int(candidates[picked])
            places.append(place)
            self._take(place)
            mix.add(int(self._records[place]))
        return places


@kernel
def _grow_class(
    rows: KernelRows,
    state: ClassState,
    types: Ints,
    alive: Flags,
    rule: DiversityRule,
    rest: ValueCounts,
    left: int,
    mix: ValueCounts,
    work: Ints,
    seed: int,
    k: int,
    most: int,
) -> int:
    """Fill in the places of a class around a seed; return how many, 0 if it cannot be completed.

    `rows, types, alive, rule`: of each place in the order. `rest, left`: sensitive values of all
    rows without a class, and their number. `mix`: workspace, empty. `work`: (2, n), the places are
    written to the first row. Complexity: O(s (n + candidates m)) for s records.
    """
    places, heads = work[0], work[1]
    size, picked = 0, seed
    start_counts(mix)
    open_class(rows, state, seed)
    while True:
        if size > 0:
            join_class(rows, state, picked)
        places[size] = picked
        alive[picked] = False
        count_in(rule, mix, picked, 1, 0, 0)
        count_out(rule, rest, picked)
        size += 1
        needed = max(k - size, rows_lacking(rule, mix, size, -1))
        if needed <= 0:
            break
        # One row of each type, those nearest to the seed.
        count, middle, last = 0, 0, -1
        for place in range(len(alive)):
            if alive[place] and types[place] != last:
                last = types[place]
                middle += place < seed
                heads[count] = place
                count += 1
        begin = min(max(0, middle - most // 2), max(0, count - most))
        picked, best, keeps = -1, np.inf, False
        for at in range(begin, min(count, begin + most)):
            place = heads[at]
            if max(k - size - 1, rows_lacking(rule, mix, size, place)) >= needed:
                continue
            loss = joined_loss(rows, state, place)
            # Whoever leaves the others diverse comes first: they can then still be a class.
            if loss < best or not keeps:
                diverse = left - size == 1 or stays_diverse(rule, rest, left - size, place, -1)
                if (loss < best and diverse >= keeps) or (diverse and not keeps):
                    picked, best, keeps = place, loss, diverse
        if picked < 0:
            break
    for at in range(size):
        forget_row(rule, mix, places[at])
        if needed > 0:
            alive[places[at]] = True
            count_in(rule, rest, places[at], 1, 0, 0)
    return size if needed <= 0 else 0
