"""The way from a problem to a solution with a bound.

A method that is stopped, while kernels are compiled or without memory, leaves the release at hand.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from anonymip.bounds.combinatorial import bound_in_time, climbs
from anonymip.bounds.ladder import Ladder, WeighedSets
from anonymip.bounds.near_program import NearProgram
from anonymip.effort import EFFORTS, check_effort
from anonymip.errors import (
    AnonymipError,
    InputError,
    InputWarning,
    MemoryShort,
    NoSolution,
    argument,
)
from anonymip.exact.column_generation.column_generation import may_be_bounded
from anonymip.exact.column_generation.settings import FEW
from anonymip.heuristics.local_search.starts import BEST, starts_of
from anonymip.instances.columns import missing_rows
from anonymip.methods import METHODS, MethodSpec, find_method, is_built_in, refuse_unfit
from anonymip.methods.best_bound import BOUND, best_bound, best_bound_in_time, runs_of_bound
from anonymip.methods.memory_needs import refuse_short_memory
from anonymip.methods.selection import picked_method
from anonymip.objectives.loss_checks import unread_weights
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity import of_rows
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.compilation import CompilationStopped, RunInForce, in_force
from anonymip.runtime.kernels import announcing_compilation, prepare_kernels
from anonymip.runtime.memory import memory_ended, ran_out
from anonymip.runtime.needed_kernels import kernels_left
from anonymip.solution import Bound, Solution, retold
from anonymip.solvers import SolverOptions, refuse_unknown_solver
from anonymip.status import Stopped
from anonymip.tolerances import same_loss

#: Most of a time limit that goes to the bound before the method starts: to one that would begin
#: anew where the method leaves time, and to the ladder, which goes on.
_SHARE_OF_BOUND, _SHARE_OF_LADDER = 0.25, 0.5
#: The same of the ladder in tables of so many records, where a method soon comes near to what it
#: can and a sweep takes minutes.
_LARGE, _SHARE_OF_LARGE = 300_000, 0.75


def solve(
    problem: Problem,
    method: str = "auto",
    *,
    effort: str | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    solver: str = "highs",
    threads: int = 1,
    seed: int = 0,
    log: str | Path | None = None,
    solver_options: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    bound: bool = True,
    progress: Callable[[Progress], None] | None = None,
    budget: Budget | None = None,
) -> Solution:
    """Return a solution of the problem with a proven lower bound.

    Parameters
    ----------
    problem
        What is asked.
    method
        Name of a method; ``"auto"`` picks one and says which.
    effort
        How much work methods may spend that could go on for long: ``"quick"``, ``"normal"`` or
        ``"thorough"``. It counts steps and not seconds, so that the same seed gives the same
        solution on every machine. None: ``"thorough"`` where a time limit ends the work, else
        ``"normal"``.
    time_limit
        Seconds; the best solution found until then is returned. For methods that prove nothing the
        bound is computed first, in half of them at most; the search has all that it leaves, and
        the bound what the search leaves. More seconds never make loss or bound worse.
    gap
        Relative gap to stop at, for methods that prove; 0 proves optimality.
    solver, threads, solver_options
        For methods that use a solver.
    log
        File that receives the solver's own log; :attr:`Solution.log` says what the method did.
    seed
        Of random choices and of the solver: the same seed gives the same solution.
    options
        The method's own options.
    checkpoint
        File in which a method that can go on later keeps how far it has come, readable by its owner
        alone and as private as the table. It stays, also when the method has ended.
    resume
        Whether to go on from that file, with the same result as if nothing had come between; begins
        from the start if it is not there. Without it a file in its place is an error.
    bound
        Whether to compute a lower bound where the method itself proves none.
    progress
        Receives what the computation reports.
    budget
        Takes the place of `time_limit` and `progress`, for callers that stop several computations
        together.

    Raises
    ------
    InputError
        If method, option or setting is wrong or does not fit the problem, or a checkpoint is
        damaged or of something else.
    SolverUnavailable
        If the solver is not installed.
    NoSolution
        If nothing was found within the limits.
    Interrupted
        If the user stopped it while kernels were compiled, before anything was found.
    AnonymipError
        If what the method returns is no solution, or not as good as it says.

    Examples
    --------
    >>> import anonymip
    >>> data = anonymip.load_instance("health-records")
    >>> solution = anonymip.solve(anonymip.Problem(data, k=3))
    >>> solution.is_optimal, solution.assignment.labels.tolist()
    (True, [0, 0, 0, 1, 1, 1, 1])
    """
    _warn_of_weights(problem)
    _warn_of_missing(problem)
    spec = find_method(method)
    refuse_unfit(spec, problem)
    own = spec.parse_options(options or {})
    refuse_short_memory(problem, spec, own)
    budget = Budget.of(time_limit, progress) if budget is None else budget
    effort = check_effort(effort, limited=budget.deadline is not None)
    settings: dict[str, Any] = {
        "solver": solver,
        "gap": gap,
        "threads": threads,
        "log": log,
        "solver_options": solver_options,
        "checkpoint": checkpoint,
        "resume": resume,
        "effort": effort,
    }
    taken = {name: value for name, value in settings.items() if name in spec.takes}
    _refuse_checkpoint(spec, checkpoint, resume)
    SolverOptions(relative_gap=gap, threads=threads, seed=seed, log=log)
    refuse_unknown_solver(solver)
    run = RunInForce(budget, problem)
    remarks: list[str] = []
    limited = bound and budget.deadline is not None and not _proves(spec, problem, effort)
    weighs = bound and not may_be_bounded(problem, effort)
    ladder = Ladder(problem, effort, budget) if (limited or weighs) and climbs(problem) else None
    if ladder is not None and weighs:
        run.weighing = partial(_weighed, ladder, budget, effort, remarks, limited=limited)
        run.solving = partial(_solved_program, ladder, budget, remarks, limited=limited)

    def runs() -> set[str]:
        names = set(_runs(spec, problem, effort, own))
        if bound:
            # What all bounds need, the methods of the table of kernels have counted.
            names |= {*runs_of_bound(problem, effort, limited=limited)} - {BOUND}
        return names

    # Where a ladder is climbed method and bound share few kernels; else it would take longer.
    if ladder is not None and budget.deadline is None:
        prepare_kernels(runs, budget.progress)
    told = announcing_compilation(lambda: kernels_left(runs()), budget.report)
    with budget.catching_interrupts(), told, in_force(run):
        early, complete = None, False
        if limited:
            with _while_memory_lasts(remarks):
                early, complete = _bound_in_advance(problem, effort, budget, ladder)
        try:
            solution = _run(spec, problem, budget=budget, seed=seed, **taken, **own)
        except CompilationStopped as stopped:
            solution = release_at_hand(problem, run, stopped, method)
        except (Exception, SystemExit) as error:
            if not ran_out(error):
                raise
            solution = release_without_memory(problem, run, error, method)
        _refuse_foreign(solution, problem, method)
        # A solver's bound may miss a loss of 0 by rounding, which has no relative gap.
        if bound and (not solution.is_optimal or solution.gap is None):
            if early is not None:
                solution = solution.with_bound(early)
            # Without one in advance a bound is due even if no time is left: it costs little then.
            if early is None or budget.stop_reason() is None:
                known = early if complete else None
                with _while_memory_lasts(remarks):
                    late = best_bound_in_time(
                        problem,
                        [solution],
                        known=known,
                        ladder=ladder,
                        effort=effort,
                        budget=budget,
                    )
                    solution = solution if late is None else solution.with_bound(late)
    if remarks:
        solution = replace(solution, trace=(*solution.trace, *remarks))
    if solution.status.stopped is Stopped.GAP and not gap:
        # Nobody asked for a gap to stop at: the solver's tolerance ended it, or ours.
        return replace(solution, status=replace(solution.status, stopped=Stopped.TOLERANCE))
    return solution


def _weighed(
    ladder: Ladder, budget: Budget, effort: str, remarks: list[str], *, limited: bool
) -> WeighedSets | None:
    """Return the sets that a bound weighs up to the normal effort; a limit waits for none."""
    if not limited and effort != EFFORTS[0]:
        with suppress(CompilationStopped), _while_memory_lasts(remarks):
            ladder.climb(budget, until=EFFORTS[1])
    return ladder.weighed


def _solved_program(
    ladder: Ladder, budget: Budget, remarks: list[str], *, limited: bool
) -> NearProgram | None:
    """Return the solved program of a bound climbed to its end, or None; a limit waits for none."""
    if not limited:
        with suppress(CompilationStopped), _while_memory_lasts(remarks):
            ladder.climb(budget)
    program = ladder.program if ladder.ended else None
    return program if program is not None and program.solved else None


@contextmanager
def _while_memory_lasts(remarks: list[str]) -> Iterator[None]:
    """Leave the computation of a bound where memory ends, with a remark: a release needs none."""
    try:
        yield
    except Exception as error:
        if not ran_out(error):
            raise
        remarks.append("memory ended while a bound was computed")


def _bound_in_advance(
    problem: Problem, effort: str, budget: Budget, ladder: Ladder | None
) -> tuple[Bound | None, bool]:
    """Return a bound and whether it was computed to the end, before the method starts.

    How long a bound takes is known when it is there: what it leaves of its share is the method's,
    which a share kept for it until the end would never be. What the method leaves is the ladder's.
    """
    of_ladder = _SHARE_OF_LARGE if problem.n >= _LARGE else _SHARE_OF_LADDER
    share = budget.share(_SHARE_OF_BOUND if ladder is None else of_ladder)
    with in_force(RunInForce(share)):
        if ladder is None:
            return bound_in_time(problem, effort=effort, budget=share), share.stop_reason() is None
        with suppress(CompilationStopped):
            ladder.climb(share)
    return ladder.best, ladder.ended


def _proves(spec: MethodSpec, problem: Problem, effort: str) -> bool:
    """Return whether the method has a bound of its own, which is better than one in advance."""
    if spec.role != "selection" or problem.recoding.name not in ("classes", "freeform"):
        return spec.role == "exact"
    return find_method(picked_method(problem, effort)).role == "exact"


def _runs(
    spec: MethodSpec, problem: Problem, effort: str, options: Mapping[str, object]
) -> list[str]:
    """Return the names that the kernels of a run are known by, with options of the method's own."""
    name = spec.name if spec.role != "selection" else picked_method(problem, effort)
    if name == "column-generation" and problem.n > FEW:
        if problem.recoding.name == "freeform":
            return [name, "reassign"]
        return [name, "local-search", *_fitting_starts(problem)]
    if name == "local-search" and options.get("from_method", BEST) == BEST:
        return [name, *_fitting_starts(problem)]
    return [name]


