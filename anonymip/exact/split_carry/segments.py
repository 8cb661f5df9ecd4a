"""Chains over segments of an order: independent of each other, joined where they meet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.exact.classes.best_classes import compiles
from anonymip.exact.split_carry.boundaries import rows_of_boundaries, solve_boundaries
from anonymip.exact.split_carry.checkpoint import ChainFile, Checkpoint, Keeper, arrays_of, resumed
from anonymip.exact.split_carry.links import ChainClock, ClassLinks, links_of_classes
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.state import (
    CARRIED,
    LINKS,
    LOSS,
    NEXT_LABEL,
    READ,
    Chain,
    new_chain,
)
from anonymip.heuristics.classes.ordered_cut import cut_rows
from anonymip.heuristics.growing.consecutive import cut_in_order
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.problem import Problem, is_plain
from anonymip.runtime.budget import Budget, MachineClock
from anonymip.runtime.compilation import CompilationStopped
from anonymip.runtime.side_by_side import run_side_by_side, workers_of
from anonymip.status import Stopped

#: Seconds between two looks at the clock.
_SECONDS_A_STEP = 0.1
_FIRST = 10


def drive_chain(
    links: ClassLinks, options: ChainOptions, budget: Budget, keeper: Keeper
) -> Stopped | None:
    """Solve the links of a chain that has not ended, and return why it stopped early, if it did.

    Parameters
    ----------
    links
        Go on in place.
    options
        Of the chain.
    budget
        Of these links. Its time is shared out among those that are expected.
    keeper
        Called between links, every tenth of a second or after each longer one.

    Raises
    ------
    InputError, NoSolution
        As the links do.
    """
    clock = ChainClock(links.expected - links.solved, budget, options.pass_time, options.link_time)
    amount, stopped = _FIRST, None
    while not links.done and stopped is None:
        stopped = budget.stop_reason()
        if stopped is not None:
            break
        start, before = time.perf_counter(), links.solved
        links.advance(clock, amount)
        seconds = max(time.perf_counter() - start, 1e-6)
        done = links.solved
        # As many links at a time as take a tenth of a second.
        amount = max(1, min(int((done - before) / seconds * _SECONDS_A_STEP), 4 * amount))
        keeper.notice()
        if done > before:
            total = max(links.expected, done)
            budget.report("solving links", done=done, total=total)
    keeper.keep()
    return stopped


@dataclass(frozen=True, eq=False)
class SegmentRun:
    """What became of a segment.

    Parameters
    ----------
    chain
        Every record has a class, or none where its window had no release.
    stopped
        Why its links ended early; None if they did not.
    cut
        Records that no link fixed, and that were cut in their order.
    """

    chain: Chain
    stopped: Stopped | None
    cut: int


@dataclass(frozen=True, eq=False)
class Segment:
    """A chain over some records, with all that it takes to run it in any process.

    Parameters
    ----------
    problem
        A table that has the records.
    records
        In their order.
    options, compiled, seed
        As :func:`~anonymip.exact.split_carry.links.links_of_classes` takes them.
    checkpoint
        Where it is kept, and where it goes on from.
    """

    problem: Problem
    records: NDArray[np.int64]
    options: ChainOptions
    compiled: bool
    seed: int
    checkpoint: Checkpoint | None

    def __call__(self, budget: Budget) -> SegmentRun:
        """Run the chain to its end, or as far as the time goes, and cut what is left."""
        kept = resumed(self.checkpoint)
        if kept is not None and not np.array_equal(kept.records, self.records):
            assert self.checkpoint is not None
            raise self.checkpoint.damaged()
        return self.go_on(kept, budget)

    def go_on(self, kept: Chain | None, budget: Budget) -> SegmentRun:
        """Run a chain on from where it ended; None for one that has not begun."""
        chain, stopped = kept, None
        if chain is None:
            # Each link fixes a class, of at least k records.
            chain = new_chain(self.records, len(self.records) // self.problem.k + 1)
        if not chain.done:
            links = links_of_classes(
                self.problem, chain, self.options, self.seed, compiled=self.compiled
            )
            keeper = Keeper(self.checkpoint, ChainFile(chain), budget)
            stopped = drive_chain(links, self.options, budget, keeper)
        cut = 0 if stopped is None else cut_rest(self.problem, chain)
        return SegmentRun(chain, stopped, cut)

    def part(self, number: int, begin: int, end: int) -> Segment:
        """Return the segment of some places of the order, with a checkpoint of its own."""
        kept = self.checkpoint
        return replace(
            self,
            records=self.records[begin:end],
            checkpoint=None if kept is None else kept.part(number),
        )

    def by_itself(self) -> Segment:
        """Return the segment with a table of its own records, so that less is sent elsewhere.

        Raises
        ------
        InputError
            If these records are no problem by themselves: they lack the diversity.
        """
        part = self.problem.replace(microdata=self.problem.microdata.take(self.records))
        return replace(self, problem=part, records=np.arange(len(self.records)))


def run_segments(
    whole: Segment, kept: Chain | None, *, jobs: int, budget: Budget
) -> tuple[SegmentRun, tuple[str, ...]]:
    """Cut the order into segments, run a chain over each, and join them at their boundaries.

    There are as many as the options say, fewer where one would be less than a window.

    Parameters
    ----------
    whole
        The whole order.
    kept
        What a checkpoint keeps of the chain over the whole order; of several, it has ended or not
        begun. None without one.
    jobs
        How many run at a time, in threads where the kernels do all the work, else in processes;
        0: two, or one on one core.
    budget
        Of all links, and of the boundaries in what they leave of it.

    Returns
    -------
    SegmentRun, tuple of str
        As if one chain had done it all, and remarks.

    Notes
    -----
    The classes do not depend on the number of jobs, unless the time ends.

    Raises
    ------
    InputError
        If the number of jobs is negative, or a sub-problem cannot be solved.
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
    in_processes = not (
        whole.compiled and whole.options.subsolver == EXACT and compiles(whole.problem)
    )
    runs = run_side_by_side(
        _sendable(segments) if in_processes and workers > 1 else segments,
        budget,
        jobs=workers,
        in_processes=in_processes,
        phase="solving links",
    )
    stopped = next((run.stopped for run in runs if run.stopped is not None), None)
    sums = whole.problem.compiled.aggregate == "sum"
    chain = _joined(whole.records, [run.chain for run in runs], sums=sums)
    joined = solve_boundaries(
        whole.problem,
        whole.records,
        chain.labels,
        ends[:-1],
        most=rows_of_boundaries(whole.problem, whole.options.S),
        budget=budget,
        seed=whole.seed,
    )
    chain.labels[:] = joined.labels
    reason = budget.stop_reason()
    if joined.solved < len(ends) - 1:
        stopped = stopped or reason
    # Boundaries that were cut short are solved again by a run that goes on.
    if stopped is None and reason is None and whole.checkpoint is not None:
        whole.checkpoint.write(arrays_of(chain))
        whole.checkpoint.remove_parts()
    remark = (
        f"{len(ends)} chains joined at {len(ends) - 1} boundaries, "
        f"{joined.gained} of them for the better"
    )
    return SegmentRun(chain, stopped, sum(run.cut for run in runs)), (remark,)


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


