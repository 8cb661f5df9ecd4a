"""Chains over segments of an order: independent of each other, joined where they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.exact.classes.small.kernels import compiles
from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.classes.boundaries import rows_of_boundaries, solve_boundaries
from anonymip.exact.split_carry.classes.chain_file import ChainFile, arrays_of, resumed
from anonymip.exact.split_carry.classes.loop import links_of_classes
from anonymip.exact.split_carry.driving import drive_chain
from anonymip.exact.split_carry.keeping import Keeper
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.rest import cut_rest
from anonymip.exact.split_carry.state import (
    CARRIED,
    LINKS,
    LOSS,
    NEXT_LABEL,
    READ,
    Chain,
    new_chain,
)
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.side_by_side import run_side_by_side, workers_of
from anonymip.status import Stopped


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
        As :func:`~anonymip.exact.split_carry.classes.loop.links_of_classes` takes them.
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
