"""Trust in a solver's numbers, given its tolerances and the scale of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

import numpy as np

from anonymip.assignments import Classes
from anonymip.errors import NoSolution, SolverError, UnsupportedObjective
from anonymip.models.patterns.pattern_columns import PatternColumns
from anonymip.objectives.language.tables import effects_of_cells, least_step, size_of_exact
from anonymip.problem import Problem
from anonymip.recodings.output_rows import grid_of
from anonymip.runtime.arrays import Floats
from anonymip.solution import Solution, changeable
from anonymip.solvers import SolverResult
from anonymip.status import Stopped
from anonymip.tolerances import (
    FINE_EFFECT,
    FINE_LOSS,
    FINE_STEP,
    SOLVER_BLUR,
    SOLVER_RESOLUTION,
    contradicts,
)

#: Remark on a bound that some release disproves.
TOO_HIGH = "the solver's bound lies above a solution that was found: it is not used"

#: Remark on a bound that tolerances may have raised.
TOO_FINE = "the loss is finer than the solver's tolerances resolve: its bound is lowered by them"


class RefutedClaim(SolverError):
    """A solver claims that nothing is better than some loss, or possible; a release shows it is.

    `message`: what is claimed, and by whom. `release`: that refutes it; None if none is at hand.
    """

    def __init__(self, message: str, release: Solution | None = None) -> None:
        super().__init__(message, remedy="Use another solver")
        self.release = release

    @classmethod
    def of_infeasible(cls, solver: str, release: Solution | None) -> RefutedClaim:
        """Return that of a solver that calls a model infeasible."""
        return cls(f"{solver} calls a feasible model infeasible", release)


def best_of(*releases: Solution | None) -> Solution | None:
    """Return the first of the releases of least loss; None if there are none."""
    known = [release for release in releases if release is not None]
    return min(known, key=lambda release: release.objective, default=None)


def claimed_bound(result: SolverResult, gap: float) -> float | None:
    """Return what a solver claims that nothing is below: its bound, and what it calls optimal."""
    claims = [result.bound]
    if result.stopped is Stopped.OPTIMAL and not gap:
        claims.append(result.objective)
    return max((claim for claim in claims if claim is not None), default=None)


def refuse_refuted(
    solver: str, claimed: float, loss: float, slack: float, release: Solution | None
) -> None:
    """Refuse a bound that lies further above a loss than tolerances can bring it.

    Raises RefutedClaim with the release of this loss.
    """
    if contradicts(loss, claimed, slack):
        raise RefutedClaim(
            f"{solver} claims that no release loses less than {claimed!r}, but one is known that "
            f"loses {loss!r}",
            release,
        )


@dataclass(frozen=True)
class TrustOfLosses:
    """How far models of classes and covers can be relied on, given the scale of the loss.

    A solver keeps rows up to its tolerances, and the rows that link records turn these into a
    loss of `SOLVER_RESOLUTION` times the largest effect of one cell. Ordinary losses are far above
    that; a finer one is not proven by a solver's report. Nor are losses told apart that differ by
    less, as where values lie near each other.

    `by_cells`: whether the model adds up losses of cells. Then effects of all sizes stand side by
    side in it, and those of the finest attribute must be told apart too. `needs_assumptions`: the
    model is right only if what the author of the objective declares is.
    """

    problem: Problem
    by_cells: bool
    needs_assumptions: bool = True

    @classmethod
    def of(cls, problem: Problem, formulation: str) -> TrustOfLosses:
        """Return that of a formulation: those by sets add up losses of sets."""
        return cls(problem, by_cells=formulation not in ("set-partition", "set-cover"))

    def no_release(self, solver: str) -> NoSolution | None:
        """Return what to raise where a model is infeasible and no release known.

        None if a release always exists: only limits, degrees, and a diversity beside a limit of
        suppression leave none.
        """
        if self.problem.limits:
            return NoSolution(
                f"no release obeys the limits, says {solver}",
                remedy="Loosen a limit, or allow suppression where the recoding does",
            )
        if getattr(self.problem.recoding, "degrees", None) is not None:
            return NoSolution(
                f"no release has these degrees, says {solver}",
                remedy="Ask for degrees that differ less, or for k alone",
            )
        if self.problem.diversity is not None and self.problem.limits_suppression:
            most = self.problem.most_suppressed
            return NoSolution(
                f"no release keeps the {self.problem.diversity} where {most} records may be "
                f"suppressed, says {solver}",
                remedy="Allow more suppressed records, or ask for less diversity",
            )
        return None

    def compare(self, result: SolverResult, found: Solution) -> None:
        """Refuse an objective far below the loss of the release that the model's values mean.

        The tolerances of all cells may add up. Raises SolverError if the two contradict each other.
        """
        cells = self.problem.n * self.problem.m
        slack = max(1.0, cells) * SOLVER_RESOLUTION * largest_effect(self.problem)
        named = "classes" if isinstance(found.assignment, Classes) else "sets"
        refuse_contradiction(result, found, slack, named)

    @property
    def slack(self) -> float:
        """What the tolerances of all cells together may lift a bound by."""
        cells = max(1, self.problem.n * self.problem.m)
        effect = _largest_of_model(self.problem, by_cells=self.by_cells)
        return cells * SOLVER_RESOLUTION * effect

    def bound(self, claimed: float, objective: float) -> tuple[float | None, list[str]]:
        """Return what of a bound can be relied on beside a release of some loss, and remarks."""
        problem = self.problem
        effect = _largest_of_model(problem, by_cells=self.by_cells)
        resolution = SOLVER_RESOLUTION * effect
        excess = claimed - objective
        if excess > resolution:
            return None, [TOO_HIGH]
        if is_too_fine(problem, objective, by_cells=self.by_cells):
            return claimed - resolution - self._unseen(effect), [TOO_FINE]
        value = objective - excess if excess > 0 else claimed
        compiled = problem.compiled
        if not compiled.has_tables or (least_step(compiled.tables, problem.microdata) < resolution):
            # Costs of sets that lie so near to each other look alike to a solver; of a loss
            # without tables nobody knows how near they lie.
            return min(value, objective - SOLVER_BLUR * effect), []
        return value, []

    def _unseen(self, effect: float) -> float:
        """Return what a solver may take for lost of attributes that it hardly sees: all of it."""
        if not (self.by_cells and self.problem.compiled.has_tables):
            return 0.0
        effects = effects_of_cells(self.problem.compiled.tables, self.problem.microdata)
        records = self.problem.n if self.problem.compiled.aggregate == "sum" else 1
        return records * float(effects[effects < FINE_EFFECT * effect].sum())


def refuse_contradiction(result: SolverResult, found: Solution, slack: float, named: str) -> None:
    """Refuse an objective further below the loss of its release than tolerances can bring it.

    Beyond them the model or the solver is wrong.

    Raises SolverError if the two contradict each other.
    """
    claimed = result.objective
    if claimed is not None and contradicts(claimed + slack, found.objective):
        raise SolverError(
            f"{result.solver} returns objective {claimed!r}, but the {named} it names lose "
            f"{found.objective!r}",
            remedy="Use another solver",
        )


def is_too_fine(problem: Problem, objective: float, *, by_cells: bool) -> bool:
    """Return whether a loss is finer than what a solver's tolerances let it tell apart.

    `objective`: loss of the best solution that is known. `by_cells`: whether the model adds up
    losses of cells.
    """
    effect = _largest_of_model(problem, by_cells=by_cells)
    # A constant part of the loss is none of the differences that the solver has to see.
    if min(abs(objective), changeable(problem, objective)) < FINE_LOSS * effect:
        return True
    if not by_cells:
        return False
    tables, microdata = problem.compiled.tables, problem.microdata
    if least_step(tables, microdata) < SOLVER_RESOLUTION * effect:
        return True
    effects = effects_of_cells(tables, microdata)
    return float(effects[effects > 0].min(initial=np.inf)) < FINE_EFFECT * effect


def _largest_of_model(problem: Problem, *, by_cells: bool) -> float:
    effect = largest_effect(problem)
    if problem.may_suppress:
        # A star beside ranges of no width to speak of has a price that hides what they cost.
        effect = max(effect, float(np.nan_to_num(problem.compiled.suppression_price)))
    if by_cells or not problem.compiled.has_tables:
        return effect
    # The costs of sets hold what exact cells cost as well.
    return max(effect, size_of_exact(problem.compiled.tables, problem.microdata))


def largest_effect(problem: Problem) -> float:
    """Return the most that one cell of the table can add to the loss of a record.

    Where the loss has no tables: how much the record loss of the whole table and of single
    records differ, or the largest of these losses if that is more.
    """
    if problem.compiled.has_tables:
        return float(effects_of_cells(problem.compiled.tables, problem.microdata).max(initial=0.0))
    n = problem.n
    try:
        single = problem.compiled.class_losses(np.arange(n)[:, None])
    except UnsupportedObjective:
        # No class of one record has this loss, as a variance of a sample.
        single = np.empty(0)
    whole = problem.compiled.class_losses(np.arange(n)[None, :])
    if problem.compiled.aggregate == "sum":
        whole = whole / n
    price = np.nan_to_num(problem.compiled.suppression_price)
    return float(np.abs(np.concatenate([single, whole, [price]])).max())


@dataclass(frozen=True, eq=False)
class TrustOfPatterns:
    """How far models of patterns can be relied on; costs of patterns are known, not declared.

    `columns`: what the model was built from.
    """

    columns: PatternColumns
    needs_assumptions: bool = False

    def no_release(self, solver: str) -> NoSolution | None:
        """Return that mask and rules leave no release."""
        return NoSolution(
            f"no release keeps the mask and the rules, says {solver}",
            remedy="Allow more patterns, such as the one of stars only, or suppression",
        )

    def compare(self, result: SolverResult, found: Solution) -> None:
        """Refuse an objective below the loss; the tolerances of all records may add up."""
        refuse_contradiction(result, found, self.slack, "patterns")

    @property
    def slack(self) -> float:
        """What the tolerances of all records together may lift a bound by."""
        return slack_of(self._losses, self.columns.problem.n)

    def bound(self, claimed: float, objective: float) -> tuple[float | None, list[str]]:
        """Return what of a bound can be relied on, and remarks."""
        trusted = trusted_bound(self._losses, claimed, objective)
        return trusted, [] if trusted is not None else [TOO_HIGH]

    @property
    def _losses(self) -> Floats:
        """The losses that a record can have."""
        return self.columns.program.losses


#: How far a solver's numbers can be relied on for one model.
Trust: TypeAlias = TrustOfLosses | TrustOfPatterns


def slack_of(losses: Floats, records: int) -> float:
    """Return what tolerances may lift a bound by, of records that have one of some losses each."""
    return records * _resolution_of(losses)


def trusted_bound(losses: Floats, claimed: float, objective: float) -> float | None:
    """Return what of a solver's bound on releases by patterns can be relied on; None if nothing.

    A loss much below that of the costliest pattern, or one that much cheaper patterns add to,
    is finer than the solver's tolerances resolve: the bound is lowered by them, and so it is where
    no release says how fine the loss is. Where all losses are multiples of a number of few
    decimals, a bound between two of them is raised to the next.

    `losses`: that a record can have. `claimed`: the solver's bound. `objective`: loss of the best
    release that is known; infinite without one.
    """
    resolution = _resolution_of(losses)
    if claimed - objective > resolution:
        return None
    effect = float(losses.max(initial=0.0))
    steps = np.diff(np.sort(losses))
    finest = float(losses[losses > 0].min(initial=np.inf))
    step = float(steps[steps > 4.0 * np.finfo(float).eps * effect].min(initial=np.inf))
    fine = np.isinf(objective) or abs(objective) < FINE_LOSS * effect
    fine |= finest < FINE_EFFECT * effect or step < FINE_STEP * effect
    value = claimed - resolution if fine else claimed
    if grid := grid_of(losses):
        value = max(value, ceil((claimed - resolution) * grid) / grid)
    return min(value, objective)


def _resolution_of(losses: Floats) -> float:
    return SOLVER_RESOLUTION * float(np.abs(losses).max(initial=0.0))
