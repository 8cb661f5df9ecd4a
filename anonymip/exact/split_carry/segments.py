"""Chains over segments of an order: independent of each other, joined where they meet.

There the classes on both sides of a boundary are solved together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InputError, InvalidAssignment, NoSolution
from anonymip.exact.classes.best_classes import compiles
from anonymip.exact.classes.small import solve_small
from anonymip.exact.split_carry import state
from anonymip.exact.split_carry.checkpoint import (
    Checkpoint,
    Keeper,
    arrays_of,
    remove_parts,
    resumed,
)
from anonymip.exact.split_carry.links import ChainClock, ClassLinks, CompiledLinks, loss_of_labels
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.state import Chain, new_chain
from anonymip.heuristics.classes.ordered_cut import cut_rows
from anonymip.heuristics.growing.groups import cut_in_order
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.problem import Problem, is_plain
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget, MachineClock
from anonymip.runtime.compilation import CompilationStopped
from anonymip.runtime.side_by_side import run_side_by_side, workers_of
from anonymip.solution import Bound
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE

#: Rows around a boundary that the compiled search solves within milliseconds as a rule.
_COMPILED_ROWS = 24


def solve_boundaries(
    problem: Problem,
    records: Ints,
    labels: Ints,
    boundaries: Sequence[int],
    *,
    most: int,
    budget: Budget,
    seed: int = 0,
) -> tuple[Ints, int, int]:
    """Solve the classes around each boundary again, together, and take what loses less.

    `records`: (n,) the order. `labels`: (n,) class of the record at each place of the order; -1 for
    none. `boundaries`: places at which segments begin, without 0. `most`: most records of a
    sub-problem; the nearest class of either side belongs to it whatever its size. When the budget
    ends, the boundaries left stay as they are. Returns the labels, how many boundaries were looked
    at, and at how many the classes changed for the better.

    Classes join in the order of their record nearest to the boundary, as long as there is room. No
    loss rises. Complexity: O(n) for each of them, beside the sub-problems.
    """
    labels = labels.copy()
    gained = 0
    for solved, at in enumerate(boundaries):
        if budget.stop_reason() is not None:
            return labels, solved, gained
        budget.report("joining the chains", done=solved, total=len(boundaries))
        share = budget.share(1 / (len(boundaries) - solved))
        share.progress = None
        gained += _solved_again(problem, records, labels, _around(labels, at, most), share, seed)
    return labels, len(boundaries), gained


def _around(labels: Ints, at: int, most: int) -> Ints:
    """Return the places of the classes nearest to a boundary, ascending."""
    sides = labels[max(0, at - most) : at][::-1], labels[at : at + most]
    near = [int(side[rank]) for rank in range(most) for side in sides if rank < len(side)]
    taken: list[Ints] = []
    room = most
    for label in dict.fromkeys(near):
        if label == SUPPRESSED:
            continue
        places = np.flatnonzero(labels == label)
        if len(taken) >= len(sides) and len(places) > room:
            break
        taken.append(places)
        room -= len(places)
    return np.sort(np.concatenate(taken)) if taken else np.empty(0, np.int64)


def _solved_again(
    problem: Problem, records: Ints, labels: Ints, places: Ints, budget: Budget, seed: int
) -> bool:
    """Give the records at some places better classes if there are any; return whether there are."""
    before = labels[places]
    if len(np.unique(before)) < 2:
        return False
    part = problem.replace(microdata=problem.microdata.take(records[places], as_part=True))
    try:
        found = np.asarray(solve_small(part, budget=budget, seed=seed).labels, np.int64)
    except NoSolution:
        return False
    loss, new = (loss_of_labels(part, np.arange(part.n), own) for own in (before, found))
    if new >= loss - LOSS_RELATIVE * abs(loss):
        return False
    labels[places] = np.where(found == SUPPRESSED, SUPPRESSED, found + labels.max() + 1)
    return True


#: Seconds between two looks at the clock.
_SECONDS_A_STEP = 0.1
_FIRST = 10


def drive_chain(links: ClassLinks, budget: Budget, keeper: Keeper) -> Stopped | None:
    """Solve the links of a chain that has not ended, and return why it stopped early, if it did.

    The time of the budget is shared out among those that are expected. The keeper is called between
    links, every tenth of a second or after each longer one.
    """
    chain, options, expected = links.chain, links.options, links.expected
    clock = ChainClock(expected - chain.solved, budget, options.pass_time, options.link_time)
    amount, stopped = _FIRST, None
    while not chain.done:
        stopped = budget.stop_reason()
        if stopped is not None:
            break
        start, before = time.perf_counter(), chain.solved
        links.advance(clock, amount)
        seconds = max(time.perf_counter() - start, 1e-6)
        done = chain.solved
        # As many links at a time as take a tenth of a second.
        amount = max(1, min(int((done - before) / seconds * _SECONDS_A_STEP), 4 * amount))
        keeper.notice()
        if done > before:
            budget.report("solving links", done=done, total=max(expected, done))
    keeper.keep()
    return stopped


@dataclass(frozen=True, eq=False)
class SegmentRun:
    """What became of a segment."""

    chain: Chain  # every record has a class, or none where its window had no release
    stopped: Stopped | None  # why its links ended early; None if they did not
    cut: int  # records that no link fixed, and that were cut in their order
    before: int = 0  # links that an earlier run solved
    priced: Bound | None = None  # that of the last link where column generation found it


@dataclass(frozen=True, eq=False)
class Segment:
    """A chain over some records, with all that it takes to run it in any process."""

    problem: Problem  # of a table that has the records
    records: Ints  # in their order
    options: ChainOptions
    seed: int
    checkpoint: Checkpoint | None  # where the chain is kept, and where it goes on from

    def __call__(self, budget: Budget) -> SegmentRun:
        """Run the chain to its end, or as far as the time goes, and cut what is left."""
        kept = resumed(self.checkpoint)
        if kept is not None and not np.array_equal(kept.records, self.records):
            assert self.checkpoint is not None
            raise self.checkpoint.damaged()
        return self.go_on(kept, budget)

    def go_on(self, kept: Chain | None, budget: Budget) -> SegmentRun:
        """Run a chain on from where it ended; None for one that has not begun."""
        chain, stopped, priced = kept, None, None
        before = 0 if kept is None else kept.solved
        if chain is None:
            # Each link fixes a class, of at least k records.
            chain = new_chain(self.records, len(self.records) // self.problem.k + 1)
        elif self.checkpoint is not None and not _holds_classes(self.problem, chain):
            # Before links are solved, and written over what the file has.
            raise self.checkpoint.damaged()
        if not chain.done:
            kind = CompiledLinks if self.in_loop else ClassLinks
            links = kind(self.problem, chain, self.options, self.seed)
            stopped = drive_chain(links, budget, Keeper(self.checkpoint, chain, budget))
            priced = links.priced
        cut = 0 if stopped is None else cut_rest(self.problem, chain)
        return SegmentRun(chain, stopped, cut, before, priced)

    @property
    def in_loop(self) -> bool:
        """Whether the compiled loop knows its sub-problems."""
        return self.options.subsolver == EXACT and compiles(self.problem)

    def part(self, number: int, begin: int, end: int) -> Segment:
        """Return the segment of some places of the order, with a checkpoint of its own."""
        kept = self.checkpoint
        own = None if kept is None else kept.part(number)
        return replace(self, records=self.records[begin:end], checkpoint=own)

    def by_itself(self) -> Segment:
        """Return the segment with a table of its own records, so that less is sent elsewhere.

        Raises InputError if these records are no problem by themselves: they lack the diversity.
        """
        own = self.problem.microdata.take(self.records, as_part=True)
        part = self.problem.replace(microdata=own)
        return replace(self, problem=part, records=np.arange(len(self.records)))


def _holds_classes(problem: Problem, chain: Chain) -> bool:
    """Return whether what a chain has fixed are classes that the problem allows."""
    labels = np.full(problem.n, SUPPRESSED, np.int64)
    labels[chain.records] = np.maximum(chain.labels, SUPPRESSED)
    try:
        EquivalenceClasses(suppression=True).check(problem, Classes(labels))  # type: ignore[arg-type]
    except InvalidAssignment:
        return False
    return True


def run_segments(
    whole: Segment, kept: Chain | None, *, jobs: int, budget: Budget
) -> tuple[SegmentRun, tuple[str, ...]]:
    """Cut the order into segments, run a chain over each, and join them at their boundaries.

    There are as many as the options say, fewer where one would be less than a window. `kept`: what
    a checkpoint keeps of the chain over the whole order; of several, it has ended or not begun.
    `jobs`: how many run at a time, in threads where the kernels do all the work, else in processes;
    0: two, or one on one core. `budget`: of all links, and of the boundaries in what they leave of
    it. Returns: as if one chain had done it all, and remarks. Raises InputError if the number of
    jobs is negative, or a sub-problem cannot be solved. The classes do not depend on the number of
    jobs, unless the time ends.
    """
    workers = workers_of(jobs)
    ends = _ends(whole)
    if len(ends) < 2 or (kept is not None and kept.done):
        return whole.go_on(kept, budget), ()
    if kept is None and whole.checkpoint is not None:
        # The order that the segments are cut from.
        whole.checkpoint.write(arrays_of(new_chain(whole.records, 0)))
    segments = [
        whole.part(number, begin, end)
        for number, (begin, end) in enumerate(pairwise([0, *ends]), start=1)
    ]
    if not whole.in_loop and workers > 1:
        # With tables of their own, if all of them can have one: some may lack the diversity.
        with suppress(InputError):
            segments = [segment.by_itself() for segment in segments]
    runs = run_side_by_side(
        segments, budget, jobs=workers, in_processes=not whole.in_loop, phase="solving links"
    )
    stopped = next((run.stopped for run in runs if run.stopped is not None), None)
    sums = whole.problem.compiled.aggregate == "sum"
    chain = _joined(whole.records, [run.chain for run in runs], sums=sums)
    # Those of a window and k carried over, or more where the search is compiled: with short chains
    # the loss is some percent lower for it.
    most = (whole.options.S + 1) * whole.problem.k
    if compiles(whole.problem):
        most = max(most, _COMPILED_ROWS)
    chain.labels[:], solved, gained = solve_boundaries(
        whole.problem,
        whole.records,
        chain.labels,
        ends[:-1],
        most=most,
        budget=budget,
        seed=whole.seed,
    )
    reason = budget.stop_reason()
    if solved < len(ends) - 1:
        stopped = stopped or reason
    # Boundaries that were cut short are solved again by a run that goes on.
    if stopped is None and reason is None and whole.checkpoint is not None:
        whole.checkpoint.write(arrays_of(chain))
        remove_parts(whole.checkpoint.path)
    remark = (
        f"{len(ends)} chains joined at {len(ends) - 1} boundaries, {gained} of them for the better"
    )
    cut, before = sum(run.cut for run in runs), sum(run.before for run in runs)
    return SegmentRun(chain, stopped, cut, before), (remark,)


def _ends(whole: Segment) -> list[int]:
    """Return the places at which the segments end; each has room for a window.

    Windows begin where they would in one chain: a few links behind a boundary the records carried
    over are often those of one chain, and then all links to come are the same.
    """
    n = len(whole.records)
    window = whole.options.fixed or whole.options.S * whole.problem.k
    segments = max(1, min(whole.options.chains, n // window))
    inner = [n // window * number // segments * window for number in range(1, segments)]
    return [*inner, n]


def _joined(records: Ints, chains: Sequence[Chain], *, sums: bool) -> Chain:
    """Return one chain over the order with what chains over its segments have found."""
    whole = new_chain(records, sum(chain.solved for chain in chains))
    begin = links = classes = 0
    for chain in chains:
        own = chain.solved
        found = chain.labels
        whole.labels[begin : begin + chain.n] = np.where(found >= 0, found + classes, found)
        whole.table[links : links + own] = chain.table[:own]
        begin, links = begin + chain.n, links + own
        classes += int(chain.cursor[state.NEXT_LABEL])
    losses = [float(chain.sums[state.LOSS]) for chain in chains]
    whole.sums[state.LOSS] = sum(losses) if sums else max(losses)
    whole.cursor[state.READ], whole.cursor[state.CARRIED] = whole.n, 0
    whole.cursor[state.NEXT_LABEL], whole.cursor[state.LINKS] = classes, links
    return whole


#: Seconds that cutting, checking and describing a cell take at most, for a class of k rows.
_SECONDS_A_CELL = 2.5e-7
#: Least share of the time that the links have.
_SHARE_OF_LINKS = 0.2


def links_budget(problem: Problem, budget: Budget, clock: MachineClock) -> Budget:
    """Return the budget of the links: a release must be made in the time that remains.

    `problem, budget`: the whole. `clock`: has seen how busy the machine is.
    """
    left = budget.remaining()
    if left is None or left == 0.0:
        return budget
    # What a release of the whole table takes without any link.
    reserved = _SECONDS_A_CELL * problem.n * problem.m * (1 + problem.k / 5)
    return budget.share(max(_SHARE_OF_LINKS, 1.0 - clock.slowness * reserved / left))


def cut_rest(problem: Problem, chain: Chain) -> int:
    """Give classes to all records that are not fixed, and return how many these are.

    The best consecutive classes where the kernels can cut them and are compiled in time, else sets
    of k: both without asking for the time.
    """
    carried, read = int(chain.cursor[state.CARRIED]), int(chain.cursor[state.READ])
    places = np.concatenate([chain.carried[:carried], np.arange(read, chain.n)])
    if not len(places):
        return 0
    first = int(chain.cursor[state.NEXT_LABEL])
    order = np.arange(len(places))
    labels = np.full(len(places), -1, np.int64)
    if is_plain(problem):
        records = chain.records[places]
        rows = kernel_rows(problem.microdata, problem.compiled.tables, records)
        sums = problem.compiled.aggregate == "sum"
        with suppress(CompilationStopped):
            labels, _ = cut_rows(rows, order, problem.k, sums, Budget())
    if labels[0] < 0:
        cut_in_order(labels, order, problem.k, 0)
    chain.labels[places] = first + labels
    chain.cursor[state.NEXT_LABEL] = first + int(labels.max()) + 1
    chain.cursor[state.CARRIED], chain.cursor[state.READ] = 0, chain.n
    return len(places)