def _fitting_starts(problem: Problem) -> list[str]:
    """Return the starts of a local search that do not refuse the problem."""
    specs = map(find_method, starts_of(problem))
    return [
        spec.name for spec in specs if spec.solves_for(problem.k) and spec.obstacle(problem) is None
    ]


def _warn_of_weights(problem: Problem) -> None:
    unread = unread_weights(problem.objective, problem.microdata)
    if unread is not None:
        warnings.warn(unread, InputWarning, stacklevel=3)


def _warn_of_missing(problem: Problem) -> None:
    """Say that a diversity takes a missing value for one like any other."""
    microdata, asked = problem.microdata, of_rows(problem.diversity)
    for name in microdata.sensitive if asked is not None else ():
        absent = missing_rows(microdata.frame[name], (*microdata.table.missing, ""))
        if absent.any():
            warnings.warn(
                f"column {name!r} has no value in {int(absent.sum()):,} rows, which count as one "
                f"value more for the {asked}: a class of one value and of such rows tells nearly "
                "as much as one value alone. Leave these rows out, or ask for one value more",
                InputWarning,
                stacklevel=3,
            )


def _refuse_checkpoint(spec: MethodSpec, checkpoint: str | Path | None, resume: bool) -> None:
    if resume and checkpoint is None:
        raise InputError(
            "there is no file to resume from",
            remedy=f"Name the checkpoint ({argument('checkpoint', ...)})",
        )
    if checkpoint is not None and "checkpoint" not in spec.takes:
        able = [name for name, other in METHODS.items() if "checkpoint" in other.takes]
        raise InputError(
            f"method {spec.name} keeps no checkpoints",
            remedy=f"Leave {argument('checkpoint')} and {argument('resume')} out, or use "
            f"{' or '.join(able)}",
        )


