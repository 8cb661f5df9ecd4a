"""Split & Carry of Liang & Samavi: a chain of small exact problems along an order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InvalidAssignment
from anonymip.exact.split_carry import state
from anonymip.exact.split_carry.checkpoint import Checkpoint, Fingerprint, resumed
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.segments import Segment, SegmentRun, links_budget, run_segments
from anonymip.exact.split_carry.state import Chain, Link, links_of
from anonymip.heuristics.growing.finish import finish
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import Budget, MachineClock
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution, under_assumptions
from anonymip.status import Stopped

_METHOD = "split-carry"


@dataclass(frozen=True, eq=False)
class ChainRun:
    """What a chain found, and how it came about."""

    solution: Solution  # of the whole problem
    chain: Chain  # at its end

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The sub-problems, in their order."""
        return links_of(self.chain)


def split_carry(
    problem: Problem,
    *,
    S: int = 3,  # noqa: N803 - the paper's name
    boundary: int = 0,
    order: str = "variance",
    subsolver: str = EXACT,
    carry: str = "classes",
    fixed: int = 0,
    accept: int = 0,
    prefer: str = "oldest",
    pass_time: bool = True,
    link_time: float = 0.0,
    chains: int = 1,
    jobs: int = 0,
    solver: str = "highs",
    gap: float = 0.0,
    threads: int = 1,
    solver_options: Mapping[str, object] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Solve a chain of small problems along an order, exactly, and join their classes [1]_.

    The records are put in order and cut into windows. Each window holds S k new records and those
    carried over from the one before; its best classes are found, those that do not touch its
    boundary, the last k records, are fixed, the others are carried over. A window may be solved to
    proven optimality; that proves nothing of the whole table.

    What is carried over: classes of equal cells are one class. A class that touches the boundary
    is carried over whole if it has fewer than 2k records; otherwise exactly k of its records are,
    those nearest the end of the order, and the rest is a class. So windows have at most
    k S + l (2k - 1) records for a boundary of l (Lemma 2). The n mod k records at the end belong to
    the last window. All domains are the table's.

    `problem`: with equivalence classes.
    `S`, `boundary`, `subsolver`, `carry`, `fixed`, `accept`, `prefer`, `pass_time`, `link_time`,
    `chains`: see :class:`~anonymip.exact.split_carry.options.ChainOptions`.
    `order`: name of an order: ``variance`` as in the paper, ``cardinality``, ``snake``,
    ``hilbert``, ``neighbour``; each with ``+2opt``.
    `jobs`: chains that run at a time; 0: two, or one on one core. The classes do not depend on it.
    `solver`, `gap`, `threads`, `solver_options`: as there, for sub-solvers with a formulation.
    `checkpoint`: file that is written every moment, or after every link that takes longer; see
    :class:`~anonymip.exact.split_carry.checkpoint.Checkpoint`. With several chains each has another
    one beside it until all have ended. It stays when the method has ended.
    `resume`: whether to go on from it if it is there. The classes are those of a run that nothing
    has disturbed; a link that was cut short is solved again. The time limit counts from now.
    `budget`: its time, less what a release takes by itself, is divided by the number of windows;
    one whose time ends keeps the best classes it has, at worst its start. When all time ends, the
    records left are cut fast.
    `seed`: of the sub-solver.
    Raises InputError if an option is wrong, or the formulation does not take the sub-problems;
    SolverUnavailable if the solver is not installed; NoSolution if no classes are found that keep
    the limits.

    A window whose solver fails, or whose model is above the size of the solver's licence, keeps the
    better of its start and what a search without a solver finds.

    Under a diversity or limits a window may have no release. Then it takes in the next records, up
    to four times; after that the records that fit nowhere find classes at the end. Complexity:
    linear in the number of records behind the sort, exponential in S, k and the number of
    attributes.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Sections 3.1 and 6.
    """
    options = ChainOptions(
        S=S,
        boundary=boundary,
        carry=carry,
        fixed=fixed,
        accept=accept,
        prefer=prefer,
        subsolver=subsolver,
        solver=solver,
        gap=gap,
        threads=threads,
        solver_options=dict(solver_options or {}),
        pass_time=pass_time,
        link_time=link_time,
        chains=chains,
    )
    # Windows know nothing of each other: what may be left out of all is chosen at the end.
    capped = problem.is_capped
    found = run_chain(
        problem.replace(recoding=EquivalenceClasses()) if capped else problem,
        options,
        order=order,
        jobs=jobs,
        checkpoint=checkpoint,
        resume=resume,
        budget=budget,
        seed=seed,
    ).solution
    if not capped:
        return found
    assert isinstance(found.assignment, Classes)
    return finish(
        problem,
        found.assignment.labels,
        found.method,
        Stopwatch(),
        budget=budget,
        stopped=found.status.stopped,
        options=found.options,
        seed=seed,
        trace=found.trace,
    )


def run_chain(
    problem: Problem,
    options: ChainOptions | None = None,
    *,
    order: str = "variance",
    jobs: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    budget: Budget | None = None,
    seed: int = 0,
) -> ChainRun:
    """Run :func:`split_carry` and return its solution with its links.

    `options`: those that are no parameters here. Arguments and errors are those of that function.
    """
    watch, budget, options = Stopwatch(), budget or Budget(), options or ChainOptions()
    options.refuse_unfit(problem.k)
    file = None
    if checkpoint is not None:
        given = {"order": order, "seed": seed, **asdict(options)}
        file = Checkpoint(checkpoint, Fingerprint.of(problem, given), resume=resume)
    goes_on = file is not None and file.path.exists()
    kept = resumed(file)
    if (
        file is not None
        and kept is not None
        and (kept.n != problem.n or (kept.records.min(), kept.records.max()) != (0, problem.n - 1))
    ):
        # It is no chain of the whole table.
        raise file.damaged()
    if kept is not None and kept.done and kept.solved == 1:
        # No bound is taken from a file: the link that is the whole problem is solved again.
        kept = None
    clock = MachineClock()
    records = find_order(problem, order, budget) if kept is None else kept.records
    whole = Segment(problem, records, options, seed, file)
    share = links_budget(problem, budget, clock)
    run, remarks = run_segments(whole, kept, jobs=jobs, budget=share)
    described = {"order": order, **options.described()}
    try:
        solution = _finished(problem, run, described, watch, budget, seed)
    except InvalidAssignment:
        if file is None or not goes_on:
            raise
        # What the file says is fixed are no classes that the problem allows.
        raise file.damaged() from None
    if kept is None:
        # The bound of its link, where that is the problem itself.
        bound = run.chain.table[0, state.BOUND] if run.chain.solved == 1 else np.nan
        if not run.cut and not np.isnan(bound) and options.subsolver == EXACT:
            source = under_assumptions(problem, "search of the whole table")
            searched = Bound(float(bound), source, "argument")
            solution = solution.with_bound(run.priced or searched)
    else:
        remarks = (f"went on behind {run.before:,} links of an earlier run", *remarks)
    solution = replace(solution, trace=(*remarks, *solution.trace))
    return ChainRun(solution, run.chain)


def _finished(
    problem: Problem,
    run: SegmentRun,
    options: Mapping[str, object],
    watch: Stopwatch,
    budget: Budget,
    seed: int,
) -> Solution:
    """Return the checked solution; repaired where links or time left something to do."""
    chain, stopped, cut = run.chain, run.stopped, run.cut
    labels = np.full(problem.n, state.OPEN, np.int64)
    labels[chain.records] = chain.labels
    trace = remarks_on_links(chain.table[: chain.solved])
    if cut:
        ended = "interrupted" if stopped is Stopped.INTERRUPT else "time ended"
        what = f": {cut:,} of {chain.n:,} records were cut in their order"
        trace.append(ended + (what if chain.solved else " before the first link"))
    lost = 0 if problem.may_suppress else int(np.count_nonzero(labels == SUPPRESSED))
    if lost:
        trace.append(f"{lost:,} records fit no class of their windows: repaired at the end")
    told: dict[str, Any] = {
        "stopped": stopped or Stopped.HEURISTIC,
        "options": options,
        "seed": seed,
        "trace": tuple(trace),
    }
    if cut or lost:
        return finish(problem, labels, _METHOD, watch, budget=budget, **told)
    classes = Classes(labels)  # type: ignore[arg-type]
    return Solution.of(problem, classes, method=_METHOD, seconds=watch.seconds, **told)


def remarks_on_links(table: Floats) -> list[str]:
    """Return remarks on links: how many are proven, what kept the others from it, their starts.

    `table`: (links, columns) as a :class:`~anonymip.exact.split_carry.state.Chain` holds them.
    """
    if not len(table):
        return []
    proven, largest = int(table[:, state.PROVEN].sum()), int(table[:, state.SIZE].max())
    noun = "link" if len(table) == 1 else "links"
    counted = f"{len(table):,} {noun} of up to {largest} records, {proven:,} of them proven"
    remarks = [f"{counted}; a proof of a link says nothing of the whole table"]
    numbers = {name: number for number, name in enumerate(state.REASONS)}
    replaced = np.isin(table[:, state.REASON], [numbers[name] for name in state.REPLACED])
    open_ones = table[(table[:, state.PROVEN] == 0.0) & ~replaced, state.REASON]
    counts = [
        f"{np.count_nonzero(open_ones == at):,} {text}"
        for at, text in enumerate(state.REASONS.values())
        if at in open_ones
    ]
    if counts:
        remarks.append(f"links without a proof: {', '.join(counts)}")
    for name in state.REPLACED:
        count = np.count_nonzero(table[:, state.REASON] == numbers[name])
        if count:
            noun = "link" if count == 1 else "links"
            remarks.append(
                f"{count:,} {noun} {state.REASONS[name]} keep their start or what a search found"
            )
    accepted = int(np.count_nonzero(table[:, state.START] == state.START_ACCEPTED))
    asked = accepted + int(np.count_nonzero(table[:, state.START] == state.START_REFUSED))
    if asked:
        remarks.append(f"the start was accepted in {accepted:,} of {asked:,} links")
    return remarks