def _sendable(segments: list[Segment]) -> list[Segment]:
    """Return the segments with tables of their own, if all of them can have one."""
    try:
        return [segment.by_itself() for segment in segments]
    except InputError:
        return segments


def _joined(records: NDArray[np.int64], chains: Sequence[Chain], *, sums: bool) -> Chain:
    """Return one chain over the order with what chains over its segments have found."""
    whole = new_chain(records, sum(int(chain.cursor[LINKS]) for chain in chains))
    begin = links = classes = 0
    for chain in chains:
        own = int(chain.cursor[LINKS])
        found = chain.labels
        whole.labels[begin : begin + chain.n] = np.where(found >= 0, found + classes, found)
        whole.table[links : links + own] = chain.table[:own]
        begin, links = begin + chain.n, links + own
        classes += int(chain.cursor[NEXT_LABEL])
    losses = [float(chain.sums[LOSS]) for chain in chains]
    whole.sums[LOSS] = sum(losses) if sums else max(losses)
    whole.cursor[READ], whole.cursor[CARRIED] = whole.n, 0
    whole.cursor[NEXT_LABEL], whole.cursor[LINKS] = classes, links
    return whole


#: Seconds that cutting, checking and describing a cell take at most, for a class of k rows.
_SECONDS_A_CELL = 2.5e-7
#: Least share of the time that the links have.
_SHARE_OF_LINKS = 0.2


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
