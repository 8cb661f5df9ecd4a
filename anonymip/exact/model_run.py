"""The run of a model: its start, its time, the solver, the checked result, and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from anonymip.assignments import Assignment, Classes, Cover
from anonymip.bounds.combinatorial import lower_bound_of
from anonymip.effort import check_effort
from anonymip.errors import (
    AnonymipError,
    InputError,
    InvalidAssignment,
    MemoryShort,
    NoSolution,
    SolverError,
    argument,
    unknown_name,
)
from anonymip.exact.classes.small import solve_small
from anonymip.exact.priced_sets import PricedSets
from anonymip.exact.trust import (
    RefutedClaim,
    Trust,
    TrustOfLosses,
    best_of,
    claimed_bound,
    refuse_refuted,
)
from anonymip.heuristics.freeform.nearest_sets import nearest_sets
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.heuristics.local_search.starts import BEST
from anonymip.models import FORMULATIONS, build, read, set_start
from anonymip.problem import Problem
from anonymip.recodings import (
    KK,
    EquivalenceClasses,
    Freeform,
    KConcealment,
    KOne,
    OneK,
    PatternGuided,
)
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.runtime.kernels import Stopwatch
from anonymip.runtime.memory import in_words, memory_at_hand
from anonymip.solution import Bound, Solution, under_assumptions
from anonymip.solvers import SolverOptions, SolverResult, solve_model
from anonymip.status import Stopped
from anonymip.tolerances import same_loss

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

#: Share of the time that lowering the best start may take.
_IMPROVING = 0.2


def find_start(
    problem: Problem,
    name: str,
    given: Assignment | None,
    heuristics: Mapping[str, Callable[..., Solution]],
    seed: int,
    budget: Budget,
    *,
    best: bool = True,
    passing: tuple[type[AnonymipError], ...] = (NoSolution,),
) -> tuple[Solution | None, list[str]]:
    """Return the solution to start from, and remarks; None if there is none.

    `name`: of a heuristic; ``"best"`` of all, if `best` lets it be asked for; or ``"none"``.
    `given`: assignment to start from instead. `passing`: errors by which a heuristic may fail where
    the model does not: others are raised. Raises InputError if there is no such start;
    InvalidAssignment if the assignment given breaks a rule.
    """
    known = [*(["best"] if best else []), "none", *heuristics]
    if name not in known:
        raise unknown_name("warm start", name, known)
    if given is not None:
        return Solution.of(problem, given, method="start"), []
    if name == "none":
        return None, []
    found = []
    for heuristic in heuristics.values() if name == "best" else [heuristics[name]]:
        with suppress(*passing):
            found.append(heuristic(problem, seed=seed, budget=budget))
    if not found:
        return None, ["no heuristic found a solution to start from"]
    return best_of(*found), []


def begin_freeform(
    problem: Problem, name: str, given: Assignment | None, seed: int, budget: Budget
) -> tuple[Solution | None, list[str]]:
    """Return the solution to start from, and remarks; None if there is none.

    A freeform cover obeys every weaker notion too: own records lie inside, every record has k
    matches on both sides, and all are effective. Where no heuristic obeys the rules, the whole
    table as the set of every record may.

    `name, given`: as of :func:`find_start`, which says what is raised; the best is lowered by
    ``reassign``.
    """
    # Imported late: classes start from none of them.
    from anonymip.heuristics.freeform.greedy import greedy
    from anonymip.heuristics.freeform.hungarian import hungarian
    from anonymip.heuristics.freeform.reassign import reassign
    from anonymip.heuristics.freeform.ring import ring
    from anonymip.heuristics.freeform.sort_greedy import sort_greedy

    is_regular = isinstance(problem.recoding, Freeform)
    regular = problem if is_regular else problem.replace(recoding=Freeform())
    asked = problem if given is not None else regular
    covers: dict[str, Callable[..., Solution]] = {
        "hungarian": hungarian,
        "sort-greedy": sort_greedy,
        "greedy": greedy,
        "ring": ring,
    }
    # Some heuristics look at no rules, and some at no degrees; the model does.
    passing = (NoSolution, InputError)
    found, remarks = find_start(asked, name, given, covers, seed, budget, passing=passing)
    if found is not None and given is None:
        best, share = found.assignment, budget.share(_IMPROVING)
        if name == "best":
            # The start stays where reassigning cannot be done.
            with suppress(*passing):
                best = reassign(
                    regular, effort="thorough", start=best, seed=seed, budget=share
                ).assignment
        return Solution.of(problem, best, method="start"), []
    if not remarks:
        return found, []
    whole = Cover.of(np.tile(np.arange(problem.n), (problem.n, 1)))
    try:
        return Solution.of(problem, whole, method="start"), ["the start covers the whole table"]
    except InvalidAssignment:
        return None, remarks


#: What a solver may do: end, answer what cannot be, name what is no release, run out of memory.
FAILURES = (SolverError, InvalidAssignment, MemoryError)

#: In the remark that says what was returned instead.
FAILED = "the solver failed, and "

#: Up to so many records are searched without a solver, looking at so many nodes at a time.
_SEARCHED, _SEARCH_NODES = 30, 200_000
#: Of so few records that search takes no longer than heuristics do.
_SOON = 20
#: Passes of the search for patterns that claims are held against.
_PASSES = 2


def has_failed(solution: Solution) -> bool:
    """Return whether a solution is what remained when a solver failed."""
    return any(FAILED in remark for remark in solution.trace)


def what_failed(failure: BaseException) -> str:
    """Return what happened, in one sentence without its remedy."""
    if isinstance(failure, InvalidAssignment):
        return f"what the solver returned is no release ({failure.message})"
    if isinstance(failure, AnonymipError):
        return failure.message
    return "memory ran out"


def cheap_release(problem: Problem, budget: Budget, seed: int) -> Solution | None:
    """Return what heuristics find soon, to hold a solver's claims against; None if nothing.

    A solver that takes a release for optimal, or a problem for infeasible, is refuted by a better
    one. Nobody else would notice: its word is the only proof.
    """
    try:
        if isinstance(problem.recoding, PatternGuided):
            # Imported late: classes need none of it.
            from anonymip.heuristics.patterns.pattern_search import pattern_search

            return pattern_search(problem, passes=_PASSES, budget=budget, seed=seed)
        if isinstance(problem.recoding, EquivalenceClasses):
            searched = search_instead(problem, budget, seed) if problem.n <= _SOON else None
            if searched is not None:
                return searched
            return local_search(problem, from_method=BEST, effort="quick", budget=budget, seed=seed)
        return _cheap_cover(problem, budget, seed)
    except (InputError, NoSolution, CompilationStopped):
        # Some heuristics do not take the rules or the loss, and some have no time.
        return None


def _cheap_cover(problem: Problem, budget: Budget, seed: int) -> Solution | None:
    """Return the best of what heuristics of covers and of weaker notions find.

    HiGHS 1.15.1 took a regular cover that it was given for the best one of (k,1)-anonymity, whose
    sets need not be regular.
    """
    found = begin_freeform(problem, "best", None, seed, budget)[0]
    if not isinstance(problem.recoding, OneK | KOne | KK | KConcealment):
        return found
    try:
        weaker = nearest_sets(problem, effort="quick", budget=budget, seed=seed)
    except (InputError, NoSolution):
        return found
    return best_of(found, weaker)


def search_instead(problem: Problem, budget: Budget, seed: int) -> Solution | None:
    """Return what the search of small problems finds, if it takes the problem."""
    small = isinstance(problem.recoding, EquivalenceClasses) and problem.n <= _SEARCHED
    if not small or budget.stop_reason() is not None:
        return None
    try:
        found = solve_small(problem, budget=budget, max_nodes=_SEARCH_NODES, seed=seed)
    except NoSolution:
        return None
    solution = Solution.of(problem, Classes(found.labels), method="small")
    if found.bound is None:
        return solution
    source = under_assumptions(problem, "search of the whole table")
    return solution.with_bound(Bound(found.bound, source, "argument"))


def read_result(
    run: ModelRun,
    model: ConcreteModel,
    result: SolverResult,
    trust: Trust,
    compared: Callable[[], Solution | None],
) -> tuple[Assignment, Bound | None, list[str]]:
    """Return the checked assignment that a solver's result means, a bound, and remarks.

    `model` holds the result's values. The solution that the solver started from is kept if it found
    nothing better, and so is a release that needs no solver, which its claims are held against:
    `compared` returns one; None if there is none. The bound is what `trust` leaves of the solver's,
    which by options of the caller's own may stop early; None if unknown. Raises SolverError if what
    the solver returns does not survive the checks; RefutedClaim if a release is better than the
    solver says that any can be; NoSolution if there is neither a result nor a start, or no release
    obeys the rules.
    """
    problem, incumbent, settings = run.problem, run.incumbent, run.settings
    foreign = model.formulation not in FORMULATIONS
    if result.stopped is Stopped.INFEASIBLE and foreign:
        raise SolverError(
            f"{result.solver} calls the model of the formulation {model.formulation} infeasible",
            remedy="Use another formulation, or report it to those who made this one",
        )
    if result.stopped is Stopped.INFEASIBLE:
        refusal = trust.no_release(result.solver) if incumbent is None else None
        known = incumbent if refusal is None else compared()
        if refusal is not None and known is None:
            raise refusal
        raise RefutedClaim.of_infeasible(result.solver, known)
    remarks = []
    if result.start_accepted is not None:
        remarks.append(f"warm start {'accepted' if result.start_accepted else 'not used'}")
    found = incumbent
    if result.values is not None:
        found = Solution.of(problem, read(model), method="solver")
        trust.compare(result, found)
        if incumbent is not None and incumbent.objective < found.objective:
            if not same_loss(incumbent.objective, found.objective):
                remarks.append("the start is better than what the solver returned")
            found = incumbent
    if found is None:
        raise NoSolution(
            f"{result.solver} found no solution before it stopped ({result.stopped.value})",
            remedy="Give it more time, or a warm start",
        )
    bound, own_options = None, bool(settings.solver_options)
    unsure = own_options or foreign
    claimed = None if unsure else claimed_bound(result, settings.relative_gap)
    if claimed is not None:
        best = best_of(found, compared()) or found
        refuse_refuted(result.solver, claimed, best.objective, trust.slack, best)
        if not same_loss(best.objective, found.objective):
            remarks.append("a release that needs no solver is better than what the solver returned")
            found = best
    if result.bound is not None and own_options:
        remarks.append("the solver ran with options of its own: its bound is not relied on")
    elif result.bound is not None and foreign:
        remarks.append(
            f"the formulation {model.formulation} comes from outside: its bound is not relied on"
        )
    elif result.bound is not None:
        value, reasons = trust.bound(result.bound, best.objective)
        remarks += reasons
        if value is not None:
            source = f"{model.formulation} with {result.solver}"
            if trust.needs_assumptions:
                source = under_assumptions(problem, source)
            bound = Bound(value, source, "solver", result.seconds)
    return found.assignment, bound, remarks


#: Building and handing over a constraint takes at least this long.
SECONDS_A_CONSTRAINT = 1.5e-5

#: Building and handing over a constraint takes about so much memory: 600 to 1,500 bytes as Pyomo
#: keeps it, of all formulations at 24 to 60 records, and matrices of it.
BYTES_A_CONSTRAINT = 2_000
#: What an effort allows: constraints of a model, and nodes times their square. With HiGHS the root
#: of 5,000 constraints took 24 s and of 12,500 more than 45, and a node some 1e-9 s times the
#: square: nodes are all that it counts alike on every machine.
_ALLOWED: Mapping[str, tuple[int, float]] = MappingProxyType(
    {"quick": (5_000, 3e9), "normal": (15_000, 3e10)}
)
#: A set of a model by sets, as a share of a constraint.
_SET = 0.3
#: Most nodes of a small model.
_NODES = 1_000_000


class SolverChoices(TypedDict, total=False):
    """What every method that calls a solver takes, as :func:`anonymip.solve` does.

    `solver`: name of an adapter, HiGHS if nothing is said. `gap`: relative gap to stop at; 0 proves
    optimality. `threads, log, solver_options`: handed to the solver, see
    :class:`~anonymip.solvers.SolverOptions`.
    """

    solver: str
    gap: float
    threads: int
    log: str | Path | None
    solver_options: Mapping[str, object] | None


@dataclass(eq=False)
class ModelRun:
    """One run of a method that builds a model and calls a solver; made by :meth:`begin`."""

    #: What is solved, and by which method.
    problem: Problem
    method: str
    #: Name of the solver adapter, and what it is given.
    solver: str
    settings: SolverOptions
    budget: Budget  # of the whole run
    watch: Stopwatch  # runs since the method was called
    #: The solution that the solver starts from; None if there is none.
    incumbent: Solution | None = None
    #: Of the method, as the solution tells them.
    options: dict[str, object] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)  # remarks so far
    #: How much work the solver may do; None for no limit, as ``"thorough"``.
    effort: str | None = None
    #: Returns a bound that needs no solver, for a problem and an effort.
    arithmetic: Callable[..., Bound | None] = lower_bound_of

    @classmethod
    def begin(
        cls,
        problem: Problem,
        method: str,
        *,
        solver: str = "highs",
        gap: float = 0.0,
        threads: int = 1,
        log: str | Path | None = None,
        solver_options: Mapping[str, object] | None = None,
        budget: Budget | None,
        seed: int,
        effort: str | None = None,
    ) -> ModelRun:
        """Return a run without a start.

        Raises InputError if a setting of the solver is out of range, or there is no such effort.
        """
        watch = Stopwatch()
        effort = None if effort is None else check_effort(effort)
        settings = SolverOptions(
            relative_gap=gap,
            threads=threads,
            seed=seed,
            log=log,
            solver_options=dict(solver_options or {}),
        )
        return cls(problem, method, solver, settings, budget or Budget(), watch, effort=effort)

    def describe(self, **options: object) -> None:
        """Set the options that the solution tells; gap, effort and solver options are added."""
        self.options = {**options, "gap": self.settings.relative_gap}
        if self.effort is not None:
            self.options["effort"] = self.effort
        if self.settings.solver_options:
            self.options["solver_options"] = dict(self.settings.solver_options)

    def start_from(self, found: tuple[Solution | None, list[str]]) -> Solution | None:
        """Take what the search for a start has found, and its remarks."""
        self.incumbent, remarks = found
        self.trace += remarks
        return self.incumbent

    def solution(
        self,
        assignment: Assignment,
        stopped: Stopped,
        bound: Bound | None = None,
        solver: str | None = None,
    ) -> Solution:
        """Return the checked solution of an assignment, with all that is known of the run."""
        return Solution.of(
            self.problem,
            assignment,
            method=self.method,
            bound=bound,
            stopped=stopped,
            options=self.options,
            seconds=self.watch.seconds,
            seed=self.settings.seed,
            trace=tuple(self.trace),
            solver=solver,
        )

    def kept_without_time(self, size: int, bound: Bound | None = None) -> Solution | None:
        """Return the start if there is no time or no memory for a model of so many constraints.

        Raises MemoryShort if there is no memory for it, and no start.
        """
        left, needed = memory_at_hand(), BYTES_A_CONSTRAINT * size
        if left is not None and needed > left.bytes:
            short = f"the model needs about {in_words(needed)} of memory, and there are {left}"
            if self.incumbent is None:
                raise MemoryShort(short, remedy="Use fewer records, or a heuristic")
            return self.kept(f"{short}: the start is kept", Stopped.NODES, bound)
        remaining = self.budget.remaining()
        if self.incumbent is None or remaining is None or SECONDS_A_CONSTRAINT * size <= remaining:
            return None
        long = "the model takes longer to build than there is time: the start is kept"
        return self.kept(long, self.budget.stop_reason() or Stopped.TIME, bound)

    def kept_without_effort(
        self, constraints: int = 0, sets: int = 0, node: float = 1.0
    ) -> Solution | None:
        """Return the start if the effort allows no model of this size; else limit the nodes.

        `constraints, sets`: of the model. `node`: how much longer its nodes take than those of
        other models. Raises NoSolution if it does not, and there is no start.
        """
        allowed = None if self.effort is None else _ALLOWED.get(self.effort)
        if allowed is None:
            return None
        size = max(1.0, constraints + _SET * sets)
        largest, work = allowed
        if size <= largest:
            nodes = min(_NODES, max(1, int(work / (node * size**2))))
            self.settings = replace(self.settings, node_limit=nodes)
            return None
        what = f"{sets:,} sets" if sets else f"{constraints:,} constraints"
        reason = f"a model of {what} is more than effort {self.effort} solves"
        if self.incumbent is None:
            raise NoSolution(
                reason,
                remedy=f"Give it {argument('effort', 'thorough')}, a time limit, or a warm start",
            )
        kept = f"{reason}: the start is kept; thorough goes on until the proof"
        return self.kept(kept, Stopped.NODES)

    def _late_bound(self) -> Bound | None:
        """Return a bound that needs no solver, of little work where time is limited."""
        effort = None if self.budget.deadline is None else "quick"
        return self.arithmetic(self.problem, effort=effort)

    def kept(self, remark: str, stopped: Stopped, bound: Bound | None = None) -> Solution:
        """Return the start as the solution, with a bound that needs no solver, and say why."""
        assert self.incumbent is not None
        self.trace.append(remark)
        kept = self.solution(self.incumbent.assignment, stopped)
        own = self._late_bound() if bound is None else bound
        return kept if own is None else kept.with_bound(own)

    def solve_by_sets(self, formulation: str, columns: PricedSets, named: str) -> Solution:
        """Return the solution of the model of the sets that a better release may hold.

        `named`: what the sets are called. Raises as :meth:`solve` does; without a start NoSolution
        too if time ended before all sets were found, or the effort allows no such model.
        """
        if columns.ended is not None:
            if self.incumbent is None:
                raise NoSolution(
                    f"possible {named} were still being enumerated at the end "
                    f"({columns.ended.value})",
                    remedy="Give it more time, or a warm start",
                )
            found = f"{columns.found:,} possible {named} were found, and time ended"
            return self.kept(found, columns.ended)
        size = len(columns.sets)
        self.trace.append(f"{size:,} of {columns.found:,} possible {named} are left")
        solution = self.kept_without_time(size, columns.bound)
        solution = solution or self.kept_without_effort(sets=size)
        if solution is None:
            trust = TrustOfLosses.of(self.problem, formulation)
            solution = self.solve(
                lambda: (build(self.problem, formulation, sets=columns.sets), trust)
            )
        return solution if columns.bound is None else solution.with_bound(columns.bound)

    def solve(
        self, make: Callable[[], tuple[ConcreteModel, Trust]], bound: Bound | None = None
    ) -> Solution:
        """Return what the solver finds; where it fails, the start with what bound is left.

        `make`: builds the model, and says how far the solver's numbers can be relied on for it.
        `bound`: that needs no solver; None: the one of the ladder of bounds, where it is needed.
        Raises SolverError if the solver fails, there is no start, and nothing else finds a release;
        NoSolution if there is neither a result nor a start, or no release obeys the rules.
        """
        try:
            self.budget.report("building the model")
            model, trust = make()
            started = self.incumbent is not None
            if self.incumbent is not None:
                set_start(model, self.incumbent.assignment)
            result = solve_model(
                model, self.solver, self.settings, start=started, budget=self.budget
            )
            assignment, reported, remarks = read_result(
                self, model, result, trust, self.cheap_release
            )
        except FAILURES as failure:
            return self.without_solver(failure, bound)
        self.trace += remarks
        if result.stopped is Stopped.NODES and self.settings.node_limit is not None:
            by, further = "", ""
            if self.effort is not None:
                by, further = f" by effort {self.effort}", "; thorough goes on until the proof"
            self.trace.append(f"stopped{by} after {self.settings.node_limit:,} nodes{further}")
        solution = self.solution(assignment, result.stopped, reported, result.solver)
        # Where the solver's report is not enough, arithmetic may be: for a loss of 0 it always is.
        if bound is None and not solution.is_optimal:
            bound = self._late_bound()
        return solution if bound is None else solution.with_bound(bound)

    def cheap_release(self) -> Solution | None:
        """Return a release that needs no solver; None if heuristics find none soon."""
        return cheap_release(self.problem, self.budget, self.settings.seed)

    def without_solver(self, failure: BaseException, bound: Bound | None) -> Solution:
        """Return the best of start, release that refutes the solver, and a search without one.

        Without a start, heuristics are asked where that search does not take the problem.
        `failure`: of the solver. `bound`: that needs none; None if unknown. Raises SolverError if
        there is no release.
        """
        reason = what_failed(failure)
        searched = search_instead(self.problem, self.budget, self.settings.seed)
        if searched is None and self.incumbent is None:
            searched = self.cheap_release()
        refuting = failure.release if isinstance(failure, RefutedClaim) else None
        found = best_of(self.incumbent, refuting, searched)
        if found is None:
            if isinstance(failure, SolverError):
                raise failure
            remedy = "Use another solver, or fewer records"
            raise SolverError(reason, remedy=remedy) from failure
        what = "a search without one took its place"
        if found is not searched:
            what = "the start is kept" if found is self.incumbent else "the better release is kept"
        self.trace.append(f"{reason}: {FAILED}{what}")
        kept = self.solution(found.assignment, Stopped.ERROR)
        by_search = None if searched is None else searched.bound
        for known in (self._late_bound(), by_search, bound):
            kept = kept if known is None else kept.with_bound(known)
        return kept