def _run(spec: MethodSpec, problem: Problem, **settings: Any) -> Solution:
    """Run a method; what fails in one from outside is its maker's to mend."""
    try:
        solution: Solution = spec.load()(problem, **settings)
    except AnonymipError:
        raise
    except (Exception, SystemExit) as error:
        if is_built_in(spec) or ran_out(error):
            raise
        raise AnonymipError(
            f"method {spec.name} ({spec.source}) fails with {type(error).__name__}",
            remedy="Report it to those who made the method",
            value=str(error),
        ) from error
    if isinstance(solution, Solution) and not is_built_in(spec) and solution.method != spec.name:
        # Whoever asked for it by its name finds it by this name; adopt knows none.
        by = f"the method {spec.name} returned a solution of {solution.method}"
        return replace(solution, method=spec.name, trace=(*solution.trace, by))
    return solution


def lower_bound(
    problem: Problem,
    *,
    method: str | None = None,
    effort: str | None = None,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    budget: Budget | None = None,
) -> Bound | None:
    """Return a proven lower bound on the loss of any release, without looking for one.

    Parameters
    ----------
    problem
        What is asked.
    method
        ``"column-generation"``: by the linear program over all sets, for tables of up to some
        thousand row types whatever the effort; a problem that it does not fit is refused. What the
        program does not reach, and larger tables, stand on the best of the other bounds. None for
        what the effort suggests.
    effort
        How much work, as :func:`solve` takes it: large tables of many columns need much.
    time_limit
        Seconds; records not looked at until then add nothing to the bound.
    progress
        Receives what the computation reports.
    budget
        Takes the place of `time_limit` and `progress`.

    Returns
    -------
    Bound or None
        None if the objective is not proven monotone.

    Raises
    ------
    InputError
        If the method is unknown, has no bound of its own, or does not fit the problem.
    UnsupportedObjective
        If the objective lacks what the method needs.
    NoSolution
        If the time ended while kernels were compiled.

    Examples
    --------
    >>> import anonymip
    >>> problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    >>> round(anonymip.lower_bound(problem).value, 4)
    0.9551
    """
    _warn_of_weights(problem)
    budget = Budget.of(time_limit, progress) if budget is None else budget
    effort = check_effort(effort, limited=budget.deadline is not None)
    with (
        budget.catching_interrupts(),
        announcing_compilation(lambda: kernels_left(runs_of_bound(problem, effort)), budget.report),
        in_force(RunInForce(budget)),
    ):
        try:
            return best_bound(problem, method=method, effort=effort, budget=budget)
        except CompilationStopped as stopped:
            raise stopped.nothing_found() from None


