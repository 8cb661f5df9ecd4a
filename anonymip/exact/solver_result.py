"""What a solver's result means: a checked assignment with the bound that can be relied on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonymip.assignments import Assignment
from anonymip.errors import NoSolution, SolverError
from anonymip.exact.trust import (
    RefutedClaim,
    Trust,
    claimed_bound,
    refuse_refuted,
    under_assumptions,
)
from anonymip.models import FORMULATIONS, read
from anonymip.problem import Problem
from anonymip.solution import Bound, Solution
from anonymip.solvers import SolverOptions, SolverResult
from anonymip.status import Stopped
from anonymip.tolerances import same_loss

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


@dataclass(frozen=True, eq=False)
class ReadResult:
    """What is left of a solver's result after the checks.

    Parameters
    ----------
    assignment
        The solver's, or the incumbent's if that is better.
    bound
        As far as the solver can be relied on; None if unknown.
    remarks
        What is to be said about it.
    """

    assignment: Assignment
    bound: Bound | None
    remarks: list[str]


def read_result(
    problem: Problem,
    model: ConcreteModel,
    result: SolverResult,
    incumbent: Solution | None,
    trust: Trust,
    settings: SolverOptions,
    compared: Callable[[], Solution | None],
) -> ReadResult:
    """Return the checked assignment that a solver's result means, and a bound.

    Parameters
    ----------
    problem
        What was solved.
    model
        Holds the result's values.
    result
        Of the solver.
    incumbent
        The solution that the solver started from, kept if it found nothing better.
    trust
        How far the solver's numbers can be relied on.
    settings
        Of the solver: by options of the caller's own it may stop early.
    compared
        Returns a release that needs no solver, which its claims are held against; None if there
        is none.

    Raises
    ------
    SolverError
        If what the solver returns does not survive the checks.
    RefutedClaim
        If a release is better than the solver says that any can be.
    NoSolution
        If there is neither a result nor a start, or no release obeys the rules.
    """
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
        releases = [release for release in (found, compared()) if release is not None]
        best = min(releases, key=lambda release: release.objective)
        refuse_refuted(result.solver, claimed, best.objective, trust.slack, best)
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
    return ReadResult(found.assignment, bound, remarks)
