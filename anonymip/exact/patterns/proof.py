"""Pattern problems of real size, solved to proven optimality component by component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from anonymip.assignments import Patterns
from anonymip.bounds.patterns.pattern_duals import (
    PatternDuals,
    PatternProgram,
    loss_of,
    pattern_duals,
    pattern_program,
)
from anonymip.bounds.patterns.pattern_lagrangian import ascend
from anonymip.errors import NoSolution, SolverError
from anonymip.exact.model_run import FAILED, FAILURES, cheap_release, what_failed
from anonymip.exact.patterns.components import PatternComponent, components_of, greedy_amounts
from anonymip.exact.patterns.group_master import PARTS
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.exact.trust import RefutedClaim, best_of, refuse_refuted, slack_of
from anonymip.models.patterns.pattern_columns import patterns_by_amounts
from anonymip.problem import Problem
from anonymip.recodings.output_rows import OutputRows, output_rows
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution, proves_optimal
from anonymip.status import Stopped


def prove(problem: Problem, mip: Mip | None = None, start: Solution | None = None) -> Solution:
    """Return a best release by patterns, and the proof of it as far as time goes.

    The pattern of stars only is relaxed, as if it needed no k records; what is left falls into
    components that share no output row. The Lagrangian bound gives duals, which prove many of them
    optimal at once and rule out most rows of others; restricted MIPs solve what is left. For k of 2
    and 3 a component with many pairs first gets duals of triples of records too (subset-row
    inequalities: M. Jepsen, B. Petersen, S. Spoorendonk, D. Pisinger: Subset-Row Inequalities
    Applied to the Vehicle-Routing Problem with Time Windows, Operations Research 56(2), 2008), and
    MIPs on groups of k to 2k - 1 records.

    If the records under stars only are none or at least k, the components together are an optimal
    release. If not, they are a bound still, the cheapest further records are put under stars only,
    and where that costs more than the bound the problem is solved as a whole.

    The problem is without single use and diversity. `mip` is the solver of whatever is open, with
    the budget of all. The start is returned if nothing better is
    found. NoSolution if no release exists, or none was found in time; SolverError if what the
    solver returns does not survive the checks.
    """
    watch, mip = Stopwatch(), mip or Mip()
    rows = output_rows(problem)
    found = _solve(pattern_program(problem, rows), mip)
    relaxed_pattern = found.program.relaxed_pattern
    if relaxed_pattern >= 0 and 0 < found.left < problem.k:
        found.trace.append(
            f"the parts leave {found.left} records under stars only, fewer than k = {problem.k}"
        )
        fill_relaxed_pattern(found.components, problem.k)
        closed = proves_optimal(problem, found.upper, found.lower, strict=True)
        if not closed and mip.budget.stop_reason() is None:
            found = _whole(problem, rows, found, mip)
    return _solution(problem, rows, found, start, mip, watch)


@dataclass(eq=False)
class _Found:
    """The components of a program and what is known of them."""

    program: PatternProgram
    components: list[PatternComponent]
    trace: list[str]
    solver: str | None
    elsewhere: float = -np.inf  # a bound by other means
    by_report: bool = False  # whether a solver reports it
    tripled: bool = False  # whether it is by duals of triples
    failed: str | None = None  # what a solver that failed reported last

    @property
    def by_solver(self) -> bool:
        return self.by_report or any(component.by_solver for component in self.components)

    @property
    def by_triples(self) -> bool:
        return self.tripled or any(component.by_triples for component in self.components)

    @property
    def method(self) -> str:
        """What the bound is by."""
        if self.by_solver:
            return f"pattern parts with {self.solver}"
        return "pattern prices with triples" if self.by_triples else "pattern Lagrangian"

    @property
    def lower(self) -> float:
        return max(self.elsewhere, fsum(component.lower for component in self.components))

    @property
    def upper(self) -> float:
        return fsum(component.upper for component in self.components)

    def forget_solver(self) -> None:
        """Take back all bounds that a solver has reported."""
        if self.by_report:
            self.elsewhere, self.by_report = -np.inf, False
        for component in self.components:
            component.forget_solver()

    @property
    def left(self) -> int:
        """Number of records without companions."""
        if any(component.amounts is None for component in self.components):
            return 0
        return self.program.records - sum(
            int(_amounts(component).sum()) for component in self.components
        )


def _amounts(component: PatternComponent) -> Ints:
    assert component.amounts is not None
    return component.amounts


def _solve(program: PatternProgram, mip: Mip) -> _Found:
    budget, gap = mip.budget, mip.options.relative_gap
    duals = _duals(program, budget)
    components = components_of(duals)
    found = _Found(program, components, [], None)
    open_ = [component for component in components if not component.closed]
    found.trace.append(
        f"{program.pairs:,} pairs of {program.type_count:,} row types and their output rows; "
        f"{len(open_):,} parts are not proven optimal by duals"
    )
    weights = [float(component.duals.program.pairs) ** 1.5 for component in open_]
    for at, component in enumerate(open_):
        if budget.stop_reason() is not None or np.isinf(found.lower):
            break
        if np.isfinite(found.upper) and found.upper - found.lower <= gap * abs(found.upper):
            break
        budget.report("proving parts", done=at, total=len(open_), bound=found.lower)
        share, left = budget, budget.remaining()
        if left is not None:
            own = left * weights[at] / sum(weights[at:])
            share = budget.renewed(max(min(left, PARTS.seconds_a_part), own, 1e-3))
        try:
            found.solver = component.solve(mip.within(share)) or found.solver
        except FAILURES as failure:
            # What is known of this component stays: its release by heuristics, its bound by duals.
            found.failed = what_failed(failure)
            if isinstance(failure, RefutedClaim):
                found.forget_solver()
    return found


def _duals(program: PatternProgram, budget: Budget) -> PatternDuals:
    """Return good duals; those of the row bound where these are enough."""
    plain = pattern_duals(program, program.cheapest)
    amounts = greedy_amounts(plain)
    upper = np.inf if amounts is None else loss_of(plain, amounts)
    if plain.bound >= upper:
        return plain
    enough = upper - 1.0 / program.grid + 1e-6 if program.grid else upper
    return ascend(program, None, budget.share(PARTS.ascent), enough=enough)


def _whole(problem: Problem, rows: OutputRows, before: _Found, mip: Mip) -> _Found:
    """Return what solving the problem with its pattern of stars only as any other gives."""
    before.trace.append("the problem is solved with this pattern among the others")
    program = pattern_program(problem, rows, relaxed=False)
    found = _solve(program, mip)
    found.trace[:0] = before.trace
    best, other = (before, found) if before.upper <= found.upper else (found, before)
    if other.lower > best.lower:
        best.elsewhere, best.by_report = other.lower, other.by_solver
        best.tripled = other.by_triples
    best.trace, best.solver = found.trace, found.solver or before.solver
    best.failed = found.failed or before.failed
    return best


def _solution(
    problem: Problem,
    rows: OutputRows,
    found: _Found,
    start: Solution | None,
    mip: Mip,
    watch: Stopwatch,
) -> Solution:
    """Return the checked solution."""
    if found.by_solver:
        start = _held_against(problem, found, start, mip)
    assignment = None
    relaxed_fits = found.program.relaxed_pattern < 0 or not 0 < found.left < problem.k
    if relaxed_fits and all(component.amounts is not None for component in found.components):
        assignment = _patterns(rows, found)
    if start is not None and (assignment is None or start.objective <= found.upper):
        assert isinstance(start.assignment, Patterns)
        assignment = start.assignment
    if np.isinf(found.lower):
        if assignment is not None:
            raise SolverError(
                f"{found.solver} calls a feasible problem infeasible", remedy="Use another solver"
            )
        raise NoSolution(
            f"no release keeps the mask, says {found.solver}",
            remedy="Allow more patterns, such as the one of stars only, or suppression",
        )
    if found.failed is not None:
        if assignment is None:
            raise SolverError(found.failed, remedy="Use another solver, or a release to start from")
        found.trace.append(f"{found.failed}: {FAILED}the best release so far is kept")
    if assignment is None:
        raise NoSolution(
            "no release was found in time", remedy="Give it more time, or a release to start from"
        )
    proof = "solver" if found.by_solver else "argument"
    bound = Bound(found.lower, found.method, proof, watch.seconds)
    return Solution.of(
        problem,
        assignment,
        method="pattern-ilp",
        bound=bound,
        stopped=Stopped.ERROR if found.failed else mip.budget.stop_reason() or Stopped.GAP,
        seconds=watch.seconds,
        trace=tuple(found.trace),
        solver=found.solver,
    )


def _held_against(
    problem: Problem, found: _Found, start: Solution | None, mip: Mip
) -> Solution | None:
    """Return the start, or a better release if that refutes what a solver reports.

    Bounds that are refuted are taken back.
    """
    best = best_of(start, cheap_release(problem, mip.budget, mip.options.seed))
    if best is None:
        return None
    try:
        slack = slack_of(found.program.losses, problem.n)
        refuse_refuted(str(found.solver), found.lower, best.objective, slack, best)
    except RefutedClaim as claim:
        found.failed = what_failed(claim)
        found.forget_solver()
        return best
    return start


def _patterns(rows: OutputRows, found: _Found) -> Patterns:
    """Hand the records of each row type out to patterns, in their order."""
    program = found.program
    types, patterns, amounts = [], [], []
    left = program.counts.copy()
    for component in found.components:
        duals, taken = component.duals, _amounts(component)
        used = np.flatnonzero(taken)
        own = component.types[duals.pair_types[used]]
        types.append(own)
        patterns.append(duals.program.patterns[duals.pair_patterns[used]])
        amounts.append(taken[used])
        np.subtract.at(left, own, taken[used])
    types.append(np.arange(program.type_count))
    patterns.append(np.full(program.type_count, program.relaxed_pattern, np.int64))
    amounts.append(left)
    given = np.concatenate(types), np.concatenate(patterns), np.concatenate(amounts)
    return patterns_by_amounts(program.type_of[rows.types.inverse], *given)


def fill_relaxed_pattern(components: Sequence[PatternComponent], k: int) -> None:
    """Take records out of their rows until k are in none, at little loss.

    Rows with more than k records give some away; otherwise a row is given up as a whole. Each time
    what costs least for a record that is needed is done. Complexity: O(k) times the pairs in use.
    """
    program = components[0].duals.program
    parts = [(component, np.flatnonzero(_amounts(component))) for component in components]
    amounts = np.concatenate([_amounts(component)[at] for component, at in parts])
    costs = [own.duals.program.costs[own.duals.pair_patterns[at]] for own, at in parts]
    extra = program.price - np.concatenate(costs)
    offsets = np.cumsum([0, *(component.duals.program.rows for component in components)])
    rows = np.concatenate(
        [
            own.duals.pair_rows[at] + first
            for (own, at), first in zip(parts, offsets[:-1], strict=True)
        ]
    )
    records = sum(component.duals.program.records for component in components)
    while (needed := k - (records - int(amounts.sum()))) > 0:
        held = np.bincount(rows, weights=amounts, minlength=offsets[-1]).astype(np.int64)
        spare = np.minimum(amounts, held[rows] - k)
        giving = np.where(spare > 0, extra, np.inf)
        whole = np.bincount(rows, weights=extra * amounts, minlength=offsets[-1])
        ending = np.where(held > 0, whole / np.maximum(1, np.minimum(held, needed)), np.inf)
        pair, row = int(np.argmin(giving)), int(np.argmin(ending))
        if giving[pair] <= ending[row]:
            amounts[pair] -= min(int(spare[pair]), needed)
        else:
            amounts[rows == row] = 0
    cuts = np.cumsum([len(at) for _, at in parts])[:-1]
    for (component, at), own in zip(parts, np.split(amounts, cuts), strict=True):
        component.amounts = np.zeros(len(component.duals.pair_rows), np.int64)
        component.amounts[at] = own