def _refuse_foreign(solution: object, problem: Problem, method: str) -> None:
    """Refuse what a method should not have returned: checked again, whoever wrote the method."""
    if not isinstance(solution, Solution) or solution.problem is not problem:
        raise AnonymipError(
            f"method {method} did not return a Solution of the problem it was given",
            remedy="Return Solution.of(problem, assignment, method=...)",
        )
    if solution.bound is not None and solution.bound.proof == "certified":
        raise AnonymipError(
            f"method {method} calls its bound certified, and there is no certificate",
            remedy="Call it an argument, which is taken on your word; certify() proves what it can",
        )
    checked = Solution.of(problem, solution.assignment, method=method, bound=solution.bound)
    same = same_loss(checked.objective, solution.objective)
    if not same or checked.is_optimal != solution.is_optimal:
        claim = f"loss {solution.objective!r} ({solution.status})"
        raise AnonymipError(
            f"method {method} claims {claim}, but its assignment has loss {checked.objective!r} "
            f"({checked.status})",
            remedy="Return Solution.of(problem, assignment, method=...)",
        )


#: Methods that compile nothing where no rule has to be repaired, and the options for that.
_WITHOUT_KERNELS: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {"classes": ("initial", {}), "freeform": ("ring", {"order": "variance"})}
)


def release_at_hand(
    problem: Problem, run: RunInForce, stopped: CompilationStopped, method: str
) -> Solution:
    """Return the best release that the run has made, else one that needs no kernels.

    The run is still in force: nothing is compiled for this. Raises Interrupted if the user stopped
    the run before there was a release. NoSolution if the time ended before there was one, and every
    method needs kernels.
    """
    remark = f"{method} was stopped ({stopped.reason.value}) while kernels were compiled"
    found: Solution | None = run.at_hand
    if found is None and stopped.reason is Stopped.TIME:
        found = _without_kernels(problem, run)
        remark += ": this method needs none"
    if found is None:
        raise stopped.nothing_found() from None
    return retold(found, problem, remark=remark, stopped=stopped.reason, bound=found.bound)


def release_without_memory(
    problem: Problem, run: RunInForce, shortage: BaseException, method: str
) -> Solution:
    """Return the best release that the run has made before memory ended, else a frugal one.

    What the frames of the `shortage` hold is given up first. Raises MemoryShort if there was no
    release, and there is not enough memory for a frugal method either.
    """
    told = shortage.message if isinstance(shortage, MemoryShort) else "memory ended"
    following: BaseException | None = shortage
    while following is not None:
        following.__traceback__ = None
        following = following.__cause__ or following.__context__
    gc.collect()
    remark = f"{method} was stopped: {told}"
    found: Solution | None = run.at_hand
    if found is None:
        remark += "; this method needs little"
        with suppress(MemoryError):
            found = _without_kernels(problem, run)
    if found is None:
        raise memory_ended(f"while {method} solved {problem.n:,} records") from None
    return retold(found, problem, remark=remark, stopped=Stopped.NODES, bound=found.bound)


def _without_kernels(problem: Problem, run: RunInForce) -> Solution | None:
    choice = _WITHOUT_KERNELS.get(problem.recoding.name)
    if choice is None:
        return None
    name, options = choice
    try:
        solution: Solution = find_method(name).load()(problem, budget=run.budget, **options)
    except (CompilationStopped, NoSolution):
        return None
    return solution
